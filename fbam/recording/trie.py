"""Greedy cutting of millions of actions: longest matches on a trie, for all places at once (paper, section 10.1).

The trie is two sorted arrays. Nodes are numbered level by level, so the edges, as

    parent * symbols + symbol,

are in ascending order, and the edge at place k leads to node k + 1. A step down from many nodes is one binary search.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

SEQUENCES = 0x110000
"""Codes from here on are actions of several characters; those below are code points."""

CHUNK = 1 << 16
"""Places looked at together: what they need stays in the processor's cache."""

NONE = -1


class Trie:
    """Spellings, and for each the id of its token: ``first`` and on.

    :param spellings: actions of each token; of two equal ones the later counts
    """

    def __init__(self, spellings: Sequence[Sequence[str]], first: int) -> None:
        symbols = dict.fromkeys(action for spelling in spellings for action in spelling)
        self._symbol = {action: number for number, action in enumerate(symbols)}
        characters = {ord(action): number for action, number in self._symbol.items() if len(action) == 1}
        self._of_character = np.full(max(characters, default=0) + 2, NONE)
        """Symbol of each code point, up to one beyond the largest that is a symbol."""
        self._of_character[list(characters)] = list(characters.values())
        self._edges, self._token = self._number_nodes(spellings, first)
        self._depth = max(map(len, spellings), default=0)

    def _number_nodes(self, spellings: Sequence[Sequence[str]], first: int) -> tuple[npt.NDArray, npt.NDArray]:
        """Edges, ascending, with an impossible one at the end; and the token that ends at each node, or ``NONE``."""
        root: dict[int, dict] = {}
        ends: dict[int, int] = {}  # id of a node's dict -> token
        for token, spelling in enumerate(spellings, first):
            node = root
            for action in spelling:
                node = node.setdefault(self._symbol[action], {})
            ends[id(node)] = token
        nodes, edges = [root], []
        for number, node in enumerate(nodes):  # grows on the way
            for symbol in sorted(node):
                nodes.append(node[symbol])
                edges.append(number * len(self._symbol) + symbol)
        tokens = [ends.get(id(node), NONE) for node in nodes]
        return np.array([*edges, np.iinfo(np.int64).max]), np.array(tokens)

    def cut(self, codes: npt.NDArray[np.int32], table: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Cut greedily from the front: where the last match ends the longest one begins.

        :param codes: (n,) actions
        :param table: actions of several characters, by code - ``SEQUENCES``
        :returns: (c,) places at which a match begins, (c,) its token, or ``NONE`` for one action without a token
        """
        symbols = self._of_character[np.minimum(codes, len(self._of_character) - 1)]  # (n,)
        others = np.array([self._symbol.get(action, NONE) for action in table], dtype=np.int64)
        sequences = codes >= SEQUENCES
        symbols[sequences] = others[codes[sequences] - SEQUENCES]
        starts, tokens = [], []
        at = 0
        while at < len(codes):
            token, length = self._matches(symbols, at, min(at + CHUNK, len(codes)))
            places = np.fromiter(_follow(length.tolist()), dtype=np.int64)
            starts.append(places + at)
            tokens.append(token[places])
            at = int(starts[-1][-1] + length[places[-1]])
        nothing = [np.empty(0, dtype=np.int64)]
        return np.concatenate(starts or nothing), np.concatenate(tokens or nothing)

    def _matches(self, symbols: npt.NDArray[np.int64], start: int, stop: int) -> tuple[npt.NDArray, npt.NDArray]:
        """Token and length of the longest match at each place from ``start`` to ``stop`` - 1; ``NONE`` and 1 without one."""
        token, length = np.full(stop - start, NONE, dtype=np.int64), np.ones(stop - start, dtype=np.int64)
        places, nodes = np.arange(start, stop), np.zeros(stop - start, dtype=np.int64)
        for depth in range(1, self._depth + 1):
            inside = places + depth <= len(symbols)
            places, nodes = places[inside], nodes[inside]
            symbol = symbols[places + depth - 1]
            wanted = np.where(symbol == NONE, NONE, nodes * len(self._symbol) + symbol)
            edge = np.searchsorted(self._edges, wanted)
            found = self._edges[edge] == wanted
            places, nodes = places[found], edge[found] + 1
            if not len(places):
                break
            ends = self._token[nodes]
            whole = ends != NONE
            token[places[whole] - start] = ends[whole]
            length[places[whole] - start] = depth
        return token, length


def _follow(lengths: list[int]) -> Iterator[int]:
    """The places reached from 0 by the length at each."""
    at = 0
    while at < len(lengths):
        yield at
        at += lengths[at]
