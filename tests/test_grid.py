"""The grid computes each cell once, keeps what is finished, and survives a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gridcells
import pytest

from fbam.experiments import grid
from fbam.experiments.progress import Progress, clock

RUN = """
import sys; sys.path.insert(0, {tests!r})
from pathlib import Path
import gridcells
from fbam.experiments.grid import run_grid
if __name__ == "__main__":
    print(run_grid(gridcells.slow, [dict(n={n}), dict(n={n} + 1)], Path({root!r}), label="slow"))
"""


def test_results_come_in_order_and_are_kept(tmp_path):
    configs = [{"x": x} for x in (3, 1, 2)]
    first = grid.run_grid(gridcells.square, configs, tmp_path, workers=2, cost=lambda c: c["x"])
    assert [o.result["y"] for o in first] == [9, 1, 4]
    assert first[0].measured["pid"] != os.getpid()
    again = grid.run_grid(gridcells.square, [*configs, {"x": 5}], tmp_path)
    assert again[:3] == first and again[3].result == {"y": 25}
    assert sorted((tmp_path / "calls").read_text().split()) == ["1", "2", "3", "5"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux only")
def test_workers_of_all_grids_are_forked_from_one_server(tmp_path):
    outcomes = [*grid.run_grid(gridcells.square, [{"x": 1}, {"x": 2}], tmp_path, workers=2), *grid.run_grid(gridcells.square, [{"x": 3}], tmp_path)]
    parents = {outcome.measured["parent"] for outcome in outcomes}
    assert len(parents) == 1 and parents != {os.getpid()}


def test_a_failed_cell_is_named_and_does_not_lose_the_others(tmp_path):
    with pytest.raises(grid.GridError, match="1 of 3 cells failed: ValueError: x is -1 .*error.txt"):
        grid.run_grid(gridcells.square, [{"x": 1}, {"x": -1}, {"x": 2}], tmp_path)
    assert [o.result["y"] for o in grid.run_grid(gridcells.square, [{"x": 1}, {"x": 2}], tmp_path)] == [1, 4]
    assert sorted((tmp_path / "calls").read_text().split()) == ["-1", "1", "2"]


def test_code_and_configuration_name_the_cell(tmp_path, monkeypatch):
    folder = grid.cell_folder(gridcells.square, {"x": 1}, tmp_path)
    assert folder == grid.cell_folder(gridcells.square, {"x": 1}, tmp_path)
    assert folder != grid.cell_folder(gridcells.square, {"x": 2}, tmp_path)
    assert folder != grid.cell_folder(gridcells.slow, {"x": 1}, tmp_path)
    monkeypatch.setattr(grid, "source_hash", lambda path, root: "other code")
    assert folder != grid.cell_folder(gridcells.square, {"x": 1}, tmp_path)


def test_a_cell_is_never_computed_twice_at_once(tmp_path):
    folder = grid.cell_folder(gridcells.square, {"x": 1}, tmp_path)
    with grid.cell_lock(folder):
        with pytest.raises(grid.GridError, match=f"being computed by process {os.getpid()}; wait for it or stop it"):
            grid.run_grid(gridcells.square, [{"x": 1}], tmp_path)
    assert grid.run_grid(gridcells.square, [{"x": 1}], tmp_path)[0].result == {"y": 1}


def _start(tmp_path: Path, n: int) -> subprocess.Popen:
    script = tmp_path / "run.py"
    script.write_text(RUN.format(tests=str(Path(__file__).parent), n=n, root=str(tmp_path / "cells")))
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _counts(tmp_path: Path) -> list[int]:
    return [int(file.read_text()) for file in (tmp_path / "cells").glob("*/count")]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_grid_leaves_no_worker_and_resumes(tmp_path, how):
    process = _start(tmp_path, 150)
    deadline = time.monotonic() + 60
    while len(_counts(tmp_path)) < 2 or sum(_counts(tmp_path)) < 10:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(how)
    process.communicate(timeout=20)
    assert process.returncode != 0
    time.sleep(0.3)
    left = _counts(tmp_path)
    time.sleep(0.5)
    assert _counts(tmp_path) == left, "a worker outlived the process that started it"

    process = _start(tmp_path, 150)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "'started_at': 0}" not in out, "the second run did not resume from the checkpoints"


def test_time_left_counts_only_work_of_this_run(capsys):
    bar = Progress("cells", 100, start=50)
    assert bar.line(50, 3) == "cells  50 % · 0:03 gone · time left not known yet"
    assert bar.line(75, 10) == "cells  75 % · 0:10 gone · 0:10 left"
    bar(100)
    assert capsys.readouterr().err == "progress cells 100 % · 0:00 gone\n"
    assert clock(3725) == "1:02:05"
