r"""Latent recurrent Transformer: the top of the position before joins the input of the next (paper, section 2).

$$y_t = \mathrm{layers}\big(x_t + M y_{t-1}; \text{ keys and values of the positions before}\big)$$

When decoding, every position waits for the top of the one before. For training the recurrence is cut: a few passes, each
parallel over positions, read the tops of the pass before. After r passes the first r positions are exact, so that T passes
give the serial function ("iterated"); the published training uses about two, and its path does not grow with T.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.steps import over_steps
from fbam.sequence.transformer import RotaryTransformer
from fbam.sequence.transformer import State as Cache

State = tuple[Tensor, list[Cache]]
"""Top of the position before, (B, D), and the cache of each layer."""


class LatentRecurrent(nn.Module):
    """Several layers of attention and MLP with a path from the top back to the input.

    :param width: model width D
    :param heads: number of heads H; D / H must be even
    :param layers: layers inside
    """

    REFERENCE: ClassVar[str] = "Latent Recurrent Transformer, arXiv 2605.26797, 2026"
    UPDATE: ClassVar[str] = r"y_t = \mathrm{layers}(x_t + M y_{t-1}; K_{<t}, V_{<t})"
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "iterated", "recurrent")
    NOTE: ClassVar[str] = "the State Stream Transformer carries a latent state a layer from token to token instead of the top alone"

    def __init__(self, width: int, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.memory = nn.Linear(width, width, bias=False)  # M
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(layers))
        self.attentions = nn.ModuleList(RotaryTransformer(width, heads) for _ in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(layers)
        )

    def initial_state(self, batch: int) -> State:
        """Return a zero top and empty caches."""
        return self.memory.weight.new_zeros(batch, self.memory.in_features), [a.initial_state(batch) for a in self.attentions]

    def _layers(self, x: Tensor, before: Tensor, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """Run all layers over (B, T, D) with the tops of the positions before, (B, T, D)."""
        h, after = x + self.memory(before), []
        for norm, attention, mlp, cache in zip(self.norms, self.attentions, self.mlps, caches, strict=True):
            y, cache = attention(norm(h), cache)
            h = h + y
            h = h + mlp(h)
            after.append(cache)
        return h, after

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), one position after the other."""
        return over_steps(self, x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run all layers over one position, (B, D)."""
        top, caches = state
        y, caches = self._layers(x.unsqueeze(1), top.unsqueeze(1), caches)
        return y.squeeze(1), (y.squeeze(1), caches)

    def refine(self, x: Tensor, passes: int, state: State | None = None) -> tuple[Tensor, State]:
        """Run a number of passes, parallel over (B, T, D), from tops of zero."""
        top, caches = state or self.initial_state(x.shape[0])
        y = torch.zeros_like(x)
        for _ in range(passes):
            y, after = self._layers(x, torch.cat([top.unsqueeze(1), y[:, :-1]], dim=1), caches)
        return y, (y[:, -1], after)

    def iterated(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run as many passes as there are positions: the values of ``forward``."""
        return self.refine(x, x.shape[1], state)
