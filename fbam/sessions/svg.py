"""One frame as a picture: SVG that stands alone, on a grid of cells, in whatever monospace font the reader has.

Each run of one look is one text element stretched to the width of its cells, so columns stay in line in every font; a wide
character is a run of its own and fills two cells.
"""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from fbam.recording.cells import BOLD, UNDERLINE, Frames
from fbam.recording.colours import INK, PAPER, inks
from fbam.recording.drawable import CONTINUED, drawable

CELL_WIDTH, CELL_HEIGHT, BASELINE, MARGIN = 8, 16, 12, 8  # pixels
NO_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"


def to_svg(frame: Frames, title: str) -> str:
    """Draw a frame of (R, C) cells.

    :param title: what a screen reader says in place of the picture
    :returns: an SVG document; equal arguments give equal text
    """
    rows, cols = frame.shape
    width, height = cols * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    title = title.encode("utf-8", "replace").decode()
    body = "\n".join(piece for y, row in enumerate(drawable(frame)) for piece in _row(y, row))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label={quoteattr(title)} font-family={quoteattr(FONT)} font-size="13">\n'
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>\n'
        f'<g transform="translate({MARGIN} {MARGIN})" fill="{INK}">\n{body}\n</g>\n</svg>\n'
    )


def _row(y: int, cells: Frames) -> Iterator[str]:  # (C,)
    for x, width, text, look in _runs(cells):
        ink, paper = inks(*look)
        left, size, top = x * CELL_WIDTH, width * CELL_WIDTH, y * CELL_HEIGHT
        if paper != PAPER:
            yield f'<rect x="{left}" y="{top}" width="{size}" height="{CELL_HEIGHT}" fill="{paper}"/>'
        if not text.isspace() or look[2] & UNDERLINE:
            fill = f' fill="{ink}"' if ink != INK else ""
            weight = ' font-weight="bold"' if look[2] & BOLD else ""
            line = ' text-decoration="underline"' if look[2] & UNDERLINE else ""
            yield (f'<text x="{left}" y="{top + BASELINE}" textLength="{size}" lengthAdjust="spacingAndGlyphs" '
                   f'xml:space="preserve"{fill}{weight}{line}>{escape(text.translate(NO_XML))}</text>')  # fmt: skip


def _runs(cells: Frames) -> Iterator[tuple[int, int, str, tuple[int, int, int]]]:
    """First cell, number of cells, text and look of each run; a wide character is a run of its own."""
    codes, looks = [*cells["code"].tolist(), -1], [cell[1:] for cell in cells.tolist()]
    start = 0
    while start < len(looks):
        stop = start + 1
        if codes[stop] == CONTINUED:
            stop += 1
        else:
            while stop < len(looks) and looks[stop] == looks[start] and codes[stop + 1] != CONTINUED:
                stop += 1
        yield start, stop - start, "".join(chr(code) for code in codes[start:stop] if code != CONTINUED), looks[start]
        start = stop
