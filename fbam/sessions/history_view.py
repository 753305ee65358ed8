"""A history as a person looks at it: its graph with all parents, and what one commit changes (figures 10 to 12).

The sessions follow first parents only; the graph shows what a merge brings with it.
"""

import tempfile
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import SortMode

from fbam.sessions.files import decode
from fbam.sessions.history import Commit, History, open_history


class CommitNode(NamedTuple):
    """One commit: object id, ids of its parents, name of its author, first line of its message."""

    id: str
    parents: list[str]
    author: str
    subject: str


class ChangedFile(NamedTuple):
    """The text of a file before and after a commit, empty where it is not there."""

    path: str
    old: str
    new: str


class HistoryView(NamedTuple):
    """Name of a history, its newest commits (children before parents), and one commit with the files that it changes."""

    name: str
    graph: list[CommitNode]
    commit: Commit
    changed: list[ChangedFile]


def view_history(source: str, revision: str | None, number: int, newest: int) -> HistoryView:
    """Look at a history; its clone lives only as long as this call.

    :param source: a git repository: path, address, or bundle file
    :param revision: branch, tag or commit to stop at; None for the one that is checked out there
    :param number: the commit of which the changes are wanted, from 1 at the oldest; the last one where there are fewer
    :param newest: commits of the graph
    :raises HistoryError: the source cannot be used
    """
    with tempfile.TemporaryDirectory(prefix="fbam-") as workspace:
        history = open_history(source, revision, Path(workspace))
        try:
            place = min(number, len(history.commits)) - 1
            commit, before = history.commits[place], history.commits[place - 1] if place else None
            graph = _graph(Path(workspace, f"{history.name}.clone"), history.commits[-1].id, newest)
            return HistoryView(history.name, graph, commit, _changed(history, before, commit))
        finally:
            history.close()


def _graph(clone: Path, head: str, count: int) -> list[CommitNode]:
    walk = pygit2.Repository(str(clone)).walk(head, SortMode.TOPOLOGICAL)
    return [_node(commit) for commit in islice(walk, count)]


def _node(commit: pygit2.Commit) -> CommitNode:
    subject = commit.raw_message.decode("utf-8", "replace").split("\n", 1)[0]
    return CommitNode(str(commit.id), [str(parent) for parent in commit.parent_ids], commit.author.name, subject)


def _changed(history: History, before: Commit | None, commit: Commit) -> list[ChangedFile]:
    """The files of a commit that differ from those before it, those that were there before first, then by path."""
    old, new = history.files(before) if before else {}, history.files(commit)

    def text(files: dict, path: str) -> str:
        return decode(history.blob(files[path].oid)) if path in files else ""

    paths = sorted(old.keys() | new.keys(), key=lambda path: (path not in old, path))
    return [ChangedFile(path, text(old, path), text(new, path)) for path in paths if old.get(path) != new.get(path)]
