r"""Three probes of ability, to stand beside depth: parity, a flip-flop, and words of the permutation group S5 (paper, section 8).

A small stack of one family is trained on words of up to n symbols, with the answer asked for at every position, and then tested on
longer ones:

$$y_t = \delta(y_{t-1}, x_t)$$

Parity counts ones modulo 2; the flip-flop recalls the last bit that was written among bits to be ignored; the S5 words move one
marked place among five by the generators of S5, a transposition and a cycle, which is a word problem of a group that is not
solvable. A failure says that this training did not find a solution, not that the family has none (see the notebook).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import torch
from torch.nn import functional as F

from fbam.models.sequence_stack import SequenceStack

TEST_SEQUENCES = 256
STREAM = {"train": 0, "test": 1}


class ProbeError(ValueError):
    """There is no such probe; the message names those there are."""


@dataclass(frozen=True)
class Automaton:
    """A finite automaton: next state for each state and symbol, the share of each symbol in the words, and the start.

    >>> parity = TASKS["parity"]
    >>> parity.answers(np.array([[1, 0, 1, 1]])).tolist()
    [[1, 1, 0, 1]]

    :param table: next state, by state and symbol, (states, symbols)
    :param shares: probability of each symbol
    """

    table: tuple[tuple[int, ...], ...]
    shares: tuple[float, ...]

    @property
    def states(self) -> int:
        """Number of states, which are the answers as well."""
        return len(self.table)

    def words(self, rng: np.random.Generator, count: int, length: int) -> np.ndarray:
        """Random words, (count, length) int64."""
        return rng.choice(len(self.shares), size=(count, length), p=self.shares)

    def answers(self, words: np.ndarray) -> np.ndarray:
        """State after each symbol, from state 0, (count, length) int64."""
        table, state = np.array(self.table), np.zeros(len(words), int)
        answers = np.empty_like(words)
        for t, symbols in enumerate(words.T):
            answers[:, t] = state = table[state, symbols]
        return answers


TASKS = {
    "parity": Automaton(((0, 1), (1, 0)), (0.5, 0.5)),
    # symbols: ignore 0, ignore 1, write 0, write 1
    "flip-flop": Automaton(((0, 0, 0, 1), (1, 1, 0, 1)), (0.4, 0.4, 0.1, 0.1)),
    # symbols: exchange the places 0 and 1; move every place on by one
    "S5": Automaton(((1, 1), (0, 2), (2, 3), (3, 4), (4, 0)), (0.5, 0.5)),
}


def _generator(seed: int, stream: str, step: int) -> np.random.Generator:
    return np.random.default_rng([seed, STREAM[stream], step])


def _batch(task: Automaton, rng: np.random.Generator, count: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    words = task.words(rng, count, length)
    return torch.from_numpy(words), torch.from_numpy(task.answers(words))


def train_probe(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one stack on one probe and test it at its own length and beyond: a grid cell.

    Words have 1 to `length` symbols, drawn uniformly. Every family gets the same steps, batches and words.

    :param config: family, task, width, layers, steps, batch, lr, seed, length (trained, in symbols), test_length
    :returns: accuracy over all positions at the trained length, and over the last quarter of positions at the test length; CPU seconds
    :raises ProbeError: unknown task
    """
    if config["task"] not in TASKS:
        raise ProbeError(f"there is no probe {config['task']!r}; choose one of {', '.join(TASKS)}")
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    start, task, seed = process_time(), TASKS[config["task"]], config["seed"]
    model = SequenceStack(config["family"], config["width"], config["layers"], len(task.shares), task.states, seed,
                          max_length=config["test_length"])
    optimiser = torch.optim.AdamW(model.parameters(), lr=config["lr"], betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(config["steps"]):
        rng = _generator(seed, "train", step)
        x, y = _batch(task, rng, config["batch"], int(rng.integers(1, config["length"] + 1)))
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        tick((step + 1) / config["steps"])
    result = {
        "trained": _accuracy(model, task, seed, config["length"], 0),
        "extended": _accuracy(model, task, seed, config["test_length"], config["test_length"] * 3 // 4),
        "chance": 1 / task.states,
        "parameters": model.parameter_count,
    }
    return result, {"cpu_seconds": process_time() - start}


@torch.no_grad()
def _accuracy(model: SequenceStack, task: Automaton, seed: int, length: int, first: int) -> float:
    """Share of correct answers from position `first` on, over fresh words."""
    x, y = _batch(task, _generator(seed, "test", length), TEST_SEQUENCES, length)
    return float((model(x).argmax(-1) == y)[:, first:].double().mean())
