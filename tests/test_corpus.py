"""Histories side by side: each on several screens, failures kept apart, nothing done twice."""

from __future__ import annotations

import json
import os

import pytest
from distributed import LocalCluster
from gitrepos import Snapshot, git, make_repository

from fbam.recording.format import Recording
from fbam.sessions import jobs
from fbam.sessions.corpus import CorpusError, compile_corpus, run_jobs
from fbam.sessions.edits import Limits
from fbam.sessions.history import HistoryError
from fbam.sessions.jobs import Job, Target, run_job
from fbam.sessions.verify import VerificationError

SCREENS = {"wide": {"rows": 24, "columns": 80, "block_frames": 64}, "small": {"rows": 4, "columns": 24, "block_frames": 16}}


def silent(label: str, total: int):
    return lambda done, of: None


def story(folder, name: str, text: bytes = b"hello\n"):
    return make_repository(folder / "data" / name, [Snapshot({"a.txt": text}), Snapshot({"a.txt": text + b"world\n"})])


def compiled(root, *sources, **options):
    repositories = [{"source": str(source), "revision": None} for source in sources]
    return compile_corpus(repositories, SCREENS, root, limits=Limits(), commit_limit=0, progress=silent, **options)


def job(source, out, **options) -> Job:
    target = Target(out / f"{source.name}.fbam", out / f"{source.name}.json", 5, 20, 16)
    return Job(str(source), None, (target,), Limits(), **options)


def test_a_history_is_recorded_on_each_screen(tmp_path, monkeypatch):
    story(tmp_path, "one")
    monkeypatch.chdir("/")
    reports = compiled(tmp_path, "data/one")
    assert [(r["row"]["repository"], r["row"]["screen"]) for r in reports] == [("one", "wide"), ("one", "small")]
    for report in reports:
        row = report["row"]
        recording = Recording(tmp_path / "build/recordings" / row["screen"] / "one.fbam")
        assert (recording.rows, recording.cols) == (row["rows"], row["columns"])
        assert (row["commits"], row["files"], row["mismatches"]) == (2, 1, 0) and len(recording.commits) == 2
        assert row["replayed"] == recording.n_frames == row["frames"]
        assert report["timing"]["cpu_seconds"] > 0 and "cpu_seconds" not in row
    assert sorted(path.name for path in (tmp_path / "build/recordings").rglob("*.*")) == ["one.fbam", "one.fbam"]


def test_two_processes_of_a_cluster_do_what_one_does(tmp_path):
    sources = [story(tmp_path, name, name.encode() * 40) for name in ("one", "two", "three")]
    broken = tmp_path / "data" / "broken"
    broken.mkdir()
    (tmp_path / "alone").mkdir()
    seen: dict[str, list[tuple[int, int]]] = {}
    tasks = [job(source, tmp_path / "out") for source in [*sources[:2], broken, sources[2]]]
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        outcomes = list(run_jobs(tasks, lambda label, total: lambda *step: seen.setdefault(label, []).append(step),
                                 scheduler=cluster.scheduler_address))
        assert len({worker.pid for worker in cluster.workers.values()} - {os.getpid()}) == 2
        again = list(run_jobs(tasks[:2], silent, scheduler=cluster.scheduler_address))
    failed = [outcome for outcome in outcomes if outcome.error]
    assert [(o.job.source, type(o.error)) for o in failed] == [(str(broken), HistoryError)]
    assert len(outcomes) == 4 and all(outcome.done[0].reused for outcome in again)
    for source in sources:
        alone = run_job(job(source, tmp_path / "alone"))[0]
        assert alone.row in [outcome.done[0].row for outcome in outcomes if outcome.done]
        file = f"{source.name}.fbam"
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "alone" / file).read_bytes()
        assert seen.get(f"{source.name}, 5 x 20", [(2, 2)])[-1] == (2, 2)


def test_a_scheduler_that_does_not_answer(tmp_path):
    with pytest.raises(CorpusError, match="no dask scheduler answers at nowhere"):
        list(run_jobs([job(story(tmp_path, "one"), tmp_path)], silent, scheduler="nowhere"))


def test_a_failed_history_is_named_and_loses_no_other(tmp_path, monkeypatch):
    good, bad = story(tmp_path, "good"), story(tmp_path, "bad")
    git(bad, "update-ref", "-d", "refs/heads/main")
    with pytest.raises(CorpusError, match="bad: it has no commits$"):
        monkeypatch.setattr("fbam.sessions.corpus._side_by_side", in_this_process)
        compiled(tmp_path, good, bad)
    assert Recording(tmp_path / "build/recordings/wide/good.fbam").n_frames > 0


def in_this_process(tasks, progress, scheduler):
    for task in tasks:
        yield from run_jobs([task], progress)


def test_what_is_finished_is_not_compiled_again(tmp_path, monkeypatch):
    source = story(tmp_path, "one")
    first = run_job(job(source, tmp_path))[0]
    assert not first.reused
    with monkeypatch.context() as patch:
        patch.setattr(jobs.compiler, "compile_history", lambda *_, **__: pytest.fail("compiled again"))
        again = run_job(job(source, tmp_path))[0]
    assert again == first._replace(reused=True)


@pytest.mark.parametrize("change", ["commit", "parameter", "code", "recording", "report", "no recording"])
def test_what_has_changed_is_compiled_again(tmp_path, monkeypatch, change):
    source = story(tmp_path, "one")
    run_job(job(source, tmp_path))
    task, recording, report = job(source, tmp_path), tmp_path / "one.fbam", tmp_path / "one.json"
    if change == "commit":
        git(source, "update-ref", "refs/heads/main", "main~1")
    elif change == "parameter":
        task = job(source, tmp_path, message="last")
    elif change == "code":
        monkeypatch.setattr(jobs, "_code", lambda: "other")
    elif change == "recording":
        recording.write_bytes(recording.read_bytes()[:-1] + b"x")
    elif change == "report":
        report.write_text("[]")
    else:
        recording.unlink()
    done = run_job(task)[0]
    assert not done.reused and Recording(recording).n_frames == done.row["frames"]
    assert json.loads(report.read_text())["row"] == done.row and run_job(task)[0].reused


def test_a_mismatch_publishes_nothing(tmp_path, monkeypatch):
    def wrong(*_):
        raise VerificationError("commit 1: 'a' differs")

    monkeypatch.setattr("fbam.sessions.verify.TreeCheck.commit", wrong)
    [outcome] = run_jobs([job(story(tmp_path, "one"), tmp_path / "out")], silent)
    assert isinstance(outcome.error, VerificationError) and outcome.done == []
    assert list((tmp_path / "out").iterdir()) == []


def test_two_sources_of_one_name_are_refused(tmp_path):
    for name in ("a/same", "b/same"):
        make_repository(tmp_path / name, [Snapshot({"a.txt": b"x\n"})])
    with pytest.raises(HistoryError, match="two sources have the same name 'same'"):
        compiled(tmp_path, "a/same", "b/same")
    assert not (tmp_path / "build/recordings").exists()


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(HistoryError, match="nowhere: no such file or folder"):
        compiled(tmp_path, "nowhere")
