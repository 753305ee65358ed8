r"""Elman network, the plainest recurrence through the hidden state (paper, section 2).

$$h_t = \tanh(W x_t + U h_{t-1} + b)$$

The map from h_{t-1} to h_t is not affine, and compositions of such maps have no form of fixed size, so the positions
are evaluated one after the other. ``forward`` runs the library's kernel, ``step`` is the equation for one position.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn


class Elman(nn.Module):
    """One Elman layer whose hidden state has the width of its input.

    :param width: size D of an input vector and of the hidden state
    """

    REFERENCE: ClassVar[str] = "Elman 1990"
    UPDATE: ClassVar[str] = r"h_t = \tanh(W x_t + U h_{t-1} + b)"
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "recurrent")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.RNN(width, width, batch_first=True)

    def initial_state(self, batch: int) -> Tensor:
        """Return the zero state, (B, D)."""
        return self.cell.weight_hh_l0.new_zeros(batch, self.cell.hidden_size)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over a sequence, (B, T, D), from a hidden state of (B, D); return all hidden states and the last."""
        h = self.initial_state(x.shape[0]) if state is None else state
        y, h = self.cell(x, h.unsqueeze(0))  # y: (B, T, D), h: (1, B, D)
        return y, h.squeeze(0)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run over one position, (B, D), by the equation; return the hidden state twice, as output and as state."""
        cell = self.cell
        h = torch.tanh(x @ cell.weight_ih_l0.T + cell.bias_ih_l0 + state @ cell.weight_hh_l0.T + cell.bias_hh_l0)
        return h, h
