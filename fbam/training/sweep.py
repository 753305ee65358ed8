r"""One run of the scaling study, and what it makes of 32 positions afterwards (paper, section 10.5, appendices E to I).

A run is a training like any other (`loop.train_cell`) with one more choice, `labels`: with "one", the loss of each window is that of
one position drawn at random,

$$\mathrm{loss} = -\frac{1}{B} \sum_{b=1}^{B} \ln p(a_{b,t_b} \mid x_{b,1}, \dots, x_{b,t_b}), \qquad t_b \sim \{1, \dots, L\}$$

so that a longer L brings no more labels an update, only frames before the one that is asked for. Windows and their order are the
same with either choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch.optim import Optimizer

from fbam.models.action_model import ActionModel
from fbam.training.checkpoint import load_model, training_config
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.evaluation import score
from fbam.training.flattened import FlattenedShape, FlattenedTransformer, WithActions
from fbam.training.loop import CellConfig, TrainingError, train_cell
from fbam.training.windows import DrawnOtherwise, LazyBatch, Windows

UNLABELLED = -100
"""Target that `cross_entropy` leaves out of its mean."""
FLATTENED = "flattened"
"""Name of the main model that is a causal Transformer on flattened frames."""
ENDS = 4
"""Positions at either end of a window that appendix H compares with the mean."""
BATCH = 16
"""Windows read at a time in an evaluation."""


class OneLabel(DrawnOtherwise):
    """Windows of which each draw keeps the label of one random position a window."""

    def draw(self, rng: np.random.Generator, batch: int, length: int) -> LazyBatch:
        """Draw as `Windows.draw` does with the same generator, and then the positions."""
        drawn = self._windows.draw(rng, batch, length)
        target = torch.full_like(drawn.target, UNLABELLED)
        rows, kept = torch.arange(batch), torch.from_numpy(rng.integers(length, size=batch))
        target[rows, kept] = drawn.target[rows, kept]
        return replace(drawn, target=target)


class SweepConfig(CellConfig):
    """Configuration of one run: that of a training, and which positions have a label.

    A third main model, `flattened`, is no main model behind a frame head but a causal Transformer over all cells (`flattened`).
    """

    labels: Literal["all", "one"]

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if self.labels == "one" and self.frame_chunk:
            raise ValueError("labels: one needs frame_chunk 0, because streaming divides by all positions")
        if self.main == FLATTENED and (self.frame_chunk or self.labels == "one"):
            raise ValueError(f"main: {FLATTENED} needs frame_chunk 0 and labels: all")
        return self

    def windows(self) -> tuple[Windows, Windows]:
        """As `CellConfig.windows`, the training part with the labels asked for, and the actions where the model is shown them."""
        train, held_out = super().windows()
        if self.main == FLATTENED:
            return WithActions(train), held_out
        return (OneLabel(train) if self.labels == "one" else train), held_out

    def build(self, windows: Windows) -> tuple[ActionModel | FlattenedTransformer, list[Optimizer]]:
        """As `CellConfig.build`."""
        if self.main != FLATTENED:
            return super().build(windows)
        shape = {name: getattr(self, name) for name in ("codes", "width", "heads", "layers", "length")}
        model = FlattenedTransformer(FlattenedShape(windows.rows * windows.cols, windows.vocab_size, **shape), self.seed).to(self.device)
        return model, self.optimisers(model)


def sweep_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one run; see `loop.train_cell`.

    :param config: the keys of ``SweepConfig``, JSON values
    """
    return train_cell(config, folder, tick, kind=SweepConfig)


class PositionConfig(TrainingConfig):
    """Configuration of one evaluation by position; all keys are required, as JSON values."""

    ERROR = TrainingError
    TRAINING = "an evaluation by position"

    model: str  # folder of the run; for a grid its name has the hash of configuration, code and versions in it
    part: Literal["train", "held out"]  # the paper's appendix H samples from the training set
    windows: int = Field(ge=2)
    length: int = Field(ge=2 * ENDS)


def position_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Evaluate one run on windows of one length, spread evenly over a part of its recordings.

    :param config: the keys of ``PositionConfig``, JSON values
    :returns: mean loss and top-1 a position, and for each window its mean loss over all, the first and the last ``ENDS`` positions
    """
    wanted, started = PositionConfig.parse(config), time.process_time()
    with deterministic():
        model, _ = load_model(Path(wanted.model))
        parts = dict(zip(("train", "held out"), SweepConfig.parse(training_config(Path(wanted.model))).windows(), strict=True))
        scores = score(model, parts[wanted.part].spread(wanted.windows, wanted.length, BATCH))
    result = {
        "windows": int(scores.loss.shape[0]),
        "loss_by_position": scores.loss.mean(axis=0).tolist(),
        "top1_by_position": scores.hit.mean(axis=0).tolist(),
        "all": scores.loss.mean(axis=1).tolist(),
        "first": scores.loss[:, :ENDS].mean(axis=1).tolist(),
        "last": scores.loss[:, -ENDS:].mean(axis=1).tolist(),
    }
    return result, {"cpu_seconds": time.process_time() - started}
