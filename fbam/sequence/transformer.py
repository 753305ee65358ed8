r"""Causal softmax attention, the time-parallel mixer the paper sets against recurrence (section 2, appendix E).

$$y_t = \sum_{s \le t} \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}{\sqrt{d}}\right) v_s$$

No position waits for another one of the same layer. Decoding step by step reads the keys and values of all positions so
far (the cache); these come from the layer below, so the depth a token is still that of the layers. Positions are either
learned vectors added to the input of the stack (``POSITIONS``), or rotations of queries and keys by angles that grow
with the position (Su et al. 2021), so that products depend on distances.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, join_heads, split_heads

State = tuple[Tensor, Tensor]
"""Keys and values of the t positions so far, (B, H, t, D / H) each."""


class Transformer(nn.Module):
    """Causal multi-head self-attention without positions of its own.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Vaswani et al. 2017"
    UPDATE: ClassVar[str] = r"y_t = \sum_{s \le t} \mathrm{softmax}_s(q_t \cdot k_s / \sqrt{d}) \, v_s"
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")
    NOTE: ClassVar[str] = "Transformer-XL reads a cache of the layer below: it adds no path from a layer to itself"
    POSITIONS: ClassVar[str] = "learned"

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return an empty cache."""
        empty = self.outer.weight.new_zeros(batch, self.heads, 0, self.head_size)
        return empty, empty

    def place(self, x: Tensor, start: int) -> Tensor:
        """Mark queries or keys, (B, H, T, D / H), with their positions, of which ``start`` is the first."""
        return x

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Attend from each position to itself and all before.

        :param x: (B, T, D)
        :param state: cache of the positions before, empty when absent
        :returns: (B, T, D) and the grown cache
        """
        past_k, past_v = state or self.initial_state(x.shape[0])
        start, length = past_k.shape[2], x.shape[1]
        q, k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1))  # (B, H, T, D / H)
        q, k = self.place(q, start), self.place(k, start)
        if start == 0:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)  # (B, H, start + T, D / H)
            seen = torch.ones(length, start + length, dtype=torch.bool, device=x.device).tril(start)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.outer(join_heads(y)), (k, v)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Attend from one position, (B, D), to the cache and itself."""
        y, state = self(x.unsqueeze(1), state)
        return y.squeeze(1), state


class RotaryTransformer(Transformer):
    """Causal self-attention whose queries and keys are rotated by their position.

    :param width: model width D
    :param heads: number of heads H; D / H must be even
    """

    REFERENCE: ClassVar[str] = "Vaswani et al. 2017, positions of Su et al. 2021"
    UPDATE: ClassVar[str] = r"y_t = \sum_{s \le t} \mathrm{softmax}_s(q_t \cdot R_{s - t} k_s / \sqrt{d}) \, v_s"
    POSITIONS: ClassVar[str] = "rotary"

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__(width, heads)
        self.register_buffer("frequency", rotary_frequency(self.head_size), persistent=False)

    def place(self, x: Tensor, start: int) -> Tensor:
        """Rotate queries or keys, (B, H, T, D / H)."""
        return rotate(x, start, self.frequency)


def rotary_frequency(size: int) -> Tensor:
    """Return the angles a position of the d / 2 pairs of a head of size d, from 1 down to about 1 / 10,000."""
    pairs = head_size(size, 2)
    return 10_000.0 ** -(torch.arange(pairs) / pairs)


def rotate(x: Tensor, start: int, frequency: Tensor) -> Tensor:
    """Rotate each pair (x_i, x_{i + d/2}) by its position times its frequency.

    :param x: (..., T, d)
    :param start: position of the first of the T vectors
    :param frequency: angles a position, (d / 2,)
    """
    position = torch.arange(start, start + x.shape[-2], device=x.device, dtype=x.dtype)
    angle = position[:, None] * frequency.to(x.dtype)  # (T, d / 2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)
