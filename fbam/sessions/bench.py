"""``fbam bench --only data``: the targets of the data engine, measured (paper, section 10.1).

The compiled loops and the plain reference do the same work on the same commits in one run, and must record the same pairs;
their ratio is the target, because it means something on any machine. The absolute rates stand beside it. All times are
processor seconds of one process, those of its git processes included where git takes part.
"""

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fbam
from fbam.recording.cells import CELL, Frames
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.sessions.compile import compile_history
from fbam.sessions.edits import Limits
from fbam.sessions.history import History, open_history
from fbam.sessions.report import processor_seconds

ROOT = Path(fbam.__file__).resolve().parents[1]
SOURCE = ROOT / "data" / "interpreter.bundle"
SIZE = {"rows": 48, "cols": 160, "limits": Limits()}
BLOCKS = (1024, 4096)
REFERENCE_ACTIONS = 10_000
"""Actions, about, on which the reference is measured."""
READS = 500
"""Random frames read from each recording."""
ROUNDS = 5
"""Compilations of which a rate is the median: one takes half a second, and the next may take half as much again."""
BUFFERS = {"": 64, "_large_array": 1024}
"""Frames of the array that is filled again and again with those that follow, as one who streams does; and of one beyond the
caches; fewer where the recording holds fewer. 64 frames of 48 x 160 are 3.4 MB."""
VOCABULARY = 20_000
"""Tokens at most, as in the paper."""

PARTS = {
    "fbam/sessions/plumbing.py": "reading git",
    "fbam/sessions/history.py": "reading git",
    "fbam/sessions/edits.py": "differences and plan",
    "fbam/sessions/verify.py": "verification",
    "fbam/recording": "encoding and writing",
    "fbam/sessions": "keys and screen",
}
"""What the time spent in a file, and in compiled loops called from there, counts as; the first fitting name."""


def bench(options: argparse.Namespace) -> dict[str, Any]:
    """Measure.

    :param options: ``source``, a git repository or None for the bundle of this project; ``limit_commits``, 0 for all
    :returns: the figures, and "targets" as ``fbam.cli.BENCHES`` says
    """
    with tempfile.TemporaryDirectory(prefix="fbam-bench-") as folder:
        history = open_history(str(options.source or SOURCE), None, Path(folder))
        _compile(history, Path(folder, "warm.fbam"), 3)  # loads the compiled loops
        _compile(history, Path(folder, "warm.fbam"), 1, reference=True)
        figures = _compiling(history, Path(folder), options.limit_commits)
        for frames in BLOCKS:
            figures |= {f"{name}_{frames}": value for name, value in _reading(Path(folder, f"{frames}.fbam")).items()}
        figures["tokens_actions_per_second"] = _tokens(Recording(Path(folder, f"{BLOCKS[0]}.fbam")))
        figures["parts"] = _parts(history, Path(folder, "parts.fbam"), options.limit_commits)
        history.close()
    buffers = {f"decode_array_frames{name}": frames for name, frames in BUFFERS.items()}
    return {"repository": history.name, **figures, **buffers, "targets": _targets(figures)}


def _compiling(history: History, folder: Path, limit: int) -> dict[str, Any]:
    small, large = BLOCKS
    row, seconds = _median(history, folder / f"{small}.fbam", limit)
    large_row, _ = _compile(history, folder / f"{large}.fbam", limit, block_frames=large)
    commits = Recording(folder / f"{small}.fbam").commits
    few = next((number for number, commit in enumerate(commits, 1) if commit.stop >= REFERENCE_ACTIONS), len(commits))
    fast_row, fast = _median(history, folder / "fast.fbam", few)
    plain_row, plain = _compile(history, folder / "plain.fbam", few, reference=True)
    return {
        "commits": row["commits"],
        "actions": row["actions"],
        "actions_per_cpu_second": row["actions"] / seconds,
        "source_bytes_per_cpu_second": row["source_bytes"] / seconds,
        "actions_per_changed_character": row["actions"] / max(1, row["changed_characters"]),
        "pasted_share": row["pasted_share"],
        f"ratio_{small}": row["ratio"],
        f"ratio_{large}": large_row["ratio"],
        "compared_actions": fast_row["actions"],
        "fast_actions_per_cpu_second": fast_row["actions"] / fast,
        "reference_actions_per_cpu_second": plain_row["actions"] / plain,
        "speedup": plain / fast,
        "same_pairs": _same(Recording(folder / "fast.fbam"), Recording(folder / "plain.fbam")),
    }


def _median(history: History, path: Path, limit: int) -> tuple[dict[str, Any], float]:
    """Compile ``ROUNDS`` times; return the report, which is the same each time, and the median of the processor seconds."""
    found = [_compile(history, path, limit) for _ in range(ROUNDS)]
    return found[0][0], statistics.median(seconds for _, seconds in found)


def _compile(
    history: History, path: Path, limit: int, *, block_frames: int = BLOCKS[0], reference: bool = False
) -> tuple[dict[str, Any], float]:
    """Compile from nothing read; return the report and the processor seconds."""
    begun = processor_seconds()
    own = history.afresh()
    row = compile_history(own, path, block_frames=block_frames, commit_limit=limit, reference=reference, **SIZE)
    own.close()
    return row, processor_seconds() - begun


def _same(one: Recording, other: Recording) -> bool:
    """Whether two recordings hold the same frames and actions."""
    starts = range(0, one.n_frames, BLOCKS[0])
    stops = [min(start + BLOCKS[0], one.n_frames) for start in starts]
    return one.actions == other.actions and all(
        one.frames(start, stop).tobytes() == other.frames(start, stop).tobytes() for start, stop in zip(starts, stops)
    )


def _reading(path: Path) -> dict[str, float]:
    """Milliseconds to read one frame anywhere; frames a second that are read one after the other, and that numpy copies."""
    recording = Recording(path)
    numbers = np.random.default_rng(0).integers(0, recording.n_frames, READS)
    recording.gather(numbers[:1])
    seeking = _seconds(lambda: [recording.gather([number]) for number in numbers])
    figures = {"random_access_ms": 1000 * seeking / READS}
    for name, frames in BUFFERS.items():
        out = np.zeros((min(frames, recording.n_frames), recording.rows, recording.cols), dtype=CELL)
        starts = range(0, recording.n_frames - len(out) + 1, len(out))
        read = len(starts) * len(out)
        figures[f"copied_frames_per_second{name}"] = read / _seconds(lambda: [_copy(out) for _ in starts])
        recording = Recording(path)  # no block of which has been read
        figures[f"frames_per_second{name}"] = read / _seconds(lambda: [recording.decode_into(start, out) for start in starts])
    return figures


def _copy(out: Frames) -> None:
    """Write one frame to each place of an array."""
    frames = out.reshape(len(out), -1).view(np.uint8)
    for frame in frames:
        frame[:] = frames[0]


def _tokens(recording: Recording) -> float:
    tokenizer = ActionTokenizer.train([recording.actions], VOCABULARY)
    codes, table = recording.action_codes, recording.action_table
    return len(codes) / _seconds(lambda: tokenizer.encode_codes(codes, table))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _parts(history: History, path: Path, limit: int) -> dict[str, float]:
    """Shares of this process in the time of compiling, by what is done. The profiler makes calls dearer than loops."""
    own, profile = history.afresh(), cProfile.Profile(time.process_time, builtins=False)
    profile.runcall(compile_history, own, path, block_frames=BLOCKS[0], commit_limit=limit, **SIZE)
    own.close()
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own_time, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        name = file.removeprefix(f"{ROOT.as_posix()}/")
        spent[next((part for start, part in PARTS.items() if name.startswith(start)), "libraries")] += own_time
    return {part: seconds / spent.total() for part, seconds in spent.most_common()}


def _targets(figures: dict[str, Any]) -> list[dict[str, Any]]:
    at_least = {
        "speedup": 12, "ratio_1024": 5000, "ratio_4096": 6500, "frames_per_second_1024": 200_000,
        "tokens_actions_per_second": 1_000_000, "same_pairs": True,
    }  # fmt: skip
    below = {"random_access_ms_1024": 1, "random_access_ms_4096": 1}
    targets = [_target(name, figures[name], f">= {bound}", figures[name] >= bound) for name, bound in at_least.items()]
    targets += [_target(name, figures[name], f"< {bound}", figures[name] < bound) for name, bound in below.items()]
    actions = figures["actions_per_changed_character"]
    return [*targets, _target("actions_per_changed_character", actions, "<= 1.3", actions <= 1.3)]


def _target(name: str, measured: float, bound: str, met: bool) -> dict[str, Any]:
    return {"name": name, "measured": measured, "bound": bound, "met": bool(met)}
