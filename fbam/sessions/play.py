"""Plays a recording in the terminal: only the cells that change are drawn.

Keys, where standard input is a terminal: q ends, space pauses, right and left step one frame, up and down double and halve
the speed. However it ends, by the last frame, q or Ctrl-C, the terminal is as it was before.
"""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from fbam.recording.cells import Frames, blank
from fbam.recording.drawable import drawable
from fbam.recording.format import Recording, RecordingError
from fbam.sessions.actions import DOWN, ESCAPE, LEFT, RIGHT, UP, pasted
from fbam.sessions.ansi import CLEAR, HIDE_CURSOR, SHOW_CURSOR, repaint
from fbam.sessions.cast import KEY, RATE

ALTERNATE, MAIN = "\x1b[?1049h", "\x1b[?1049l"
SLOWEST, FASTEST = 1 / 16, 1024.0
PATIENCE = 0.05
"""Longest wait for a key in seconds while nothing is due."""
FRAMES_A_SECOND = 60
"""Most frames drawn a second; at a higher speed frames are passed over."""

Keys = Callable[[float], list[str]]
"""Waits up to so many seconds for keys and returns them; none where there is no keyboard."""


class PlayError(RecordingError):
    """A recording cannot be played here."""


@dataclass
class Playback:
    """Which frame is due.

    :ivar at: frame, as a fraction while it plays
    :ivar last: number of the last frame
    :ivar speed: times ``RATE`` actions a second
    """

    at: float
    last: int
    speed: float
    paused: bool = False
    ended: bool = False

    def press(self, key: str) -> None:
        """Take one key of the person who watches; others than those of the module do nothing."""
        if key in ("q", "\x03"):
            self.ended = True
        elif key == " ":
            self.paused = not self.paused
        elif key in (LEFT, RIGHT):
            self.paused = True
            self.at = float(min(max(int(self.at) + (1 if key == RIGHT else -1), 0), self.last))
        elif key in (UP, DOWN):
            self.speed = min(max(self.speed * (2 if key == UP else 0.5), SLOWEST), FASTEST)

    def advance(self, seconds: float) -> None:
        """Let time pass; one second beyond the last frame it has ended."""
        if not self.paused:
            self.at += seconds * RATE * self.speed
            self.ended |= self.at >= self.last + max(1.0, RATE * self.speed)

    @property
    def frame(self) -> int:
        """The frame to show."""
        return min(int(self.at), self.last)


def play(recording: Recording, start: int = 0, speed: float = 1.0, out: TextIO | None = None, source: TextIO | None = None) -> None:
    """Play from frame ``start`` on.

    :param speed: times ``RATE`` actions a second
    :param out: where to draw; None for standard output
    :param source: where keys come from; None for standard input
    :raises PlayError: there is no such frame or speed, or the terminal is smaller than a frame
    """
    out, source = out or sys.stdout, source or sys.stdin
    if not 0 <= start < recording.n_frames:
        raise PlayError(f"{recording.path} has {recording.n_frames} frames, counted from 0: there is no frame {start} to start at")
    if not SLOWEST <= speed <= FASTEST:
        raise PlayError(f"speed {speed}: it must be from {SLOWEST} to {FASTEST:.0f}")
    if out.isatty():
        size = os.get_terminal_size(out.fileno())
        if size.lines < recording.rows or size.columns < recording.cols:
            sizes = f"{recording.cols} columns and {recording.rows} rows, this terminal has {size.columns} and {size.lines}"
            raise PlayError(f"{recording.path}: a frame needs {sizes}; enlarge it or choose a smaller font")
        room = size.lines > recording.rows
    else:
        room = False
    playback = Playback(start, recording.n_frames - 1, speed)
    with _keyboard(source) as keys, _screen(out):
        _loop(recording, playback, keys, out, room)


def _loop(recording: Recording, playback: Playback, keys: Keys, out: TextIO, status: bool) -> None:
    """Draw what is due until it ends; ``status``: whether there is a row below the frame to say what is seen."""
    shown, before = -1, blank(recording.rows, recording.cols)
    clock = time.monotonic()
    while not playback.ended:
        if playback.frame != shown or status:
            after = before if playback.frame == shown else drawable(recording.frames(playback.frame, playback.frame + 1)[0])
            out.write(repaint(before, after) + (_status(recording, playback) if status else ""))
            out.flush()
            shown, before = playback.frame, after
        due = (int(playback.at) + 1 - playback.at) / (RATE * playback.speed)
        for key in keys(PATIENCE if playback.paused else min(PATIENCE, max(due, 1 / FRAMES_A_SECOND))):
            playback.press(key)
        now = time.monotonic()
        playback.advance(now - clock)
        clock = now


def _status(recording: Recording, playback: Playback) -> str:
    """The row below the frame: which frame, and the key pressed on it."""
    action = recording.actions[playback.frame]
    text = pasted(action)
    key = ascii(action) if text is None else f"paste of {len(text)} characters"
    state = "paused" if playback.paused else f"{playback.speed:g}x"
    line = f"frame {playback.frame} of {playback.last}  {state}  key {key}  (q, space, arrows)"
    return f"\x1b[{recording.rows + 1};1H\x1b[2m{line[: recording.cols - 1]}\x1b[0m\x1b[K"


@contextmanager
def _screen(out: TextIO) -> Iterator[None]:
    """A cleared screen without a cursor; afterwards the one before."""
    out.write(ALTERNATE + HIDE_CURSOR + CLEAR)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        out.write("\x1b[0m" + SHOW_CURSOR + MAIN)
        out.flush()


@contextmanager
def _keyboard(source: TextIO) -> Iterator[Keys]:
    """Keys as they are pressed, unseen; afterwards the terminal as it was. Only sleep where ``source`` is no terminal."""
    try:
        import termios  # not on every system
        import tty
    except ImportError:
        termios = None
    if termios is None or not source.isatty():
        yield _sleep
        return
    before = termios.tcgetattr(source)
    tty.setcbreak(source)
    try:
        yield lambda seconds: _pressed(source, seconds)
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> list[str]:
    time.sleep(seconds)
    return []


def _pressed(source: TextIO, seconds: float) -> list[str]:
    """The keys pressed within so many seconds; the end of the input counts as q."""
    if not select.select([source], [], [], seconds)[0]:
        return []
    text = os.read(source.fileno(), 1024).decode("utf-8", "replace")
    return KEY.findall(text.replace(ESCAPE + "O", ESCAPE + "[")) or ["q"]
