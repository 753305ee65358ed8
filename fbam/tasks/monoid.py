r"""Which groups the transitions of the jumps task contain (paper, section 4: is the task inherently serial?).

The blocks of a program are maps of a finite set of states, and all their compositions are the transition monoid. Whether its words can
be followed by a circuit of constant depth hangs on the groups in it: if one is not solvable, following words is complete for NC1
(Barrington 1989), the class of the prefix scan in `solvers.py`. The smallest such group permutes five things. So take all sets X of
five states; words w that map X onto itself permute it, and

$$G_X = \{\, w|_X : w(X) = X \,\} \le S_5$$

is read off the graph of sets that are mapped onto each other, one loop an edge (Schreier's generators). Of the subgroups of S5 only A5,
of order 60, and S5 itself, of order 120, are not solvable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fbam.tasks import kernels

FIVE = 5
NOT_SOLVABLE = 60  # order from which a subgroup of S5 is not solvable
Permutation = tuple[int, ...]


@dataclass(frozen=True)
class Groups:
    """What the transition monoid of one variant contains.

    :param states: running states, halted ones left out: no word leads out of those
    :param maps: different maps that a block can be
    :param sets: classes of sets of five states that are mapped onto each other
    :param order: order of the largest group that permutes one of them; 1 where nothing is permuted
    """

    states: int
    maps: int
    sets: int
    order: int

    @property
    def solvable(self) -> bool:
        """Whether no group on five states is A5 or S5."""
        return self.order < NOT_SOLVABLE


def block_maps(registers: int, reach: int) -> NDArray[np.int16]:
    """The different maps of blocks without exits on the running states, (maps, states), numbered as in `kernels.transition_maps`."""
    jumps = range(1, reach + 1)
    blocks = list(product(range(1, registers + 1), range(2 * registers), jumps, jumps))
    fields = np.array(blocks, np.int16)[:, None]  # (G, 1, 4)
    maps = kernels.transition_maps(fields, np.ones(len(blocks), np.int64), registers, reach)
    return np.unique(maps[:, 0, : reach << registers], axis=0)


def _edges(maps: NDArray[np.int16], sets: list[tuple[int, ...]]) -> list[tuple[int, int, int]]:
    """(set, map, set it is mapped onto) for all maps that keep five states apart."""
    place = {members: number for number, members in enumerate(sets)}
    images = np.sort(maps[:, np.array(sets)], axis=-1)  # (maps, sets, 5)
    kept = (np.diff(images, axis=-1) > 0).all(-1)
    return [(int(at), int(which), place[tuple(images[which, at].tolist())]) for which, at in np.argwhere(kept)]


def generated(generators: Iterable[Permutation]) -> set[Permutation]:
    """The group that permutations of 0 to 4 generate."""
    generators, found = list(generators), {tuple(range(FIVE))}
    waiting = list(found)
    while waiting:
        element = waiting.pop()
        for generator in generators:
            new = tuple(generator[i] for i in element)
            if new not in found:
                found.add(new)
                waiting.append(new)
    return found


def _loops(root: int, edges: dict[int, list[tuple[int, int]]], maps: NDArray[np.int16], sets: list[tuple[int, ...]]) -> set[Permutation]:
    """Schreier's generators of the group on the set `root`: one loop an edge of its class."""
    reached = {root: sets[root]}  # set -> where each member of the root has got to
    waiting, loops = deque([root]), set()
    while waiting:
        at = waiting.popleft()
        for which, to in edges[at]:
            moved = tuple(int(maps[which, state]) for state in reached[at])
            if to not in reached:
                reached[to] = moved
                waiting.append(to)
            loops.add(tuple(reached[to].index(state) for state in moved))
    return loops


def groups(registers: int, reach: int) -> Groups:
    """The groups on five states in the transition monoid of programs with so many registers and jumps of 1 to `reach` blocks."""
    maps = block_maps(registers, reach)
    sets = list(combinations(range(maps.shape[1]), FIVE))
    if not sets:
        return Groups(maps.shape[1], len(maps), 0, 1)
    edges = _edges(maps, sets)
    graph = csr_array((np.ones(len(edges)), ([a for a, _, _ in edges], [b for _, _, b in edges])), shape=(len(sets),) * 2)
    _, label = connected_components(graph, connection="strong")
    inside: dict[int, list[tuple[int, int]]] = {}
    for a, which, b in edges:
        if label[a] == label[b]:
            inside.setdefault(a, []).append((which, b))
    roots = {int(label[a]): a for a in inside}.values()
    return Groups(maps.shape[1], len(maps), len(roots), max((len(generated(_loops(root, inside, maps, sets))) for root in roots), default=1))
