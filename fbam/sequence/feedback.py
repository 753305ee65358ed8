r"""Feedback Transformer: every layer attends to what the top made of the positions before (paper, section 2).

$$h^l_t = \mathrm{attend}_l\big(h^{l-1}_t; \, m_1, \dots, m_{t-1}\big), \qquad m_t = \sum_l \mathrm{softmax}(w)_l \, h^l_t$$

The memory m_t holds the outputs of all layers, so the layers at t wait for the layers at t - 1: attention that is serial.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, join_heads, split_heads
from fbam.sequence.steps import over_steps

State = tuple[Tensor, Tensor]
"""Keys and values of the memory, (B, H, 1 + t, P) each; the first ones are learned."""


class FeedbackTransformer(nn.Module):
    """Several layers of attention and MLP over one shared memory.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param layers: layers inside
    """

    REFERENCE: ClassVar[str] = "Fan et al. 2020"
    UPDATE: ClassVar[str] = r"h^l_t = \mathrm{attend}(h^{l-1}_t; m_1, \dots, m_{t-1}), \quad m_t = \sum_l \mathrm{softmax}(w)_l \, h^l_t"
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "recurrent")

    def __init__(self, width: int, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.queries = nn.ModuleList(nn.Sequential(nn.RMSNorm(width), nn.Linear(width, width, bias=False)) for _ in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(layers)
        )
        self.outers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.key_value = nn.Linear(width, 2 * width, bias=False)  # shared by the layers, as in the paper
        self.start = nn.Parameter(torch.randn(width))
        self.levels = nn.Parameter(torch.zeros(layers + 1))

    def initial_state(self, batch: int) -> State:
        """Return a memory of one learned vector."""
        return self._remember(self.start.expand(batch, -1))

    def _remember(self, m: Tensor) -> State:
        """Return key and value of a memory vector, (B, D), as (B, H, 1, P) each."""
        k, v = self.key_value(m.unsqueeze(1)).chunk(2, dim=-1)
        return split_heads(k, self.heads), split_heads(v, self.heads)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), one position after the other."""
        return over_steps(self, x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run all layers over one position, (B, D), and remember their mean."""
        keys, values = state
        h, levels = x, [x]
        for query, outer, mlp in zip(self.queries, self.outers, self.mlps, strict=True):
            q = split_heads(query(h).unsqueeze(1), self.heads)  # (B, H, 1, P)
            h = h + outer(join_heads(F.scaled_dot_product_attention(q, keys, values)).squeeze(1))
            h = h + mlp(h)
            levels.append(h)
        m = (torch.softmax(self.levels, dim=0)[:, None, None] * torch.stack(levels)).sum(dim=0)  # (B, D)
        k, v = self._remember(m)
        return h, (torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2))
