"""A stand-in for the writer of recordings that keeps everything as lists, one entry a pair."""

import numpy as np

from fbam.recording.cells import Frames, pack, unpack


class Tape:
    """Keeps frames and actions; of compiled hands it replays the changes that they list.

    :ivar frames: (R, C) frames in order
    :ivar actions: their actions
    :ivar opened: (pair, path) of each file opened
    """

    def __init__(self, rows: int, cols: int) -> None:
        self.frames: list[Frames] = []
        self.actions: list[str] = []
        self.opened: list[tuple[int, str]] = []
        self._shape, self._table = (rows, cols), []
        self._frame = np.full(rows * cols, 32, np.uint64)

    def code(self, action: str) -> int:
        if len(action) == 1:
            return ord(action)
        if action not in self._table:
            self._table.append(action)
        return 0x110000 + self._table.index(action)

    def draw(self, position: np.ndarray, cell: np.ndarray) -> None:
        self._frame[position] = cell

    def extend(self, codes: np.ndarray, offsets: np.ndarray, position: np.ndarray, cell: np.ndarray) -> None:
        assert (codes.dtype, offsets.dtype, position.dtype, cell.dtype) == (np.int32, np.int64, np.int32, np.uint64)
        assert offsets[0] == 0 and offsets[-1] == len(position) == len(cell) and len(offsets) == len(codes) + 1
        for k, code in enumerate(codes.tolist()):
            self.actions.append(chr(code) if code < 0x110000 else self._table[code - 0x110000])
            self.frames.append(unpack(self._frame).reshape(self._shape))
            for place, value in zip(position[offsets[k] : offsets[k + 1]], cell[offsets[k] : offsets[k + 1]]):
                self._frame[place] = value

    def append(self, frame: Frames, action: str) -> None:
        self.actions.append(action)
        self.frames.append(frame.copy())
        self._frame = pack(frame).reshape(-1)

    def mark_file(self, path: str, ahead: int = 0) -> None:
        self.opened.append((len(self.actions) + ahead, path))
