"""The player of a page: its stored changes make the frames again, its text is small and fixed, and a browser plays it."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_drawable import contrast

from fbam.analysis.player import key_label, player_html
from fbam.analysis.player_parts import DARK, LIGHT
from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, blank
from fbam.recording.colours import inks
from fbam.recording.drawable import drawable
from fbam.sessions.actions import ENTER, keystrokes, paste
from fbam.sessions.screen import Terminal

CELL = st.tuples(st.sampled_from([0, 32, 65, 60, 0x4E2D, 0x301, 0x110000]), st.sampled_from([0, 2, 200]), st.sampled_from([0, 3]), st.integers(0, 7))
SHOWN = """root => [root.querySelector('pre').textContent, root.querySelector('output').textContent,
                     [...root.querySelectorAll('kbd')].map(key => key.textContent), root.querySelector('button').textContent]"""


def session(rows, cols, keys):
    terminal, frames = Terminal(rows, cols), []
    for key in keys:
        frames.append(terminal.frame.copy())
        terminal.press(key)
    return np.stack(frames), keys


@pytest.fixture(scope="module")
def played():
    """About 600 keys in the paper's frame: a file is written, with a wide character and a file behind it to scroll."""
    code = "".join(f"def f{k}(a, b):\n    return a * {k} + b  # 中文 <&>\n\n\n" for k in range(15))
    return session(48, 160, [*"vi f.py", ENTER, "i", *keystrokes(code)][:600])


def stored(element):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', element, re.DOTALL)[1])


def replayed(data):
    """Frames of a player as (text, declarations) a cell: the slow way, from the stored changes alone."""
    cells = [(" ", "")] * (data["rows"] * data["cols"])
    for step in data["steps"]:
        for position, number in zip(step[::2], step[1::2], strict=True):
            text, look = data["runs"][number]
            cells[position : position + len(text)] = [(character, data["looks"][look]) for character in text]
        yield list(cells)


def declarations(fg, bg, style):
    if bg:
        look = dict(zip(("color", "background"), inks(fg, bg, style)))
    else:
        look = {"color": f"var(--k{fg})" if fg < 16 else "#ff00d7"} if fg else {}
        if style & REVERSE:
            look = {"color": "var(--k0)", "background": look.get("color", "var(--k16)")}
    if style & BOLD:
        look["font-weight"] = "bold"
    if style & UNDERLINE:
        look["text-decoration"] = "underline"
    return ";".join(f"{name}:{value}" for name, value in look.items())


@settings(max_examples=40)
@given(st.lists(CELL, min_size=60, max_size=60))
def test_the_changes_make_the_frames_again(cells):
    frames = np.array(cells, dtype=blank(1, 1).dtype).reshape(3, 2, 10)
    data = stored(player_html(frames, ["a", "", "b"], "x"))
    for shown, frame in zip(replayed(data), drawable(frames), strict=True):
        assert shown == [(chr(code), declarations(*look)) for code, *look in frame.ravel().tolist()]


def test_of_a_real_session_only_changes_are_stored(played):
    frames, keys = played
    element = player_html(frames, list(map(key_label, keys)), "A session")
    assert len(element.encode()) < 60_000
    for shown, frame in zip(replayed(stored(element)), frames, strict=True):
        assert "".join(character for character, _ in shown) == "".join(map(chr, frame["code"].ravel().tolist()))
    assert player_html(frames, list(map(key_label, keys)), "A session") == element


def test_texts_are_escaped_and_nothing_comes_from_outside():
    frame = blank(1, 20)
    frame["code"] = [ord(c) for c in "</script><!--&#60;  "]
    element = player_html(frame[None], ["</script>\udc80"], 'a "title" </figure>')
    assert element.count("</script>") == 2 and element.count("</figure>") == 1 and "<!--" not in element
    assert stored(element)["labels"] == ["</script>?"]
    assert not re.search(r"https?:|src=|@import|url\(", element)


def test_what_cannot_be_played():
    with pytest.raises(ValueError, match=r"not an array of shape \(2, 3\)"):
        player_html(blank(2, 3), [], "x")
    with pytest.raises(ValueError, match="at least one"):
        player_html(np.empty((0, 2, 3), dtype=blank(1, 1).dtype), [], "x")
    with pytest.raises(ValueError, match="1 frames have 2 labels"):
        player_html(blank(2, 3)[None], ["a", "b"], "x")
    with pytest.raises(ValueError, match="rate 0"):
        player_html(blank(2, 3)[None], ["a"], "x", rate=0)


@pytest.mark.parametrize(("action", "label"), [
    ("a", "a"), (" ", "Space"), ("\r", "Enter"), ("\x15", "Ctrl-U"), ("\x1b", "Esc"), ("\x1b[A", "↑"), ("\x1b[1;5C", "\\x1b[1;5C"),
    ("中", "中"), ("\udc80", "\\udc80"), (paste("abc"), "paste of 3"), ("", "no key"),
])  # fmt: skip
def test_labels_of_keys(action, label):
    assert key_label(action) == label


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_colours_can_be_read(palette):
    for index in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 16):
        assert contrast(palette[0], palette[index]) >= 4.5, index


@pytest.fixture(scope="module")
def page(played, tmp_path_factory):
    """A page with two players side by side."""
    frames, keys = played
    players = [player_html(frames, list(map(key_label, keys)), "Keys"), player_html(frames[:50, :6, :20], ["step"] * 50, "Small", rate=100)]
    file = tmp_path_factory.mktemp("player") / "page.html"
    file.write_text("<!DOCTYPE html><meta charset=utf-8><style>:root{color-scheme:light dark}</style>"
                    f'<div style="display:grid;grid-template-columns:1fr 1fr">{"".join(players)}</div>', "utf-8")
    return file.as_uri()


def text_of(frame):
    return "\n".join("".join(chr(code) for code in row if code) for row in frame["code"].tolist())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_plays_it(page, played, visit, scheme):
    frames, keys = played
    tab = visit(page, scheme=scheme)
    first, second = tab.locator(".fbam-player").all()
    assert first.evaluate(SHOWN) == [text_of(frames[0]), "0 of 599", ["v"], "Play"]
    second.get_by_role("button", name="Play").click()
    tab.wait_for_function("document.querySelectorAll('output')[1].textContent === '49 of 49'")
    assert second.evaluate(SHOWN)[0] == text_of(frames[49, :6, :20]) and second.evaluate(SHOWN)[3] == "Play"
    assert first.evaluate(SHOWN)[1] == "0 of 599"  # the other one stands
    ground = first.locator("pre").evaluate("tag => getComputedStyle(tag).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)")
    assert tab.complaints == [] and len(tab.requested) == 1
    assert first.locator("pre").evaluate("tag => tag.scrollWidth <= tag.clientWidth"), "160 columns fit half a page"


def test_scrubber_and_keys_show_any_frame(page, played, visit):
    frames, keys = played
    tab = visit(page)
    player = tab.locator(".fbam-player").first
    for frame in (599, 300, 301, 7):
        player.locator("input").fill(str(frame))
        shown = player.evaluate(SHOWN)
        assert shown[:2] == [text_of(frames[frame]), f"{frame} of 599"]
        assert shown[2] == [key_label(key) for key in keys[max(0, frame - 11) : frame + 1]]
    player.locator("pre").focus()
    for key, frame in (("ArrowRight", 8), ("ArrowLeft", 7), ("End", 599), ("ArrowRight", 599), ("Home", 0), ("ArrowLeft", 0)):
        tab.keyboard.press(key)
        assert player.evaluate(SHOWN)[:2] == [text_of(frames[frame]), f"{frame} of 599"]
    tab.keyboard.press("Space")
    assert player.evaluate(SHOWN)[3] == "Pause"
    player.locator("select").select_option("8")
    tab.wait_for_function("Number(document.querySelector('input').value) > 20")
    tab.keyboard.press("Space")  # the focus is on the frame still
    player.locator("pre").focus()
    assert player.get_by_role("slider").get_attribute("aria-valuetext").startswith("frame ")
    assert player.get_by_role("img", name="Keys").count() == 1


def test_without_a_script_the_first_frame_is_read(played):
    frames, keys = played
    element = player_html(frames[590:], list(map(key_label, keys[590:])), "x")
    text = html.unescape(re.search(r"<pre[^>]*>(.*?)</pre>", element, re.DOTALL)[1])
    assert text == "\n".join(line.rstrip() for line in text_of(frames[590]).split("\n"))
