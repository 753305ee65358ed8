"""The rate of a plain matrix product on one thread: the peak that the rate of a training is held against (appendix J)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from pydantic import Field

from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic


class PeakError(ValueError):
    """The configuration is not one of a measurement; the message names the key."""


class PeakConfig(TrainingConfig):
    """Configuration of one measurement; all keys are required, as JSON values."""

    ERROR = PeakError
    TRAINING = "a measurement of the peak"

    size: int = Field(ge=1)
    repeats: int = Field(ge=1)


def product_rate(size: int, repeats: int) -> float:
    """FLOP/s of the fastest of `repeats` products of two (size, size) float32 matrices on one thread."""
    a = torch.randn(size, size)
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        a @ a
        seconds.append(time.process_time() - started)
    return 2 * size**3 / min(seconds)


def peak_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Measure the peak of this machine.

    :param config: the keys of ``PeakConfig``, JSON values
    """
    wanted = PeakConfig.parse(config)
    with deterministic():
        return {}, {"flops_per_second": product_rate(wanted.size, wanted.repeats)}
