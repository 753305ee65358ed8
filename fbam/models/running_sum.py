r"""A plain sum over time in the place of a sequence model: the control of the maze (paper, section 8.1.3).

Each token adds its vector, and a position reads what has been added up so far:

$$y_t = W \sum_{s \le t} e(x_s) + b$$

It knows how often each token occurred and nothing of their order, so it solves what is a sum and nothing else.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningSum(nn.Module):
    """Embedding, cumulative sum, output map; no norm, which would lose the count.

    :param inputs: number of tokens
    :param width: size of a token's vector D
    :param outputs: values a position
    :param seed: seed of the initial weights
    """

    def __init__(self, inputs: int, width: int, outputs: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = nn.Embedding(inputs, width)
            self.output = nn.Linear(width, outputs)

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, 1) int64 to (B, T, outputs)."""
        return self.output(self.embed(x[..., 0]).cumsum(dim=1))
