"""Diffs of single files by git's own code, libgit2, as ``git diff -U<context>`` prints them (paper, section 8.2.2).

A new file, a change of mode and a rename are shown as well; the last two by way of trees of one file each in a scratch repository.
The hunks are those of the command. Two headers differ in form: a file that is renamed and changes its mode has these lines in
another order, and a new empty file names /dev/null.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffFind, DiffOption

from fbam.sessions.files import REGULAR, decode, encode

CONTEXTS = (3, 1, 0)
"""Lines of context that the paper compares; the first is git's default."""
LIKENESS = 1
"""Per cent of likeness from which a file that changes its path is shown as renamed; below, as if it had stood at its new path."""


class State(NamedTuple):
    """A file at one time: path, git mode, and content."""

    path: str
    mode: int
    data: bytes


class DiffWriter:
    """Writes diffs with the help of a scratch repository in ``folder``, which must be empty or absent."""

    def __init__(self, folder: Path) -> None:
        self.repository = pygit2.init_repository(str(folder), bare=True)
        self.diff = lru_cache(maxsize=20_000)(self._diff)

    def _diff(self, old: State | None, new: State, context: int) -> str:
        """The diff that leads from ``old``, None for no file, to ``new``, as text with surrogate escapes."""
        kept = old is None or (old.path, old.mode) == (new.path, new.mode)
        if kept and new.mode == REGULAR and new.path.isascii():
            return _of_contents(old.data if old else None, new.data, new.path, context)
        return self.of_trees(old, new, context)

    def of_trees(self, old: State | None, new: State, context: int) -> str:
        """The same by way of two trees of one file each, which is slow and can show a new mode or a rename."""
        diff = self.repository.diff(self.tree(old), self.tree(new), flags=DiffOption.INDENT_HEURISTIC, context_lines=context)
        if old is not None and old.path != new.path:
            diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=LIKENESS)
            if len(diff) > 1:
                return self._diff(old._replace(path=new.path), new, context)
        return decode(b"".join(patch.data for patch in diff))

    def tree(self, state: State | None) -> pygit2.Tree:
        """A tree that holds this file alone, or nothing."""
        index = pygit2.Index()
        if state is not None:
            blob = self.repository.create_blob(state.data)
            index.add(pygit2.IndexEntry(encode(state.path), blob, state.mode))
        return self.repository[index.write_tree(self.repository)]


def _of_contents(old: bytes | None, new: bytes, path: str, context: int) -> str:
    if old == new:
        return ""
    paths = {"old_as_path": path, "new_as_path": path}
    patch = pygit2.Patch.create_from(old, new, **paths, flag=DiffOption.INDENT_HEURISTIC, context_lines=context)
    return decode(patch.data)
