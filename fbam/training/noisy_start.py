r"""Noise on the state that a recurrent model starts its training sequences from (paper, section 8.1, and a control of ours).

A recurrent model visits only the states that its training sequences lead to, and may fail on longer ones because they lead elsewhere.
Training from random states explores others:

$$h_0 \sim \mathcal{N}(0, \sigma^2)$$
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fbam.models.sequence_stack import SequenceStack


class NoisyStart(nn.Module):
    """A model that reads each training sequence from a random state, so that states it would never visit are explored.

    Models whose state before the first position is empty, as a Transformer's cache is, are left as they are.
    """

    def __init__(self, model: SequenceStack, spread: float, seed: int) -> None:
        super().__init__()
        self.model, self.spread = model, spread
        self.random = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Score (B, T, F) from a random state in training, from the zero state otherwise."""
        if not self.training:
            return self.model(x)
        position, states = self.model.initial_state(x.shape[0])
        return self.model.advance(x, (position, [self._noise(state) for state in states]))[0]

    @classmethod
    def around(cls, model: nn.Module, spread: float, seed: int) -> nn.Module:
        """The model with noise of this standard deviation, or the model itself where there is none."""
        return cls(model, spread, seed) if spread else model

    def _noise(self, state: Any) -> Any:
        if isinstance(state, Tensor):
            return self.spread * torch.randn(state.shape, generator=self.random)
        return tuple(self._noise(part) for part in state)
