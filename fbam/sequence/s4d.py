r"""S4D: a diagonal, time-invariant state space a channel, trained as one long convolution (paper, section 2).

$$h_t = \bar A \odot h_{t-1} + \bar B u_t, \qquad y_t = 2 \, \mathrm{Re}(C \cdot h_t) + D u_t, \qquad
\bar A = e^{\Delta A}, \quad \bar B = (e^{\Delta A} - 1) / A$$

with N complex states a channel. Since nothing depends on the input, y is u convolved with $K_t = 2 \, \mathrm{Re}(C \cdot
\bar A^t \bar B)$. ``forward`` is that convolution, ``step`` the recurrence.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.convolution import long_convolution


class DiagonalSystem(nn.Module):
    """The state spaces alone: D channels of N complex states (S4D-Lin).

    :param width: number of channels D
    :param state: complex states N a channel
    """

    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        self.log_step = nn.Parameter(torch.empty(width).uniform_(math.log(0.001), math.log(0.1)))
        self.log_rate = nn.Parameter(torch.full((width, state), 0.5).log())  # A = -exp(log_rate) + i angle
        self.angle = nn.Parameter((math.pi * torch.arange(state)).repeat(width, 1))
        self.read = nn.Parameter(torch.randn(2, width, state) * 0.5**0.5)  # C, real and imaginary part
        self.skip = nn.Parameter(torch.ones(width))

    def initial_state(self, batch: int) -> Tensor:
        """Return h_0 = 0, complex, (B, D, N)."""
        zero = self.angle.new_zeros(batch, *self.angle.shape)
        return torch.complex(zero, zero)

    def _discrete(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Delta A, B bar and C, complex, (D, N) each."""
        rate = torch.complex(-self.log_rate.exp(), self.angle)
        scaled = self.log_step.exp().unsqueeze(-1) * rate
        return scaled, (torch.exp(scaled) - 1) / rate, torch.complex(*self.read)

    def forward(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Convolve (B, T, D) and add what the state leaves; return y, (B, T, D), and the last state."""
        scaled, write, read = self._discrete()
        t = torch.arange(u.shape[1], device=u.device, dtype=u.dtype)
        powers = torch.exp(scaled.unsqueeze(-1) * t)  # A bar^t, (D, N, T)
        kernel = 2 * ((read * write).unsqueeze(-1) * powers).sum(dim=1).real  # (D, T)
        later = torch.exp(scaled).unsqueeze(-1) * powers  # A bar^(t+1)
        rest = 2 * torch.einsum("dn,dnt,bdn->btd", read, later, state).real
        inputs = write.unsqueeze(-1) * powers.flip(-1)  # (D, N, T)
        state = later[..., -1] * state + torch.einsum("dnt,btd->bdn", inputs, u.to(inputs.dtype))
        return long_convolution(u, kernel) + rest + self.skip * u, state

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D)."""
        scaled, write, read = self._discrete()
        state = torch.exp(scaled) * state + write * u.unsqueeze(-1)  # (B, D, N)
        return 2 * (read * state).sum(dim=-1).real + self.skip * u, state


class S4D(nn.Module):
    """S4D layer: state spaces, GELU, gated mix of the channels.

    :param width: model width D
    :param state: complex states N a channel
    """

    REFERENCE: ClassVar[str] = "Gu et al. 2022"
    UPDATE: ClassVar[str] = r"h_t = e^{\Delta A} \odot h_{t-1} + \bar B u_t, \quad y_t = 2 \, \mathrm{Re}(C \cdot h_t) + D u_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")
    NOTE: ClassVar[str] = "S4 adds a low-rank term to A, DSS another discretisation; the recurrence is of the same kind"

    def __init__(self, width: int, state: int = 8) -> None:
        super().__init__()
        self.system = DiagonalSystem(width, state)
        self.outer = nn.Linear(width, 2 * width)

    def initial_state(self, batch: int) -> Tensor:
        """Return h_0 = 0, complex, (B, D, N)."""
        return self.system.initial_state(batch)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a convolution."""
        y, state = self.system(x, self.initial_state(x.shape[0]) if state is None else state)
        return F.glu(self.outer(F.gelu(y)), dim=-1), state

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D)."""
        y, state = self.system.step(x, state)
        return F.glu(self.outer(F.gelu(y)), dim=-1), state
