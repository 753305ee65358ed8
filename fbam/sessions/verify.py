"""Two checks that nothing was lost (paper, section 10.1: the assertion that "has never fired").

After each commit the file system that the keystrokes have produced must be git's tree, path by path,

    {path: (mode, SHA-1 of the replayed bytes)} = {path: (mode, oid)},

without what the history excludes. What a commit changes is compared at once, the whole tree as often as that costs no
more than the changes did, and at the last commit. And a finished recording, pressed again key by key, must show the
frames it stores.
"""

from collections.abc import Callable, Mapping, Sequence

from fbam.recording.format import Recording
from fbam.sessions.files import FileSystem, decode
from fbam.sessions.history import Change, Commit, Entry, History
from fbam.sessions.screen import Terminal

CHUNK = 1024
"""Frames decoded at a time."""


class VerificationError(ValueError):
    """The replay differs from what it must be; the message says where first."""


class TreeCheck:
    """Holds the replayed files against git, commit by commit.

    :param commits: the commits to come; after the last one everything is compared
    :ivar compared: files compared so far
    :ivar mismatches: those that differed; the first commit with one is an error, so a report always shows 0
    :ivar paths: of all commits so far
    :ivar contents: object ids of all commits so far
    """

    def __init__(self, history: History, commits: Sequence[Commit]) -> None:
        self.history, self.last = history, commits[-1].id
        self.compared = self.mismatches = 0
        self.paths: set[str] = set()
        self.contents: set[str] = set()
        self._expected: dict[str, Entry] = {}
        self._since = 0  # changes since the last full comparison

    def commit(self, files: FileSystem, commit: Commit, changes: Sequence[Change]) -> None:
        """Compare after a commit.

        :param changes: what the commit changes, from ``History.changes``
        :raises VerificationError: names the commit, the first path that differs and its first line that differs
        """
        for change in changes:
            if change.after is None:
                self._expected.pop(change.path, None)
            else:
                self._expected[change.path] = change.after
                self.paths.add(change.path)
                self.contents.add(change.after.oid)
        wrong = sorted(c.path for c in changes if _entry(files, c.path) != c.after)
        self._since += len(changes)
        self.compared += len(changes)
        if wrong:
            self.mismatches += len(wrong)
            raise _mismatch(files, self._expected, wrong, commit, self.history)
        if commit.id == self.last or self._since > len(self._expected):
            self.compared += check_commit(files, self.history.files(commit), commit, self.history)
            self._since = 0


def differences(files: FileSystem, expected: Mapping[str, Entry]) -> list[str]:
    """The paths, sorted, at which mode or content differ or which only one side has."""
    actual = {path: Entry(file.mode, file.oid) for path, file in files.files.items()}
    if actual == expected:
        return []
    return sorted(path for path in actual.keys() | expected.keys() if actual.get(path) != expected.get(path))


def check_commit(files: FileSystem, expected: Mapping[str, Entry], commit: Commit, history: History) -> int:
    """Compare the whole replayed state with a commit.

    :param expected: the files of the commit without exclusions
    :returns: number of files found equal
    :raises VerificationError: names the commit, the first path that differs and its first line that differs
    """
    if paths := differences(files, expected):
        raise _mismatch(files, expected, paths, commit, history)
    return len(expected)


def check_message(files: FileSystem, commit: Commit) -> None:
    """Compare the message that was typed last with that of a commit.

    :raises VerificationError: they differ
    """
    if files.log[-1:] != [typed_message(commit.message)]:
        raise VerificationError(f"commit {commit.id}: its message was not replayed")


def typed_message(message: str) -> str:
    """The part of a commit message that is typed: all but the new lines at its end."""
    return message.rstrip("\n")


def check_blocks(recording: Recording, progress: Callable[[int], None]) -> None:
    """Read every part of a file against its checksums.

    :param progress: called with the number of frames passed
    :raises RecordingError: the file is damaged
    """
    recording.check()
    len(recording.actions)
    for start in range(0, recording.n_frames, recording.header["block_frames"]):
        recording.frames(start, start + 1)
        progress(start)


def replay(recording: Recording, limit: int | None = None, progress: Callable[[int], None] = lambda done: None) -> int:
    """Press the actions of a recording again, in the plain reference terminal, and compare every frame.

    :param limit: stop after the commit in which that many pairs are reached; None for all
    :param progress: called with the number of pairs compared
    :returns: number of pairs compared
    :raises VerificationError: a frame or a commit message differs
    :raises RecordingError: the file is damaged
    """
    whole = [commit for commit in recording.commits if limit is None or commit.start < limit]
    end = recording.n_frames if len(whole) == len(recording.commits) else whole[-1].stop
    terminal, actions = Terminal(recording.rows, recording.cols), recording.actions
    for start in range(0, end, CHUNK):
        frames = recording.frames(start, min(start + CHUNK, end))  # (n, R, C)
        for offset, frame in enumerate(frames):
            if terminal.frame.tobytes() != frame.tobytes():
                raise VerificationError(f"frame {start + offset} is not what the actions before it show")
            terminal.press(actions[start + offset])
        progress(start + len(frames))
    typed = [typed_message(commit.message) for commit in whole]
    if recording.header.get("message") != "none" and terminal.files.log != typed:
        raise VerificationError("the commit messages are not those that the actions type")
    return end


def _entry(files: FileSystem, path: str) -> Entry | None:
    file = files.files.get(path)
    return Entry(file.mode, file.oid) if file else None


def _mismatch(
    files: FileSystem, expected: Mapping[str, Entry], paths: Sequence[str], commit: Commit, history: History
) -> VerificationError:
    where = _first_difference(files, expected, paths[0], history)
    return VerificationError(f"commit {commit.id}: {paths[0]!r} {where} ({len(paths)} paths differ)")


def _first_difference(files: FileSystem, expected: Mapping[str, Entry], path: str, history: History) -> str:
    file, entry = files.files.get(path), expected.get(path)
    if file is None or entry is None:
        return "is in git but was not replayed" if file is None else "was replayed but is not in git"
    replayed, wanted = file.text.split("\n"), decode(history.blob(entry.oid)).split("\n")
    for number, (line, right) in enumerate(zip([*replayed, None], [*wanted, None]), 1):
        if line != right:
            return f"line {number}: replayed {_shown(line)}, in git {_shown(right)}"
    if file.oid != entry.oid:
        return f"has the content that git stores as {entry.oid}, but not this object id: git's object is damaged"
    return f"has mode {file.mode:o}, in git {entry.mode:o}"


def _shown(line: str | None) -> str:
    return "ends" if line is None else ascii(line[:60])
