"""Programs of the jumps task as numbers for a model: fields, labels, the query, and the written-out state of a scratchpad.

A *fused* token is one block, and its fields (register negated, condition, two targets) are embedded and added up; otherwise each
field is a token of its own. Targets are *relative* (blocks forward) or *absolute*: then each block carries a label, its number, and
targets name labels. One query token follows the last block; the answer is read there. Padding comes after the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fbam.tasks.frjt import JumpsError, Programs

Labels = Literal["relative", "absolute"]
PADDING, QUERY, BLOCK = 0, 1, 2  # first field: what kind of token; blocks are BLOCK + register negated


@dataclass(frozen=True)
class JumpsTokenizer:
    """Programs <-> tokens.

    :param registers: most registers of a program
    :param longest: most blocks of a program with absolute labels; farthest jump in blocks with relative ones
    :param fused: one token a block, otherwise one a field
    :param labels: relative or absolute
    """

    registers: int
    longest: int
    fused: bool = True
    labels: Labels = "relative"

    def __post_init__(self) -> None:
        if self.labels not in ("relative", "absolute"):
            raise JumpsError(f"labels {self.labels!r} are unknown; use relative or absolute")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of each field of a block: register negated, condition, two targets, and its label where labels are absolute."""
        sizes = (BLOCK + self.registers + 1, 2 * self.registers + 1, self.longest + 3, self.longest + 3)
        return (*sizes, self.longest + 1) if self.labels == "absolute" else sizes

    @property
    def vocabulary(self) -> tuple[int, ...]:
        """Values of each field of a token: those of a block, or one vocabulary of all fields together."""
        return self.sizes if self.fused else (sum(self.sizes),)

    @property
    def tokens_a_block(self) -> int:
        """Tokens that one block takes."""
        return 1 if self.fused else len(self.sizes)

    def query(self, programs: Programs) -> NDArray[np.int64]:
        """Position of the query token of each program, (N,)."""
        return programs.depths * self.tokens_a_block

    def encode(self, programs: Programs) -> NDArray[np.int64]:
        """Tokens of programs, (N, T, F) with T = D + 1 and F fields, or T = F D + 1 and one field.

        :raises JumpsError: a register, a jump or a label beyond what this tokenizer knows
        """
        blocks = self._blocks(programs)  # (N, D, F)
        n, depth, fields = blocks.shape
        if not self.fused:
            starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
            inside = np.arange(depth) < programs.depths[:, None]  # (N, D)
            blocks = ((blocks + starts) * inside[..., None]).reshape(n, depth * fields, 1)
        tokens = np.concatenate([blocks, np.zeros_like(blocks[:, :1])], axis=1)
        tokens[np.arange(n), self.query(programs), 0] = QUERY
        return tokens

    def _blocks(self, programs: Programs) -> NDArray[np.int64]:
        n, depth, _ = programs.fields.shape
        inside = np.arange(depth) < programs.depths[:, None]  # (N, D)
        fields = programs.fields.astype(np.int64)
        targets = fields[..., 2:]
        if self.labels == "absolute":
            targets = np.where(targets > 0, targets + np.arange(depth)[:, None], targets)
        targets = np.where(targets > 0, targets + 2, 1 - targets)  # 1 = A, 2 = B, then blocks forward or labels from 1
        columns = [BLOCK + fields[..., 0], 1 + fields[..., 1], targets[..., 0], targets[..., 1]]
        if self.labels == "absolute":
            columns.append(np.broadcast_to(1 + np.arange(depth), (n, depth)))
        blocks = np.stack(columns, axis=-1) * inside[..., None]
        if (blocks >= np.array(self.sizes)).any():
            raise JumpsError(f"a program exceeds this tokenizer: {self.registers} registers, jumps or labels up to {self.longest}")
        return blocks

    def decode(self, tokens: NDArray[np.int64]) -> Programs:
        """The programs behind tokens, the inverse of `encode`."""
        depths = np.argmax(tokens[..., 0] == QUERY, axis=1) // self.tokens_a_block
        n, longest = len(tokens), int(depths.max())
        blocks = tokens[:, : longest * self.tokens_a_block].reshape(n, longest, len(self.sizes)).copy()
        inside = (np.arange(longest) < depths[:, None])[..., None]  # (N, D, 1)
        if not self.fused:
            blocks = blocks - np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        targets = blocks[..., 2:4]
        if self.labels == "absolute":
            targets = np.where(targets > 2, targets - np.arange(longest)[:, None], targets)
        targets = np.where(targets > 2, targets - 2, 1 - targets)
        fields = np.concatenate([blocks[..., :1] - BLOCK, blocks[..., 1:2] - 1, targets], axis=-1)
        return Programs((fields * inside).astype(np.int16), depths.astype(np.int64))
