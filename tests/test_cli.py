"""The command line: what it writes, prints and answers to bad input."""

import json
import subprocess
import sys

import pytest
from gitrepos import Snapshot, git, make_repository
from test_corpus import in_this_process

from fbam.cli import main
from fbam.recording.format import Recording
from fbam.sessions import commands, screen
from fbam.sessions.verify import VerificationError


@pytest.fixture
def repository(tmp_path):
    return make_repository(tmp_path / "story.git", [Snapshot({"a": b"one\n"}, "one"), Snapshot({"a": b"two\n"}, "two")])


SMALL = ["--rows", "5", "--cols", "20"]


def test_compile_writes_a_recording_and_a_summary(repository, tmp_path, capsys):
    command = ["compile", str(repository), "--out", str(tmp_path / "out"), *SMALL]
    assert main(command) == 0
    recording = Recording(tmp_path / "out" / "story.fbam")
    assert (recording.rows, recording.cols, len(recording.commits)) == (5, 20, 2)
    printed = capsys.readouterr()
    assert printed.out.startswith(f"story: 2 commits, 1 files, {recording.n_frames} actions, ")
    assert "0 mismatches, 0.0% pasted, left out: nothing; " in printed.out and printed.err == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["story.fbam", "story.json"]
    assert main(command) == 0
    assert capsys.readouterr().out.endswith("left out: nothing (was there)\n")


def test_the_default_frame_is_that_of_the_paper(repository, tmp_path):
    assert main(["compile", str(repository), "--out", str(tmp_path)]) == 0
    header = Recording(tmp_path / "story.fbam").header
    assert (header["rows"], header["cols"], header["block_frames"], header["message"]) == (48, 160, 1024, "first")


def test_compile_prints_a_report_as_json(tmp_path, capsys):
    other = make_repository(tmp_path / "other.git", [Snapshot({"b": b"\0", "c": b"text\n"}, "binary"), Snapshot({})])
    git(other, "tag", "v1", "main~1")
    options = ["--revision", "v1", "--limit-commits", "5", "--message", "none", "--json"]
    assert main(["compile", str(other), "--out", str(tmp_path / "out"), *SMALL, *options]) == 0
    report = json.loads(capsys.readouterr().out)
    names = """repositories commits files actions frames mismatches exclusions pasted_share source_bytes changed_characters
        actions_per_changed_character cpu_seconds actions_per_cpu_second source_bytes_per_cpu_second naive_bytes stored_bytes
        ratio stored_per_source_byte rows""".split()
    assert not [name for name in names if name not in report] and report["failures"] == []
    assert (report["repositories"], report["commits"], report["files"], report["mismatches"]) == (1, 1, 1, 0)
    assert report["exclusions"] == report["rows"][0]["exclusions"] == {"binary": {"count": 1, "bytes": 1}}
    assert report["stored_bytes"] == (tmp_path / "out" / "other.fbam").stat().st_size
    assert report["rows"][0]["repository"] == "other"


def test_several_sources_of_which_one_fails(repository, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fbam.sessions.corpus._side_by_side", in_this_process)
    bad = make_repository(tmp_path / "bad.git", [])
    assert main(["compile", str(bad), str(repository), "--out", str(tmp_path / "out"), *SMALL, "--json"]) == 2
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert [row["repository"] for row in report["rows"]] == ["story"]
    assert report["failures"] == [{"source": str(bad), "error": f"{bad}: it has no commits"}]
    assert printed.err == f"fbam: {bad}: it has no commits\n"


def test_a_lost_character_is_exit_code_1(repository, tmp_path, capsys, monkeypatch):
    def wrong(*_):
        raise VerificationError("commit 1: 'a' line 1")

    monkeypatch.setattr("fbam.sessions.verify.TreeCheck.commit", wrong)
    assert main(["compile", str(repository), "--out", str(tmp_path / "out"), *SMALL]) == 1
    assert capsys.readouterr().err == "fbam: commit 1: 'a' line 1\n" and list((tmp_path / "out").iterdir()) == []


def test_verify_presses_a_sample_or_all(repository, tmp_path, capsys, monkeypatch):
    main(["compile", str(repository), "--out", str(tmp_path / "out"), *SMALL])
    capsys.readouterr()
    file = tmp_path / "out" / "story.fbam"
    first, last = Recording(file).commits
    monkeypatch.setattr(commands, "SAMPLE", 3)
    assert main(["verify", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: whole; {first.stop} of {last.stop} frames are what their actions show\n"
    assert main(["verify", "--all", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{file}: whole; all {last.stop} frames are what their actions show\n"


def test_verify_checks_every_file_whatever_the_others_are(repository, tmp_path, capsys):
    main(["compile", str(repository), "--out", str(tmp_path), *SMALL])
    capsys.readouterr()
    data = bytearray((tmp_path / "story.fbam").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "broken.fbam").write_bytes(data)
    assert main(["verify", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "story.fbam: whole" in printed.out and printed.err.startswith(f"fbam: {tmp_path}/broken.fbam") and printed.err.count("\n") == 1


def test_a_failed_verification_is_exit_code_1(repository, tmp_path, capsys, monkeypatch):
    main(["compile", str(repository), "--out", str(tmp_path), *SMALL])
    monkeypatch.setattr(screen, "NUMBER_COLOUR", "\5")
    assert main(["verify", str(tmp_path / "story.fbam")]) == 1
    assert "is not what the actions before it show" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "nowhere", "--out", "{out}"], "nowhere: no such file or folder"),
        (["compile", "{repository}", "--out", "{out}", "--revision", "v9"], "unknown revision 'v9'; its branches: main"),
        (["compile", "{repository}", "--out", "{out}", "--rows", "2"], "not 2 x 160"),
        (["compile", "{repository}", "{repository}", "--out", "{out}"], "two sources have the same name 'story'"),
        (["compile", "{repository}", "--out", "{repository}/HEAD/x"], "Not a directory"),
        (["compile", "{repository}", "--out", "{out}", "--scheduler", "nowhere"], "no dask scheduler answers at nowhere"),
        (["verify", "nowhere.fbam"], "nowhere.fbam: cannot be read"),
        (["verify", "{empty}"], "no recording (*.fbam) in this folder"),
        (["frame", "{repository}/HEAD", "0"], "not a recording"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(repository, tmp_path, capsys, arguments, message):
    (tmp_path / "empty").mkdir()
    filled = [word.format(out=tmp_path / "out", repository=repository, empty=tmp_path / "empty") for word in arguments]
    assert main(filled) == 2
    error = capsys.readouterr().err
    assert error.startswith("fbam: ") and message in error and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["compile", "x", "--out", "y", "--limit-commits", "-1"], ["compile", "x", "--out", "y", "--block-frames", "0"]])
def test_bad_usage_is_exit_code_2(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_the_command_line_does_not_load_torch(tmp_path):
    code = "import sys, fbam.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
