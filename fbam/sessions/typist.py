"""Replays commits as what someone types (paper, section 10.1).

Content reaches the file system through keys alone: plan -> keys -> editor -> save -> file system. The stretch of a commit
is

    vcs commit -m "..."    names the commit to be made, so that the message conditions the edits that follow
    mv, rm, mkdir, touch, vi, ln, chmod
    vcs add -A

With ``message="last"`` the message follows ``vcs add -A``, with "none" there is none.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Literal

from fbam.sessions.edits import plan
from fbam.sessions.fast import FastHands
from fbam.sessions.files import SYMLINK, decode, dirname
from fbam.sessions.hands import Hands
from fbam.sessions.history import Change, Commit, Entry, History
from fbam.sessions.screen import Terminal
from fbam.sessions.shell import command, in_quotes
from fbam.sessions.tree import parents
from fbam.sessions.verify import typed_message

Message = Literal["first", "last", "none"]
"""Where the message of a commit stands in its stretch."""


class Typist:
    """Types one commit after the other.

    :ivar hands: what presses the keys; they count actions, and characters typed and pasted
    :ivar changed: characters that the differences between the commits remove and insert in files
    """

    def __init__(self, hands: Hands | FastHands, message: Message) -> None:
        self.hands, self.files, self.message = hands, hands.files, message
        self.changed = 0

    @property
    def terminal(self) -> Terminal | FastHands:
        """What is typed on; its ``frame`` is the present one."""
        return self.hands.terminal

    @property
    def actions(self) -> int:
        """Pairs recorded."""
        return self.hands.actions

    @property
    def typed(self) -> int:
        """Characters typed, on the command line and in files; cursor and editor keys aside."""
        return self.hands.typed

    @property
    def pasted(self) -> int:
        """Characters pasted."""
        return self.hands.pasted

    def replay(self, history: History, before: Commit | None, commit: Commit, changes: Sequence[Change]) -> None:
        """Bring the file system from one commit to the next.

        :param before: the commit that the file system holds, None at the start
        :param changes: what ``history.changes`` says of the two
        """
        self.hands.budget_end = self.hands.actions + self.hands.limits.commit_actions
        if self.message == "first":
            self._commit(commit)
        goal = {change.path: change.after for change in changes}
        if before is not None and None in goal.values():
            self._move(history.renames(before, commit), goal)
        self._remove(goal)
        for path, entry in goal.items():
            if entry is not None:
                self._complete(path, entry, history)
        self._run("vcs", ["add", "-A"], [])
        if self.message == "last":
            self._commit(commit)
        self.hands.flush()

    def _commit(self, commit: Commit) -> None:
        self._run("vcs", ["commit", "-m", in_quotes(typed_message(commit.message))], [])

    def _move(self, renames: list[tuple[str, str]], goal: Mapping[str, Entry | None]) -> None:
        """Move what git calls moved, where both ends are regular files here and nothing is in the way."""
        files = self.files
        for source, destination in renames:
            file, entry = files.files.get(source), goal.get(destination)
            stays = goal.get(source, source) is not None
            if file is None or entry is None or stays or SYMLINK in (file.mode, entry.mode):
                continue
            free = destination not in files.files and destination not in files.directories
            if free and not any(parent in files.files for parent in parents(destination)):
                self._make_directory(destination)
                self._run("mv", [], [source, destination])

    def _remove(self, goal: Mapping[str, Entry | None]) -> None:
        """Remove directories in which nothing will be left, then single files, and links that will be others."""
        files = self.files
        gone = {path for path, entry in goal.items() if entry is None}
        needed = {parent for path in goal.keys() - gone for parent in parents(path)} if gone else set()
        emptied = {parent for path in gone for parent in parents(path)} - needed
        dead = {directory for directory in emptied if directory in files.directories and not self._keeps(directory, gone)}
        for directory in sorted(path for path in dead if dirname(path) not in dead):
            self._run("rm", ["-r"], [directory])
        for path, entry in goal.items():
            file = files.files.get(path)
            if file and (entry is None or SYMLINK in (file.mode, entry.mode) and (file.mode, file.oid) != entry):
                self._run("rm", [], [path])

    def _keeps(self, directory: str, gone: Set[str]) -> bool:
        """Whether a directory has a file that is not ``gone``."""
        below = self.files.below(directory)
        return any(self._keeps(path, gone) if path in self.files.directories else path not in gone for path in below)

    def _complete(self, path: str, entry: Entry, history: History) -> None:
        """Give one path its content and its mode."""
        files = self.files
        file = files.files.get(path)
        if file is None or file.oid != entry.oid:
            text = decode(history.blob(entry.oid))
            self._make_directory(path)
            if entry.mode == SYMLINK:
                self._run("ln", ["-s"], [text, path])
            elif file is None and not text:
                self._run("touch", [], [path])
            else:
                self._edit(path, file.text if file else "", text)
        if files.files[path].mode != entry.mode:
            self._run("chmod", [], [f"{entry.mode & 0o777:03o}", path])

    def _make_directory(self, path: str) -> None:
        directory = dirname(path)
        if directory not in self.files.directories:
            self._run("mkdir", ["-p"], [directory])

    def _edit(self, path: str, old: str, new: str) -> None:
        """Open a file, carry out the plan, save and close."""
        self._run("vi", [], [path])
        steps = plan(old, new, self.hands.limits, self.hands.budget_end - self.hands.actions)
        self.changed += steps.changed
        self.hands.edit(path, steps.edits)

    def _run(self, name: str, options: list[str], operands: list[str]) -> None:
        self.hands.run(command(name, options, operands))
