r"""RG-LRU, the recurrence of Griffin and Hawk: a diagonal decay whose exponent is a gate on the input (section 12).

$$h_t = a_t \odot h_{t-1} + \sqrt{1 - a_t^2} \odot (i_t \odot u_t), \qquad a_t = e^{-8 \, \mathrm{softplus}(\Lambda) \, r_t}$$

with $r_t, i_t = \sigma(W u_t)$ and u the convolved input. Nothing reads h, so the recurrence is a scan.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.convolution import CausalConvolution
from fbam.sequence.scans import diagonal_scan

State = tuple[Tensor, Tensor]
"""Last inputs of the convolution, (B, K - 1, D), and h, (B, D)."""


class RGLRU(nn.Module):
    """Griffin's recurrent block: convolution and RG-LRU beside a GELU gate.

    :param width: model width D, also that of the recurrence
    """

    REFERENCE: ClassVar[str] = "De et al. 2024"
    UPDATE: ClassVar[str] = (
        r"h_t = a_t \odot h_{t-1} + \sqrt{1 - a_t^2} \odot (i_t \odot u_t), \quad a_t = e^{-8 \, \mathrm{softplus}(\Lambda) \, r_t}"
    )
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")
    NOTE: ClassVar[str] = "Griffin mixes this layer with local attention, Hawk uses it alone"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        self.convolution = CausalConvolution(width)
        self.gates = nn.Linear(width, 2 * width)
        decay = torch.empty(width).uniform_(0.9, 0.999)  # a_t at r_t = 1
        self.rate = nn.Parameter(torch.log(torch.expm1(-torch.log(decay) / 8)))  # Lambda
        self.outer = nn.Linear(width, width)

    def initial_state(self, batch: int) -> State:
        """Return zero inputs and a zero h."""
        return self.convolution.initial_state(batch), self.rate.new_zeros(batch, len(self.rate))

    def _affine(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return a_t and what is written, (..., D) each."""
        r, i = torch.sigmoid(self.gates(u)).chunk(2, dim=-1)
        log_a = -8 * F.softplus(self.rate) * r
        return torch.exp(log_a), torch.sqrt(-torch.expm1(2 * log_a) + 1e-12) * i * u

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D) as a scan."""
        inputs, h = state or self.initial_state(x.shape[0])
        gate, u = self.inner(x).chunk(2, dim=-1)
        u, inputs = self.convolution(u, inputs)
        h = diagonal_scan(*self._affine(u), h)  # (B, T, D)
        return self.outer(F.gelu(gate) * h), (inputs, h[:, -1])

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        inputs, h = state
        gate, u = self.inner(x).chunk(2, dim=-1)
        u, inputs = self.convolution.step(u, inputs)
        factor, write = self._affine(u)
        h = factor * h + write
        return self.outer(F.gelu(gate) * h), (inputs, h)
