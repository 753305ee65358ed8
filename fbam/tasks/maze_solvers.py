r"""Exact solvers of the maze, and predictors that know nothing of it.

For one who knows the maze, the results of the moves say nothing new: the intents alone determine the position. Each intent
is a map of cells to cells, a walk is their composition, and composition is associative:

$$\mathrm{position}(t) = (m_t \circ m_{t-1} \circ \dots \circ m_1)(\mathrm{start})$$

So besides the serial tracker there is an exact solver that composes all maps by a prefix scan in ceil(log2 T) rounds. The
fixed maze is a finite automaton, and no proof says that a parallel model cannot track it; what differs between trained models
is what they learn.

The predictors below them set the scale: what a model scores that has learnt the meaning of the tokens but no wall.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fbam.tasks.maze import DELTAS, MOVED, WITHHELD, Maze, Walks


def track(maze: Maze, intents: NDArray[np.int8]) -> NDArray[np.int16]:
    """The serial tracker: T dependent look-ups. intents: (T,); returns the cell after each move, (T,)."""
    here, cells = maze.start, []
    for intent in intents.tolist():
        here = int(maze.step[intent, here])
        cells.append(here)
    return np.array(cells, dtype=np.int16)


def prefix_maps(maze: Maze, intents: NDArray[np.int8]) -> tuple[NDArray[np.int16], int]:
    """The composition of the maps of all moves up to each one, by a prefix scan (Hillis and Steele 1986).

    intents: (T,). Returns (T, cells), where the walk leads from every cell, and the number of rounds.
    """
    maps = maze.step[intents]  # (T, C)
    reach, rounds = 1, 0
    while reach < len(maps):
        joined = np.take_along_axis(maps[reach:], maps[:-reach], axis=1)  # first the earlier map, then the later
        maps = np.concatenate([maps[:reach], joined])
        reach, rounds = 2 * reach, rounds + 1
    return maps, rounds


def scan(maze: Maze, intents: NDArray[np.int8]) -> tuple[NDArray[np.int16], int]:
    """The parallel solver: the cell after each move, (T,), in ceil(log2 T) rounds, and that number."""
    maps, rounds = prefix_maps(maze, intents)
    return maps[:, maze.start], rounds


def ends_left(maze: Maze, intents: NDArray[np.int8]) -> NDArray[np.int64]:
    """(T,) in how many different cells the walk can be after each move, had it begun anywhere; 1 = the start is forgotten."""
    return np.array([len(np.unique(ends)) for ends in prefix_maps(maze, intents)[0]])


def _sums(walks: Walks, maze: Maze, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N, T) cells by adding up the directions of the moves that count, walls unknown; -1 where that leads out of the maze."""
    place = (DELTAS[walks.intents] * counted[..., None]).cumsum(axis=1)  # (N, T, 2)
    place += np.array(divmod(maze.start, maze.size))
    inside = ((place >= 0) & (place < maze.size)).all(axis=-1)
    return np.where(inside, place[..., 0] * maze.size + place[..., 1], -1)


def assume_moved(walks: Walks, maze: Maze) -> NDArray[np.int64]:
    """(N, T) the naive tracker: a withheld result means moved."""
    return _sums(walks, maze, walks.results != 1)


def assume_stayed(walks: Walks, maze: Maze) -> NDArray[np.int64]:
    """(N, T) the other naive tracker: a withheld result means not moved. Where nothing is withheld this is the exact sum."""
    return _sums(walks, maze, walks.results == MOVED)


def last_known(walks: Walks, maze: Maze) -> NDArray[np.int64]:
    """(N, T) the sum up to the first withheld result, and that cell ever after."""
    known = np.logical_and.accumulate(walks.results != WITHHELD, axis=1)
    return _sums(walks, maze, known & (walks.results == MOVED))


def majority(train: Walks, count: int, maze: Maze) -> NDArray[np.int64]:
    """(N, T) the cell that training walks are in most often after each move, for `count` walks; it sees no input."""
    best = [np.bincount(cells, minlength=maze.cells).argmax() for cells in train.cells.T]
    return np.tile(np.array(best), (count, 1))


def baselines(train: Walks, walks: Walks, maze: Maze) -> dict[str, NDArray[np.int64]]:
    """Every predictor's cells, (N, T), under its name."""
    return {
        "majority": majority(train, len(walks.cells), maze),
        "withheld = moved": assume_moved(walks, maze),
        "withheld = stayed": assume_stayed(walks, maze),
        "last known position": last_known(walks, maze),
    }
