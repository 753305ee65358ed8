r"""sLSTM: scalar memory with exponential gates that read the hidden state (paper, section 2).

$$c_t = f' c_{t-1} + i' z, \quad n_t = f' n_{t-1} + i', \quad h_t = o \odot c_t / n_t, \quad
m_t = \max(\log f + m_{t-1}, \log i), \quad i' = e^{\log i - m_t}, \quad f' = e^{\log f + m_{t-1} - m_t}$$

All of z, i, f, o are functions of x_t and of h_{t-1}, head by head, so the layer is serial. It is the recurrent half of a
matched pair with the mLSTM, whose gates read x_t only. The stabiliser m keeps the exponentials within range and cancels
in c / n. As in the LSTM of the main model, the bias of the forget gate starts at 1.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size

State = tuple[Tensor, Tensor, Tensor, Tensor]
"""h, c, n and m, (B, H, P) each."""
EMPTY = -1e30
"""Stabiliser of an empty memory: the logarithm of a weight that is zero."""


class SLSTM(nn.Module):
    """sLSTM layer with H heads, a norm a head and an output map.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Beck et al. 2024"
    UPDATE: ClassVar[str] = (
        r"z, i, f, o \leftarrow (x_t, h_{t-1}), \quad c_t = f c_{t-1} + i z, \quad n_t = f n_{t-1} + i, \quad h_t = o \odot c_t / n_t"
    )
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "recurrent")

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.gates = nn.Linear(width, 4 * width)  # a head: z, i, f, o
        bound = self.head_size**-0.5
        self.recurrent = nn.Parameter(torch.empty(heads, self.head_size, 4 * self.head_size).uniform_(-bound, bound))
        with torch.no_grad():
            self.gates.bias.view(heads, 4, self.head_size)[:, 2] = 1.0
        self.norm = nn.RMSNorm(self.head_size)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return zero h, c and n, and the stabiliser of an empty memory."""
        zero = self.recurrent.new_zeros(batch, self.heads, self.head_size)
        return zero, zero, zero, torch.full_like(zero, EMPTY)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), one position after the other."""
        state = state or self.initial_state(x.shape[0])
        hidden = []
        for gates in self.gates(x).unflatten(-1, (self.heads, -1)).unbind(1):  # (B, H, 4 P) each
            state = self._advance(gates, state)
            hidden.append(state[0])
        return self._close(torch.stack(hidden, dim=1)), state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run over one position, (B, D)."""
        state = self._advance(self.gates(x).unflatten(-1, (self.heads, -1)), state)
        return self._close(state[0]), state

    def _advance(self, gates: Tensor, state: State) -> State:
        """One update from what x adds to the gates, (B, H, 4 P)."""
        h, c, n, m = state
        gates = gates + (h.transpose(0, 1) @ self.recurrent).transpose(0, 1)
        z, log_i, raw_f, raw_o = gates.chunk(4, dim=-1)  # (B, H, P) each
        kept = F.logsigmoid(raw_f) + m
        m = torch.maximum(kept, log_i)
        f, i = torch.exp(kept - m), torch.exp(log_i - m)
        c, n = f * c + i * torch.tanh(z), f * n + i
        return torch.sigmoid(raw_o) * c / n, c, n, m

    def _close(self, h: Tensor) -> Tensor:
        """Normalise each head and project: (..., H, P) to (..., D)."""
        return self.outer(self.norm(h).flatten(-2))
