"""The parallel approximation: right where context shows the state, wrong where only bookkeeping would do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.sessions.files import encode
from fbam.tasks.git_diffs import DiffWriter, State
from fbam.tasks.latest_diff import by_context, windows
from fbam.tasks.patches import parse, split_lines
from fbam.tasks.solvers_diff import APPROXIMATION, EXACT, SOLVERS, solve

SOURCE = "".join(f"line {i}\n" for i in range(40))


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> DiffWriter:
    return DiffWriter(tmp_path_factory.mktemp("scratch"))


def diffs_of(writer: DiffWriter, texts: list[str], context: int) -> list[str]:
    states = [State("f.py", 0o100644, encode(text)) for text in texts]
    return [writer.diff(old, new, context) for old, new in zip([None, *states], states)]


def edited(text: str, *changes: tuple[int, int, str]) -> str:
    lines = split_lines(text)
    for start, count, new in sorted(changes, reverse=True):
        lines[start : start + count] = split_lines(new)
    return "".join(lines)


def test_distinct_lines_make_context_enough(writer):
    texts = [SOURCE, edited(SOURCE, (5, 1, "five\nand a half\n"), (30, 2, ""))]
    texts.append(edited(texts[-1], (6, 1, "and more\n"), (20, 0, "twenty\n")))
    texts.append(edited(texts[-1], (0, 2, "top\n"), (len(split_lines(texts[-1])), 0, "end")))
    for context in (3, 1):
        assert solve(APPROXIMATION, diffs_of(writer, texts, context), context) == texts[-1]


def test_line_numbers_are_right_for_one_change_and_drift_after_that(writer):
    one = edited(SOURCE, (3, 0, "new\n"))
    two = edited(one, (20, 1, "changed\n"))
    assert solve("line numbers", diffs_of(writer, [SOURCE, one], 0), 0) == one
    # the second diff counts the line that the first one put above; nobody kept the account
    assert solve("line numbers", diffs_of(writer, [SOURCE, one, two], 0), 0) == edited(SOURCE, (3, 0, "new\n"), (20, 1, "changed\n"))
    assert solve(APPROXIMATION, diffs_of(writer, [SOURCE, one, two], 0), 0) != two
    assert solve(APPROXIMATION, diffs_of(writer, [SOURCE, one, two], 1), 1) == two


def test_of_two_diffs_of_one_region_the_later_one_stays(writer):
    one = edited(SOURCE, (10, 2, "a\nb\n"))
    two = edited(one, (10, 2, "c\nd\n"))
    for solver in (APPROXIMATION, "line numbers"):
        for context in (3, 1, 0):
            assert solve(solver, diffs_of(writer, [SOURCE, one, two], context), context) == two


def test_repeated_lines_mislead_a_line_of_context(writer):
    block = "".join(f"@dataclass\nclass C{i}:\n    x: int\n\n\n" for i in range(6))
    one = edited(block, (5, 0, "@dataclass\nclass Added:\n    y: str\n    z: str\n\n\n"))
    assert solve(APPROXIMATION, diffs_of(writer, [block, one], 3), 3) == one
    assert solve(APPROXIMATION, diffs_of(writer, [block, one], 1), 1) != one


def test_the_end_of_the_file_can_be_cut_off_and_replaced(writer):
    for new in (edited(SOURCE, (36, 4, "")), edited(SOURCE, (36, 4, "last")), edited(SOURCE, (0, 40, "all new\n"))):
        for context in (3, 1):
            assert solve(APPROXIMATION, diffs_of(writer, [SOURCE, new], context), context) == new


def test_the_last_diff_shows_its_surroundings_alone(writer):
    assert solve("last diff", diffs_of(writer, [SOURCE, edited(SOURCE, (10, 1, "ten\n"))], 1), 1) == "line 9\nten\nline 11\n"


def test_windows_sum_what_later_diffs_add_and_remove(writer):
    one = edited(SOURCE, (3, 0, "a\nb\n"), (20, 1, ""))
    two = edited(one, (10, 5, "c\n"))
    found = windows([parse(diff) for diff in diffs_of(writer, [SOURCE, one, two], 0)])
    assert [(window.up, window.down) for window in found] == [(-5, 2), (-4, 0), (0, 0)]


# ---------------------------------------------------------------- the same rules, without an index


def by_search(patches, context):
    """Search all that all diffs show for every line."""
    hunks = [(d, h, hunk) for d, patch in enumerate(patches) for h, hunk in enumerate(patch.hunks)]
    growth = [[hunk.new_count - hunk.old_count for hunk in patch.hunks] for patch in patches]

    def possible(d, hunk, line, position):
        later = [g for gs in growth[d + 1 :] for g in gs]
        return sum(min(g, 0) for g in later) <= position - (hunk.new_index + line) <= sum(max(g, 0) for g in later)

    def alike(hunk, line, old):
        count = 0
        while count < min(line, len(old)) and hunk.shown[line - 1 - count] == old[len(old) - 1 - count]:
            count += 1
        return count

    first = [(d, h) for d, h, hunk in hunks if hunk.shown and hunk.new_index == 0]
    written, used = [], set()
    place = (*max(first), 0) if first else None
    while place and place[2] < len(patches[place[0]].hunks[place[1]].shown):
        used.add(place)
        d, h, line = place
        current = patches[d].hunks[h]
        written.append(current.shown[line])
        found = [(e, g, context) for e, g, hunk in hunks if e > d and hunk.leading == context and len(written) >= context
                 and hunk.shown[:context] == written[-context:] and possible(e, hunk, context, len(written))]  # fmt: skip
        if not found and line + 1 < len(current.shown):
            place = (d, h, line + 1)
            continue
        if not found and current.trailing >= context:
            found = [(e, g, k) for e, g, hunk in hunks for k in range(context, len(hunk.shown)) if len(written) >= context
                     and hunk.shown[k - context : k] == written[-context:] and possible(e, hunk, k, len(written))]  # fmt: skip
        found = [other for other in found if other not in used]
        best = {p: (-p[0], -alike(patches[p[0]].hunks[p[1]], p[2], current.old), abs(len(written) - patches[p[0]].hunks[p[1]].new_index - p[2]))
                for p in found}  # fmt: skip
        place = min(found, key=best.__getitem__) if found else None
    return written


@settings(max_examples=60)
@given(st.data())
def test_looking_up_equals_searching(writer, data):
    lines = st.sampled_from([f"{name}\n" for name in "abcdefgh"] + ["\n"])
    texts = ["".join(data.draw(st.lists(lines, min_size=1, max_size=25)))]
    for _ in range(data.draw(st.integers(1, 4))):
        size = len(split_lines(texts[-1]))
        new = "".join(data.draw(st.lists(lines, max_size=3)))
        texts.append(edited(texts[-1], (data.draw(st.integers(0, size)), data.draw(st.integers(0, 2)), new)))
    for context in (3, 1):
        diffs = diffs_of(writer, texts, context)
        patches = [parse(diff) for diff in diffs]
        assert by_context(patches, context) == by_search(patches, context)
        for solver in SOLVERS:
            assert isinstance(solve(solver, diffs, context), str)
        assert solve(EXACT, diffs, context) == solve("composed", diffs, context) == texts[-1]
