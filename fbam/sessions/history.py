"""Reads a git history: first parents, oldest commit first (paper, section 10.1).

git itself fetches, because it alone reads bundles and every kind of address, reads the objects, and answers in bulk what
the commits change (``plumbing.py``); libgit2 finds the files that were moved. The cost of a commit is that of its changes,
not of its tree. Nothing is filtered on the way: blobs are bytes, paths and messages are decoded with surrogate escapes.
What cannot be typed is left out and written down (``exclusions.py``).

Opening it is the matter of ``clone.py``. Going through a history:

    before = None
    for commit in history.commits:
        for path, old, new in history.changes(before, commit):  # old, new: Entry or None; sorted by path
            ...
        before = commit

A dict that applies ``changes`` of each commit in turn is ``files`` of that commit.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffFind, DiffOption

from fbam.recording.exclusions import Exclusion
from fbam.sessions import plumbing
from fbam.sessions.clone import Commit, clone_of, first_parents, head_of, repository_name
from fbam.sessions.files import decode
from fbam.sessions.plumbing import EMPTY_TREE, HistoryError, ObjectReader, RawChange, TreeDiffer, tree_items

DIRECTORY, SUBMODULE = 0o040000, 0o160000
RENAME_THRESHOLD = 50
"""Per cent of a deleted file that must be found in a new one to call it moved; git's default."""

RENAME_PAIRS = 1_000_000
"""Pairs of deleted and new files of a commit up to which they are compared; beyond, only equal contents are moved."""

AHEAD = 32
"""Commits of which the changes are asked at once."""

CACHED_BYTES = 64 << 20
"""Contents kept in memory, the last ones read."""


class Entry(NamedTuple):
    """A file of a tree: git mode and object id of its content."""

    mode: int
    oid: str


class Change(NamedTuple):
    """A path that two commits hold differently; None where one has no file there, or one that is left out."""

    path: str
    before: Entry | None
    after: Entry | None


class _Content(NamedTuple):
    size: int
    reason: str | None


class History:
    """An opened history.

    :ivar name: short name of the repository
    :ivar commits: from the oldest to the newest
    :ivar exclusions: what ``changes`` and ``files`` have left out so far, each content at a path once
    """

    def __init__(self, name: str, repository: pygit2.Repository, commits: list[Commit]) -> None:
        self.name, self.commits = name, commits
        self.exclusions: list[Exclusion] = []
        self._repository = repository
        self._objects, self._trees = ObjectReader(Path(repository.path)), TreeDiffer(Path(repository.path))
        self._contents: dict[str, _Content] = {}
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._excluded: set[tuple[str, str]] = set()
        self._place = {commit.id: number for number, commit in enumerate(self.commits)}
        self._ahead: dict[tuple[str, str], list[RawChange]] = {}

    def changes(self, before: Commit | None, after: Commit) -> list[Change]:
        """What has to be done to the files of one commit to have those of another, sorted by path.

        Files that cannot be typed count as not there; those of ``after`` are added to ``exclusions``. Asked commit by
        commit, each with the one before it, this costs as much as the changes do. A path that was a directory
        before or becomes one shows as the files below it.

        :param before: None for a repository without files
        :raises HistoryError: a tree is missing, damaged or too large, or a path leaves the repository
        """
        raw = self._raw_changes(before.tree if before else EMPTY_TREE, after)
        self._describe([oid for change in raw for mode, oid in _sides(change) if mode and mode != SUBMODULE])
        found = []
        for change in raw:
            path = decode(change.path)
            self._check_path(path, after)
            old, new = (self._typable(mode, oid) for mode, oid in _sides(change))
            if new is None and change.mode_after:
                self._exclude(after, path, change.mode_after, change.after)
            if old != new:
                found.append(Change(path, old, new))
        return sorted(found, key=lambda change: change.path)

    def tree(self, commit: Commit) -> dict[str, Entry]:
        """All files of a commit by path, submodules included; the whole tree is read.

        :raises HistoryError: a tree object is missing or damaged
        """
        found: dict[str, Entry] = {}
        for path, entry in self._walk("", commit.tree):
            found[path] = entry
            if len(found) > plumbing.MAX_PATHS:
                raise HistoryError(f"{self.name}: commit {commit.id} has more than {plumbing.MAX_PATHS} files")
        return found

    def files(self, commit: Commit) -> dict[str, Entry]:
        """The files of a commit that can be typed; the others are added to ``exclusions``. The whole tree is read."""
        tree = self.tree(commit)
        self._describe([entry.oid for entry in tree.values() if entry.mode != SUBMODULE])
        for path, (mode, oid) in tree.items():
            if self._typable(mode, oid) is None:
                self._exclude(commit, path, mode, oid)
        return {path: entry for path, entry in tree.items() if self._typable(*entry)}

    def blob(self, oid: str) -> bytes:
        """The bytes of a file.

        :raises KeyError: the object is missing or too large
        """
        if oid not in self._cache:
            self._read([oid])
        self._cache.move_to_end(oid)
        return self._cache[oid]

    def size(self, oid: str) -> int:
        """Bytes of a file; 0 if its object is missing."""
        self._describe([oid])
        return self._contents[oid].size

    def renames(self, before: Commit, after: Commit) -> list[tuple[str, str]]:
        """(old path, new path) of the files that git calls moved between two commits, sorted by new path."""
        raw = self._raw_changes(before.tree, after)
        gone = [change for change in raw if not change.mode_after and change.mode_before != SUBMODULE]
        made = [change for change in raw if not change.mode_before and change.mode_after != SUBMODULE]
        if not gone or not made:
            return []
        self._describe([*(change.before for change in gone), *(change.after for change in made)])
        diff = self._repository.diff(
            self._repository[before.tree], self._repository[after.tree], flags=DiffOption.SKIP_BINARY_CHECK
        )
        flags = DiffFind.FIND_RENAMES
        if len(gone) * len(made) > RENAME_PAIRS:
            flags |= DiffFind.FIND_EXACT_MATCH_ONLY
        try:
            diff.find_similar(flags=flags, rename_threshold=RENAME_THRESHOLD)
        except (KeyError, pygit2.GitError):  # a content to compare is missing: nothing is known to be moved
            return []
        moved = [delta for delta in diff.deltas if delta.status_char() == "R"]
        return sorted(((decode(d.old_file.raw_path), decode(d.new_file.raw_path)) for d in moved), key=lambda p: p[1])

    def afresh(self) -> "History":
        """The same history with nothing read so far."""
        return History(self.name, self._repository, self.commits)

    def close(self) -> None:
        """Stop the git processes; their processor time then counts for this process."""
        self._objects.close()
        self._trees.close()

    def _raw_changes(self, tree: str, after: Commit) -> list[RawChange]:
        """Changes between two trees; those of the commits that follow are asked with them."""
        if (tree, after.tree) not in self._ahead:
            pairs = [(tree, after.tree)]
            place = self._place.get(after.id, len(self.commits))
            if tree == (self.commits[place - 1].tree if 0 < place < len(self.commits) else EMPTY_TREE):
                following = [commit.tree for commit in self.commits[place : place + AHEAD]]
                pairs += zip(following, following[1:])
            self._ahead = dict(zip(pairs, self._trees.differences(pairs)))
        return self._ahead[tree, after.tree]

    def _typable(self, mode: int, oid: str) -> Entry | None:
        typable = mode and mode != SUBMODULE and self._contents[oid].reason is None
        return Entry(mode, oid) if typable else None

    def _exclude(self, commit: Commit, path: str, mode: int, oid: str) -> None:
        if (path, oid) not in self._excluded:
            self._excluded.add((path, oid))
            size, reason = (0, "submodule") if mode == SUBMODULE else self._contents[oid]
            self.exclusions.append(Exclusion(commit.id, path, oid, size, reason or ""))

    def _describe(self, oids: Sequence[str]) -> None:
        """Read the contents not seen so far, to know their sizes and whether they can be typed."""
        self._read([oid for oid in dict.fromkeys(oids) if oid not in self._contents])

    def _read(self, oids: Sequence[str]) -> None:
        for oid, size, data in self._objects.read(oids):
            if data is None:
                self._contents[oid] = _Content(max(size, 0), "missing" if size < 0 else "large")
                continue
            self._contents[oid] = _Content(size, "binary" if b"\0" in data else None)
            self._cache[oid] = data
            self._cached_bytes += size
            while self._cached_bytes > CACHED_BYTES and len(self._cache) > 1:
                self._cached_bytes -= len(self._cache.popitem(last=False)[1])

    def _check_path(self, path: str, commit: Commit) -> None:
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            shown = ascii(path)
            raise HistoryError(f"{self.name}: commit {commit.id} has the path {shown}, which no checkout can hold: run git fsck")

    def _walk(self, prefix: str, oid: str) -> Iterator[tuple[str, Entry]]:
        for mode, name, item in self._items(oid):
            if mode == DIRECTORY:
                yield from self._walk(f"{prefix}{decode(name)}/", item)
            else:
                yield prefix + decode(name), Entry(_canonical(mode), item)

    def _items(self, oid: str) -> list[tuple[int, bytes, str]]:
        data = None if oid == EMPTY_TREE else next(iter(list(self._objects.read([oid], "tree"))))[2]
        if data is None and oid != EMPTY_TREE:
            raise HistoryError(f"{self.name}: tree {oid} is missing; clone the repository without --filter=tree")
        try:
            return tree_items(data or b"")
        except ValueError as error:
            raise HistoryError(f"{self.name}: tree {oid} is damaged: run git fsck there") from error


def _canonical(mode: int) -> int:
    """The mode that git shows for one that an old git may have stored: of the permissions only "executable" counts."""
    return mode if mode & 0o170000 != 0o100000 else 0o100755 if mode & 0o100 else 0o100644


def _sides(change: RawChange) -> tuple[tuple[int, str], tuple[int, str]]:
    return (change.mode_before, change.before), (change.mode_after, change.after)


def open_history(source: str, revision: str | None, workspace: Path) -> History:
    """Clone a repository into ``workspace`` and read which commits it has.

    :param source: a git repository: path, address, or bundle file
    :param revision: branch, tag or commit to stop at; None for the one that is checked out there
    :param workspace: folder for the clone, which must stay as long as the history is used; a clone of the same name that
        an earlier call left there is replaced
    :raises HistoryError: the source is not there, is no repository or has no commits, or the revision is unknown
    """
    name = repository_name(source)
    clone = clone_of(source, workspace / f"{name}.clone")  # never the source itself: that would make another name
    try:
        repository = pygit2.Repository(str(clone))
    except pygit2.GitError as error:
        raise HistoryError(f"{source}: not a repository that can be read here ({error})") from error
    return History(name, repository, first_parents(source, clone, head_of(source, repository, revision)))
