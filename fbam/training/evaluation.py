r"""Cross entropy and accuracy on held-out windows, beside what counting alone would give (paper, section 10.4.1, appendix H).

Losses are in nats a position. Three references see no frame. The unigram model is smoothed by adding one to each
count; the bigram model knows the token before and falls back on the unigram as far as the pair is new (Witten and Bell
1991), with n the occurrences of the token before and d the number of different tokens seen after it:

$$p(a \mid b) = \frac{n(b, a) + d(b) \, p(a)}{n(b) + d(b)}$$

and the third repeats the token before, with the share of repetitions r seen in training, p(a | b) = r [a = b] + (1 - r) p(a). The
token before the first position of a window is not known to a model that starts there, so all fall back on the unigram there.

Sustained accuracy is the mean number of actions predicted right in a row from the start of a window, at most its length.
Intervals take windows as the independent unit (positions of one window are not) and are Student's at 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fbam.experiments.statistics import mean
from fbam.models.action_model import ActionModel
from fbam.training.streaming import chunks
from fbam.training.windows import Batch, TokenCounts

FRAMES_AT_ONCE = 16
"""Frames of each window that the model reads in one call."""
Predictor = Callable[[TokenCounts, np.ndarray], np.ndarray]
"""From counts of the training part and targets (n, L) to one value a position, (n, L)."""


@dataclass(frozen=True)
class Scores:
    """Per position of n windows of L tokens, (n, L) each: negative log-likelihood of the action, and top-1 hits."""

    loss: np.ndarray
    hit: np.ndarray
    target: np.ndarray


@torch.no_grad()
def score(model: ActionModel, batches: Iterable[Batch]) -> Scores:
    """Evaluate a model on windows of one length."""
    loss, hit, target = [], [], []
    for batch in batches:
        logits = _logits(model, batch).cpu()  # (B, L, V)
        loss.append(F.cross_entropy(logits.transpose(1, 2), batch.target, reduction="none").double().numpy())
        hit.append((logits.argmax(dim=-1) == batch.target).numpy())
        target.append(batch.target.numpy())
    return Scores(np.concatenate(loss), np.concatenate(hit), np.concatenate(target))


def _logits(model: ActionModel, batch: Batch) -> Tensor:
    """Read the windows a few frames at a time, carrying the states on, so that long ones need no more memory."""
    states, found, device = model.initial_state(batch.target.shape[0]), [], model.output.weight.device
    for i, j in chunks(0, batch.target.shape[1], FRAMES_AT_ONCE):
        x, states = model.advance(model.encode(*(channel[:, i:j].to(device) for channel in batch.frames)), states)
        found.append(model.output(x))
    return torch.cat(found, dim=1)


def unigram_loss(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of tokens by their smoothed frequency: (n, L) to (n, L)."""
    return -np.log((counts.single + 1) / (counts.single.sum() + counts.single.size))[target]


def bigram_loss(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of tokens given the token before in the same window: (n, L) to (n, L)."""
    loss = unigram_loss(counts, target)
    before, after = target[:, :-1].ravel(), target[:, 1:].ravel()
    pair = counts.pair[before, after]
    seen, kinds = counts.pair.sum(axis=1)[before], np.diff(counts.pair.indptr)[before]
    single = np.exp(-loss[:, 1:].ravel())
    known = seen > 0
    mixed = np.where(known, (pair + kinds * single) / np.where(known, seen + kinds, 1), single)
    loss[:, 1:] = -np.log(mixed).reshape(target.shape[0], -1)
    return loss


def unigram_guess(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """The most frequent token at every position: (n, L) to (n, L)."""
    return np.full_like(target, counts.single.argmax())


def bigram_guess(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """The most probable token after the one before in the same window: (n, L) to (n, L)."""
    guess = unigram_guess(counts, target)
    single = (counts.single + 1) / (counts.single.sum() + counts.single.size)  # (V,)
    for before in np.unique(target[:, :-1]):
        row = counts.pair[[before]].toarray()[0]  # (V,)
        guess[:, 1:][target[:, :-1] == before] = (row + np.count_nonzero(row) * single).argmax() if row.any() else single.argmax()
    return guess


def copy_loss(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of tokens when the one before is expected again: (n, L) to (n, L)."""
    loss = unigram_loss(counts, target)
    repeated = (counts.pair.trace() + 1) / (counts.pair.sum() + 2)
    again = target[:, 1:] == target[:, :-1]
    loss[:, 1:] = -np.log(repeated * again + (1 - repeated) * np.exp(-loss[:, 1:]))
    return loss


def copy_guess(counts: TokenCounts, target: np.ndarray) -> np.ndarray:
    """The token before in the same window: (n, L) to (n, L)."""
    guess = unigram_guess(counts, target)
    guess[:, 1:] = target[:, :-1]
    return guess


REFERENCES: dict[str, tuple[Predictor, Predictor]] = {
    "unigram": (unigram_loss, unigram_guess),
    "bigram": (bigram_loss, bigram_guess),
    "copy": (copy_loss, copy_guess),
}
"""Predictors that only count: loss and guess."""


def sustained(hit: np.ndarray) -> np.ndarray:
    """How many predictions are right in a row from the start: (n, L) to (n,)."""
    return np.cumprod(hit, axis=1).sum(axis=1)


def over_windows(values: np.ndarray, most: float) -> list[float]:
    """Mean of one value a window with the bounds of its interval, which end at 0 and at the largest value there can be."""
    found = mean(values)
    return [found.value, max(0.0, found.low), min(most, found.high)]


def measures(loss: np.ndarray, hit: np.ndarray) -> dict[str, list[float]]:
    """Value, low and high of each measure of one predictor.

    :param loss: nats, (n, L)
    :param hit: whether the guess is right, (n, L)
    """
    return {
        "loss": over_windows(loss.mean(axis=1), np.inf),
        "top1": over_windows(hit.mean(axis=1), 1.0),
        "sustained": over_windows(sustained(hit), hit.shape[1]),
    }


def summary(scores: Scores, counts: TokenCounts) -> dict[str, Any]:
    """The measures of the model and of each reference on the same windows, and the model's loss a position.

    :param scores: scores of the held-out windows
    :param counts: token counts of the training part
    """
    target = scores.target
    references = {name: measures(loss(counts, target), guess(counts, target) == target) for name, (loss, guess) in REFERENCES.items()}
    return {
        "windows": int(scores.loss.shape[0]),
        "positions": int(scores.loss.size),
        "predictors": {"model": measures(scores.loss, scores.hit), **references},
        "loss_by_position": scores.loss.mean(axis=0).tolist(),
        "top1_by_position": scores.hit.mean(axis=0).tolist(),
    }
