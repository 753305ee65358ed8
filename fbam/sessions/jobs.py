"""One history as one job: opened, compiled for each screen, and known to be finished the next time (paper, section 10.1).

With each recording a report file is written: its row, what it cost, and what it was made from, which is revision,
parameters, code and the checksum of the recording. A recording that is there, made from the same, is not made again.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import fbam
from fbam.experiments.files import write_text
from fbam.experiments.source import source_hash
from fbam.recording.format import Recording
from fbam.sessions import compile as compiler
from fbam.sessions.edits import Limits
from fbam.sessions.history import Commit, History, open_history
from fbam.sessions.report import processor_seconds, timed
from fbam.sessions.typist import Message
from fbam.sessions.verify import replay


class Target(NamedTuple):
    """A recording to be made: its file and that of the report, the size of a frame in cells, frames a block of the file."""

    path: Path
    report: Path
    rows: int
    cols: int
    block_frames: int


@dataclass(frozen=True)
class Job:
    """A history and the recordings to be made of it.

    :ivar source: path, address or bundle file
    :ivar revision: branch, tag or commit to stop at; None for the one that is checked out
    :ivar commit_limit: only that many commits, from the oldest on; 0 for all
    :ivar replay_pairs: pairs, and the rest of the last commit, of each finished recording of which the keys are pressed
        again and the frame compared
    """

    source: str
    revision: str | None
    targets: tuple[Target, ...]
    limits: Limits
    commit_limit: int = 0
    message: Message = "first"
    replay_pairs: int = 0


class Done(NamedTuple):
    """A recording that is there: its report, what it cost (as of the compilation), and whether it was there before."""

    row: dict[str, Any]
    timing: dict[str, float]
    reused: bool


OnProgress = Callable[[Target, int, int], None]
"""Called with target, commits done and commits to do."""


def run_job(job: Job, on_progress: OnProgress | None = None) -> list[Done]:
    """Make the recordings of a job, one result a target.

    The clone lives in the system's folder for temporary files until the job is done.

    :raises HistoryError: the source cannot be used
    :raises VerificationError: a commit was not reproduced exactly; its recording is not published
    :raises ScreenError: rows or columns out of range
    """
    with tempfile.TemporaryDirectory(prefix="fbam-") as workspace:
        history = open_history(job.source, job.revision, Path(workspace))
        commits = history.commits[: job.commit_limit] if job.commit_limit else history.commits
        try:
            return [_make(job, target, history, commits, on_progress) for target in job.targets]
        finally:
            history.close()


def _make(job: Job, target: Target, history: History, commits: list[Commit], on_progress: OnProgress | None) -> Done:
    identity = _identity(job, target, commits[-1])
    if done := _finished(target, identity):
        return done
    own = history.afresh()  # its exclusions and processor time are those of this recording
    begun = processor_seconds()
    row = compiler.compile_history(
        own, target.path, rows=target.rows, cols=target.cols, block_frames=target.block_frames, limits=job.limits,
        commit_limit=job.commit_limit, message=job.message,
        on_progress=None if on_progress is None else lambda done, of: on_progress(target, done, of),
    )  # fmt: skip
    own.close()
    timing = timed(row, processor_seconds() - begun)
    if job.replay_pairs:
        row["replayed"] = replay(Recording(target.path), job.replay_pairs)
    stored = {"row": row, "timing": timing, "identity": identity, "sha256": _checksum(target.path)}
    write_text(target.report, json.dumps(stored, indent=1) + "\n")
    return Done(row, timing, False)


def _identity(job: Job, target: Target, last: Commit) -> dict[str, Any]:
    """What the bytes of a recording and its report depend on."""
    sizes = {"rows": target.rows, "cols": target.cols, "block_frames": target.block_frames}
    parameters = {"limits": asdict(job.limits), "commit_limit": job.commit_limit, "message": job.message}
    made_by = {"source": _code(), "zstandard": version("zstandard")}
    return {"revision": last.id} | sizes | parameters | {"replay_pairs": job.replay_pairs} | made_by


@cache
def _code() -> str:
    return source_hash(Path(compiler.__file__), Path(fbam.__file__).resolve().parents[1])


def _finished(target: Target, identity: dict[str, Any]) -> Done | None:
    try:
        stored = json.loads(target.report.read_text("utf-8"))
        if stored["identity"] == identity and stored["sha256"] == _checksum(target.path):
            return Done(stored["row"], stored["timing"], True)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there, or not what this version writes: made again
    return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
