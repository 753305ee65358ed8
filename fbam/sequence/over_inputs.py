"""Layers without a recurrence: their state is the list of inputs so far, and a step evaluates the whole again.

Sparse attention, long convolutions and their kind read the past itself and keep no summary of fixed size. Such a layer is
one function ``mix`` of a sequence; this class gives it the interface of the other families.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn


class OverInputs(nn.Module):
    """A causal map of sequences, ``mix``, with its past inputs, (B, t, D), as state.

    :param width: model width D
    """

    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("parallel",)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.outer = nn.Linear(width, width, bias=False)

    def mix(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D); position t reads positions up to t."""
        raise NotImplementedError

    def initial_state(self, batch: int) -> Tensor:
        """Return no inputs, (B, 0, D)."""
        return self.outer.weight.new_zeros(batch, 0, self.outer.in_features)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) behind the inputs of the state; return (B, T, D) and all inputs."""
        seen = x if state is None else torch.cat([state, x], dim=1)
        return self.mix(seen)[:, seen.shape[1] - x.shape[1] :], seen

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run over one position, (B, D), by evaluating everything before it again."""
        y, state = self(x.unsqueeze(1), state)
        return y.squeeze(1), state
