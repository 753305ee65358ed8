"""Data parallel: two real processes under torchrun take the steps that one takes, and say what they send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fbam.experiments.grid import cell_lock
from fbam.training import __main__ as entry
from fbam.training.loop import CellConfig, train_cell
from fbam.training.parallel import ALONE, ParallelError, Processes
from small_training import training_config

DOUBLE = """
import sys, torch
torch.set_default_dtype(torch.float64)
from fbam.training.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def config(tmp_path) -> dict:
    return training_config(tmp_path) | {"steps": 4, "batch": 5, "checkpoint_every": 2}


def torchrun(processes: int, script: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_two_processes_equal_one_on_the_same_global_batch(config, tmp_path):
    """Five windows: the shares are unequal. Streaming, so that the parts of a batch and of a window are both cut."""
    config |= {"frame_chunk": 1, "state_every": 2, "micro_batch": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "double.py").write_text(DOUBLE)
    done = torchrun(2, tmp_path / "double.py", str(tmp_path / "config.json"), str(tmp_path / "two"))
    assert done.returncode == 0, done.stderr
    torch.set_default_dtype(torch.float64)
    try:
        one, _ = train_cell(config, tmp_path / "one", lambda share: None)
    finally:
        torch.set_default_dtype(torch.float32)
    two = json.loads((tmp_path / "two/result.json").read_text())
    np.testing.assert_allclose(two["result"]["losses"], one["losses"], rtol=0, atol=1e-10)
    sent = 8 * one["parameters"] + 8  # one number a parameter, and the loss
    assert (two["measured"]["processes"], two["measured"]["reduced_bytes_a_step"]) == (2, sent)
    weights = [load_file(tmp_path / name / "checkpoint.safetensors") for name in ("one", "two")]
    for name in (name for name in weights[0] if name.startswith("model.")):
        assert weights[0][name].dtype == torch.float64
        torch.testing.assert_close(weights[1][name], weights[0][name], rtol=0, atol=1e-10)


def test_shares_are_all_windows_once(config):
    train, _ = CellConfig.parse(config).windows()
    batch = train.draw(np.random.default_rng(0), 7, 3)
    for size in (1, 2, 3, 7):
        parts = [Processes(rank, size).share(batch) for rank in range(size)]
        assert torch.equal(torch.cat([part.target for part in parts]), batch.target)
        assert np.array_equal(np.concatenate([part.numbers for part in parts]), batch.numbers)
    with pytest.raises(ParallelError, match="7 windows cannot be shared by 8 processes"):
        Processes(0, 8).share(batch)


def test_one_process_sends_nothing():
    assert ALONE.add_up(torch.nn.Linear(2, 2), 1.5) == 1.5 and ALONE.reduced_bytes == 0


def test_the_entry_gives_what_the_cell_gives_and_the_grid_finds_it(config, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert entry.main([str(tmp_path / "config.json"), str(tmp_path / "entry")]) == 0
    stored = json.loads((tmp_path / "entry/result.json").read_text())
    assert stored["result"] == train_cell(config, tmp_path / "cell", lambda share: None)[0]
    assert set(stored) == {"result", "measured"} and capsys.readouterr().out.strip() == str(tmp_path / "entry")


def test_a_folder_in_use_or_a_wrong_configuration_ends_with_one_line(config, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with cell_lock(tmp_path / "busy"):
        assert entry.main([str(tmp_path / "config.json"), str(tmp_path / "busy")]) == 2
    assert "is being computed by process" in capsys.readouterr().err
    (tmp_path / "config.json").write_text(json.dumps(config | {"lenght": 3}))
    assert entry.main([str(tmp_path / "config.json"), str(tmp_path / "busy")]) == 2
    assert "lenght" in capsys.readouterr().err
