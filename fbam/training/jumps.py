"""One model trained and tested on the jumps task (paper, section 8.1.1): the cell function of the study.

The answer is read at the query token after the last block, and nothing else is supervised, as in the paper. Programs are fresh at each
step, or a fixed set a depth. The result holds accuracy and loss a tested depth on training, validation and test programs, which never
overlap, and a curve over the steps.
"""

from __future__ import annotations

import statistics as stats
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn
from torch.nn import functional as F

from fbam.models.sequence_stack import SequenceStack
from fbam.tasks.frjt import SPLITS, Exits, JumpsTask, Programs, Split, run
from fbam.tasks.frjt_tokens import JumpsTokenizer, Labels
from fbam.training.config import TrainingConfig
from fbam.training.curriculum import Curriculum, Kind
from fbam.training.noisy_start import NoisyStart
from fbam.training.supervised import Batch, Schedule, SupervisedError, fit

TRAIN, POOL, CHECK, HELD_OUT = range(4)  # streams of random numbers
CHUNK_TOKENS = 1 << 15  # tokens scored at once


class JumpsConfig(TrainingConfig):
    """Configuration of one training; all keys are required, as JSON values."""

    ERROR = SupervisedError
    TRAINING = "a jumps training"

    family: str
    layers: int = Field(ge=1)
    width: int = Field(ge=1)
    seed: int = Field(ge=0)
    registers: int = Field(ge=1)
    registers_per_block: float = Field(ge=0)
    exits: Exits
    fused: bool
    labels: Labels
    curriculum: Kind
    max_depth: int = Field(ge=1)
    programs: int = Field(ge=0)  # fixed set: programs a depth; 0 = fresh programs at each step
    scratchpad: bool  # states written out, see fbam/training/scratchpad.py
    initial_noise: float = Field(ge=0)  # standard deviation of the state a recurrent model starts training sequences from
    steps: int = Field(ge=1)
    tokens: int = Field(ge=1)  # tokens a step
    lr: float = Field(gt=0)
    weight_decay: float = Field(ge=0)
    schedule: Schedule
    warm_up: int = Field(ge=0)
    grad_clip: float = Field(ge=0)
    advance_at: float = Field(gt=0, le=1)
    check_every: int = Field(ge=1)  # steps between two looks of the curriculum
    check_programs: int = Field(ge=1)
    even_jumps: float = Field(ge=0, le=1)  # share of fresh programs under a curriculum whose jumps of every length are equally likely
    curve_every: int = Field(ge=1)  # steps between two points of the curve, a multiple of check_every
    curve_depths: list[int] = Field(min_length=1)
    test_depths: list[int] = Field(min_length=1)
    test_programs: int = Field(ge=1)

    @property
    def task(self) -> JumpsTask:
        """The task programs are drawn from."""
        return JumpsTask(registers=self.registers, registers_per_block=self.registers_per_block, exits=self.exits)

    def scored(self, split: Split) -> int:
        """Programs a depth that the trained model is scored on: all of the test, as many as a look of the curriculum takes of the others."""
        return self.test_programs if split == "test" else min(self.test_programs, self.check_programs)

    @property
    def deepest(self) -> int:
        """Deepest program that the model will see, in training or testing."""
        return max(self.max_depth, *self.test_depths, *self.curve_depths)

    @property
    def tokenizer(self) -> JumpsTokenizer:
        """The tokenizer for every program of this training."""
        longest = self.deepest if self.labels == "absolute" else len(self.task.reach)
        return JumpsTokenizer(int(self.task.registers_at(self.deepest)), longest, self.fused, self.labels)

    def model(self) -> SequenceStack:
        """The untrained model."""
        tokenizer = self.tokenizer
        length = {"max_length": self.deepest * tokenizer.tokens_a_block + 1}
        return SequenceStack(self.family, self.width, self.layers, tokenizer.vocabulary, 2, self.seed, **length)


def tensors(tokenizer: JumpsTokenizer, programs: Programs) -> Batch:
    """Programs as a batch whose mask is the query token."""
    inputs, query = tokenizer.encode(programs), tokenizer.query(programs)
    rows, targets = np.arange(len(programs)), np.zeros(inputs.shape[:2], np.int64)
    mask = np.zeros(inputs.shape[:2], bool)
    mask[rows, query] = True
    targets[rows, query] = run(programs).halts
    return Batch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(mask))


def score(model: nn.Module, tokenizer: JumpsTokenizer, programs: Programs) -> tuple[float, int]:
    """Mean cross entropy in nats, and the number of programs answered right."""
    size = max(1, CHUNK_TOKENS // (programs.fields.shape[1] * tokenizer.tokens_a_block + 1))
    loss, correct = 0.0, 0
    for start in range(0, len(programs), size):
        batch = tensors(tokenizer, programs[start : start + size])
        logits, targets = model(batch.inputs)[batch.mask], batch.targets[batch.mask]  # (B, 2), (B,)
        loss += F.cross_entropy(logits, targets, reduction="sum").item()
        correct += int((logits.argmax(-1) == targets).sum())
    return loss / len(programs), correct


def held_out(task: JumpsTask, depth: int, split: Split, count: int) -> Programs:
    """Programs of one depth and split, the same for every model and seed; those of the training split are a fresh sample."""
    return task.sample(np.random.default_rng([HELD_OUT, depth, SPLITS.index(split)]), np.full(count, depth), split)


class Training:
    """The programs and measurements of one training."""

    def __init__(self, config: JumpsConfig) -> None:
        self.config, self.task, self.tokenizer = config, config.task, config.tokenizer
        self.even = replace(self.task, reach=(1 / len(self.task.reach),) * len(self.task.reach))
        self.model = config.model()
        self.curriculum = Curriculum(config.curriculum, config.max_depth, config.steps, config.advance_at)
        self.pool = self._fixed_set() if config.programs else None

    def _fixed_set(self) -> dict[int, Programs]:
        rng = np.random.default_rng([self.config.seed, POOL])
        count = self.config.programs
        return {d: self.task.sample(rng, np.full(count, d), "train") for d in range(1, self.config.max_depth + 1)}

    def training_programs(self, rng: np.random.Generator, depths: np.ndarray) -> Programs:
        """Programs of the task to train on: fresh ones, or drawn from the fixed set."""
        if self.pool is None:
            return self.task.sample(rng, depths, "train")
        fields = np.zeros((len(depths), int(depths.max()), 4), np.int16)
        chosen = rng.integers(self.config.programs, size=len(depths))
        for depth in np.unique(depths):
            rows = depths == depth
            fields[rows, :depth] = self.pool[int(depth)].fields[chosen[rows]]
        return Programs(fields, depths)

    def sample(self, step: int) -> Batch:
        """The batch of a step."""
        rng = np.random.default_rng([self.config.seed, TRAIN, step])
        depths = self.curriculum.depths(rng, step, self.config.tokens, self.tokenizer.tokens_a_block)
        programs = self.training_programs(rng, depths)
        if self.pool is None and self.config.curriculum != "mix":
            self._even_out(rng, programs)
        return tensors(self.tokenizer, programs)

    def _even_out(self, rng: np.random.Generator, programs: Programs) -> None:
        """Replace a share of fresh programs by others of their depths in which jumps of every length are equally likely."""
        rows = np.flatnonzero(rng.random(len(programs)) < self.config.even_jumps)
        if rows.size:
            fresh = self.even.sample(rng, programs.depths[rows], "train").fields
            programs.fields[rows] = 0
            programs.fields[rows, : fresh.shape[1]] = fresh

    def evaluate(self, step: int) -> dict[str, Any]:
        """Look whether the deepest programs are mastered; every `curve_every` steps also take a point of the curve."""
        config, deepest = self.config, self.curriculum.deepest
        rng = np.random.default_rng([config.seed, CHECK, step])
        programs = self.training_programs(rng, np.full(config.check_programs, deepest))
        _, correct = score(self.model, self.tokenizer, programs)
        self.curriculum.observe(correct / len(programs))
        point: dict[str, Any] = {"deepest": deepest, "mastered": correct / len(programs)}
        if step % config.curve_every == 0 or step == config.steps:
            for split in ("train", "validation"):
                point[split] = [self._scored(depth, split, config.check_programs) for depth in config.curve_depths]
        return point

    def _scored(self, depth: int, split: Split, count: int) -> dict[str, Any]:
        programs = held_out(self.task, depth, split, count)
        if split == "train" and self.pool is not None and depth in self.pool:
            programs = self.pool[depth][:count]
        loss, correct = score(self.model, self.tokenizer, programs)
        return {"depth": depth, "split": split, "n": len(programs), "correct": correct, "loss": loss}

    def scores(self) -> list[dict[str, Any]]:
        """Accuracy and loss of the model at each tested depth and split."""
        self.model.eval()
        with torch.no_grad():
            return [self._scored(d, split, self.config.scored(split)) for d in self.config.test_depths for split in SPLITS]


def train_jumps(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one model on the jumps task and test it.

    :param config: the keys of `JumpsConfig`
    :returns: parameters, curve, the depth the curriculum reached and a score a tested depth and split; and the processor seconds
        of the training and of a step
    :raises SupervisedError: a wrong configuration
    """
    parsed = JumpsConfig.parse(config)
    training = Training(parsed)
    noisy = NoisyStart.around(training.model, parsed.initial_noise, parsed.seed)
    settings = {name: getattr(parsed, name) for name in ("steps", "lr", "weight_decay", "schedule", "warm_up", "grad_clip")}
    curve, seconds = fit(noisy, training.sample, tick=tick, evaluate=training.evaluate, evaluate_every=parsed.check_every, **settings)
    result = {
        "parameters": training.model.parameter_count,
        "deepest": training.curriculum.deepest,
        "curve": curve.evaluations,
        "scores": training.scores(),
    }
    return result, {"cpu_seconds": sum(seconds), "cpu_seconds_a_step": stats.fmean(seconds)}
