r"""A player of recorded frames for a page: one element that needs nothing from outside it (paper, figures 14 and 17).

    display(HTML(player_html(recording.frames(0, 600), list(map(key_label, recording.actions[:600])), "A session")))

Frames are stored as changes: of each frame the runs of cells that differ from the frame before, each run a number in a
table of distinct (text, look) pairs, since lines that scroll by come back elsewhere. A few lines of script draw them,
so any number of players can stand on one page. Without the script the text of the first frame is seen.
"""

import html
import json
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from fbam.analysis.player_parts import DARK, LIGHT, SPEEDS, STYLE, TEMPLATE
from fbam.analysis.player_script import SCRIPT
from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, Frames, blank
from fbam.recording.colours import colour, inks
from fbam.recording.drawable import drawable

GAP = 2  # unchanged cells between two changed ones that are cheaper sent along
WHOLE_ROW = 1 / 3  # share of changed cells from which a row is sent whole, so that it is found in the table again
KEY_NAMES = {
    "\r": "Enter", "\t": "Tab", "\x7f": "Backspace", "\x1b": "Esc", " ": "Space", "\x1b[A": "↑", "\x1b[B": "↓", "\x1b[C": "→", "\x1b[D": "←",
    "\x1b[H": "Home", "\x1b[F": "End", "\x1b[5~": "Page up", "\x1b[6~": "Page down", "\x1b[3~": "Delete", "": "no key",
}  # fmt: skip
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"


def key_label(action: str) -> str:
    """What is written on the key of an action: itself, Enter, Ctrl-U, ``paste of 120`` characters, or its code."""
    if action.startswith(PASTE_START):
        return f"paste of {len(action.removeprefix(PASTE_START).removesuffix(PASTE_END))}"
    if len(action) == 1 and action < " " and action not in KEY_NAMES:
        return f"Ctrl-{chr(ord(action) ^ 64)}"
    return KEY_NAMES.get(action, action if len(action) == 1 and action.isprintable() else ascii(action)[1:-1])


def player_html(frames: Frames, labels: Sequence[str], title: str, *, rate: float = 20.0) -> str:
    """A player with a play button, a scrubber, a choice of speed, and the labels of the frames up to the one shown.

    :param frames: (n, R, C) array of ``CELL``, n at least 1
    :param labels: n texts, ``labels[t]`` belongs to frame t: the key pressed on it (see ``key_label``), or any other
        short note; an empty one is not shown
    :param title: what is played; the caption of the element and its name for a screen reader
    :param rate: frames a second at speed 1
    :returns: one ``<figure>``; equal arguments give equal text, and several can stand on one page or side by side in a
        grid: it takes the width it is given and sizes its text by it
    :raises ValueError: not (n, R, C) with n at least 1, another number of labels, or a rate that is not positive
    """
    if frames.ndim != 3 or len(frames) < 1:
        raise ValueError(f"a player shows (n, R, C) frames, at least one, not an array of shape {frames.shape}")
    if len(labels) != len(frames):
        raise ValueError(f"{len(frames)} frames have {len(labels)} labels: give one a frame")
    if not rate > 0:
        raise ValueError(f"rate {rate}: frames a second must be more than 0")
    shown = drawable(frames)
    data = _packed(shown) | {"labels": [_writable(label) for label in labels], "rate": rate}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/").replace("<!", "\\u003c!")
    first = "\n".join("".join(map(chr, row[row["code"] > 0]["code"].tolist())).rstrip() for row in shown[0])
    return TEMPLATE.substitute(
        style=STYLE.substitute(light=_variables(LIGHT), dark=_variables(DARK)), script=SCRIPT, data=text,
        title=html.escape(_writable(title)), first=html.escape(first), last=len(frames) - 1, cols=frames.shape[2],
        speeds="".join(f"<option{' selected' if speed == 1 else ''} value={speed}>{speed}×</option>" for speed in SPEEDS),
    )  # fmt: skip


def _variables(palette: Sequence[str]) -> str:
    return ";".join(f"--k{index}:{value}" for index, value in enumerate(palette))


def _writable(text: str) -> str:
    """A text without lone surrogates, which no page can hold."""
    return text.encode("utf-8", "replace").decode()


def _packed(frames: Frames) -> dict[str, object]:
    """Sizes, table of runs, styles of the looks, and for each frame [position, run, position, run, ...]."""
    n, rows, cols = frames.shape
    runs: dict[tuple[str, int], int] = {}
    looks: dict[tuple[int, int, int], int] = {(0, 0, 0): 0}
    steps: list[list[int]] = []
    before = blank(rows, cols)
    for frame in frames:
        step: list[int] = []
        for position, text, look in _changes(before, frame):
            step += position, runs.setdefault((text, looks.setdefault(look, len(looks))), len(runs))
        steps.append(step)
        before = frame
    return {"rows": rows, "cols": cols, "runs": list(runs), "looks": [_css(*look) for look in looks], "steps": steps}


def _changes(before: Frames, after: Frames) -> Iterator[tuple[int, str, tuple[int, int, int]]]:
    """Position, text and look of each run of cells to draw; in the text U+0000 is the second cell of a wide character."""
    changed = before != after  # (R, C)
    cols = after.shape[1]
    for y in np.flatnonzero(changed.any(axis=1)).tolist():
        places = np.flatnonzero(changed[y])  # (changed cells of the row,)
        if len(places) > WHOLE_ROW * cols:
            places = np.arange(cols)
        for part in np.split(places, np.flatnonzero(np.diff(places) > GAP + 1) + 1):
            at = int(part[0])
            for look, cells in groupby(after[y, at : part[-1] + 1].tolist(), key=lambda cell: cell[1:]):
                text = "".join(chr(code) for code, *_ in cells)
                yield y * cols + at, text, look
                at += len(text)


def _css(fg: int, bg: int, style: int) -> str:
    """The declarations of a look; on the page's own paper, colours below 16 follow the reader's light or dark page."""
    ink, paper = inks(fg, bg, style) if bg else (f"var(--k{fg})" if 0 < fg < 16 else colour(fg, ""), "")
    if style & REVERSE and not bg:
        ink, paper = "var(--k0)", ink or "var(--k16)"
    parts = [f"color:{ink}"] if ink else []
    parts += [f"background:{paper}"] if paper else []
    parts += ["font-weight:bold"] if style & BOLD else []
    parts += ["text-decoration:underline"] if style & UNDERLINE else []
    return ";".join(parts)
