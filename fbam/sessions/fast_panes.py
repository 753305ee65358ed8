"""Parts of the screen as packed cells, for the compiled hands: glyphs, the rows of the shell, the rows of the tree.

They say the same as ``fbam.sessions.glyphs``, ``shell`` and ``tree``; what has been drawn once is kept.
"""

import posixpath

import numpy as np
import numpy.typing as npt

from fbam.sessions import kernels
from fbam.sessions.files import FileSystem
from fbam.sessions.glyphs import Strip, glyph, wrap
from fbam.sessions.screen import scroll, tree_row
from fbam.sessions.shell import Line, Shell, drawn
from fbam.sessions.tree import tree

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
        self._prompt()

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

    def _finish(self, lines: list[Line]) -> None:
        """Add finished lines: see ``Shell._finish``; those of the command have been drawn while it was typed."""
        s = self.state
        heights = [*self.input_heights[: s[kernels.INPUTS]].tolist(), int(s[kernels.ROW] - s[kernels.INPUT_ROW]) + 1]
        out = int(s[kernels.ROW]) + 1
        for line in lines[len(heights) :]:
            rows = wrap(drawn(line), self.cols)
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
        self._heights = self._heights[gone:] + heights
        self._prompt()

    def _prompt(self) -> None:
        """An empty prompt below what is finished."""
        s, row = self.state, sum(self._heights)
        self._grow(row + 2)
        self.store[row] = 32
        self.store[row, :2] = PROMPT
        s[kernels.ROW] = s[kernels.INPUT_ROW] = row
        s[kernels.CELL_IN_ROW], s[kernels.INPUT_CELLS], s[kernels.INPUTS] = 2, 0, 0


class FastTree:
    """The rows of the file tree as cells; made again where names have changed or another directory is open."""

    def __init__(self, files: FileSystem, rows: int, cols: int) -> None:
        self._files, self._rows, self._cols = files, rows, cols
        self._key: tuple[int, str] | None = None
        self._shown: str | None = None
        self.cells: Cells = np.zeros((0, cols), np.int64)
        self.lengths = np.zeros(0, np.int64)
        self._index: dict[str, int] = {}
        self._drawn: dict[tuple[str, str], tuple[Cells, int]] = {}

    def look(self, shown: str | None) -> tuple[int, int]:
        """(first row, row of the shown file or -1); the first row is -1 where nothing has changed."""
        key = self._files.version, posixpath.dirname(shown) if shown else ""
        if key == self._key and shown == self._shown:
            return -1, -1
        if key != self._key:
            self._draw(shown)
        self._key, self._shown = key, shown
        at = self._index.get(shown, -1) if shown else -1
        return scroll(max(at, 0), self._rows), at

    def _draw(self, shown: str | None) -> None:
        names = tree(self._files, shown)
        self._index = {path: k for k, (path, _) in enumerate(names)}
        for name in names:
            if name not in self._drawn:
                drawing = cells(tree_row(*name, None, self._cols)[0])
                row = np.full(self._cols, 32, np.int64)
                row[: len(drawing)] = drawing
                self._drawn[name] = row, len(drawing)
        rows = [self._drawn[name] for name in names]
        self.cells = np.concatenate([self.cells[:0].ravel(), *(row for row, _ in rows)]).reshape(-1, self._cols)
        self.lengths = np.array([length for _, length in rows], np.int64)
