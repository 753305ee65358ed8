"""A terminal emulator as a source of frames: pyte, and what today's programs send that it does not know.

pyte keeps the screen. Added here: the alternate screen, scrolling by ``CSI S`` and ``CSI T``, repetition by ``CSI b``, line
drawing characters; left out are sequences that only set up keyboard, mouse or cursor shape, and strings for the terminal
itself (DCS, APC, PM). Sequences with the wrong number of parameters are ignored, as terminals do.

A cell holds one code point: of a character with combining marks the composed form, else the bare character. Of the
styles bold, underline and reverse are kept; colours of 24 bits become the nearest of the 256. The cursor, where it is
shown, is the cell that is reversed, as in our own screens.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any

import numpy as np
import pyte
from pyte.graphics import FG_BG_256
from wcwidth import wcwidth

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, Frames, blank

ALTERNATE = {47, 1047, 1049}
"""Private modes that switch to a screen of its own and back."""
RESIZE = 3
"""Private mode that sets 132 columns; frames have one size, so it is ignored."""
BLACK = 16
NAMES = {
    "default": 0, "black": BLACK, "red": 1, "green": 2, "brown": 3, "blue": 4, "magenta": 5, "cyan": 6, "white": 7,
    "brightblack": 8, "brightred": 9, "brightgreen": 10, "brightbrown": 11, "brightblue": 12, "brightmagenta": 13,
    "bfightmagenta": 13, "brightcyan": 14, "brightwhite": 15,
}  # fmt: skip
"""pyte's names of the colours, one of them misspelt there; black text is not the default, which is colour 0."""
CONTROL = re.compile(r"(\x1b\[[0-?]*[ -/]*[@-~])")
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[PX^_][^\x07\x1b]*\x1b?)?\Z")
LONGEST_UNFINISHED = 4096
STRINGS = re.compile(r"\x1b[PX^_].*?(?:\x1b\\|\x07)", re.DOTALL)
CHARSETS = re.compile(r"\x1b[*+\-./ ].")
IGNORED = re.compile(r"\x1b\[(?:[<=>].*|\?.*[^hl]|.*[!-/].)\Z", re.DOTALL)
"""Private and intermediate parameters, but for the modes that are set and reset."""


class _Screen(pyte.Screen):
    """pyte's screen with the events that ``_Stream`` adds."""

    _last = " "
    _main: tuple[dict[int, Any], Any] | None = None

    def draw(self, data: str) -> None:
        if not data.isascii():  # pyte drops all that follows a character without width
            data = "".join(c for c in data if wcwidth(c) > 0 or unicodedata.combining(c))
        super().draw(data)
        self._last = data[-1:] or self._last

    def repeat(self, count: int = 1) -> None:
        self.draw(self._last * min(count or 1, self.columns * self.lines))

    def scroll_up(self, count: int = 1) -> None:
        self._scroll(count, self.delete_lines)

    def scroll_down(self, count: int = 1) -> None:
        self._scroll(count, self.insert_lines)

    def _scroll(self, count: int, change: Any) -> None:
        place = self.cursor.y, self.cursor.x
        self.cursor.y = self.margins.top if self.margins else 0
        change(count)
        self.cursor.y, self.cursor.x = place

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private"):
            if ALTERNATE & {*modes} and self._main is None:
                self._main = {y: line.copy() for y, line in self.buffer.items()}, (self.cursor.y, self.cursor.x)
                self.erase_in_display(2)
            modes = tuple(mode for mode in modes if mode != RESIZE)
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private"):
            if ALTERNATE & {*modes} and self._main is not None:
                self.erase_in_display(2)
                lines, (self.cursor.y, self.cursor.x) = self._main
                for y, line in lines.items():
                    self.buffer[y].update(line)
                self._main = None
            modes = tuple(mode for mode in modes if mode != RESIZE)
        super().reset_mode(*modes, **kwargs)


class _Stream(pyte.Stream):
    csi = {**pyte.Stream.csi, "b": "repeat", "S": "scroll_up", "T": "scroll_down"}
    events = pyte.Stream.events | {"repeat", "scroll_up", "scroll_down"}


class Emulator:
    """A terminal of (R, C) cells that draws what programs write to it.

    :ivar frame: (R, C) cells, a new array after each ``feed`` that changes something
    """

    def __init__(self, rows: int, cols: int) -> None:
        self._screen = _Screen(cols, rows)
        self._stream = _Stream(self._screen)
        self._stream.use_utf8 = False  # of text, this only turns the line drawing characters on
        self._bare = blank(rows, cols)  # without the cursor
        self._rest = ""
        self.frame: Frames = self._with_cursor()

    def feed(self, text: str) -> bool:
        """Draw; a sequence that is not complete waits for the next call.

        :returns: whether the frame has changed
        """
        text = self._rest + text
        unfinished = UNFINISHED.search(text)
        keep = unfinished.start() if unfinished and len(text) - unfinished.start() < LONGEST_UNFINISHED else len(text)
        text, self._rest = text[:keep], text[keep:]
        for piece in CONTROL.split(CHARSETS.sub("", STRINGS.sub("", text))):
            self._draw(piece)
        for y in self._screen.dirty:
            if y < len(self._bare):
                self._bare[y] = _cells(self._screen.buffer[y], self._bare.shape[1])
        self._screen.dirty.clear()
        before, self.frame = self.frame, self._with_cursor()
        return not np.array_equal(before, self.frame)

    def _draw(self, piece: str) -> None:
        if CONTROL.fullmatch(piece):
            if IGNORED.match(piece):
                return
            piece = piece.replace("::", ":").replace(":", ";")  # the newer way to write colours
        try:
            self._stream.feed(piece)
        except (TypeError, ValueError):  # more parameters than the sequence has, or digits that are none
            return

    def _with_cursor(self) -> Frames:
        frame, cursor = self._bare.copy(), self._screen.cursor
        if not cursor.hidden:
            frame["style"][min(cursor.y, len(frame) - 1), min(cursor.x, frame.shape[1] - 1)] ^= REVERSE
        return frame


def _cells(line: Any, cols: int) -> Frames:
    """One line of pyte's buffer as (C,) cells; half a wide character, which terminals erase, is blank."""
    texts = [line[x].data for x in range(cols)] + [" "]
    cells = blank(1, cols)[0]  # (C,)
    for x, text in enumerate(texts[:-1]):
        half = not text and not (x and texts[x - 1] and wcwidth(texts[x - 1][0]) == 2)
        half |= bool(text) and wcwidth(text[0]) == 2 and texts[x + 1] != ""
        look = line[x]
        style = BOLD * look.bold | UNDERLINE * look.underscore | REVERSE * look.reverse
        cells[x] = (32 if half else ord(text[0]) if text else 0, _index(look.fg), _index(look.bg), style)
    return cells


@lru_cache(maxsize=4096)
def _index(colour: str) -> int:
    """The palette index of one of pyte's colours, a name or six hex digits."""
    if colour in NAMES:
        return NAMES[colour]
    fixed = FG_BG_256[16:]
    if colour in fixed:
        return BLACK + fixed.index(colour)
    if colour in FG_BG_256:
        return FG_BG_256.index(colour) or BLACK
    red, green, blue = (int(colour[i : i + 2], 16) for i in (0, 2, 4))
    distances = [sum((int(other[i : i + 2], 16) - own) ** 2 for i, own in ((0, red), (2, green), (4, blue))) for other in fixed]
    return BLACK + int(np.argmin(distances))
