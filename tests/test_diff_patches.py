"""Patches: git's own diffs are read and applied as `git apply` does, whatever the bytes; maps of patches compose."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.sessions.files import decode, encode
from fbam.tasks import compose
from fbam.tasks.git_diffs import DiffWriter, State
from fbam.tasks.patches import PatchError, apply, apply_what_fits, parse, split_lines

CONTEXTS = (3, 1, 0)
LINES = st.sampled_from(["a\n", "b\n", "\n", "  x = 1\n", "}\n", "def f():\n", "crlf\r\n", "\r\n", "bad \udcff\n", "-- \n", "++\n", "é\x0c\x85\n"])
FILES = st.tuples(st.lists(LINES, max_size=30), st.booleans()).map(lambda f: "".join(f[0]).removesuffix("\n" if f[1] else ""))


@st.composite
def edits(draw, states: int = 2):
    """Some states of one file, each made from the one before by replacing a few stretches."""
    found = [draw(FILES)]
    for _ in range(states - 1):
        lines = split_lines(found[-1])
        for _ in range(draw(st.integers(1, 4))):
            start = draw(st.integers(0, len(lines)))
            lines[start : start + draw(st.integers(0, 3))] = draw(st.lists(LINES, max_size=3))
        found.append("".join(lines).removesuffix("\n" if draw(st.booleans()) else ""))
    return found


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> DiffWriter:
    return DiffWriter(tmp_path_factory.mktemp("scratch"))


def state(text: str, path: str = "f.py", mode: int = 0o100644) -> State:
    return State(path, mode, encode(text))


def git_diff(writer: DiffWriter, old: State | None, new: State, context: int) -> str:
    command = ["git", "diff", "-M1%", "--abbrev=7", f"-U{context}", str(writer.tree(old).id), str(writer.tree(new).id)]
    done = subprocess.run(command, cwd=writer.repository.path, capture_output=True, check=True)
    return decode(done.stdout)


def git_apply(folder: Path, text: str, diff: str, zero: bool) -> tuple[str, bool]:
    """What `git apply --reject` makes of a file, and whether everything fitted."""
    (folder / "f.py").write_bytes(encode(text))
    options = ["--unidiff-zero"] if zero else []
    done = subprocess.run(["git", "apply", "--reject", "--whitespace=nowarn", *options, "-"], cwd=folder, input=encode(diff), capture_output=True)
    return decode((folder / "f.py").read_bytes()), done.returncode == 0


@settings(max_examples=60)
@given(edits())
def test_what_git_diffs_leads_to_the_target(writer, texts):
    old, new = texts
    for context in CONTEXTS:
        diff = writer.diff(state(old), state(new), context)
        patch, lines = parse(diff), split_lines(old)
        assert "".join(apply(lines, patch, unidiff_zero=context == 0)) == new
        assert "".join(compose.render(compose.as_map(patch, len(lines)), lines)) == new
        assert [hunk.old_count for hunk in patch.hunks] == [len(hunk.old) for hunk in patch.hunks]


@settings(max_examples=15)
@given(edits())
def test_libgit2_diffs_as_the_command_does(writer, texts):
    old, new = map(state, texts)
    for context in CONTEXTS:
        assert writer.diff(old, new, context) == writer.of_trees(old, new, context) == git_diff(writer, old, new, context)
        if new.data:
            assert writer.diff(None, new, context) == writer.of_trees(None, new, context) == git_diff(writer, None, new, context)


@settings(max_examples=60)
@given(edits(), FILES, st.integers(0, 4))
def test_hunks_are_placed_as_git_apply_places_them(writer, tmp_path_factory, texts, above, dropped):
    # whole lines only: git apply takes a last line without line feed for the beginning of any longer line
    old, new, above = (text and text.removesuffix("\n") + "\n" for text in (*texts, above))
    elsewhere = "".join(split_lines(above)[:6] + split_lines(old)[dropped:])  # the lines have moved, some are gone
    folder = tmp_path_factory.mktemp("apply")
    for context in CONTEXTS:
        diff = writer.diff(state(old), state(new), context)
        if diff and elsewhere and old and new:
            lines, rejected = apply_what_fits(split_lines(elsewhere), parse(diff), unidiff_zero=context == 0)
            assert ("".join(lines), not rejected) == git_apply(folder, elsewhere, diff, context == 0)


@settings(max_examples=40)
@given(edits(states=6))
def test_composition_is_associative_and_equals_one_after_the_other(writer, texts):
    maps = [
        compose.as_map(parse(writer.diff(state(old), state(new), 1)), len(split_lines(old))) for old, new in zip(texts, texts[1:])
    ]
    whole, rounds = compose.compose_all(maps)
    assert "".join(compose.render(whole, split_lines(texts[0]))) == texts[-1] and rounds == 3
    a, b, c = maps[:3]
    assert compose.compose(compose.compose(a, b), c) == compose.compose(a, compose.compose(b, c))


def test_headers_without_hunks_change_nothing(writer):
    text = "a\nb\n"
    mode = writer.diff(state(text), state(text, mode=0o100755), 3)
    moved = writer.diff(state(text), state(text, path="dir/ü g.py"), 3)
    assert "old mode 100644" in mode and "rename from f.py" in moved
    for diff in (mode, moved, ""):
        assert parse(diff).hunks == () and apply(["a\n", "b\n"], parse(diff)) == ["a\n", "b\n"]


def test_renames_with_changes_keep_git_s_hunks(writer):
    for old, new in [(state("a\nb\nc\nd\n"), state("a\nb\nX\nd\n", "g.py", 0o100755)), (state("a\n"), state("all\nis\nnew\n", "g.py"))]:
        diff = writer.diff(old, new, 1)
        theirs = git_diff(writer, old if "a\nb" in decode(old.data) else old._replace(path="g.py"), new, 1)
        assert parse(diff).hunks == parse(theirs).hunks and sorted(parse(diff).header) == sorted(parse(theirs).header)


@pytest.mark.parametrize("context", CONTEXTS)
def test_files_become_empty_and_full_again(writer, context):
    for old, new in [("", "a\n"), ("a\n", ""), ("a", ""), ("", "a\nb")]:
        patch = parse(writer.diff(state(old), state(new), context))
        assert "".join(apply(split_lines(old), patch, context == 0)) == new
    assert parse(writer.diff(None, state(""), context)).hunks == ()


def test_a_missing_line_feed_is_a_difference(writer):
    diff = writer.diff(state("a\nb"), state("a\nb\n"), 3)
    (hunk,) = parse(diff).hunks
    assert hunk.body == ((" ", "a\n"), ("-", "b"), ("+", "b\n"))
    with pytest.raises(PatchError, match="hunk -1,2 does not fit"):
        apply(["a\n", "b\n"], parse(diff))


@pytest.mark.parametrize(("diff", "message"), [
    ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "binary file"),
    ("@@ -1,2 +1 @@\n a\n", "ends in the middle of a hunk: 1 old and 0 new"),
    ("@@ -1 +1 @@\n-a\nb\n", "line 3 of the diff does not fit its hunk: 'b"),
    ("@@ -1 +1 @@\n-a\n-b\n", "line 3 of the diff does not fit"),
    ("@@ -1 +1 @@\n\\ No newline\n", "line 2 of the diff does not fit"),
    ("@@ -1 +1 @@\n-a\n+b\ndiff --git a/g b/g\n", "line 4 of the diff should start a hunk"),
])  # fmt: skip
def test_broken_diffs_are_named(diff, message):
    with pytest.raises(PatchError, match=message):
        parse(diff)
