"""The picture of a difference: what is marked makes the old and the new text, and the graph knows all parents."""

from __future__ import annotations

import pytest
from gitrepos import Snapshot, make_repository
from hypothesis import given
from hypothesis import strategies as st

from fbam.sessions.edits import Cut, Limits, Splice, plan
from fbam.sessions.history import HistoryError
from fbam.sessions.history_view import view_history
from fbam.sessions.marked import INSERTED, KEPT, REMOVED, marked_lines, marked_text, near_changes

TEXT = st.text("ab\n", max_size=40)


@given(TEXT, TEXT)
def test_without_the_marked_characters_it_is_the_old_and_the_new_text(old, new):
    marked = marked_text(old, plan(old, new, Limits(), 10**6).edits)
    assert "".join(character for mark, character in marked if mark != INSERTED) == old
    assert "".join(character for mark, character in marked if mark != REMOVED) == new
    lines = marked_lines(old, plan(old, new, Limits(), 10**6).edits)
    assert "".join(text for line in lines for _, text in line) == "".join(character for _, character in marked)
    assert all("\n" not in text[:-1] for line in lines for _, text in line)


def test_a_change_inside_a_line():
    lines = marked_lines("def f(a):\n    return a\n", [Splice(0, 4, 1, "g"), Splice(1, 12, 0, " + 1")])
    assert lines == [
        [(KEPT, "def "), (REMOVED, "f"), (INSERTED, "g"), (KEPT, "(a):\n")],
        [(KEPT, "    return a"), (INSERTED, " + 1"), (KEPT, "\n")],
    ]


def test_whole_lines_and_what_stands_near_them():
    lines = marked_lines("1\n2\n3\n4\n5", [Cut(1, 1), Splice(2, 1, 0, "\nnew")])
    assert lines == [[(KEPT, "1\n")], [(REMOVED, "2\n")], [(KEPT, "3\n")], [(KEPT, "4"), (INSERTED, "\n")], [(INSERTED, "new"), (KEPT, "\n")],
                     [(KEPT, "5")]]  # fmt: skip
    assert [number for number, _ in near_changes(lines, 0)] == [2, 4, 5]
    assert [number for number, _ in near_changes(lines, 1)] == [1, 2, 3, 4, 5, 6]
    assert marked_lines("1\n2", [Cut(1, 1)]) == [[(KEPT, "1"), (REMOVED, "\n")], [(REMOVED, "2")]]


@pytest.fixture
def source(tmp_path):
    """Two commits, the second one a merge that changes a file and brings one."""
    side = Snapshot({"b": b"2"}, message="side")
    snapshots = [Snapshot({"a": b"1", "x": b"0"}, message="one\n\nmore"), Snapshot({"a": b"\xff", "b": b"2", "x": b"0"}, "merge", (side,))]
    return str(make_repository(tmp_path / "source", snapshots))


def test_the_graph_has_all_parents_of_a_merge(source):
    nodes = view_history(source, None, 1, 10).graph
    assert [node.subject for node in nodes] == ["merge", "side", "one"]
    assert nodes[0].parents == [nodes[2].id, nodes[1].id] and nodes[2].parents == []
    assert {node.author for node in nodes} == {"Test"}
    assert [node.subject for node in view_history(source, None, 1, 1).graph] == ["merge"]


def test_the_changes_of_a_commit(source):
    first, last = view_history(source, None, 1, 1), view_history(source, None, 99, 1)
    assert first.name == "source" and first.commit.message == "one\n\nmore" and last.commit.message == "merge"
    assert first.changed == [("a", "", "1"), ("x", "", "0")]
    assert last.changed == [("a", "1", "\udcff"), ("b", "", "2")]
    with pytest.raises(HistoryError, match="unknown revision 'nowhere'"):
        view_history(source, "nowhere", 1, 1)
