"""How text looks in cells: tabs, wide, zero-width and control characters, invalid bytes (paper, section 10.1).

Every character takes at least one cell, so that nothing in a file is invisible and the cursor always moves:

=============================  ===================  =========================================
character                      cells                drawn as
=============================  ===================  =========================================
printable                      1                    itself
wide (CJK, emoji)              2                    itself, then the cell ``CONTINUED``
tab                            1 to 4               blanks up to the next multiple of 4
control below 32, 127          2                    ``^A`` … ``^?``, coloured
zero-width, other control      4 and more           its code point, ``<200b>``, coloured
byte that is not UTF-8         4                    ``\\xff``, coloured
=============================  ===================  =========================================
"""

from functools import lru_cache
from typing import NamedTuple

from wcwidth import wcwidth

TAB_STOP = 4
CONTINUED = "\0"
"""In the second cell of a wide character; no character of a text is drawn as code 0."""
SPECIAL = "\4"
"""Colour (ANSI palette index 4, blue) of what stands for a character that cannot be drawn."""


class Strip(NamedTuple):
    """A row of cells: one character a cell, and as long a string whose characters are palette indices."""

    text: str
    colour: str


def join(*strips: Strip) -> Strip:
    """Strips side by side."""
    return Strip("".join([one.text for one in strips]), "".join([one.colour for one in strips]))


def plain(text: str, colour: str = "\0") -> Strip:
    """A strip in one colour of characters that each fill one cell."""
    return Strip(text, colour * len(text))


def strip(text: str) -> Strip:
    """Draw ``text``, which is one line, without a limit of width."""
    expanded = text.expandtabs(TAB_STOP)
    if expanded.isascii() and expanded.isprintable():
        return Strip(expanded, "\0" * len(expanded))
    return _slow_strip(text)


@lru_cache(maxsize=256)
def _slow_strip(text: str) -> Strip:
    cells: list[str] = []
    colour: list[str] = []
    for character in text:
        piece, special = glyph(character) if character != "\t" else (" " * (TAB_STOP - len(cells) % TAB_STOP), False)
        cells += piece
        colour += (SPECIAL if special else "\0") * len(piece)
    return Strip("".join(cells), "".join(colour))


@lru_cache(maxsize=4096)
def glyph(character: str) -> tuple[str, bool]:
    """The cells of one character, and whether they only stand for it."""
    code = ord(character)
    if code < 32 or code == 127:
        return "^" + chr(code ^ 64), True
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}", True
    width = wcwidth(character)
    if width < 1 or 0xD800 <= code <= 0xDFFF:
        return f"<{code:02x}>", True
    return (character, False) if width == 1 else (character + CONTINUED, False)


def window(whole: Strip, left: int, width: int) -> Strip:
    """Cut ``width`` cells from ``left`` on; half of a wide character at an edge becomes ``<`` or ``>``."""
    text, colour = whole.text[left : left + width], whole.colour[left : left + width]
    if text.startswith(CONTINUED):
        text, colour = "<" + text[1:], SPECIAL + colour[1:]
    if whole.text[left + width : left + width + 1] == CONTINUED:
        text, colour = text[:-1] + ">", colour[:-1] + SPECIAL
    return Strip(text, colour)


def wrap(whole: Strip, width: int) -> list[Strip]:
    """Break into rows of at most ``width`` cells (2 or more), never inside a wide character; at least one row."""
    rows: list[Strip] = []
    start = 0
    while len(whole.text) - start > width:
        stop = start + width - (whole.text[start + width] == CONTINUED)
        rows.append(Strip(whole.text[start:stop], whole.colour[start:stop]))
        start = stop
    return [*rows, Strip(whole.text[start:], whole.colour[start:])]
