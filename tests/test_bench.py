"""``fbam bench``: what it reports, and that a missed target is an exit code."""

import json

import pytest
from gitrepos import CODE, Snapshot, make_repository

from fbam import cli
from fbam.sessions import bench

NAMES = """speedup ratio_1024 ratio_4096 frames_per_second_1024 random_access_ms_1024 actions_per_changed_character same_pairs
    tokens_actions_per_second reference_actions_per_cpu_second actions_per_cpu_second parts decode_array_frames
    copied_frames_per_second_1024 frames_per_second_large_array_4096""".split()


def test_the_data_engine_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "READS", 5)
    repository = make_repository(tmp_path / "r", [Snapshot({"a": CODE}), Snapshot({"a": CODE.replace(b"first", b"one")})])
    code = cli.main(["bench", "--only", "data", "--source", str(repository), "--json"])
    report = json.loads(capsys.readouterr().out)["data"]
    assert not [name for name in NAMES if name not in report]
    assert report["same_pairs"] is True and sum(report["parts"].values()) == pytest.approx(1)
    assert code == (0 if all(target["met"] for target in report["targets"]) else 1)


@pytest.mark.parametrize(("met", "code"), [(True, 0), (False, 1)])
def test_a_missed_target_is_exit_code_1(capsys, monkeypatch, met, code):
    target = {"name": "speed", "measured": 12.5, "bound": ">= 12", "met": met}
    monkeypatch.setattr(bench, "bench", lambda options: {"targets": [target]})
    assert cli.main(["bench", "--only", "data"]) == code
    out = capsys.readouterr().out
    assert "speed" in out and "12.5" in out and ("missed" in out) is not met


@pytest.mark.parametrize("name", ["speedup", "ratio_1024", "random_access_ms_4096", "actions_per_changed_character"])
def test_each_target_can_be_missed(name):
    good = {
        "speedup": 12, "ratio_1024": 5000, "ratio_4096": 6500, "frames_per_second_1024": 2e5, "tokens_actions_per_second": 1e6,
        "same_pairs": True, "random_access_ms_1024": 0.5, "random_access_ms_4096": 0.5, "actions_per_changed_character": 1.3,
    }  # fmt: skip
    assert all(target["met"] for target in bench._targets(good))
    bad = good | {name: 1.31 if name.startswith(("random", "actions")) else good[name] - 0.1}
    assert [target["name"] for target in bench._targets(bad) if not target["met"]] == [name]
