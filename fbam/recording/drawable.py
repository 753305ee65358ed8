"""What of a frame a terminal or a page can draw.

A recording holds any code point in any cell. A drawing has rules: a wide character fills its own cell and the next one,
of which the code is ``CONTINUED``, in one look; controls, surrogates and zero-width characters have no picture of
their own and are drawn as U+FFFD. ``drawable`` makes every frame follow them, so that all drawings show the same.
"""

from functools import lru_cache

import numpy as np
from wcwidth import wcwidth

from fbam.recording.cells import BLANK, Frames

CONTINUED = 0
"""Code of the second cell of a wide character."""
REPLACEMENT = 0xFFFD
"""Drawn where a cell's code has no picture that fills exactly one cell, or two where ``CONTINUED`` follows."""


def drawable(frames: Frames) -> Frames:
    """The frames as they are drawn; the same array where every cell holds a character that fills just it.

    :param frames: (..., R, C) array of ``CELL``
    :returns: (..., R, C): a wide character without room, and what has no width, is U+FFFD; a lone ``CONTINUED`` is
        blank; the second cell of a wide character has the look of the first
    """
    codes = frames["code"]
    special = (codes < BLANK) | (codes > 126)  # (..., R, C)
    if not special.any():
        return frames
    values, inverse = np.unique(codes[special], return_inverse=True)
    known = np.array([_width(code) for code in values.tolist()], dtype=np.int8)  # -1: nothing can be drawn, 0: CONTINUED
    if (known == 1).all():
        return frames
    widths = np.ones(codes.shape, dtype=np.int8)  # (..., R, C)
    widths[special] = known[inverse]
    first = np.zeros(codes.shape, dtype=bool)  # wide characters that have their second cell
    first[..., :-1] = (widths[..., :-1] == 2) & (widths[..., 1:] == 0)
    second = np.roll(first, 1, axis=-1)
    drawn = frames.copy()
    drawn["code"][(widths == 0) & ~second] = BLANK
    drawn["code"][(widths < 0) | (widths == 2) & ~first] = REPLACEMENT
    for name in ("fg", "bg", "style"):
        drawn[name][second] = drawn[name][first]
    return drawn


@lru_cache(maxsize=65_536)
def _width(code: int) -> int:
    if code == CONTINUED:
        return 0
    width = wcwidth(chr(code)) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else -1
    return width or -1
