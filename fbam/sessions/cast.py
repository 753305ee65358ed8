"""Recordings as asciinema casts, and casts as recordings (asciicast, versions 2 and 3).

A cast is JSON lines: a header with the size, then events [time, code, text]; ``o`` is what the terminal was sent, ``i`` what was
typed. Pair t of a recording is written as the keys of ``i`` at (t + 1) / rate seconds; the change to frame t + 1 follows
at the same moment. A player shows the ``o`` events only. They hold the cells that change, and so the file plays anywhere.

Read back through a terminal emulator, the pairs are, where the cast has ``i`` events, one for each key in them, with the
screen that was seen when it was pressed; screens on which nothing was pressed are left out, but for a last one after the
last key. Where it has none, each output that changes the screen gives a pair, with the screen after it. The action of a screen without a key
is ``NO_KEY``. Times are not kept: a recording counts frames.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any


from fbam.recording.cells import Frames, blank
from fbam.recording.drawable import drawable
from fbam.recording.format import Recording, RecordingError, RecordingWriter
from fbam.sessions.ansi import CLEAR, HIDE_CURSOR, repaint
from fbam.sessions.emulator import Emulator

RATE = 20.0
"""Actions a second where none is named."""
NO_KEY = ""
MAX_SIZE = 1000
"""Most rows and columns of a cast that is read."""
LONGEST_LINE = 1 << 24
"""Bytes; a line is held in memory whole."""
BLOCK_CELLS = 1 << 22
"""Cells of all frames of a block of a recording made from a cast."""
CHUNK = 128
"""Frames of a recording held in memory at once."""
KEY = re.compile(r"\x1b\[200~.*?\x1b\[201~|\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[^\x1b]|.", re.DOTALL)
"""One key: a bracketed paste, a control sequence, a key with Alt, or a character."""


class CastError(RecordingError):
    """A cast cannot be read or written; names the line and what to do."""


@dataclass(frozen=True)
class CastHeader:
    """The first line of a cast, and whether any key is in it."""

    version: int
    rows: int
    cols: int
    typed: bool


def screens(recording: Recording, start: int = 0) -> Iterator[Frames]:
    """The frames of a recording from ``start`` on, one (R, C) array each, ``drawable``; memory holds a few."""
    for first in range(start, recording.n_frames, CHUNK):
        yield from drawable(recording.frames(first, min(first + CHUNK, recording.n_frames)))


def write_cast(recording: Recording, path: Path, rate: float = RATE) -> None:
    """Write a recording as an asciicast of version 2.

    Bytes that are not UTF-8 in an action are written as U+FFFD: players refuse what is not Unicode.

    :param rate: actions a second
    :raises CastError: the rate is not a positive number
    """
    if not 0 < rate < float("inf"):
        raise CastError(f"rate {rate}: actions a second must be a positive number")
    header = {"version": 2, "width": recording.cols, "height": recording.rows, "title": path.stem,
              "env": {"TERM": "xterm-256color"}}  # fmt: skip
    before = blank(recording.rows, recording.cols)
    with _published(path) as file:
        file.write(json.dumps(header) + "\n")
        prelude = HIDE_CURSOR + CLEAR
        for t, (frame, action) in enumerate(zip(screens(recording), recording.actions, strict=True)):
            file.write(_line(t / rate, "o", prelude + repaint(before, frame)))
            file.write(_line((t + 1) / rate, "i", action))
            before, prelude = frame, ""


def _line(time: float, code: str, text: str) -> str:
    if not text:  # nothing changes, or NO_KEY
        return ""
    return json.dumps([round(time, 6), code, text.encode("utf-8", "replace").decode()], ensure_ascii=False) + "\n"


@contextmanager
def _published(path: Path) -> Iterator[TextIOWrapper]:
    """A text file that appears under its name only when it is whole."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_header(path: Path) -> CastHeader:
    """Read a whole cast, check it, and keep only its header.

    :raises CastError: it is no cast; the message names the line
    """
    lines = _lines(path)
    header = next(lines, (1, None))[1]
    version, rows, cols = _sizes(path, header)
    typed = False
    for number, event in lines:
        _check(path, number, event, (rows, cols))
        typed |= event[1] == "i" and event[2] != ""
    return CastHeader(version, rows, cols, typed)


def read_cast(path: Path, destination: Path) -> CastHeader:
    """Make a recording of a cast; see the module for what becomes a pair.

    :param destination: the ``.fbam`` file; it appears only when the whole cast has been read
    :raises CastError: see ``read_header``
    """
    header = read_header(path)
    block_frames = max(1, min(1024, BLOCK_CELLS // (header.rows * header.cols)))
    about = {"source": path.name, "cast_version": header.version, "typed": header.typed}
    emulator = Emulator(header.rows, header.cols)
    with RecordingWriter(destination, header.rows, header.cols, block_frames=block_frames, header=about) as writer:
        unseen = not header.typed  # whether there is a screen that belongs to no pair yet
        for _, (_, code, text) in islice(_lines(path), 1, None):
            if code == "i":
                for key in KEY.findall(text):
                    writer.append(emulator.frame, key)
                    unseen = False
            elif code == "o":
                unseen |= emulator.feed(text)
                if unseen and not header.typed:
                    writer.append(emulator.frame, NO_KEY)
                    unseen = False
        if unseen and header.typed:
            writer.append(emulator.frame, NO_KEY)
    return header


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and JSON value of each line; empty lines and the comments of version 3 are left out."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise CastError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        number = 0
        while data := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(data) > LONGEST_LINE:
                raise CastError(f"{path}, line {number}: longer than {LONGEST_LINE} bytes; this is no cast, or split the event")
            if not data.strip() or (data.startswith(b"#") and number > 1):
                continue
            try:
                yield number, json.loads(data)
            except (ValueError, RecursionError):
                raise CastError(f"{path}, line {number}: not JSON; a cast has one JSON value a line: remove or mend it") from None


def _sizes(path: Path, header: Any) -> tuple[int, int, int]:
    """Version, rows and columns of a cast."""
    where = f"{path}, line 1"
    if not isinstance(header, dict) or "version" not in header:
        raise CastError(f"{where}: no header; a cast begins with an object that has version, width and height")
    version = header["version"]
    if version not in (2, 3) or isinstance(version, (bool, float)):
        raise CastError(f"{where}: version {version!r}; versions 2 and 3 are read: convert it with `asciinema convert`")
    size, names = (header, ("height", "width")) if version == 2 else (header.get("term"), ("rows", "cols"))
    for name in names:
        value = size.get(name) if isinstance(size, dict) else None
        if type(value) is not int or not 1 <= value <= MAX_SIZE:
            place = name if version == 2 else f"term.{name}"
            raise CastError(f"{where}: {place} is {value!r}; it must be a whole number from 1 to {MAX_SIZE}")
    return version, *(size[name] for name in names)


def _check(path: Path, number: int, event: Any, size: tuple[int, int]) -> None:
    """Raise CastError for an event that is none, or that changes the size."""
    where = f"{path}, line {number}"
    if not (isinstance(event, list) and len(event) == 3 and all(isinstance(part, str) for part in event[1:])):
        raise CastError(f"{where}: not an event; it must be [time, code, text]: remove or mend it")
    time, code, text = event
    if type(time) not in (int, float) or not 0 <= time < float("inf"):
        raise CastError(f"{where}: time {time!r}; it must be a number of seconds, not negative: mend it")
    if code == "r" and text != f"{size[1]}x{size[0]}":
        raise CastError(f"{where}: the terminal changes its size to {text[:20]!r}; record again in a terminal of one size")
