"""Replays commits on a terminal, key by key, and records what is pressed (paper, section 10.1).

Content reaches the file system through keys alone: plan -> keys -> editor -> save -> file system.
"""

import posixpath
from collections.abc import Mapping

from fbam.recording.format import RecordingWriter
from fbam.sessions.actions import ENTER, keystrokes, paste
from fbam.sessions.edits import Limits, Splice, plan
from fbam.sessions.files import SYMLINK, decode
from fbam.sessions.history import Commit, Entry, History
from fbam.sessions.keys import edit_keys, leave_keys
from fbam.sessions.screen import Terminal
from fbam.sessions.shell import command, in_quotes
from fbam.sessions.verify import typed_message


class Typist:
    """Presses the keys of one commit after the other.

    :ivar actions: pairs recorded
    :ivar typed: characters typed, on the command line and in files; cursor and editor keys aside
    :ivar pasted: characters pasted
    :ivar changed: characters that the differences between the commits remove and insert in files
    """

    def __init__(self, terminal: Terminal, writer: RecordingWriter, limits: Limits) -> None:
        self.terminal, self.writer, self.limits = terminal, writer, limits
        self.actions = self.typed = self.pasted = self.changed = 0
        self._budget_end = 0

    def replay(self, history: History, before: Commit | None, commit: Commit, goal: Mapping[str, Entry]) -> None:
        """Bring the file system from one commit to the next.

        :param before: the commit that the file system holds, None at the start
        :param goal: the files of ``commit`` that are to be there
        """
        self._budget_end = self.actions + self.limits.commit_actions
        if before is not None:
            self._move(history.renames(before, commit), goal)
        self._remove(goal)
        for path in sorted(goal):
            self._complete(path, goal[path], history)
        self._run("vcs", ["commit", "-m", in_quotes(typed_message(commit.message))], [])

    def _move(self, renames: list[tuple[str, str]], goal: Mapping[str, Entry]) -> None:
        """Move what git calls moved, where both ends are regular files here and nothing is in the way."""
        files = self.terminal.files
        for source, destination in renames:
            file, entry = files.files.get(source), goal.get(destination)
            if file is None or entry is None or SYMLINK in (file.mode, entry.mode) or source in goal:
                continue
            free = destination not in files.files and destination not in files.directories
            if free and not any(parent in files.files for parent in _parents(destination)):
                self._make_directory(destination)
                self._run("mv", [], [source, destination])

    def _remove(self, goal: Mapping[str, Entry]) -> None:
        """Remove directories in which nothing will be left, then single files, and links that will be others."""
        files = self.terminal.files
        alive = {"", *(parent for path in goal for parent in _parents(path))}
        dead = files.directories - alive
        for directory in sorted(path for path in dead if posixpath.dirname(path) not in dead):
            self._run("rm", ["-r"], [directory])
        for path, file in sorted(files.files.items()):
            entry = goal.get(path)
            relinked = entry and SYMLINK in (file.mode, entry.mode) and (file.mode, file.oid) != entry
            if entry is None or relinked:
                self._run("rm", [], [path])

    def _complete(self, path: str, entry: Entry, history: History) -> None:
        """Give one path its content and its mode."""
        files = self.terminal.files
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
        directory = posixpath.dirname(path)
        if directory not in self.terminal.files.directories:
            self._run("mkdir", ["-p"], [directory])

    def _edit(self, path: str, old: str, new: str) -> None:
        """Open a file, carry out the plan, save and close."""
        self._run("vi", [], [path])
        editor = self.terminal.shell.editor
        if editor is None:
            raise RuntimeError(f"the editor did not open {path!r}")
        steps = plan(old, new, self.limits, self._budget_end - self.actions)
        self.changed += steps.changed
        for edit in steps.edits:
            pasting = isinstance(edit, Splice) and self._must_paste(edit.text, edit.paste)
            for key in edit_keys(editor, edit, pasting):
                self._press(key)
        for key in leave_keys(editor):
            self._press(key)

    def _run(self, name: str, options: list[str], operands: list[str]) -> None:
        """Type a command and Enter."""
        line = command(name, options, operands)
        for key in [paste(line)] if self._must_paste(line) else keystrokes(line):
            self._press(key)
        self._press(ENTER)

    def _must_paste(self, text: str, planned: bool = False) -> bool:
        """Whether ``text`` is beyond the limits; it is counted as pasted or as typed."""
        beyond = planned or len(text) > min(self.limits.file_characters, self._budget_end - self.actions)
        if beyond:
            self.pasted += len(text)
        else:
            self.typed += len(text)
        return beyond

    def _press(self, action: str) -> None:
        self.writer.append(self.terminal.frame, action)
        self.terminal.press(action)
        self.actions += 1


def _parents(path: str) -> list[str]:
    """The directories above a path, the root aside."""
    parts = path.split("/")
    return ["/".join(parts[:k]) for k in range(1, len(parts))]
