r"""Linformer: attention to a few learned combinations of the keys and values (paper, section 2).

$$y_t = \mathrm{softmax}(q_t (E K)^\top / \sqrt{d}) \, E V$$

E maps the positions to a few rows. The published form mixes all positions, later ones too. Ours is causal: each complete
block of c positions is compressed to r rows, and a position reads the rows of the blocks before its own, and its own block
up to itself as it is.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, join_heads, split_heads
from fbam.sequence.over_inputs import OverInputs


class Linformer(OverInputs):
    """Causal attention to compressed blocks.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param block: positions c a block
    :param rows: rows r a block is compressed to
    """

    REFERENCE: ClassVar[str] = "Wang et al. 2020"
    UPDATE: ClassVar[str] = r"y_t = \mathrm{softmax}(q_t (E K)^\top / \sqrt{d}) \, E V, \quad E \in \mathbb{R}^{r \times c}"
    NOTE: ClassVar[str] = "made causal: complete blocks are compressed, the own block is read as it is"

    def __init__(self, width: int, heads: int = 4, block: int = 8, rows: int = 2) -> None:
        super().__init__(width)
        self.heads, self.head_size, self.block, self.rows = heads, head_size(width, heads), block, rows
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.compress = nn.Parameter(torch.randn(2, rows, block) * block**-0.5)  # of keys and of values

    def mix(self, x: Tensor) -> Tensor:
        """Attend to the rows of earlier blocks and to the own block up to the present."""
        length = x.shape[1]
        q, k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1))  # (B, H, T, P)
        complete = length // self.block  # blocks
        rows = [self._rows(part, matrix, complete) for part, matrix in zip((k, v), self.compress, strict=True)]
        keys, values = torch.cat([rows[0], k], dim=2), torch.cat([rows[1], v], dim=2)
        t = torch.arange(length, device=x.device)
        own = t // self.block
        of_rows = torch.arange(complete * self.rows, device=x.device) // self.rows  # block of each row
        seen = torch.cat([of_rows < own[:, None], (own == own[:, None]) & (t <= t[:, None])], dim=1)  # (T, rows + T)
        return self.outer(join_heads(F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)))

    def _rows(self, part: Tensor, matrix: Tensor, complete: int) -> Tensor:
        """Compress the complete blocks of (B, H, T, P) to (B, H, blocks r, P)."""
        blocks = part[:, :, : complete * self.block].unflatten(2, (complete, self.block))
        return (matrix @ blocks).flatten(2, 3)
