"""Git history -> recording (paper, section 10.1).

Each commit is one stretch of a session: its message is typed, files are moved and removed, created, opened, edited,
saved; modes are set (``fbam.sessions.typist``). A merge is one such stretch against its first parent. After each stretch
the file system that the keys have produced is compared with git's tree; a recording with a difference in it is not
published.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fbam.recording.format import RecordingWriter
from fbam.sessions.edits import Limits
from fbam.sessions.fast import FastHands
from fbam.sessions.hands import Hands
from fbam.sessions.history import Commit, History
from fbam.sessions.layout import layout
from fbam.sessions.report import report
from fbam.sessions.typist import Message, Typist
from fbam.sessions.verify import TreeCheck, check_message

RENDERER = 2
"""Version of layout, glyphs and editor: the same actions show the same frames only under the same one."""


def compile_history(
    history: History,
    destination: Path,
    *,
    rows: int,
    cols: int,
    block_frames: int,
    limits: Limits,
    commit_limit: int = 0,
    message: Message = "first",
    reference: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write the recording of a history.

    :param destination: the ``.fbam`` file; it appears only when every commit has been verified
    :param rows: R, rows of a frame
    :param cols: C, columns of a frame
    :param block_frames: frames a block of the file
    :param limits: what is pasted instead of typed
    :param commit_limit: compile only that many commits, from the oldest on; 0 for all
    :param message: where the message of a commit stands in its stretch: "first", "last" or "none"
    :param reference: press each key on the plain terminal instead of in compiled loops; the recording is the same
    :param on_progress: called after each commit with (commits done, commits to do)
    :returns: see ``fbam.sessions.report.report``
    :raises VerificationError: a commit was not reproduced exactly
    :raises ScreenError: rows or columns out of range
    """
    commits = history.commits[:commit_limit] if commit_limit else history.commits
    layout(rows, cols)  # refuses a size before anything is written
    destination.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "source": history.name, "revision": commits[-1].id, "renderer": RENDERER, "message": message, "limits": asdict(limits)
    }  # fmt: skip
    check = TreeCheck(history, commits)
    with RecordingWriter(destination, rows, cols, block_frames=block_frames, header=header) as writer:
        typist = Typist((Hands if reference else FastHands)(rows, cols, writer, limits), message)
        before: Commit | None = None
        for done, commit in enumerate(commits, 1):
            changes = history.changes(before, commit)
            typist.replay(history, before, commit, changes)
            check.commit(typist.files, commit, changes)
            if message != "none":
                check_message(typist.files, commit)
            writer.mark_commit(commit.id, commit.message)
            before = commit
            if on_progress:
                on_progress(done, len(commits))
        for exclusion in history.exclusions:
            writer.exclude(*exclusion)
    return report(history, commits, typist, destination, check)
