"""A frame as text for a terminal: ANSI colours and styles (ECMA-48 "select graphic rendition")."""

from itertools import groupby

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, Frames
from fbam.sessions.glyphs import CONTINUED

_STYLES = {BOLD: "1", UNDERLINE: "4", REVERSE: "7"}


def to_ansi(frame: Frames) -> str:
    """Draw a frame of (R, C) cells, one line of text a row; it begins and ends in the default style."""
    return "\n".join(_row(frame[y]) for y in range(frame.shape[0]))


def _row(cells: Frames) -> str:  # (C,)
    pieces: list[str] = []
    for look, run in groupby(cells.tolist(), key=lambda cell: cell[1:]):
        text = "".join(chr(code) for code, *_ in run).replace(CONTINUED, "")
        codes = _codes(*look)
        pieces.append(f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text)
    return "".join(pieces)


def _codes(fg: int, bg: int, style: int) -> list[str]:
    """The parameters for one look; colour 0 is the terminal's default."""
    styles = [code for bit, code in _STYLES.items() if style & bit]
    return styles + [f"{base};5;{colour}" for base, colour in ((38, fg), (48, bg)) if colour]
