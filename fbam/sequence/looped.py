r"""Looped Transformer: one block run R times, the input added before each round (paper, section 2).

$$h^{r} = \mathrm{block}(h^{r-1} + x), \qquad y = h^{R}$$

Recurrent in depth, not in time: all positions do round r at once, so the longest path grows with R and not with T,
unless R is made to grow with T.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from fbam.sequence.transformer import RotaryTransformer, State


class Looped(nn.Module):
    """A block of causal attention and MLP with shared weights over its rounds.

    :param width: model width D
    :param heads: number of heads H; D / H must be even
    :param rounds: rounds R
    """

    REFERENCE: ClassVar[str] = "Giannou et al. 2023; recurrent depth with injected input as Geiping et al. 2025"
    UPDATE: ClassVar[str] = r"h^{r}_t = \mathrm{block}(h^{r-1} + x)_t, \quad y_t = h^{R}_t"
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")
    NOTE: ClassVar[str] = "the depth grows with the rounds; the Universal Transformer is of the same kind"

    def __init__(self, width: int, heads: int = 4, rounds: int = 4) -> None:
        super().__init__()
        self.rounds = rounds
        self.norm, self.attention = nn.RMSNorm(width), RotaryTransformer(width, heads)
        self.mlp = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def initial_state(self, batch: int) -> list[State]:
        """Return an empty cache a round."""
        return [self.attention.initial_state(batch) for _ in range(self.rounds)]

    def forward(self, x: Tensor, state: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """Run all rounds over (B, T, D)."""
        h, after = 0.0, []
        for cache in state or self.initial_state(x.shape[0]):
            h = h + x
            y, cache = self.attention(self.norm(h), cache)
            h = h + y
            h = h + self.mlp(h)
            after.append(cache)
        return h, after

    def step(self, x: Tensor, state: list[State]) -> tuple[Tensor, list[State]]:
        """Run all rounds over one position, (B, D)."""
        y, state = self(x.unsqueeze(1), state)
        return y.squeeze(1), state
