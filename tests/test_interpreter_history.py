"""The default history: its bundle is what the generator makes, it looks like development, and every tree of it works."""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest
from conftest import ROOT
from gitrepos import git
from hypothesis import given
from hypothesis import strategies as st

FOLDER = ROOT / "data" / "interpreter"
BUNDLE = ROOT / "data" / "interpreter.bundle"
EXECUTABLE, LINK = 0o100755, 0o120000
SAMPLE = 12

Files = dict[str, tuple[int, bytes]]


@pytest.fixture(scope="module")
def generator():
    """The modules of the generator, which are no package, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        yield {name: importlib.import_module(name) for name in ("stepfile", "filetree", "make_history")}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> pygit2.Repository:
    folder = tmp_path_factory.mktemp("shipped")
    git(folder, "clone", "--quiet", "--bare", str(BUNDLE), "repository")
    return pygit2.Repository(str(folder / "repository"))


def first_parents(repository: pygit2.Repository) -> list[pygit2.Commit]:
    """Oldest first."""
    commits = [repository[repository.head.target]]
    while commits[-1].parents:
        commits.append(commits[-1].parents[0])
    return commits[::-1]


def files_of(tree: pygit2.Tree, prefix: str = "") -> Files:
    """Mode and content of each file by path."""
    files: Files = {}
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            files |= files_of(entry, f"{prefix}{entry.name}/")
        else:
            files[prefix + entry.name] = (int(entry.filemode), entry.data)
    return files


def check_out(files: Files, folder: Path) -> Path:
    for path, (mode, data) in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            target.symlink_to(data.decode())
        else:
            target.write_bytes(data)
            target.chmod(mode & 0o777)
    return folder


def assert_valid(commit: pygit2.Commit, folder: Path) -> None:
    """All Python files parse, and the tests that lie in the tree pass."""
    files = files_of(commit.tree)
    for path, (_, data) in files.items():
        if path.endswith(".py"):
            ast.parse(data, path)
    check_out(files, folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-B", "-m", "tests"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith(" tests passed\n"), (commit.message, done.stderr)


def spread(commits: list[pygit2.Commit], count: int) -> list[pygit2.Commit]:
    """`count` of them at even distances, from the first with tests to the last."""
    tested = [commit for commit in commits if {"tests.py", "tests"} & {entry.name for entry in commit.tree}]
    assert len(tested) == len(commits) - 2
    return [tested[round(at * (len(tested) - 1) / (count - 1))] for at in range(count)]


def test_rebuilding_gives_the_shipped_commits(generator, shipped, tmp_path):
    out = tmp_path / "again.bundle"
    head = generator["make_history"].write_bundle(out)
    assert head == str(shipped.head.target)
    assert git(tmp_path, "bundle", "list-heads", str(out)).splitlines() == [f"{head} HEAD", f"{head} refs/heads/main"]
    assert [path.name for path in tmp_path.iterdir()] == ["again.bundle"]


def test_trees_of_the_shipped_history_are_valid(shipped, tmp_path):
    for number, commit in enumerate(spread(first_parents(shipped), SAMPLE)):
        assert_valid(commit, tmp_path / str(number))


def test_another_seed_gives_another_valid_history(generator, shipped, tmp_path):
    head = generator["make_history"].write_history(tmp_path / "repository", seed=1)
    assert head != str(shipped.head.target)
    commits = first_parents(pygit2.Repository(str(tmp_path / "repository")))
    subjects = [[commit.message.split("\n")[0] for commit in line] for line in (commits, first_parents(shipped))]
    assert len(subjects[0]) == len(subjects[1]) and subjects[0] != subjects[1]
    for number, commit in enumerate(spread(commits, 4)):
        assert_valid(commit, tmp_path / str(number))


def test_history_is_of_the_promised_size(shipped):
    commits = first_parents(shipped)
    assert 110 <= len(commits) <= 140
    assert sum(len(commit.parents) == 2 for commit in commits) == 3
    assert BUNDLE.stat().st_size < 150_000
    trees = [{}] + [files_of(commit.tree) for commit in commits]
    changed = [changed_lines(before, after) for before, after in zip(trees, trees[1:])]
    assert 10 <= statistics.median(changed) <= 25
    assert max(changed) < 300


def changed_lines(before: Files, after: Files) -> int:
    """Lines added or removed in files that both trees have, or the later one; a file renamed unchanged counts nothing."""
    count = 0
    known = set(before.values())
    for path, file in after.items():
        if before.get(path) == file or path not in before and file in known:
            continue
        old = before[path][1].split(b"\n") if path in before else []
        opcodes = difflib.SequenceMatcher(None, old, file[1].split(b"\n"), autojunk=False).get_opcodes()
        count += sum((i2 - i1) + (j2 - j1) for tag, i1, i2, j1, j2 in opcodes if tag != "equal")
    return count


def test_commits_have_one_author_and_increasing_dates(shipped):
    commits = list(shipped.walk(shipped.head.target, pygit2.enums.SortMode.TOPOLOGICAL))
    assert {(commit.author.name, commit.author.email) for commit in commits} == {("Ada Example", "ada@example.org")}
    for commit in commits:
        assert all(parent.commit_time < commit.commit_time for parent in commit.parents)
        assert 0 < len(commit.message.split("\n")[0]) <= 72


def test_history_holds_what_real_histories_hold(shipped):
    trees = [files_of(commit.tree) for commit in first_parents(shipped)]
    pairs = list(zip(trees, trees[1:]))
    gone = [set(before) - set(after) for before, after in pairs]
    moved = [{path for path in lost if before[path] in after.values()} for lost, (before, after) in zip(gone, pairs)]
    assert sum(map(len, moved)) >= 3
    assert sum(len(lost - found) for lost, found in zip(gone, moved)) >= 2
    last = trees[-1]
    assert {path for path, (mode, _) in last.items() if mode == LINK} == {"docs/changes.md"}
    assert any(before.get("bin/tally", (EXECUTABLE,))[0] != after.get("bin/tally", (EXECUTABLE,))[0] for before, after in pairs)
    assert last["tally/__init__.py"][1] == b"" and b"\n\t" in last["Makefile"][1]
    hello = {tree["examples/hello.tally"][1][-1:] for tree in trees if "examples/hello.tally" in tree}
    assert b"\n" in hello and len(hello) == 2 and last["examples/hello.tally"][1].endswith(b"\n")
    text = last["tests/test_reading.py"][1].decode()
    assert max(map(ord, text)) > 0xFFFF and any(0x4E00 <= ord(ch) < 0xA000 for ch in text)


def test_step_files_stay_readable():
    files = sorted((FOLDER / "steps").glob("*.steps"))
    assert all(file.read_text("utf-8").count("\n") <= 900 for file in files)


def apply(generator, folder: Path, text: str, chosen: dict[str, str] | None = None) -> dict:
    """The tree after all steps of a step file with this text."""
    (folder / "some.steps").write_bytes(text.encode())
    tree: dict = {}
    for step in generator["stepfile"].read_script(folder).steps:
        tree = generator["filetree"].apply_step(step, tree, chosen or {})
    return tree


LINE = st.text(st.characters(exclude_characters="\n<", exclude_categories=["Cs"]), min_size=1)


@given(lines=st.lists(LINE, min_size=1, unique=True), new=st.lists(LINE), data=st.data())
def test_an_edit_replaces_the_lines_of_its_hunk(generator, tmp_path_factory, lines, new, data):
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    new = new if new != lines[start:stop] else []
    script = ["=== a", "* create f", *("+" + line for line in lines), "* edit f"]
    script += ["-" + line for line in lines[start:stop]] + ["+" + line for line in new]
    tree = apply(generator, tmp_path_factory.getbasetemp(), "\n".join(script))
    assert tree["f"].text == "".join(line + "\n" for line in lines[:start] + new + lines[stop:])


def test_operations(generator, tmp_path):
    python = "+def f():\n+    pass\n+\n+\n+def g():\n+    pass\n"
    script = f"=== a\n* create <<name>>.py\n{python}* create b.py\n+b = 1\n* create c\n+c\n\\\n=== b\n* move a.py b.py f\n"
    script += "* word b d b.py\n* newline c\n* link l c\n* mode c 755\n* edit c\n@ end\n+end\n* rename c e\n"
    tree = apply(generator, tmp_path, script, {"name": "a"})
    texts = {path: file.text for path, file in tree.items()}
    assert texts == {"a.py": "def g():\n    pass\n", "b.py": "d = 1\n\n\ndef f():\n    pass\n", "l": "c", "e": "c\nend\n"}
    assert (tree["l"].mode, tree["e"].mode) == (LINK, EXECUTABLE)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("* edit f\n-three\n+four", "some.steps:6: edit f: 0 places match"),
        ("* edit f\n|two\n+four", "some.steps:6: edit f: 2 places match"),
        ("* edit f\n|one", "a hunk changes nothing"),
        ("* edit g\n-one", "some.steps:6: edit g: there is no such file"),
        ("* create f\n+one", "the file exists already"),
        ("* word four five f", "the word does not occur in f"),
        ("* move f f four", "0 definitions"),
        ("* newline f", "ends with a line feed already"),
        ("* mode f 777", "777 is not 644 or 755"),
        ("* create g\n+<<what>>", "no choice is called 'what'"),
        ("* burn f", "not an operation"),
        ("* edit f\none", "begins with '|', '-' or '\\+'"),
        ("=== a", "step names must be unique"),
    ],
)
def test_a_step_that_does_not_fit_is_an_error(generator, tmp_path, operation, message):
    with pytest.raises(generator["stepfile"].StepError, match=message):
        apply(generator, tmp_path, f"=== a\n* create f\n+one\n+two\n+two\n{operation}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=== a\n* create f\n", "step a has no subject"),
        ("=== a\nsubject: A\nmerge: side\n", "no step went to such a branch"),
        ("=== a\nsubject: A\nbranch: side\n", "side branches never merged"),
    ],
)
def test_a_history_that_does_not_fit_is_an_error(generator, tmp_path, text, message):
    (tmp_path / "some.steps").write_text(text)
    with pytest.raises(generator["stepfile"].StepError, match=message):
        generator["make_history"].write_history(tmp_path / "repository", steps=tmp_path)


def test_command_names_what_is_wrong(tmp_path):
    command = [sys.executable, "-B", str(FOLDER / "make_history.py"), "--out", str(tmp_path / "none" / "a.bundle")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("make_history: ") and done.stderr.count("\n") == 1
