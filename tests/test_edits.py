"""Plans lead from any text to any other, and differences are the smallest, by comparison with slow references."""

from functools import lru_cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fbam.sessions import edits
from fbam.sessions.edits import Cut, DELETED, INSERTED, PAIRED, Limits, Plan, Splice, line_change, pair_lines, plan

NEVER = 10**9
LINES = st.text(alphabet="ab \t\r\u4e2d\udcff\U0001f600", max_size=8)
TEXTS = st.one_of(
    st.lists(st.sampled_from(["", "a", "b", "ab", "a b", "}"]), max_size=12).map("\n".join),
    st.lists(LINES, max_size=8).map("\n".join),
)
LIMITS = st.builds(Limits, file_characters=st.integers(0, 60), line_characters=st.integers(0, 8))


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Compile what plans need, or load it, outside of any test's time."""
    plan("a\nb", "c\nd\ne", Limits(), 99)


def carry_out(text: str, steps: Plan) -> str:
    """What a plan means, on a flat text; lines are looked up anew for each edit."""
    for edit in steps.edits:
        lines = text.split("\n")
        if isinstance(edit, Cut):
            assert edit.count >= 1 and edit.line + edit.count <= len(lines)
            text = "\n".join(lines[: edit.line] + lines[edit.line + edit.count :])
        else:
            start = sum(len(line) + 1 for line in lines[: edit.line]) + edit.column
            assert 0 <= edit.column <= edit.column + edit.removed <= len(lines[edit.line])
            text = text[:start] + edit.text + text[start + edit.removed :]
    return text


def smallest_distance(old: str, new: str) -> int:
    """Characters removed and inserted at least: by the longest common subsequence, cell by cell."""

    @lru_cache(maxsize=None)
    def common(i: int, j: int) -> int:
        if i == len(old) or j == len(new):
            return 0
        if old[i] == new[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    return len(old) + len(new) - 2 * common(0, 0)


@given(TEXTS, TEXTS, LIMITS, st.integers(0, 200))
@example("", "a", Limits(), NEVER)
@example("x", "y\nz", Limits(file_characters=0), NEVER)
@example("a\nb", "b", Limits(), NEVER)
@example("b", "a\nb", Limits(), NEVER)
def test_a_plan_leads_to_the_new_text(old, new, limits, keys_left):
    assert carry_out(old, plan(old, new, limits, NEVER)) == new
    assert carry_out(old, plan(old, new, limits, keys_left)) == new


@given(TEXTS)
def test_nothing_is_done_where_nothing_changed(text):
    assert plan(text, text, Limits(), NEVER) == Plan([], 0)


@given(LINES, LINES)
def test_changes_of_a_line_are_the_smallest_or_the_whole_line(old, new):
    distance, changes = line_change(old, new)
    assert distance == smallest_distance(old, new)
    keys = sum(removed + len(text) for _, removed, text in changes)
    assert keys == distance or changes == [(0, len(old), new)]
    line = old
    for column, removed, text in changes:
        line = line[:column] + text + line[column + removed :]
    assert line == new
    assert all(a[0] + len(a[2]) < b[0] for a, b in zip(changes, changes[1:]))


def test_a_line_is_typed_anew_where_that_is_shorter():
    assert line_change("return a + b;", "return a - b;") == (2, [(9, 1, "-")])
    assert line_change("a long line that goes away", "new")[1] == [(0, 26, "new")]


@given(st.lists(LINES, min_size=1, max_size=4), st.lists(LINES, min_size=1, max_size=4))
def test_lines_are_paired_at_the_lowest_cost(old, new):
    def step(kind: str, i: int, j: int) -> int:
        pair = min(smallest_distance(old[i], new[j]), 2 + len(new[j])) if kind == PAIRED else 0
        return {PAIRED: pair, DELETED: 2, INSERTED: len(new[j - (j == len(new))]) + 1}[kind]

    def lowest(i: int, j: int) -> int:
        ways = [0] if (i, j) == (len(old), len(new)) else []
        if i < len(old) and j < len(new):
            ways.append(step(PAIRED, i, j) + lowest(i + 1, j + 1))
        if i < len(old):
            ways.append(2 + lowest(i + 1, j))
        if j < len(new):
            ways.append(step(INSERTED, i, j) + lowest(i, j + 1))
        return min(ways)

    cost = i = j = 0
    for kind in pair_lines(old, new):
        cost += 2 if kind == DELETED else step(kind, i, j)
        i, j = i + (kind != INSERTED), j + (kind != DELETED)
    assert (i, j) == (len(old), len(new))
    assert cost == lowest(0, 0)


@given(st.lists(LINES, min_size=1, max_size=3), st.lists(LINES, min_size=1, max_size=3))
def test_few_lines_are_paired_as_many_are(old, new):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, "FEW_PAIRS", 0)
        expected = pair_lines(old, new)
        patch.setattr(edits, "FEW_PAIRS", 9)
        assert pair_lines(old, new) == expected


@given(TEXTS, TEXTS)
@pytest.mark.parametrize("name", ["PAIRING_CELLS", "ALIGNMENT_CELLS"])
def test_blocks_too_large_to_compare_are_replaced_as_well(name, old, new):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, name, 3)
        assert carry_out(old, plan(old, new, Limits(), NEVER)) == new


def test_new_lines_follow_the_line_above_and_top_lines_make_room_first():
    assert plan("a\nz\n", "a\nb\nz\n", Limits(), NEVER) == Plan([Splice(0, 1, 0, "\nb")], 2)
    assert plan("z\n", "a\nb\nz\n", Limits(), NEVER) == Plan([Splice(0, 0, 0, "\n"), Splice(0, 0, 0, "a\nb")], 4)
    assert plan("", "a\n", Limits(), NEVER) == Plan([Splice(0, 0, 0, "a\n")], 2)
    assert plan("a\nb\nc", "a\nc", Limits(), NEVER) == Plan([Cut(1, 1)], 2)


def test_beyond_the_limits_one_paste_a_region():
    old = "\n".join(f"line {k}" for k in range(50))
    new = old.replace("line 10", "line ten").replace("line 40", "line forty")
    by_region = plan(old, new, Limits(file_characters=100), NEVER).edits
    assert [edit.paste for edit in by_region if isinstance(edit, Splice)] == [True, True]
    assert [edit.text for edit in by_region if isinstance(edit, Splice)] == ["\nline ten", "\nline forty"]
    whole = plan(old, new, Limits(), keys_left=5)
    assert whole.edits == [Cut(10, 31), Splice(9, 6, 0, "\n" + "\n".join(new.split("\n")[10:41]), True)]
    assert whole.changed == plan(old, new, Limits(), NEVER).changed

    long = "x" * 30
    steps = plan(f"a\n{long}\nb\nc", f"a\n{long}y\nb\nd", Limits(line_characters=20), NEVER).edits
    assert steps == [Cut(1, 1), Splice(0, 1, 0, f"\n{long}y", True), Splice(3, 0, 1, "d")]
