r"""Monarch-style mixer: two block-diagonal mixes of the positions instead of one dense one (paper, section 2).

Position t = i m + j stands in row i and column j of a square of m x m. A Monarch matrix mixes within rows, then within
columns; kept causal, each position takes its own row up to itself, and in its column what the complete rows above became:

$$y_{ij} = \sum_{j' \le j} L_{i j j'} v_{ij'} + \sum_{i' < i} M_{j i i'} \sum_{j'} R_{i' j j'} v_{i'j'}$$
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import SequenceError
from fbam.sequence.over_inputs import OverInputs


class Monarch(OverInputs):
    """Causal Monarch mixing of the positions with a gate.

    :param width: model width D
    :param side: side m of the square; the longest sequence has m^2 positions
    """

    REFERENCE: ClassVar[str] = "Fu et al. 2023"
    UPDATE: ClassVar[str] = r"y_{ij} = \sum_{j' \le j} L_{i j j'} v_{ij'} + \sum_{i' < i} M_{j i i'} \sum_{j'} R_{i' j j'} v_{i'j'}"
    NOTE: ClassVar[str] = "the published mixer uses such matrices as Fourier transforms of a gated long convolution"

    def __init__(self, width: int, side: int = 16) -> None:
        super().__init__(width)
        self.side = side
        self.value_gate = nn.Linear(width, 2 * width, bias=False)
        self.within, self.rows, self.columns = (nn.Parameter(torch.randn(side, side, side) * side**-0.5) for _ in range(3))  # L, R, M

    def mix(self, x: Tensor) -> Tensor:
        """Mix rows, then columns.

        :raises SequenceError: the sequence does not fit the square
        """
        length, side = x.shape[1], self.side
        used = -(-length // side)  # rows in use
        if used > side:
            raise SequenceError(f"{length} positions do not fit a square of side {side}; raise side")
        v, gate = self.value_gate(x).chunk(2, dim=-1)
        square = F.pad(v, (0, 0, 0, used * side - length)).unflatten(1, (used, side))  # (B, i, j, D)
        own = self.within[:used].tril() @ square
        above = (self.rows[:used] @ square).transpose(1, 2)  # (B, j, i, D)
        above = (self.columns[:, :used, :used].tril(-1) @ above).transpose(1, 2)
        return self.outer(torch.sigmoid(gate) * (own + above).flatten(1, 2)[:, :length])
