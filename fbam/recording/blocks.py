r"""A block of frames as bytes (paper, section 10.1: the lossless terminal recording).

Each frame is the one before with a few cells replaced, and the first is the blank frame with its cells replaced, so a
block needs nothing from outside:

.. math:: x_t = x_{t-1} \text{ with the cells } D_t \text{ replaced}, \qquad x_{-1} = \text{blank}

The n frames of R x C cells are laid out as one strip of n R C cells. A changed cell is stored as its gap, the distance
on the strip from the changed cell before it, and its new content. Gaps and contents go into byte planes, which suit
the general compressor that follows. The paper packs runs, sliding-window references and a palette bit by bit; here
zstd finds the runs and references.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fbam.recording.cells import CELL, Frames, blank

OPAQUE = np.dtype(f"V{CELL.itemsize}")
"""A cell as 7 bytes without fields: numpy copies and scatters these several times faster than ``CELL``."""

CHANGE = np.dtype([("gap", "<u4"), ("cell", OPAQUE)])
"""One changed cell as it is stored, 11 bytes."""

MAX_STRIP = 2**32 - 1
"""Most cells a block can hold: a gap is an unsigned number of 32 bits."""


def encode_block(frames: Frames) -> bytes:
    """Return the changes of one block, uncompressed.

    :param frames: (n, R, C) array of ``CELL``, n at least 1, n R C at most ``MAX_STRIP``
    """
    n, rows, cols = frames.shape
    raw = np.ascontiguousarray(frames).reshape(n, rows * cols).view(np.uint8)  # (n, 7RC)
    differs = np.empty(raw.shape, dtype=bool)  # (n, 7RC)
    np.not_equal(raw[0], blank(rows, cols).reshape(-1).view(np.uint8), out=differs[0])
    np.not_equal(raw[1:], raw[:-1], out=differs[1:])
    strip = np.flatnonzero(differs) // CELL.itemsize  # a cell appears once for each of its changed bytes
    strip = strip[np.diff(strip, prepend=-1) != 0]  # (m,)
    changes = np.empty(len(strip), dtype=CHANGE)
    changes["gap"] = np.diff(strip, prepend=0)
    changes["cell"] = raw.reshape(-1).view(OPAQUE)[strip]
    return changes.view(np.uint8).reshape(-1, CHANGE.itemsize).T.tobytes()  # (11, m)


@dataclass(frozen=True)
class Block:
    """The changes of one block, ready to be applied: memory grows with what changes, not with the size of a frame."""

    rows: int
    cols: int
    offsets: list[int]
    """n + 1 numbers: frame t changes the entries offsets[t] to offsets[t + 1]."""
    position: npt.NDArray[np.int64]
    """(m,) index of each changed cell in its frame, 0 to R C - 1."""
    cell: npt.NDArray[np.void]
    """(m,) new content of each changed cell, of ``OPAQUE``."""

    @classmethod
    def decode(cls, payload: bytes, n: int, rows: int, cols: int) -> Self:
        """Read what ``encode_block`` wrote for n frames of R x C cells.

        :raises ValueError: the payload does not fit n such frames
        """
        planes = np.frombuffer(payload, dtype=np.uint8)
        if len(planes) % CHANGE.itemsize:
            raise ValueError(f"a block of {len(planes)} bytes is not a whole number of changes")
        planes = planes.reshape(CHANGE.itemsize, -1)  # (11, m)
        changes = np.empty(planes.shape[1], dtype=CHANGE)  # (m,)
        by_byte = changes.view(np.uint8).reshape(-1, CHANGE.itemsize)  # (m, 11)
        for k, plane in enumerate(planes):  # faster than one transposed copy
            by_byte[:, k] = plane
        strip = np.cumsum(changes["gap"], dtype=np.int64)  # (m,)
        if len(strip) and strip[-1] >= n * rows * cols:
            raise ValueError(f"a change lies outside the {n} frames of {rows} x {cols}")
        offsets = np.searchsorted(strip, np.arange(n + 1) * (rows * cols))
        return cls(rows, cols, offsets.tolist(), strip % (rows * cols), changes["cell"])

    def draw(self, wanted: list[int], slots: list[int], out: Frames) -> None:
        """Write frames of the block into ``out``.

        :param wanted: frame numbers in the block, one at least, ascending
        :param slots: for each of them, its row in ``out``
        :param out: (k, R, C) array of ``CELL``
        """
        flat = out.reshape(len(out), -1).view(OPAQUE)  # (k, RC)
        done = self.offsets[wanted[0] + 1]
        frame = self._after(done)  # (RC,)
        for t, slot in zip(wanted, slots, strict=True):
            stop = self.offsets[t + 1]
            frame[self.position[done:stop]] = self.cell[done:stop]
            flat[slot] = frame
            done = stop

    def _after(self, m: int) -> npt.NDArray[np.void]:
        """Return the (RC,) cells after the first m changes, of ``OPAQUE``."""
        frame = blank(self.rows, self.cols).reshape(-1).view(OPAQUE)  # (RC,)
        latest = np.full(len(frame), -1)  # (RC,)
        # Where a cell changes several times, numpy assigns in order and the latest change stays. Numbers of changes
        # are scattered several times faster than their contents.
        latest[self.position[:m]] = np.arange(m)
        known = latest >= 0
        frame[known] = self.cell[latest[known]]
        return frame
