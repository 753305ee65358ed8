"""Hands that type on the reference terminal, one key after the other, and record each frame (paper, section 10.1).

``fbam.sessions.fast.FastHands`` does the same with compiled loops: the same actions, the same cells, in a fraction of the
time. What is typed key by key and what is pasted is decided here, for both.
"""

from collections.abc import Sequence

from fbam.recording.format import RecordingWriter
from fbam.sessions.actions import ENTER, keystrokes, paste
from fbam.sessions.edits import Edit, Limits, Splice
from fbam.sessions.files import FileSystem
from fbam.sessions.keys import edit_keys, leave_keys
from fbam.sessions.screen import Terminal


class Hands:
    """Types commands and edits.

    :ivar terminal: what is typed on
    :ivar actions: pairs recorded
    :ivar typed: characters typed, on the command line and in files; cursor and editor keys aside
    :ivar pasted: characters pasted
    :ivar budget_end: number of actions from which on everything is pasted
    """

    def __init__(self, rows: int, cols: int, writer: RecordingWriter, limits: Limits) -> None:
        """Start with an empty prompt on a frame of (R, C) cells, which the first pair shows.

        :raises ScreenError: rows or columns out of range
        """
        self.terminal, self.writer, self.limits = Terminal(rows, cols), writer, limits
        self.actions = self.typed = self.pasted = 0
        self.budget_end = limits.commit_actions

    @property
    def files(self) -> FileSystem:
        """The file system of the session."""
        return self.terminal.files

    def run(self, line: str) -> None:
        """Type a command and Enter."""
        for key in [paste(line)] if self._must_paste(line) else keystrokes(line):
            self._press(key)
        self._press(ENTER)

    def edit(self, path: str, edits: Sequence[Edit]) -> None:
        """Carry out a plan in the file that ``vi`` has just opened; save and close it."""
        self.writer.mark_file(path)
        editor = self.terminal.shell.editor
        if editor is None:
            raise RuntimeError(f"the editor did not open {path!r}")
        for edit in edits:
            pasting = isinstance(edit, Splice) and self._must_paste(edit.text, edit.paste)
            for key in edit_keys(editor, edit, pasting):
                self._press(key)
        for key in leave_keys(editor):
            self._press(key)

    def flush(self) -> None:
        """Hand everything recorded to the writer: here it has been."""

    def _must_paste(self, text: str, planned: bool = False) -> bool:
        """Whether ``text`` is beyond the limits; it is counted as pasted or as typed."""
        beyond = planned or len(text) > min(self.limits.file_characters, self.budget_end - self.actions)
        if beyond:
            self.pasted += len(text)
        else:
            self.typed += len(text)
        return beyond

    def _press(self, action: str) -> None:
        self.writer.append(self.terminal.frame, action)
        self.terminal.press(action)
        self.actions += 1
