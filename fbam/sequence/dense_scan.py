r"""Dense input-dependent linear recurrence: a scan that composes any finite-state machine (paper, section 2).

$$h_t = A(x_t) h_{t-1} + b(x_t)$$

with a full N x N matrix a head. Products of such matrices contain all permutations, so this layer is the positive
control for word problems that diagonal scans cannot follow (Merrill, Petty and Sabharwal 2024), although it is
evaluated in O(log T) rounds of matrix products. The columns of A are scaled to absolute sum 1, so that products neither
grow nor, for permutations, shrink; A starts near the identity, and h_0 is learned, so that a state exists to be permuted.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.heads import head_size
from fbam.sequence.scans import dense_scan


class DenseScan(nn.Module):
    """Dense linear recurrence with H heads of N states, and an output map.

    :param width: model width D
    :param heads: number of heads H
    :param state: states N a head; D / H when 0
    """

    REFERENCE: ClassVar[str] = "Merrill, Petty and Sabharwal 2024"
    UPDATE: ClassVar[str] = r"h_t = A(x_t) h_{t-1} + b(x_t), \quad \|A(x_t)\|_1 = 1"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")

    def __init__(self, width: int, heads: int = 4, state: int = 8) -> None:
        super().__init__()
        self.heads, self.state = heads, state or head_size(width, heads)
        size = heads * self.state
        self.transition = nn.Linear(width, size * self.state)
        with torch.no_grad():
            self.transition.bias.copy_(torch.eye(self.state).repeat(heads, 1).flatten())
        self.write = nn.Linear(width, size)
        self.start = nn.Parameter(torch.randn(heads, self.state, 1) * self.state**-0.5)
        self.outer = nn.Linear(size, width, bias=False)

    def initial_state(self, batch: int) -> Tensor:
        """Return the learned h_0, (B, H, N, 1)."""
        return self.start.expand(batch, -1, -1, -1)

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return A, (..., H, N, N), and b, (..., H, N, 1)."""
        a = self.transition(x).unflatten(-1, (self.heads, self.state, self.state))
        a = a / a.abs().sum(dim=-2, keepdim=True).clamp_min(1e-6)
        return a, self.write(x).unflatten(-1, (self.heads, self.state, 1))

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan of matrix products; return (B, T, D) and the last h."""
        start = self.initial_state(x.shape[0]) if state is None else state
        h = dense_scan(*self._affine(x), start)  # (B, T, H, N, 1)
        return self.outer(h.flatten(2)), h[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run over one position, (B, D)."""
        a, b = self._affine(x)
        h = a @ state + b
        return self.outer(h.flatten(1)), h
