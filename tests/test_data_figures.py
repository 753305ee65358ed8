"""Pictures of the data: lanes of a history, marked differences, actions and tokens as text that can be read back."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from fbam.analysis import data_figures, figures
from fbam.analysis.data_figures import actions_html, commit_graph, diff_html, lanes_of, marked_html, tokens_html


def commit(name, *parents, subject="x", author="A"):
    return {"id": name, "parents": list(parents), "subject": subject, "author": author}


def text(element):
    return html.unescape(re.sub(r"<[^>]*>", "", element))


@pytest.mark.parametrize(("commits", "lanes"), [
    ([commit("b", "a"), commit("a")], [0, 0]),
    ([commit("m", "a", "s"), commit("s", "a"), commit("a")], [0, 1, 0]),
    ([commit("m", "b", "s"), commit("b", "a"), commit("s", "a"), commit("a")], [0, 0, 1, 0]),
    ([commit("m", "b", "s"), commit("s", "a"), commit("b", "a"), commit("a")], [0, 1, 0, 0]),
    ([commit("o", "b", "s", "t"), commit("s", "a"), commit("t", "a"), commit("b", "a"), commit("a")], [0, 1, 2, 0, 0]),
    ([commit("n", "m", "t"), commit("t", "m"), commit("m", "b", "s"), commit("s", "b"), commit("b")], [0, 1, 0, 1, 0]),  # a lane is used again
])  # fmt: skip
def test_lanes(commits, lanes):
    assert list(lanes_of(commits).values()) == lanes


@given(st.integers(0, 2**16))
def test_first_parents_run_straight_down(seed):
    names = [str(k) for k in range(8)]
    commits = [commit(name, *dict.fromkeys(names[min(7, k + 1 + (seed >> (2 * k)) % n)] for n in (1, 3)) if k < 7 else ())
               for k, name in enumerate(names)]  # fmt: skip
    lanes = lanes_of(commits)
    assert set(lanes) == set(names) and {lanes[name] for name in names} == {0}


def test_a_graph_has_a_line_for_each_parent_and_all_texts():
    figures.use_style()
    commits = [commit("abcdefghij", "b", "c", subject="cost $1 and $2"), commit("c", "b", subject="s" * 99), commit("b", "gone", author="Zoë")]
    figure = commit_graph(commits)
    (axes,) = figure.axes
    assert len([line for line in axes.lines if len(line.get_xdata()) == 4]) == 4
    texts = [item.get_text() for item in axes.texts]
    assert texts[0] == r"abcdefgh   cost \$1 and \$2" and texts[5] == "Zoë" and texts[2].endswith("s…")
    assert figures.svg(figure) == figures.svg(figure)
    plt.close(figure)


def test_a_difference_by_characters():
    changed = [("kept", "x"), ("removed", "1"), ("inserted", "22"), ("kept", "\n")]
    shown = marked_html([(1, [("kept", "a<b\n")]), (5, changed), (6, [("inserted", "new\n")]), (7, [("kept", "x"), ("removed", "\n")])])
    assert text(shown) == "  a<b\n   …\n~ x122\n+ new\n~ x⏎"
    assert re.findall(r'line-through">(.*?)<', shown) == ["1", "⏎"] and re.findall(r'underline">(.*?)<', shown) == ["22", "new"]


def test_a_unified_diff():
    lines = ["--- a\n", "+++ b\n", "@@ -1 +1 @@\n", "-old <\n", "+new\n", " kept\n"]
    shown = diff_html(lines)
    assert text(shown) == "".join(lines).rstrip("\n")
    assert "holds-wash" in re.findall(r"<span[^>]*>\+new", shown)[0] and "error-wash" in re.findall(r"<span[^>]*>-old", shown)[0]


def test_actions_are_text_and_keys():
    shown = actions_html([*"vi a", "\r", "i", "\x1b[B", "\x1b[B", "<", "\x1b", ":", "\r", "\x1b[200~ab\x1b[201~", "\udc80"])
    assert text(shown) == "vi aEnter\ni↓ ×2<Esc:Enter\npaste of 2\\udc80"
    assert shown.count("<kbd") == 6


def test_tokens_alternate():
    shown = tokens_html([["get", "Value", "_", "of", " "], ["x"]])
    assert text(shown) == "getValue_of·\nx"
    shades = re.findall(r'<span style="(.*?);color', shown)
    assert shades == [data_figures.TOKENS[k] for k in (0, 1, 0, 1, 0, 0)]


def test_bars_are_sorted_and_labelled():
    figure, axes = plt.subplots()
    data_figures.action_bars(axes, {"rare": 1, "often": 3})
    assert [label.get_text() for label in axes.get_yticklabels()] == ["often", "rare"]
    assert [item.get_text() for item in axes.texts] == ["3  (75.0%)", "1  (25.0%)"]
    plt.close(figure)


def test_shares_are_per_cent_of_the_whole():
    figure, axes = plt.subplots()
    data_figures.share_bars(axes, {"git": 0.125, "keys": 0.875})
    assert [item.get_text() for item in axes.texts] == ["87.5%", "12.5%"] and axes.xaxis.get_major_formatter()(0.5) == "50%"
    plt.close(figure)
