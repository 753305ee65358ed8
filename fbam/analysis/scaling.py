"""Section 10.5: how the training loss depends on the sequence length L, and how that exponent grows with the step s.

The law is `loss(L | s) = A(s) L^-alpha(s)` (equation 8), a straight line in logarithms, so it is fitted there by least squares.
A doubling of L lowers the loss by `1 - 2^-alpha`. The exponent is said to saturate, `alpha(s) = alpha_inf (1 - exp(-s / tau))`
(equation 9). Which other curves the losses would follow as well is asked in `fbam.analysis.forms`; the paper's own numbers stand in
data/paper_scaling.yaml and are read by `fbam.analysis.paper_scaling`.

A fit never returns a number that it could not determine: it raises FitError.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

CONFIDENCE = 0.95


class FitError(ValueError):
    """The numbers given do not determine the fit asked for."""


@dataclass(frozen=True)
class PowerLaw:
    """`loss(L) = A L^-alpha` with the 95 % interval [low, high] of alpha.

    r2 is that of the straight line through the mean logarithm at each of the n lengths; `method` says how the interval was made.
    """

    A: float
    alpha: float
    r2: float
    n: int
    seeds: int
    low: float
    high: float
    method: str

    def loss(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """The fitted loss at each of `lengths`."""
        return self.A * np.asarray(lengths, dtype=float) ** -self.alpha

    def holds(self, r2_at_least: float) -> bool:
        """The verdict test: the whole interval of alpha lies above 0, and the line explains enough."""
        return self.low > 0 and self.r2 >= r2_at_least


@dataclass(frozen=True)
class LocalExponent:
    """The exponent between two neighbouring lengths, `-log(loss_2 / loss_1) / log(L_2 / L_1)`, with its 95 % interval.

    The interval is Student's t over the seeds, paired by seed; with one seed it is missing (None).
    """

    shorter: float
    longer: float
    alpha: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Saturation:
    """`alpha(s) = alpha_inf (1 - exp(-s / tau))`, tau in steps; max_error is the largest absolute miss at the n steps fitted."""

    alpha_inf: float
    tau: float
    max_error: float
    n: int

    def alpha(self, steps: ArrayLike) -> NDArray[np.float64]:
        """The exponent at each of `steps`."""
        return saturating(np.asarray(steps, dtype=float), self.alpha_inf, self.tau)


def loss_at(losses: Sequence[float], step: int, window: int) -> float:
    """The loss at a step (counted from 1): the mean of the last `window` training losses up to and including it.

    Raises FitError when the run is shorter than `step`, or the window does not fit before it.
    """
    if not 1 <= window <= step <= len(losses):
        raise FitError(f"no mean over {window} steps ending at step {step} in a run of {len(losses)} steps")
    return float(np.mean(losses[step - window : step]))


def doubling_gain(alpha: float) -> float:
    """The share by which a doubling of L lowers the loss."""
    return 1 - 2.0**-alpha


def saturating(steps: ArrayLike, alpha_inf: float, tau: float) -> NDArray[np.float64]:
    """Equation 9 at each of `steps`."""
    return alpha_inf * -np.expm1(-np.asarray(steps, dtype=float) / tau)


def fit_power_law(lengths: Sequence[float], losses: ArrayLike, *, resamples: int = 2000, seed: int = 0) -> PowerLaw:
    """Fit equation 8 at one step.

    lengths: n different sequence lengths, n >= 3. losses: (n,) or (n, seeds), the loss of each run, in the order of `lengths`.
    With several seeds the interval comes from a studentised bootstrap of `resamples` draws made with `seed`; with one seed from
    Student's t on the residuals of the regression, which for three lengths is very wide. Raises FitError for fewer lengths,
    lengths or losses that are not positive and finite, losses that are all equal, and seeds that do not differ.
    """
    x, y = logarithms(lengths, losses)  # (n,), (n, seeds)
    line = stats.linregress(x, y.mean(axis=1))
    alpha, (n, seeds) = -float(line.slope), y.shape
    if seeds == 1:
        half = float(line.stderr * stats.t.ppf((1 + CONFIDENCE) / 2, n - 2))
        low, high, method = alpha - half, alpha + half, "t interval of the regression, one seed"
    else:
        low, high = _bootstrap(x, y, alpha, resamples, seed)
        method = f"bootstrap over {seeds} seeds"
    return PowerLaw(float(np.exp(line.intercept)), alpha, float(line.rvalue**2), n, seeds, low, high, method)


def log_residuals(law: PowerLaw, lengths: Sequence[float], losses: ArrayLike) -> NDArray[np.float64]:
    """By how much each run lies above the law, in log loss: (n, seeds)."""
    x, y = logarithms(lengths, losses)
    return y - np.log(law.loss(np.exp(x)))[:, None]


def local_exponents(lengths: Sequence[float], losses: ArrayLike) -> list[LocalExponent]:
    """The exponent between each two neighbouring lengths; a power law has the same everywhere.

    lengths and losses as in `fit_power_law`, in any order. Column k of the losses must be seed k at every length.
    """
    x, y = logarithms(lengths, losses)
    order = np.argsort(x)
    x, y = x[order], y[order]
    slopes = -np.diff(y, axis=0) / np.diff(x)[:, None]  # (n - 1, seeds)
    seeds = y.shape[1]
    half = stats.sem(slopes, axis=1) * stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1) if seeds > 1 else [None] * len(slopes)
    ordered = sorted(float(length) for length in lengths)
    return [LocalExponent(a, b, float(s.mean()), *_around(float(s.mean()), h))
            for a, b, s, h in zip(ordered, ordered[1:], slopes, half, strict=False)]


def fit_saturation(steps: Sequence[float], alphas: Sequence[float]) -> Saturation:
    """Fit equation 9 to the exponents measured at three or more steps.

    Raises FitError for too few or unusable numbers, when the optimiser fails, and when tau is not determined because the curve
    is straight (tau over 10 times the last step) or already flat (under a tenth of the first) where it was measured.
    """
    s, a = np.asarray(steps, dtype=float), np.asarray(alphas, dtype=float)
    if s.ndim != 1 or s.shape != a.shape or len(np.unique(s)) < 3:
        raise FitError(f"equation 9 needs one exponent at each of three or more different steps, not {a.shape} at {s.shape}")
    if not (np.all(np.isfinite(s)) and np.all(s > 0) and np.all(np.isfinite(a))):
        raise FitError("equation 9 needs finite exponents at positive steps")
    bounds = ([-np.inf, s.min() / 100], [np.inf, s.max() * 100])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", optimize.OptimizeWarning)
            (alpha_inf, tau), _ = optimize.curve_fit(saturating, s, a, p0=(a[np.argmax(s)], np.median(s)), bounds=bounds)
    except (RuntimeError, optimize.OptimizeWarning) as error:
        raise FitError(f"equation 9 could not be fitted: {error}") from error
    if not s.min() / 10 <= tau <= 10 * s.max():
        raise FitError(f"tau is not determined by steps {s.min():g} to {s.max():g}: the exponent is straight or flat there")
    error = float(np.max(np.abs(saturating(s, alpha_inf, tau) - a)))
    return Saturation(float(alpha_inf), float(tau), error, len(s))


def logarithms(lengths: Sequence[float], losses: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the lengths, (n,), and of the losses, (n, seeds), or FitError where no law could be fitted to them."""
    x, y = np.asarray(lengths, dtype=float), np.asarray(losses, dtype=float)
    y = y[:, None] if y.ndim == 1 else y  # (n, seeds)
    if x.ndim != 1 or y.ndim != 2 or len(x) != len(y) or y.shape[1] == 0:
        raise FitError(f"losses must be (lengths,) or (lengths, seeds); got {np.shape(losses)} for lengths of {np.shape(lengths)}")
    for name, values in (("length", x), ("loss", y)):
        wrong = values[~(np.isfinite(values) & (values > 0))]
        if wrong.size:
            raise FitError(f"each {name} must be positive and finite, not {wrong[0]:g}")
    if len(x) < 3 or len(np.unique(x)) < len(x):
        raise FitError(f"a power law needs three or more different lengths, not {[f'{length:g}' for length in x]}")
    x, y = np.log(x), np.log(y)
    if np.ptp(y.mean(axis=1)) == 0:
        raise FitError("all losses are equal, or their means at every length: there is no variation to fit")
    return x, y


def _around(value: float, half: float | None) -> tuple[float | None, float | None]:
    return (None, None) if half is None else (value - float(half), value + float(half))


def _bootstrap(x: NDArray[np.float64], y: NDArray[np.float64], alpha: float, resamples: int, seed: int) -> tuple[float, float]:
    """The interval of alpha from resampled runs, x (n,) and y (n, seeds) in logarithms.

    A run's residual is its distance from the mean of its length; residuals are drawn from all lengths together, which takes the
    spread in log loss as common to them. Studentised, because plain percentiles of two or three seeds are much too narrow.
    """
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)  # (n,)
    n, seeds = y.shape

    def slope_and_error(runs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        means = runs.mean(axis=-1)  # (..., n)
        variance = np.sum((runs - means[..., None]) ** 2, axis=(-2, -1)) / (n * (seeds - 1))
        return means @ weights, np.sqrt(variance / seeds * np.sum(weights**2))

    _, error = slope_and_error(y)
    if error == 0:
        raise FitError("the seeds do not differ: pass one loss a length")
    residuals = (y - y.mean(axis=1, keepdims=True)).ravel()
    draws = np.random.default_rng(seed).choice(residuals, size=(resamples, n, seeds))
    slopes, errors = slope_and_error(draws)
    ratios = np.divide(slopes, errors, out=np.copysign(np.inf, slopes), where=errors > 0)
    below, above = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="inverted_cdf")
    if not np.isfinite(above - below):
        raise FitError("too few runs differ to bootstrap an interval: add seeds")
    return alpha + float(below * error), alpha + float(above * error)
