r"""S5 and LRU: one time-invariant, complex diagonal recurrence for all channels, run as a scan (paper, section 2).

$$h_t = \bar A \odot h_{t-1} + \bar B x_t, \qquad y_t = \mathrm{Re}(C h_t) + D \odot x_t$$

B and C are dense, so the channels share N states. S5 discretises a continuous system, $\bar A = e^{\Delta A}$ with
$\bar B = A^{-1} (e^{\Delta A} - 1) B$; the LRU learns modulus and angle of $\bar A$ themselves and scales the input of
each state by $\sqrt{1 - |\bar A|^2}$.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.scans import diagonal_scan


class S5(nn.Module):
    """S5 layer: diagonal system of N complex states, GELU, gate.

    :param width: model width D
    :param state: complex states N
    """

    REFERENCE: ClassVar[str] = "Smith, Warrington and Linderman 2023"
    UPDATE: ClassVar[str] = r"h_t = e^{\Delta A} \odot h_{t-1} + \bar B x_t, \quad y_t = \mathrm{Re}(C h_t) + D \odot x_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")

    def __init__(self, width: int, state: int = 32) -> None:
        super().__init__()
        self.write = nn.Parameter(torch.randn(2, state, width) * (2 * width) ** -0.5)  # B, real and imaginary part
        self.read = nn.Parameter(torch.randn(2, width, state) * state**-0.5)  # C
        self.skip = nn.Parameter(torch.randn(width))
        self.outer = nn.Linear(width, width)
        self._create_rates(state)

    def _create_rates(self, state: int) -> None:
        self.log_step = nn.Parameter(torch.empty(state).uniform_(math.log(0.001), math.log(0.1)))
        self.log_rate = nn.Parameter(torch.full((state,), 0.5).log())  # A = -exp(log_rate) + i angle
        self.angle = nn.Parameter(math.pi * torch.arange(state))

    def discrete(self) -> tuple[Tensor, Tensor]:
        """Return A bar and the factor of B, complex, (N,) each."""
        rate = torch.complex(-self.log_rate.exp(), self.angle)
        factor = torch.exp(self.log_step.exp() * rate)
        return factor, (factor - 1) / rate

    def initial_state(self, batch: int) -> Tensor:
        """Return h_0 = 0, complex, (B, N)."""
        zero = self.write.new_zeros(batch, self.write.shape[1])
        return torch.complex(zero, zero)

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return A bar, (N,), and B bar x, (..., N)."""
        factor, scale = self.discrete()
        return factor, scale * torch.complex(x @ self.write[0].T, x @ self.write[1].T)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan."""
        factor, writes = self._affine(x)
        start = self.initial_state(x.shape[0]) if state is None else state
        h = diagonal_scan(factor.expand_as(writes), writes, start)  # (B, T, N)
        return self._close(h, x), h[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D)."""
        factor, write = self._affine(x)
        h = factor * state + write
        return self._close(h, x), h

    def _close(self, h: Tensor, x: Tensor) -> Tensor:
        """Read the states, (..., N), and gate: (..., D)."""
        y = h.real @ self.read[0].T - h.imag @ self.read[1].T + self.skip * x
        y = F.gelu(y)
        return y * torch.sigmoid(self.outer(y))


class LRU(S5):
    """Linear recurrent unit.

    :param width: model width D
    :param state: complex states N
    """

    REFERENCE: ClassVar[str] = "Orvieto et al. 2023"
    UPDATE: ClassVar[str] = r"h_t = e^{-e^\nu + i \theta} \odot h_{t-1} + \gamma \odot (B x_t), \quad y_t = \mathrm{Re}(C h_t) + D \odot x_t"

    def _create_rates(self, state: int) -> None:
        modulus = torch.empty(state).uniform_(0.9**2, 0.999**2).sqrt()
        self.log_rate = nn.Parameter(torch.log(-torch.log(modulus)))  # nu
        self.angle = nn.Parameter(torch.empty(state).uniform_(0, 2 * math.pi))  # theta

    def discrete(self) -> tuple[Tensor, Tensor]:
        """Return A bar, complex, and gamma, (N,) each."""
        rate = self.log_rate.exp()
        return torch.exp(torch.complex(-rate, self.angle)), torch.sqrt(-torch.expm1(-2 * rate))
