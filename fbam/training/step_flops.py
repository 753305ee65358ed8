"""FLOPs of one training step, counted by torch on the real modules (appendix J)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fbam.models.flop_count import counted
from fbam.training.determinism import deterministic
from fbam.training.loop import backward
from fbam.training.sweep import SweepConfig


def step_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Count the first step, forward and backward, of one run.

    :param config: the keys of ``SweepConfig``, JSON values
    """
    cell = SweepConfig.parse(config)
    with deterministic():
        windows, _ = cell.windows()
        model, _ = cell.build(windows)
        batch = windows.draw(np.random.default_rng([cell.seed, 0]), cell.batch, cell.length)
        flops = counted(lambda: backward(model, batch, cell))
    return {"flops": flops}, {}
