"""The in-memory file system that a session edits (paper, section 10.1).

It knows regular files, symbolic links and directories, and it hashes what it holds the way git does,

    oid = SHA-1("blob " + size + NUL + content),

so that after each commit its state can be compared with git's tree. Text is held as ``str``; bytes that are not
UTF-8 are surrogate escapes, so every content that git stores is held exactly.
"""

import hashlib
import posixpath
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

REGULAR, SYMLINK = 0o100644, 0o120000


class FileSystemError(ValueError):
    """An operation that a real file system would refuse; the message is what the shell prints."""


dirname = lru_cache(1 << 16)(posixpath.dirname)
"""``posixpath.dirname``, which the same paths ask for again and again."""


def decode(data: bytes) -> str:
    """Bytes to text; invalid UTF-8 becomes surrogate escapes, nothing is lost."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of ``decode``."""
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class File:
    """A file or a link: git mode (0o100644, 0o100755, 0o120000, …) and content; a link's content is its target."""

    mode: int
    text: str

    @cached_property
    def oid(self) -> str:
        """Git's object id of the content, 40 hexadecimal digits."""
        data = encode(self.text)
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class FileSystem:
    """Files by path, the directories around them, and what the version control remembers.

    :ivar log: the messages of ``vcs commit``
    :ivar version: grows whenever a name appears or disappears
    """

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.directories: set[str] = {""}
        self.log: list[str] = []
        self.version = 0
        self._names: defaultdict[str, set[str]] = defaultdict(set)  # paths right below each directory
        self._listings: dict[str, list[str]] = {}  # sorted, of directories that have not changed since
        self._added: dict[str, File] = {}

    def below(self, directory: str) -> list[str]:
        """The paths right below a directory: directories first, then files, each by name."""
        if directory not in self._listings:
            self._listings[directory] = sorted(self._names[directory], key=self._order)
        return self._listings[directory]

    def place(self, path: str) -> int:
        """The index in ``below`` of its directory that a path has or would have."""
        return bisect_left(self.below(dirname(path)), self._order(path), key=self._order)

    def _order(self, path: str) -> tuple[bool, str]:
        return path not in self.directories, path

    def add(self) -> None:
        """Remember all files as they are, for ``status``."""
        self._added = dict(self.files)

    def status(self) -> list[str]:
        """The paths that differ from what ``add`` remembered last, each behind A, M or D."""
        old, new = self._added, self.files
        changed = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
        return [f"{'A' if path not in old else 'M' if path in new else 'D'} {path}" for path in changed]

    def make_directories(self, path: str) -> None:
        """Create ``path`` and the directories above it."""
        missing = []
        while path not in self.directories and path not in missing:
            if path in self.files:
                raise FileSystemError(f"{path}: not a directory")
            missing.append(path)
            path = dirname(path)
        self.directories.update(missing)
        for path in missing:
            self._named(path)

    def read(self, path: str) -> File | None:
        """Return the file at ``path``, or None where there is none yet."""
        if path in self.directories:
            raise FileSystemError(f"{path}: is a directory")
        return self.files.get(path)

    def write(self, path: str, text: str) -> None:
        """Replace the content of ``path``, creating the file where its directory exists."""
        old = self.read(path)
        self._place(path, File(old.mode if old else REGULAR, text))

    def touch(self, path: str) -> None:
        """Create an empty file unless there is one already."""
        if self.read(path) is None:
            self.write(path, "")

    def link(self, target: str, path: str) -> None:
        """Create a symbolic link to ``target``."""
        if self.read(path) is not None:
            raise FileSystemError(f"{path}: file exists")
        self._place(path, File(SYMLINK, target))

    def chmod(self, permissions: int, path: str) -> None:
        """Set the nine permission bits of a regular file."""
        old = self._existing(path)
        if old.mode == SYMLINK:
            raise FileSystemError(f"{path}: is a symbolic link")
        self.files[path] = File(0o100000 | permissions & 0o777, old.text)

    def move(self, source: str, destination: str) -> None:
        """Rename a file; one at the destination is replaced."""
        file = self._existing(source)
        self.read(destination)
        self._place(destination, file)
        if destination != source:
            self.remove(source)

    def remove(self, path: str) -> None:
        """Delete a file or a link."""
        self._existing(path)
        del self.files[path]
        self._unnamed(path)

    def remove_tree(self, path: str) -> None:
        """Delete a file, or a directory with everything below it."""
        if path not in self.directories or path == "":
            return self.remove(path)
        below = path + "/"
        self.files = {name: file for name, file in self.files.items() if not name.startswith(below)}
        self.directories = {name for name in self.directories if name != path and not name.startswith(below)}
        self._names = defaultdict(set, {name: paths for name, paths in self._names.items() if name in self.directories})
        self._listings = {}
        self._unnamed(path)

    def _existing(self, path: str) -> File:
        file = self.read(path)
        if file is None:
            raise FileSystemError(f"{path}: no such file")
        return file

    def _place(self, path: str, file: File) -> None:
        if dirname(path) not in self.directories or path == "":
            raise FileSystemError(f"{path}: no such directory")
        if path not in self.files:
            self._named(path)
        self.files[path] = file

    def _named(self, path: str) -> None:
        directory = dirname(path)
        self._names[directory].add(path)
        if directory in self._listings:
            insort(self._listings[directory], path, key=self._order)
        self.version += 1

    def _unnamed(self, path: str) -> None:
        directory = dirname(path)
        self._names[directory].discard(path)
        if directory in self._listings:
            self._listings[directory].remove(path)
        self.version += 1
