r"""Input aggregation criticality (paper, section 5): how deep a program a model can follow, and how that grows with its layers.

The failing depth of a model is where its accuracy falls below a threshold, read from accuracy against depth. The paper expects

$$n_\mathrm{crit} = c\, L$$

for L layers; shortcuts for automata of depth O(log T) allow $n_\mathrm{crit} = a\, 2^L$; and models that have not learnt to use their
layers give a constant. All three have one constant and are fitted to the logarithms, so that their errors can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95
Bound = Literal["reached", "above", "below"]
LAWS = {"c L": np.log, "a 2^L": lambda layers: layers * np.log(2), "constant": np.zeros_like}
"""Law -> logarithm of its growth in the layers."""


class CriticalityError(ValueError):
    """Points from which the law asked for cannot be read; the message says what is missing."""


@dataclass(frozen=True)
class Failure:
    """A failing depth with its interval; see `failing_depth` for the bounds."""

    depth: float
    low: float
    high: float
    bound: Bound


@dataclass(frozen=True)
class Law:
    """failing depth = constant * growth(L), with the interval of the constant and the mean squared error of the logarithm."""

    name: str
    constant: float
    low: float
    high: float
    squared_log_error: float


Points = tuple[list[int], NDArray[np.int64], int]
"""Tested depths (D,), programs answered right by each run (R, D), and programs a depth."""


@dataclass(frozen=True)
class Growth:
    """Exponent of failing depth ~ L^exponent with its interval; growth is seen if the whole interval lies above 0."""

    exponent: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        return self.low > 0


def failing_depth(depths: Sequence[float], accuracies: Sequence[float], threshold: float) -> tuple[float, Bound]:
    """Where accuracy first falls below `threshold`, interpolated in the logarithm of the depth between two tested depths.

    :returns: the depth and "reached"; the shallowest depth and "below" where it fails at once; the deepest and "above" where it never fails
    """
    depths, accuracies = np.asarray(depths, float), np.asarray(accuracies, float)
    if depths.size < 2 or depths.shape != accuracies.shape or (np.diff(depths) <= 0).any() or depths[0] <= 0:
        raise CriticalityError("a failing depth needs accuracies at two or more rising depths")
    if not np.isfinite(accuracies).all() or not 0 < threshold < 1:
        raise CriticalityError("accuracies must be finite and the threshold between 0 and 1")
    failed = np.flatnonzero(accuracies < threshold)
    if not failed.size:
        return float(depths[-1]), "above"
    if failed[0] == 0:
        return float(depths[0]), "below"
    before, after = failed[0] - 1, failed[0]
    share = (accuracies[before] - threshold) / (accuracies[before] - accuracies[after])
    return float(depths[before] * (depths[after] / depths[before]) ** share), "reached"


def failure(depths: Sequence[float], correct: NDArray[np.int64], n: int, threshold: float, resamples: int, seed: int) -> Failure:
    """Failing depth of the mean over runs, with a bootstrap over runs and over test programs.

    :param depths: (D,)
    :param correct: (R, D) test programs answered right by each run
    :param n: test programs a depth
    """
    correct = np.atleast_2d(np.asarray(correct))
    if ((correct < 0) | (correct > n)).any():
        raise CriticalityError(f"correct answers must lie between 0 and {n}")
    rng, runs = np.random.default_rng(seed), len(correct)
    depth, bound = failing_depth(depths, correct.mean(0) / n, threshold)
    drawn = rng.integers(runs, size=(resamples, runs))
    answers = rng.binomial(n, correct[drawn] / n).mean(1) / n  # (resamples, D)
    found = [failing_depth(depths, row, threshold)[0] for row in answers]
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Failure(depth, float(low), float(high), bound)


def _points(layers: Sequence[float], depths: Sequence[float], distinct: int) -> tuple[NDArray, NDArray]:
    layers, depths = np.asarray(layers, float), np.asarray(depths, float)
    if layers.shape != depths.shape or not (np.isfinite(depths) & (depths > 0) & (layers > 0)).all():
        raise CriticalityError("each point needs a positive number of layers and a positive failing depth")
    if np.unique(layers).size < distinct:
        raise CriticalityError(f"{np.unique(layers).size} numbers of layers do not show a law; {distinct} are needed")
    return layers, np.log(depths)


def fit_laws(layers: Sequence[float], depths: Sequence[float]) -> Mapping[str, Law]:
    """Fit each law of `LAWS` to failing depths, one point a run; at least three numbers of layers.

    The constant is the geometric mean of depth / growth, its interval Student's t on the logarithms.
    """
    layers, logs = _points(layers, depths, distinct=3)
    laws = {}
    for name, growth in LAWS.items():
        rest = logs - growth(layers)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, rest.size - 1) * stats.sem(rest)
        centre = rest.mean()
        low, high = np.exp([centre - half, centre + half])
        laws[name] = Law(name, float(np.exp(centre)), float(low), float(high), float(((rest - centre) ** 2).mean()))
    return laws


def growth(layers: Sequence[float], depths: Sequence[float]) -> Growth:
    """Slope of log depth on log layers with Student's t interval; at least three numbers of layers and four points."""
    layers, logs = _points(layers, depths, distinct=3)
    if layers.size < 4:
        raise CriticalityError(f"{layers.size} points leave too little to judge a slope by; 4 are needed")
    line = stats.linregress(np.log(layers), logs)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, layers.size - 2) * line.stderr
    return Growth(float(line.slope), float(line.slope - half), float(line.slope + half))


@dataclass(frozen=True)
class Reading:
    """What the failing depths of one family say: laws and growth, or why there are none."""

    points: int
    laws: Mapping[str, Law]
    growth: Growth | None
    why: str

    @property
    def seen(self) -> bool:
        """Whether growth in the layers is seen."""
        return self.growth is not None and self.growth.seen

    @property
    def proportional(self) -> bool:
        """Whether growth is seen and its interval holds the exponent 1 of the paper's law."""
        return self.growth is not None and self.growth.seen and self.growth.low <= 1 <= self.growth.high


def by_model(rows: Iterable[Mapping[str, object]]) -> dict[tuple[str, int], Points]:
    """Test accuracies of result rows by (model, layers): one run a seed, over the depths at which all runs were tested."""
    groups: dict[tuple[str, int], dict[int, dict[int, Mapping]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        groups[row["model"], row["layers"]][row["seed"]][row["depth"]] = row
    points = {}
    for key, runs in sorted(groups.items()):
        depths = sorted(set.intersection(*(set(run) for run in runs.values())))
        sizes = {run[depth]["n"] for run in runs.values() for depth in depths}
        if len(sizes) != 1:
            raise CriticalityError(f"{key[0]} with {key[1]} layers was tested on {sorted(sizes)} programs; one number is needed")
        correct = [[round(run[depth]["test_accuracy"] * run[depth]["n"]) for depth in depths] for run in runs.values()]
        points[key] = (depths, np.array(correct), sizes.pop())
    return points


def run_failures(points: Mapping[tuple[str, int], Points], model: str, threshold: float) -> tuple[list[int], list[float]]:
    """Layers and failing depth of each run of a model; runs whose depth was not reached between two tested ones are left out."""
    layers, found = [], []
    for (name, count), (depths, correct, n) in points.items():
        for run in correct if name == model else ():
            depth, bound = failing_depth(depths, run / n, threshold)
            if bound == "reached":
                layers.append(count)
                found.append(depth)
    return layers, found


def read_growth(failures: tuple[list[int], list[float]]) -> Reading:
    """Fit the laws and the exponent, or say why that cannot be done."""
    layers, depths = failures
    try:
        return Reading(len(layers), fit_laws(layers, depths), growth(layers, depths), "")
    except CriticalityError as error:
        return Reading(len(layers), {}, None, str(error))
