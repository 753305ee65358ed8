"""The paper's own numbers on scaling (sections 10.4 and 10.5), read from data/paper_scaling.yaml, and what follows from them.

Each exponent implies what a doubling of L saves, `1 - 2^-alpha`, and equation 9 can be held against the exponents that the paper
itself reports. Nothing here is trained: it is arithmetic on printed numbers.
"""

from dataclasses import dataclass
from pathlib import Path

from fbam.analysis.scaling import doubling_gain, saturating
from fbam.experiments.files import read_yaml

PLATEAU = "plateau"


@dataclass(frozen=True)
class PaperFit:
    """`A L^-alpha` with its R2 as the paper reports it at one step."""

    step: int
    alpha: float
    A: float
    r2: float


@dataclass(frozen=True)
class Paper:
    """The fits in the order of their steps, equation 9's constants, and what a doubling is said to save (step -> share)."""

    fits: tuple[PaperFit, ...]
    alpha_inf: float
    tau: float
    doubling: dict[int | str, float]

    def alpha(self, step: int | str) -> float:
        """The exponent reported at a step, or the plateau of equation 9."""
        return self.alpha_inf if step == PLATEAU else next(fit.alpha for fit in self.fits if fit.step == step)

    def savings(self) -> dict[int | str, float]:
        """What a doubling of L saves by the exponent, for each step of `doubling`."""
        return {step: doubling_gain(self.alpha(step)) for step in self.doubling}

    def equation9_errors(self) -> dict[int, float]:
        """By how much equation 9 misses each exponent that the paper reports: step -> |difference|."""
        return {fit.step: abs(float(saturating(fit.step, self.alpha_inf, self.tau)) - fit.alpha) for fit in self.fits}


def read_paper(path: Path) -> Paper:
    """Read data/paper_scaling.yaml."""
    stored = read_yaml(path)
    fits = tuple(PaperFit(**fit) for fit in sorted(stored["fits"], key=lambda fit: fit["step"]))
    return Paper(fits, **stored["saturation"], doubling={entry["step"]: entry["saves"] for entry in stored["doubling"]})
