"""Reading git histories: order, exactness of what is read, what is left out, and clear errors."""

import shutil
from pathlib import Path

import pytest
from gitrepos import EXECUTABLE, SUBMODULE, SYMLINK, Snapshot, git, make_repository

from fbam.sessions.history import Entry, History, HistoryError, open_history


def opened(tmp_path: Path, source: Path | str, revision: str | None = None) -> History:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return open_history(str(source), revision, workspace)


def blob_id(data: bytes, tmp_path: Path) -> str:
    return git(tmp_path, "hash-object", "--stdin", data=data).strip()


def test_commits_are_first_parents_oldest_first(tmp_path):
    side = Snapshot({"a": b"1", "side": b"s"}, "on the side")
    snapshots = [Snapshot({"a": b"1"}, "one\n"), Snapshot({"a": b"2", "side": b"s"}, "merge\n\nbody\n", (side,)), Snapshot({})]
    repository = make_repository(tmp_path / "story.git", snapshots)
    history = opened(tmp_path, repository)
    assert history.name == "story"
    assert [commit.message for commit in history.commits] == ["one\n", "merge\n\nbody\n", "change"]
    expected = git(repository, "log", "--first-parent", "--reverse", "--format=%H %T").split()
    assert [text for commit in history.commits for text in (commit.id, commit.tree)] == expected
    assert history.tree(history.commits[2]) == {}


def test_trees_are_read_exactly(tmp_path):
    files = {"dir/sub/x": b"x", "exec": (EXECUTABLE, b"#!"), "link": (SYMLINK, b"dir/sub/x"), "sp ace": b"", "bad\udcff": b"\xff"}
    history = opened(tmp_path, make_repository(tmp_path / "r", [Snapshot(files, "bad \udcff byte")]))
    commit = history.commits[0]
    assert commit.message == "bad \udcff byte"
    tree = history.files(commit)
    assert {path: entry.mode for path, entry in tree.items()} == {
        "dir/sub/x": 0o100644, "exec": 0o100755, "link": 0o120000, "sp ace": 0o100644, "bad\udcff": 0o100644,
    }  # fmt: skip
    assert tree["dir/sub/x"] == Entry(0o100644, blob_id(b"x", tmp_path))
    assert history.blob(tree["bad\udcff"].oid) == b"\xff"
    assert history.exclusions == []


def test_what_cannot_be_typed_is_left_out_and_written_down_once(tmp_path):
    link = (SUBMODULE, b"1" * 40)
    first = Snapshot({"text": b"t", "image": b"a\0b", "module": link})
    second = Snapshot({"text": b"t", "image": b"a\0b", "other": b"\0\0\0", "module": link})
    history = opened(tmp_path, make_repository(tmp_path / "r", [first, second]))
    assert [set(history.files(commit)) for commit in history.commits] == [{"text"}, {"text"}]
    assert [(e.commit, e.path, e.size, e.reason) for e in history.exclusions] == [
        (history.commits[0].id, "image", 3, "binary"),
        (history.commits[0].id, "module", 0, "submodule"),
        (history.commits[1].id, "other", 3, "binary"),
    ]
    assert history.exclusions[0].oid == blob_id(b"a\0b", tmp_path)


def test_missing_object_is_left_out_as_missing(tmp_path):
    content = b"to be lost\n" * 9
    source = make_repository(tmp_path / "r", [Snapshot({"a": b"kept", "b": content}), Snapshot({"c": b"kept too"})])
    lost = blob_id(content, tmp_path)
    (source / "objects" / lost[:2] / lost[2:]).unlink()
    history = opened(tmp_path, source)
    assert [set(history.files(commit)) for commit in history.commits] == [{"a"}, {"c"}]
    assert [(e.path, e.oid, e.size, e.reason) for e in history.exclusions] == [("b", lost, 0, "missing")]
    assert history.renames(*history.commits) == []


def test_renames_are_those_of_git(tmp_path):
    text = b"".join(b"line %d\n" % k for k in range(20))
    first = Snapshot({"old/name": text, "same": b"s" * 40, "gone": b"other\n" * 9})
    second = Snapshot({"new/name": text + b"and one more\n", "moved": b"s" * 40, "made": b"nothing alike\n"})
    history = opened(tmp_path, make_repository(tmp_path / "r", [first, second]))
    assert history.renames(*history.commits) == [("same", "moved"), ("old/name", "new/name")]


def test_bundle_revision_and_tag(tmp_path):
    repository = make_repository(tmp_path / "r", [Snapshot({"a": b"1"}, "one"), Snapshot({"a": b"2"}, "two")])
    git(repository, "tag", "first", "main~1")
    bundle = tmp_path / "story.bundle"
    git(repository, "bundle", "create", "-q", str(bundle), "--all")
    history = opened(tmp_path, bundle, "first")
    assert (history.name, [commit.message for commit in history.commits]) == ("story", ["one"])
    shutil.rmtree(tmp_path / "workspace")
    assert len(opened(tmp_path, bundle).commits) == 2  # a bundle of one branch, without HEAD


@pytest.mark.parametrize("name", ["r", "r.git", "r.clone", "r.clone.git"])
def test_an_earlier_clone_is_replaced_but_never_the_source(tmp_path, name):
    source = make_repository(tmp_path / "workspace" / name, [Snapshot({"a": b"1"})])
    for _ in range(2):
        assert len(opened(tmp_path, source).commits) == 1
    assert (source / "HEAD").exists()


def test_a_working_tree_and_an_address_are_sources(tmp_path, monkeypatch):
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(make_repository(tmp_path / "r", [Snapshot({"a": b"1"})])), str(work))
    assert opened(tmp_path, f"{work}/").name == "work"
    monkeypatch.chdir(work)
    assert opened(tmp_path, ".").name == opened(tmp_path, ".git").name == "work"
    history = opened(tmp_path, f"file://{tmp_path}/r")
    assert (history.name, len(history.commits)) == ("r", 1)


def test_shallow_clone_starts_where_it_ends(tmp_path):
    make_repository(tmp_path / "r", [Snapshot({"a": b"1"}, "one"), Snapshot({"a": b"2"}, "two"), Snapshot({}, "three")])
    git(tmp_path, "clone", "-q", "--bare", "--depth=2", f"file://{tmp_path}/r", "shallow")
    assert [commit.message for commit in opened(tmp_path, tmp_path / "shallow").commits] == ["two", "three"]


def test_the_users_configuration_has_no_say(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("this is no configuration")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    history = opened(tmp_path, make_repository(tmp_path / "r", [Snapshot({"a": b"1\r\n"})]))
    assert history.blob(history.files(history.commits[0])["a"].oid) == b"1\r\n"
    assert not (tmp_path / "workspace" / "r.clone" / "hooks").exists()


@pytest.mark.parametrize(
    ("make", "revision", "message"),
    [
        (lambda folder: None, None, "no such file or folder"),
        (lambda folder: folder.mkdir(), None, "git cannot clone it"),
        (lambda folder: folder.write_bytes(b"not a bundle"), None, "git cannot clone it"),
        (lambda folder: make_repository(folder, []), None, "it has no commits"),
        (lambda folder: make_repository(folder, []), "main", "unknown revision 'main'; it has no commits"),
        (lambda folder: make_repository(folder, [Snapshot({})]), "nope", "unknown revision 'nope'; its branches: main"),
        (lambda folder: make_repository(folder, [Snapshot({"a": b""})]), "main:a", "unknown revision"),
        (lambda folder: make_repository(folder, [Snapshot({})]), "..", "unknown revision"),
    ],
)  # fmt: skip
def test_errors_name_the_source_and_the_reason(tmp_path, make, revision, message):
    source = tmp_path / "source"
    make(source)
    with pytest.raises(HistoryError, match=message) as caught:
        opened(tmp_path, source, revision)
    assert str(caught.value).startswith(str(source)) and "\n" not in str(caught.value)


def test_a_revision_must_be_chosen_where_nothing_is_checked_out(tmp_path):
    repository = make_repository(tmp_path / "r", [Snapshot({})])
    git(repository, "branch", "second", "main")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/none")
    with pytest.raises(HistoryError, match="choose a revision: main, second"):
        opened(tmp_path, repository)


def test_git_that_is_not_installed_is_named(tmp_path, monkeypatch):
    repository = make_repository(tmp_path / "r", [Snapshot({})])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryError, match="git is not installed"):
        opened(tmp_path, repository)
