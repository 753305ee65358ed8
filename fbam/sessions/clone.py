"""From a source to its commits: git clones whatever it can read, and lists the first parents (paper, section 10.1)."""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pygit2

from fbam.sessions.files import decode
from fbam.sessions.plumbing import HistoryError, ObjectReader, run_git


class Commit(NamedTuple):
    """Object id, message and object id of the tree."""

    id: str
    message: str
    tree: str


def repository_name(source: str) -> str:
    """The short name of a source: the last part of its path without ``.git`` or ``.bundle``."""
    return re.sub(r"(/\.git|\.git|\.bundle)?/*$", "", _address(source)).replace(":", "/").rsplit("/", 1)[-1] or "repository"


def head_of(source: str, repository: pygit2.Repository, revision: str | None) -> str:
    """The object id of the commit to stop at.

    :raises HistoryError: the revision is unknown, or none is given and nothing is checked out
    """
    branches = sorted(repository.branches.local)
    if revision is None:
        if repository.head_is_unborn and len(branches) != 1:
            remedy = f"choose a revision: {', '.join(branches[:10])}" if branches else "it has no commits"
            raise HistoryError(f"{source}: {'no branch is checked out there; ' if branches else ''}{remedy}")
        revision = branches[0] if repository.head_is_unborn else "HEAD"
    try:
        name = f"{revision}^{{commit}}"
        return run_git(Path(repository.path), "rev-parse", "--verify", "--end-of-options", name).split()[-1]
    except HistoryError as error:
        known = f"; its branches: {', '.join(branches[:10])}" if branches else "; it has no commits"
        raise HistoryError(f"{source}: unknown revision {revision!r}{known}") from error


def _address(source: str) -> str:
    """What git is to clone: the absolute path of a local source, links in it kept, anything else as it is."""
    if "\0" not in source and Path(source).exists():
        return os.path.abspath(source)
    if not re.match(r"[^/]+:", source):
        raise HistoryError(f"{source}: no such file or folder")
    return source


def clone_of(source: str, clone: Path) -> Path:
    """Let git make a bare clone, without hooks, templates or configuration of the user, where an older one is replaced.

    :raises HistoryError: the source is not there or no repository, or git is not installed
    """
    address = _address(source)
    shutil.rmtree(clone, ignore_errors=True)
    try:
        run_git(Path(), "clone", "--quiet", "--bare", "--template=", "--", address, str(clone.absolute()))
    except HistoryError as error:
        if "not installed" in str(error):
            raise
        raise HistoryError(f"{source}: git cannot clone it ({error})") from error
    return clone


def first_parents(source: str, clone: Path, head: str) -> list[Commit]:
    """From the oldest commit known (the first one, or where a shallow clone ends) to ``head``.

    :raises HistoryError: a commit is damaged or missing
    """
    try:
        ids = run_git(clone, "rev-list", "--first-parent", "--reverse", head).split()
    except HistoryError as error:
        raise HistoryError(f"{source}: its commits are damaged or incomplete ({error}): run git fsck there") from error
    reader = ObjectReader(clone)
    try:
        return [_commit(oid, data or b"") for oid, _, data in reader.read(ids, "commit")]
    finally:
        reader.close()


def _commit(oid: str, data: bytes) -> Commit:
    """Parse a commit object: lines of a header, of which the first names the tree, an empty line, the message."""
    header, _, message = data.partition(b"\n\n")
    return Commit(oid, decode(message), header[len(b"tree ") :].split(b"\n", 1)[0].decode())
