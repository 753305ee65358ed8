"""What of a frame can be drawn: wide, zero-width and impossible characters, and the same rule for every drawing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from fbam.recording.cells import BLANK, REVERSE, blank
from fbam.recording.colours import INK, PALETTE, PAPER, inks, luminance
from fbam.recording.drawable import REPLACEMENT, drawable

AWKWARD = st.sampled_from([0, 7, 27, 32, 65, 0x7F, 0x9B, 0x301, 0x200B, 0x4E2D, 0xD7A3, 0x1F600, 0xDC80, 0xFFFD, 0x10FFFF, 0x110000])


def row(*codes):
    frame = blank(1, len(codes))
    frame["code"] = codes
    return frame


def test_plain_frames_are_not_copied():
    frame = row(*b"let x = 1")
    assert drawable(frame) is frame


@pytest.mark.parametrize(("codes", "expected"), [
    ([0x4E2D, 0, 65], [0x4E2D, 0, 65]),
    ([0x4E2D, 65, 0], [REPLACEMENT, 65, BLANK]),
    ([65, 0, 0x4E2D], [65, BLANK, REPLACEMENT]),
    ([0x4E2D, 0, 0], [0x4E2D, 0, BLANK]),
    ([0x301, 0x200B, 7], [REPLACEMENT] * 3),
    ([0xDC80, 0x110000, 0x2FFFFFFF], [REPLACEMENT] * 3),
    ([0, 0x4E2D, 0], [BLANK, 0x4E2D, 0]),
])  # fmt: skip
def test_what_has_no_picture_is_replaced(codes, expected):
    assert drawable(row(*codes))["code"].tolist() == [expected]


def test_a_wide_character_has_one_look():
    frame = row(0x4E2D, 0, 0x4E2D, 0)
    frame["style"][0, 0], frame["fg"][0, 3] = REVERSE, 5
    drawn = drawable(frame)
    assert drawn["style"].tolist() == [[REVERSE, REVERSE, 0, 0]] and not drawn["fg"].any()
    assert frame["style"].tolist() == [[REVERSE, 0, 0, 0]]  # the frame itself stays


@given(st.lists(AWKWARD, min_size=12, max_size=12))
def test_each_row_fills_its_cells_and_drawing_again_changes_nothing(codes):
    frame = blank(2, 6)
    frame["code"] = np.array(codes).reshape(2, 6)
    drawn = drawable(frame)
    for cells in drawn["code"].tolist():
        text = [chr(code) for code in cells if code]
        assert sum(map(wcwidth, text)) == 6 and min(map(wcwidth, text)) > 0
    assert np.array_equal(drawable(drawn), drawn)
    assert np.array_equal(drawable(np.stack([frame, drawn])), np.stack([drawn, drawn]))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_luminance_is_that_of_the_standard():
    assert (luminance("#000000"), luminance("#ffffff")) == (0, pytest.approx(1))
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4) and contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("index", [0, *range(1, 7), *range(8, 15)])
def test_inks_can_be_read_on_white_paper(index):
    assert inks(index, 0, 0) == (PALETTE[index], PAPER) and contrast(*inks(index, 0, 0)) >= 4.5
    assert inks(index, 0, REVERSE) == (PAPER, PALETTE[index])


@pytest.mark.parametrize("ground", range(1, 16))
@pytest.mark.parametrize("reverse", [False, True])
def test_plain_and_white_text_can_be_read_on_a_coloured_ground(ground, reverse):
    texts = [0] if ground in (7, 15) else [0, 7, 15]
    for text in texts:
        look = (ground, text, REVERSE) if reverse and text else (text, ground, 0)
        assert contrast(*inks(*look)) >= 4.5, (look, inks(*look))


def test_a_mark_on_a_ground_keeps_both_colours():
    assert inks(0, 4, REVERSE) == ("#86b7ff", INK) and contrast(*inks(0, 4, REVERSE)) >= 4.5
    assert inks(16, 231, 0) == ("#000000", "#ffffff") and inks(0, 231, 0) == (INK, "#ffffff") and inks(0, 16, 0) == (PAPER, "#000000")
