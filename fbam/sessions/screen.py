"""Draws the session into a frame of any size (paper, section 9 and figure 14).

The screen is a function of the state of the shell alone. ``update`` draws again only the rows of which the content
changed since it was called last; a new ``Screen`` draws all of them, and both give the same frame. Where each part
stands says ``fbam.sessions.layout``. Nothing moves without need, because each cell that changes is stored: the shell
prompts again while the editor is open and stands still, a file stays in view after it has been left, the command line
has its own part of the bar, and windows scroll by half their size.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from fbam.recording.cells import REVERSE, Frames, blank
from fbam.sessions.editor import COMMAND, Editor
from fbam.sessions.files import FileSystem
from fbam.sessions.glyphs import Strip, join, plain, strip, window, wrap
from fbam.sessions.layout import MODE_COLUMNS, PLACE_COLUMNS, Pane, divide_bar, layout
from fbam.sessions.layout import ScreenError as ScreenError
from fbam.sessions.shell import Shell, drawn
from fbam.sessions.tree import FILE, tree

NUMBER_COLOUR, BEYOND_COLOUR, MESSAGE_COLOUR, BORDER_COLOUR, DIRECTORY_COLOUR = "\3", "\4", "\1", "\4", "\4"
"""ANSI palette indices: yellow line numbers, blue tildes below the end, red messages, blue borders and directories."""
BAR_COLOUR, BAR_GROUND = "\7", 4
"""White on blue: the bar of three panes, and the shown file in the tree."""


class Screen:
    """A frame that follows a shell.

    :ivar frame: (R, C) cells, changed in place by ``update``
    """

    def __init__(self, rows: int, cols: int) -> None:
        self.layout = layout(rows, cols)
        self.frame: Frames = blank(rows, cols)  # (R, C)
        self._style = self.frame["style"]
        self._drawn: dict[Pane, tuple[object, Sequence[object]]] = {}
        self._tree: tuple[object, list[tuple[str, str]]] = (None, [])
        self._cursor = (0, 0)
        self._bar = divide_bar(self.layout.bar)
        if self.layout.divided:
            self._draw_borders()

    def update(self, shell: Shell) -> None:
        """Make the frame show the present state of ``shell``."""
        self._style[self._cursor] &= ~REVERSE & 0xFF
        if self.layout.divided:
            self._draw_tree(shell)
            prompt = self._draw_shell(shell)
            place = self._draw_editor(shell.shown) if shell.shown else (0, 0)
            command = self._draw_bar(shell)
            typing = shell.editor is not None and shell.editor.mode == COMMAND
            self._cursor = prompt if shell.editor is None else command if typing else place
        elif shell.editor is None:
            self._cursor = self._draw_shell(shell)
            mode = "LITERAL" if shell.literal else "SHELL"
            self._draw_small_bar(f"{len(shell.files.log)} commits", mode)
        elif shell.editor.mode == COMMAND:
            self._draw_editor(shell.editor)
            self._cursor = self._draw_command(self.layout.bar, shell.editor.command)
        else:
            editor = shell.editor
            self._cursor = self._draw_editor(editor)
            state = f"{editor.state} {editor.line + 1}:{editor.column + 1}"
            self._draw_small_bar(editor.message or editor.path + "+" * editor.modified, state, bool(editor.message))
        self._style[self._cursor] |= REVERSE

    def _draw_borders(self) -> None:
        tree_pane, editor, shell, _ = self.layout
        codes, colours, line = self.frame["code"], self.frame["fg"], shell.row - 1
        codes[: tree_pane.rows, tree_pane.cols] = ord("\u2502")
        codes[line, editor.col :] = ord("\u2500")
        codes[line, tree_pane.cols] = ord("\u251c")
        colours[: tree_pane.rows, tree_pane.cols] = colours[line, editor.col :] = ord(BORDER_COLOUR)

    def _draw_tree(self, shell: Shell) -> None:
        """The part of the tree around the shown file."""
        pane, shown = self.layout.tree, shell.shown.path if shell.shown else None
        if self._tree[0] != (shell.files.version, shown):
            self._tree = (shell.files.version, shown), tree(shell.files, shown)
        names = self._tree[1]
        at = next((k for k, (path, _) in enumerate(names) if path == shown), 0)
        top = scroll(at, pane.rows)
        rows: list[tuple[str, str]] = names[top : top + pane.rows]
        rows += [("", "")] * (pane.rows - len(rows))
        for row in self._stale(pane, ("tree", shown), rows):
            content, ground = tree_row(*rows[row], shown, pane.cols)
            self._write(pane, row, content, ground=ground)

    def _draw_shell(self, shell: Shell) -> tuple[int, int]:
        pane = self.layout.shell
        rows = shell_rows(shell, pane.rows, pane.cols)
        contents = rows + [plain("")] * (pane.rows - len(rows))
        for row in self._stale(pane, "shell", contents):
            self._write(pane, row, contents[row])
        return pane.row + len(rows) - 1, pane.col + len(rows[-1].text) - 1

    def _draw_editor(self, editor: Editor) -> tuple[int, int]:
        pane, lines, top = self.layout.editor, editor.lines, editor.top
        gutter = max(2, len(str(len(lines)))) + 1
        width = pane.cols - gutter
        at = len(strip(lines[editor.line][: editor.column]).text)
        left = scroll(at, width)
        contents: list[str | None] = [*lines[top : top + pane.rows]]
        contents += [None] * (pane.rows - len(contents))
        for row in self._stale(pane, (top, gutter, left), contents):
            self._write(pane, row, _editor_row(contents[row], top + row + 1, gutter, left, width))
        return pane.row + editor.line - top, pane.col + gutter + at - left

    def _draw_bar(self, shell: Shell) -> tuple[int, int]:
        """The bar of three panes; returns where the cursor of the command line stands."""
        bar, editor = self._bar, shell.shown
        state = shell.editor.state if shell.editor else "LITERAL" if shell.literal else "SHELL"
        name = editor.path + "+" * editor.modified if editor else ""
        place = f"{editor.line + 1}:{editor.column + 1}" if editor else ""
        whole = strip(name)
        room = bar.name.cols
        shown = window(whole, max(0, len(whole.text) - room), room).text.ljust(room)
        texts = (f" {state}".ljust(MODE_COLUMNS), shown, f"{place} ".rjust(PLACE_COLUMNS))
        for pane, text in zip((bar.mode, bar.name, bar.place), texts):
            if self._stale(pane, "bar", [text]):
                self._write(pane, 0, plain(text, BAR_COLOUR), ground=BAR_GROUND)
        if shell.editor and shell.editor.mode == COMMAND:
            return self._draw_command(bar.command, shell.editor.command)
        message = window(strip(shell.editor.message if shell.editor else ""), 0, bar.command.cols).text
        if self._stale(bar.command, "message", [message]):
            self._write(bar.command, 0, plain(message, MESSAGE_COLOUR))
        return (0, 0)

    def _draw_command(self, pane: Pane, command: str) -> tuple[int, int]:
        """The command line; its end is shown where it is too long."""
        whole = join(plain(":"), strip(command), plain(" "))
        content = window(whole, max(0, len(whole.text) - pane.cols), pane.cols)
        if self._stale(pane, "command", [content]):
            self._write(pane, 0, content)
        return pane.row, pane.col + len(content.text) - 1

    def _draw_small_bar(self, name: str, state: str, complaint: bool = False) -> None:
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

    def _write(self, pane: Pane, row: int, content: Strip, style: int = 0, ground: int = 0) -> None:
        """Fill a row of a pane; what ``content`` leaves is blank, and of ``ground`` is what it has."""
        cells = self.frame[pane.row + row, pane.col : pane.col + pane.cols]  # (columns of the pane,)
        text, colour = content.text.ljust(pane.cols), content.colour.ljust(pane.cols, "\0")
        cells["code"] = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        cells["fg"] = np.frombuffer(colour.encode("latin-1"), dtype="u1")
        cells["bg"] = 0
        cells["bg"][: len(content.text)] = ground
        cells["style"] = style


def tree_row(path: str, text: str, shown: str | None, width: int) -> tuple[Strip, int]:
    """A row of the tree and the colour of its ground; ``path`` is empty below the last name."""
    content = window(strip(text), 0, width)
    if path and path == shown:
        return plain(content.text, BAR_COLOUR), BAR_GROUND
    is_file = text.startswith(FILE, 2 * path.count("/"))
    return (content if is_file else plain(content.text, DIRECTORY_COLOUR)), 0


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
    bottom_up = wrap(join(drawn(last), plain(" ")), cols)[::-1]
    for line in chain(reversed(typed), reversed(shell.output)):
        if len(bottom_up) >= rows:
            break
        bottom_up += reversed(wrap(drawn(line), cols))
    return bottom_up[:rows][::-1]


class Terminal:
    """A shell on an empty file system, and the screen it is seen on."""

    def __init__(self, rows: int, cols: int) -> None:
        """Start with an empty prompt on a frame of (R, C) cells.

        :raises ScreenError: see ``layout``
        """
        self.screen = Screen(rows, cols)
        self.files = FileSystem()
        pane = self.screen.layout.shell
        self.shell = Shell(self.files, self.screen.layout.editor.rows, pane.rows, pane.cols)
        self.screen.update(self.shell)

    @property
    def frame(self) -> Frames:
        """(R, C) cells; the same array all the time, changed in place by ``press``."""
        return self.screen.frame

    def press(self, action: str) -> None:
        """Take one action and draw."""
        self.shell.press(action)
        self.screen.update(self.shell)
