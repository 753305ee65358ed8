r"""Streaming backpropagation: exact gradients through time in memory that does not grow with L (paper, section 10.3).

Plain autograd keeps the activations of all L frame heads. Here the forward pass keeps only the vector e_t of each frame and
the LSTM states at every k_c-th position. The backward pass goes from the last chunk of k_c positions to the first: it runs the
main model over the chunk once more, with the gradients of its final states h and c handed over from the chunk after it,

$$\frac{\partial \mathrm{loss}}{\partial (h, c)_s} = \frac{\partial \mathrm{loss}_{s:}}{\partial (h, c)_s}$$

and then recomputes the frame heads of the chunk, k frames at a time, and sends the gradients of their vectors through
them. Frames are decoded again where they are needed. What grows with L is B L D numbers for the vectors and their share of
states; activations are those of k frame heads (2 k in the first pass, which keeps no graph) and of k_c positions of the main model. The
price is a second forward pass. On a CUDA device what is kept pages to the host (``paging.py``). The gradients of a main model of causal
attention cannot be handed over like this, because each position reads all before it; such a model takes plain autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from fbam.models.action_model import ActionModel
from fbam.training.paging import Pages


WITHOUT_GRAPH = 2
"""Frames a call of the head without a graph, over those of a call with one: it needs half the memory, and larger calls are faster a frame."""


class FrameSource(Protocol):
    """B windows of L frames that can be decoded piece by piece, any number of times."""

    target: Tensor  # (B, L)

    def frames(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return code, fg, bg, style of positions ``start`` to ``stop`` - 1, (B, stop - start, N_f) each."""


def chunks(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut positions ``start`` to ``stop`` - 1 into runs of ``size``; the last one may be shorter."""
    return [(i, min(i + size, stop)) for i in range(start, stop, size)]


def _calls(start: int, stop: int, frame_chunk: int, last: bool) -> list[tuple[int, int]]:
    """Cut positions for calls of the head that keep no graph, except, in the ``last`` piece, the last one."""
    kept = chunks(start, stop, frame_chunk)[-1:] if last else []
    return chunks(start, kept[0][0] if kept else stop, WITHOUT_GRAPH * frame_chunk) + kept


class StreamingError(ValueError):
    """A model whose gradients cannot be streamed."""


@torch.no_grad()
def _forward(model: ActionModel, source: FrameSource, pieces: Sequence[tuple[int, int]], frame_chunk: int) -> tuple[Pages, Tensor]:
    """Run forward over all positions.

    :returns: for each piece of the positions the vectors of its frames, (B, k_c, D), and the states before it, h and c a layer; and
        the vectors of the last frames with their graph, because their backward pass comes next and they need no second forward pass
    """
    batch, length = source.target.shape
    states = model.initial_state(batch)
    zero = states[0][0]
    kept = Pages(zero.device)
    # on a processor one block for all vectors and one for all states, so that what is kept does not lie scattered between what is freed
    on_host = zero.device.type == "cpu"
    vectors_kept = zero.new_empty(batch, length, model.config.width) if on_host else None
    states_kept = zero.new_empty(len(pieces), 2 * len(states), *zero.shape) if on_host else None
    for number, (start, stop) in enumerate(pieces):
        x = zero.new_empty(batch, stop - start, model.config.width) if vectors_kept is None else vectors_kept[:, start:stop]
        for i, j in _calls(start, stop, frame_chunk, last=stop == length):
            with torch.set_grad_enabled(j == length):
                vectors = model.encode(*source.frames(i, j))
            x[:, i - start : j - start] = vectors.detach()
        before = list(chain(*states))
        kept.keep([x, *(before if states_kept is None else torch.stack(before, out=states_kept[number]))])
        if stop < length:
            _, states = model.advance(x, states)
    return kept, vectors


def streaming_backward(model: ActionModel, source: FrameSource, *, frame_chunk: int, state_every: int, share: float = 1.0) -> float:
    """Add the gradients of the mean cross entropy to ``.grad`` of all parameters, as plain autograd would.

    :param source: the windows, with their actions, on the device of the model
    :param frame_chunk: frames of each window that the head works on at a time, k
    :param state_every: positions between two kept states of the main model, k_c
    :param share: weight of this loss, for a batch that is worked on in parts
    :returns: ``share`` times the mean cross entropy over all B L positions, in nats
    :raises StreamingError: the main model is causal attention
    """
    if model.config.main == "attention":
        raise StreamingError("main: attention cannot be streamed, each position reads all before it; set frame_chunk to 0 (plain autograd)")
    pieces = chunks(0, source.target.shape[1], state_every)
    kept, last = _forward(model, source, pieces, frame_chunk)
    after: list[Tensor] = []  # gradients of the states behind the piece, h and c of each layer
    total = 0.0
    for start, stop in reversed(pieces):
        x, *states = _leaves(kept.take())
        y, final = model.advance(x, list(zip(states[::2], states[1::2])))
        target = source.target[:, start:stop]
        loss = F.cross_entropy(model.output(y).flatten(0, 1), target.flatten(), reduction="sum") * (share / source.target.numel())
        torch.autograd.backward([loss, *(chain(*final) if after else ())], [None, *after])
        after = [tensor.grad for tensor in states]
        total += loss.item()
        for i, j in reversed(chunks(start, stop, frame_chunk)):
            vectors = last if j == pieces[-1][1] else model.encode(*source.frames(i, j))
            vectors.backward(x.grad[:, i - start : j - start])
    return total


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that gather gradients of their own (the zero state is one tensor for h and c) and share the memory."""
    return [tensor.detach().requires_grad_() for tensor in tensors]
