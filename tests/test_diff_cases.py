"""Cases: what is drawn from a history, that git's blobs are met, and that a file of cases can be trusted."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from gitrepos import EXECUTABLE, SYMLINK, Snapshot, make_repository

from fbam.sessions.files import encode
from fbam.sessions.history import open_history
from fbam.tasks.diff_inflate import BenchmarkError, blob_id, chains, draw_cases, overlap, read_cases, write_cases
from fbam.tasks.git_diffs import DiffWriter
from fbam.tasks.patches import parse, split_lines
from fbam.tasks.solvers_diff import EXACT, SOLVERS, solve

BODY = b"".join(b"line %d\n" % i for i in range(12))
CONTEXTS = (3, 1, 0)


def changed(*numbers: int) -> bytes:
    return b"".join(b"new %d\n" % i if i in numbers else b"line %d\n" % i for i in range(12))


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A history with what makes diffs difficult, and a scratch repository."""
    folder = tmp_path_factory.mktemp("story")
    snapshots = [
        Snapshot({"a.py": BODY, "b.py": b"", "c.txt": b"no\n", "link.py": (SYMLINK, b"a.py")}),
        Snapshot({"a.py": changed(2), "b.py": b"x\r\ny", "crlf.py": b"1\r\n2\r\n"}),
        Snapshot({"a.py": (EXECUTABLE, changed(2)), "b.py": b"x\r\ny\r\n", "crlf.py": b"1\r\n2\r\n3"}),  # mode of a.py alone
        Snapshot({"lib/moved.py": (EXECUTABLE, changed(2, 9)), "b.py": b"x\r\ny\r\n\xff\n", "crlf.py": b"1\r\n3"}),  # renamed, changed
        Snapshot({"lib/moved.py": changed(2, 9, 10), "b.py": b"\0binary", "crlf.py": b"1\r\n3"}),
        Snapshot({"b.py": b"x\n"}),  # moved.py and crlf.py deleted
        Snapshot({"b.py": b"x\n", "lib/moved.py": b"back\n"}),
    ]
    history = open_history(str(make_repository(folder / "story.git", snapshots)), None, folder)
    return history, DiffWriter(folder / "scratch")


def draw(story, n, count=100, **changes):
    history, writer = story
    arguments = {"contexts": CONTEXTS, "largest_bytes": 10_000, "seed": 0} | changes
    return draw_cases(history, chains(history, [".py"]), n, count, arguments["contexts"], arguments["largest_bytes"], arguments["seed"], writer)


def test_chains_follow_renames_and_end_at_deletions(story):
    history, _ = story
    found = sorted([[(version.path, history.blob(version.oid)) for version in chain] for chain in chains(history, [".py"])])
    assert found == sorted([
        [("a.py", BODY), ("a.py", changed(2)), ("lib/moved.py", changed(2, 9)), ("lib/moved.py", changed(2, 9, 10))],
        [("b.py", b""), ("b.py", b"x\r\ny"), ("b.py", b"x\r\ny\r\n"), ("b.py", b"x\r\ny\r\n\xff\n"), ("b.py", b"\0binary"), ("b.py", b"x\n")],
        [("crlf.py", b"1\r\n2\r\n"), ("crlf.py", b"1\r\n2\r\n3"), ("crlf.py", b"1\r\n3")],
        [("lib/moved.py", b"back\n")],
    ])  # fmt: skip


def test_exact_solvers_meet_git_s_blobs(story):
    history, _ = story
    for n in (1, 2, 3, 4):
        cases = draw(story, n)
        assert cases
        for case in cases:
            assert history.blob(case.oid) == encode(case.target) and case.n_diffs == n
            for context in CONTEXTS:
                for solver in (EXACT, "composed"):
                    assert blob_id(solve(solver, case.diffs[context], context)) == case.oid


def test_one_diff_is_a_copy_for_every_solver(story):
    for case in draw(story, 1):
        for context in CONTEXTS:
            assert {solve(solver, case.diffs[context], context) for solver in SOLVERS} == {case.target}


def test_empty_large_and_binary_states_have_no_case(story):
    assert {case.path for case in draw(story, 2)} == {"a.py", "lib/moved.py", "b.py", "crlf.py"}
    assert all(case.target and "\0" not in case.target for case in draw(story, 2))
    assert {case.path for case in draw(story, 1, largest_bytes=8)} == {"b.py", "crlf.py", "lib/moved.py"}
    assert draw(story, 5) == []


def test_mode_and_rename_stand_in_the_diff_of_the_next_change(story):
    (case,) = [case for case in draw(story, 2) if case.path == "lib/moved.py" and "+new 9" in case.diffs[0][1]]
    for context in CONTEXTS:
        header = parse(case.diffs[context][1]).header
        assert {"rename from a.py", "rename to lib/moved.py", "new mode 100755"} <= set(header)


def test_draws_are_deterministic_distinct_and_depend_on_the_seed(story):
    one, again, other = draw(story, 2, 3), draw(story, 2, 3), draw(story, 2, 3, seed=1)
    assert one == again and [case.id for case in one] != [case.id for case in other]
    ids = [case.id for case in draw(story, 2)]
    assert len(ids) == len(set(ids)) and len({case.path for case in one}) == 3  # spread over files


def test_same_contents_at_two_paths_are_one_case(tmp_path):
    snapshots = [Snapshot({"a.py": b"1\n", "b.py": b"1\n"}), Snapshot({"a.py": b"2\n", "b.py": b"2\n"})]
    history = open_history(str(make_repository(tmp_path / "r", snapshots)), None, tmp_path)
    assert len(draw((history, DiffWriter(tmp_path / "s")), 2)) == 1


def test_strata_are_drawn_evenly(root, tmp_path):
    history = open_history(str(root / "data/interpreter.bundle"), None, tmp_path)
    cases = draw((history, DiffWriter(tmp_path / "s")), 4, 18, contexts=(0,))
    assert len(cases) == 18 and Counter(case.stratum for case in cases).most_common(1)[0][1] <= 3


def overlap_by_search(diffs: list[str]) -> float:
    """The same by tagging every line with its writer."""
    lines: list[tuple[str, int]] = []
    deleted = []
    for number, diff in enumerate(diffs):
        new, position = [], 0
        for hunk in parse(diff).hunks:
            new += lines[position : hunk.old_index]
            position = hunk.old_index
            for mark, line in hunk.body:
                if mark == "+":
                    new.append((line, number))
                    continue
                if mark == " ":
                    new.append(lines[position])
                elif number > 1:
                    deleted.append(lines[position][1])
                position += 1
        lines = new + lines[position:]
    return sum(writer > 0 for writer in deleted) / len(deleted) if deleted else 0.0


def test_overlap_counts_rewritten_lines(root, tmp_path, story):
    history = open_history(str(root / "data/interpreter.bundle"), None, tmp_path)
    values = []
    for case in draw((history, DiffWriter(tmp_path / "s")), 8, 12):
        for context in CONTEXTS:
            assert overlap([parse(diff) for diff in case.diffs[context]]) == overlap_by_search(case.diffs[context])
        values.append(case.overlap)
    assert 0 <= min(values) < max(values) <= 1
    assert [case.overlap for case in draw(story, 2)] == [0.0] * len(draw(story, 2))


def test_cases_survive_the_file(story, tmp_path):
    cases = draw(story, 3)
    assert any("\udcff" in case.target for case in cases)
    write_cases(tmp_path / "cases.jsonl", cases)
    assert list(read_cases(tmp_path / "cases.jsonl")) == cases
    line = json.loads((tmp_path / "cases.jsonl").read_text().splitlines()[0])
    assert line["n_diffs"] == 3 and list(line["diffs"]) == ["3", "1", "0"]


@pytest.mark.parametrize(("text", "message"), [("{", "line 1 is no case"), ('{"id": 1}\n', "line 1 is no case"), ("[]\n", "line 1 is no case")])
def test_a_broken_file_of_cases_is_named(tmp_path, text, message):
    (tmp_path / "cases.jsonl").write_text(text)
    with pytest.raises(BenchmarkError, match=message):
        list(read_cases(tmp_path / "cases.jsonl"))


def test_a_case_with_another_target_is_refused(story, tmp_path):
    write_cases(tmp_path / "cases.jsonl", [replace(draw(story, 2)[0], target="forged\n")])
    with pytest.raises(BenchmarkError, match="line 1: the target is not the content"):
        list(read_cases(tmp_path / "cases.jsonl"))


def test_lines_are_cut_at_line_feeds_alone():
    assert split_lines("a\r\nb\x0c\x85\u2028c\n\nd") == ["a\r\n", "b\x0c\x85\u2028c\n", "\n", "d"]
