r"""Mamba-2, state space duality: one scalar decay a head and position (paper, section 2).

Head by head, with state $S_t$ of N x P, step $\Delta_t$ and decay $a_t = \exp(-\Delta_t e^{A})$:

$$S_t = a_t S_{t-1} + \Delta_t B_t x_t^\top, \qquad y_t = S_t^\top C_t + D x_t$$

``step`` is this recurrence. ``forward`` is its dual, an attention with decay in place of the softmax:

$$y_t = \sum_{s \le t} (C_t \cdot B_s) \, a_{s+1} \cdots a_t \, \Delta_s x_s$$

over the sequence it is given plus what the state before adds; long sequences are cut into chunks by the caller.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.convolution import CausalConvolution
from fbam.sequence.heads import head_size
from fbam.sequence.scans import prefix_sums

State = tuple[Tensor, Tensor]
"""Last inputs of the convolution, (B, K - 1, E + 2 N), and S, (B, H, N, P)."""


class Mamba2(nn.Module):
    """Mamba-2 layer: projection, short convolution, selective recurrence with scalar decays, gated norm, projection.

    :param width: model width D; the inner width is E = expand D
    :param state: size N of B and C
    :param head: channels P a head, a divisor of E
    :param expand: E / D
    """

    REFERENCE: ClassVar[str] = "Dao and Gu 2024"
    UPDATE: ClassVar[str] = r"S_t = a_t S_{t-1} + \Delta_t B_t x_t^\top, \quad y_t = S_t^\top C_t, \quad a_t = \exp(-\Delta_t e^A)"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, state: int = 16, head: int = 32, expand: int = 2) -> None:
        super().__init__()
        inner = expand * width
        head_size(inner, head)
        self.state, self.heads, self.sizes = state, inner // head, [inner, inner + 2 * state, inner // head]
        self.inner_projection = nn.Linear(width, sum(self.sizes), bias=False)  # gate z, convolved (x, B, C), step size
        self.convolution = CausalConvolution(inner + 2 * state)
        step = torch.exp(torch.rand(self.heads) * math.log(100) + math.log(0.001))  # log-uniform in .001 to .1
        self.step_bias = nn.Parameter(step + torch.log(-torch.expm1(-step)))  # the inverse of softplus
        self.log_rate = nn.Parameter(torch.empty(self.heads).uniform_(1, 16).log())  # A in the equation
        self.skip = nn.Parameter(torch.ones(self.heads))
        self.norm = nn.RMSNorm(inner)
        self.outer_projection = nn.Linear(inner, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return zero inputs and a zero matrix a head."""
        head = self.sizes[0] // self.heads
        return self.convolution.initial_state(batch), self.skip.new_zeros(batch, self.heads, self.state, head)

    def _split(self, mixed: Tensor, raw_step: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return x (..., H, P), B and C (..., N), the step sizes and the logarithms of the decays (..., H)."""
        x, b, c = F.silu(mixed).split([self.sizes[0], self.state, self.state], dim=-1)
        step = F.softplus(raw_step + self.step_bias)
        return x.unflatten(-1, (self.heads, -1)), b, c, step, -step * self.log_rate.exp()

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run the dual form over (B, T, D)."""
        inputs, s = state or self.initial_state(x.shape[0])
        gate, mixed, raw_step = self.inner_projection(x).split(self.sizes, dim=-1)
        mixed, inputs = self.convolution(mixed, inputs)
        u, b, c, step, log_decay = self._split(mixed, raw_step)  # u: (B, T, H, P)
        total = prefix_sums(log_decay.transpose(1, 2))  # (B, H, T)
        log_step, heads = step.clamp_min(1e-20).log().transpose(1, 2), u.transpose(1, 2)  # (B, H, T), (B, H, T, P)
        weights = _decays(total, total - log_step) * (c @ b.transpose(1, 2)).unsqueeze(1)  # (B, H, T, T)
        y = weights @ heads + total.exp().unsqueeze(-1) * (c.unsqueeze(1) @ s)  # (B, H, T, P)
        kept = torch.exp(total[..., -1:] - total + log_step).unsqueeze(-2) * b.transpose(1, 2).unsqueeze(1)  # (B, H, N, T)
        s = total[..., -1, None, None].exp() * s + kept @ heads
        return self._close(y.transpose(1, 2), u, gate), (inputs, s)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        inputs, s = state
        gate, mixed, raw_step = self.inner_projection(x).split(self.sizes, dim=-1)
        mixed, inputs = self.convolution.step(mixed, inputs)
        u, b, c, step, log_decay = self._split(mixed, raw_step)  # u: (B, H, P)
        write = b[:, None, :, None] * (step.unsqueeze(-1) * u).unsqueeze(2)  # (B, H, N, P)
        s = log_decay.exp()[..., None, None] * s + write
        y = (c[:, None, :, None] * s).sum(dim=2)  # (B, H, P)
        return self._close(y, u, gate), (inputs, s)

    def _close(self, y: Tensor, u: Tensor, gate: Tensor) -> Tensor:
        """Add the skip, gate, normalise and project: (..., H, P) to (..., D)."""
        y = torch.addcmul(y, self.skip[:, None], u).flatten(-2)
        return self.outer_projection(self.norm(y * F.silu(gate)))


def _decays(now: Tensor, then: Tensor) -> Tensor:
    """Return exp(now_t - then_s) for s <= t and 0 above, (..., T, T), from (..., T) each."""
    length = now.shape[-1]
    future = torch.ones(length, length, dtype=torch.bool, device=now.device).triu(1)
    return torch.exp((now.unsqueeze(-1) - then.unsqueeze(-2)).masked_fill(future, -torch.inf))
