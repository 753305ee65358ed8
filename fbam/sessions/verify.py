"""Two checks that nothing was lost (paper, section 10.1: the assertion that "has never fired").

After each commit the file system that the keystrokes have produced must be git's tree, path by path,

    {path: (mode, SHA-1 of the replayed bytes)} = {path: (mode, oid)},

without what the history excludes. And a finished recording, pressed again key by key, must show the frames it stores.
"""

from collections.abc import Mapping

from fbam.recording.format import Recording
from fbam.sessions.files import FileSystem, decode
from fbam.sessions.history import Commit, Entry, History
from fbam.sessions.screen import Terminal

CHUNK = 1024
"""Frames decoded at a time."""


class VerificationError(ValueError):
    """The replay differs from what it must be; the message says where first."""


def differences(files: FileSystem, expected: Mapping[str, Entry]) -> list[str]:
    """The paths, sorted, at which mode or content differ or which only one side has."""
    actual = {path: Entry(file.mode, file.oid) for path, file in files.files.items()}
    if actual == expected:
        return []
    return sorted(path for path in actual.keys() | expected.keys() if actual.get(path) != expected.get(path))


def check_commit(files: FileSystem, expected: Mapping[str, Entry], commit: Commit, history: History) -> int:
    """Compare the replayed state with a commit.

    :param expected: the files of the commit without exclusions
    :returns: number of files found equal
    :raises VerificationError: names the commit, the first path that differs and its first line that differs
    """
    paths = differences(files, expected)
    if paths:
        where = _first_difference(files, expected, paths[0], history)
        raise VerificationError(f"commit {commit.id}: {paths[0]!r} {where} ({len(paths)} paths differ)")
    if files.log[-1:] != [typed_message(commit.message)]:
        raise VerificationError(f"commit {commit.id}: its message was not replayed")
    return len(expected)


def typed_message(message: str) -> str:
    """The part of a commit message that is typed: all but the new lines at its end."""
    return message.rstrip("\n")


def replay(recording: Recording) -> int:
    """Press the actions of a recording again and compare every frame.

    :returns: number of pairs compared
    :raises VerificationError: a frame or a commit message differs
    :raises RecordingError: the file is damaged
    """
    terminal, actions = Terminal(recording.rows, recording.cols), recording.actions
    for start in range(0, recording.n_frames, CHUNK):
        frames = recording.frames(start, min(start + CHUNK, recording.n_frames))  # (n, R, C)
        for offset, frame in enumerate(frames):
            if terminal.frame.tobytes() != frame.tobytes():
                raise VerificationError(f"frame {start + offset} is not what the actions before it show")
            terminal.press(actions[start + offset])
    if terminal.files.log != [typed_message(commit.message) for commit in recording.commits]:
        raise VerificationError("the commit messages are not those that the actions type")
    return recording.n_frames


def _first_difference(files: FileSystem, expected: Mapping[str, Entry], path: str, history: History) -> str:
    file, entry = files.files.get(path), expected.get(path)
    if file is None or entry is None:
        return "is in git but was not replayed" if file is None else "was replayed but is not in git"
    replayed, wanted = file.text.split("\n"), decode(history.blob(entry.oid)).split("\n")
    for number, (line, right) in enumerate(zip([*replayed, None], [*wanted, None]), 1):
        if line != right:
            return f"line {number}: replayed {_shown(line)}, in git {_shown(right)}"
    return f"has mode {file.mode:o}, in git {entry.mode:o}"


def _shown(line: str | None) -> str:
    return "ends" if line is None else ascii(line[:60])
