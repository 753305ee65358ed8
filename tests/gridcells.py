"""Cell functions for the tests of the grid; a worker process imports them by name."""

from __future__ import annotations

import os
import time
from pathlib import Path


def square(config: dict, folder: Path, tick) -> tuple[dict, dict]:
    tick(0.5)
    with (folder.parent / "calls").open("a") as calls:
        calls.write(f"{config['x']}\n")
    if config["x"] < 0:
        raise ValueError(f"x is {config['x']}")
    return {"y": config["x"] ** 2}, {"pid": os.getpid(), "parent": os.getppid()}


def slow(config: dict, folder: Path, tick) -> tuple[dict, dict]:
    """Counts to `n` in a checkpoint file and says where it started."""
    file = folder / "count"
    start = int(file.read_text()) if file.exists() else 0
    for count in range(start, config["n"]):
        time.sleep(0.02)
        temporary = folder / "count.new"
        temporary.write_text(str(count + 1))
        os.replace(temporary, file)
        tick((count + 1) / config["n"])
    return {"n": config["n"]}, {"started_at": start}
