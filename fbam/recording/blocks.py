r"""A block of frames as bytes (paper, section 10.1: the lossless terminal recording).

The frame before the first one of a block counts as blank, so a block needs nothing from outside:

.. math:: x_t = D_t(x_{t-1}), \qquad x_{-1} = \text{blank}

where D_t is a short list of operations, see ``kernels.py``. A payload is the lengths of the four streams, 32 bits each,
and the streams. The paper packs runs, sliding-window references and a palette bit by bit; here the operations are those
of editors and shells, and zstd finds what repeats.
"""

import struct
from typing import Self

import numpy as np
import numpy.typing as npt

from fbam.recording import kernels
from fbam.recording.cells import CELL, Frames, blank, pack

LENGTHS = struct.Struct(f"<{kernels.STREAMS}I")
SNAPSHOTS = 16
"""Frames a block keeps when it has passed over them once, so that any other is near to one of them."""
LARGE_ARRAY = 2**23
"""Bytes of an array that is written past the caches, because they could not hold it: faster, as nothing is read first."""


class Canvas:
    """The frame before the last pair and the present one, and the streams of a block that grows with each pair.

    :param rows: R, rows of a frame
    :param cols: C, columns of a frame
    """

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self._old = np.empty(rows * cols, dtype=np.uint64)
        self._new = pack(blank(rows, cols)).reshape(-1)
        self._dirty = np.empty(rows + 1, dtype=np.int64)
        self._low, self._high = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
        self._registers = np.empty(kernels.REGISTERS, dtype=np.int64)
        self._streams = np.empty((kernels.STREAMS, 2 * kernels.pair_room(rows, cols)), dtype=np.uint8)
        self._used = np.empty(kernels.STREAMS, dtype=np.int64)
        self._palette = np.zeros(2 * rows * cols + 64, dtype=np.uint32)
        self._looks = np.zeros(1, dtype=np.int64)
        self.begin()

    @property
    def palette(self) -> npt.NDArray[np.uint32]:
        """(P,) the looks so far: foreground | background << 8 | style << 16."""
        return self._palette[: self._looks[0]]

    def begin(self) -> None:
        """Start a block."""
        kernels.begin_block(
            self._old, self.rows, self.cols, self._dirty, self._low, self._high, self._registers, self._used
        )

    def change(self, position: npt.NDArray[np.integer], cell: npt.NDArray[np.uint64]) -> None:
        """Replace cells of the present frame."""
        kernels.change(self._new, self.cols, self._dirty, self._low, self._high, position, cell, 0, len(position))

    def show(self, frame: npt.NDArray[np.uint64]) -> None:
        """Make ``frame``, (R C,) packed cells, the present one."""
        kernels.compare(self._new, frame, self.cols, self._dirty, self._low, self._high)

    def add(
        self,
        first: int,
        stop: int,
        offsets: npt.NDArray[np.int64],
        position: npt.NDArray[np.integer],
        cell: npt.NDArray[np.uint64],
    ) -> None:
        """Write the pairs ``first`` to ``stop`` - 1 of a batch: each is the present frame, then changes of it."""
        while first < stop:
            first = kernels.encode_pairs(
                first, stop, offsets, position, cell, self._old, self._new, self.rows, self.cols, self._dirty,
                self._low, self._high, self._registers, self._streams, self._used, self._palette, self._looks,
            )  # fmt: skip
            if first < stop:
                self._grow()

    def _grow(self) -> None:
        room = max(self._streams.shape[1], int(self._used.max()) + kernels.pair_room(self.rows, self.cols))
        streams = np.empty((kernels.STREAMS, 2 * room), dtype=np.uint8)
        for k, used in enumerate(self._used):
            streams[k, :used] = self._streams[k, :used]
        self._streams = streams
        self._palette = np.concatenate([self._palette, np.zeros_like(self._palette)])

    def payload(self) -> bytes:
        """The block so far."""
        streams = [self._streams[k, :used].tobytes() for k, used in enumerate(self._used)]
        return b"".join([LENGTHS.pack(*self._used.tolist()), *streams])


class Block:
    """A block ready to be drawn. It remembers where it stands: the next frames cost nothing but themselves.

    :param payload: what ``Canvas.payload`` gave
    :param n: number of its frames
    :param palette: (P,) looks
    :raises ValueError: the lengths of the streams are not that of the payload
    """

    def __init__(self, payload: bytes, n: int, rows: int, cols: int, palette: npt.NDArray[np.uint32]) -> None:
        self._rows, self._cols, self._palette = rows, cols, palette
        if len(payload) < LENGTHS.size:
            raise ValueError("a block without the lengths of its streams")
        bounds = np.cumsum([LENGTHS.size, *LENGTHS.unpack_from(payload)])
        if bounds[-1] != len(payload):
            raise ValueError(f"a block of {len(payload)} bytes is not as long as its streams")
        self._payload = np.frombuffer(payload, dtype=np.uint8)
        self._interval = -(-n // SNAPSHOTS)
        self._frames = np.empty((n // self._interval + 3, CELL.itemsize * rows * cols), dtype=np.uint8)
        self._frames[0] = blank(rows, cols).reshape(-1).view(np.uint8)
        self._places = np.zeros((len(self._frames) - 1, 2 * kernels.STREAMS + kernels.REGISTERS), dtype=np.int64)
        self._places[0, : kernels.STREAMS] = bounds[:-1]
        self._places[0, kernels.STREAMS : 2 * kernels.STREAMS] = bounds[1:]
        self._places[0, 2 * kernels.STREAMS + kernels.OPERATIONS_BEFORE] = bounds[kernels.OPERATIONS]
        self._places[0, 2 * kernels.STREAMS + kernels.PLACES_BEFORE] = bounds[kernels.PLACES]
        self._places[0, 2 * kernels.STREAMS + kernels.NUMBERS_BEFORE] = bounds[kernels.NUMBERS]
        self._known = np.array([1, -1], dtype=np.int64)

    def draw(self, wanted: npt.NDArray[np.int64], slots: npt.NDArray[np.int64], out: npt.NDArray[np.uint8]) -> None:
        """Write frames of the block.

        :param wanted: (w,) frame numbers in the block, ascending
        :param slots: (w,) for each of them, its row of ``out``
        :param out: (k, 7 R C) bytes of frames
        :raises ValueError: the payload is not one of such frames
        """
        aligned = -out.ctypes.data % 8 if out.nbytes > LARGE_ARRAY else -1
        kernels.draw_frames(
            self._payload, self._palette, self._rows, self._cols, self._frames, self._places, self._known,
            self._interval, wanted, slots, out, aligned,
        )  # fmt: skip


def encode_block(frames: Frames) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Return the payload of (n, R, C) frames, n at least 1, and the palette."""
    canvas = Canvas(*frames.shape[1:])
    nothing, none = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for frame in pack(frames).reshape(len(frames), -1):
        canvas.show(frame)
        canvas.add(0, 1, nothing, none, none.astype(np.uint64))
    return canvas.payload(), canvas.palette.copy()
