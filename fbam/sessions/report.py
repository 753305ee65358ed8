"""The report of a compiled history: one row of a table, and the sum of several rows (paper, section 10.1).

The caller of the compiler's loop needs

    check = TreeCheck(history, commits)                          # fbam.sessions.verify
    ...                                                          # after each commit: check.commit(files, commit, changes)
    return report(history, commits, typist, destination, check)

Rows hold what is the same wherever and whenever they are computed. Times are added by ``timed``.
"""

import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fbam.recording.exclusions import by_reason
from fbam.sessions.history import Commit, History
from fbam.sessions.verify import TreeCheck

NAIVE_CELL_BYTES = 5
"""Bytes of a cell without compression: a code point of 32 bits and 8 bits of style."""

SUMMED = (
    "commits", "files", "actions", "frames", "compared", "mismatches", "typed_characters", "pasted_characters",
    "source_bytes", "changed_characters", "naive_bytes", "stored_bytes",
)  # fmt: skip


def report(history: History, commits: Sequence[Commit], typist: Any, recording: Path, check: TreeCheck) -> dict[str, Any]:
    """Describe a recording as one row of a table.

    ``compared`` counts the files held against git, summed over the commits; ``files`` the paths of all commits and
    ``source_bytes`` their distinct contents; ``changed_characters`` are those that the differences between commits remove
    and insert; ``naive_bytes`` is the size at five bytes a cell and ``stored_bytes`` that of the file. See ``shares``.
    """
    rows, cols = typist.terminal.frame.shape
    counts = {
        "repository": history.name,
        "revision": commits[-1].id,
        "commits": len(commits),
        "files": len(check.paths),
        "actions": typist.actions,
        "frames": typist.actions,
        "compared": check.compared,
        "mismatches": check.mismatches,
        "exclusions": by_reason(history.exclusions),
        "typed_characters": typist.typed,
        "pasted_characters": typist.pasted,
        "source_bytes": sum(map(history.size, check.contents)),
        "changed_characters": typist.changed,
        "naive_bytes": typist.actions * rows * cols * NAIVE_CELL_BYTES,
        "stored_bytes": recording.stat().st_size,
    }
    return counts | shares(counts)


def shares(counts: dict[str, Any]) -> dict[str, float]:
    """What follows from the counts.

    ``pasted_share`` is that of the characters typed and pasted; ``ratio`` is naive over stored bytes.
    ``actions_per_changed_character`` and ``stored_per_source_byte`` keep rate and ratio honest: a planner that wastes keys
    would look fast and dense.
    """
    written = counts["typed_characters"] + counts["pasted_characters"]
    return {
        "pasted_share": counts["pasted_characters"] / max(1, written),
        "actions_per_changed_character": counts["actions"] / max(1, counts["changed_characters"]),
        "ratio": counts["naive_bytes"] / counts["stored_bytes"],
        "stored_per_source_byte": counts["stored_bytes"] / max(1, counts["source_bytes"]),
    }


def processor_seconds() -> float:
    """Processor seconds of this process and of the git processes that it has waited for; finer than the ticks of `os.times`."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(row: dict[str, Any], cpu_seconds: float) -> dict[str, float]:
    """Processor seconds of compiling, those of git included, and the rates that follow."""
    return {
        "cpu_seconds": cpu_seconds,
        "actions_per_cpu_second": row["actions"] / cpu_seconds,
        "source_bytes_per_cpu_second": row["source_bytes"] / cpu_seconds,
    }


def total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The report over several recordings: the counts summed, and what follows from them; without rows the counts alone."""
    counts: dict[str, Any] = {"repositories": len(rows)} | {name: sum(row[name] for row in rows) for name in SUMMED}
    exclusions: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "bytes": 0})
    for row in rows:
        for reason, number in row["exclusions"].items():
            for unit in ("count", "bytes"):
                exclusions[reason][unit] += number[unit]
    counts["exclusions"] = dict(sorted(exclusions.items()))
    return counts | shares(counts) if rows else counts
