"""Figures draw the rows they are given, the same bytes each time, and a frame's page element shows the frame's text."""

import html
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from fbam.analysis import figures, terminal
from fbam.recording import colours, drawable
from fbam.recording.cells import BOLD, REVERSE, UNDERLINE, blank

RUNS = [{"length": length, "loss": 5 * length**-0.2, "losses": [6.0, 5.0, 4.0, 4.0 - 0.1 * length]} for length in (1, 2, 4, 8)]
BARS = [{"component": "head", "flops": 2.7e14}, {"component": "main", "flops": 2e13}]


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    monkeypatch.setitem(figures.mpl.rcParams, "backend", "agg")
    with figures.mpl.rc_context():
        figures.use_style()
        yield
    plt.close("all")


def draw(function, *arguments):
    figure, axes = plt.subplots()
    function(axes, *arguments)
    return axes, figures.svg(figure)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (figures.loss_against_length, (RUNS, {"ours": (5, 0.2), "paper, s = 4000": (4.96, 0.318)})),
        (figures.loss_curves, (RUNS, 2)),
        (figures.flops_bars, (BARS,)),
        (figures.loss_against_labels, ([run | {"batch": 4, "seed": 0} for run in RUNS], 2, 1)),
        (figures.reference_lines, ({"unigram": 4.5},)),
    ],
)
def test_the_same_rows_give_the_same_bytes_without_a_date(function, arguments):
    (_, first), (_, second) = draw(function, *arguments), draw(function, *arguments)
    assert first == second
    assert "<dc:date>" not in first


def test_runs_and_laws_are_where_the_numbers_say():
    axes, _ = draw(figures.loss_against_length, RUNS, {"law": (5.0, 0.2)})
    points, law = axes.lines
    assert points.get_xydata().tolist() == [[run["length"], run["loss"]] for run in RUNS]
    np.testing.assert_allclose(law.get_xydata(), [[1, 5], [8, 5 * 8**-0.2]])


def test_a_loss_curve_is_the_mean_of_the_last_steps():
    axes, _ = draw(figures.loss_curves, RUNS[:1], 3)
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[3, 5.0], [4, (5 + 4 + 3.9) / 3]])
    with pytest.raises(ValueError, match="no mean over 5 steps in a run of 4"):
        draw(figures.loss_curves, RUNS, 5)


def test_labels_seen_are_steps_times_batch_times_length_and_shared_runs_stand_once():
    runs = [run | {"batch": 4, "seed": 0} for run in RUNS[:2]]
    axes, _ = draw(figures.loss_against_labels, [*runs, runs[0]], 10, 5)
    assert len(axes.lines) == 2
    assert axes.lines[1].get_xdata().tolist() == [80, 120, 160] and axes.lines[1].get_ydata()[0] == 5.5


def test_every_seed_is_drawn_and_named_once():
    runs = [run | {"batch": batch, "seed": seed} for run in RUNS[:2] for batch in (4, 8) for seed in (1, 2, 3)]
    axes, _ = draw(figures.loss_against_labels, runs, 1, 1)
    assert len(axes.lines) == len(runs)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "L = 1, batch 4", "L = 1, batch 8", "L = 2, batch 4", "L = 2, batch 8"]
    assert {(line.get_linestyle(), tuple(line.get_color())) for line in axes.lines} == {
        (dash, tuple(colour)) for dash in figures.DASHES[:2] for colour in figures._shades([1, 2]).values()}


def test_bars_stand_in_the_order_of_the_rows_from_the_top():
    axes, _ = draw(figures.flops_bars, BARS)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["head", "main"]
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts] == ["2.70e+14", "2.00e+13"]


def test_no_rows_is_an_error_and_not_an_empty_picture():
    with pytest.raises(ValueError, match="nothing to draw: no rows with length, loss"):
        draw(figures.loss_against_length, [], {})


@pytest.mark.parametrize(("index", "expected"), [(16, "#000000"), (196, "#ff0000"), (231, "#ffffff"), (232, "#080808"), (255, "#eeeeee")])
def test_the_256_colours_are_those_of_xterm(index, expected):
    assert colours.colour(index, "none") == expected


def shown(element):
    return html.unescape(re.sub(r"<[^>]*>", "", element))


@given(st.data())
def test_a_drawn_frame_has_the_text_of_its_cells(data):
    frame = blank(3, 8)
    for field, values in (("code", st.integers(0, 0x2FF)), ("fg", st.integers(0, 255)), ("style", st.integers(0, 7))):
        frame[field] = np.array(data.draw(st.lists(values, min_size=24, max_size=24))).reshape(3, 8)
    expected = "\n".join("".join(chr(code) for code in row["code"].tolist() if code) for row in drawable.drawable(frame))
    assert shown(terminal.frame_html(frame, "a frame")) == expected


def test_looks_become_styles_and_neighbours_share_them():
    frame = blank(1, 5)
    frame["code"] = [ord(c) for c in "<ab c"]
    frame[0, 1:3]["fg"] = 4
    frame[0, 3]["style"] = REVERSE
    frame[0, 4]["style"] = BOLD | UNDERLINE
    body = terminal.frame_html(frame, 'say "hi"').split(">", 1)[1]
    assert body == (
        '&lt;<span style="color:#0550ae">ab</span>'
        '<span style="color:#ffffff;background:#24292f"> </span>'
        '<span style="font-weight:bold;text-decoration:underline">c</span></pre>'
    )


def test_a_wide_character_takes_the_room_of_its_two_cells():
    frame = blank(1, 4)
    frame["code"] = [ord("a"), ord("中"), 0, ord("b")]
    body = terminal.frame_html(frame, "wide").split(">", 1)[1]
    assert body == 'a<span style="display:inline-block;width:2ch">中</span>b</pre>'


def test_only_one_frame_is_drawn():
    with pytest.raises(ValueError, match="one frame"):
        terminal.frame_html(blank(2, 3)[0], "a row")
