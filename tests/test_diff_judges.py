"""Judges: what counts as the same file, and how far they agree."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.tasks.judges import agreement, agreements, judge, line_distance, same_tree

SOURCE = '''\
"""Doc."""
import os

LIMIT = 3  # most


def first(x):
    # a comment
    return x + LIMIT


class Second(Base):
    a = 1

    def b(self):
        return "b"

    def c(self):
        return 'c'
'''


@pytest.mark.parametrize("other", [
    SOURCE.replace("  # most", "").replace("    # a comment\n", ""),
    SOURCE.replace("\n\n\n", "\n\n").replace("x + LIMIT", "( x+LIMIT )").replace("'c'", '"c"'),
    SOURCE[: SOURCE.index("def first")] + SOURCE[SOURCE.index("class") :] + "\n\n" + SOURCE[SOURCE.index("def first") : SOURCE.index("class")],
    SOURCE.replace('b(self):\n        return "b"\n\n    def c(self):\n        return \'c\'', 'c(self):\n        return "c"\n\n    def b(self):\n        return "b"'),
])  # fmt: skip
def test_style_and_order_of_definitions_do_not_count(other):
    assert other != SOURCE and same_tree(other, SOURCE)
    assert judge(other, SOURCE).equivalent and not judge(other, SOURCE).bytes


@pytest.mark.parametrize("other", [
    SOURCE.replace("LIMIT = 3", "LIMIT = 4"),
    SOURCE.replace("return x +", "return x -"),
    SOURCE.replace("import os\n", ""),
    SOURCE.replace('"""Doc."""', '"""Other."""'),
    SOURCE + "    def b(self):\n        return 'again'\n",  # the last one of a name counts
    SOURCE + "  broken",
    "",
])  # fmt: skip
def test_meaning_counts(other):
    assert same_tree(other, SOURCE) is False and not judge(other, SOURCE).equivalent


def test_definitions_do_not_move_past_statements():
    assert same_tree("x = 1\ndef f(): pass\n", "def f(): pass\nx = 1\n") is False
    one, two = "def f(): return 1\ndef f(): return 2\n", "def f(): return 2\ndef f(): return 1\n"
    assert same_tree(one, two) is False


def test_a_target_that_is_no_python_is_judged_by_its_bytes():
    for target in ("print 'old'\n", "a\0b", "bad \udcff ("):
        verdicts = judge("other", target)
        assert verdicts.tree is None and not verdicts.equivalent and judge(target, target).equivalent


def test_lines_ignore_blank_ones_and_space_at_their_ends():
    verdicts = judge("a  \n\n\nb", "a\nb\n")
    assert verdicts.lines and not verdicts.bytes and verdicts.distance == 4
    assert not judge("a\nc\n", "a\nb\n").lines and judge("a\n b\n", "a\nb\n").lines is False


def by_table(one: list[str], other: list[str]) -> int:
    """Edit distance by the textbook's table."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(st.lists(st.sampled_from("abc\n"), max_size=8), st.lists(st.sampled_from("abc\n"), max_size=8))
def test_line_distance_is_the_edit_distance(one, other):
    assert line_distance(one, other) == by_table(one, other)


def test_agreement_beyond_chance():
    one, other = [True, True, False, False, None, True], [True, False, False, False, True, None]
    found = agreement(one, other)
    assert (found.cases, found.agreed) == (4, 0.75) and found.kappa == pytest.approx((0.75 - 0.5) / 0.5)
    assert agreement([True], [True]).kappa is None
    with pytest.raises(ValueError, match="no case in common"):
        agreement([None], [True])
    assert agreements({"a": one, "b": other, "c": [None] * 6}) == {("a", "b"): found}


def test_the_tree_of_python_is_python_s():
    assert same_tree(ast.unparse(ast.parse(SOURCE)), SOURCE)
