r"""Appendix D: from when on does the longer sequence win at equal time?

The claim: if a step takes time in proportion to L and loss(L | s) = A(s) L^-alpha(s) with A and alpha settling, then for every pair of
lengths there is a time after which the longer one has the lower loss. Here losses are held against processor seconds: each step of
a run counts with the run's median cost, so that other work on the machine does not move the curve.

A crossing is the first time from which the mean over seeds of

$$d(t) = \log \mathrm{loss}(t, L_2) - \log \mathrm{loss}(t, L_1)$$

stays below 0 to the end of the shorter run. Its interval runs from where the lower bound of d's 95 % interval (Student's t over seeds)
stays below 0 to where the upper bound does. What does not happen before the end is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fbam.analysis.scaling import CONFIDENCE, FitError, saturating

Array = NDArray[np.float64]
POINTS = 400  # times at which two curves are compared


@dataclass(frozen=True)
class Curve:
    """Losses (m, seeds) of one length against time: `seconds` (m,) from the start of training, rising."""

    length: int
    seconds: Array
    losses: Array


@dataclass(frozen=True)
class Crossing:
    """From when on the longer of two lengths wins, in seconds, with its interval; `horizon` is the end of the comparison.

    None: not seen before the horizon; for low and high also: one seed, so there is no interval. `gain` is the mean of
    loss(L_2) / loss(L_1) at the horizon.
    """

    shorter: int
    longer: int
    seconds: float | None
    low: float | None
    high: float | None
    horizon: float
    gain: float


@dataclass(frozen=True)
class StepCost:
    """`seconds a step = base + a_frame L`; the claim takes base as 0. `fixed_share` is the base's share of a step at L = 1."""

    base: float
    a_frame: float
    r2: float

    @property
    def fixed_share(self) -> float:
        """Share of a step at L = 1 that does not grow with L."""
        return self.base / (self.base + self.a_frame)


def crossing(first: Curve, second: Curve) -> Crossing:
    """Compare two lengths at equal time. Raises FitError when they have no time in common or other seeds."""
    shorter, longer = sorted((first, second), key=lambda curve: curve.length)
    start, end = max(shorter.seconds[0], longer.seconds[0]), min(shorter.seconds[-1], longer.seconds[-1])
    if not start < end:
        raise FitError(f"L = {shorter.length} and {longer.length} have no time in common: train the faster one for more steps")
    if shorter.losses.shape[1] != longer.losses.shape[1]:
        raise FitError(f"L = {shorter.length} and {longer.length} were not trained with as many seeds")
    times = np.linspace(start, end, POINTS)
    difference = _log_at(longer, times) - _log_at(shorter, times)  # (POINTS, seeds)
    mean, seeds = difference.mean(axis=1), difference.shape[1]
    low = high = None
    if seeds > 1:
        half = stats.sem(difference, axis=1) * stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1)
        low, high = stays_negative(times, mean - half), stays_negative(times, mean + half)
    return Crossing(shorter.length, longer.length, stays_negative(times, mean), low, high, float(end), float(np.exp(mean[-1])))


def stays_negative(times: Array, values: Array) -> float | None:
    """The first of `times` from which `values` are below 0 up to the last one, or None."""
    wrong = np.flatnonzero(~(values < 0))
    first = wrong[-1] + 1 if wrong.size else 0
    return float(times[first]) if first < len(times) else None


def step_cost(lengths: Sequence[float], seconds: ArrayLike) -> StepCost:
    """Fit the cost of a step to one or more measurements a length. Raises FitError for fewer than three different lengths."""
    x, y = np.asarray(lengths, dtype=float), np.asarray(seconds, dtype=float)
    if x.shape != y.shape or len(np.unique(x)) < 3:
        raise FitError(f"the cost of a step needs measurements at three or more lengths, got {x.tolist()}")
    line = stats.linregress(x, y)
    return StepCost(float(line.intercept), float(line.slope), float(line.rvalue**2))


def law_crossing(
    log_A: Callable[[Array], Array], alpha: Callable[[Array], Array], shorter: float, longer: float, times: ArrayLike,
    cost: Callable[[float], float] = float,
) -> float | None:
    """The crossing that the fitted law itself implies (equation 11), to the resolution of `times`, or None before their end.

    log_A and alpha: of the step s. cost: time of a step of length L; by default L, the claim's assumption with gamma = 1, so that
    `times` are steps of length 1.
    """
    t = np.asarray(times, dtype=float)
    early, late = t / cost(longer), t / cost(shorter)  # steps of each at time t
    difference = log_A(early) - alpha(early) * np.log(longer) - log_A(late) + alpha(late) * np.log(shorter)
    return stays_negative(t, difference)


def saturated_crossing(alpha_inf: float, tau: float, shorter: float, longer: float, points: int = 100_000) -> float | None:
    """The crossing under equation 9 with A constant, as appendix D assumes it, in steps of the longer sequence.

    None when the longer one does not win within 100 tau of its own steps; tau's whole curve is over long before.
    """
    times = np.linspace(0, 100 * tau * longer, points + 1)[1:]
    found = law_crossing(np.zeros_like, lambda s: saturating(s, alpha_inf, tau), shorter, longer, times)
    return None if found is None else found / longer


def _log_at(curve: Curve, times: Array) -> Array:
    """Log losses of each seed at `times`, (len(times), seeds), straight between the points of the curve."""
    return np.stack([np.interp(times, curve.seconds, np.log(losses)) for losses in curve.losses.T], axis=1)
