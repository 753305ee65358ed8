"""Intervals: how sure a number is, said next to the number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """An estimate with the bounds of its confidence interval (95 % unless asked otherwise)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def proportion(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Share of successes with Wilson's score interval; right at 0 and at n, where the normal interval is not."""
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes of {n} trials: need 0 <= successes <= n and n > 0")
    bounds = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Interval(successes / n, float(bounds.low), float(bounds.high))


def mean(values, confidence: float = 0.95) -> Interval:
    """Mean with Student's t interval. Raises ValueError with fewer than two values: one value has no interval."""
    values = np.asarray(values, dtype=float)
    if values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"a mean's interval needs at least two finite values, got {values.tolist()}")
    half = stats.sem(values) * stats.t.ppf((1 + confidence) / 2, values.size - 1)
    return Interval(float(values.mean()), float(values.mean() - half), float(values.mean() + half))
