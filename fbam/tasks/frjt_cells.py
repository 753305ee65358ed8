"""What can be said of the jumps task before any model is trained: statistics, baselines and the exact solver, as a grid cell."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fbam.tasks.frjt import JumpsTask, run, statistics
from fbam.tasks.frjt_baselines import accuracies
from fbam.tasks.solvers import LARGEST, prefix_scan, states_of

SPEED_DEPTH = 16  # depth at which the generator's speed is measured


def _at_depth(task: JumpsTask, depth: int, programs: int, seed: int) -> dict:
    rng = np.random.default_rng([seed, depth])
    depths = np.full(programs, depth)
    test = task.sample(rng, depths, "test")
    found = vars(statistics(task.draw(rng, depths))) | {"baselines": accuracies(task.sample(rng, depths, "train"), test)}
    if task.finite and states_of(task.registers, len(task.reach)) <= LARGEST:
        solved = prefix_scan(test)
        found |= {"rounds": solved.rounds, "states": solved.states, "agreement": float((solved.halts == run(test).halts).mean())}
    return found


def _programs_a_second(task: JumpsTask, programs: int) -> float:
    rng, depths = np.random.default_rng(0), np.full(programs, SPEED_DEPTH)
    run(task.draw(rng, depths[:2]))  # compiles
    started = time.process_time()
    run(task.draw(rng, depths))
    return programs / (time.process_time() - started)


def _data_set(task: JumpsTask, deepest: int, programs: int, seed: int) -> dict:
    """Coverage and balance of `programs` programs for each depth from 1 to `deepest`; coverage is the share of all blocks that run."""
    executed = blocks = halted_in_b = 0
    for depth in range(1, deepest + 1):
        runs = run(task.draw(np.random.default_rng([seed, depth]), np.full(programs, depth)))
        executed, blocks, halted_in_b = executed + int(runs.executed.sum()), blocks + runs.executed.size, halted_in_b + int(runs.halts.sum())
    return {"programs": programs, "coverage": executed / blocks, "halting_B": halted_in_b / (programs * deepest)}


def describe(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Statistics, baselines and solver at each depth for one variant of the task, and its data set of all depths up to `data_depth`.

    :param config: `exits`, `registers`, `registers_per_block`, `depths`, `data_depth`, `programs` a depth, `seed`
    :returns: a list of one dict a depth and the data set's statistics; and the programs drawn and run a processor second at depth 16
    """
    task = JumpsTask(config["registers"], config["registers_per_block"], config["exits"])
    found = []
    for done, depth in enumerate(config["depths"], 1):
        found.append(_at_depth(task, depth, config["programs"], config["seed"]))
        tick(done / len(config["depths"]))
    whole = _data_set(task, config["data_depth"], config["programs"], config["seed"])
    return {"depths": found, "data_set": whole}, {"programs_per_cpu_second": _programs_a_second(task, 10 * config["programs"])}
