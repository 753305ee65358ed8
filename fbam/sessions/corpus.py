"""Section 10.1: compile many histories side by side.

dask.distributed spreads them, one history a task, over the processes of this machine or over the cluster whose scheduler
is named; there, all machines see the sources and the folder of the recordings under the same paths. A history that cannot
be compiled does not lose the others. A single history is compiled in this process: a cluster takes seconds to start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fbam.sessions.edits import Limits
from fbam.sessions.history import HistoryError, repository_name
from fbam.sessions.jobs import Done, Job, Target, run_job
from fbam.sessions.typist import Message

TOPIC = "fbam-progress"
"""Events of the workers: (name of a recording, commits done, commits to do)."""

MakeProgress = Callable[[str, int], Callable[[int, int], None]]
"""Makes a progress bar from a label and a total; the bar is called with the commits done and to do."""


class CorpusError(ValueError):
    """Histories that could not be compiled; the others were."""


class Outcome(NamedTuple):
    """What became of a job: its recordings, or the error that stopped it."""

    job: Job
    done: list[Done]
    error: BaseException | None


def run_jobs(jobs: Sequence[Job], progress: MakeProgress, *, scheduler: str | None = None) -> Iterator[Outcome]:
    """Run each job, whatever becomes of the others, and yield the outcomes as they come.

    :param scheduler: address of a dask scheduler; None for this machine: in this process if the job is the only one
    :raises CorpusError: the scheduler cannot be reached
    """
    if scheduler is None and len(jobs) == 1:
        yield _alone(jobs[0], progress)
    elif jobs:
        yield from _side_by_side(jobs, progress, scheduler)


def _alone(job: Job, progress: MakeProgress) -> Outcome:
    bars = _Bars(progress)
    try:
        return Outcome(job, run_job(job, lambda target, done, of: bars(_label(target), done, of)), None)
    except Exception as error:  # one of many errors of one of many histories: the caller decides
        return Outcome(job, [], error)


def _side_by_side(jobs: Sequence[Job], progress: MakeProgress, scheduler: str | None) -> Iterator[Outcome]:
    from distributed import Client, LocalCluster, as_completed  # takes a second to import: only where it is used

    try:
        cluster = scheduler or LocalCluster(
            n_workers=min(os.cpu_count() or 1, len(jobs)), threads_per_worker=1, dashboard_address=":0", silence_logs=50
        )
        client = Client(cluster, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CorpusError(f"no dask scheduler answers at {scheduler}: {error}") from error
    try:
        bars = _Bars(progress)
        client.subscribe_topic(TOPIC, lambda event: bars(*event[1]))
        futures = {client.submit(_on_worker, job, pure=False): job for job in jobs}
        for future in as_completed(futures, loop=client.loop):
            error = future.exception()
            yield Outcome(futures[future], [] if error else future.result(), error)
    finally:
        client.close()
        if not isinstance(cluster, str):
            cluster.close()


def _on_worker(job: Job) -> list[Done]:
    from distributed import get_worker

    worker = get_worker()

    def tell(target: Target, done: int, of: int) -> None:
        if done == of or done % max(1, of // 100) == 0:
            worker.log_event(TOPIC, (_label(target), done, of))

    return run_job(job, tell)


class _Bars:
    """A progress bar a recording, made when the first commit is done."""

    def __init__(self, make: MakeProgress) -> None:
        self._make, self._bars = make, dict[str, Callable[[int, int], None]]()

    def __call__(self, label: str, done: int, of: int) -> None:
        if label not in self._bars:
            self._bars[label] = self._make(label, of)
        self._bars[label](done, of)


def _label(target: Target) -> str:
    return f"{target.path.stem}, {target.rows} x {target.cols}"


def check_names(sources: Sequence[str]) -> list[str]:
    """The names of the sources.

    :raises HistoryError: a source is not there, or two have the same name and so the same recording
    """
    names = [repository_name(source) for source in sources]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise HistoryError(f"two sources have the same name {twice!r}: rename one, or compile them into different folders")
    return names


def located(source: str, root: Path) -> str:
    """A URL or absolute path as it is; a relative path seen from the project root, wherever the process runs."""
    return source if "://" in source or Path(source).is_absolute() else str(root / source)


def compile_corpus(
    repositories: list[dict],
    screens: dict[str, dict],
    root: Path,
    *,
    limits: Limits,
    commit_limit: int,
    progress: MakeProgress,
    message: Message = "first",
    scheduler: str | None = None,
    replay_pairs: int = sys.maxsize,
) -> list[dict]:
    """Compile each {source, revision} once for each named screen {rows, columns, block_frames}.

    The recordings are `root`/build/recordings/<screen>/<name>.fbam. Returns one {"row": report, "timing": processor
    seconds of compiling and rates} a recording, in the order of the arguments; `replayed` counts the frames, all or those of
    the commits of the first `replay_pairs`, that are decoded and compared with the screen that the keys make again. Raises HistoryError for a source that is not there and for two
    of one name, CorpusError naming each history that could not be compiled, after all others are.
    """
    sources = [located(repository["source"], root) for repository in repositories]
    jobs = [
        Job(source, repository["revision"], _targets(name, screens, root), limits, commit_limit, message, replay_pairs)
        for name, source, repository in zip(check_names(sources), sources, repositories)
    ]
    outcomes = {outcome.job: outcome for outcome in run_jobs(jobs, progress, scheduler=scheduler)}
    if failed := [outcomes[job] for job in jobs if outcomes[job].error]:
        raise CorpusError("; ".join(f"{outcome.job.source}: {outcome.error}" for outcome in failed))
    return [
        {"row": {"screen": screen, **size, **done.row}, "timing": done.timing}
        for job in jobs
        for (screen, size), done in zip(screens.items(), outcomes[job].done)
    ]


def _targets(name: str, screens: dict[str, dict], root: Path) -> tuple[Target, ...]:
    build = root / "build"
    return tuple(
        Target(
            build / "recordings" / screen / f"{name}.fbam", build / "cells" / "corpus" / screen / f"{name}.json",
            size["rows"], size["columns"], size["block_frames"],
        )
        for screen, size in screens.items()
    )  # fmt: skip
