r"""Sparse softmax attention: each position reads a chosen few of the positions before it (paper, section 2).

$$y_t = \sum_{s \in A_t} \mathrm{softmax}_{s \in A_t}(q_t \cdot k_s / \sqrt{d}) \, v_s, \qquad A_t \subset \{1, \dots, t\}$$

The families differ in A: a window and a few global positions (Longformer), these and random positions (BigBird), or the
positions whose keys fall into the same bucket of a random hash (Reformer). Here A is a mask over full attention: the
values, and the longest path, are those of the sparse kernels, the work is not.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import SequenceError, head_size, join_heads, split_heads
from fbam.sequence.over_inputs import OverInputs


class Longformer(OverInputs):
    """Causal attention to a window and to the first positions.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param window: positions back, the present one included
    :param globals_: first positions that all read
    """

    REFERENCE: ClassVar[str] = "Beltagy, Peters and Cohan 2020"
    UPDATE: ClassVar[str] = r"y_t = \sum_{s \in A_t} \mathrm{softmax}_s(q_t \cdot k_s / \sqrt{d}) \, v_s, \quad A_t = \{s > t - w\} \cup \{s \le g\}"

    def __init__(self, width: int, heads: int = 4, window: int = 8, globals_: int = 1) -> None:
        super().__init__(width)
        self.heads, self.head_size, self.window, self.globals = heads, head_size(width, heads), window, globals_
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)

    def allowed(self, k: Tensor) -> Tensor:
        """Return who reads whom, (T, T) or (B, H, T, T), from the keys, (B, H, T, P)."""
        t = torch.arange(k.shape[2], device=k.device)
        return (t > t[:, None] - self.window) | (t < self.globals)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k and v, (B, H, T, P) each."""
        q, k, v = self.query_key_value(x).chunk(3, dim=-1)
        return split_heads(q, self.heads), split_heads(k, self.heads), split_heads(v, self.heads)

    def mix(self, x: Tensor) -> Tensor:
        """Attend where ``allowed``, never to later positions."""
        q, k, v = self.project(x)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.allowed(k) & _past(x.shape[1], x.device))
        return self.outer(join_heads(y))


def _past(length: int, device: torch.device) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class BigBird(Longformer):
    """Causal attention to a window, to the first positions and to random positions, drawn once.

    :param randoms: random earlier positions a position
    :param max_length: positions they are drawn for
    """

    REFERENCE: ClassVar[str] = "Zaheer et al. 2020"
    UPDATE: ClassVar[str] = (
        r"y_t = \sum_{s \in A_t} \mathrm{softmax}_s(q_t \cdot k_s / \sqrt{d}) \, v_s, \quad A_t = \{s > t - w\} \cup \{s \le g\} \cup R_t"
    )

    def __init__(self, width: int, heads: int = 4, window: int = 8, globals_: int = 1, randoms: int = 2, max_length: int = 4096) -> None:
        super().__init__(width, heads, window, globals_)
        self.register_buffer("draws", torch.rand(max_length, randoms))

    def allowed(self, k: Tensor) -> Tensor:
        """Return who reads whom, (T, T).

        :raises SequenceError: the sequence is longer than ``max_length``
        """
        length = k.shape[2]
        if length > len(self.draws):
            raise SequenceError(f"random positions are drawn for {len(self.draws)} positions, not {length}; raise max_length")
        t = torch.arange(length, device=k.device)
        chosen = (self.draws[:length].float() * (t[:, None] + 1)).long()  # (T, randoms), each at most t
        return super().allowed(k) | (chosen.unsqueeze(-1) == t).any(dim=1)


class Reformer(Longformer):
    """Causal attention within buckets of a locality-sensitive hash; queries and keys share one projection.

    :param buckets: number of buckets, even
    """

    REFERENCE: ClassVar[str] = "Kitaev, Kaiser and Levskaya 2020"
    UPDATE: ClassVar[str] = (
        r"y_t = \sum_{s \in A_t} \mathrm{softmax}_s(k_t \cdot k_s / \sqrt{d}) \, v_s, \quad "
        r"A_t = \{s : \mathrm{bucket}(k_s) = \mathrm{bucket}(k_t)\}"
    )

    def __init__(self, width: int, heads: int = 4, buckets: int = 4) -> None:
        super().__init__(width, heads)
        self.query_key_value = nn.Linear(width, 2 * width, bias=False)
        self.register_buffer("directions", torch.randn(self.head_size, buckets // 2))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the shared projection as q and, at unit length, as k, and v."""
        k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(2, dim=-1))
        return k, F.normalize(k, dim=-1), v

    def allowed(self, k: Tensor) -> Tensor:
        """Return which pairs share a bucket, (B, H, T, T); the bucket is the nearest of the directions and their negatives."""
        near = k @ self.directions
        bucket = torch.cat([near, -near], dim=-1).argmax(dim=-1)  # (B, H, T)
        return bucket.unsqueeze(-1) == bucket.unsqueeze(-2)
