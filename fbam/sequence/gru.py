r"""GRU: gates r and z that read the hidden state (paper, section 2).

$$h_t = (1 - z) \odot n + z \odot h_{t-1}, \qquad n = \tanh(W_n x_t + r \odot (U_n h_{t-1} + b_n))$$

``forward`` runs the library's kernel, ``step`` is the equation for one position. As in the library, r multiplies the
product U_n h and not h itself.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn


class GRU(nn.Module):
    """One GRU layer whose hidden state has the width of its input.

    :param width: size D of an input vector and of the hidden state
    """

    REFERENCE: ClassVar[str] = "Cho et al. 2014"
    UPDATE: ClassVar[str] = (
        r"r, z = \sigma(W x_t + U h_{t-1} + b), \quad n = \tanh(W_n x_t + r \odot (U_n h_{t-1} + b_n)), \quad "
        r"h_t = (1 - z) \odot n + z \odot h_{t-1}"
    )
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "recurrent")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRU(width, width, batch_first=True)

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
        r_x, z_x, n_x = (x @ cell.weight_ih_l0.T + cell.bias_ih_l0).chunk(3, dim=-1)  # (B, D) each
        r_h, z_h, n_h = (state @ cell.weight_hh_l0.T + cell.bias_hh_l0).chunk(3, dim=-1)
        z = torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
        h = (1 - z) * n + z * state
        return h, h
