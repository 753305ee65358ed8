"""What training costs, against its targets (paper, section 10.3): ``fbam bench --only streaming``.

Everything runs on recordings made here, of a typist in a scrolling window, so that the numbers do not hang on what a pipeline has
compiled. Ratios are of measurements taken in turns in one process, or in fresh processes where memory is asked for (``memory.py`` says how).
Times are processor seconds of one thread, freed memory kept by the process as in every training.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fbam.experiments.allocator import keep_freed_memory
from fbam.models.action_model import ActionModel, ModelConfig
from fbam.recording.cells import REVERSE, blank
from fbam.recording.format import Recording, RecordingWriter
from fbam.recording.tokens import ActionTokenizer
from fbam.training.determinism import deterministic
from fbam.training.loop import fingerprint, plain_backward, train_step
from fbam.training.memory import chunked_backward, in_turns, measure_apart
from fbam.training.optim import optimisers
from fbam.training.streaming import streaming_backward
from fbam.training.windows import LazyBatch, Windows

ROWS, COLS, WIDTH, CODES, VOCABULARY = 12, 40, 64, 128, 320
PAIRS = 8000
"""Pairs of the typist's recording."""
ROUNDS = 15
"""Rounds of the times that are compared, which differ by less than single measurements do on a busy machine."""
TARGETS = {  # name -> bound, as text and as a test
    "time of streaming over plain autograd, largest": ("<= 1.4", lambda value: value <= 1.4),
    "plain autograd's peak at L = 16, MB": (">= 500", lambda value: value >= 500),
    "streaming's own peak, L = 1024 over L = 16": ("<= 1.25", lambda value: value <= 1.25),
    "plain autograd's peak at L = 256 over streaming's own at L = 1024": (">= 50", lambda value: value >= 50),
    "share of data loading in a step": ("<= 0.1", lambda value: value <= 0.1),
    "frames a second of a whole step over those of its frame head": (">= 0.9", lambda value: value >= 0.9),
}


@dataclass(frozen=True)
class Material:
    """Recordings of a typist and what reads them."""

    recording: Path
    tokenizer: Path

    @classmethod
    def write(cls, folder: Path, pairs: int) -> Material:
        """Type random words into a window of 12 x 40 cells that scrolls."""
        rng = np.random.default_rng(0)
        words = ["".join(chr(97 + letter) for letter in rng.integers(26, size=size)) for size in rng.integers(2, 9, size=200)]
        text = " ".join(rng.choice(words, size=pairs // 4))[: pairs - 1] + "\r"
        made = cls(folder / "typist.fbam", folder / "tokenizer.json")
        with RecordingWriter(made.recording, ROWS, COLS, block_frames=128, header={"source": "bench"}) as writer:
            for typed, action in enumerate(text):
                writer.append(_window(text, typed), action)
            writer.mark_commit("0", "typed")
        ActionTokenizer.train([list(text)], VOCABULARY).save(made.tokenizer)
        return made

    def windows(self) -> Windows:
        """All windows."""
        return Windows([Recording(self.recording)], ActionTokenizer.load(self.tokenizer))


def _window(text: str, typed: int) -> np.ndarray:
    """The last lines of the first `typed` characters with a cursor behind them, (R, C)."""
    frame, top = blank(ROWS, COLS), max(0, typed // COLS - ROWS + 1) * COLS
    flat, shown = frame.reshape(-1), text[top:typed]
    flat["code"][: len(shown)] = [ord(character) for character in shown]
    flat["style"][len(shown)] = REVERSE
    return frame


def model_for(windows: Windows, head: str) -> ActionModel:
    """The model of the measurements, P = 2, L_t = 1, L_s = 2."""
    return ActionModel(ModelConfig(windows.rows, windows.cols, windows.vocab_size, codes=CODES, width=WIDTH, heads=1, poolings=2,
                                   head_blocks=1, layers=2, frame_head=head))


def time_row(windows: Windows, head: str, frame_chunk: int, length: int = 16, batch: int = 4) -> dict[str, Any]:
    """Streaming against plain autograd at equal chunk size."""
    model, drawn = model_for(windows, head), windows.draw(np.random.default_rng(0), batch, length)
    runs = [
        lambda: chunked_backward(model, drawn, frame_chunk),
        lambda: streaming_backward(model, drawn, frame_chunk=frame_chunk, state_every=16),
    ]
    in_turns(runs, 1)  # warms up
    plain, streaming = in_turns(runs, ROUNDS)
    return {"head": head, "L": length, "batch": batch, "frames_a_call": batch * frame_chunk, "plain_seconds": plain,
            "streaming_seconds": streaming, "ratio": streaming / plain}


def memory_rows(material: Material, folder: Path, batch: int = 44) -> list[dict[str, Any]]:
    """Peak above base of one pass, each in a fresh process; the convolution head, as it fills memory fastest."""
    same = {"recordings": [str(material.recording)], "tokenizer": str(material.tokenizer), "frame_head": "conv", "batch": batch,
            "data": fingerprint([material.recording], material.tokenizer), "width": WIDTH, "poolings": 2, "head_blocks": 1, "layers": 2,
            "codes": CODES, "frame_chunk": 1, "state_every": 16}
    rows = []
    for way, length in [("plain", 16), ("plain", 256), ("streaming", 16), ("streaming", 1024)]:
        _, measured = measure_apart(same | {"way": way, "length": length}, folder, lambda share: None)
        declared = 4 * length * batch * WIDTH if way == "streaming" else 0
        rows.append({"way": way, "L": length, "batch": batch, "peak_bytes": measured["peak_bytes"], "declared_bytes": declared})
    return rows


def step_row(windows: Windows, batch: int = 16, length: int = 16) -> dict[str, Any]:
    """A whole step of the convolution model, its share of data loading, and the frame head alone on the same frames."""
    model = model_for(windows, "conv")
    both, rng = optimisers(model, model.output), np.random.default_rng(0)
    whole = windows.sample(rng, batch, length)
    frames = [channel.flatten(0, 1) for channel in whole.frames]

    def load() -> LazyBatch:
        drawn = windows.draw(rng, batch, length)
        drawn.frames(0, length)
        return drawn

    def step() -> None:
        drawn = windows.draw(rng, batch, length)
        train_step(model, both, lambda: plain_backward(model, drawn))

    runs = [load, step, lambda: model.head(*frames).sum().backward()]
    in_turns(runs, 1)  # warms up
    loading, taken, head = in_turns(runs, ROUNDS)
    return {"head": "conv", "batch": batch, "L": length, "step_seconds": taken, "loading_seconds": loading, "head_seconds": head,
            "frames_a_second": batch * length / taken, "head_frames_a_second": batch * length / head}


def bench(options: object = None) -> dict[str, Any]:
    """Measure all targets.

    :param options: of the command line; none are used
    :returns: `targets` (name, measured, bound, met), and the rows they are computed from: `time`, `memory`, `step`
    """
    keep_freed_memory()
    with tempfile.TemporaryDirectory(prefix="fbam-bench-") as name, deterministic():
        material = Material.write(Path(name), PAIRS)
        windows = material.windows()
        times = [time_row(windows, head, chunk) for head in ("attention", "conv") for chunk in (1, 4)]
        step = step_row(windows)
        memory = memory_rows(material, Path(name))
    own = {(row["way"], row["L"]): row["peak_bytes"] - row["declared_bytes"] for row in memory}
    values = [
        max(row["ratio"] for row in times),
        own["plain", 16] / 1e6,
        own["streaming", 1024] / own["streaming", 16],
        own["plain", 256] / own["streaming", 1024],
        step["loading_seconds"] / step["step_seconds"],
        step["head_seconds"] / step["step_seconds"],
    ]
    targets = [{"name": name, "measured": value, "bound": bound, "met": passes(value)}
               for (name, (bound, passes)), value in zip(TARGETS.items(), values, strict=True)]
    return {"targets": targets, "time": times, "memory": memory, "step": step}
