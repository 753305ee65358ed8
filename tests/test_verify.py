"""Verification against git and the reports: every awkward history is exact, what differs is found and named."""

import pytest
from gitrepos import Snapshot, awkward_history, git, make_repository
from test_history import opened

from fbam.recording.format import Recording
from fbam.sessions.compile import compile_history
from fbam.sessions.edits import Limits
from fbam.recording.exclusions import by_reason
from fbam.sessions.files import File, FileSystem
from fbam.sessions.report import SUMMED, shares, timed, total
from fbam.sessions.verify import TreeCheck, VerificationError, check_blocks, replay


def git_files(repository, commit):
    lines = [line.split("\t", 1) for line in git(repository, "ls-tree", "-rz", commit).split("\0")[:-1]]
    return {path: (int(kind.split()[0], 8), kind.split()[2]) for kind, path in lines}


@pytest.mark.parametrize("clone", ["whole", "shallow", "partial"])
def test_everything_awkward_is_compiled_exactly(tmp_path, clone):
    source = make_repository(tmp_path / "story.git", awkward_history())
    if clone != "whole":
        git(source, "config", "uploadpack.allowFilter", "true")
        option = {"shallow": "--depth=3", "partial": "--filter=blob:limit=2k"}[clone]
        git(tmp_path, "clone", "-q", "--bare", option, f"file://{source}", "clone")
    history = opened(tmp_path, source if clone == "whole" else tmp_path / "clone")
    row = compile_history(history, tmp_path / "s.fbam", rows=24, cols=80, block_frames=64, limits=Limits())
    recording = Recording(tmp_path / "s.fbam")
    assert row["mismatches"] == 0 and row["commits"] == len(recording.commits) == (3 if clone == "shallow" else 12)
    assert replay(recording, 3_000) >= 3_000
    assert row["exclusions"] == by_reason(history.exclusions)
    if clone == "whole":
        assert {reason: n["count"] for reason, n in row["exclusions"].items()} == {"binary": 2, "submodule": 2}
        assert [tuple(e) for e in recording.exclusions] == [tuple(e) for e in history.exclusions]
    elif clone == "partial":
        assert row["exclusions"]["missing"]["count"] > 0
    states = [git_files(source, commit.id) for commit in history.commits]
    assert row["files"] == len({path for state in states for path in state} - never_kept(history, states))


def never_kept(history, states):
    """Paths of which every content is left out."""
    left_out = {(e.path, e.oid) for e in history.exclusions}
    every = {(path, oid) for state in states for path, (_, oid) in state.items()}
    return {path for path, _ in every} - {path for path, _ in every - left_out}


def checked(history, spoil):
    """Run the checks over a file system brought to each commit as git says, and then spoiled; return the error."""
    files, before, check = FileSystem(), None, TreeCheck(history, history.commits)
    try:
        for number, commit in enumerate(history.commits):
            changes = history.changes(before, commit)
            for path, _, new in changes:
                if new is None:
                    files.remove(path)
                else:
                    files.files[path] = File(new.mode, history.blob(new.oid).decode())
            spoil(number, files)
            check.commit(files, commit, changes)
            before = commit
    except VerificationError as error:
        return commit, str(error), check
    return None, "", check


def stories(tmp_path):
    texts = [{"a": b"one\n", "b": b"two\n"}, {"a": b"one\n1\n", "b": b"two\n"}, {"a": b"1\n", "b": b"two\n", "c": b"3\n"}]
    return opened(tmp_path, make_repository(tmp_path / "r", [*map(Snapshot, texts), *[Snapshot(texts[2])] * 2]))


def test_the_checks_pass_and_count(tmp_path):
    _, message, check = checked(stories(tmp_path), lambda number, files: None)
    assert message == "" and check.mismatches == 0
    assert check.compared == 2 + (1 + 2) + 2 + 0 + (0 + 3)  # changes, and all files once changes are more than these, and at last
    assert check.paths == {"a", "b", "c"} and len(check.contents) == 5


@pytest.mark.parametrize(
    ("spoil", "at", "message"),
    [
        (lambda n, f: n == 1 and f.files.update(a=File(0o100644, "one\n2\n")), 1, "'a' line 2: replayed '2', in git '1' (1 paths differ)"),
        (lambda n, f: n == 2 and f.files.pop("c"), 2, "'c' is in git but was not replayed"),
        (lambda n, f: n == 0 and f.files.update(a=File(0o100755, "one\n")), 0, "'a' has mode 100755, in git 100644"),
        (lambda n, f: n == 3 and f.files.update(b=File(0o100644, "three\n")), 4, "'b' line 1: replayed 'three', in git 'two'"),
        (lambda n, f: n == 3 and f.files.update(z=File(0o100644, "")), 4, "'z' was replayed but is not in git"),
        (lambda n, f: n == 1 and f.files.update(a=File(0o100644, "one\n1")), 1, "'a' line 3: replayed ends, in git ''"),
    ],
)
def test_what_differs_is_found_and_named(tmp_path, spoil, at, message):
    history = stories(tmp_path)
    commit, found, check = checked(history, lambda number, files: spoil(number, files))
    assert commit == history.commits[at]
    assert found.startswith(f"commit {commit.id}: {message}")


def test_a_sample_ends_with_a_commit(tmp_path):
    history = stories(tmp_path)
    compile_history(history, tmp_path / "s.fbam", rows=24, cols=80, block_frames=16, limits=Limits())
    recording, seen = Recording(tmp_path / "s.fbam"), []
    first = recording.commits[0]
    assert replay(recording, first.stop - 3, seen.append) == first.stop == seen[-1]
    assert replay(recording) == recording.n_frames
    check_blocks(recording, seen.append)


def row(**values):
    counts = dict.fromkeys(SUMMED, 10) | {"exclusions": {}} | values
    return counts | shares(counts)


def test_totals_are_computed_from_counts():
    one = row(naive_bytes=1000, stored_bytes=10, pasted_characters=0, exclusions={"binary": {"count": 1, "bytes": 7}})
    two = row(naive_bytes=1000, stored_bytes=90, exclusions={"binary": {"count": 2, "bytes": 1}, "missing": {"count": 1, "bytes": 0}})
    both = total([one, two])
    assert (one["ratio"], two["ratio"], both["ratio"]) == (100, 1000 / 90, 20)
    assert (both["repositories"], both["commits"], both["stored_per_source_byte"]) == (2, 20, 5)
    assert both["pasted_share"] == 10 / 30 and both["actions_per_changed_character"] == 1
    assert both["exclusions"] == {"binary": {"count": 3, "bytes": 8}, "missing": {"count": 1, "bytes": 0}}
    assert timed(both, 4.0) == {"cpu_seconds": 4.0, "actions_per_cpu_second": 5, "source_bytes_per_cpu_second": 5}
    assert total([])["commits"] == 0
