"""Casts: what a real terminal emulator shows of a written one is the recording; what is read back is the same again."""

from __future__ import annotations

import json

import numpy as np
import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, blank
from fbam.recording.drawable import drawable
from fbam.recording.format import Recording, RecordingWriter
from fbam.sessions import cast, emulator
from fbam.sessions.actions import DOWN, ENTER, ESCAPE, paste
from fbam.sessions.ansi import repaint, to_ansi
from fbam.sessions.cast import MAX_SIZE, NO_KEY, CastError, read_cast, read_header, screens, write_cast
from fbam.sessions.screen import Terminal

AWKWARD = "ab \t中文é가😀a\u0301\u200b\u202e\x07\udc80\xad\ufe0f│🇩🇪"
NAMED = ["default", "red", "green", "brown", "blue", "magenta", "cyan", "white"]
NAMED += ["brightblack", *(f"bright{name}" for name in NAMED[1:])]
CELLS = st.tuples(st.sampled_from([0, 32, 65, 66, 0x4E2D, 0x1F600, 0x301, 0x200B, 7, 0xDC80, 0x110000]),
                  st.sampled_from([0, 1, 7, 8, 9, 13, 15, 16, 21, 196, 231, 232, 255]),
                  st.sampled_from([0, 2, 13, 15, 46, 250]), st.integers(0, 7))  # fmt: skip


def seen(screen):
    """What pyte shows, by an independent reading of its buffer: (text, foreground, background, bold, underlined, reversed)."""
    return [[(cell.data, cell.fg, cell.bg, cell.bold, cell.underscore, cell.reverse)
             for cell in (screen.buffer[y][x] for x in range(screen.columns))] for y in range(screen.lines)]  # fmt: skip


def expected(frame):
    """The same of a frame."""
    return [[(chr(code) if code else "", name(fg), name(bg, "bfightmagenta"), bool(style & BOLD), bool(style & UNDERLINE),
              bool(style & REVERSE)) for code, fg, bg, style in row] for row in frame.tolist()]  # fmt: skip


def name(index, thirteen="brightmagenta"):
    if index < 16:
        return thirteen if index == 13 else NAMED[index]
    if index > 231:
        return f"{8 + 10 * (index - 232):02x}" * 3
    return "".join(f"{(0, 95, 135, 175, 215, 255)[(index - 16) // step % 6]:02x}" for step in (36, 6, 1))


def frames_of(cells):
    flat = np.array([tuple(cell) for cell in cells], dtype=blank(1, 1).dtype)
    return flat.reshape(-1, 3, 7)


def record(path, frames, actions):
    with RecordingWriter(path, *frames.shape[1:], block_frames=4, header={}) as writer:
        for frame, action in zip(frames, actions, strict=True):
            writer.append(frame, action)
    return Recording(path)


def session(path, rows=9, cols=30):
    """A real session: shell, editor, wide and awkward characters, scrolling, a paste."""
    terminal = Terminal(rows, cols)
    actions = [*"vi é中.py", ENTER, "i", *"def f(中):", ENTER, *"  x = '文字😀'", *[ENTER] * 12, *"q\u0301",
               paste("wide 中 and\ttab\x07\udc80"), DOWN, ESCAPE, *":wq", ENTER, *"vcs add -A", ENTER]  # fmt: skip
    with RecordingWriter(path, rows, cols, block_frames=16, header={}) as writer:
        for action in actions:
            writer.append(terminal.frame, action)
            terminal.press(action)
    return Recording(path)


def events(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]


def write_lines(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


V2 = {"version": 2, "width": 20, "height": 4}
V3 = {"version": 3, "term": {"cols": 20, "rows": 4, "type": "xterm"}, "timestamp": 1}


def text(frame):
    return ["".join(chr(code) for code in row if code).rstrip() for row in frame["code"].tolist()]


@settings(max_examples=60)
@given(st.lists(CELLS, min_size=63, max_size=63))
def test_a_terminal_shows_each_frame_after_the_one_before(cells):
    screen = pyte.Screen(7, 3)
    stream = pyte.Stream(screen)
    before = blank(3, 7)
    for frame in drawable(frames_of(cells)):
        stream.feed(repaint(before, frame))
        assert seen(screen) == expected(frame)
        before = frame
    assert repaint(before, before) == ""


def test_a_whole_frame_as_lines():
    screen = pyte.Screen(7, 3)
    frame = frames_of([(0x4E2D, 3, 0, 1), (0, 0, 0, 0), *[(65, 250, 9, 2)] * 19])[0]
    pyte.Stream(screen).feed(to_ansi(frame).replace("\n", "\r\n"))
    assert seen(screen) == expected(drawable(frame))


def test_a_repaint_is_small():
    frame, other = blank(48, 160), blank(48, 160)
    other["code"][47, 150] = 65
    assert repaint(frame, other) == "\x1b[48;151HA"
    other["code"][47, 152] = 66
    assert repaint(frame, other) == "\x1b[48;151HA B"
    other["fg"][47, 159], other["code"][47, 159] = 9, 67
    assert repaint(frame, other) == "\x1b[48;151HA B\x1b[6C\x1b[91mC\x1b[0m"


def test_a_session_played_in_a_terminal_is_the_recording(tmp_path):
    recording = session(tmp_path / "a.fbam")
    write_cast(recording, tmp_path / "a.cast", rate=10)
    header = json.loads((tmp_path / "a.cast").read_text("utf-8").splitlines()[0])
    assert (header["version"], header["width"], header["height"]) == (2, 30, 9)
    screen = pyte.Screen(30, 9)
    stream = pyte.Stream(screen)
    typed = []
    written = events(tmp_path / "a.cast")
    for (time, code, data), following in zip(written, [*written[1:], [np.inf, "i", ""]], strict=True):
        if code == "i":
            assert time == pytest.approx((len(typed) + 1) / 10)
            typed.append(data)
        else:
            stream.feed(data)
        if following[1] == "i":
            frame = len(typed)
            if frame < recording.n_frames:
                assert seen(screen) == expected(drawable(recording.frames(frame, frame + 1)[0]))
    assert typed == [action.encode("utf-8", "replace").decode() for action in recording.actions]
    assert screen.cursor.hidden


def test_recording_to_cast_to_recording_is_the_same(tmp_path):
    recording = session(tmp_path / "a.fbam")
    write_cast(recording, tmp_path / "a.cast")
    header = read_cast(tmp_path / "a.cast", tmp_path / "b.fbam")
    again = Recording(tmp_path / "b.fbam")
    assert header.typed and again.header["source"] == "a.cast"
    assert again.n_frames == recording.n_frames
    assert np.array_equal(again.frames(0, again.n_frames), drawable(recording.frames(0, recording.n_frames)))
    assert again.actions == [action.encode("utf-8", "replace").decode() for action in recording.actions]
    write_cast(again, tmp_path / "b.cast")
    assert events(tmp_path / "b.cast") == events(tmp_path / "a.cast")


@settings(max_examples=25)
@given(st.lists(CELLS, min_size=63, max_size=63))
def test_any_frames_come_back_as_they_are_drawn(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("cast")
    frames = frames_of(cells)
    record(folder / "a.fbam", frames, ["x", "\x1b[1;5C", "中"])
    write_cast(Recording(folder / "a.fbam"), folder / "a.cast")
    read_cast(folder / "a.cast", folder / "b.fbam")
    again = Recording(folder / "b.fbam")
    assert np.array_equal(again.frames(0, 3), drawable(frames))
    assert again.actions == ["x", "\x1b[1;5C", "中"]


@pytest.mark.parametrize("header", [V2, V3], ids=["v2", "v3"])
def test_a_cast_without_keys_gives_a_pair_for_each_screen(tmp_path, header):
    source = write_lines(tmp_path / "a.cast", header, [0.1, "o", "one\r\n"], "# a comment" if header is V3 else "", [0.2, "o", "\x1b[31mt"],
                         [0.3, "m", "mark"], [0.3, "o", "wo 中"], [0.4, "o", "\x1b[0m"], [0.5, "r", "20x4"])  # fmt: skip
    assert not read_cast(source, tmp_path / "a.fbam").typed
    recording = Recording(tmp_path / "a.fbam")
    assert recording.actions == [NO_KEY] * 3
    shown = recording.frames(0, 3)
    assert [text(frame)[:2] for frame in shown] == [["one", ""], ["one", "t"], ["one", "two 中"]]
    assert shown["fg"][2, 1, :7].tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert [np.argwhere(frame["style"] == REVERSE).tolist() for frame in shown] == [[[1, 0]], [[1, 1]], [[1, 6]]]
    write_cast(recording, tmp_path / "b.cast")
    read_cast(tmp_path / "b.cast", tmp_path / "b.fbam")
    assert np.array_equal(Recording(tmp_path / "b.fbam").frames(0, 3), shown)  # characters, colours and cursor are kept


def test_a_cast_with_keys_gives_a_pair_for_each_key_and_the_last_screen(tmp_path):
    source = write_lines(tmp_path / "a.cast", V2, [0, "o", "$ "], [1, "i", "l"], [1.1, "o", "l"], [2, "i", "s\x1b[A\r"],
                         [2.1, "o", "s\r\n"], [2.2, "o", "file\r\n"], [2.3, "o", "$ "])  # fmt: skip
    assert read_cast(source, tmp_path / "a.fbam").typed
    recording = Recording(tmp_path / "a.fbam")
    assert recording.actions == ["l", "s", "\x1b[A", "\r", NO_KEY]
    assert [text(frame)[0] for frame in recording.frames(0, 5)] == ["$", "$ l", "$ l", "$ l", "$ ls"]
    assert text(recording.frames(4, 5)[0]) == ["$ ls", "file", "$", ""]


@pytest.mark.parametrize(("typed", "keys"), [
    ("ab", ["a", "b"]), ("\x1b[1;5C\x1bOAx", ["\x1b[1;5C", "\x1bOA", "x"]), ("\x1b", ["\x1b"]), ("\x1b\x1b[A", ["\x1b", "\x1b[A"]),
    ("\x1bb", ["\x1bb"]), ("\x1b[200~a\nb\x1b[201~\r", ["\x1b[200~a\nb\x1b[201~", "\r"]), ("\x1b[200~a", ["\x1b[200~", "a"]),
])  # fmt: skip
def test_typed_text_is_cut_into_keys(typed, keys):
    assert cast.KEY.findall(typed) == keys


@pytest.mark.parametrize(("lines", "message"), [
    ([], "line 1: no header"),
    (["not json"], "line 1: not JSON"),
    (["[" * 100_000], "line 1: not JSON"),
    ([{"width": 20, "height": 4}], "line 1: no header"),
    ([{**V2, "version": 1}], "line 1: version 1; versions 2 and 3 are read: convert"),
    ([{**V2, "version": 4}], "line 1: version 4"),
    ([{**V2, "version": True}], "line 1: version True"),
    ([{**V2, "version": [2]}], r"line 1: version \[2\]"),
    ([{"version": 2, "width": 20}], "line 1: height is None; it must be a whole number from 1 to 1000"),
    ([{**V2, "width": 0}], "line 1: width is 0"),
    ([{**V2, "width": 2.5}], "line 1: width is 2.5"),
    ([{**V2, "width": MAX_SIZE + 1}], "line 1: width is 1001"),
    ([{**V2, "width": 10**12}], "line 1: width is 1000000000000"),
    ([{"version": 3, "term": [20, 4]}], "line 1: term.rows is None"),
    ([{"version": 3, "term": {"rows": 4, "cols": "20"}}], "line 1: term.cols is '20'"),
    ([V2, [0, "o", "a"], [0.1, "o"]], "line 3: not an event"),
    ([V2, [0, "o", 5]], "line 2: not an event"),
    ([V2, "", {"a": 1}], "line 3: not an event"),
    ([V2, [-0.1, "o", "a"]], "line 2: time -0.1; .* not negative"),
    ([V2, ["1", "o", "a"]], "line 2: time '1'"),
    ([V2, [True, "o", "a"]], "line 2: time True"),
    ([V2, "[NaN, \"o\", \"a\"]"], "line 2: time nan"),
    ([V2, "[1e999, \"o\", \"a\"]"], "line 2: time inf"),
    ([V2, [0, "o", "a"], '[0.1, "o", "tr'], "line 3: not JSON; .* remove or mend"),
    ([V2, [0, "r", "100x50"]], "line 2: the terminal changes its size to '100x50'; record again"),
])  # fmt: skip
def test_a_malformed_cast_is_one_clear_error_and_no_file(tmp_path, lines, message):
    source = write_lines(tmp_path / "bad.cast", *lines)
    with pytest.raises(CastError, match=rf"bad\.cast, {message}"):
        read_cast(source, tmp_path / "bad.fbam")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.cast"]


def test_other_unreadable_casts(tmp_path, monkeypatch):
    with pytest.raises(CastError, match="cannot be read: No such file"):
        read_header(tmp_path / "absent.cast")
    (tmp_path / "latin.cast").write_bytes(json.dumps(V2).encode() + b'\n[0, "o", "\xe9"]\n')
    with pytest.raises(CastError, match="line 2: not JSON"):
        read_header(tmp_path / "latin.cast")
    monkeypatch.setattr(cast, "LONGEST_LINE", 100)
    with pytest.raises(CastError, match="line 2: longer than 100 bytes"):
        read_header(write_lines(tmp_path / "long.cast", V2, [0, "o", "x" * 200]))


def test_a_rate_that_is_none(tmp_path):
    recording = record(tmp_path / "a.fbam", frames_of([(65, 0, 0, 0)] * 21), ["x"])
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(CastError, match="actions a second must be a positive number"):
            write_cast(recording, tmp_path / "a.cast", rate)
    assert not (tmp_path / "a.cast").exists()


def test_an_interrupted_cast_leaves_nothing(tmp_path, monkeypatch):
    recording = session(tmp_path / "a.fbam")
    monkeypatch.setattr(cast, "repaint", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_cast(recording, tmp_path / "a.cast")
    assert [file.name for file in tmp_path.iterdir()] == ["a.fbam"]


def test_screens_are_all_frames_in_order(tmp_path, monkeypatch):
    recording = session(tmp_path / "a.fbam")
    monkeypatch.setattr(cast, "CHUNK", 7)
    assert np.array_equal(list(screens(recording, 3)), drawable(recording.frames(3, recording.n_frames)))


CONTROLS = st.lists(st.sampled_from([*"\x1b[]?;:><=!/0123456789mhlJKHABCDSTbrLMPX@q ", "\x1b[", "\x1b[?1049h", "\x1b[?1049l", "中", "a\u0301",
                                     "\u200b", "\udc80", "²", "\x1b[38;2;1;2;3m", "\x1b(0", "\x07", "\r\n", "\x1b[?3h", "\x1bP", "\x9b"]))


@settings(max_examples=150)
@given(st.lists(CONTROLS.map("".join), max_size=6))
@example(["\x1b[1;2;3A", "\x1b[²m", "\x1b[?1;2;3K", "\x1b[9999999999b", "\x1b[?3hx", "\x1b[5;2r\x1b[9S"])
def test_any_output_gives_frames_that_can_be_drawn(pieces):
    terminal = emulator.Emulator(4, 9)
    for piece in pieces:
        before = terminal.frame
        assert terminal.feed(piece) == (not np.array_equal(before, terminal.frame))
        codes = terminal.frame["code"]
        assert codes.shape == (4, 9) and (drawable(terminal.frame)["code"] == 0).sum() == (codes == 0).sum()


@pytest.mark.parametrize(("output", "shown"), [
    (["abc\x1b[2", "Dx"], ["axc", "", "", ""]),  # a sequence cut in two
    (["a\x1b[>4;1mb\x1b[?1;5rc\x1b[!pd\x1b[ q"], ["abcd", "", "", ""]),  # what sets up keyboard and cursor
    (["\x1bP1$r", "0m\x1b\\a\x1b]0;title\x07b"], ["ab", "", "", ""]),  # strings for the terminal
    (["\x1b(0lqk\x1b(B|"], ["┌─┐|", "", "", ""]),  # line drawing
    (["-\x1b[5b"], ["------", "", "", ""]),
    (["1\r\n2\r\n3\r\n4\x1b[S"], ["2", "3", "4", ""]),
    (["1\r\n2\r\n3\r\n4\x1b[2T"], ["", "", "1", "2"]),
    (["shell\x1b[?1049h\x1b[Hvim", "\x1b[?1049l$"], ["shell$", "", "", ""]),
    (["中中\x1b[1;2Hx"], [" x中", "", "", ""]),  # half a wide character is erased
    (["中中\x1b[1;1Hx"], ["x 中", "", "", ""]),
    (["e\u0301\u200b!\u200d"], ["é!", "", "", ""]),
])  # fmt: skip
def test_what_programs_write(output, shown):
    terminal = emulator.Emulator(4, 20)
    for piece in output:
        terminal.feed(piece)
    assert text(terminal.frame) == shown


@pytest.mark.parametrize(("sequence", "fg", "style"), [
    ("31", 1, 0), ("38;5;2", 2, 0), ("95", 13, 0), ("30", 16, 0), ("38;5;196", 196, 0), ("38;2;255;0;1", 196, 0), ("38:2::0:0:95", 17, 0),
    ("38:5:244", 244, 0), ("1;4;7", 0, 7), ("4:3", 0, UNDERLINE),
])  # fmt: skip
def test_colours_and_styles_become_those_of_the_palette(sequence, fg, style):
    terminal = emulator.Emulator(2, 9)
    terminal.feed(f"\x1b[?25l\x1b[{sequence}mx")
    assert terminal.frame[0, 0].tolist() == (120, fg, 0, style)
