r"""Training of one model on walks through the maze (paper, sections 8.1.2 to 8.1.4).

A step draws B new walks of the training part and asks for the position after each move. The position is the target alone; the
input holds intents and results. Two heads: regression of row and column, counted from the start in cells (the paper), where
an answer counts when both round to the true ones,

$$\mathrm{loss} = \frac{1}{2 B T} \sum_{b,t} \lVert y_{b,t} - (\mathrm{row}, \mathrm{column})_{b,t} \rVert^2$$

and classification, with the sum of the cross entropies of row and column. Validation and test walks are the same for all runs
and share no sequence of intents with each other or with training.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.models.running_sum import RunningSum
from fbam.models.sequence_stack import SequenceStack
from fbam.tasks import maze
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.noisy_start import NoisyStart
from fbam.training.supervised import Batch, fit

STREAMS = {"train": 0, "validation": 1, "seen": 2, "test": 3}  # `seen`: walks of the training part, to measure on
EVALUATION_BATCH = 250  # walks a forward pass
LOSS_EVERY = 10  # steps a stored loss is the mean of


class WalkError(ValueError):
    """The configuration is not one of a training on walks; the message names the key."""


class WalkConfig(TrainingConfig):
    """Configuration of one training; all keys are required, as JSON values."""

    ERROR = WalkError
    TRAINING = "a training on walks"

    size: int
    opened: float
    maze_seed: int = Field(ge=0)
    family: str  # a family of fbam.sequence, or `sum`
    layers: int = Field(ge=1)
    width: int = Field(ge=1)
    tokens: Literal[1, 2]  # a move
    head: Literal["regression", "classification"]
    moves: int = Field(ge=1)
    withheld: int | list[float]  # exactly so many results, or a probability drawn from these once a walk
    longer: int = Field(ge=1)  # the test is repeated on walks so many times as long
    initial_noise: float = Field(ge=0)  # standard deviation of the state a recurrent model starts training walks from
    seed: int = Field(ge=0)
    lr: float = Field(gt=0)
    steps: int = Field(ge=1)
    batch: int = Field(ge=1)
    evaluate_every: int = Field(ge=1)
    validation_walks: int = Field(ge=1)
    test_walks: int = Field(ge=0)  # 0: a run that only serves a choice and must not see the test set

    def build_model(self) -> nn.Module:
        """The untrained model: (B, T, 1) int64 to (B, T, 2) coordinates, or to row and column logits side by side."""
        inputs = maze.ONE_TOKEN_SYMBOLS if self.tokens == 1 else maze.TWO_TOKEN_SYMBOLS
        outputs = 2 if self.head == "regression" else 2 * self.size
        if self.family == "sum":
            return RunningSum(inputs, self.width, outputs, self.seed)
        longest = self.tokens * self.moves * self.longer
        return SequenceStack(self.family, self.width, self.layers, inputs, outputs, self.seed, max_length=longest)

    def tests(self) -> list[tuple[int, int | list[float]]]:
        """(moves, withheld) of each test: each probability by itself; the exact number also on longer walks, in proportion."""
        if isinstance(self.withheld, list):
            return [(self.moves, [p]) for p in self.withheld]
        return [(self.moves, self.withheld)] + [(self.moves * self.longer, self.withheld * self.longer)] * (self.longer > 1)


def encode(walks: maze.Walks, tokens: int) -> Tensor:
    """What a model is shown, (N, tokens * T, 1) int64; of `walks`, intents and results alone are read."""
    symbols = maze.one_token(walks) if tokens == 1 else maze.two_tokens(walks)
    return torch.from_numpy(symbols).unsqueeze(-1)


def asked(positions: Tensor, tokens: int) -> Tensor:
    """The positions, (N, tokens * T, ...) to (N, T, ...), at which a move is complete."""
    return positions[:, tokens - 1 :: tokens]


def to_batch(walks: maze.Walks, world: maze.Maze, tokens: int) -> Batch:
    """Inputs, coordinates from the start as targets (N, tokens * T, 2), and the mask of completed moves."""
    inputs = encode(walks, tokens)
    targets = torch.from_numpy(maze.coordinates(walks.cells, world)).repeat_interleave(tokens, dim=1)
    mask = torch.zeros(inputs.shape[:2], dtype=torch.bool)
    asked(mask, tokens)[:] = True
    return Batch(inputs, targets, mask)


def regression_loss(outputs: Tensor, batch: Batch) -> Tensor:
    """Mean squared error of row and column, in cells squared."""
    return F.mse_loss(outputs[batch.mask], batch.targets[batch.mask].to(outputs.dtype))


def classification_loss(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross entropy of the row plus that of the column, in nats; outputs: (B, T, 2 size)."""
    rows, columns = outputs[batch.mask].chunk(2, dim=-1)  # (M, size) each
    place = batch.targets[batch.mask] + rows.shape[-1] // 2  # (M, 2), counted from the corner
    return F.cross_entropy(rows, place[:, 0]) + F.cross_entropy(columns, place[:, 1])


def decode(outputs: Tensor, head: str) -> Tensor:
    """The coordinates, (..., 2) int64 from the start, that a model's outputs stand for."""
    if head == "regression":
        return outputs.round().long()
    return torch.stack([part.argmax(dim=-1) - part.shape[-1] // 2 for part in outputs.chunk(2, dim=-1)], dim=-1)


def right(model: nn.Module, walks: maze.Walks, world: maze.Maze, tokens: int, head: str) -> np.ndarray:
    """(N, T) of bool: after which moves the model's answer is the true cell."""
    truth = torch.from_numpy(maze.coordinates(walks.cells, world))
    answers = [decode(asked(model(inputs), tokens), head) for inputs in encode(walks, tokens).split(EVALUATION_BATCH)]
    return (torch.cat(answers) == truth).all(dim=-1).numpy()


def tally(correct: np.ndarray, withheld_so_far: np.ndarray) -> dict[str, list[int]]:
    """Counts by move, and by the number of withheld results so far; both (N, T)."""
    depth = withheld_so_far.ravel()
    return {
        "by_move": correct.sum(axis=0).tolist(),
        "by_withheld": np.bincount(depth, weights=correct.ravel()).astype(int).tolist(),
        "n_by_withheld": np.bincount(depth).tolist(),
    }


class _Study:
    """The walks of one configuration."""

    def __init__(self, cell: WalkConfig) -> None:
        self.cell, self.maze = cell, maze.build_maze(cell.size, cell.opened, cell.maze_seed)
        self.validation = self.draw("validation", cell.validation_walks)

    def draw(self, stream: str, count: int, moves: int = 0, withheld: Any = None, key: tuple[int, ...] = ()) -> maze.Walks:
        rng = np.random.default_rng([STREAMS[stream], *key])
        part = "train" if stream == "seen" else stream
        return maze.sample(self.maze, rng, count, moves or self.cell.moves, self.cell.withheld if withheld is None else withheld, part)

    def batch(self, step: int) -> Batch:
        return to_batch(self.draw("train", self.cell.batch, key=(self.cell.seed, step)), self.maze, self.cell.tokens)

    def right(self, model: nn.Module, walks: maze.Walks) -> np.ndarray:
        return right(model, walks, self.maze, self.cell.tokens, self.cell.head)

    def accuracy(self, model: nn.Module, walks: maze.Walks) -> dict[str, float]:
        correct = self.right(model, walks)
        return {"accuracy": float(correct.mean()), "last": float(correct[:, -1].mean())}

    def test(self, model: nn.Module) -> list[dict]:
        found = []
        for moves, withheld in self.cell.tests():
            count = max(1, self.cell.test_walks * self.cell.moves // moves)  # as many moves in all
            walks = self.draw("test", count, moves, withheld)
            found.append({"moves": moves, "withheld": withheld, "walks": count} | tally(self.right(model, walks), walks.withheld_so_far))
        return found


@torch.no_grad()
def _final(study: _Study, model: nn.Module) -> dict[str, Any]:
    """Accuracy on walks of the training part, and every test."""
    model.eval()
    seen = study.draw("seen", study.cell.validation_walks)
    return {"train": study.accuracy(model, seen), "tests": study.test(model) if study.cell.test_walks else []}


def walk_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one model on walks and measure it.

    :param config: the keys of ``WalkConfig``, JSON values
    :param folder: not used; a run is too short for checkpoints
    :param tick: called after each step with the share of the steps done
    :returns: parameters, mean losses, the validation curve, accuracy on seen walks and the tests; and processor seconds
    :raises WalkError: a wrong configuration
    """
    cell = WalkConfig.parse(config)
    study, model = _Study(cell), cell.build_model()
    trained = NoisyStart.around(model, cell.initial_noise, cell.seed)
    curve, seconds = fit(
        trained, study.batch, steps=cell.steps, lr=cell.lr, schedule="cosine", warm_up=min(50, cell.steps // 4), tick=tick,
        loss=regression_loss if cell.head == "regression" else classification_loss,
        evaluate=lambda step: study.accuracy(model, study.validation), evaluate_every=cell.evaluate_every,
    )
    started = time.process_time()
    with deterministic():
        final = _final(study, model)
    means = [statistics.fmean(curve.losses[i : i + LOSS_EVERY]) for i in range(0, len(curve.losses), LOSS_EVERY)]
    result = {"parameters": model.parameter_count, "losses": means, "curve": curve.evaluations, **final}
    measured = {"cpu_seconds": sum(seconds), "cpu_seconds_a_step": statistics.median(seconds),
                "test_cpu_seconds": time.process_time() - started}
    return result, measured
