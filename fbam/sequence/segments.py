r"""Recurrence over segments: the block-recurrent and the recurrent memory Transformer (paper, section 2).

A segment of W positions is read in parallel, together with a memory of M vectors; after its last position the memory is
replaced, by a function of the segment and of the memory before:

$$y_{\text{segment } i} = f(x_{\text{segment } i}, M_{i-1}), \qquad M_i = g(x_{\text{segment } i}, M_{i-1})$$

So the longest path grows like T / W. Transformer-XL looks alike but hands the layer below on, not the layer itself: there
the path does not grow with T.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, join_heads, split_heads

State = tuple[Tensor, Tensor]
"""Memory, (B, M, D), and the inputs of the segment that is not complete, (B, t, D)."""


class Segmented(nn.Module):
    """A layer that reads segments; a subclass says how a segment and the memory meet.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param segment: positions W a segment
    :param memory: memory vectors M
    """

    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("serial", "recurrent")

    def __init__(self, width: int, heads: int = 4, segment: int = 8, memory: int = 4) -> None:
        super().__init__()
        head_size(width, heads)
        self.heads, self.segment = heads, segment
        self.start = nn.Parameter(torch.randn(memory, width))
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return the learned first memory and no inputs."""
        return self.start.expand(batch, -1, -1), self.start.new_zeros(batch, 0, self.start.shape[1])

    def meet(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Map a segment, (B, t, D), and the memory to the outputs, (B, t, D), and the next memory, (B, M, D)."""
        raise NotImplementedError

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), one segment after the other."""
        memory, pending = state or self.initial_state(x.shape[0])
        x, outputs = torch.cat([pending, x], dim=1), []
        for piece in x.split(self.segment, dim=1):
            y, following = self.meet(piece, memory)
            outputs.append(y)
            memory = following if piece.shape[1] == self.segment else memory
        rest = x[:, x.shape[1] - x.shape[1] % self.segment :]
        return torch.cat(outputs, dim=1)[:, pending.shape[1] :], (memory, rest)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run over one position, (B, D); the segment so far is read again."""
        y, state = self(x.unsqueeze(1), state)
        return y.squeeze(1), state

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k and v, (B, H, t, P) each."""
        q, k, v = self.query_key_value(x).chunk(3, dim=-1)
        return split_heads(q, self.heads), split_heads(k, self.heads), split_heads(v, self.heads)


class BlockRecurrent(Segmented):
    """Block-recurrent Transformer: tokens read the state vectors, state vectors read the tokens, through a gate."""

    REFERENCE: ClassVar[str] = "Hutchins et al. 2022"
    UPDATE: ClassVar[str] = (
        r"Y_i = \mathrm{attend}(X_i; X_i, S_{i-1}), \quad S_i = g \odot S_{i-1} + (1 - g) \odot \mathrm{attend}(S_{i-1}; X_i, S_{i-1})"
    )

    def __init__(self, width: int, heads: int = 4, segment: int = 8, memory: int = 4) -> None:
        super().__init__(width, heads, segment, memory)
        self.state_query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.state_outer = nn.Linear(width, width)
        self.keep = nn.Parameter(torch.zeros(width))  # g = sigmoid(keep)

    def meet(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Attend in both directions."""
        q, k, v = self.project(x)
        state_q, state_k, state_v = (split_heads(part, self.heads) for part in self.state_query_key_value(memory).chunk(3, dim=-1))
        k, v = torch.cat([state_k, k], dim=2), torch.cat([state_v, v], dim=2)  # (B, H, M + t, P)
        seen = torch.ones(x.shape[1], k.shape[2], dtype=torch.bool, device=x.device).tril(memory.shape[1])
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        update = self.state_outer(join_heads(F.scaled_dot_product_attention(state_q, k, v)))
        gate = torch.sigmoid(self.keep)
        return self.outer(join_heads(y)), gate * memory + (1 - gate) * update


class RecurrentMemory(Segmented):
    """Recurrent memory Transformer: memory tokens before the segment to read, behind it to write."""

    REFERENCE: ClassVar[str] = "Bulatov, Kuratov and Burtsev 2022"
    UPDATE: ClassVar[str] = r"[\cdot, Y_i, M_i] = \mathrm{Transformer}([M_{i-1}, X_i, M_{i-1}])"

    def __init__(self, width: int, heads: int = 4, segment: int = 8, memory: int = 4) -> None:
        super().__init__(width, heads, segment, memory)
        self.norm = nn.RMSNorm(width)
        self.mlp = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def meet(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Attend causally over memory, segment, memory; the last part is the next memory."""
        z = torch.cat([memory, x, memory], dim=1)  # (B, M + t + M, D)
        q, k, v = self.project(self.norm(z))
        z = z + self.outer(join_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        z = z + self.mlp(z)
        return z.split([memory.shape[1], x.shape[1], memory.shape[1]], dim=1)[1:]
