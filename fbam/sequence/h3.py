r"""H3: a shift and a diagonal state space joined by products (paper, section 2).

$$y_t = q_t \odot \mathrm{SSM}_{\mathrm{diag}}\big(\mathrm{SSM}_{\mathrm{shift}}(k) \odot v\big)_t$$

The shift system holds the last few inputs, so it is a short convolution; the diagonal one is that of S4D. Products read
the present position only: the memory stays a time-invariant linear system.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from fbam.sequence.convolution import CausalConvolution
from fbam.sequence.s4d import DiagonalSystem

State = tuple[Tensor, Tensor]
"""Last keys, (B, K - 1, D), and the complex states of the diagonal system, (B, D, N)."""


class H3(nn.Module):
    """H3 layer with a head a channel.

    :param width: model width D
    :param state: complex states N a channel
    """

    REFERENCE: ClassVar[str] = "Fu, Dao et al. 2023"
    UPDATE: ClassVar[str] = r"y_t = q_t \odot \mathrm{SSM}_{\mathrm{diag}}(\mathrm{SSM}_{\mathrm{shift}}(k) \odot v)_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, state: int = 8) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.shift, self.system = CausalConvolution(width), DiagonalSystem(width, state)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return no keys and h_0 = 0."""
        return self.shift.initial_state(batch), self.system.initial_state(batch)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D) as convolutions."""
        keys, h = state or self.initial_state(x.shape[0])
        q, k, v = self.query_key_value(x).chunk(3, dim=-1)
        k, keys = self.shift(k, keys)
        y, h = self.system(k * v, h)
        return self.outer(q * y), (keys, h)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrences over one position, (B, D)."""
        keys, h = state
        q, k, v = self.query_key_value(x).chunk(3, dim=-1)
        k, keys = self.shift.step(k, keys)
        y, h = self.system.step(k * v, h)
        return self.outer(q * y), (keys, h)
