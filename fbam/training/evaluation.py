r"""Cross entropy and accuracy on held-out windows, beside what counting alone would give (paper, appendix H).

All values are in nats a position. Two references see no frame. The unigram model is smoothed by adding one to each
count; the bigram model knows the token before and falls back on the unigram as far as the pair is new (Witten and Bell
1991), with n the occurrences of the token before and d the number of different tokens seen after it:

$$p(a \mid b) = \frac{n(b, a) + d(b) \, p(a)}{n(b) + d(b)}$$

The token before the first position of a window is not known to a model that starts there, so the bigram falls back on
the unigram at that position too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from fbam.training.windows import Batch, TokenCounts


@dataclass(frozen=True)
class Scores:
    """Per position of n windows of L tokens, (n, L) each: negative log-likelihood of the action, and top-1 hits."""

    loss: np.ndarray
    hit: np.ndarray
    target: np.ndarray


@torch.no_grad()
def score(model: nn.Module, batches: Iterable[Batch]) -> Scores:
    """Evaluate a model on windows of one length."""
    loss, hit, target = [], [], []
    for batch in batches:
        logits = model(*batch.frames)  # (B, L, V)
        loss.append(F.cross_entropy(logits.transpose(1, 2), batch.target, reduction="none").double().numpy())
        hit.append((logits.argmax(dim=-1) == batch.target).numpy())
        target.append(batch.target.numpy())
    return Scores(np.concatenate(loss), np.concatenate(hit), np.concatenate(target))


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


def summary(scores: Scores, counts: TokenCounts) -> dict[str, float | int | list[float]]:
    """Means in nats over all positions, a position and a window, with the number of positions they stand on.

    :param scores: scores of the held-out windows
    :param counts: token counts of the training part
    """
    return {
        "held_out_positions": int(scores.loss.size),
        "held_out_windows": int(scores.loss.shape[0]),
        "held_out_cross_entropy": float(scores.loss.mean()),
        "held_out_top1": float(scores.hit.mean()),
        "held_out_cross_entropy_by_position": scores.loss.mean(axis=0).tolist(),
        "held_out_cross_entropy_by_window": scores.loss.mean(axis=1).tolist(),
        "unigram_cross_entropy": float(unigram_loss(counts, scores.target).mean()),
        "unigram_top1": float((unigram_guess(counts, scores.target) == scores.target).mean()),
        "bigram_cross_entropy": float(bigram_loss(counts, scores.target).mean()),
        "bigram_top1": float((bigram_guess(counts, scores.target) == scores.target).mean()),
    }
