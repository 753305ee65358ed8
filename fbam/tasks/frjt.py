"""The forward-referencing jumps task, FRJT (paper, sections 4 and 8.1.1, figure 1).

A program is a list of blocks. Each block negates a register, tests a register and jumps forward to one of two targets, a later
block or the end; it halts in A or in B, and a model must say in which. Registers start at 0, and as jumps only go forward, a
program runs at most as many blocks as it has. Its depth d is its number of blocks (the paper counts labels, one a block).

The paper leaves the instructions and the exits open. Here exits are *single* (each target by itself may be an exit, the closest
to the paper's text, which lets shortcuts in) or *paired* (an exit block sends one side to A and the other to B in random order, so
that jumps without registers say nothing). With a fixed number of registers the task is a finite automaton; with
`registers_per_block` the registers grow with the depth and programs can evaluate circuits (fbam/tasks/circuits.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fbam.tasks import kernels

Exits = Literal["paired", "single"]
Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
HALT_A, HALT_B = 0, -1
SHARES = 16  # of all programs, 1 part is held out as test set and 1 part as validation set
MIN_HELD_OUT_DEPTH = 2  # there are only 16 programs of one block with two registers


class JumpsError(ValueError):
    """Programs or a setting of the jumps task that cannot be; the message says what would be right."""


@dataclass(frozen=True)
class Programs:
    """N programs.

    :param fields: (N, D, 4) int16: register negated (0 none, r + 1), condition (2 r + negated), target if true, target if false;
        targets count blocks forward, `HALT_A` and `HALT_B` end the run
    :param depths: (N,) blocks of each program; blocks beyond are zero
    """

    fields: NDArray[np.int16]
    depths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.depths)

    def __getitem__(self, chosen: NDArray | slice) -> Programs:
        return Programs(self.fields[chosen], self.depths[chosen])

    def keys(self) -> NDArray[np.uint64]:
        """A hash a program, (N,); equal programs have equal hashes, whatever they are padded to."""
        return kernels.hash_programs(self.fields, self.depths)

    @property
    def registers(self) -> int:
        """One more than the highest register that occurs."""
        return int(max(self.fields[..., 0].max(), self.fields[..., 1].max() // 2 + 1))


@dataclass(frozen=True)
class Runs:
    """What running N programs gives.

    :param halts: (N,) int8, 0 = A and 1 = B
    :param executed: (N, D) bool, the blocks that ran
    :param states: (N, D, 2) before each block: blocks still to skip (0 = it runs), registers as bits; -1 after the halt
    """

    halts: NDArray[np.int8]
    executed: NDArray[np.bool_]
    states: NDArray[np.int64]


def check(programs: Programs) -> None:
    """Raise JumpsError unless every program halts: targets lie ahead and the last block has exits only."""
    n, longest, _ = programs.fields.shape
    block = np.arange(longest)
    inside = block < programs.depths[:, None]  # (N, D)
    ahead = programs.depths[:, None] - 1 - block
    targets = programs.fields[..., 2:]
    if (programs.depths < 1).any() or (programs.depths > longest).any():
        raise JumpsError(f"depths must lie between 1 and {longest}, the blocks given")
    if (inside[..., None] & ((targets > ahead[..., None]) | (targets < HALT_B))).any():
        raise JumpsError("a target lies beyond the last block: targets are 1 to the blocks left, 0 (halt in A) or -1 (halt in B)")
    if (inside & ((programs.fields[..., 0] < 0) | (programs.fields[..., 1] < 0))).any():
        raise JumpsError("registers are counted from 0")


def run(programs: Programs, start: NDArray[np.int64] | None = None) -> Runs:
    """Run programs one block after the other, from their first block or from block `start`, (N,), with registers 0."""
    check(programs)
    start = np.zeros(len(programs), np.int64) if start is None else start
    return Runs(*kernels.run_programs(programs.fields, programs.depths, programs.registers, start))


@dataclass(frozen=True)
class JumpsTask:
    """How programs are drawn.

    A program of three blocks over two registers f0 and f1, both 0 at first, and its run::

        fields = [[1, 0, 2, 1],     block 1: negate f0; if f0 skip one block, else go on   f0 = 1: jumps to block 3
                  [2, 2, 0, -1],    block 2: negate f1; if f1 halt in A, else in B         skipped
                  [2, 3, 0, -1]]    block 3: negate f1; if not f1 halt in A, else in B     f1 = 1: halts in B

    :param registers: registers of a program of any depth
    :param registers_per_block: a deeper program has floor(this * depth) registers where that is more
    :param exits: paired (one side A, the other B) or single (the paper's)
    :param reach: probability of a jump by 1, 2, ... blocks; jumps beyond the last block go to the last block
    :param exit_share: a block (paired) or a target (single) is an exit with probability min(1/2, exit_share / depth)
    """

    registers: int = 2
    registers_per_block: float = 0.0
    exits: Exits = "paired"
    reach: tuple[float, ...] = (0.62, 0.23, 0.10, 0.05)
    exit_share: float = 1.0

    def __post_init__(self) -> None:
        if self.registers < 1 or self.registers_per_block < 0 or self.exit_share < 0:
            raise JumpsError("registers must be at least 1, registers_per_block and exit_share at least 0")
        if self.exits not in ("paired", "single"):
            raise JumpsError(f"exits {self.exits!r} is unknown; use paired or single")
        if not self.reach or min(self.reach) < 0 or abs(sum(self.reach) - 1) > 1e-9:
            raise JumpsError(f"reach {self.reach} must be probabilities that add up to 1")

    @property
    def finite(self) -> bool:
        """Whether one finite automaton runs programs of every depth."""
        return self.registers_per_block == 0

    def registers_at(self, depth: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Registers of programs of these depths."""
        return np.maximum(self.registers, np.floor(self.registers_per_block * np.asarray(depth)).astype(np.int64))

    def draw(self, rng: np.random.Generator, depths: Sequence[int] | NDArray[np.int64]) -> Programs:
        """One program for each depth, from all there are."""
        depths = np.asarray(depths, np.int64)
        if depths.size == 0 or depths.min() < 1:
            raise JumpsError("programs have at least one block")
        draws = rng.random((depths.size, int(depths.max()), kernels.DRAWS), dtype=np.float32)
        edges = np.cumsum(np.asarray(self.reach, np.float64))[:-1]
        paired = self.exits == "paired"
        fields = kernels.draw_programs(depths, self.registers_at(depths), draws, edges, self.exit_share, paired)
        return Programs(fields, depths)

    def sample(self, rng: np.random.Generator, depths: Sequence[int] | NDArray[np.int64], split: Split) -> Programs:
        """One program for each depth from one split. A program's hash decides its split, so no two splits share a program."""
        depths = np.asarray(depths, np.int64)
        if split != "train" and depths.min() < MIN_HELD_OUT_DEPTH:
            raise JumpsError(f"held-out programs have at least {MIN_HELD_OUT_DEPTH} blocks; there are too few of one block to divide")
        programs = self.draw(rng, depths)
        missing = np.flatnonzero(split_of(programs.keys()) != split)
        while missing.size:
            fresh = self.draw(rng, depths[missing])
            programs.fields[missing, : fresh.fields.shape[1]] = fresh.fields
            missing = missing[split_of(fresh.keys()) != split]
        return programs


def split_of(keys: NDArray[np.uint64]) -> NDArray[np.str_]:
    """The split of each program by its hash, (N,): of 16 equal parts one is test, one validation, the others training."""
    return np.array(["test", "validation", *["train"] * (SHARES - 2)])[(keys % np.uint64(SHARES)).astype(np.int64)]


@dataclass(frozen=True)
class Statistics:
    """Shares over a sample of programs of one depth."""

    depth: int
    n: int
    coverage: float  # of the blocks, those that run
    halting_B: float
    early_exits: float  # programs that halt before their last block
    equal_targets: float  # of the blocks that run and do not exit, those whose targets are the same block: there the test decides nothing
    duplicates: float  # programs that stand in the sample already


def statistics(programs: Programs) -> Statistics:
    """Statistics of a sample of one depth."""
    if np.unique(programs.depths).size != 1:
        raise JumpsError("statistics are taken of programs of one depth")
    runs, depth, n = run(programs), int(programs.depths[0]), len(programs)
    yes, no = programs.fields[..., 2], programs.fields[..., 3]
    jumping = runs.executed & ((yes > 0) | (no > 0))
    return Statistics(
        depth=depth, n=n, coverage=float(runs.executed.sum() / (n * depth)), halting_B=float(runs.halts.mean()),
        early_exits=float(1 - runs.executed[:, depth - 1].mean()),
        equal_targets=float((jumping & (yes == no)).sum() / max(1, jumping.sum())), duplicates=1 - np.unique(programs.keys()).size / n,
    )
