r"""Tree-composed LSTM: a composition that is not associative, on trees of logarithmic depth (paper, section 2).

Two neighbours' states make the state of both together; the forget gates read both hidden states:

$$c = f_1 \odot c_1 + f_2 \odot c_2 + i \odot g, \qquad h = o \odot \tanh(c), \qquad i, f_1, f_2, o, g \leftarrow (h_1, h_2)$$

Composition is not associative, so the tree is part of the function. Position t reads the complete subtrees that its number
in binary names (13 = 8 + 4 + 1), folded from the left: a nonlinear recurrence of depth O(log T), and not over time.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.steps import over_steps

Node = tuple[Tensor, Tensor]
"""h and c, (..., D) each."""
State = list[tuple[int, Tensor, Tensor]]
"""Complete subtrees that are waiting, largest first: size, h and c, (B, D) each."""


class TreeLSTM(nn.Module):
    """Binary tree LSTM over all prefixes.

    :param width: model width D
    """

    REFERENCE: ClassVar[str] = "Tai, Socher and Manning 2015"
    UPDATE: ClassVar[str] = (
        r"c = f_1 \odot c_1 + f_2 \odot c_2 + i \odot g, \quad h_t = o \odot \tanh(c), \quad (i, f_1, f_2, o, g) \leftarrow (h_1, h_2)"
    )
    ASSOCIATIVE: ClassVar[bool] = False
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.leaf, self.pair = nn.Linear(width, 3 * width), nn.Linear(2 * width, 5 * width)

    def initial_state(self, batch: int) -> State:
        """Return no subtrees."""
        return []

    def _leaves(self, x: Tensor) -> Node:
        i, o, g = self.leaf(x).chunk(3, dim=-1)
        c = torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def _compose(self, left: Node, right: Node) -> Node:
        (h1, c1), (h2, c2) = left, right
        i, f1, f2, o, g = self.pair(torch.cat([h1, h2], dim=-1)).chunk(5, dim=-1)
        c = torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2 + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D), level by level; behind a state that is not empty, position by position."""
        if state:
            return over_steps(self, x, state)
        levels = [self._leaves(x)]  # level k: the complete subtrees of 2^k leaves, (B, T // 2^k, D)
        while levels[-1][0].shape[1] > 1:
            even = [part[:, 0 : part.shape[1] // 2 * 2 : 2] for part in levels[-1]]
            levels.append(self._compose(even, [part[:, 1::2] for part in levels[-1]]))
        h = self._fold(levels, x.shape[1])
        return h, _waiting(levels, x.shape[1])

    def _fold(self, levels: list[Node], length: int) -> Tensor:
        """Return the hidden state of each prefix, (B, T, D)."""
        count = torch.arange(1, length + 1, device=levels[0][0].device)  # leaves of each prefix
        total = None
        for k in reversed(range(len(levels))):
            has = (count >> k & 1).bool()  # the prefixes that use a subtree of level k
            first = has & (count >> k == 1)
            index = ((count >> k + 1) * 2).clamp_max(levels[k][0].shape[1] - 1)
            node = tuple(part[:, index] for part in levels[k])
            if total is None:
                total = node
                continue
            both = self._compose(total, node)
            total = tuple(
                torch.where(first[:, None], n, torch.where(has[:, None], b, t)) for n, b, t in zip(node, both, total, strict=True)
            )
        return total[0]

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Add one leaf, (B, D): join subtrees of equal size, then fold what waits."""
        trees = [*state, (1, *self._leaves(x))]
        while len(trees) > 1 and trees[-1][0] == trees[-2][0]:
            (size, *left), (_, *right) = trees[-2:]
            trees[-2:] = [(2 * size, *self._compose(left, right))]
        total = trees[0][1:]
        for _, *node in trees[1:]:
            total = self._compose(total, node)
        return total[0], trees


def _waiting(levels: list[Node], length: int) -> State:
    """Return the subtrees whose sizes add up to the length, largest first."""
    used, trees = 0, []
    for k in reversed(range(len(levels))):
        if length >> k & 1:
            h, c = levels[k]
            trees.append((1 << k, h[:, used >> k], c[:, used >> k]))
            used += 1 << k
    return trees
