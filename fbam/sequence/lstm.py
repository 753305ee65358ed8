r"""LSTM, the recurrent layer of the frame head and of the main model (paper, sections 2 and 9).

The gates at position t read the hidden state of position t - 1, so the layer is evaluated one position after the other
and its true depth grows with the sequence:

$$c_t = f_t \odot c_{t-1} + i_t \odot g_t, \qquad h_t = o_t \odot \tanh(c_t)$$

``forward`` runs the library's kernel over a whole sequence; ``step`` is the equation written out for one position.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

State = tuple[Tensor, Tensor]
"""Hidden state h and cell state c, each (B, H)."""


class LSTM(nn.Module):
    """One LSTM layer with hidden size H and the gates stacked in the order i, f, g, o.

    :param width: size of an input vector D
    :param hidden: size of the hidden state H
    """

    REFERENCE: ClassVar[str] = "Hochreiter and Schmidhuber 1997, with the forget gate of Gers, Schmidhuber and Cummins 2000"
    UPDATE: ClassVar[str] = (
        r"i, f, o = \sigma(W x_t + U h_{t-1} + b), \quad g = \tanh(W_g x_t + U_g h_{t-1} + b_g), \quad "
        r"c_t = f \odot c_{t-1} + i \odot g, \quad h_t = o \odot \tanh(c_t)"
    )
    ASSOCIATIVE: ClassVar[bool] = False

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(width, hidden, batch_first=True)

    def initial_state(self, batch: int) -> State:
        """Return the zero state, h and c of (B, H) each."""
        zero = self.cell.weight_hh_l0.new_zeros(batch, self.cell.hidden_size)
        return zero, zero

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over a sequence.

        :param x: (B, T, D)
        :param state: h and c before the first position, (B, H) each; zero when absent
        :returns: the hidden state at each position, (B, T, H), and the state after the last one
        """
        h, c = state or self.initial_state(x.shape[0])
        y, (h, c) = self.cell(x, (h.unsqueeze(0), c.unsqueeze(0)))  # y: (B, T, H), h and c: (1, B, H)
        return y, (h.squeeze(0), c.squeeze(0))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run over one position, by the equation.

        :param x: (B, D)
        :param state: h and c of the position before, (B, H) each
        :returns: the hidden state, (B, H), and the new state
        """
        h, c = state
        cell = self.cell
        gates = x @ cell.weight_ih_l0.T + cell.bias_ih_l0 + h @ cell.weight_hh_l0.T + cell.bias_hh_l0  # (B, 4 H)
        i, f, g, o = gates.chunk(4, dim=-1)  # (B, H) each
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)
