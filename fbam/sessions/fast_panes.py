"""Parts of the screen as packed cells, for the compiled hands: glyphs, the rows of the shell, the rows of the tree.

They say the same as ``fbam.sessions.glyphs``, ``shell`` and ``tree``; what has been drawn once is kept.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fbam.sessions import kernels
from fbam.sessions.files import FileSystem
from fbam.sessions.glyphs import Strip, glyph, strip, wrap
from fbam.sessions.screen import scroll, tree_row
from fbam.sessions.shell import Line, Shell, drawn
from fbam.sessions.tree import CLOSED, FILE, OPEN, parents, row_text

Cells = npt.NDArray[np.int64]
"""Packed cells, see ``fbam.recording.cells.pack``; signed, because numba mixes signed and unsigned into floats."""


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """(n,) code points, surrogate escapes included, in an array that can be written."""
    if text.isascii():
        return np.frombuffer(text.encode(), np.uint8).astype(np.uint32)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).copy()


def cells(drawing: Strip) -> Cells:
    """(n,) packed cells of a strip."""
    colour = np.frombuffer(drawing.colour.encode("latin-1"), np.uint8).astype(np.int64)
    return code_points(drawing.text) | colour << 32


@lru_cache(maxsize=4096)
def name_cells(name: str) -> Cells:
    """(n,) packed cells of what the bar names, to be read only: the same files are opened again and again."""
    return cells(strip(name))


UNCHANGED = -2
"""In place of a row of the tree's pane: it needs not be drawn."""
KEPT_ROWS = 1 << 16
"""Rows of the tree that are kept to be shown again."""
PROMPT = cells(drawn(Line("$ ", "")))


class Glyphs:
    """How each character is drawn, as tables for the kernels; filled in as characters appear."""

    def __init__(self) -> None:
        self.widths = np.zeros(0x110000, np.uint8)
        self.place = np.zeros(0x110000, np.int32)
        self.pieces: Cells = np.zeros(1024, np.int64)
        self._used = 0
        self._known: set[str] = set()
        self.learn("".join(map(chr, range(128))))

    def learn(self, text: str) -> None:
        """Make all characters of a text known; those of ASCII always are."""
        if text.isascii() and self._known:
            return
        for character in set(text) - self._known:
            code = ord(character)
            drawing, special = glyph(character) if character != "\t" else (" ", False)
            self.widths[code] = kernels.TAB if character == "\t" else len(drawing)
            if len(drawing) > 1:
                self._append(code, cells(Strip(drawing, ("\4" if special else "\0") * len(drawing))))
            self._known.add(character)

    def _append(self, code: int, pieces: Cells) -> None:
        if self._used + len(pieces) > len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.zeros_like(self.pieces)])
        self.place[code] = self._used
        self.pieces[self._used : self._used + len(pieces)] = pieces
        self._used += len(pieces)


class FastEditor:
    """A file that the kernels edit."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text, self.closed = path, text, False


class FastShell(Shell):
    """A shell whose lines are rows of cells: the kernels type the command below what is finished."""

    def __init__(self, files: FileSystem, height: int, rows: int, cols: int, state: npt.NDArray[np.int64]) -> None:
        super().__init__(files, height, rows, cols)
        self.state = state
        self.store: Cells = np.full((4 * rows, cols), 32, np.int64)
        self.input_heights = np.zeros(64, np.int64)
        self._heights: list[int] = []  # rows of each finished line
        self._prompt(0)

    def open(self, path: str) -> FastEditor:  # type: ignore[override]
        """The editor for a file: see ``Shell.open``."""
        file = self.files.read(path)
        return FastEditor(path, file.text if file else "")

    def make_room(self, line: str) -> None:
        """Let there be rows for a command."""
        lines = line.count("\n") + 1
        widest = 1 if line.isascii() and line.isprintable() else 10
        rows = (widest * len(line) + 2 * lines) // (self.cols - 1) + 2 * lines
        self._grow(self.state[kernels.ROW] + rows + 2)
        if lines > len(self.input_heights):
            self.input_heights = np.zeros(2 * lines, np.int64)

    def _grow(self, rows: int) -> None:
        if rows > len(self.store):
            self.store = np.concatenate([self.store, np.full((rows, self.cols), 32, np.int64)])

    def enter(self, line: str) -> None:
        """Run a command that has been typed: what ``press`` does with Enter behind it."""
        self.input = line
        self._enter()

    def _finish(self, typed: str, answers: list[str]) -> None:
        """Add a command and its answers: see ``Shell._finish``; the command has been drawn while it was typed."""
        s = self.state
        last, inputs = int(s[kernels.ROW]), int(s[kernels.INPUTS])
        heights = [last - int(s[kernels.INPUT_ROW]) + 1]
        if inputs:
            heights = self.input_heights[:inputs].tolist() + heights
        out = last + 1
        for answer in answers:
            rows = wrap(drawn(Line("", answer)), self.cols)
            self._grow(out + len(rows) + 2)
            for row in rows:
                self.store[out] = 32
                self.store[out, : len(row.text)] = cells(row)
                out += 1
            heights.append(len(rows))
        taken, gone, older = out + 1, 0, len(self._heights)
        if taken > self.rows:
            while gone < older and taken > self.rows // 2:
                taken, gone = taken - self._heights[gone], gone + 1
            self.store[: taken - 1] = self.store[out - taken + 1 : out].copy()
            del self._heights[:gone]
        self._heights += heights
        self._prompt(taken - 1)

    def _prompt(self, row: int) -> None:
        """An empty prompt in a row, right below what is finished."""
        s = self.state
        self._grow(row + 2)
        self.store[row] = 32
        self.store[row, :2] = PROMPT
        s[kernels.ROW] = s[kernels.INPUT_ROW] = row
        s[kernels.CELL_IN_ROW], s[kernels.INPUT_CELLS], s[kernels.INPUTS] = 2, 0, 0


class FastTree:
    """The rows of the file tree that its pane shows, as cells; made again where names have changed or others are shown.

    The whole tree, which ``fbam.sessions.tree.tree`` lists, is never gone through: a window costs its own rows.

    :ivar cells: (n, C'') rows from the top of the pane, none of them highlighted; ``lengths`` (n,) cells that have text
    """

    def __init__(self, files: FileSystem, rows: int, cols: int) -> None:
        self._files, self._rows, self._cols = files, rows, cols
        self._looked: tuple[int, str | None] | None = None
        self._window: tuple[int, str, int] | None = None
        self.cells: Cells = np.zeros((0, cols), np.int64)
        self.lengths = np.zeros(0, np.int64)
        self._drawn: dict[tuple[str, str], tuple[Cells, int]] = {}

    def look(self, shown: str | None) -> int:
        """Follow the shown file: its row in the pane, -1 where it has none, ``UNCHANGED`` where all looks as before."""
        files, looked = self._files, (self._files.version, shown)
        if looked == self._looked:
            return UNCHANGED
        self._looked = looked
        directory, above = self._above(shown)
        exists = shown is not None and (shown in files.files or shown in files.directories)
        at = sum(above) + files.place(shown) if shown and exists else -1
        top = scroll(max(at, 0), self._rows)
        if self._window != (window := (files.version, directory, top)):
            self._window = window
            self._draw(directory, above, top)
        return at - top if exists else -1

    def _above(self, shown: str | None) -> tuple[str, list[int]]:
        """The innermost open directory, and of each listing around its own how many rows stand above it."""
        directory, above = "", []
        for way in parents(shown) if shown else []:
            if way not in self._files.directories:
                break
            above.append(self._files.place(way) + 1)
            directory = way
        return directory, above

    def _draw(self, directory: str, above: list[int], top: int) -> None:
        rows = [self._row(*name) for name in self._names(directory, above, top)]
        self.cells = np.concatenate([self.cells[:0].ravel(), *(row for row, _ in rows)]).reshape(-1, self._cols)
        self.lengths = np.array([length for _, length in rows], np.int64)

    def _names(self, directory: str, above: list[int], top: int) -> list[tuple[str, str]]:
        """(path, mark) of the rows from ``top`` on: listings down to the open directory, then what is left of each."""
        files, ways = self._files, ["", *parents(directory), directory] if directory else [""]
        heads = [(files.below(way), 0, stop) for way, stop in zip(ways, above)]
        tails = [(below, stop, len(below)) for below, _, stop in heads[::-1]]
        innermost = files.below(directory)
        paths: list[str] = []
        for below, start, stop in [*heads, (innermost, 0, len(innermost)), *tails]:
            paths += below[start + top : min(stop, start + top + self._rows - len(paths))] if top < stop - start else []
            top = max(0, top - (stop - start))
        return [(path, FILE if path not in files.directories else OPEN if path in ways else CLOSED) for path in paths]

    def _row(self, path: str, mark: str) -> tuple[Cells, int]:
        if (path, mark) not in self._drawn:
            if len(self._drawn) == KEPT_ROWS:
                self._drawn.clear()
            drawing = cells(tree_row(path, row_text(path, mark), None, self._cols)[0])
            row = np.full(self._cols, 32, np.int64)
            row[: len(drawing)] = drawing
            self._drawn[path, mark] = row, len(drawing)
        return self._drawn[path, mark]
