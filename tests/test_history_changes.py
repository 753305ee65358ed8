"""Changes between commits: the same as git's trees, at the cost of the change; damaged and hostile repositories."""

import pytest
from gitrepos import CODE, SUBMODULE, Snapshot, awkward_history, damage, git, make_repository, write_commit, write_tree
from test_history import blob_id, opened

from fbam.sessions import history as history_module
from fbam.sessions import plumbing
from fbam.recording.exclusions import by_reason
from fbam.sessions.history import Change, Entry, HistoryError


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    folder = tmp_path_factory.mktemp("awkward")
    return folder, make_repository(folder / "story.git", awkward_history())


def git_files(repository, commit):
    """{path: entry} as git itself lists a commit."""
    lines = [line.split("\t", 1) for line in git(repository, "ls-tree", "-rz", commit).split("\0")[:-1]]
    return {path: Entry(int(kind.split()[0], 8), kind.split()[2]) for kind, path in lines}


def test_changes_add_up_to_the_files_of_each_commit(awkward):
    folder, repository = awkward
    history = opened(folder, repository)
    other = history.afresh()
    files: dict[str, Entry] = {}
    before = None
    for commit in history.commits:
        changes = history.changes(before, commit)
        assert [change.path for change in changes] == sorted({change.path for change in changes})
        for path, old, new in changes:
            assert files.get(path) == old != new
            files.pop(path) if new is None else files.update({path: new})
        expected = git_files(repository, commit.id)
        excluded = {(e.path, e.oid) for e in other.exclusions} | {(e.path, e.oid) for e in history.exclusions}
        assert files == other.files(commit) == {p: e for p, e in expected.items() if (p, e.oid) not in excluded}
        before = commit
    assert set(history.exclusions) == set(other.exclusions)
    assert {reason: n["count"] for reason, n in by_reason(history.exclusions).items()} == {"binary": 2, "submodule": 2}
    assert history.changes(history.commits[1], history.commits[2]) == []


def test_changes_between_any_two_commits(awkward):
    folder, repository = awkward
    history = opened(folder, repository)
    first, last = history.commits[3], history.commits[5]
    old, new = history.files(first), history.files(last)
    assert {c.path: (c.before, c.after) for c in history.changes(first, last)} == {
        path: (old.get(path), new.get(path)) for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    assert {c.path: c.after for c in history.changes(None, last)} == new
    assert [c.after for c in history.changes(last, history.commits[-1])] == [None] * len(new)


def test_names_that_cross_are_renames(awkward):
    history = opened(*awkward)
    moved = history.renames(history.commits[9], history.commits[10])
    assert len(moved) == 1_000 and {(old[:5], new[:6]) for old, new in moved} == {("many/", "moved/")}
    assert history.renames(history.commits[1], history.commits[2]) == []


def test_beyond_the_limit_only_equal_contents_are_moved(tmp_path, monkeypatch):
    first = Snapshot({"a": CODE, "b": CODE.replace(b"first", b"one")})
    history = opened(tmp_path, make_repository(tmp_path / "r", [first, Snapshot({"c": CODE + b"more\n", "d": first.files["b"]})]))
    assert history.renames(*history.commits) == [("a", "c"), ("b", "d")]
    monkeypatch.setattr(history_module, "RENAME_PAIRS", 3)
    assert history.renames(*history.commits) == [("b", "d")]


def test_what_was_left_out_counts_as_not_there(tmp_path):
    link = (SUBMODULE, b"1" * 40)
    states = [{"f": b"\0", "m": link}, {"f": b"text", "m": b"file"}, {"f": b"\0\0", "m": link}, {"f": b"\0\0\0", "m": (SUBMODULE, b"2" * 40)}]
    history = opened(tmp_path, make_repository(tmp_path / "r", [*map(Snapshot, states)]))
    one, two, three, four = history.commits
    text, file = (Entry(0o100644, blob_id(data, tmp_path)) for data in (b"text", b"file"))
    assert history.changes(None, one) == history.changes(three, four) == []
    assert history.changes(one, two) == [Change("f", None, text), Change("m", None, file)]
    assert history.changes(two, three) == [Change("f", text, None), Change("m", file, None)]
    assert by_reason(history.exclusions) == {"binary": {"count": 3, "bytes": 6}, "submodule": {"count": 2, "bytes": 0}}  # each content at a path once


def test_large_contents_are_left_out_and_the_next_ones_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(plumbing, "LARGEST_BYTES", 20)
    history = opened(tmp_path, make_repository(tmp_path / "r", [Snapshot({"a": b"x" * 70, "b": b"y" * 20, "c": b"z" * 21})]))
    assert [change.path for change in history.changes(None, history.commits[0])] == ["b"]
    assert [(e.path, e.size, e.reason) for e in history.exclusions] == [("a", 70, "large"), ("c", 21, "large")]
    assert history.blob(blob_id(b"y" * 20, tmp_path)) == b"y" * 20
    with pytest.raises(KeyError):
        history.blob(blob_id(b"x" * 70, tmp_path))


def test_a_small_cache_reads_again(tmp_path, monkeypatch):
    monkeypatch.setattr(history_module, "CACHED_BYTES", 30)
    contents = {f"{k:02}": b"%02d" % k * 9 for k in range(20)}
    history = opened(tmp_path, make_repository(tmp_path / "r", [Snapshot(contents)]))
    for change in history.changes(None, history.commits[0]):
        assert history.blob(change.after.oid) == contents[change.path]


def test_more_commits_than_are_asked_at_once(tmp_path):
    history = opened(tmp_path, make_repository(tmp_path / "r", [Snapshot({f"{k}": b"%d" % k}) for k in range(70)]))
    commits = history.commits
    for k in (40, 3, *range(1, 70)):  # any order
        assert [c.path for c in history.changes(commits[k - 1], commits[k])] == sorted([f"{k - 1}", f"{k}"])


def test_partial_clone(tmp_path):
    source = make_repository(tmp_path / "r", [Snapshot({"a": b"one\n", "b": CODE}), Snapshot({"a": b"two\n", "c": CODE + b"\n"})])
    git(source, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{source}", "partial")
    history = opened(tmp_path, tmp_path / "partial")
    assert history.changes(None, history.commits[0]) == history.changes(*history.commits) == []
    assert history.renames(*history.commits) == []
    assert by_reason(history.exclusions) == {"missing": {"count": 4, "bytes": 0}}


def test_old_modes_are_those_that_git_shows(tmp_path):
    source = make_repository(tmp_path / "r", [])
    oid = git(source, "hash-object", "-w", "--stdin", data=b"x").strip()
    write_commit(source, write_tree(source, [("100664", "blob", oid, b"a"), ("100775", "blob", oid, b"b")]))
    history = opened(tmp_path, source)
    expected = {"a": Entry(0o100644, oid), "b": Entry(0o100755, oid)}
    assert history.files(history.commits[0]) == {c.path: c.after for c in history.changes(None, history.commits[0])} == expected


@pytest.mark.parametrize("name", [b"..", b".", b"/etc", b"a/../../b", b"", b"a//b"])
def test_paths_that_no_checkout_can_hold(tmp_path, name):
    source = make_repository(tmp_path / "r", [])
    oid = git(source, "hash-object", "-w", "--stdin", data=b"x").strip()
    write_commit(source, write_tree(source, [("100644", "blob", oid, name)]))
    history = opened(tmp_path, source)
    with pytest.raises(HistoryError, match="r: (commit .* has the path .*, which no checkout can hold|damaged .*empty filename)"):
        history.changes(None, history.commits[0])


def bomb(repository, depth):
    """A tree of 1000 ** depth files in depth + 1 objects."""
    oid, kind, mode = git(repository, "hash-object", "-w", "--stdin", data=b"x").strip(), "blob", "100644"
    for _ in range(depth):
        oid = write_tree(repository, [(mode, kind, oid, b"%04d" % k) for k in range(1000)])
        kind, mode = "tree", "40000"
    write_commit(repository, oid)


def test_a_million_files_are_refused(tmp_path, monkeypatch):
    source = make_repository(tmp_path / "r", [])
    bomb(source, 2)
    history = opened(tmp_path, source)
    monkeypatch.setattr(plumbing, "MAX_PATHS", 1000)
    with pytest.raises(HistoryError, match="r: a commit changes more than 1000 files: choose a revision before it"):
        history.changes(None, history.commits[0])
    with pytest.raises(HistoryError, match="has more than 1000 files"):
        history.tree(history.commits[0])


@pytest.mark.skipif(not hasattr(plumbing.resource, "prlimit"), reason="this system does not limit the memory of a process")
def test_a_billion_files_do_not_take_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(plumbing, "MAX_MEMORY", 100 << 20)
    source = make_repository(tmp_path / "r", [])
    bomb(source, 3)
    history = opened(tmp_path, source)
    with pytest.raises(HistoryError, match="r: git needs more than 100 MiB: a commit has too many files"):
        history.changes(None, history.commits[0])


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_damaged_objects(tmp_path, kind):
    source = make_repository(tmp_path / "r", [])
    oid = git(source, "hash-object", "-w", "--stdin", data=CODE).strip()
    tree = write_tree(source, [("100644", "blob", oid, b"a")])
    first = write_commit(source, tree)
    write_commit(source, write_tree(source, []), first)
    damage(source, {"blob": oid, "tree": tree, "commit": first}[kind])
    with pytest.raises(HistoryError, match="r: (its commits are )?damaged or incomplete .*: run git fsck there") as caught:
        history = opened(tmp_path, source)
        history.changes(None, history.commits[0])
    assert "\n" not in str(caught.value)
    if kind == "tree":
        with pytest.raises(HistoryError, match="damaged or incomplete"):
            history.tree(history.commits[0])


def test_a_missing_tree_and_a_missing_parent(tmp_path):
    source = make_repository(tmp_path / "r", [])
    oid = git(source, "hash-object", "-w", "--stdin", data=CODE).strip()
    tree = write_tree(source, [("100644", "blob", oid, b"a")])
    first = write_commit(source, tree)
    write_commit(source, write_tree(source, []), first)
    (source / "objects" / tree[:2] / tree[2:]).unlink()
    history = opened(tmp_path, source)
    with pytest.raises(HistoryError, match="damaged or incomplete"):
        history.changes(None, history.commits[0])
    (source / "objects" / first[:2] / first[2:]).unlink()
    with pytest.raises(HistoryError, match="its commits are damaged or incomplete|cannot clone"):
        opened(tmp_path, source)


def test_a_file_that_is_no_blob(tmp_path):
    source = make_repository(tmp_path / "r", [])
    empty = write_tree(source, [])
    write_commit(source, write_tree(source, [("100644", "blob", empty, b"a")]))
    history = opened(tmp_path, source)
    with pytest.raises(HistoryError, match="is a tree, not a blob"):
        history.changes(None, history.commits[0])


def test_git_processes_end_with_the_history(awkward):
    history = opened(*awkward)
    history.changes(None, history.commits[0])
    processes = [reader._child._process for reader in (history._objects, history._trees)]
    history.close()
    assert all(process.returncode is not None for process in processes)
    again = history.afresh()
    processes = [reader._child._process for reader in (again._objects, again._trees)]
    del again
    assert all(process.returncode is not None for process in processes)


def test_repositories_with_other_object_ids_are_refused(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", "-b", "main", "r")
    with pytest.raises(HistoryError):
        opened(tmp_path, tmp_path / "r")
