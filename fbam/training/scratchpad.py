"""The control that should succeed: a model that writes the state out as it reads (paper, section 9).

The sequence alternates blocks and states: block 1, the state after it, block 2, the state after it, ... A state is one of those of
the finite automaton (two registers, blocks still to skip, or halted: 18). In training the states are given and the model predicts
the state after each block; in testing it reads its own. Each prediction needs the last two tokens only, so no depth is asked of the
model: the serial work has moved into the decoding, one token after the other.
"""

from __future__ import annotations

import statistics as stats
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fbam.models.sequence_stack import SequenceStack
from fbam.tasks.frjt import SPLITS, Programs, Split, run
from fbam.tasks.solvers import serial_states, states_of
from fbam.training.jumps import TRAIN, JumpsConfig, held_out, train_jumps
from fbam.training.supervised import Batch, SupervisedError, fit


class Scratchpad:
    """Sequences of blocks and states, and a model for them.

    :param config: a training of the jumps task with a fixed number of registers and one token a block
    """

    def __init__(self, config: JumpsConfig) -> None:
        if config.registers_per_block or not config.fused:
            raise SupervisedError("a scratchpad needs a fixed number of registers and one token a block")
        self.config, self.task, self.tokenizer = config, config.task, config.tokenizer
        self.states = states_of(self.task.registers, len(self.task.reach))
        sizes = (*self.tokenizer.vocabulary, self.states + 1)  # the last field is the written state, 0 on a block
        length = {"max_length": 2 * config.deepest}
        self.model = SequenceStack(config.family, config.width, config.layers, sizes, self.states, config.seed, **length)

    def blocks(self, programs: Programs) -> Tensor:
        """The tokens of the blocks alone, (N, D, F + 1)."""
        tokens = self.tokenizer.encode(programs)[:, :-1]
        return torch.from_numpy(np.concatenate([tokens, np.zeros_like(tokens[..., :1])], axis=-1))

    def written(self, states: Tensor) -> Tensor:
        """Tokens that write states out, (N, D) to (N, D, F + 1)."""
        tokens = torch.zeros(*states.shape, len(self.tokenizer.vocabulary) + 1, dtype=torch.int64)
        tokens[..., -1] = 1 + states
        return tokens

    def sample(self, step: int) -> Batch:
        """Programs of the full depth with their states, as many as fill the tokens of a step."""
        config, rng = self.config, np.random.default_rng([self.config.seed, TRAIN, step])
        programs = self.task.sample(rng, np.full(max(1, config.tokens // (2 * config.max_depth)), config.max_depth), "train")
        states = torch.from_numpy(serial_states(programs, self.task.registers, len(self.task.reach)))  # (B, D)
        inputs = torch.stack([self.blocks(programs), self.written(states)], dim=2).flatten(1, 2)  # (B, 2 D, F + 1)
        targets = torch.stack([states, torch.zeros_like(states)], dim=2).flatten(1, 2)
        mask = torch.tensor([True, False]).repeat(config.max_depth).expand(targets.shape)
        return Batch(inputs, targets, mask)

    def answers(self, programs: Programs) -> np.ndarray:
        """Run the model on its own states; 1 where the last one is halted in B, 0 in A, -1 where it is neither."""
        state = self.model.initial_state(len(programs))
        written = torch.zeros(len(programs), dtype=torch.int64)
        for position, block in enumerate(self.blocks(programs).unbind(1)):  # (N, F + 1)
            logits, state = self.model.step(block, state)
            written = logits.argmax(-1)
            if position + 1 < programs.fields.shape[1]:
                _, state = self.model.step(self.written(written), state)
        return np.maximum(written.numpy() - (self.states - 2), -1)

    def score(self, depth: int, split: Split, count: int) -> dict[str, Any]:
        """Programs of one depth and split answered right."""
        programs = held_out(self.task, depth, split, count)
        self.model.eval()
        with torch.no_grad():
            correct = int((self.answers(programs) == run(programs).halts).sum())
        return {"depth": depth, "split": split, "n": count, "correct": correct}


def train_scratchpad(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one model with states written out at `max_depth` and test it on its own states.

    :param config: the keys of `JumpsConfig`; its curriculum is not used, as every block is supervised
    :returns: parameters, mean losses of each `check_every` steps, and scores as those of `train_jumps` but without a loss
    """
    parsed = JumpsConfig.parse(config)
    pad = Scratchpad(parsed)
    settings = {name: getattr(parsed, name) for name in ("steps", "lr", "weight_decay", "schedule", "warm_up", "grad_clip")}
    curve, seconds = fit(pad.model, pad.sample, tick=tick, **settings)
    every = parsed.check_every
    result = {
        "parameters": pad.model.parameter_count,
        "losses": [stats.fmean(curve.losses[at : at + every]) for at in range(0, parsed.steps, every)],
        "scores": [pad.score(depth, split, parsed.scored(split)) for depth in parsed.test_depths for split in SPLITS],
    }
    return result, {"cpu_seconds": sum(seconds), "cpu_seconds_a_step": stats.fmean(seconds)}


def train_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """`train_scratchpad` where `scratchpad` is set, `train_jumps` otherwise: the cell function of the study."""
    train = train_scratchpad if JumpsConfig.parse(config).scratchpad else train_jumps
    return train(config, folder, tick)
