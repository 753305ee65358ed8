r"""Two programs for one finite automaton, to be measured: its maps applied one after the other, or composed in a balanced tree (section 4).

Both take the map of each symbol on the states, so whatever can be written as such maps can be measured: jump programs with a fixed
number of registers, a walk through a fixed maze, a word of a group. With S states and n symbols

$$q_n = (f_n \circ \dots \circ f_1)(q_0)$$

takes n selections of one of S in the first program and ceil(log2 n) rounds of them in the second, which does S times the work.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fbam.theory.cost import CostModel
from fbam.theory.depth import true_depths

MODELS = (CostModel("unbounded"), CostModel(2))


def by_loop(maps: Tensor) -> Tensor:
    """State after all symbols, from state 0, (B,); maps: (B, n, S) int64."""
    state = maps[:, 0, :1]  # (B, 1)
    for step in maps[:, 1:].unbind(1):
        state = step.gather(1, state)
    return state[:, 0]


def by_tree(maps: Tensor) -> Tensor:
    """The same, neighbours composed in rounds; maps: (B, n, S) int64."""
    while maps.shape[1] > 1:
        even = maps.shape[1] // 2 * 2
        pairs = maps[:, 1:even:2].gather(2, maps[:, 0:even:2])  # (B, n // 2, S), the later map after the earlier one
        maps = torch.cat([pairs, maps[:, even:]], dim=1)
    return maps[:, 0, 0]


WAYS: dict[str, Callable[[Tensor], Tensor]] = {"one map after the other": by_loop, "maps composed in a tree": by_tree}


def depths(way: str, maps: Tensor) -> dict[str, int]:
    """True depth of one program over these maps, by cost model."""
    return {at.model.name: at.depth for at in true_depths(WAYS[way], maps, models=MODELS, backward=False)}
