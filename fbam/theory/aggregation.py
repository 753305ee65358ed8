r"""Three ways to aggregate a sequence: a sum, prefix sums, and a serial update; and the scan over maps (paper, section 3, appendix C).

The task is a word of S5: a mark is moved among five places by transpositions and cycles, and its last place is asked for. A sum
knows how often each symbol came and not in which order, so two words with the same counts and different answers refute it:

$$\mathrm{answer}(u) \ne \mathrm{answer}(v), \qquad \mathrm{counts}(u) = \mathrm{counts}(v)$$

A serial update solves it in n steps. So does a scan over the symbols' maps, five places each, in O(log n) rounds: a dense linear
recurrence whose matrices are permutations, the positive control of the probes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import torch
from torch import Tensor

from fbam.sequence.scans import dense_scan
from fbam.theory.cost import CostModel
from fbam.theory.depth import true_depths
from fbam.theory.probes import TASKS, Automaton

MODELS = (CostModel("unbounded", "tree"), CostModel(2, "tree"))
SYMBOLS = torch.eye(2, dtype=torch.float64)


def maps(task: Automaton) -> Tensor:
    """One matrix a symbol, (symbols, states, states), that takes the one-hot state before to the one after."""
    table = torch.tensor(task.table)  # (states, symbols)
    return torch.nn.functional.one_hot(table.T, task.states).double().mT


def by_sum(x: Tensor) -> Tensor:
    """Counts of the symbols in one-hot words, (B, n, symbols) to (B, symbols)."""
    return x.sum(1)


def by_prefix_sums(x: Tensor) -> Tensor:
    """Counts up to each position, (B, n, symbols)."""
    return x.cumsum(1)


def by_loop(x: Tensor) -> Tensor:
    """State after the word, one-hot, (B, states): one product with the symbol's map after the other."""
    transitions = torch.einsum("bns,sij->bnij", x, maps(TASKS["S5"]))
    state = torch.zeros(len(x), 5, 1, dtype=x.dtype).index_fill(1, torch.tensor([0]), 1.0)
    for step in transitions.unbind(1):
        state = step @ state
    return state.squeeze(-1)


def by_scan_over_maps(x: Tensor) -> Tensor:
    """The same as `by_loop`, all prefixes composed by a scan."""
    transitions = torch.einsum("bns,sij->bnij", x, maps(TASKS["S5"]))
    start = torch.zeros(len(x), 5, 1, dtype=x.dtype).index_fill(1, torch.tensor([0]), 1.0)
    return dense_scan(transitions, torch.zeros_like(transitions[..., :1]), start)[:, -1, :, 0]


WAYS = {"sum": by_sum, "prefix sums": by_prefix_sums, "serial": by_loop, "scan over maps": by_scan_over_maps}


def depths(way: str, n: int) -> dict[str, int]:
    """Depth of one way over n symbols, by cost model."""
    found = true_depths(WAYS[way], SYMBOLS[torch.arange(n) % 2][None], models=MODELS, backward=False)
    return {at.model.name: at.depth for at in found}


def same_counts_different_answers(length: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The first two S5 words of a length that a sum cannot tell apart although their answers differ."""
    seen: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {}
    for word in product(range(2), repeat=length):
        answer = int(TASKS["S5"].answers(np.array([word]))[0, -1])
        other, before = seen.setdefault(tuple(sorted(word)), (word, answer))
        if answer != before:
            return other, word
    return None


def word_accuracy(way: str, n: int, words: int, seed: int) -> float:
    """Share of random S5 words of n symbols whose last answer a way gets right.

    From counts the answer is the one seen most often with them among as many other words, which is the best that can be read from them.
    """
    rng = np.random.default_rng([seed, n])
    learn, test = (TASKS["S5"].words(rng, words, n) for _ in range(2))
    answer = TASKS["S5"].answers(test)[:, -1]
    if way in ("serial", "scan over maps"):
        return float((WAYS[way](SYMBOLS[torch.from_numpy(test)]).argmax(-1).numpy() == answer).mean())
    votes: dict[int, Counter] = defaultdict(Counter)
    for count, right in zip(learn.sum(1), TASKS["S5"].answers(learn)[:, -1]):
        votes[int(count)][int(right)] += 1
    guess = [votes[int(count)].most_common(1)[0][0] if votes[int(count)] else 0 for count in test.sum(1)]
    return float((np.array(guess) == answer).mean())
