"""The exact solver of logarithmic depth for finite-state jump programs (paper, section 4, and against it).

With a fixed number of registers and jumps of bounded length, a program is a word over a finite automaton: its state is the registers
and the blocks still to skip, or halted. Each block is a map of the states onto themselves, and composing maps is associative,

$$(f_n \\circ \\dots \\circ f_{m+1}) \\circ (f_m \\circ \\dots \\circ f_1) = f_n \\circ \\dots \\circ f_1,$$

so a balanced tree composes all n blocks in ceil(log2 n) rounds, in each of which everything happens at once. This is the counter-example to
the reading that the task needs a number of rounds proportional to n. Where registers grow with the depth, the maps are of size
2^registers and the trick is no longer cheap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fbam.tasks import kernels
from fbam.tasks.frjt import JumpsError, Programs, check

LARGEST = 1 << 14  # states; beyond, a map no longer fits its integers


@dataclass(frozen=True)
class Solved:
    """Halting states (N,), 0 = A and 1 = B; the rounds the solver took; the number of states a map runs over."""

    halts: NDArray[np.int8]
    rounds: int
    states: int


def states_of(registers: int, reach: int) -> int:
    """Number of states: 2^registers * reach, and halted in A or B (18 for two registers and jumps up to 4)."""
    return (reach << registers) + 2


def maps_of(programs: Programs, registers: int = 0, reach: int = 0) -> tuple[NDArray[np.int16], int]:
    """The map of each block, (N, D, S), and the number of states S.

    :param registers: registers to keep states for; 0 = those that occur
    :param reach: farthest jump to keep states for; 0 = the farthest that occurs
    :raises JumpsError: too many registers to list their states
    """
    check(programs)
    registers, reach = max(registers, programs.registers), max(1, reach, int(programs.fields[..., 2:].max()))
    if states_of(registers, reach) > LARGEST:
        raise JumpsError(f"{registers} registers have too many states for a table of maps; use the interpreter `frjt.run`")
    return kernels.transition_maps(programs.fields, programs.depths, registers, reach), states_of(registers, reach)


def compose(later: NDArray[np.int16], earlier: NDArray[np.int16]) -> NDArray[np.int16]:
    """`later` after `earlier`, over the last axis."""
    return np.take_along_axis(later, earlier.astype(np.int64), axis=-1)


def prefix_scan(programs: Programs) -> Solved:
    """Halting states by composing the blocks' maps in a balanced tree."""
    maps, states = maps_of(programs)  # (N, D, S)
    rounds = 0
    while maps.shape[1] > 1:
        pairs = compose(maps[:, 1::2], maps[:, : maps.shape[1] // 2 * 2 : 2])  # (N, D // 2, S)
        maps = np.concatenate([pairs, maps[:, -1:]], axis=1) if maps.shape[1] % 2 else pairs
        rounds += 1
    return Solved((maps[:, 0, 0] - (states - 2)).astype(np.int8), rounds, states)


def serial_states(programs: Programs, registers: int, reach: int) -> NDArray[np.int64]:
    """The state after each block, (N, D), one map after the other: what a scratchpad writes out. As in `maps_of`."""
    maps, _ = maps_of(programs, registers, reach)
    states = np.zeros(maps.shape[:2], np.int64)
    state = np.zeros(len(programs), np.int64)
    for block in range(maps.shape[1]):
        state = maps[np.arange(len(programs)), block, state].astype(np.int64)
        states[:, block] = state
    return states
