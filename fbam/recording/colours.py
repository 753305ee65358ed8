"""The colours of a frame on a page: which ink on which paper, so that it can be read.

Terminals take colours 1 to 15 from their owner. Ours are dark inks for white paper and bright ones for dark paper, both with a
contrast of 4.5 or more but for the two whites; colours from 16 on are fixed, a cube and greys. A coloured ground is a
dark one of the same palette, so text on it is bright, as it is in a terminal; the two whites are pale grounds.
"""

from fbam.recording.cells import REVERSE

INK, PAPER = "#24292f", "#ffffff"
PALETTE = (
    INK, "#b31d28", "#116329", "#7d4e00", "#0550ae", "#8250df", "#0f6674", "#6e7781",
    "#57606a", "#c4312d", "#1a7f37", "#9a6700", "#0969da", "#a02fbf", "#1b7c83", "#8c959f",
)  # fmt: skip
"""Inks 1 to 15 on white paper; number 0 is the default."""
BRIGHT = (
    "#dfe3e8", "#ff8b85", "#7ddf94", "#e3b75c", "#86b7ff", "#d3a8ff", "#6fd3de", "#ffffff",
    "#a3abb6", "#ffa39e", "#95eaa8", "#f0ca7a", "#a2c9ff", "#e2c1ff", "#8fe3ec", "#ffffff",
)  # fmt: skip
"""Inks 1 to 15 on dark paper."""
PALE_GROUNDS = {7: "#d0d7de", 15: "#f6f8fa"}
MIDDLE = 0.18
"""Luminance from which dark text is read more easily than bright text."""
CUBE = (0, 95, 135, 175, 215, 255)


def colour(index: int, default: str, palette: tuple[str, ...] = PALETTE) -> str:
    """The hex colour of a palette index: 0 the default, 1 to 15 of the palette, 16 to 231 a cube, 232 to 255 greys."""
    if index == 0:
        return default
    if index < 16:
        return palette[index]
    if index < 232:
        rest = index - 16
        return "#" + "".join(f"{CUBE[rest // step % 6]:02x}" for step in (36, 6, 1))
    return "#" + f"{8 + 10 * (index - 232):02x}" * 3


def luminance(hex_colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 black to 1 white (WCAG 2)."""
    parts = (int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def inks(fg: int, bg: int, style: int) -> tuple[str, str]:
    """Colour of text and of paper for the look of a cell on white paper; with ``REVERSE`` they change places."""
    if style & REVERSE and bg:
        return _on_ground(bg, fg) if fg else (colour(bg, PAPER, BRIGHT), INK)
    if style & REVERSE:
        return PAPER, colour(fg, INK)
    return _on_ground(fg, bg) if bg else (colour(fg, INK), PAPER)


def _on_ground(text: int, ground: int) -> tuple[str, str]:
    paper = PALE_GROUNDS.get(ground) or colour(ground, PAPER)
    if luminance(paper) < MIDDLE:
        return colour(text, PAPER, BRIGHT), paper
    return colour(text, INK), paper
