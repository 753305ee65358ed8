"""Section 10.5: is it a power law? Other falling curves, and a stated criterion to choose between them.

Four forms of the loss against the length L: `A L^-rate` (equation 8), `A exp(-rate L)`, and each with a floor E that no length goes
below. All are fitted by least squares in log loss, the two without a floor in closed form, the others by Levenberg and Marquardt
with E and A kept positive.

The criterion: leave each length out in turn, fit the rest, predict what was left out. The form with the smallest root mean square
of these errors in log loss wins, at a tie that with fewer constants (a floor of 0 is none); it counts as chosen only if it also
wins in `DECIDED` of the resamples over seeds. A form needs one length more than it has constants, because with all of them used up
there is nothing to leave out.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from fbam.analysis.scaling import CONFIDENCE, FitError, logarithms

Array = NDArray[np.float64]
DECIDED = 0.95
START = 0.5  # floor from which the optimiser starts, as a share of the smallest loss
STEEPEST = 50.0  # a rate beyond this is a step from the first length to the others, and no curve


@dataclass(frozen=True)
class Form:
    """One falling curve: its name, its argument as a function of log L, and whether it has a floor."""

    name: str
    argument: Callable[[Array], Array]
    floor: bool

    @property
    def constants(self) -> int:
        """Number of constants that a fit determines."""
        return 3 if self.floor else 2


POWER, EXPONENTIAL = "power law", "exponential"
FLOOR = " with a floor"
FORMS = {
    form.name: form
    for form in (
        Form(POWER, lambda x: x, floor=False),
        Form(POWER + FLOOR, lambda x: x, floor=True),
        Form(EXPONENTIAL, np.exp, floor=False),
        Form(EXPONENTIAL + FLOOR, np.exp, floor=True),
    )
}


@dataclass(frozen=True)
class FormFit:
    """`E + A L^-rate` or `E + A exp(-rate L)`, E = 0 without a floor; rms is the root mean square of the residuals in log loss."""

    form: str
    E: float
    A: float
    rate: float
    rms: float

    def loss(self, lengths: ArrayLike) -> Array:
        """The fitted loss at each of `lengths`."""
        argument = FORMS[self.form].argument(np.log(np.asarray(lengths, dtype=float)))
        return self.E + self.A * np.exp(-self.rate * argument)


@dataclass(frozen=True)
class FormScore:
    """How well one form predicts lengths it has not seen: root mean square in log loss, and the share of resamples that it wins.

    With one seed there is nothing to resample, and `wins` is None.
    """

    form: str
    constants: int
    held_out: float
    wins: float | None


def fit_form(name: str, lengths: Sequence[float], losses: ArrayLike) -> FormFit:
    """Fit one form of `FORMS` to losses (n,) or (n, seeds), by their mean logarithm at each length.

    Raises FitError for fewer lengths than constants and for input that `scaling.fit_power_law` refuses, when the optimiser fails,
    and when the best rate is that of a step.
    """
    x, y = logarithms(lengths, losses)
    return _fit(FORMS[name], x, y.mean(axis=1))


def floor_interval(name: str, lengths: Sequence[float], losses: ArrayLike) -> tuple[float, float]:
    """The 95 % interval of the floor E of a form: all E at which the best other constants fit not significantly worse.

    Significance is that of an F test of the growth of the squared residuals over all runs, which takes the form as right. The upper
    end is the smallest mean loss where no floor below it is significantly worse. Raises FitError as `fit_form` does, and when there
    are no more runs than constants.
    """
    x, y = logarithms(lengths, losses)
    form, mean, seeds = FORMS[name], y.mean(axis=1), y.shape[1]
    free = y.size - form.constants
    if free < 1:
        raise FitError(f"the floor has no interval: {y.size} runs for {form.constants} constants")
    fit = _fit(form, x, mean)
    within = float(np.sum((y - mean[:, None]) ** 2))
    least = within + seeds * len(x) * fit.rms**2
    allowed = least * stats.f.ppf(CONFIDENCE, 1, free) / free

    def excess(E: float) -> float:
        return within + seeds * _squares_above(form, x, mean, E) - least - allowed

    top = float(np.exp(mean.min())) * (1 - 1e-6)
    low = optimize.brentq(excess, 0, fit.E, xtol=1e-4) if excess(0) > 0 else 0.0
    high = optimize.brentq(excess, fit.E, top, xtol=1e-4) if excess(top) > 0 else top
    return float(low), float(high)


def choose(lengths: Sequence[float], losses: ArrayLike, *, resamples: int = 200, seed: int = 0) -> list[FormScore]:
    """Score every form that has enough lengths, the best first; see the criterion at the top of this module.

    Resamples draw each run's distance from the mean of its length anew, from all lengths together. Raises FitError where
    `scaling.fit_power_law` does.
    """
    x, y = logarithms(lengths, losses)  # (n,), (n, seeds)
    n, seeds = y.shape
    forms = [form for form in FORMS.values() if n > form.constants]
    errors = {form.name: _held_out(form, x, y.mean(axis=1)) for form in forms}
    wins = dict.fromkeys(errors, 0)
    if seeds > 1:
        residuals = (y - y.mean(axis=1, keepdims=True)).ravel() * np.sqrt(seeds / (seeds - 1))
        for draw in np.random.default_rng(seed).choice(residuals, size=(resamples, n, seeds)):
            drawn = y.mean(axis=1) + draw.mean(axis=1)
            wins[min(forms, key=lambda form: (_held_out(form, x, drawn), form.constants)).name] += 1
    scores = [FormScore(form.name, form.constants, errors[form.name], wins[form.name] / resamples if seeds > 1 else None)
              for form in forms]
    return sorted(scores, key=lambda score: (score.held_out, score.constants))


def chosen(scores: Sequence[FormScore]) -> str | None:
    """The form that the runs decide for, or None when they do not decide."""
    best = scores[0]
    return best.form if best.wins is not None and best.wins >= DECIDED else None


def _held_out(form: Form, x: Array, y: Array) -> float:
    """Root mean square error in log loss of each length predicted from the others; infinite where no curve could be fitted."""
    errors = []
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        try:
            errors.append(float(np.log(_fit(form, x[rest], y[rest]).loss(np.exp(x[i]))) - y[i]))
        except FitError:
            return np.inf
    return float(np.sqrt(np.mean(np.square(errors))))


def _fit(form: Form, x: Array, y: Array) -> FormFit:
    """Fit one form to mean log losses y at log lengths x, both (n,)."""
    if len(x) < form.constants:
        raise FitError(f"a {form.name} has {form.constants} constants and needs as many lengths, not {len(x)}")
    argument = form.argument(x)
    slope, start = np.polyfit(argument, y, 1)
    residuals = np.polyval((slope, start), argument) - y
    raising_helps = residuals @ np.exp(-y - residuals) < 0  # the derivative of the squares by E at E = 0
    if not (form.floor and raising_helps):
        return FormFit(form.name, 0.0, float(np.exp(start)), -float(slope), float(np.sqrt(np.mean(residuals**2))))
    best = _floor_fit(argument, y)
    E, A, rate = np.exp(best.x[0]), np.exp(best.x[1]), best.x[2]
    if not best.success or not np.all(np.isfinite(best.x[1:])):
        raise FitError(f"a {form.name} could not be fitted: {best.message}")
    if abs(rate) > STEEPEST:
        raise FitError(f"a {form.name} is not determined: only one end differs from the rest")
    return FormFit(form.name, float(E), float(A), float(rate), float(np.sqrt(2 * best.cost / len(x))))


def _floor_fit(argument: Array, y: Array) -> optimize.OptimizeResult:
    """Levenberg and Marquardt over log E, log A and the rate."""
    floor = START * np.exp(y.min())
    slope, start = np.polyfit(argument, np.log(np.exp(y) - floor), 1)

    def residuals(p: Array) -> Array:
        return np.logaddexp(p[0], p[1] - p[2] * argument) - y

    def jacobian(p: Array) -> Array:
        part = np.exp(p[1] - p[2] * argument - np.logaddexp(p[0], p[1] - p[2] * argument))  # share of the falling part, (n,)
        return np.stack([1 - part, part, -part * argument], axis=1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a trial step may overflow; the optimiser then shortens it
        return optimize.least_squares(residuals, (np.log(floor), start, -slope), jac=jacobian, method="lm", max_nfev=100)


def _squares_above(form: Form, x: Array, y: Array, floor: float) -> float:
    """Sum of the squared residuals in log loss of the best curve with this floor."""
    argument = form.argument(x)
    slope, start = np.polyfit(argument, np.log(np.exp(y) - floor), 1)
    offset = np.log(floor) if floor > 0 else -np.inf

    def residuals(p: Array) -> Array:
        return np.logaddexp(offset, p[0] - p[1] * argument) - y

    return 2 * float(optimize.least_squares(residuals, (start, -slope), method="lm").cost)
