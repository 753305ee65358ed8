r"""Streaming backpropagation: exact gradients through time in memory that does not grow with L (paper, section 10.3).

Plain autograd keeps the activations of all L frame heads. Here the forward pass keeps only the vector e_t of each frame and
the LSTM states at every k_c-th position. The backward pass goes from the last chunk of k_c positions to the first: it runs the
main model over the chunk once more, with the gradients of its final states h and c handed over from the chunk after it,

$$\frac{\partial \mathrm{loss}}{\partial (h, c)_s} = \frac{\partial \mathrm{loss}_{s:}}{\partial (h, c)_s}$$

and then recomputes the frame heads of the chunk, k frames at a time, and sends the gradients of their vectors through
them. Frames are decoded again where they are needed. What grows with L is B L D numbers for the vectors and their share of
states; activations are those of k frame heads and of k_c positions of the main model. The price is a second forward pass.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from fbam.models.action_model import ActionModel
from fbam.sequence.lstm import State


class FrameSource(Protocol):
    """B windows of L frames that can be decoded piece by piece, any number of times."""

    target: Tensor  # (B, L)

    def frames(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return code, fg, bg, style of positions ``start`` to ``stop`` - 1, (B, stop - start, N_f) each."""


def chunks(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut positions ``start`` to ``stop`` - 1 into runs of ``size``; the last one may be shorter."""
    return [(i, min(i + size, stop)) for i in range(start, stop, size)]


@torch.no_grad()
def _forward(model: ActionModel, source: FrameSource, frame_chunk: int, state_every: int) -> tuple[Tensor, list[list[State]]]:
    """Return the vectors of all frames, (B, L, D), and the states before each chunk of ``state_every`` positions."""
    batch, length = source.target.shape
    states, kept = model.initial_state(batch), []
    vectors = states[0][0].new_empty(batch, length, model.config.width)
    for start, stop in chunks(0, length, state_every):
        kept.append(states)
        for i, j in chunks(start, stop, frame_chunk):
            vectors[:, i:j] = model.encode(*source.frames(i, j))
        if stop < length:
            _, states = model.advance(vectors[:, start:stop], states)
    return vectors, kept


def _leaves(states: list[State]) -> list[State]:
    return [(h.detach().requires_grad_(), c.detach().requires_grad_()) for h, c in states]


def streaming_backward(model: ActionModel, source: FrameSource, *, frame_chunk: int, state_every: int, share: float = 1.0) -> float:
    """Add the gradients of the mean cross entropy to ``.grad`` of all parameters, as plain autograd would.

    :param source: the windows, with their actions
    :param frame_chunk: frames of each window that the head works on at a time, k
    :param state_every: positions between two kept states of the main model, k_c
    :param share: weight of this loss, for a batch that is worked on in parts
    :returns: ``share`` times the mean cross entropy over all B L positions, in nats
    """
    length = source.target.shape[1]
    vectors, kept = _forward(model, source, frame_chunk, state_every)
    after: list[Tensor] = []  # gradients of the states behind the chunk, h and c of each layer
    total = 0.0
    for (start, stop), states in zip(reversed(chunks(0, length, state_every)), reversed(kept)):
        x, states = vectors[:, start:stop].clone().requires_grad_(), _leaves(states)
        y, final = model.advance(x, states)
        logits = model.output(y)  # (B, k_c, V)
        target = source.target[:, start:stop]
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum") * (share / source.target.numel())
        ends = [tensor for state in final for tensor in state] if after else []
        torch.autograd.backward([loss, *ends], [None, *after])
        after = [tensor.grad for state in states for tensor in state]
        total += loss.item()
        for i, j in chunks(start, stop, frame_chunk):
            model.encode(*source.frames(i, j)).backward(x.grad[:, i - start : j - start])
    return total
