r"""MinMax recurrence: a linear recurrence over (max, min) instead of (plus, times) (paper, section 2).

$$h_t = A_t \otimes h_{t-1} \oplus b_t, \qquad (A \otimes h)_i = \max_j \min(A_{ij}, h_j), \qquad \oplus = \max$$

min distributes over max, so products of such matrices are associative and the recurrence is a scan, although it is far
from linear in the usual sense. A and b read the input only; all states stay within the range of their entries.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.scans import Elements, associative_scan


class MinMax(nn.Module):
    """MinMax recurrence with H heads of N states, a gate and an output map.

    :param width: model width D
    :param heads: number of heads H
    :param state: states N a head
    """

    REFERENCE: ClassVar[str] = "MinMax Recurrent Neural Cascades, arXiv 2605.06384, 2026"
    UPDATE: ClassVar[str] = r"h_t = \max\big(\max_j \min(A(x_t)_{\cdot j}, h_{t-1,j}), \, b(x_t)\big)"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")

    def __init__(self, width: int, heads: int = 4, state: int = 4) -> None:
        super().__init__()
        self.heads, self.state = heads, state
        self.transition, self.write = nn.Linear(width, heads * state * state), nn.Linear(width, heads * state)
        self.start = nn.Parameter(torch.randn(heads, state, 1) * 0.1)
        self.gate = nn.Linear(width, width)
        self.outer = nn.Linear(heads * state, width, bias=False)

    def initial_state(self, batch: int) -> Tensor:
        """Return the learned h_0, (B, H, N, 1)."""
        return self.start.expand(batch, -1, -1, -1)

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return A, (..., H, N, N), and b, (..., H, N, 1)."""
        a = torch.tanh(self.transition(x)).unflatten(-1, (self.heads, self.state, self.state))
        return a, torch.tanh(self.write(x)).unflatten(-1, (self.heads, self.state, 1))

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan."""
        start = self.initial_state(x.shape[0]) if state is None else state
        a, b = associative_scan(_compose, self._affine(x))
        h = torch.maximum(_product(a, start.unsqueeze(1)), b)  # (B, T, H, N, 1)
        return self._close(h, x), h[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D)."""
        a, b = self._affine(x)
        h = torch.maximum(_product(a, state), b)
        return self._close(h, x), h

    def _close(self, h: Tensor, x: Tensor) -> Tensor:
        """Gate and project: (..., H, N, 1) to (..., D)."""
        return torch.sigmoid(self.gate(x)) * self.outer(h.flatten(-3))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return max_j min(a_ij, b_jk), (..., N, M), from (..., N, N) and (..., N, M)."""
    return torch.minimum(a.unsqueeze(-1), b.unsqueeze(-3)).amax(dim=-2)


def _compose(earlier: Elements, later: Elements) -> Elements:
    (a1, b1), (a2, b2) = earlier, later
    return _product(a2, a1), torch.maximum(_product(a2, b1), b2)
