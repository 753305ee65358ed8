"""Draws a terminal frame as it looks, for a page: an array of cells becomes one HTML element with colours.

It stands apart from the plots, so that a change to the recordings does not touch the notebooks that only plot numbers.
"""

import html
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, Frames

# Colours 1 to 15 of the palette, dark enough to be read on white (contrast 4.5 or more, but for the whites).
PALETTE = (
    "#24292f", "#b31d28", "#116329", "#7d4e00", "#0550ae", "#8250df", "#0f6674", "#6e7781",
    "#57606a", "#c4312d", "#1a7f37", "#9a6700", "#0969da", "#a02fbf", "#1b7c83", "#8c959f",
)  # fmt: skip
CONTINUED = 0  # code of the second cell of a wide character
WIDE = "display:inline-block;width:2ch"
Look = tuple[int, int, int]  # text colour, background colour, style bits
TEXT, BACKGROUND = "#24292f", "#ffffff"
CUBE = (0, 95, 135, 175, 215, 255)
COLUMNS_AT_FULL_SIZE = 88  # a wider frame is drawn smaller, to fit a page's column
PRE = f"color:{TEXT};background:{BACKGROUND};border:1px solid #8c959f;padding:.5em;line-height:1.2;overflow-x:auto;width:max-content;max-width:100%"


def colour(index: int, default: str) -> str:
    """The hex colour of a palette index: 0 the default, 1 to 15 named colours, 16 to 231 a cube, 232 to 255 greys."""
    if index == 0:
        return default
    if index < 16:
        return PALETTE[index]
    if index < 232:
        rest = index - 16
        return "#" + "".join(f"{CUBE[rest // step % 6]:02x}" for step in (36, 6, 1))
    return "#" + f"{8 + 10 * (index - 232):02x}" * 3


def character(code: int) -> str:
    """The character to draw for a code point: what cannot be drawn (surrogates, controls, over U+10FFFF) becomes U+FFFD."""
    text = chr(code) if code <= 0x10FFFF else "\ufffd"
    return "\ufffd" if unicodedata.category(text) in ("Cc", "Cs") else text


def frame_html(frame: Frames, label: str) -> str:
    """An (R, C) frame as a `<pre>` that carries its own colours; `label` is read out in the place of the picture.

    Neighbouring cells of the same look share one element. Raises ValueError for an array of another rank.
    """
    if frame.ndim != 2:
        raise ValueError(f"one frame is an (R, C) array of cells, not one of shape {frame.shape}")
    lines = ["".join(_run(look, glyphs) for look, glyphs in groupby(_glyphs(row), key=lambda pair: pair[0])) for row in frame]
    size = min(1, COLUMNS_AT_FULL_SIZE / frame.shape[1])
    style = f"{PRE};font-size:{max(0.5, size):.2f}em"
    return f'<pre role="img" aria-label="{html.escape(label)}" style="{style}">' + "\n".join(lines) + "</pre>"


def _glyphs(row: Frames) -> Iterator[tuple[Look, str]]:
    """Look and markup of each character of a row (C,); a wide one is given the room of its two cells."""
    cells = row.tolist()
    for (code, *look), following in zip(cells, [*cells[1:], None], strict=True):
        glyph = html.escape(character(code))
        if following and following[0] == CONTINUED:
            glyph = f'<span style="{WIDE}">{glyph}</span>'
        if code != CONTINUED:
            yield tuple(look), glyph


def _run(look: Look, glyphs: Iterable[tuple[Look, str]]) -> str:
    text, css = "".join(glyph for _, glyph in glyphs), _css(*look)
    return f'<span style="{css}">{text}</span>' if css else text


def _css(foreground: int, background: int, style: int) -> str:
    ink, paper = colour(foreground, TEXT), colour(background, BACKGROUND)
    if style & REVERSE:
        ink, paper = paper, ink
    parts = [f"color:{ink}"] if ink != TEXT else []
    parts += [f"background:{paper}"] if paper != BACKGROUND else []
    parts += ["font-weight:bold"] if style & BOLD else []
    parts += ["text-decoration:underline"] if style & UNDERLINE else []
    return ";".join(parts)
