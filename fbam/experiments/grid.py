"""A grid of independent cells, computed by a pool of processes and resumed where it stopped.

A cell is a configuration (a flat dict of JSON values) given to one function. Its folder is named by the hash of the
configuration, of the code the function runs on and of the library versions, and lies outside dvc's outs, so finished
cells survive a crash, a changed grid and dvc's clean-up. The function may keep checkpoints in its folder. A lock makes
sure that no cell is ever computed twice at the same time.
"""

from __future__ import annotations

import hashlib
import inspect
import multiprocessing
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from fbam.experiments.allocator import keep_freed_memory
from fbam.experiments.files import canonical_json, read_json, write_json, write_text
from fbam.experiments.lifeline import die_with_parent
from fbam.experiments.progress import Progress
from fbam.experiments.source import source_hash

ROOT = Path(__file__).resolve().parents[2]

# (configuration, folder of the cell, report of the finished share) -> (result, measured times and memory)
CellFunction = Callable[[dict, Path, Callable[[float], None]], tuple[dict, dict]]


class GridError(RuntimeError):
    """One or more cells failed; the others are finished and kept."""


@dataclass(frozen=True)
class Outcome:
    """A finished cell: `result` is a function of the configuration alone, `measured` depends on the machine."""

    config: dict
    result: dict
    measured: dict


def cell_folders(function: CellFunction, configs: Sequence[dict], root: Path) -> list[Path]:
    """`root`/<16 hexadecimal digits of configuration, code and library versions> for each cell of a grid."""
    code = {  # the same for all cells, and slow to find
        "function": f"{function.__module__}:{function.__qualname__}",
        "source": source_hash(Path(inspect.getfile(function)), ROOT),
        "versions": {name: version(name) for name in ("numpy", "torch")} | {"python": platform.python_version()},
    }
    return [Path(root) / hashlib.sha256(canonical_json(code | {"config": config}).encode()).hexdigest()[:16] for config in configs]


def cell_folder(function: CellFunction, config: dict, root: Path) -> Path:
    """Folder of a single cell."""
    (folder,) = cell_folders(function, [config], root)
    return folder


@contextmanager
def cell_lock(folder: Path) -> Iterator[None]:
    """Hold the cell alone. The lock is the operating system's: it ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    owner = folder / "owner"
    try:
        with FileLock(folder / "lock", timeout=0):
            write_text(owner, f"{os.getpid()}\n")
            yield
    except Timeout as error:
        pid = owner.read_text().strip() if owner.exists() else "unknown"
        raise GridError(f"{folder} is being computed by process {pid}; wait for it or stop it, then run again") from error


def _compute(function: CellFunction, config: dict, folder: Path, tick: Callable[[float], None]) -> None:
    """Compute one cell unless it is there already; its result is written last, in one rename."""
    with cell_lock(folder):
        if (folder / "result.json").exists():
            return
        write_json(folder / "config.json", config)
        result, measured = function(config, folder, tick)
        write_json(folder / "result.json", {"result": result, "measured": measured})


_ticks = None  # the queue of this worker, set when it starts


def _start_worker(ticks: multiprocessing.SimpleQueue) -> None:
    global _ticks
    die_with_parent()
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    _ticks = ticks


def _work(function: CellFunction, config: dict, folder: Path) -> None:
    try:
        _compute(function, config, folder, lambda share: _ticks.put((str(folder), share)))
    except Exception:
        write_text(folder / "error.txt", traceback.format_exc())
        raise


def _context(function: CellFunction) -> multiprocessing.context.BaseContext:
    """How workers start: on Linux forked from a server that has imported the function's module, elsewhere from nothing.

    Importing torch takes seconds; the server does it once for all workers and grids of a process. It starts as a new
    process, so nothing of its parent but the environment is in it.
    """
    if not sys.platform.startswith("linux"):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fbam.experiments.nursery", function.__module__])
    return context


def _watch(futures: dict[Future, Path], ticks, shares: dict[Path, float], costs: dict[Path, float], bar: Progress) -> None:
    """Turn the workers' ticks into progress until every future is done."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
        while not ticks.empty():
            folder, share = ticks.get()
            shares[Path(folder)] = share
        shares.update({futures[future]: 1.0 for future in done})
        bar(sum(costs[folder] * share for folder, share in shares.items()))


def _first_lines(failed: Sequence[tuple[dict, Path, BaseException]]) -> str:
    return "; ".join(f"{type(error).__name__}: {error} (see {folder / 'error.txt'})" for _, folder, error in failed[:3])


def run_grid(
    function: CellFunction,
    configs: Sequence[dict],
    root: Path,
    *,
    label: str = "cells",
    cost: Callable[[dict], float] = lambda config: 1.0,
    workers: int | None = None,
) -> list[Outcome]:
    """Compute every cell that is not there yet and return all of them in the order of `configs`.

    `cost` is an estimate in any unit: dear cells start first and the time left is weighed by it. `workers` defaults to
    the number of processors. Raises GridError when cells failed, after all others are finished.
    """
    folders = cell_folders(function, configs, root)
    costs = {folder: float(cost(config)) for folder, config in zip(folders, configs)}
    missing = {f: c for f, c in zip(folders, configs) if not (f / "result.json").exists()}
    if missing:
        _compute_all(function, missing, costs, label, min(workers or os.cpu_count() or 1, len(missing)))
    outcomes = []
    for folder, config in zip(folders, configs):
        stored = read_json(folder / "result.json")
        outcomes.append(Outcome(config, stored["result"], stored["measured"]))
    return outcomes


def _compute_all(function: CellFunction, missing: dict[Path, dict], costs: dict[Path, float], label: str, workers: int) -> None:
    context = _context(function)
    ticks = context.SimpleQueue()
    shares = {folder: 1.0 for folder in costs if folder not in missing}
    finished = sum(costs[folder] for folder in shares)
    bar = Progress(label, sum(costs.values()), start=finished)
    order = sorted(missing, key=lambda folder: -costs[folder])
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(ticks,)) as pool:
        futures = {pool.submit(_work, function, missing[folder], folder): folder for folder in order}
        try:
            _watch(futures, ticks, shares, costs, bar)
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            raise
    failed = [(missing[folder], folder, future.exception()) for future, folder in futures.items() if future.exception()]
    if failed:
        raise GridError(f"{len(failed)} of {len(missing)} cells failed: {_first_lines(failed)}")

