r"""Gated linear attention: a matrix state whose rows decay by factors read from the input (paper, section 2).

$$S_t = \mathrm{diag}(a_t) \, S_{t-1} + k_t v_t^\top, \qquad y_t = S_t^\top q_t$$

GLA takes $a_t = \sigma(W x_t)^{1/16}$, real and near 1; GateLoop lets each factor turn as well,
$a_t = \sigma(\cdot) \, e^{i \theta(x_t)}$, and reads out the real part. Both are diagonal linear recurrences; ``forward``
runs them as an associative scan over the P x P entries of the state.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size
from fbam.sequence.scans import diagonal_scan


class GLA(nn.Module):
    """Gated linear attention with a norm a head and a swish gate.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Yang et al. 2024 (GLA)"
    UPDATE: ClassVar[str] = r"S_t = \mathrm{diag}(\sigma(W x_t)^{1/16}) \, S_{t-1} + k_t v_t^\top, \quad y_t = S_t^\top q_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.decay = nn.Linear(width, width)
        self.gate = nn.Linear(width, width, bias=False)
        self.norm = nn.RMSNorm(self.head_size)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> Tensor:
        """Return S_0 = 0, (B, H, P, P)."""
        return self.outer.weight.new_zeros(batch, self.heads, self.head_size, self.head_size)

    def factors(self, x: Tensor) -> Tensor:
        """Return the decays of the rows of S, (..., H, P)."""
        return torch.exp(F.logsigmoid(self.decay(x)) / 16).unflatten(-1, (self.heads, -1))

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, (..., H, P, 1), the decays, (..., H, P, 1), and k v^T, (..., H, P, P)."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.query_key_value(x).chunk(3, dim=-1))
        return q.unsqueeze(-1), self.factors(x).unsqueeze(-1), k.unsqueeze(-1) * v.unsqueeze(-2)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan."""
        q, factors, writes = self._project(x)
        s = diagonal_scan(factors, writes, self.initial_state(x.shape[0]) if state is None else state)  # (B, T, H, P, P)
        return self._close(q * s, x), s[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D)."""
        q, factors, writes = self._project(x)
        s = factors * state + writes
        return self._close(q * s, x), s

    def _close(self, read: Tensor, x: Tensor) -> Tensor:
        """Sum what q reads, normalise each head, gate and project: (..., H, P, P) to (..., D)."""
        y = (read.real if read.is_complex() else read).sum(dim=-2)
        return self.outer(F.silu(self.gate(x)) * self.norm(y).flatten(-2))


class GateLoop(GLA):
    """Gated linear attention with complex decays.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Katsch 2023"
    UPDATE: ClassVar[str] = (
        r"S_t = \mathrm{diag}(\sigma(W x_t)^{1/16} e^{i U x_t}) \, S_{t-1} + k_t v_t^\top, \quad y_t = \mathrm{Re}(S_t^\top q_t)"
    )

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__(width, heads)
        self.angle = nn.Linear(width, width)

    def initial_state(self, batch: int) -> Tensor:
        """Return S_0 = 0, complex, (B, H, P, P)."""
        zero = super().initial_state(batch)
        return torch.complex(zero, zero)

    def factors(self, x: Tensor) -> Tensor:
        """Return the complex decays of the rows of S, (..., H, P)."""
        return torch.polar(super().factors(x), self.angle(x).unflatten(-1, (self.heads, -1)))
