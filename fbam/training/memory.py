r"""What one backward pass needs in memory and time, against the trained length L (paper, section 10.3).

Three ways to the same gradients: `plain` autograd keeps all activations, `checkpointed` autograd recomputes the frame heads
but keeps the main model's activations over all L positions, `streaming` keeps chunks of both. Each measurement is a fresh process: it builds
the model, makes one pass at L = 1 so that libraries and buffers are in place, and takes the highest resident set
of the passes that follow above the resident set before them.

Run by hand: ``python -m fbam.training.memory '{"way": "streaming", "length": 64, …}'`` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from fbam.models.action_model import ActionModel, ModelConfig
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.determinism import deterministic
from fbam.training.loop import plain_backward
from fbam.training.streaming import chunks, streaming_backward
from fbam.training.windows import LazyBatch, Windows

WAYS = ("plain", "checkpointed", "streaming")
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PassConfig(BaseModel):
    """One measurement; all keys are required, as JSON values."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    recordings: list[str] = Field(min_length=1)
    tokenizer: str
    data: str  # fingerprint of these files
    way: str = Field(pattern=f"^({'|'.join(WAYS)})$")
    length: int = Field(ge=1)
    batch: int = Field(ge=1)
    width: int
    poolings: int
    head_blocks: int
    layers: int
    codes: int
    frame_head: str
    frame_chunk: int = Field(ge=1)
    state_every: int = Field(ge=1)
    repeats: int = Field(ge=1)


def checkpointed_backward(model: ActionModel, batch: LazyBatch, frame_chunk: int) -> float:
    """Plain autograd with the frame heads under torch's activation checkpointing, ``frame_chunk`` frames at a time."""
    length = batch.target.shape[1]
    anchor = torch.zeros((), requires_grad=True)  # checkpoint records nothing unless an input asks for gradients

    def encode(start: int, stop: int, _: torch.Tensor) -> torch.Tensor:
        return model.encode(*batch.frames(start, stop))

    pieces = [checkpoint(encode, i, j, anchor, use_reentrant=False) for i, j in chunks(0, length, frame_chunk)]
    x, _ = model.advance(torch.cat(pieces, dim=1), model.initial_state(batch.target.shape[0]))
    loss = F.cross_entropy(model.output(x).flatten(0, 1), batch.target.flatten())
    loss.backward()
    return loss.item()


def backward(cell: PassConfig, model: ActionModel, batch: LazyBatch) -> float:
    """One backward pass in the way of ``cell``; returns the loss in nats."""
    model.zero_grad()
    if cell.way == "plain":
        return plain_backward(model, batch)
    if cell.way == "checkpointed":
        return checkpointed_backward(model, batch, cell.frame_chunk)
    return streaming_backward(model, batch, frame_chunk=cell.frame_chunk, state_every=cell.state_every)


def _open(cell: PassConfig) -> tuple[Windows, ActionModel]:
    windows = Windows([Recording(Path(path)) for path in cell.recordings], ActionTokenizer.load(Path(cell.tokenizer)))
    shape = {name: getattr(cell, name) for name in ("codes", "width", "poolings", "head_blocks", "layers", "frame_head")}
    return windows, ActionModel(ModelConfig(windows.rows, windows.cols, windows.vocab_size, heads=1, **shape))


def compare_gradients(config: dict, length: int, frame_chunk: int, state_every: int) -> dict[str, float]:
    """Largest difference between the gradients of streaming and of plain autograd in float64, over all parameters.

    :param config: keys of ``PassConfig`` but for way, length and repeats
    """
    changes = {"way": "plain", "length": length, "repeats": 1, "frame_chunk": frame_chunk, "state_every": state_every}
    cell = PassConfig.model_validate(config | changes)
    windows, model = _open(cell)
    model.double()
    batch = windows.draw(np.random.default_rng(length), 2, length)
    found = []
    with deterministic():
        for way in ("plain", "streaming"):
            backward(cell.model_copy(update={"way": way}), model, batch)
            found.append([parameter.grad for parameter in model.parameters()])
    return {
        "length": length, "frame_chunk": frame_chunk, "state_every": state_every,
        "difference": max(float((a - b).abs().max()) for a, b in zip(*found)),
        "largest": max(float(a.abs().max()) for a in found[0]),
    }


def _resident_bytes(highest: bool) -> int:
    """Resident set of this process now, or the highest since the last reset; without Linux's /proc, since the start."""
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS counts bytes
    name = "VmHWM:" if highest else "VmRSS:"
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _reset_highest() -> None:
    if RESET.exists():
        RESET.write_text("5")


def measure(cell: PassConfig) -> dict[str, float]:
    """Measure in this process: loss in nats, peak above base in bytes, median CPU seconds a pass."""
    windows, model = _open(cell)
    with deterministic():
        backward(cell, model, windows.draw(np.random.default_rng(0), cell.batch, 1))
        batch = windows.draw(np.random.default_rng(1), cell.batch, cell.length)
        base = _resident_bytes(highest=False)
        _reset_highest()
        seconds = []
        for _ in range(cell.repeats):
            started = time.process_time()
            loss = backward(cell, model, batch)
            seconds.append(time.process_time() - started)
    return {"loss": loss, "peak_bytes": _resident_bytes(highest=True) - base, "cpu_seconds": statistics.median(seconds)}


def measure_apart(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Cell of a grid: `measure` in a process of its own, because memory once taken is rarely given back.

    :raises RuntimeError: that process failed; the message holds its last line
    """
    PassConfig.model_validate(config)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "fbam.training.memory", json.dumps(config)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise RuntimeError(f"a pass at L = {config['length']} ({config['way']}) failed: {(done.stderr.strip() or 'killed').splitlines()[-1]}")
    measured = json.loads(done.stdout)
    tick(1.0)
    return {"loss": measured.pop("loss")}, measured


if __name__ == "__main__":
    print(json.dumps(measure(PassConfig.model_validate_json(sys.argv[1]))))
