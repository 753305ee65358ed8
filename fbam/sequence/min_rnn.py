r"""minGRU and minLSTM: gates that read the input only, no squashing on the way from h to h (paper, section 2).

$$h_t = (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t, \qquad
h_t = \frac{f_t}{f_t + i_t} \odot h_{t-1} + \frac{i_t}{f_t + i_t} \odot \tilde h_t$$

with all gates and candidates functions of x_t: diagonal linear recurrences, run as a scan.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.scans import diagonal_scan


class MinGRU(nn.Module):
    """minGRU layer.

    :param width: size D of an input vector and of the hidden state
    """

    REFERENCE: ClassVar[str] = "Feng et al. 2024"
    UPDATE: ClassVar[str] = r"h_t = (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t, \quad z_t = \sigma(W x_t), \quad \tilde h_t = g(V x_t)"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")
    GATES: ClassVar[int] = 1

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.gates_candidate = nn.Linear(width, (self.GATES + 1) * width)

    def initial_state(self, batch: int) -> Tensor:
        """Return the zero state, (B, D)."""
        return self.gates_candidate.bias.new_zeros(batch, self.width)

    def write_share(self, gates: Tensor) -> Tensor:
        """Return the weight of the candidate, (..., D); that of the state is the rest."""
        return torch.sigmoid(gates)

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor and the input of the recurrence, (..., D) each."""
        gates, candidate = self.gates_candidate(x).split([self.GATES * self.width, self.width], dim=-1)
        share = self.write_share(gates)
        positive = torch.where(candidate >= 0, candidate + 0.5, torch.sigmoid(candidate))  # g of the paper's appendix
        return 1 - share, share * positive

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan; return all hidden states and the last."""
        h = diagonal_scan(*self._affine(x), self.initial_state(x.shape[0]) if state is None else state)
        return h, h[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run over one position, (B, D); return the hidden state twice, as output and as state."""
        factor, write = self._affine(x)
        h = factor * state + write
        return h, h


class MinLSTM(MinGRU):
    """minLSTM layer, with forget and input gates scaled to sum to 1.

    :param width: size D of an input vector and of the hidden state
    """

    UPDATE: ClassVar[str] = (
        r"h_t = \frac{f_t}{f_t + i_t} \odot h_{t-1} + \frac{i_t}{f_t + i_t} \odot \tilde h_t, \quad f_t, i_t = \sigma(W x_t)"
    )
    GATES: ClassVar[int] = 2

    def write_share(self, gates: Tensor) -> Tensor:
        """Return i / (f + i), from the logarithms of the gates."""
        f, i = gates.chunk(2, dim=-1)
        return torch.sigmoid(F.logsigmoid(i) - F.logsigmoid(f))
