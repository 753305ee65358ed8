"""The cell of a terminal frame (paper, section 9: what the model sees).

A frame is an (R, C) array of cells: a code point, two palette colours and style bits, packed into 7 bytes.
"""

import numpy as np
import numpy.typing as npt

CELL = np.dtype([("code", "<u4"), ("fg", "u1"), ("bg", "u1"), ("style", "u1")])
"""Unicode code point (32 is blank), ANSI palette index of text and background (0 is the default), style bits."""

SHIFTS = {"code": 0, "fg": 32, "bg": 40, "style": 48}
"""Where each part of a cell begins in its packed form, a number of 64 bits."""

Frames = npt.NDArray[np.void]
"""An array of ``CELL``: (R, C) for one frame, (n, R, C) for several."""

BLANK = 32
"""Code point of an empty cell."""

BOLD, REVERSE, UNDERLINE = 1, 2, 4
"""Bits of ``style``."""


def blank(rows: int, cols: int) -> Frames:
    """Return an empty frame.

    :param rows: number of rows R, at least 1
    :param cols: number of columns C, at least 1
    :returns: (R, C) array of ``CELL``, every cell a space in default colours
    :raises ValueError: a size below 1
    """
    if rows < 1 or cols < 1:
        raise ValueError(f"a frame needs at least one row and one column, not {rows} x {cols}")
    frame = np.zeros((rows, cols), dtype=CELL)  # (R, C)
    frame["code"] = BLANK
    return frame


def pack(frames: Frames) -> npt.NDArray[np.uint64]:
    """Return each cell as one number: code | fg << 32 | bg << 40 | style << 48; same shape."""
    return sum(frames[name].astype(np.uint64) << np.uint64(shift) for name, shift in SHIFTS.items())


def unpack(packed: npt.NDArray[np.uint64]) -> Frames:
    """Return the cells of which ``pack`` makes these numbers; same shape."""
    frames = np.empty(packed.shape, dtype=CELL)
    for name, shift in SHIFTS.items():
        frames[name] = (packed >> np.uint64(shift)).astype(CELL[name])
    return frames
