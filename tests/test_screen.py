"""Screens: what is drawn for every kind of character, and the incremental drawing beside a full one."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from keyboards import ANY_KEYS
from wcwidth import wcwidth

from fbam.recording.cells import CELL, REVERSE
from fbam.sessions import actions as key
from fbam.sessions.actions import keystrokes, paste
from fbam.sessions.ansi import to_ansi
from fbam.sessions.glyphs import CONTINUED, SPECIAL, Strip, strip, window, wrap
from fbam.sessions.layout import ScreenError, divide_bar, layout
from fbam.sessions.screen import Screen, Terminal, scroll

HARD = "ab \t\r\x01\x7f\x1b\x85\ufeff\u4e2d\u0301\u200b\udcff\U0001f600\u00ad"
LINES = st.text(alphabet=HARD, max_size=30) | st.text(alphabet=st.characters(exclude_characters="\n"), max_size=10)


def shown(terminal: Terminal) -> list[str]:
    """The rows of the frame as text, blanks at the end removed."""
    return ["".join(map(chr, row)).rstrip() for row in terminal.frame["code"].tolist()]


def cursor(terminal: Terminal) -> tuple[int, int]:
    """The one reversed cell outside a bar in reverse."""
    style = terminal.frame["style"]
    places = [tuple(place) for place in np.argwhere(style & REVERSE) if not style[place[0]].all()]
    assert len(places) == 1
    return places[0]


def typed(terminal: Terminal, *keys: str) -> Terminal:
    for one in keys:
        terminal.press(one)
    return terminal


def editing(text: str, rows: int = 5, cols: int = 20) -> Terminal:
    terminal = Terminal(rows, cols)
    terminal.files.write("file", text)
    return typed(terminal, *"vi file\r")


# --- characters ---


def slow_strip(text: str) -> list[tuple[str, bool]]:
    """(cell, special) one character after the other, by the table of the module."""
    cells: list[tuple[str, bool]] = []
    for character in text:
        code = ord(character)
        if character == "\t":
            cells.append((" ", False))
            while len(cells) % 4:
                cells.append((" ", False))
        elif code < 32:
            cells += [("^", True), (chr(code + 64), True)]
        elif code == 127:
            cells += [("^", True), ("?", True)]
        elif 0xDC80 <= code < 0xDD00:
            cells += [(part, True) for part in f"\\x{code & 0xFF:02x}"]
        elif 0xD800 <= code < 0xE000 or wcwidth(character) < 1:
            cells += [(part, True) for part in f"<{code:02x}>"]
        else:
            cells += [(character, False), ("\0", False)][: wcwidth(character)]
    return cells


@given(LINES)
@example("\tplain ascii\twith tabs")
def test_strips_are_the_table_of_the_module(text):
    whole = strip(text)
    assert list(zip(whole.text, (colour == SPECIAL for colour in whole.colour), strict=True)) == slow_strip(text)
    assert len(whole.text) >= len(text)


@given(LINES, st.integers(0, 20), st.integers(2, 12))
def test_windows_and_rows_never_show_half_a_wide_character(text, left, width):
    whole = strip(text)
    part = window(whole, left, width)
    assert len(part.text) == len(part.colour) == len(whole.text[left : left + width])
    assert not part.text.startswith(CONTINUED) and (not part.text or wcwidth(part.text[-1]) == 1 or part.text[-1] == CONTINUED)
    rows = wrap(whole, width)
    assert "".join(row.text for row in rows) == whole.text and "".join(row.colour for row in rows) == whole.colour
    assert all(len(row.text) <= width and not row.text.startswith(CONTINUED) for row in rows)


def test_examples_of_characters():
    assert strip("a\tb\r").text == "a   b^M"
    assert strip("\udcff\x85\u0301\ufeff").text == "\\xff<85><301><feff>"
    assert strip("\u4e2dx") == Strip("\u4e2d\0x", "\0\0\0")
    assert window(strip("\u4e2d\u4e2d\u4e2d"), 1, 4) == Strip("<\u4e2d\0>", f"{SPECIAL}\0\0{SPECIAL}")


# --- frames ---


def test_the_shell():
    terminal = Terminal(5, 20)
    assert terminal.frame.dtype == CELL and terminal.frame.shape == (5, 20)
    assert shown(terminal) == ["$", "", "", "", "0 commits      SHELL"] and cursor(terminal) == (0, 2)
    typed(terminal, *"touch a\r", *"rm nothing\r")
    assert shown(terminal)[:4] == ["$ rm nothing", "rm: nothing: no such", " file", "$"]
    assert cursor(terminal) == (3, 2)
    assert terminal.frame["fg"][:2, :3].tolist() == [[2, 2, 0], [0, 0, 0]]


def test_the_shell_wraps_and_scrolls():
    terminal = typed(Terminal(4, 12), *"123456789")
    assert shown(terminal)[:2] == ["$ 123456789", ""] and cursor(terminal) == (0, 11)
    typed(terminal, "0")
    assert shown(terminal)[:2] == ["$ 1234567890", ""] and cursor(terminal) == (1, 0)
    typed(terminal, "\x15", *'"one\rtwo\rthree')
    assert shown(terminal)[:3] == ['$ "one', "> two", "> three"]
    typed(terminal, "\r")
    assert shown(terminal)[:3] == ["> two", "> three", ">"] and cursor(terminal) == (2, 2)
    typed(terminal, "\x16")
    assert shown(terminal)[3].endswith("LITERAL")


def test_the_editor():
    terminal = editing("one\ntwo\tx\n")
    assert shown(terminal) == [" 1 one", " 2 two x", " 3", "~", "file      NORMAL 1:1"]
    assert terminal.frame["fg"][:4, 0].tolist() == [3, 3, 3, 4] and terminal.frame["fg"][0, 3] == 0
    assert (terminal.frame["style"][4] == REVERSE).all() and cursor(terminal) == (0, 3)
    typed(terminal, key.DOWN, key.END, key.LEFT, "i", "\u4e2d")
    assert shown(terminal)[1] == " 2 two \u4e2d\0x" and cursor(terminal) == (1, 9)
    assert shown(terminal)[4] == "file+     INSERT 2:6"
    typed(terminal, "\x16")
    assert shown(terminal)[4] == "file+    LITERAL 2:6"
    typed(terminal, "\r", key.ESCAPE, ":", "q")
    assert shown(terminal)[1] == " 2 two \u4e2d\0^Mx" and shown(terminal)[4] == ":q" and cursor(terminal) == (4, 2)
    typed(terminal, "\r")
    assert shown(terminal)[4] == "not saved NORMAL 2:7"
    assert terminal.frame["fg"][4, 0] == 1


def test_line_numbers_grow_with_the_file():
    terminal = editing("\n" * 98)
    typed(terminal, *":99\r")
    assert shown(terminal)[2] == "99"
    typed(terminal, "i", "\r")
    assert shown(terminal)[:4] == [" 97", " 98", " 99", "100"]


def test_long_lines_scroll_sideways_by_half_windows():
    terminal = editing("0123456789" * 5, cols=23)  # 20 cells beside the numbers
    assert shown(terminal)[0] == " 1 01234567890123456789" and cursor(terminal) == (0, 3)
    typed(terminal, *[key.RIGHT] * 19)
    assert cursor(terminal) == (0, 22)
    typed(terminal, key.RIGHT)
    assert shown(terminal)[0] == " 1 01234567890123456789" and cursor(terminal) == (0, 13)
    typed(terminal, key.END)
    assert shown(terminal)[0] == " 1 0123456789" and cursor(terminal) == (0, 13)


@given(st.integers(0, 500), st.integers(1, 50))
def test_the_cursor_is_inside_the_window(at, width):
    assert 0 <= at - scroll(at, width) < width


def test_long_names_show_their_end():
    terminal = Terminal(4, 30)
    terminal.files.write("a-very-long-name-of-a-file.py", "")
    typed(terminal, *"vi a-very-long-name-of-a-file.py\r")
    assert shown(terminal)[3] == "g-name-of-a-file.py NORMAL 1:1"


TEXTS = st.lists(LINES, max_size=6).map("\n".join)
SIZES = st.sampled_from([(3, 12), (4, 20), (12, 40), (24, 80)])
STARTS = st.sampled_from([["vi file\r"], ["vi file\ri"], [], ["mkdir -p a/b\r", "vi a/b/c\r", "ix\x1b:wq\r", "rm file\r"]])


@given(SIZES, TEXTS, STARTS.map("".join), ANY_KEYS)
@settings(max_examples=50)
def test_drawing_what_changed_equals_drawing_everything(size, text, start, keys):
    terminal = Terminal(*size)
    terminal.files.write("file", text)
    for one in [*start, *keys]:
        terminal.press(one)
        full = Screen(*size)
        full.update(terminal.shell)
        assert terminal.frame.tobytes() == full.frame.tobytes()
        cursor(terminal)


@given(st.lists(LINES, min_size=1, max_size=3))
def test_the_cursor_stands_behind_what_was_typed(lines):
    terminal = editing("", rows=6, cols=500)
    typed(terminal, "i", *keystrokes("\n".join(lines)))
    assert cursor(terminal) == (len(lines) - 1, 3 + len(slow_strip(lines[-1])))


@pytest.mark.parametrize("size", [(2, 40), (12, 11), (1001, 40), (12, 1001), (0, 0)])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(ScreenError, match=f"not {size[0]} x {size[1]}"):
        layout(*size)


@pytest.mark.parametrize("size", [(3, 12), (12, 40), (23, 200), (200, 79), (24, 80), (48, 160), (1000, 1000)])
def test_panes_cover_the_frame(size):
    panes = layout(*size)
    covered = np.zeros(size, dtype=int)
    for pane in set(panes):
        covered[pane.row : pane.row + pane.rows, pane.col : pane.col + pane.cols] += 1
    if panes.divided:
        border = shown_border(Terminal(*size))
        assert (covered + border == 1).all()
    else:
        assert (covered == 1).all()
    bar = np.zeros(size[1], dtype=int)
    for pane in divide_bar(panes.bar) if panes.divided else []:
        bar[pane.col : pane.col + pane.cols] += 1
    assert (bar == panes.divided).all()


def shown_border(terminal: Terminal) -> np.ndarray:
    return np.isin(terminal.frame["code"], [ord(character) for character in "\u2500\u2502\u251c"])


def test_three_panes():
    terminal = Terminal(24, 80)
    typed(terminal, *"mkdir -p src/lib\rtouch z\rtouch src/lib/a\rvi src/main.c\r")
    assert [row[:16].rstrip() for row in shown(terminal)[:4]] == ["\u25be src", "  \u25b8 lib", "  z", ""]
    assert cursor(terminal) == (0, 20) and shown(terminal)[23] == " NORMAL  src/main.c" + " " * 57 + "1:1"
    typed(terminal, *"iint x;\x1b:w")
    assert shown(terminal)[0][16:] == "\u2502 1 int x;" and shown(terminal)[1][16:] == "\u2502~"
    assert shown(terminal)[23] == " COMMAND src/main.c+" + " " * 17 + ":w" + " " * 37 + "1:7"
    assert cursor(terminal) == (23, 39) and [row[17:] for row in shown(terminal)[16:21]] == [
        "$ mkdir -p src/lib", "$ touch z", "$ touch src/lib/a", "$ vi src/main.c", "$"
    ]
    typed(terminal, *"q\r")
    assert [row[:16].rstrip() for row in shown(terminal)[:4]] == ["\u25be src", "  \u25b8 lib", "    main.c", "  z"]
    assert (terminal.frame["bg"][2, :10] == 4).all() and not terminal.frame["bg"][:23, 10:].any()
    assert shown(terminal)[0][16:] == "\u2502 1 int x;" and shown(terminal)[23].startswith(" SHELL   src/main.c  ")
    assert cursor(terminal) == (20, 19)
    typed(terminal, *"vi src/lib/a\r:q1\r")
    assert [row[:16].rstrip() for row in shown(terminal)[:5]] == ["\u25be src", "  \u25be lib", "      a", "    main.c", "  z"]
    assert "not a command: q1" in shown(terminal)[23] and (terminal.frame["fg"][23, 37:50] == 1).all()


def test_a_long_tree_shows_the_part_around_the_file():
    terminal = Terminal(24, 80)
    for k in range(60):
        terminal.files.write(f"{k:02}", "")
    typed(terminal, *"vi 40\r")
    names = [row[:16].strip() for row in shown(terminal)[:23]]
    assert names == [f"{k:02}" for k in range(22, 45)] and (terminal.frame["bg"][18, :4] == 4).all()


@given(SIZES, TEXTS, st.data())
@settings(max_examples=25)
def test_nothing_outside_its_pane_is_drawn(size, text, data):
    terminal = Terminal(*size)
    border = shown_border(Terminal(*size))
    for one in ["vi file\ri", *keystrokes(text), *data.draw(ANY_KEYS)]:
        typed(terminal, *one) if one.startswith("vi ") else terminal.press(one)
    assert (shown_border(terminal) | ~border).all()


def test_huge_lines_cost_no_more_than_the_window():
    terminal = editing("", rows=12, cols=40)
    start = time.process_time()
    typed(terminal, paste("\u4e2d" * 100_000), key.HOME, *[key.RIGHT] * 200)
    assert time.process_time() - start < 2
    typed(terminal, key.HOME)
    assert shown(terminal)[0] == " 1 " + "\u4e2d\0" * 18 + ">"


def test_frames_as_ansi_text():
    terminal = typed(Terminal(3, 12), *"\u4e2d")
    rows = to_ansi(terminal.frame).split("\n")
    assert rows[0] == "\x1b[32m$ \x1b[0m\u4e2d\x1b[7m \x1b[0m" + " " * 7
    assert rows[2].startswith("\x1b[7m") and rows[2].endswith("\x1b[0m")
