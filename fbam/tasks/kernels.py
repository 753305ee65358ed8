"""Compiled loops of the synthetic tasks, in one module because numba's cache follows one source file only.

Programs of the jumps task are an array `fields` (N, D, 4): register negated (0 = none, r + 1 = register r), condition (2 r, or
2 r + 1 where it is negated), and the targets when the condition is true and when it is false: a positive number of blocks
forward, 0 = halt in A, -1 = halt in B. Blocks beyond a program's own depth are zero and never read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

DRAWS = 9  # uniform numbers a block of a jumps program


@njit(cache=True)
def draw_programs(depths, registers, draws, reach, exit_share, paired):
    """Programs from uniform numbers; the slow reference in the tests says the same block by block.

    :param depths: (N,) blocks
    :param registers: (N,) registers
    :param draws: (N, D, 9) numbers in [0, 1)
    :param reach: (K,) cumulative probabilities of a jump by 1, ..., K blocks
    :param exit_share: a block exits early with probability min(1/2, exit_share / depth)
    :param paired: exits come as one target A and the other B; otherwise each target is an exit by itself
    """
    n, longest = draws.shape[:2]
    fields = np.zeros((n, longest, 4), np.int16)
    for i in range(n):
        depth = depths[i]
        p = min(0.5, exit_share / depth)
        for b in range(depth):
            u = draws[i, b]
            fields[i, b, 0] = 1 + int(u[0] * registers[i])
            fields[i, b, 1] = 2 * int(u[1] * registers[i]) + int(u[2] < 0.5)
            left = depth - 1 - b  # blocks ahead of this one
            first, second = u[5] < p, u[6] < p
            if left == 0 or paired:
                first = second = left == 0 or first
            for side in range(2):
                jump = 1 + np.searchsorted(reach, u[3 + side], side="right")
                fields[i, b, 2 + side] = min(jump, left)
            if first:
                fields[i, b, 2] = -int(u[7] < 0.5)
            if second:
                fields[i, b, 3] = -int(u[8] < 0.5)
            if first and second and (paired or left == 0):
                fields[i, b, 3] = -1 - fields[i, b, 2]
    return fields


@njit(cache=True)
def run_programs(fields, depths, registers, start):
    """Run each program from block `start[i]` with all registers 0.

    :returns: halting states (N,), 1 = B; blocks executed (N, D); the state at each block (N, D, 2): whether it is reached
        (0 = reached, k = still k blocks to skip), and the registers as bits before it, both -1 once the program has halted
    """
    n, longest = fields.shape[:2]
    halts = np.zeros(n, np.int8)
    executed = np.zeros((n, longest), np.bool_)
    states = np.full((n, longest, 2), -1, np.int64)
    flags = np.zeros(registers, np.bool_)
    for i in range(n):
        flags[:] = False
        at = start[i]
        while True:
            block = fields[i, at]
            executed[i, at] = True
            states[i, at, 0], states[i, at, 1] = 0, _bits(flags)
            if block[0] > 0:
                flags[block[0] - 1] = not flags[block[0] - 1]
            holds = flags[block[1] // 2] != (block[1] % 2 == 1)
            target = block[2] if holds else block[3]
            if target <= 0:
                halts[i] = -target
                break
            for skipped in range(1, target):
                states[i, at + skipped, 0], states[i, at + skipped, 1] = target - skipped, _bits(flags)
            at += target
    return halts, executed, states


@njit(cache=True)
def _bits(flags):
    bits = 0
    for r in range(min(flags.shape[0], 62)):
        bits |= int(flags[r]) << r
    return bits


@njit(cache=True)
def hash_programs(fields, depths):
    """A 64-bit hash of each program, FNV over its fields and a final mix; equal programs have equal hashes."""
    n = fields.shape[0]
    keys = np.empty(n, np.uint64)
    for i in range(n):
        key = np.uint64(14695981039346656037) ^ np.uint64(depths[i])
        for b in range(depths[i]):
            for f in range(4):
                key = (key ^ np.uint64(fields[i, b, f] + 2)) * np.uint64(1099511628211)
        key ^= key >> np.uint64(32)
        key *= np.uint64(15429895110304909331)
        keys[i] = key ^ (key >> np.uint64(29))
    return keys


@njit(cache=True)
def transition_maps(fields, depths, registers, reach):
    """The map of each block on the finite set of states, for programs whose registers and jumps are bounded.

    State s < 2^registers * reach: registers s % 2^registers, and s // 2^registers blocks still to skip. The last two states are
    halted in A and halted in B. A block beyond the program's depth is the identity.

    :returns: (N, D, S) of int16
    """
    n, longest = fields.shape[:2]
    width = 1 << registers
    halt = width * reach
    maps = np.empty((n, longest, halt + 2), np.int16)
    for i in range(n):
        for b in range(longest):
            for s in range(halt + 2):
                maps[i, b, s] = s if b >= depths[i] or s >= halt else s - width
            if b < depths[i]:
                op, condition = fields[i, b, 0], fields[i, b, 1]
                for flags in range(width):
                    after = flags ^ (1 << (op - 1)) if op > 0 else flags
                    holds = ((after >> (condition // 2)) & 1) != condition % 2
                    target = fields[i, b, 2] if holds else fields[i, b, 3]
                    maps[i, b, flags] = (target - 1) * width + after if target > 0 else halt - target
    return maps


@njit(cache=True)
def flow_shares(fields, depths):
    """Probability of halting in B when each condition is a fair coin, (N,): all that the jumps say without the registers."""
    n, longest = fields.shape[:2]
    shares = np.zeros(n)
    for i in range(n):
        reached = np.zeros(longest)
        reached[0] = 1.0
        for b in range(depths[i]):
            for side in range(2, 4):
                target = fields[i, b, side]
                if target > 0:
                    reached[b + target] += reached[b] / 2
                elif target == -1:
                    shares[i] += reached[b] / 2
    return shares
