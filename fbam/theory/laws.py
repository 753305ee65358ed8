r"""How depth grows with the sequence length n: a law fitted to measurements (paper, section 2, "depth as a function of sequence length").

Four forms are tried by least squares, and the one that leaves the smallest error is named, if that error is small:

$$d(n) = a, \qquad d(n) = a + b \log_2 n, \qquad d(n) = a + b \, n / \mathrm{chunk}, \qquad d(n) = a + b \, n$$

A law read off a few lengths says nothing beyond them; depths that fit none of the four, or a logarithm and a line about
equally well, are called unclear and not forced into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_POINTS = 4
LEAST_SPAN = 8
LARGEST_ERROR = 0.05
"""Root mean square error, as a share of the range of depths, up to which a growing law counts as fitted."""
ROUNDING = 0.5
"""The same in levels, since depths are whole numbers; depths that differ by one level at most count as constant."""

CLEARLY = 4
"""How many times smaller the better law's error must be where both fit within the rounding."""


class LawError(ValueError):
    """Too few lengths to tell one law from another; the message says what is needed."""


@dataclass(frozen=True)
class Law:
    """A fitted law.

    :param name: constant, logarithmic, n/chunk, linear or unclear
    :param offset: a
    :param slope: b; 0 for a constant
    :param error: root mean square error as a share of the mean depth
    :param chunk: positions a chunk where the name is n/chunk, else 1
    """

    name: str
    offset: float
    slope: float
    error: float
    chunk: int = 1

    def __call__(self, n: float) -> float:
        """Depth at length n by the law."""
        return self.offset + self.slope * _feature(self.name, n, self.chunk)

    def __str__(self) -> str:
        feature = {"logarithmic": "log2 n", "linear": "n", "n/chunk": f"n/{self.chunk}"}.get(self.name)
        if feature is None:
            return f"{self.offset:.4g}" if self.name == "constant" else "unclear"
        offset = f"{self.offset:+.4g}".replace("+", "+ ").replace("-", "- ")
        return f"{self.slope:.4g} {feature}" + (f" {offset}" if self.offset else "")


def _feature(name: str, n: float, chunk: int) -> float:
    return {"logarithmic": float(np.log2(n)), "linear": float(n), "n/chunk": n / chunk}.get(name, 0.0)


def fit_law(lengths: Sequence[int], depths: Sequence[float], chunk: int | None = None) -> Law:
    """Name and fit the growth of depth with length.

    :param lengths: distinct lengths n, at least 4, the largest at least 8 times the smallest
    :param depths: one depth a length
    :param chunk: positions a chunk, where the program is known to work chunk by chunk; a linear law is then written in n / chunk
    :raises LawError: too few lengths, or lengths too close together
    """
    if len(lengths) != len(depths):
        raise LawError(f"{len(lengths)} lengths but {len(depths)} depths; give one depth for each length")
    if len(set(lengths)) < LEAST_POINTS or max(lengths) < LEAST_SPAN * min(lengths):
        raise LawError(
            f"lengths {list(lengths)} cannot tell a logarithm from a line; measure at least {LEAST_POINTS} distinct lengths, "
            f"the largest at least {LEAST_SPAN} times the smallest"
        )
    depths = np.asarray(depths, float)
    if np.ptp(depths) <= 1:
        return Law("constant", float(depths.mean()), 0.0, float(depths.std() / depths.mean()) if depths.any() else 0.0)
    laws = [_least_squares(name, lengths, depths, chunk or 1) for name in ("logarithmic", "n/chunk" if chunk else "linear")]
    best = min(laws, key=lambda law: law.error)
    other = max(laws, key=lambda law: law.error)
    alike = other.error * depths.mean() <= ROUNDING and best.error * CLEARLY > other.error  # these lengths do not tell them apart
    if alike or best.error * depths.mean() > max(ROUNDING, LARGEST_ERROR * np.ptp(depths)):
        return Law("unclear", best.offset, best.slope, best.error)
    return best


def _least_squares(name: str, lengths: Sequence[int], depths: np.ndarray, chunk: int) -> Law:
    design = np.array([[1.0, _feature(name, n, chunk)] for n in lengths])
    (offset, slope), *_ = np.linalg.lstsq(design, depths, rcond=None)
    error = float(np.sqrt(np.mean((design @ (offset, slope) - depths) ** 2)) / depths.mean())
    return Law(name, float(round(offset, 9)), float(round(slope, 9)), round(error, 9), chunk if name == "n/chunk" else 1)
