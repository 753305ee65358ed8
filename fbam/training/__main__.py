"""Train one model: ``python -m fbam.training CONFIG.json [FOLDER]``, alone or once in each process of torchrun.

    torchrun --nproc-per-node 2 -m fbam.training CONFIG.json

CONFIG.json holds the keys of ``CellConfig``. FOLDER keeps checkpoint and result; left out it is the cell of the grid with this
configuration, so that the notebook finds the training done. A training that was stopped goes on at its last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path

from fbam.experiments.allocator import keep_freed_memory
from fbam.experiments.files import read_json, write_json
from fbam.experiments.grid import GridError, cell_folder, cell_lock
from fbam.experiments.progress import Progress
from fbam.paths import project_root
from fbam.training.loop import CellConfig, NonFiniteLossError, train_cell
from fbam.training.parallel import processes


def main(arguments: list[str] | None = None) -> int:
    """Run one training and return the exit code: 0, or 2 with one line on what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m fbam.training", description="Train one action model.")
    parser.add_argument("config", type=Path, help="JSON file with the keys of CellConfig")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the training (default: its cell of the grid)")
    options = parser.parse_args(arguments)
    try:
        return _train(read_json(options.config), options.folder)
    except (ValueError, OSError, GridError, NonFiniteLossError) as error:
        print(f"fbam.training: {error}", file=sys.stderr)
        return 2


def _train(config: dict, folder: Path | None) -> int:
    keep_freed_memory()
    cell = CellConfig.parse(config)
    folder = folder or cell_folder(train_cell, config, project_root() / "build/cells")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch asks for where results must repeat
    with processes(cell.device) as group:
        first = group.rank == 0
        with cell_lock(folder) if first else nullcontext():
            bar = Progress("training", cell.steps)
            result, measured = train_cell(config, folder, lambda share: bar(share * cell.steps) if first else None, group)
            if first:
                write_json(folder / "result.json", {"result": result, "measured": measured})
                print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
