"""Git history -> recording (paper, section 10.1).

Each commit is one stretch of a session: files are moved and removed, created, opened, edited, saved; modes are set; the
stretch ends with ``vcs commit -m`` and the real message. A merge is one such stretch against its first parent. After
each stretch the file system that the keys have produced is compared with git's tree; a recording with a difference in it
is not published.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fbam.recording.format import RecordingWriter
from fbam.sessions.edits import Limits
from fbam.sessions.history import Commit, Exclusion, History
from fbam.sessions.screen import Terminal
from fbam.sessions.typist import Typist
from fbam.sessions.verify import check_commit

NAIVE_CELL_BYTES = 5
"""Bytes of a cell without compression: a code point of 32 bits and 8 bits of style."""


def compile_history(
    history: History,
    destination: Path,
    *,
    rows: int,
    cols: int,
    block_frames: int,
    limits: Limits,
    commit_limit: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write the recording of a history.

    :param destination: the ``.fbam`` file; it appears only when every commit has been verified
    :param rows: R, rows of a frame
    :param cols: C, columns of a frame
    :param block_frames: frames a block of the file
    :param limits: what is pasted instead of typed
    :param commit_limit: compile only that many commits, from the oldest on; 0 for all
    :param on_progress: called after each commit with (commits done, commits to do)
    :returns: see ``report``, with ``compared``, the files held against git after each commit, ``mismatches``, those that
        differed, ``files``, the paths of all commits, and ``source_bytes``, their distinct contents
    :raises VerificationError: a commit was not reproduced exactly
    :raises ScreenError: rows or columns out of range
    """
    commits = history.commits[:commit_limit] if commit_limit else history.commits
    terminal = Terminal(rows, cols)
    destination.parent.mkdir(parents=True, exist_ok=True)
    header = {"source": history.name, "revision": commits[-1].id}
    contents: dict[tuple[str, str], None] = {}  # (path, oid)
    with RecordingWriter(destination, rows, cols, block_frames=block_frames, header=header) as writer:
        typist = Typist(terminal, writer, limits)
        before: Commit | None = None
        compared = equal = 0
        for done, commit in enumerate(commits, 1):
            goal = history.files(commit)
            typist.replay(history, before, commit, goal)
            compared += len(goal)
            equal += check_commit(terminal.files, goal, commit, history)
            writer.mark_commit(commit.id, commit.message)
            contents |= dict.fromkeys((path, entry.oid) for path, entry in goal.items())
            before = commit
            if on_progress:
                on_progress(done, len(commits))
    sources = {
        "compared": compared,
        "mismatches": compared - equal,
        "files": len({path for path, _ in contents}),
        "source_bytes": sum(map(history.size, {oid for _, oid in contents})),
    }
    return report(history, commits, typist, destination) | sources


def report(history: History, commits: list[Commit], typist: Typist, recording: Path) -> dict[str, Any]:
    """Describe a recording as one row of a table.

    ``pasted_share`` is that of the characters typed and pasted; ``changed_characters`` are those the differences remove
    and insert; ``naive_bytes`` is the size at five bytes a cell, ``stored_bytes`` that of the file, and ``ratio`` naive
    over stored.
    """
    rows, cols = typist.terminal.frame.shape
    naive, stored = typist.actions * rows * cols * NAIVE_CELL_BYTES, recording.stat().st_size
    return {
        "repository": history.name,
        "revision": commits[-1].id,
        "commits": len(commits),
        "actions": typist.actions,
        "frames": typist.actions,
        "exclusions": _by_reason(history.exclusions),
        "pasted_share": typist.pasted / (typist.typed + typist.pasted),
        "changed_characters": typist.changed,
        "actions_per_changed_character": typist.actions / max(1, typist.changed),
        "naive_bytes": naive,
        "stored_bytes": stored,
        "ratio": naive / stored,
    }


def _by_reason(exclusions: list[Exclusion]) -> dict[str, dict[str, int]]:
    """Count and bytes of what was left out, by reason."""
    table: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "bytes": 0})
    for exclusion in exclusions:
        table[exclusion.reason]["count"] += 1
        table[exclusion.reason]["bytes"] += exclusion.size
    return dict(sorted(table.items()))
