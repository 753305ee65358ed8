"""A tiny modal editor in the manner of vi (paper, section 10.1: "a tiny text editor").

The buffer is ``text.split("\\n")`` and nothing else: "\\r", a byte-order mark and an invalid byte are characters like
others, and a file that ends with a new line has an empty last line. A cursor that leaves the window moves it by half its
height or more, never by one line: a file typed from the start redraws the window every other page, not at every line.
Three modes:

* NORMAL: ``i`` inserts, ``:`` opens the command line;
* INSERT: characters are typed at the cursor, Backspace, Delete and Control-U remove, Control-V takes the next
  character literally, Escape leaves;
* COMMAND: ``:N`` goes to line N, ``:Nd`` and ``:M,Nd`` delete lines, ``:w``, ``:q``, ``:q!`` and ``:wq``.

Arrows, Home, End and the page keys move in NORMAL and INSERT; a bracketed paste inserts its text. Every other action is
ignored, so the editor can be driven by a model as well as by a plan.
"""

import re
from collections.abc import Callable

from fbam.sessions.actions import (
    BACKSPACE, DELETE, DOWN, END, ENTER, ESCAPE, HOME, KILL_BEFORE, LEFT, LITERAL, PAGE_DOWN, PAGE_UP, RIGHT, UP,
    is_text, pasted,
)  # fmt: skip
from fbam.sessions.files import FileSystem, FileSystemError

NORMAL, INSERT, COMMAND, LITERAL_STATE = "NORMAL", "INSERT", "COMMAND", "LITERAL"

_GOTO = re.compile(r"[0-9]{1,9}")
_CUT = re.compile(r"([0-9]{1,9})(?:,([0-9]{1,9}))?d")


class Editor:
    """One opened file.

    :ivar lines: the buffer, at least one line
    :ivar line: line of the cursor, from 0
    :ivar column: character the cursor stands before, from 0 up to the length of the line
    :ivar top: first line shown
    :ivar mode: NORMAL, INSERT or COMMAND
    :ivar command: what is typed on the command line so far, without the colon
    :ivar message: the last complaint, shown until the next key
    :ivar closed: whether the editor has been left
    """

    def __init__(self, files: FileSystem, path: str, height: int) -> None:
        """Open ``path`` in a window of ``height`` rows; a file that does not exist yet is an empty buffer.

        :raises FileSystemError: ``path`` is a directory
        """
        file = files.read(path)
        self.files, self.path, self.height = files, path, height
        self.lines = (file.text if file else "").split("\n")
        self.line = self.column = self.top = 0
        self.mode, self.command, self.message = NORMAL, "", ""
        self.modified = self.closed = self.literal = False

    @property
    def state(self) -> str:
        """What the bar calls the mode."""
        return LITERAL_STATE if self.literal else self.mode

    @property
    def page(self) -> int:
        """Lines that Page Up and Page Down move by."""
        return max(1, self.height - 1)

    def press(self, action: str) -> None:
        """Take one action and keep the cursor in the window."""
        self.message = ""
        if self.literal:
            self.literal = False
            if len(action) == 1:
                self.insert(action)
        elif self.mode == COMMAND:
            self._press_command(action)
        elif action in _MOVES:
            _MOVES[action](self)
        elif (text := pasted(action)) is not None:
            self.insert(text)
        elif self.mode == INSERT:
            self._press_insert(action)
        elif action == "i":
            self.mode = INSERT
        elif action == ":":
            self.mode, self.command = COMMAND, ""
        self._scroll()

    def insert(self, text: str) -> None:
        """Insert ``text``, new lines included, at the cursor and move behind it."""
        line = self.lines[self.line]
        before, after = line[: self.column], line[self.column :]
        if "\n" in text:
            first, *middle, last = text.split("\n")
            self.lines[self.line : self.line + 1] = [before + first, *middle, last + after]
            self.line += 1 + len(middle)
            self.column = len(last)
        else:
            self.lines[self.line] = before + text + after
            self.column += len(text)
        self.modified = True

    def _press_insert(self, action: str) -> None:
        if is_text(action):
            self.insert(action)
        elif action == ENTER:
            self.insert("\n")
        elif action == ESCAPE:
            self.mode = NORMAL
        elif action == LITERAL:
            self.literal = True
        elif action in _REMOVALS:
            _REMOVALS[action](self)

    def _backspace(self) -> None:
        if self.column:
            self._remove(self.column - 1, self.column)
        elif self.line:
            self._join(self.line - 1)

    def _delete(self) -> None:
        if self.column < len(self.lines[self.line]):
            self._remove(self.column, self.column + 1)
        elif self.line + 1 < len(self.lines):
            self._join(self.line)

    def _kill_before(self) -> None:
        if self.column:
            self._remove(0, self.column)

    def _remove(self, start: int, stop: int) -> None:
        line = self.lines[self.line]
        self.lines[self.line] = line[:start] + line[stop:]
        self.column, self.modified = start, True

    def _join(self, line: int) -> None:
        upper, lower = self.lines[line : line + 2]
        self.lines[line : line + 2] = [upper + lower]
        self.line, self.column, self.modified = line, len(upper), True

    def _press_command(self, action: str) -> None:
        if action == ENTER:
            self.mode = NORMAL
            self._execute(self.command)
        elif action == ESCAPE or action == BACKSPACE and not self.command:
            self.mode = NORMAL
        elif action == BACKSPACE:
            self.command = self.command[:-1]
        elif is_text(action):
            self.command += action

    def _execute(self, command: str) -> None:
        if _GOTO.fullmatch(command):
            self._move(int(command) - 1, 0)
        elif match := _CUT.fullmatch(command):
            self._cut(int(match[1]), int(match[2] or match[1]))
        elif command in ("w", "wq"):
            if self._save() and command == "wq":
                self.closed = True
        elif command == "q" and self.modified:
            self.message = "not saved; :wq saves, :q! discards"
        elif command in ("q", "q!"):
            self.closed = True
        else:
            self.message = f"not a command: {command}"

    def _cut(self, first: int, last: int) -> None:
        if not 1 <= first <= last <= len(self.lines):
            self.message = f"no such lines: {first},{last}"
            return
        self.lines[first - 1 : last] = []
        self.lines = self.lines or [""]
        self.modified = True
        self._move(first - 1, 0)

    def _save(self) -> bool:
        try:
            self.files.write(self.path, "\n".join(self.lines))
        except FileSystemError as error:
            self.message = str(error)
            return False
        self.modified = False
        return True

    def _move(self, line: int, column: int) -> None:
        self.line = min(max(line, 0), len(self.lines) - 1)
        self.column = min(max(column, 0), len(self.lines[self.line]))

    def _scroll(self) -> None:
        """Follow the cursor: where it leaves the window, the window moves so that its line stands in the middle."""
        if not self.top <= self.line < self.top + self.height:
            self.top = max(0, self.line - self.height // 2)


_MOVES: dict[str, Callable[[Editor], None]] = {
    UP: lambda editor: editor._move(editor.line - 1, editor.column),
    DOWN: lambda editor: editor._move(editor.line + 1, editor.column),
    LEFT: lambda editor: editor._move(editor.line, editor.column - 1),
    RIGHT: lambda editor: editor._move(editor.line, editor.column + 1),
    HOME: lambda editor: editor._move(editor.line, 0),
    END: lambda editor: editor._move(editor.line, len(editor.lines[editor.line])),
    PAGE_UP: lambda editor: editor._move(editor.line - editor.page, editor.column),
    PAGE_DOWN: lambda editor: editor._move(editor.line + editor.page, editor.column),
}
_REMOVALS: dict[str, Callable[[Editor], None]] = {
    BACKSPACE: Editor._backspace,
    DELETE: Editor._delete,
    KILL_BEFORE: Editor._kill_before,
}
