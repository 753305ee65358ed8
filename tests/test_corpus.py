"""Several histories, each on several screens; relative sources are seen from the project root."""

from __future__ import annotations

import pytest
from gitrepos import Snapshot, make_repository

from fbam.recording.format import Recording
from fbam.sessions.corpus import compile_corpus
from fbam.sessions.edits import Limits
from fbam.sessions.history import HistoryError

SCREENS = {"wide": {"rows": 24, "columns": 80, "block_frames": 64}, "small": {"rows": 4, "columns": 24, "block_frames": 16}}


def silent(label: str, total: int):
    return lambda done, of: None


def compiled(root, *sources):
    repositories = [{"source": str(source), "revision": None} for source in sources]
    return compile_corpus(repositories, SCREENS, root, limits=Limits(), commit_limit=0, progress=silent)


def test_each_history_is_recorded_on_each_screen(tmp_path, monkeypatch):
    for name in ("one", "two"):
        make_repository(tmp_path / "data" / name, [Snapshot({"a.txt": b"hello\n"}), Snapshot({"a.txt": b"hello world\n"})])
    monkeypatch.chdir("/")
    reports = compiled(tmp_path, "data/one", tmp_path / "data" / "two")
    assert [(r["row"]["repository"], r["row"]["screen"]) for r in reports] == [
        ("one", "wide"), ("one", "small"), ("two", "wide"), ("two", "small")]
    for report in reports:
        row = report["row"]
        recording = Recording(tmp_path / "build/recordings" / row["screen"] / f"{row['repository']}.fbam")
        assert (recording.rows, recording.cols) == (row["rows"], row["columns"])
        assert (row["commits"], row["compared"], row["mismatches"]) == (2, 2, 0) and len(recording.commits) == 2
        assert row["replayed"] == recording.n_frames == row["frames"]
        assert report["timing"]["cpu_seconds"] > 0


def test_two_sources_of_one_name_are_refused(tmp_path):
    for name in ("a/same", "b/same"):
        make_repository(tmp_path / name, [Snapshot({"a.txt": b"x\n"})])
    with pytest.raises(HistoryError, match="two sources have the same name"):
        compiled(tmp_path, "a/same", "b/same")
    assert not (tmp_path / "build/recordings").exists()


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(HistoryError, match="nowhere: no such file or folder"):
        compiled(tmp_path, "nowhere")
