r"""Mamba: a linear recurrence whose step, input and output matrices are functions of the input (paper, section 2).

For each of E channels and N states, with step $\Delta_t$ (E values), $B_t$ and $C_t$ (N values each) linear in $x_t$:

$$h_t = e^{\Delta_t A} \odot h_{t-1} + \Delta_t x_t B_t^\top, \qquad y_t = h_t C_t + D \odot x_t$$

The factors do not read h, so the composition of two positions is again a factor and an input: ``parallel`` evaluates the
recurrence by an associative scan. ``forward`` gives the same values position by position; on a processor, at the widths
of this project, it is about four times as fast as the scan, which must hold E N numbers a position at each of its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.convolution import CausalConvolution
from fbam.sequence.scans import diagonal_scan

State = tuple[Tensor, Tensor]
"""Last inputs of the convolution, (B, K - 1, E), and h, (B, N, E)."""
Recurrence = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Maps step (B, T, E), A (N, E), step times input (B, T, E), B and C (B, T, N), h (B, N, E) to y (B, T, E) and the last h."""


class Mamba(nn.Module):
    """Mamba layer: projection, short convolution, selective scan (S6), gate, projection.

    :param width: model width D; the inner width is E = expand D
    :param state: states N a channel
    :param expand: E / D
    """

    REFERENCE: ClassVar[str] = "Gu and Dao 2024"
    UPDATE: ClassVar[str] = r"h_t = e^{\Delta_t A} \odot h_{t-1} + \Delta_t x_t B_t^\top, \quad y_t = h_t C_t + D \odot x_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "serial", "recurrent")

    def __init__(self, width: int, state: int = 16, expand: int = 2) -> None:
        super().__init__()
        inner, rank = expand * width, math.ceil(width / 16)
        self.sizes = [rank, state, state]
        self.inner_projection = nn.Linear(width, 2 * inner, bias=False)  # x and the gate z
        self.convolution = CausalConvolution(inner)
        self.selection = nn.Linear(inner, sum(self.sizes), bias=False)  # low-rank step, B, C
        self.step_projection = nn.Linear(rank, inner)
        step = torch.exp(torch.rand(inner) * math.log(100) + math.log(0.001))  # log-uniform in .001 to .1
        nn.init.uniform_(self.step_projection.weight, -(rank**-0.5), rank**-0.5)
        with torch.no_grad():
            self.step_projection.bias.copy_(step + torch.log(-torch.expm1(-step)))  # the inverse of softplus
        rate = torch.arange(1.0, state + 1).log()
        self.log_rate = nn.Parameter(rate[:, None].repeat(1, inner))  # log(-A), (N, E)
        self.skip = nn.Parameter(torch.ones(inner))
        self.outer_projection = nn.Linear(inner, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return zero inputs and a zero h."""
        return self.convolution.initial_state(batch), self.log_rate.new_zeros(batch, *self.log_rate.shape)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), position by position inside the recurrence."""
        return self._run(x, state, _serial)

    def parallel(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D) with the recurrence as an associative scan."""
        return self._run(x, state, _scan)

    def _run(self, x: Tensor, state: State | None, recurrence: Recurrence) -> tuple[Tensor, State]:
        inputs, h = state or self.initial_state(x.shape[0])
        u, gate = self.inner_projection(x).chunk(2, dim=-1)  # (B, T, E) each
        u, inputs = self.convolution(u, inputs)
        u = F.silu(u)
        step, b, c = self._select(u)
        y, h = recurrence(step, -self.log_rate.exp(), step * u, b, c, h)
        return self.outer_projection((y + self.skip * u) * F.silu(gate)), (inputs, h)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run over one position, (B, D), by the equation."""
        inputs, h = state
        u, gate = self.inner_projection(x).chunk(2, dim=-1)  # (B, E) each
        u, inputs = self.convolution.step(u, inputs)
        u = F.silu(u)
        step, b, c = self._select(u)
        h = torch.exp(step.unsqueeze(1) * -self.log_rate.exp()) * h + b.unsqueeze(2) * (step * u).unsqueeze(1)  # (B, N, E)
        y = (c.unsqueeze(2) * h).sum(dim=1) + self.skip * u
        return self.outer_projection(y * F.silu(gate)), (inputs, h)

    def _select(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the step sizes, (..., E), B and C, (..., N), from the convolved input."""
        low, b, c = self.selection(u).split(self.sizes, dim=-1)
        return F.softplus(self.step_projection(low)), b, c


def _serial(step: Tensor, rate: Tensor, stepped: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """The recurrence as a loop; the outer product B x joins the decayed state within one batched product."""
    outputs = []
    for step_t, input_t, b_t, c_t in zip(step.unbind(1), stepped.unbind(1), b.unbind(1), c.unbind(1), strict=True):
        decayed = torch.exp(step_t.unsqueeze(1) * rate) * h  # (B, N, E)
        h = torch.baddbmm(decayed, b_t.unsqueeze(2), input_t.unsqueeze(1))
        outputs.append(torch.bmm(c_t.unsqueeze(1), h))  # (B, 1, E)
    return torch.cat(outputs, dim=1), h


def _scan(step: Tensor, rate: Tensor, stepped: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """The recurrence as an associative scan over (B, T, N, E) factors and inputs."""
    factors = torch.exp(step.unsqueeze(2) * rate)
    states = diagonal_scan(factors, b.unsqueeze(3) * stepped.unsqueeze(2), h)
    return (c.unsqueeze(2) @ states).squeeze(2), states[:, -1]
