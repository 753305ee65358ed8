"""Which depths a step trains on: the same rule for every model, with the paper's plain mix among them (section 8.1.1).

* mix: depths 1 to d, all equally often, from the first step on; the paper's.
* time: the deepest program grows from 1 to d in equal steps over the first half of the training.
* adaptive: the deepest program grows when the model masters it, that is when its accuracy on fresh training programs of that
  depth is at least `advance_at`.

In the last two, half of the programs have the deepest depth allowed and the others are mixed. A batch holds about as many tokens
whatever its depth, so shallow batches have more programs.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["mix", "time", "adaptive"]
KINDS = ("mix", "time", "adaptive")
START = 2


class CurriculumError(ValueError):
    """An unknown curriculum."""


class Curriculum:
    """The deepest program allowed, and the depths of a batch.

    :param kind: mix, time or adaptive
    :param max_depth: d
    :param steps: length of the training
    :param advance_at: accuracy at the deepest programs from which an adaptive curriculum goes deeper
    """

    def __init__(self, kind: Kind, max_depth: int, steps: int, advance_at: float) -> None:
        if kind not in KINDS:
            raise CurriculumError(f"curriculum {kind!r} is unknown; use {', '.join(KINDS)}")
        self.kind, self.max_depth, self.steps, self.advance_at = kind, max_depth, steps, advance_at
        self.deepest = max_depth if kind == "mix" else min(START, max_depth)

    def depths(self, rng: np.random.Generator, step: int, tokens: int, tokens_a_block: int = 1) -> NDArray[np.int64]:
        """Depths of the programs of a step, (B,), where B programs of the deepest depth fill `tokens`."""
        if self.kind == "time":
            share = min(1.0, 2 * step / self.steps)
            self.deepest = max(min(START, self.max_depth), round(share * self.max_depth))
        batch = max(1, tokens // (self.deepest * tokens_a_block + 1))
        depths = rng.integers(1, self.deepest + 1, batch)
        if self.kind != "mix":
            depths[: batch // 2] = self.deepest
        return depths

    def observe(self, accuracy: float) -> None:
        """Go deeper by one block, or by an eighth where that is more, if programs of the deepest depth are mastered."""
        if self.kind == "adaptive" and accuracy >= self.advance_at:
            self.deepest = min(self.max_depth, self.deepest + max(1, self.deepest // 8))
