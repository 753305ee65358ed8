"""Reads a git history: first parents, oldest commit first (paper, section 10.1).

git itself fetches, because it alone reads bundles and every kind of address; libgit2 reads the objects. Nothing is
filtered on the way: blobs are bytes, paths and messages are decoded with surrogate escapes. What cannot be typed is left
out and written down as an ``Exclusion``:

* submodules: a commit of another repository, without content here;
* binaries: a NUL byte somewhere;
* missing objects: the repository is a partial clone.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffFind

from fbam.sessions.files import decode

SUBMODULE = 0o160000
RENAME_THRESHOLD = 50
"""Per cent of a deleted file that must be found in a new one to call it moved; git's default."""


class HistoryError(ValueError):
    """A history that cannot be opened or read."""


class Commit(NamedTuple):
    """Object id, message and object id of the tree."""

    id: str
    message: str
    tree: str


class Entry(NamedTuple):
    """A file of a tree: git mode and object id of its content."""

    mode: int
    oid: str


class Exclusion(NamedTuple):
    """A content that is left out, and the first commit that has it at this path; ``size`` in bytes, 0 if unknown."""

    commit: str
    path: str
    oid: str
    size: int
    reason: str


class _Content(NamedTuple):
    size: int
    reason: str | None


class History:
    """An opened history.

    :ivar name: short name of the repository
    :ivar commits: from the oldest to the newest
    :ivar exclusions: what ``files`` has left out so far, each content at a path once
    """

    def __init__(self, name: str, repository: pygit2.Repository, head: pygit2.Commit) -> None:
        self.name, self.commits = name, _first_parents(repository, head)
        self.exclusions: list[Exclusion] = []
        self._repository = repository
        self._contents: dict[str, _Content] = {}
        self._excluded: set[tuple[str, str]] = set()
        self._subtree = lru_cache(maxsize=10_000)(self._read_subtree)

    def tree(self, commit: Commit) -> dict[str, Entry]:
        """All files of a commit by path, submodules included.

        :raises HistoryError: a tree object is missing
        """
        return dict(self._walk("", commit.tree))

    def files(self, commit: Commit) -> dict[str, Entry]:
        """The files of a commit that can be typed; the others are added to ``exclusions``."""
        kept: dict[str, Entry] = {}
        for path, entry in self.tree(commit).items():
            size, reason = (0, "submodule") if entry.mode == SUBMODULE else self._content(entry.oid)
            if reason is None:
                kept[path] = entry
            elif (path, entry.oid) not in self._excluded:
                self._excluded.add((path, entry.oid))
                self.exclusions.append(Exclusion(commit.id, path, entry.oid, size, reason))
        return kept

    def blob(self, oid: str) -> bytes:
        """The bytes of a file.

        :raises KeyError: the object is missing
        """
        return self._repository[oid].data

    def size(self, oid: str) -> int:
        """Bytes of a file."""
        return self._content(oid).size

    def renames(self, before: Commit, after: Commit) -> list[tuple[str, str]]:
        """(old path, new path) of the files that git calls moved between two commits, sorted by new path."""
        diff = self._repository.diff(self._repository[before.tree], self._repository[after.tree])
        try:
            diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=RENAME_THRESHOLD)
        except KeyError:  # a content to compare is missing: nothing is known to be moved
            return []
        moved = [delta for delta in diff.deltas if delta.status_char() == "R"]
        return sorted(((decode(d.old_file.raw_path), decode(d.new_file.raw_path)) for d in moved), key=lambda p: p[1])

    def _content(self, oid: str) -> _Content:
        if oid not in self._contents:
            try:
                data = self.blob(oid)
            except KeyError:
                self._contents[oid] = _Content(0, "missing")
            else:
                self._contents[oid] = _Content(len(data), "binary" if b"\0" in data else None)
        return self._contents[oid]

    def _walk(self, prefix: str, oid: str) -> Iterator[tuple[str, Entry]]:
        for name, entry, is_tree in self._subtree(oid):
            if is_tree:
                yield from self._walk(f"{prefix}{name}/", entry.oid)
            else:
                yield prefix + name, entry

    def _read_subtree(self, oid: str) -> list[tuple[str, Entry, bool]]:
        tree = self._repository.get(oid)
        if tree is None:
            raise HistoryError(f"{self.name}: tree {oid} is missing; clone the repository without --filter=tree")
        return [
            (decode(item.raw_name), Entry(int(item.filemode), str(item.id)), item.type_str == "tree") for item in tree
        ]


def open_history(source: str, revision: str | None, workspace: Path) -> History:
    """Clone a repository into ``workspace`` and read which commits it has.

    :param source: a git repository: path, address, or bundle file
    :param revision: branch, tag or commit to stop at; None for the one that is checked out there
    :param workspace: folder for the clone, which must stay as long as the history is used; a clone of the same name that
        an earlier call left there is replaced
    :raises HistoryError: the source is not there, is no repository or has no commits, or the revision is unknown
    """
    address = _address(source)
    name = re.sub(r"(/\.git|\.git|\.bundle)?/*$", "", address).replace(":", "/").rsplit("/", 1)[-1] or "repository"
    clone = workspace / f"{name}.clone"  # never the source itself: that would make another name
    shutil.rmtree(clone, ignore_errors=True)
    _clone(source, address, clone)
    repository = pygit2.Repository(str(clone))
    branches = sorted(repository.branches.local)
    if revision is None:
        if repository.head_is_unborn and len(branches) != 1:
            remedy = f"choose a revision: {', '.join(branches[:10])}" if branches else "it has no commits"
            raise HistoryError(f"{source}: {'no branch is checked out there; ' if branches else ''}{remedy}")
        revision = branches[0] if repository.head_is_unborn else "HEAD"
    try:
        head = repository.revparse_single(revision).peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError) as error:
        known = f"; its branches: {', '.join(branches[:10])}" if branches else "; it has no commits"
        raise HistoryError(f"{source}: unknown revision {revision!r}{known}") from error
    return History(name, repository, head)


def _address(source: str) -> str:
    """What git is to clone: the absolute path of a local source, anything else as it is."""
    if Path(source).exists():
        return str(Path(source).resolve())
    if not re.match(r"[^/]+:", source):
        raise HistoryError(f"{source}: no such file or folder")
    return source


def _clone(source: str, address: str, clone: Path) -> None:
    """Let git make a bare clone: no hooks, no templates, no configuration of the user, no questions."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "clone", "--quiet", "--bare", "--template=", "--", address, str(clone)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise HistoryError("git is not installed: install it (https://git-scm.com) and try again") from error
    if done.returncode:
        reasons = [line.removeprefix("fatal: ") for line in done.stderr.splitlines() if line.startswith("fatal: ")]
        raise HistoryError(f"{source}: git cannot clone it ({reasons[0] if reasons else 'no reason given'})")


def _first_parents(repository: pygit2.Repository, head: pygit2.Commit) -> list[Commit]:
    """From the oldest commit known (the first one, or where a shallow clone ends) to ``head``."""
    commits: list[Commit] = []
    commit: pygit2.Commit | None = head
    while commit is not None:
        commits.append(Commit(str(commit.id), decode(commit.raw_message), str(commit.tree_id)))
        commit = repository.get(commit.parent_ids[0]) if commit.parent_ids else None
    return commits[::-1]
