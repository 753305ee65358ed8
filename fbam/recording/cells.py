"""The cell of a terminal frame (paper, section 9: what the model sees).

A frame is an (R, C) array of cells: a code point, two palette colours and style bits, packed into 7 bytes.
"""

import numpy as np
import numpy.typing as npt

CELL = np.dtype([("code", "<u4"), ("fg", "u1"), ("bg", "u1"), ("style", "u1")])
"""Unicode code point (32 is blank), ANSI palette index of text and background (0 is the default), style bits."""

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
