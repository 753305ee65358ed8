"""Whole histories: replayed exactly, through keys alone, and never published when they are not."""

from pathlib import Path

import pytest
from gitrepos import EXECUTABLE, SUBMODULE, SYMLINK, Snapshot, git, make_repository
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fbam.recording.format import Recording
from fbam.sessions import kernels
from fbam.sessions.compile import compile_history
from fbam.sessions.edits import Limits
from fbam.sessions.editor import Editor
from fbam.sessions.files import File, FileSystem, encode
from fbam.sessions.history import Entry, open_history
from fbam.sessions.layout import ScreenError
from fbam.sessions.screen import Terminal
from fbam.sessions.verify import VerificationError, differences, replay

CODE = "\n".join(f"def function_{k}(first, second):\n\treturn first + {k} * second\n" for k in range(12))
FILES = {
    "README": b"no new line at the end",
    "src/main.py": CODE.encode(),
    "crlf.txt": b"one\r\ntwo\r\nthree\nmixed\r\n\r\r\n",
    "bom.txt": b"\xef\xbb\xbfwith a mark\n",
    "bytes.txt": b"caf\xe9 \xff\xfe not UTF-8\n\x80",
    "control.txt": b"\x01\x1b[200~\x1b[201~\x16\x7f\x08\x0c\n",
    "wide.txt": "\u4e2d\u6587 e\u0301 \u200b \U0001f600\u2028 \u00a0\u0085\n".encode(),
    "empty": b"",
    "only lines": b"\n\n\n",
    'dir with space/it\'s "quoted" $x`\\': b"content\n",
    "-r": b"a name like an option\n",
    "new\nline\ttab": b"x",
    "latin\udce9": b"y",
    "run.sh": (EXECUTABLE, b"#!/bin/sh\n"),
    "link": (SYMLINK, b"src/main.py"),
    "odd link": (SYMLINK, b"-no where\n\xff"),
}


def story(folder: Path, *snapshots: Snapshot) -> Path:
    return make_repository(folder / "story.git", snapshots)


def compiled(tmp_path: Path, repository: Path, **options: object) -> tuple[dict, Recording]:
    """Compile a repository; return report and recording, replayed and compared frame by frame."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    arguments = {"rows": 6, "cols": 30, "block_frames": 16, "limits": Limits()} | options
    history = open_history(str(repository), None, workspace)
    report = compile_history(history, tmp_path / "out" / "story.fbam", **arguments)
    recording = Recording(tmp_path / "out" / "story.fbam")
    assert replay(recording) == report["actions"] == report["frames"] == len(recording.actions)
    return report, recording


def typed_files(recording: Recording) -> FileSystem:
    """The file system that the actions of a recording produce."""
    terminal = Terminal(recording.rows, recording.cols)
    for action in recording.actions:
        terminal.press(action)
    return terminal.files


def git_files(repository: Path) -> dict[str, tuple[int, str]]:
    """{path: (mode, oid)} as git itself lists them."""
    entries = [entry.split("\t", 1) for entry in git(repository, "ls-tree", "-rz", "main").split("\0")[:-1]]
    return {path: (int(kind.split()[0], 8), kind.split()[2]) for kind, path in entries}


def test_every_kind_of_content_is_replayed_exactly(tmp_path):
    repository = story(tmp_path, Snapshot(FILES, "all at once \udcff\n"), Snapshot({}, "nothing left\n"), Snapshot(FILES, "again\n"))
    report, recording = compiled(tmp_path, repository)
    files = typed_files(recording)
    assert {path: (file.mode, file.oid) for path, file in files.files.items()} == git_files(repository)
    for path, content in FILES.items():
        assert encode(files.files[path].text) == (content[1] if isinstance(content, tuple) else content)
    assert files.log == ["all at once \udcff", "nothing left", "again"]
    assert [(commit.message, commit.commit_id) for commit in recording.commits] == list(
        zip(["all at once \udcff\n", "nothing left\n", "again\n"], git(repository, "log", "--reverse", "--format=%H").split())
    )
    assert report["files"] == len(FILES) and report["mismatches"] == 0 and report["pasted_share"] == 0
    distinct = {content[1] if isinstance(content, tuple) else content for content in FILES.values()}
    assert report["source_bytes"] == sum(map(len, distinct))
    assert report["naive_bytes"] == report["frames"] * 6 * 30 * 5
    assert report["stored_bytes"] == recording.path.stat().st_size
    assert report["ratio"] == report["naive_bytes"] / report["stored_bytes"]


def test_every_kind_of_change_is_replayed_exactly(tmp_path):
    text = CODE.encode()
    states: list[dict] = [
        {"a": text, "d/e/f": b"1", "x": b"file", "l": (SYMLINK, b"a"), "m": b"mode"},
        {"b/c": text + b"moved and edited\n", "d/e/f": b"1", "x": b"file", "l": (SYMLINK, b"b/c"), "m": (EXECUTABLE, b"mode")},
        {"b/c": text, "d": b"a directory became a file", "x/y": b"a file became a directory", "l": b"no link", "m": b"mode"},
        {"b/c": text.replace(b"second", b"2nd"), "x": text, "l": (SYMLINK, b"x"), "m": (EXECUTABLE, b"other mode")},
        {"x/y/z": text, "b": text, "m": b""},
        {"x/y/z": text, "b": text, "m": b""},
        {"x/y/z/deep": text, "b": b"", "m": b"\n"},
    ]
    repository = story(tmp_path, *(Snapshot(state, f"state {k}") for k, state in enumerate(states)))
    report, recording = compiled(tmp_path, repository)
    assert report["commits"] == len(recording.commits) == len(states)
    session = "".join(recording.actions)
    for command in ["mv a b/c\r", "chmod 755 m\r", "rm -r d\r", "rm x\r", "rm l\r", "ln -s x l\r", "mkdir -p x/y\r", "touch"]:
        assert (command in session) == (command != "touch")
    unchanged = recording.commits[5]
    assert "".join(recording.actions[unchanged.start : unchanged.stop]) == 'vcs commit -m "state 5"\rvcs add -A\r'


def test_a_merge_is_one_stretch_against_its_first_parent(tmp_path):
    side = Snapshot({"a": b"1\n", "b": b"from the side\n"}, "side")
    merge = Snapshot({"a": b"2\n", "b": b"from the side\n", "c": b"in the merge alone\n"}, "merge", (side,))
    repository = story(tmp_path, Snapshot({"a": b"1\n"}, "one"), merge)
    assert len(git(repository, "rev-list", "main").split()) == 3
    _, recording = compiled(tmp_path, repository)
    assert [commit.message for commit in recording.commits] == ["one", "merge"]


PATHS = ["a", "b", "d", "d/a", "d/e/a", "d/e/b", "sp ace", "-x"]
CONTENTS = [b"", b"\n", b"x", CODE.encode(), CODE.encode().replace(b"first", b"1st"), b"one\r\ntwo\xff\n", b"N\0UL"]
MODES = [0o100644, EXECUTABLE, SYMLINK]


@st.composite
def trees(draw: st.DrawFn) -> dict:
    chosen = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=6))
    files = [path for path in chosen if not any(other.startswith(path + "/") for other in chosen)]
    return {path: (draw(st.sampled_from(MODES)), draw(st.sampled_from(CONTENTS))) for path in files}


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(trees(), min_size=2, max_size=5), st.builds(Limits, st.integers(0, 500), st.integers(0, 60), st.integers(0, 900)))
def test_any_history_is_replayed_exactly(tmp_path_factory, states, limits):
    folder = tmp_path_factory.mktemp("any")
    repository = story(folder, *map(Snapshot, states))
    report, recording = compiled(folder, repository, limits=limits)
    expected = {path: entry for path, entry in git_files(repository).items() if states[-1][path][1] != b"N\0UL"}
    assert {path: (file.mode, file.oid) for path, file in typed_files(recording).files.items()} == expected
    binaries = {(path, data) for state in states for path, (_, data) in state.items() if b"\0" in data}
    assert report["exclusions"].get("binary", {}).get("count", 0) == len(binaries)


def test_exclusions_are_reported(tmp_path):
    link = (SUBMODULE, b"1" * 40)
    first = Snapshot({"text": b"t", "image": b"\0" * 10, "module": link})
    second = Snapshot({"text": b"t", "image": b"became text", "other": b"\0" * 5, "module": link})
    report, recording = compiled(tmp_path, story(tmp_path, first, second))
    assert report["exclusions"] == {"binary": {"count": 2, "bytes": 15}, "submodule": {"count": 1, "bytes": 0}}
    assert set(typed_files(recording).files) == {"text", "image"}


def test_beyond_the_limits_text_is_pasted_and_counted(tmp_path):
    text = "\n".join(f"line {k}" for k in range(40)).encode()
    repository = story(tmp_path, Snapshot({"a": text}, "one"), Snapshot({"a": text + b"\nmore"}, "two"))
    report, recording = compiled(tmp_path, repository, limits=Limits(commit_actions=30))
    pasted = [action for action in recording.actions if action.startswith("\x1b[200~")]
    assert f"\x1b[200~{text.decode()}\x1b[201~" in pasted
    assert max(commit.stop - commit.start for commit in recording.commits) < 60
    characters = sum(len(action) - len("\x1b[200~\x1b[201~") for action in pasted)
    assert report["pasted_characters"] == characters
    assert report["pasted_share"] == characters / (characters + report["typed_characters"])


def test_only_the_first_commits_and_progress(tmp_path):
    seen: list[tuple[int, int]] = []
    repository = story(tmp_path, *(Snapshot({"a": b"%d" % k}, str(k)) for k in range(4)))
    report, recording = compiled(tmp_path, repository, commit_limit=3, on_progress=lambda *step: seen.append(step))
    assert (report["commits"], [commit.message for commit in recording.commits]) == (3, ["0", "1", "2"])
    assert report["revision"] == recording.header["revision"] == git(repository, "rev-parse", "main~1").strip()
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_compiling_twice_gives_the_same_bytes(tmp_path):
    repository = story(tmp_path, Snapshot(FILES, "one"), Snapshot({"a": b"b"}, "two"))
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    reports = [compiled(tmp_path / name, repository) for name in "12"]
    assert reports[0][0] == reports[1][0]
    assert reports[0][1].path.read_bytes() == reports[1][1].path.read_bytes()


def test_nothing_is_published_when_the_editor_loses_a_character(tmp_path, monkeypatch):
    repository = story(tmp_path, Snapshot({"fine": b"abc"}, "one"), Snapshot({"bad": b"first\nsecond z\nthird"}, "two"))
    insert = Editor.insert
    monkeypatch.setattr(Editor, "insert", lambda self, text: insert(self, text.replace("z", "s")))
    second = git(repository, "rev-parse", "main").strip()
    with pytest.raises(VerificationError) as caught:
        compiled(tmp_path, repository, reference=True)
    message = f"commit {second}: 'bad' line 2: replayed 'second s', in git 'second z' (1 paths differ)"
    assert str(caught.value) == message
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_is_published_when_the_compiled_editor_loses_a_character(tmp_path, monkeypatch):
    repository = story(tmp_path, Snapshot({"fine": b"abc"}, "one"), Snapshot({"bad": b"first\nsecond z\nthird"}, "two"))
    collect = kernels.collect

    def losing(state, table, arena, text):
        bits = collect(state, table, arena, text)
        text[text == ord("z")] = ord("s")
        return bits

    monkeypatch.setattr(kernels, "collect", losing)
    with pytest.raises(VerificationError, match="'bad' line 2: replayed 'second s', in git 'second z'"):
        compiled(tmp_path, repository)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("size", [(6, 30), (24, 80)])
def test_compiled_and_reference_hands_make_the_same_recording(tmp_path, size):
    states = [FILES, {"a": CODE.encode()}, {"d/b": CODE.replace("first", "1st").encode()}, {"a": b"x\n" * 50}]
    repository = story(tmp_path, *(Snapshot(state, f"state {k}\n\nwith 'a' \"body\"\n") for k, state in enumerate(states)))
    (tmp_path / "slow").mkdir()
    options = {"rows": size[0], "cols": size[1], "limits": Limits(2000, 60, 3000)}
    report, recording = compiled(tmp_path, repository, **options)
    slow_report, slow = compiled(tmp_path / "slow", repository, reference=True, **options)
    stored = {"stored_bytes", "stored_per_source_byte", "ratio"}  # equal frames may be stored in more than one way
    assert {name: report[name] for name in report.keys() - stored} == {name: slow_report[name] for name in report.keys() - stored}
    assert recording.actions == slow.actions and recording.commits == slow.commits
    for start in range(0, recording.n_frames, 500):
        stop = min(start + 500, recording.n_frames)
        assert recording.frames(start, stop).tobytes() == slow.frames(start, stop).tobytes()
    assert [path for _, path in recording.opened] and recording.opened == slow.opened


@pytest.mark.parametrize("message", ["first", "last", "none"])
def test_the_message_stands_where_it_is_asked_for(tmp_path, message):
    repository = story(tmp_path, Snapshot({"a": b"x"}, "one"), Snapshot({"a": b"y"}, "two"))
    _, recording = compiled(tmp_path, repository, message=message)
    commit = recording.commits[1]
    session = "".join(recording.actions[commit.start : commit.stop])
    assert session.startswith({"first": 'vcs commit -m "two"\rvi a\r'}.get(message, "vi a\r"))
    assert session.endswith({"last": 'vcs add -A\rvcs commit -m "two"\r'}.get(message, ":wq\rvcs add -A\r"))
    assert ("commit" in session) == (message != "none") and recording.header["message"] == message


def test_nothing_is_published_when_a_mode_or_a_file_is_lost(tmp_path, monkeypatch):
    repository = story(tmp_path, Snapshot({"a": (EXECUTABLE, b"")}))
    with monkeypatch.context() as patch, pytest.raises(VerificationError, match="'a' has mode 100644, in git 100755"):
        patch.setattr(FileSystem, "chmod", lambda self, permissions, path: self.files.update({path: File(0o100644, "")}))
        compiled(tmp_path, repository)
    assert list((tmp_path / "out").iterdir()) == []


def test_differences_name_every_path():
    files = FileSystem()
    for path in ["same", "content", "mode", "extra"]:
        files.write(path, path)
    same = File(0o100644, "same").oid
    expected = {
        "same": Entry(0o100644, same), "content": Entry(0o100644, same),
        "mode": Entry(0o100755, File(0o100644, "mode").oid), "missing": Entry(0o100644, same),
    }  # fmt: skip
    assert differences(files, expected) == ["content", "extra", "missing", "mode"]


def test_a_replay_that_differs_is_found(tmp_path, monkeypatch):
    _, recording = compiled(tmp_path, story(tmp_path, Snapshot({"a": b"abc"}, "one")))
    monkeypatch.setitem(recording.__dict__, "actions", [key.replace("b", "x") for key in recording.actions])
    with pytest.raises(VerificationError, match=r"frame \d+ is not what the actions before it show"):
        replay(recording)


def test_a_frame_too_small_leaves_nothing(tmp_path):
    with pytest.raises(ScreenError):
        compiled(tmp_path, story(tmp_path, Snapshot({})), rows=2)
    assert not (tmp_path / "out").exists()
