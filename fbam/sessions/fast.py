"""Hands that do in compiled loops what ``fbam.sessions.hands.Hands`` does key by key (paper, section 10.1).

The plan of a file goes into one call, which chooses the keys, presses them one after the other on a buffer of code
points, and lists for each the cells that it changes. Python runs the commands, because each happens once in tens of
keys: parsing, the file system, the tree. The content of a file is what the buffer holds when it is saved.

The list of changes goes to the writer in chunks, so that nothing is ever drawn as a whole frame.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fbam.recording.cells import Frames, pack, unpack
from fbam.recording.format import RecordingWriter
from fbam.sessions import actions as key
from fbam.sessions import kernels
from fbam.sessions.actions import paste
from fbam.sessions.edits import Cut, Edit, Limits
from fbam.sessions.fast_panes import UNCHANGED, Cells, FastEditor, FastShell, FastTree, Glyphs, code_points, name_cells
from fbam.sessions.files import FileSystem
from fbam.sessions.layout import divide_bar
from fbam.sessions.screen import Terminal

SPECIAL_KEYS = [key.UP, key.DOWN, key.RIGHT, key.LEFT, key.HOME, key.END, key.PAGE_UP, key.PAGE_DOWN, key.DELETE]
"""In the order of ``kernels.UP``, …, ``kernels.DELETE``."""
CHUNK_ACTIONS, CHUNK_CHANGES = 1 << 12, 1 << 16
"""Actions and changes handed to the writer at a time, about; more where one frame needs it. They stay in the processor's
cache between the two."""


class FastHands:
    """Types commands and edits: see ``fbam.sessions.hands.Hands``."""

    def __init__(self, rows: int, cols: int, writer: RecordingWriter, limits: Limits) -> None:
        start = Terminal(rows, cols)  # the first frame
        panes = start.screen.layout
        self.writer, self.limits, self.files = writer, limits, FileSystem()
        self.budget_end = limits.commit_actions
        self._shape, self._divided = (rows, cols), panes.divided
        self._editor_cols = panes.editor.cols
        self._s = s = np.zeros(kernels.STATE_SIZE, np.int64)
        bar = divide_bar(panes.bar)
        s[: kernels.SHOWN] = [
            rows, cols, panes.divided, *panes.editor, *panes.shell, rows - 1, bar.name.col, bar.command.col, bar.place.col
        ]  # fmt: skip
        s[kernels.MODE] = s[kernels.BAR_MODE] = kernels.SHELL
        s[kernels.GUTTER], s[kernels.CURSOR] = 3, panes.shell.row * cols + panes.shell.col + 2
        self._glyphs = Glyphs()
        self.shell = FastShell(self.files, panes.editor.rows, panes.shell.rows, panes.shell.cols, s)
        self._tree = FastTree(self.files, panes.tree.rows, panes.tree.cols)
        self._frame: Cells = pack(start.frame).reshape(-1).view(np.int64)  # (R C,)
        self._extent = np.full(panes.editor.rows, panes.editor.cols, np.int64)
        self._command = np.zeros(64, np.int64)
        self._table = np.zeros((2, 3), np.int64)
        self._arena = np.zeros(1 << 16, np.uint32)
        self._keys = np.zeros(1 << 12, np.int32)
        self._saved = np.zeros(1 << 12, np.uint8)
        self._name: Cells = np.zeros(1, np.int64)
        self._key_codes = np.array([0, *map(writer.code, SPECIAL_KEYS)], np.int32)
        self._allocate(8 * rows * cols + CHUNK_CHANGES)
        places = np.arange(rows * cols, dtype=np.int32)
        writer.draw(places, self._frame.view(np.uint64))
        self._name_bar()

    @property
    def terminal(self) -> "FastHands":
        """What is typed on: the hands are their own terminal."""
        return self

    @property
    def frame(self) -> Frames:
        """(R, C) cells."""
        return unpack(self._frame.view(np.uint64)).reshape(self._shape)

    @property
    def actions(self) -> int:
        """Pairs recorded."""
        return int(self._s[kernels.DONE] + self._s[kernels.ACTIONS])

    @property
    def typed(self) -> int:
        """Characters typed."""
        return int(self._s[kernels.TYPED])

    @property
    def pasted(self) -> int:
        """Characters pasted."""
        return int(self._s[kernels.PASTED])

    def run(self, line: str) -> None:
        """Type a command and Enter."""
        s, shell = self._s, self.shell
        beyond = len(line) > min(self.limits.file_characters, self.budget_end - self.actions)
        s[kernels.PASTED if beyond else kernels.TYPED] += len(line)
        self._glyphs.learn(line)
        shell.make_room(line)
        code = self.writer.code(paste(line)) if beyond else -1
        text, s[kernels.KEY] = code_points(line), 0
        while kernels.type_line(
            s, self._frame, *self._drawing, self._command, self._name, *self._out, shell.store, shell.input_heights, text, code
        ):
            self.flush()
        shell.enter(line)
        if shell.editor is not None:
            self._open(shell.editor)
        self._show()

    def edit(self, path: str, edits: Sequence[Edit]) -> None:
        """Carry out a plan in the file that ``vi`` has just opened; save and close it."""
        self.writer.mark_file(path, ahead=int(self._s[kernels.ACTIONS]))
        editor = self.shell.editor
        if editor is None:
            raise RuntimeError(f"the editor did not open {path!r}")
        rows, text = self._rows_of(edits)
        state = -1
        while state != kernels.COMPLETE:
            state = kernels.edit_file(
                self._s, self._frame, self._table, self._arena, *self._drawing, self._extent, self._command, self._name,
                *self._out, self._key_codes, self._keys, rows, text, self.limits.file_characters, self.budget_end,
            )  # fmt: skip
            if state == kernels.FLUSH:
                self.flush()
            elif state == kernels.GROW:
                arena = np.empty(2 * len(self._arena) + 5 * len(text) + 64, np.uint32)
                arena[: len(self._arena)] = self._arena
                self._arena = arena
            elif state == kernels.NAME_PASTE:
                edit = edits[self._s[kernels.EDIT]]
                rows[self._s[kernels.EDIT], 7] = self.writer.code(paste(edit.text))
        self._leave(editor)

    def flush(self) -> None:
        """Hand everything recorded to the writer."""
        s, (codes, offsets, position, cell) = self._s, self._out
        n, m = int(s[kernels.ACTIONS]), int(s[kernels.CHANGES])
        if n:
            self.writer.extend(codes[:n], offsets[: n + 1], position[:m], cell[:m].view(np.uint64))
        s[kernels.DONE] += n
        s[kernels.ACTIONS] = s[kernels.CHANGES] = 0

    @property
    def _drawing(self) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:
        return self._glyphs.widths, self._glyphs.place, self._glyphs.pieces

    def _allocate(self, changes: int) -> None:
        codes, offsets = np.zeros(CHUNK_ACTIONS, np.int32), np.zeros(CHUNK_ACTIONS + 1, np.int64)
        self._out = codes, offsets, np.zeros(changes, np.int32), np.zeros(changes, np.int64)

    def _open(self, editor: FastEditor) -> None:
        text, lines = code_points(editor.text), editor.text.count("\n") + 1
        if not editor.text.isascii():
            self._glyphs.learn("".join(map(chr, text[text > 127].tolist())))
        if 2 * len(text) + 64 > len(self._arena):
            self._arena = np.zeros(4 * len(text), np.uint32)
        if 2 * lines > len(self._table):
            self._table = np.zeros((4 * lines, 3), np.int64)
        kernels.load(self._s, self._table, self._arena, text)
        self._s[kernels.RENAMED] = 1
        self._name_bar()

    def _leave(self, editor: FastEditor) -> None:
        """Save and close: what Enter does behind ``:wq``."""
        self.files.write(editor.path, self._text())
        editor.closed, self.shell.editor = True, None
        self._s[kernels.MODE], self._s[kernels.MODIFIED] = kernels.SHELL, 0
        if not self._divided:
            self._s[kernels.SHOWN] = 0
        self._show()

    def _text(self) -> str:
        """What the buffer holds."""
        n = kernels.measure(self._s, self._table)
        if n > len(self._saved):
            self._saved = np.zeros(2 * n, np.uint8)
        if kernels.collect(self._s, self._table, self._arena, self._saved) < 128:
            return self._saved[:n].tobytes().decode("ascii")
        codes = np.zeros(n, np.uint32)
        kernels.collect(self._s, self._table, self._arena, codes)
        return codes.tobytes().decode("utf-32-le", "surrogatepass")

    def _show(self) -> None:
        """Draw what a command or the end of an edit has changed, as the action Enter."""
        s, divided = self._s, self._divided
        shown = self.shell.shown.path if self.shell.shown else None
        highlighted = self._tree.look(shown) if divided else UNCHANGED
        if not divided:
            self._name_bar()
            self._extent[:] = self._editor_cols
        if s[kernels.CHANGES] + 3 * len(self._frame) > len(self._out[2]) or s[kernels.ACTIONS] + 2 > len(self._out[0]):
            self.flush()
        kernels.show(
            s, self._frame, self._table, self._arena, *self._drawing, self._extent, self._command, self._name, *self._out,
            self.shell.store, self._tree.cells, self._tree.lengths, highlighted,
        )  # fmt: skip

    def _name_bar(self) -> None:
        """What the bar names: the file, with the plus of a changed one behind it; with one pane, the log at the prompt."""
        shown = self.shell.shown
        in_shell = self._s[kernels.MODE] == kernels.SHELL and not self._divided
        text = f"{len(self.files.log)} commits" if in_shell else (shown.path if shown else "") + "+"
        self._name = name_cells(text)
        self._s[kernels.NAME] = len(self._name)

    def _rows_of(self, edits: Sequence[Edit]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Edits and leaving as rows for the kernels, and their text; makes room for the lines and keys they add."""
        rows, texts, at, longest = list[int](), [], 0, 0
        for edit in edits:
            if isinstance(edit, Cut):
                rows += kernels.CUT, edit.line, 0, edit.count, at, at, 0, -1
            else:
                stop = at + len(edit.text)
                rows += kernels.SPLICE, edit.line, edit.column, edit.removed, at, stop, edit.paste, -1
                texts.append(edit.text)
                at, longest = stop, max(longest, edit.removed)
        rows += kernels.LEAVE, 0, 0, 0, at, at, 0, -1
        text = "".join(texts)
        self._glyphs.learn(text)
        added = text.count("\n") + 2
        if self._s[kernels.LINES] + added > len(self._table):
            self._widen(added)
        needed = 128 + 3 * len(text) + longest + int(self._s[kernels.ARENA])
        if needed > len(self._keys):
            self._keys = np.zeros(2 * needed, np.int32)
        return np.array(rows, np.int64).reshape(-1, 8), code_points(text)

    def _widen(self, added: int) -> None:
        """A longer gap in the table of lines, which has just been filled and has none yet."""
        lines = self._s[kernels.LINES]
        table = np.zeros((2 * (lines + added), 3), np.int64)
        table[:lines] = self._table[:lines]
        self._table = table
