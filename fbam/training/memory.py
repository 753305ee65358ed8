r"""What one backward pass needs in memory and time, against the trained length L (paper, section 10.3).

Three ways to the same gradients: `plain` autograd keeps all activations, `checkpointed` autograd recomputes the frame heads
but keeps the main model's activations over all L positions, `streaming` keeps chunks of both. All call the head on equally
many frames wherever a graph is kept.

Memory is measured in a fresh process: it builds the model, makes one pass at L = 1 so that libraries and buffers are in place, and
takes the highest resident set of the pass that follows above the resident set before it. Blocks above 128 KiB go back to the system
when freed (``RETURNED_AT_ONCE``): else the C library keeps what was freed, between what is in use, and the resident set also grows with
the number of passes and not with what a pass needs. That makes passes slower, so times are measured elsewhere, by `turns_cell`: in
one process that keeps what it frees, as every training does, the ways in turns.

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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from fbam.models.action_model import ActionModel, ModelConfig
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.determinism import deterministic
from fbam.training.streaming import chunks, streaming_backward
from fbam.training.windows import LazyBatch, Windows

WAYS = ("plain", "checkpointed", "streaming")
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RETURNED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Environment of a process whose memory is measured: glibc's first thresholds, in bytes, which naming them keeps from rising by themselves
(``man mallopt``). Other C libraries do not read it."""


class Setting(BaseModel):
    """Data, model and sizes of a pass; all keys are required, as JSON values."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    recordings: list[str] = Field(min_length=1)
    tokenizer: str
    data: str  # fingerprint of these files
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


class PassConfig(Setting):
    """One measurement of memory."""

    way: str = Field(pattern=f"^({'|'.join(WAYS)})$")


class TurnsConfig(Setting):
    """One measurement of times: the ways to compare, and how often each is run."""

    ways: list[str] = Field(min_length=1)
    rounds: int = Field(ge=1)


def chunked_backward(model: ActionModel, batch: LazyBatch, frame_chunk: int) -> float:
    """Plain autograd with the frame heads called on as many frames at a time as streaming calls them on; returns the loss in nats."""
    length = batch.target.shape[1]
    x = torch.cat([model.encode(*batch.frames(i, j)) for i, j in chunks(0, length, frame_chunk)], dim=1)
    x, _ = model.advance(x, model.initial_state(batch.target.shape[0]))
    loss = F.cross_entropy(model.output(x).flatten(0, 1), batch.target.flatten())
    loss.backward()
    return loss.item()


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


def backward(cell: Setting, way: str, model: ActionModel, batch: LazyBatch) -> float:
    """One backward pass in one of ``WAYS``; returns the loss in nats."""
    model.zero_grad()
    if way == "plain":
        return chunked_backward(model, batch, cell.frame_chunk)
    if way == "checkpointed":
        return checkpointed_backward(model, batch, cell.frame_chunk)
    return streaming_backward(model, batch, frame_chunk=cell.frame_chunk, state_every=cell.state_every)


def _open(cell: Setting) -> tuple[Windows, ActionModel]:
    windows = Windows([Recording(Path(path)) for path in cell.recordings], ActionTokenizer.load(Path(cell.tokenizer)))
    shape = {name: getattr(cell, name) for name in ("codes", "width", "poolings", "head_blocks", "layers", "frame_head")}
    return windows, ActionModel(ModelConfig(windows.rows, windows.cols, windows.vocab_size, heads=1, **shape))


def compare_gradients(config: dict, length: int, frame_chunk: int, state_every: int) -> dict[str, float]:
    """Largest difference between the gradients of streaming and of plain autograd in float64, over all parameters.

    :param config: keys of ``Setting`` but for length
    """
    cell = Setting.model_validate(config | {"length": length, "frame_chunk": frame_chunk, "state_every": state_every})
    windows, model = _open(cell)
    model.double()
    batch = windows.draw(np.random.default_rng(length), 2, length)
    found = []
    with deterministic():
        for way in ("plain", "streaming"):
            backward(cell, way, model, batch)
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
    """Measure in this process: loss in nats, peak above base in bytes."""
    windows, model = _open(cell)
    with deterministic():
        backward(cell, cell.way, model, windows.draw(np.random.default_rng(0), cell.batch, 1))
        batch = windows.draw(np.random.default_rng(1), cell.batch, cell.length)
        base = _resident_bytes(highest=False)
        _reset_highest()
        loss = backward(cell, cell.way, model, batch)
    return {"loss": loss, "peak_bytes": _resident_bytes(highest=True) - base}


def measure_apart(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Cell of a grid: `measure` in a process of its own, because memory once taken is rarely given back.

    :raises RuntimeError: that process failed; the message holds its last line
    """
    PassConfig.model_validate(config)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "fbam.training.memory", json.dumps(config)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | RETURNED_AT_ONCE
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"a pass at L = {config['length']} ({config['way']}) failed: {(done.stderr.strip() or 'killed').splitlines()[-1]}")
    measured = json.loads(done.stdout)
    tick(1.0)
    return {"loss": measured.pop("loss")}, measured


def in_turns(runs: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Median processor seconds of each, one of each after the other in each round, so that a change of the machine meets all."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, seconds, strict=True):
            started = time.process_time()
            run()
            found.append(time.process_time() - started)
    return [statistics.median(found) for found in seconds]


def turns_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Cell of a grid: the times of several ways at one length, in turns.

    :param config: the keys of ``TurnsConfig``, JSON values
    :returns: nothing that the configuration fixes; ``cpu_seconds``, a way: median processor seconds of a pass; ``loading_seconds``:
        those of decoding all frames once, in the pieces in which the passes ask for them
    """
    cell = TurnsConfig.model_validate(config)
    with deterministic():
        windows, model = _open(cell)
        warm = windows.draw(np.random.default_rng(0), cell.batch, min(cell.length, cell.state_every))
        batch = windows.draw(np.random.default_rng(1), cell.batch, cell.length)
        for way in cell.ways:
            backward(cell, way, model, warm)
        passes = [partial(backward, cell, way, model, batch) for way in cell.ways]
        pieces = chunks(0, cell.length, cell.frame_chunk)
        loading, *seconds = in_turns([lambda: [batch.frames(i, j) for i, j in pieces], *passes], cell.rounds)
    tick(1.0)
    return {}, {"cpu_seconds": dict(zip(cell.ways, seconds)), "loading_seconds": loading}


if __name__ == "__main__":
    print(json.dumps(measure(PassConfig.model_validate_json(sys.argv[1]))))
