"""Two git processes that answer many questions each: contents of objects, differences of trees.

``git cat-file --batch`` reads blobs three times as fast as libgit2, and ``git diff-tree --stdin`` compares two trees ten
times as fast, because git keeps the bases of its deltas; and git refuses a damaged object file over which libgit2 may hang.
Both are asked in batches smaller than a pipe holds, so neither side ever waits for the other. What git says is parsed
field by field: a path may hold everything but NUL.
"""

import os
import re
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

try:
    import resource
except ImportError:  # not a system with limits of this kind
    resource = None  # type: ignore[assignment]

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""SHA-1 of the tree without entries, which git knows in every repository."""

BATCH = 256
"""Questions asked at once: 256 pairs of object ids are 21 kB, and a pipe holds 64."""

MAX_PATHS = 500_000
"""Paths that one commit may change: the first commit of a large project has 100,000."""

MAX_MEMORY = 2 << 30
"""Bytes a git process may take, beyond the files it maps; it holds all changes of a commit before it tells the first."""

LARGEST_BYTES = 16 << 20
"""Bytes of the largest content of a file that is taken into memory."""

_ENTRY = re.compile(rb":([0-7]{6}) ([0-7]{6}) ([0-9a-f]{40}) ([0-9a-f]{40}) [A-Z]\0([^\0]+)\0")
_ITEM = re.compile(rb"([0-7]+) ([^\0]*)\0([\s\S]{20})")
_PAIR = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40}\n")
_STOP = b"-\n"
"""No object id: ``git diff-tree --stdin`` repeats such a line and empties its buffer."""


class HistoryError(ValueError):
    """A history that cannot be opened or read."""


class RawChange(NamedTuple):
    """A path at which two trees differ: git modes (0 for none) and object ids of both sides."""

    path: bytes
    mode_before: int
    mode_after: int
    before: str
    after: str


def environment() -> dict[str, str]:
    """What git is run with: no configuration of the user or system, no questions, no fetching on the way."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    fixed = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return kept | fixed | {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1"}


def run_git(folder: Path, *arguments: str) -> str:
    """What one git command prints.

    :raises HistoryError: it failed, or git is not installed
    """
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise HistoryError("git is not installed: install it (https://git-scm.com) and try again") from error
    if done.returncode:
        reasons = [line.partition(": ")[2] for line in done.stderr.splitlines() if line.startswith(("fatal: ", "error: "))]
        raise HistoryError(reasons[-1] if reasons else "no reason given")
    return done.stdout


def tree_items(data: bytes) -> list[tuple[int, bytes, str]]:
    """The (mode, name, object id) of each entry of a tree object.

    :raises ValueError: this is no tree object
    """
    items = _ITEM.findall(data)
    if sum(len(mode) + len(name) + len(oid) + 2 for mode, name, oid in items) != len(data):
        raise ValueError("malformed tree object")
    return [(int(mode, 8), name, oid.hex()) for mode, name, oid in items]


class _Child:
    """A git process with pipes, stopped when this object goes."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.name, self._errors = folder.name.removesuffix(".clone"), tempfile.TemporaryFile()  # noqa: SIM115
        command = ["git", "-C", str(folder), *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment()
        )
        if hasattr(resource, "prlimit"):
            resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
        self.stop = weakref.finalize(self, _stop, self._process, self._errors)

    @property
    def answers(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def ask(self, lines: Sequence[str]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self.failure() from None

    def failure(self) -> HistoryError:
        """The reason why git stopped early or answered nothing, as an error."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:  # it told an error and waits for the next question
            code = 0
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        reasons = [line.partition(": ")[2] for line in said if line.startswith(("fatal: ", "error: "))]
        reason = "; ".join(dict.fromkeys(reasons[-2:])) or f"git stopped with {code}"
        if "ut of memory" in reason or code < 0:
            return HistoryError(f"{self.name}: git needs more than {MAX_MEMORY >> 20} MiB: a commit has too many files")
        return HistoryError(f"{self.name}: damaged or incomplete ({reason}): run git fsck there")


def _stop(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout, errors):
        try:
            pipe.close()  # type: ignore[union-attr]
        except BrokenPipeError:
            pass
    process.wait()


class ObjectReader:
    """Contents by object id.

    :param folder: a git directory
    """

    def __init__(self, folder: Path) -> None:
        self._child = _Child(folder, ["cat-file", "--batch"])
        self.close = self._child.stop

    def read(self, oids: Sequence[str], kind: str = "blob") -> Iterator[tuple[str, int, bytes | None]]:
        """Yield (object id, size in bytes, content) in the order asked; exhaust it before the next call.

        A missing object has size -1 and no content; a blob above ``LARGEST_BYTES`` has its size only.

        :raises HistoryError: an object is damaged or of another kind
        """
        for start in range(0, len(oids), BATCH):
            batch = oids[start : start + BATCH]
            self._child.ask(batch)
            for oid in batch:
                yield oid, *self._answer(oid, kind)

    def _answer(self, oid: str, kind: str) -> tuple[int, bytes | None]:
        answers = self._child.answers
        words = answers.readline().split()
        if words == [oid.encode(), b"missing"]:
            return -1, None
        if len(words) != 3:
            raise self._child.failure()
        size = int(words[2])
        if words[1] != kind.encode():
            raise HistoryError(f"{self._child.name}: object {oid} is a {words[1].decode()}, not a {kind}: run git fsck there")
        data = self._take(size) if size <= LARGEST_BYTES or kind != "blob" else None
        for left in range(0 if data is not None else size, 0, -LARGEST_BYTES):
            self._take(min(left, LARGEST_BYTES))
        self._take(1)  # the line feed after the content
        return size, data

    def _take(self, size: int) -> bytes:
        data = self._child.answers.read(size)
        if len(data) < size:
            raise self._child.failure()
        return data


class TreeDiffer:
    """Differences of trees by object id.

    :param folder: a git directory
    """

    def __init__(self, folder: Path) -> None:
        options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames"]
        self._child = _Child(folder, ["diff-tree", "--stdin", *options])
        self._buffer, self._at = b"", 0
        self.close = self._child.stop

    def differences(self, pairs: Sequence[tuple[str, str]]) -> list[list[RawChange]]:
        """Return for each pair of trees the files at which they differ, in git's order.

        :raises HistoryError: a tree is missing or damaged, or two differ in more than ``MAX_PATHS`` files
        """
        found = []
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            self._child.ask([*(f"{before} {after}" for before, after in batch), _STOP.decode().strip()])
            for _ in batch:
                self._expect(_PAIR)
                found.append(list(self._entries()))
            self._expect(re.compile(_STOP))
        return found

    def _entries(self) -> Iterator[RawChange]:
        count = 0
        while self._peek() == b":":
            match = self._expect(_ENTRY)
            count += 1
            if count > MAX_PATHS:
                self._child.stop()
                raise HistoryError(f"{self._child.name}: a commit changes more than {MAX_PATHS} files: choose a revision before it")
            modes, oids = match.group(1, 2), match.group(3, 4)
            yield RawChange(match[5], *(int(mode, 8) for mode in modes), *(oid.decode() for oid in oids))

    def _peek(self) -> bytes:
        while self._at == len(self._buffer):
            self._more()
        return self._buffer[self._at : self._at + 1]

    def _expect(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        while (match := pattern.match(self._buffer, self._at)) is None:
            if self._buffer.startswith(_STOP, self._at):  # no answer to a question
                raise self._child.failure()
            self._more()
        self._at = match.end()
        return match

    def _more(self) -> None:
        chunk = self._child.answers.read1(1 << 16)  # type: ignore[attr-defined]
        if not chunk:
            raise self._child.failure()
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
