"""Draws a terminal frame as it looks, for a page: an array of cells becomes one HTML element with colours.

It stands apart from the plots, so that a change to the recordings does not touch the notebooks that only plot numbers.
"""

import html
from collections.abc import Iterable, Iterator
from itertools import groupby

from fbam.recording.cells import BOLD, UNDERLINE, Frames
from fbam.recording.colours import INK, PAPER, inks
from fbam.recording.drawable import CONTINUED, drawable

WIDE = "display:inline-block;width:2ch"
Look = tuple[int, int, int]  # text colour, background colour, style bits
COLUMNS_AT_FULL_SIZE = 88  # a wider frame is drawn smaller, to fit a page's column
PRE = f"color:{INK};background:{PAPER};border:1px solid #8c959f;padding:.5em;line-height:1.2;overflow-x:auto;width:max-content;max-width:100%"


def frame_html(frame: Frames, label: str) -> str:
    """An (R, C) frame as a `<pre>` that carries its own colours; `label` is read out in the place of the picture.

    Neighbouring cells of the same look share one element. Raises ValueError for an array of another rank.
    """
    if frame.ndim != 2:
        raise ValueError(f"one frame is an (R, C) array of cells, not one of shape {frame.shape}")
    rows = map(_glyphs, drawable(frame))
    lines = ["".join(_run(look, glyphs) for look, glyphs in groupby(row, key=lambda pair: pair[0])) for row in rows]
    size = min(1, COLUMNS_AT_FULL_SIZE / frame.shape[1])
    style = f"{PRE};font-size:{max(0.5, size):.2f}em"
    return f'<pre role="img" aria-label="{html.escape(label)}" style="{style}">' + "\n".join(lines) + "</pre>"


def _glyphs(row: Frames) -> Iterator[tuple[Look, str]]:
    """Look and markup of each character of a row (C,); a wide one is given the room of its two cells."""
    cells = row.tolist()
    for (code, *look), following in zip(cells, [*cells[1:], None], strict=True):
        glyph = html.escape(chr(code))
        if following and following[0] == CONTINUED:
            glyph = f'<span style="{WIDE}">{glyph}</span>'
        if code != CONTINUED:
            yield tuple(look), glyph


def _run(look: Look, glyphs: Iterable[tuple[Look, str]]) -> str:
    text, css = "".join(glyph for _, glyph in glyphs), _css(*look)
    return f'<span style="{css}">{text}</span>' if css else text


def _css(foreground: int, background: int, style: int) -> str:
    ink, paper = inks(foreground, background, style)
    parts = [f"color:{ink}"] if ink != INK else []
    parts += [f"background:{paper}"] if paper != PAPER else []
    parts += ["font-weight:bold"] if style & BOLD else []
    parts += ["text-decoration:underline"] if style & UNDERLINE else []
    return ";".join(parts)
