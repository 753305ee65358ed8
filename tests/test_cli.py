"""The command line: what it writes, prints and answers to bad input."""

import json
import subprocess
import sys

import pytest
from gitrepos import Snapshot, git, make_repository

from fbam.cli import main
from fbam.recording.format import Recording
from fbam.sessions import screen


@pytest.fixture
def repository(tmp_path):
    return make_repository(tmp_path / "story.git", [Snapshot({"a": b"one\n"}, "one"), Snapshot({"a": b"two\n"}, "two")])


def test_compile_writes_a_recording_and_a_summary(repository, tmp_path, capsys):
    assert main(["compile", str(repository), "--out", str(tmp_path / "out"), "--rows", "5", "--cols", "20"]) == 0
    recording = Recording(tmp_path / "out" / "story.fbam")
    assert (recording.rows, recording.cols, len(recording.commits)) == (5, 20, 2)
    printed = capsys.readouterr()
    assert printed.out.startswith(f"story: 2 commits, 1 files, {recording.n_frames} actions, ")
    assert printed.out.endswith("0 mismatches, 0.0% pasted, left out: nothing\n") and printed.err == ""
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["story.fbam"]


def test_compile_of_several_sources_prints_json(repository, tmp_path, capsys):
    other = make_repository(tmp_path / "other.git", [Snapshot({"b": b"\0"}, "binary")])
    git(repository, "tag", "v1", "main~1")
    git(other, "tag", "v1", "main")
    out = ["--out", str(tmp_path / "out"), "--revision", "v1", "--limit-commits", "5", "--json"]
    assert main(["compile", str(repository), str(other), *out]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["repository"], row["commits"], row["mismatches"]) for row in rows] == [("story", 1, 0), ("other", 1, 0)]
    assert rows[1]["exclusions"] == {"binary": {"count": 1, "bytes": 1}}


def test_verify_and_frame(repository, tmp_path, capsys):
    main(["compile", str(repository), "--out", str(tmp_path)])
    capsys.readouterr()
    file = str(tmp_path / "story.fbam")
    assert main(["verify", file]) == 0
    pairs = Recording(file).n_frames
    assert capsys.readouterr().out == f"{file}: {pairs} frames are what their actions show\n"
    assert main(["frame", file, "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("\x1b[38;5;2m$ \x1b[0m\x1b[7m \x1b[0m") and len(lines) == 12 + 1
    assert lines[-1] == f"frame 0 of {pairs}, next action 'v'"


def test_a_failed_verification_is_exit_code_1(repository, tmp_path, capsys, monkeypatch):
    main(["compile", str(repository), "--out", str(tmp_path)])
    monkeypatch.setattr(screen, "NUMBER_COLOUR", "\5")
    assert main(["verify", str(tmp_path / "story.fbam")]) == 1
    assert "is not what the actions before it show" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "nowhere", "--out", "{out}"], "nowhere: no such file or folder"),
        (["compile", "{repository}", "--out", "{out}", "--revision", "v9"], "unknown revision 'v9'; its branches: main"),
        (["compile", "{repository}", "--out", "{out}", "--rows", "2"], "not 2 x 40"),
        (["compile", "{repository}", "{repository}", "--out", "{out}"], "two sources are called 'story'"),
        (["compile", "{repository}", "--out", "{repository}/HEAD/x"], "Not a directory"),
        (["verify", "nowhere.fbam"], "nowhere.fbam: cannot be read"),
        (["frame", "{repository}/HEAD", "0"], "not a recording"),
        (["frame", "{repository}/story.fbam", "100000"], "has frames 0 to"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(repository, tmp_path, capsys, arguments, message):
    main(["compile", str(repository), "--out", str(repository)])
    capsys.readouterr()
    filled = [word.format(out=tmp_path / "out", repository=repository) for word in arguments]
    assert main(filled) == 2
    error = capsys.readouterr().err
    assert error.startswith("fbam: ") and message in error and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["frame", "x", "-1"], ["compile", "x", "--out", "y", "--limit-commits", "-1"]])
def test_bad_usage_is_exit_code_2(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_the_command_line_does_not_load_torch(tmp_path):
    code = "import sys, fbam.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
