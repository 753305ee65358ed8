"""Looking at recordings: pictures, playing in a terminal that is left as it was, and the commands."""

from __future__ import annotations

import argparse
import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import xml.etree.ElementTree as ET

import numpy as np
import pyte
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, blank
from fbam.recording.drawable import drawable
from fbam.recording.format import Recording, RecordingError, RecordingWriter
from fbam.sessions.actions import DOWN, ENTER, LEFT, RIGHT, UP, paste
from fbam.sessions.ansi import SHOW_CURSOR
from fbam.sessions.play import ALTERNATE, FASTEST, MAIN, Playback, PlayError, play
from fbam.sessions.screen import Terminal
from fbam.sessions.svg import CELL_HEIGHT, CELL_WIDTH, to_svg
from fbam.sessions.viewing import add_commands

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recording(tmp_path):
    """Keys on a small screen, wide characters and a paste among them."""
    terminal = Terminal(6, 24)
    with RecordingWriter(tmp_path / "a.fbam", 6, 24, block_frames=8, header={}) as writer:
        for action in [*"echo 中 hi", ENTER, paste("x" * 30), *"ab"]:
            writer.append(terminal.frame, action)
            terminal.press(action)
    return Recording(tmp_path / "a.fbam")


def grid(picture, rows, cols):
    """The characters of an SVG put back on its grid, and the looks of their text elements."""
    codes, looks = np.full((rows, cols), 32), {}
    for element in picture.iter(f"{SVG}text"):
        x, y = int(element.get("x")) // CELL_WIDTH, int(element.get("y")) // CELL_HEIGHT
        width, characters = int(element.get("textLength")) // CELL_WIDTH, [ord(c) for c in element.text]
        if width == 2 and len(characters) == 1:
            characters.append(0)
        assert len(characters) == width
        codes[y, x : x + width] = characters
        looks |= {(y, x + k): element for k in range(width)}
    return codes, looks


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([32, 65, ord("<"), ord("&"), 0x4E2D, 0, 0xFFFE, 0x301, 0x110000]), st.sampled_from([0, 1, 200]),
                          st.sampled_from([0, 3]), st.integers(0, 7)), min_size=16, max_size=16))  # fmt: skip
def test_a_picture_has_the_characters_of_its_frame(cells):
    frame = np.array(cells, dtype=blank(1, 1).dtype).reshape(2, 8)
    picture = ET.fromstring(to_svg(frame, 'frame "1" <&>'))
    assert picture.get("aria-label") == 'frame "1" <&>'
    codes, looks = grid(picture, 2, 8)
    expected = drawable(frame)
    assert np.array_equal(codes, np.where(expected["code"] == 0xFFFE, 0xFFFD, expected["code"]))
    for place, look in looks.items():
        assert (look.get("font-weight") == "bold") == bool(expected["style"][place] & BOLD)
        assert (look.get("text-decoration") == "underline") == bool(expected["style"][place] & UNDERLINE)


def test_a_picture_has_colours_and_needs_nothing_from_outside():
    frame = blank(1, 3)
    frame["code"], frame["fg"], frame["style"] = [65, 66, 32], [1, 0, 0], [0, REVERSE, REVERSE]
    text = to_svg(frame, "x")
    inks = [(element.tag.removeprefix(SVG), element.get("fill")) for element in ET.fromstring(text).iter()][3:]
    assert inks == [("text", "#b31d28"), ("rect", "#24292f"), ("text", "#ffffff")]
    assert text.count("http") == 1 and "href" not in text and "@import" not in text and "url(" not in text
    assert to_svg(frame, "x") == text


def run(*words):
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    options = parser.parse_args(list(map(str, words)))
    options.run(options)


def test_frame_is_printed_or_drawn(recording, tmp_path, capsys):
    run("frame", recording.path, 6)
    assert "$ \x1b[0mecho 中" in capsys.readouterr().out
    run("frame", recording.path, 6, "--out", tmp_path / "f.svg")
    assert np.array_equal(grid(ET.parse(tmp_path / "f.svg").getroot(), 6, 24)[0], drawable(recording.frames(6, 7)[0])["code"])
    assert f"frame 6 of {recording.n_frames}, next action ' '" in capsys.readouterr().out
    for number in (-1, recording.n_frames):
        with pytest.raises(RecordingError, match=f"has frames 0 to {recording.n_frames - 1}, not {number}"):
            run("frame", recording.path, *(["--", number] if number < 0 else [number]))
    with pytest.raises(RecordingError, match=r"f\.png: pictures are \.svg files"):
        run("frame", recording.path, 0, "--out", tmp_path / "f.png")


def test_cast_goes_both_ways_by_suffix(recording, tmp_path, capsys):
    run("cast", recording.path, "--out", tmp_path / "b.cast", "--rate", 5)
    run("cast", tmp_path / "b.cast", "--out", tmp_path / "c.fbam")
    assert Recording(tmp_path / "c.fbam").actions == recording.actions
    said = capsys.readouterr().out
    assert f"b.cast: {recording.n_frames} frames" in said and f"c.fbam: {recording.n_frames} keys, 6 x 24" in said
    for source, out in ((recording.path, "x.fbam"), (recording.path, "x.gif"), (tmp_path / "b.cast", "y.cast"), (tmp_path / "n.txt", "y.cast")):
        with pytest.raises(RecordingError, match=r"the names must end in \.fbam and \.cast, or in \.cast and \.fbam"):
            run("cast", source, "--out", tmp_path / out)
    assert not list(tmp_path.glob("[xy].*"))


def test_playing_where_there_is_no_terminal(recording):
    out = io.StringIO()
    play(recording, speed=64, out=out, source=io.StringIO())
    text = out.getvalue()
    assert text.startswith(ALTERNATE) and text.endswith(SHOW_CURSOR + MAIN)
    assert shown_by(text.removesuffix(MAIN), 24, 6) == drawn(recording, recording.n_frames - 1)


def shown_by(text, columns, rows):
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(text)
    return [row.rstrip() for row in screen.display]


def drawn(recording, frame):
    codes = drawable(recording.frames(frame, frame + 1)[0])["code"]
    return ["".join(chr(code) for code in row if code).rstrip() for row in codes.tolist()]


def test_what_cannot_be_played(recording):
    for start in (-1, recording.n_frames):
        with pytest.raises(PlayError, match=f"there is no frame {start} to start at"):
            play(recording, start, out=io.StringIO(), source=io.StringIO())
    for speed in (0, -1, float("nan"), 1e9):
        with pytest.raises(PlayError, match="speed .* it must be from 0.0625 to 1024"):
            play(recording, 0, speed, out=io.StringIO(), source=io.StringIO())


def test_keys_of_the_player():
    playback = Playback(at=3.0, last=9, speed=1.0)
    playback.advance(0.1)
    assert playback.frame == 5 and not playback.paused
    playback.press(RIGHT)
    assert playback.frame == 6 and playback.paused
    playback.advance(60)
    assert playback.frame == 6
    for _ in range(9):
        playback.press(LEFT)
    assert playback.frame == 0
    for key, speed in ((UP, 2), (UP, 4), (DOWN, 2), ("x", 2)):
        playback.press(key)
        assert playback.speed == speed
    for _ in range(20):
        playback.press(UP)
    assert playback.speed == FASTEST
    playback.press(" ")
    playback.advance(0.01)
    assert playback.frame == 9 and not playback.ended
    playback.press("q")
    assert playback.ended


class Teletype:
    """A pseudo-terminal with ``fbam play`` in it."""

    def __init__(self, path, rows, cols, *options):
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (rows, cols))
        self.before = termios.tcgetattr(self.slave)
        code = (f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
                "from test_viewing import run\nfrom fbam.recording.format import RecordingError\n"
                f"try: run('play', {str(path)!r}, *{options!r})\nexcept RecordingError as error: sys.exit(str(error))")  # fmt: skip
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        start_new_session=True)  # fmt: skip
        self.said = ""

    def wait_for(self, text, patience=60.0):
        end = time.monotonic() + patience
        while text not in self.said and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.said += os.read(self.master, 65536).decode("utf-8", "replace")
        assert text in self.said, self.said

    def type(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        self.wait_for(MAIN)
        code = self.process.wait(60)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        assert SHOW_CURSOR in self.said
        os.close(self.master)
        os.close(self.slave)
        return code


def test_playing_in_a_terminal_by_keys(recording):
    terminal = Teletype(recording.path, 8, 80, "--at", "3", "--speed", "0.0625")
    terminal.wait_for("frame 3 of")
    assert termios.tcgetattr(terminal.slave)[3] & (termios.ECHO | termios.ICANON) == 0
    terminal.type(" " + RIGHT)
    terminal.wait_for("frame 4 of")
    terminal.type(RIGHT + RIGHT)
    terminal.wait_for("frame 6 of")
    assert shown_by(terminal.said, 80, 8)[:6] == drawn(recording, 6)
    terminal.type("q")
    assert terminal.close() == 0


def test_control_c_leaves_the_terminal_as_it_was(recording):
    terminal = Teletype(recording.path, 8, 80, "--speed", "0.0625")
    terminal.wait_for("frame 0 of")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.close() == 0


def test_a_terminal_that_is_too_small(recording):
    terminal = Teletype(recording.path, 5, 80)
    terminal.wait_for("a frame needs 24 columns and 6 rows, this terminal has 80 and 5; enlarge it")
    assert terminal.process.wait(60) == 1 and ALTERNATE not in terminal.said
    os.close(terminal.master)
    os.close(terminal.slave)
