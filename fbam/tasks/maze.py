"""The maze position tracking task (paper, sections 8.1.2 to 8.1.4).

An agent walks through one fixed maze. A move is an intent (left, right, up or down) and its result: the agent moved, or a wall
left its position unchanged, or, with some probability, the result is withheld. After each move the position is asked for:

    position(t) = position(t - 1) + moved(t) * direction(intent(t))

Where every result is shown this is a sum over time. Where results are withheld, `moved(t)` has to be looked up at
`position(t - 1)`, so the position must be known before the move can be understood. The maze is the same in all walks and so
can be learnt; the true position is a target and never part of an input.

The paper gives the size, 32 x 32, and examples of the text; how its maze was drawn, where walks start and how intents are
chosen are not stated. Ours: a random spanning tree with a share of the other walls opened, the middle cell, uniform intents.

Example: the intents left, left, up, the second one against a wall and the third result withheld, in the paper's notation.

    LEFT, LEFT
    LEFT, UNCHANGED
    UP, WITHHELD
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

MOVES = ("LEFT", "RIGHT", "UP", "DOWN")
DELTAS = np.array([[0, -1], [0, 1], [-1, 0], [1, 0]])  # (4, 2) rows and columns
MOVED, UNCHANGED, WITHHELD = range(3)
ONE_TOKEN_SYMBOLS = 12  # 4 intents x 3 results
TWO_TOKEN_SYMBOLS = 10  # 4 intents, 4 directions moved, unchanged, withheld
PARTS = {"test": (0, 1), "validation": (1, 2), "train": (2, 16)}  # sixteenths of all sequences of intents


class MazeError(ValueError):
    """A maze or a walk that cannot be; the message names the argument."""


@dataclass(frozen=True)
class Maze:
    """A square maze. A cell is `row * size + column`; `step[d, c]` is the cell after move d from c, c itself at a wall."""

    size: int
    step: NDArray[np.int16]  # (4, size^2)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.size**2

    @property
    def start(self) -> int:
        """The cell in which every walk begins, in the middle."""
        return self.size // 2 * self.size + self.size // 2

    @property
    def passages(self) -> int:
        """Number of pairs of neighbours with no wall between them."""
        return int((self.step != np.arange(self.cells)).sum()) // 2


@dataclass(frozen=True)
class Walks:
    """N walks of T moves each."""

    intents: NDArray[np.int8]  # (N, T) index into MOVES
    results: NDArray[np.int8]  # (N, T) MOVED, UNCHANGED or WITHHELD: what a model is shown
    cells: NDArray[np.int16]  # (N, T) cell after each move: the target

    @property
    def withheld_so_far(self) -> NDArray[np.int64]:
        """(N, T) number of withheld results up to and including each move: the paper's depth."""
        return (self.results == WITHHELD).cumsum(axis=1)


def build_maze(size: int, opened: float, seed: int) -> Maze:
    """Draw a maze: a spanning tree of random weights (every cell can be reached), then `opened`, a share of the other walls."""
    if not 2 <= size <= 128 or not 0 <= opened <= 1:
        raise MazeError(f"a maze needs 2 <= size <= 128 and 0 <= opened <= 1, got size {size} and opened {opened}")
    rng = np.random.default_rng(seed)
    cells = np.arange(size**2).reshape(size, size)
    pairs = np.concatenate([np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1),
                            np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])  # (W, 2) neighbours
    weights = 1 + rng.random(len(pairs))
    tree = minimum_spanning_tree(coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(size**2, size**2)).tocsr())
    in_tree = tree[pairs[:, 0], pairs[:, 1]] > 0
    others = np.flatnonzero(~in_tree)
    extra = rng.choice(others, size=round(opened * len(others)), replace=False)
    return maze_of(size, pairs[np.concatenate([np.flatnonzero(in_tree), extra])])


def maze_of(size: int, passages: NDArray[np.integer]) -> Maze:
    """The maze with exactly these passages, (M, 2) pairs of neighbouring cells."""
    step = np.tile(np.arange(size**2, dtype=np.int16), (4, 1))
    for a, b in np.asarray(passages).reshape(-1, 2).tolist():
        difference = np.array(divmod(b, size)) - divmod(a, size)
        forward = np.flatnonzero((difference == DELTAS).all(axis=1))
        if len(forward) != 1:
            raise MazeError(f"passages: cells {a} and {b} are not neighbours in a maze of size {size}")
        step[forward[0], a], step[forward[0] ^ 1, b] = b, a  # opposite moves differ in the lowest bit
    return Maze(size, step)


def walk(maze: Maze, intents: NDArray[np.int8]) -> NDArray[np.int16]:
    """The cell after each move, (N, T), of walks with these intents, (N, T), from the start."""
    cells = np.empty(intents.shape, dtype=np.int16)
    here = np.full(len(intents), maze.start, dtype=np.int16)  # (N,)
    for t in range(intents.shape[1]):
        here = cells[:, t] = maze.step[intents[:, t], here]
    return cells


def part_of(intents: NDArray[np.int8]) -> NDArray[np.uint64]:
    """The sixteenth, (N,) in 0..15, that each sequence of intents belongs to, by a hash of the sequence alone.

    A part of the data draws from its own sixteenths, so no walk of one part ever occurs in another, however many are drawn.
    """
    odd = np.cumprod(np.full(intents.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64))  # (T,) odd multipliers modulo 2^64
    mixed = ((intents.astype(np.uint64) + np.uint64(1)) * odd).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed >> np.uint64(60)


def sample_intents(rng: np.random.Generator, count: int, moves: int, part: str) -> NDArray[np.int8]:
    """(N, T) uniform intents of one part of the data: `train`, `validation` or `test`."""
    if part not in PARTS:
        raise MazeError(f"part {part!r} is none of {', '.join(PARTS)}")
    low, high = PARTS[part]
    found: list[NDArray[np.int8]] = []
    while sum(map(len, found)) < count:
        drawn = rng.integers(0, 4, size=(1 + count * 18 // (high - low), moves), dtype=np.int8)
        place = part_of(drawn)
        found.append(drawn[(place >= low) & (place < high)])
    return np.concatenate(found)[:count]


def sample_withheld(rng: np.random.Generator, count: int, moves: int, withheld: int | list[float]) -> NDArray[np.bool_]:
    """(N, T) which results are withheld: exactly `withheld` in each walk, or each with a probability drawn from a list once a walk."""
    chances = rng.random((count, moves))
    if isinstance(withheld, int):
        if not 0 <= withheld <= moves:
            raise MazeError(f"withheld {withheld} results of a walk of {moves} moves: need between 0 and {moves}")
        return chances.argsort(axis=1).argsort(axis=1) < withheld  # the ranks are a random permutation
    if not withheld or not all(0 <= p <= 1 for p in withheld):
        raise MazeError(f"withheld {withheld}: need at least one probability, each between 0 and 1")
    return chances < rng.choice(withheld, size=(count, 1))


def sample(maze: Maze, rng: np.random.Generator, count: int, moves: int, withheld: int | list[float], part: str) -> Walks:
    """Draw N walks of T moves of one part of the data; `withheld` as in `sample_withheld`."""
    intents = sample_intents(rng, count, moves, part)
    hidden = sample_withheld(rng, count, moves, withheld)
    return show(maze, intents, hidden)


def show(maze: Maze, intents: NDArray[np.int8], hidden: NDArray[np.bool_]) -> Walks:
    """Walk, and show the results but for the hidden ones."""
    cells = walk(maze, intents)
    before = np.concatenate([np.full((len(cells), 1), maze.start, dtype=np.int16), cells[:, :-1]], axis=1)
    results = np.where(hidden, WITHHELD, np.where(cells == before, UNCHANGED, MOVED)).astype(np.int8)
    return Walks(intents, results, cells)


def one_token(walks: Walks) -> NDArray[np.int64]:
    """(N, T) one symbol a move, intent and result together: 4 * result + intent."""
    return 4 * walks.results.astype(np.int64) + walks.intents


def two_tokens(walks: Walks) -> NDArray[np.int64]:
    """(N, 2 T) intent, then result, as in the paper: intents 0..3, directions moved 4..7, unchanged 8, withheld 9."""
    shown = np.choose(walks.results, [4 + walks.intents, np.int8(8), np.int8(9)])
    return np.stack([walks.intents, shown], axis=2).reshape(len(shown), -1).astype(np.int64)


def coordinates(cells: NDArray[np.integer], maze: Maze) -> NDArray[np.int64]:
    """(..., 2) row and column of each cell, counted from the start."""
    rows, columns = np.divmod(cells.astype(np.int64), maze.size)
    return np.stack([rows - maze.start // maze.size, columns - maze.start % maze.size], axis=-1)


def transcript(walks: Walks, index: int) -> list[str]:
    """One walk in the paper's notation, a line a move."""
    pairs = zip(walks.intents[index].tolist(), walks.results[index].tolist(), strict=True)
    return [f"{MOVES[intent]}, {(MOVES[intent], 'UNCHANGED', 'WITHHELD')[result]}" for intent, result in pairs]


def statistics(maze: Maze, walks: Walks) -> dict[str, float]:
    """What walks are like: shares of the moves, and of the cells."""
    results = show(maze, walks.intents, np.zeros(walks.intents.shape, dtype=bool)).results
    hidden = walks.results == WITHHELD
    return {
        "passages": float(maze.passages),
        "walls_open": maze.passages / (2 * maze.size * (maze.size - 1)),
        "unchanged": float((results == UNCHANGED).mean()),
        "withheld": float(hidden.mean()),
        "withheld_unchanged": float((results[hidden] == UNCHANGED).mean()) if hidden.any() else 0.0,
        "cells_visited": float(len(np.unique(walks.cells))),
        "cells_last": float(len(np.unique(walks.cells[:, -1]))),
        "distance_last": float(np.abs(coordinates(walks.cells[:, -1], maze)).sum(axis=1).mean()),
    }
