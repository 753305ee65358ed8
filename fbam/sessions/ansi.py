"""Frames as text for a terminal: cursor moves, colours and styles (ECMA-48), and characters.

``to_ansi`` is one whole frame, line by line; ``repaint`` is what turns one frame into the next, for a terminal of at least
their size that shows the first: only the cells that differ, and a few equal ones where stepping over them costs more bytes.
"""

from itertools import groupby

import numpy as np

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, Frames
from fbam.recording.drawable import CONTINUED, drawable

CLEAR = "\x1b[0m\x1b[H\x1b[2J"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
"""The cursor of a frame is one of its cells; that of the terminal would be a second one."""
MOVE_BYTES = 4
"""Equal cells between two different ones that are written again instead of stepped over."""
_STYLES = {BOLD: "1", UNDERLINE: "4", REVERSE: "7"}


def to_ansi(frame: Frames) -> str:
    """Draw a frame of (R, C) cells, one line of text a row; it begins and ends in the default style."""
    return "\n".join(map(_text, drawable(frame)))


def repaint(before: Frames, after: Frames) -> str:
    """What changes a terminal that shows ``before`` to show ``after``; it begins and ends in the default style.

    :param before: (R, C) cells, ``drawable``
    :param after: (R, C) cells, ``drawable``
    :returns: text that leaves the terminal's cursor anywhere; empty where the frames are equal
    """
    changed = before != after  # (R, C)
    return "".join(_repaint_row(y, after[y], np.flatnonzero(changed[y])) for y in np.flatnonzero(changed.any(axis=1)).tolist())


def _repaint_row(y: int, cells: Frames, places: np.ndarray) -> str:  # (C,), (changed cells,)
    """A row of which the cells at ``places`` differ. The first of them is never the second half of a wide character."""
    pieces, end = [], 0
    for part in np.split(places, np.flatnonzero(np.diff(places) > MOVE_BYTES) + 1):
        start, stop = int(part[0]), int(part[-1]) + 1
        pieces.append(f"\x1b[{start - end}C" if pieces else f"\x1b[{y + 1};{start + 1}H")
        pieces.append(_text(cells[start:stop]))
        end = stop + (stop < len(cells) and cells["code"][stop] == CONTINUED)
    return "".join(pieces)


def _text(cells: Frames) -> str:  # (k,)
    pieces: list[str] = []
    for look, run in groupby(cells.tolist(), key=lambda cell: cell[1:]):
        text = "".join(chr(code) for code, *_ in run if code != CONTINUED)
        codes = _codes(*look)
        pieces.append(f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text)
    return "".join(pieces)


def _codes(fg: int, bg: int, style: int) -> list[str]:
    """The parameters for one look; colour 0 is the terminal's default."""
    return [code for bit, code in _STYLES.items() if style & bit] + _colour(fg, 30) + _colour(bg, 40)


def _colour(index: int, base: int) -> list[str]:
    """Colours 1 to 15 are those the reader of the terminal has chosen, the others fixed ones."""
    if index == 0:
        return []
    if index < 8:
        return [str(base + index)]
    return [str(base + 60 + index - 8)] if index < 16 else [f"{base + 8};5;{index}"]
