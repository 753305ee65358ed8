"""Models looked at rather than trained, for the page on the model (paper, section 10.2)."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from fbam.experiments.rows import PartRow
from fbam.models.action_model import ActionModel, ModelConfig
from fbam.models.census import census
from fbam.training.windows import Windows, open_windows

PAPER = {"rows": 48, "cols": 160, "vocab_size": 20_000, "width": 768, "heads": 12, "poolings": 2, "head_blocks": 3, "layers": 2}
"""Sizes of section 10.4 and appendix J; heads are our choice."""


def _open(data: dict) -> Windows:
    return open_windows(data["recordings"], data["tokenizer"], 0.2)[0]


def model_on(data: dict, shape: dict) -> ActionModel:
    """An untrained model for the frames and actions of some recordings.

    :param data: `recordings` and `tokenizer`, paths
    :param shape: the other values of ``ModelConfig``
    """
    windows = _open(data)
    return ActionModel(ModelConfig(rows=windows.rows, cols=windows.cols, vocab_size=windows.vocab_size, **shape))


def paper_model(codes: int = 128) -> ActionModel:
    """The model at the paper's sizes, of shapes alone: no value is ever allocated."""
    with torch.device("meta"):
        return ActionModel(ModelConfig(codes=codes, **PAPER))


def part_rows(model: ActionModel) -> list[PartRow]:
    """One row a part, for one frame."""
    return [PartRow(part=part.name, inputs=_product(part.inputs), outputs=_product(part.outputs), repeats=part.repeats,
                    parameters=part.parameters, flops=part.flops) for part in census(model)]


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


@torch.no_grad()
def first_loss(model: ActionModel, data: dict, batch: int = 32, length: int = 4) -> float:
    """Cross entropy of an untrained model on windows of its recordings, in nats."""
    drawn = _open(data).sample(np.random.default_rng(0), batch, length)
    return F.cross_entropy(model(*drawn.frames).flatten(0, 1), drawn.target.flatten()).item()


def training_on(data: dict, shape: dict, length: int, batch: int, steps: int) -> dict:
    """A configuration of `CellConfig` whose step is the ordinary one and whose result nobody needs."""
    rates = {"muon_lr": 3e-3, "adamw_lr": 3e-4, "adamw_betas": [0.9, 0.95], "weight_decay": 0.01, "schedule": "constant", "warm_up": 0}
    kinds = {"frame_head": "attention", "reduction": "lstm", "main": "lstm", "device": "cpu"}
    rest = {"held_out": 0.2, "checkpoint_every": steps, "frame_chunk": 0, "state_every": 1, "micro_batch": 0, "seed": 0}
    return data | shape | rates | kinds | rest | {"length": length, "batch": batch, "steps": steps}
