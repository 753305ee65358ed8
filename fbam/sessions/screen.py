"""Draws the shell and the editor into a frame of any size (paper, section 9 and figure 14).

The screen is a function of the state of the shell alone. ``update`` draws again only the rows of which the content
changed since it was called last; a new ``Screen`` draws all of them, and both give the same frame. ``layout`` says which
part of the frame shows what: below 24 x 80 one pane, which is the shell or the editor, above a one-line mode bar.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from fbam.recording.cells import REVERSE, Frames, blank
from fbam.sessions.editor import COMMAND, Editor
from fbam.sessions.files import FileSystem
from fbam.sessions.glyphs import Strip, join, plain, strip, window, wrap
from fbam.sessions.shell import Shell

MIN_ROWS, MIN_COLS, MAX_SIZE = 3, 12, 1000
NUMBER_COLOUR, PROMPT_COLOUR, BEYOND_COLOUR, MESSAGE_COLOUR = "\3", "\2", "\4", "\1"
"""ANSI palette indices: yellow line numbers, green prompt, blue tildes below the end, red messages."""


class ScreenError(ValueError):
    """A frame too small or too large to draw in."""


class Pane(NamedTuple):
    """A rectangle of the frame, in cells."""

    row: int
    col: int
    rows: int
    cols: int


class Layout(NamedTuple):
    """Where the parts of the screen stand."""

    main: Pane
    bar: Pane


def layout(rows: int, cols: int) -> Layout:
    """Divide a frame of (R, C) cells.

    :raises ScreenError: the frame is smaller than 3 x 12 or larger than 1000 x 1000
    """
    if not (MIN_ROWS <= rows <= MAX_SIZE and MIN_COLS <= cols <= MAX_SIZE):
        sizes = f"{MIN_ROWS} to {MAX_SIZE} rows and {MIN_COLS} to {MAX_SIZE} columns"
        raise ScreenError(f"a screen has {sizes}, not {rows} x {cols}")
    return Layout(main=Pane(0, 0, rows - 1, cols), bar=Pane(rows - 1, 0, 1, cols))


class Screen:
    """A frame that follows a shell.

    :ivar frame: (R, C) cells, changed in place by ``update``
    """

    def __init__(self, rows: int, cols: int) -> None:
        self.layout = layout(rows, cols)
        self.frame: Frames = blank(rows, cols)  # (R, C)
        self._style = self.frame["style"]
        self._rows = {
            pane: [self.frame[y, pane.col : pane.col + pane.cols] for y in range(pane.row, pane.row + pane.rows)]
            for pane in self.layout
        }
        self._drawn: dict[Pane, tuple[object, Sequence[object]]] = {}
        self._cursor = (0, 0)

    def update(self, shell: Shell) -> None:
        """Make the frame show the present state of ``shell``."""
        self._style[self._cursor] &= ~REVERSE & 0xFF
        if shell.editor is None:
            self._cursor = self._draw_shell(shell)
        else:
            self._cursor = self._draw_editor(shell.editor)
        self._style[self._cursor] |= REVERSE

    def _draw_shell(self, shell: Shell) -> tuple[int, int]:
        pane = self.layout.main
        rows = shell_rows(shell, pane.rows, pane.cols)
        contents = rows + [plain("")] * (pane.rows - len(rows))
        for row in self._stale(pane, "shell", contents):
            self._write(pane, row, contents[row])
        mode = "LITERAL" if shell.literal else "SHELL"
        self._draw_bar(f"{len(shell.files.log)} commits", mode)
        return pane.row + len(rows) - 1, pane.col + len(rows[-1].text) - 1

    def _draw_editor(self, editor: Editor) -> tuple[int, int]:
        pane, lines, top = self.layout.main, editor.lines, editor.top
        gutter = max(2, len(str(len(lines)))) + 1
        width = pane.cols - gutter
        at = len(strip(lines[editor.line][: editor.column]).text)
        left = scroll(at, width)
        contents: list[str | None] = [*lines[top : top + pane.rows]]
        contents += [None] * (pane.rows - len(contents))
        for row in self._stale(pane, (top, gutter, left), contents):
            self._write(pane, row, _editor_row(contents[row], top + row + 1, gutter, left, width))
        if editor.mode == COMMAND:
            return self._draw_command(editor.command)
        state = f"{'LITERAL' if editor.literal else editor.mode} {editor.line + 1}:{editor.column + 1}"
        self._draw_bar(editor.message or editor.path + "+" * editor.modified, state, bool(editor.message))
        return pane.row + editor.line - top, pane.col + gutter + at - left

    def _draw_command(self, command: str) -> tuple[int, int]:
        """The command line in place of the bar; its end is shown where it is too long."""
        bar = self.layout.bar
        whole = join(plain(":"), strip(command), plain(" "))
        content = window(whole, max(0, len(whole.text) - bar.cols), bar.cols)
        if self._stale(bar, "command", [content]):
            self._write(bar, 0, content)
        return bar.row, bar.col + len(content.text) - 1

    def _draw_bar(self, name: str, state: str, complaint: bool = False) -> None:
        """``name`` at the left, of a long one the end (of a complaint the start), and ``state`` at the right."""
        bar = self.layout.bar
        if not self._stale(bar, "bar", [(name, state, complaint)]):
            return
        state = state[-bar.cols :]
        room = max(0, bar.cols - len(state) - 1)
        whole = strip(name)
        shown = window(whole, 0 if complaint else max(0, len(whole.text) - room), room)
        if complaint:
            shown = plain(shown.text, MESSAGE_COLOUR)
        self._write(bar, 0, join(shown, plain(state.rjust(bar.cols - len(shown.text)))), REVERSE)

    def _stale(self, pane: Pane, view: object, contents: Sequence[object]) -> Sequence[int]:
        """The rows of a pane that show something else than ``contents``; they are taken to show it from now on.

        :param view: what all rows depend on; where it differs from the last one, all rows are stale
        """
        view_before, before = self._drawn.get(pane, (None, ()))
        self._drawn[pane] = view, contents
        if view != view_before:
            return range(pane.rows)
        return [row for row, (old, new) in enumerate(zip(before, contents)) if old is not new and old != new]

    def _write(self, pane: Pane, row: int, content: Strip, style: int = 0) -> None:
        """Fill a row of a pane; what ``content`` leaves is blank."""
        cells = self._rows[pane][row]  # (columns of the pane,)
        text, colour = content.text.ljust(pane.cols), content.colour.ljust(pane.cols, "\0")
        cells["code"] = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        cells["fg"] = np.frombuffer(colour.encode("latin-1"), dtype="u1")
        cells["style"] = style


def _editor_row(line: str | None, number: int, gutter: int, left: int, width: int) -> Strip:
    """A line behind its number, or what stands below the last line."""
    if line is None:
        return plain("~", BEYOND_COLOUR)
    shown = window(strip(line[: left + width + 1]), left, width)
    return join(plain(f"{number:>{gutter - 1}} ", NUMBER_COLOUR), shown)


def scroll(at: int, width: int) -> int:
    """First cell shown of lines in a window of ``width`` cells, such that cell ``at`` is seen: steps of half a window."""
    if at < width:
        return 0
    half = max(1, width // 2)
    return ((at - width) // half + 1) * half


def shell_rows(shell: Shell, rows: int, cols: int) -> list[Strip]:
    """The last ``rows`` rows of the shell's text, 1 or more; the last cell of the last one is the cursor's."""
    *typed, last = shell.prompted()
    bottom_up = wrap(join(plain(last.prompt, PROMPT_COLOUR), strip(last.text), plain(" ")), cols)[::-1]
    for line in chain(reversed(typed), reversed(shell.output)):
        if len(bottom_up) >= rows:
            break
        bottom_up += reversed(wrap(join(plain(line.prompt, PROMPT_COLOUR), strip(line.text)), cols))
    return bottom_up[:rows][::-1]


class Terminal:
    """A shell on an empty file system, and the screen it is seen on."""

    def __init__(self, rows: int, cols: int) -> None:
        """Start with an empty prompt on a frame of (R, C) cells.

        :raises ScreenError: see ``layout``
        """
        self.screen = Screen(rows, cols)
        self.files = FileSystem()
        self.shell = Shell(self.files, self.screen.layout.main.rows)
        self.screen.update(self.shell)

    @property
    def frame(self) -> Frames:
        """(R, C) cells; the same array all the time, changed in place by ``press``."""
        return self.screen.frame

    def press(self, action: str) -> None:
        """Take one action and draw."""
        self.shell.press(action)
        self.screen.update(self.shell)
