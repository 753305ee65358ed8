"""What data parallel training sends a step, measured by really starting processes (paper, section 10.12).

A step sends one number a parameter, whatever the length L, and its arithmetic grows with L. So the bandwidth at which sending takes no
longer than computing falls like 1 / L: that is the paper's case for long sequences where links are slow.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from fbam.experiments.files import read_json, write_json


def traffic_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Cell of a grid: train a few steps in several processes of this machine, under torchrun.

    :param config: `processes`, and `training`, the keys of ``CellConfig``
    :returns: the bytes that one process hands to all-reduce in a step; processor seconds of its arithmetic, the median over the steps
    :raises RuntimeError: the processes failed; the message holds their last lines
    """
    root, training = Path(__file__).resolve().parents[2], Path(folder) / "training"
    write_json(Path(folder) / "training.json", config["training"])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(config["processes"]),
               "-m", "fbam.training", str(Path(folder) / "training.json"), str(training)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise RuntimeError(f"{config['processes']} processes under torchrun failed: {' '.join(done.stderr.strip().splitlines()[-3:])}")
    measured = read_json(training / "result.json")["measured"]
    tick(1.0)
    return {"bytes_a_step": measured["reduced_bytes_a_step"]}, {"cpu_seconds_a_step": measured["cpu_seconds_a_step"]}
