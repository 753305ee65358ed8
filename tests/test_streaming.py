"""Streaming backpropagation against plain autograd: the same loss, the same gradients, whatever the chunks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from fbam.models.action_model import FRAME_HEADS, ActionModel, ModelConfig
from fbam.models.frame_head import REDUCTIONS
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.paging import Pages
from fbam.training.streaming import WITHOUT_GRAPH, StreamingError, streaming_backward
from fbam.training.windows import Windows
from typist import record, tokenizer

CONFIG = ModelConfig(rows=2, cols=8, vocab_size=11, codes=64, width=12, heads=2, poolings=1, head_blocks=1, layers=2)
KINDS = [(head, reduction) for head in FRAME_HEADS for reduction in REDUCTIONS]


@dataclass
class Frames:
    """Random frames, (B, L, N_f) a channel, with the most positions asked for at a time, with and without a graph."""

    channels: tuple[Tensor, ...]
    target: Tensor
    widest: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    def frames(self, start, stop):
        graph = torch.is_grad_enabled()
        self.widest[graph] = max(self.widest[graph], stop - start)
        return tuple(channel[:, start:stop] for channel in self.channels)

    def narrow(self, first, last):
        return Frames(tuple(channel[first:last] for channel in self.channels), self.target[first:last])


def windows(batch: int, length: int, seed: int = 3) -> Frames:
    torch.manual_seed(seed)
    shape = (batch, length, CONFIG.cells)
    channels = tuple(torch.randint(high, shape) for high in (CONFIG.codes, 16, 16, 8))
    return Frames(channels, torch.randint(CONFIG.vocab_size, (batch, length)))


def gradients(model: ActionModel) -> dict[str, Tensor]:
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


def plain(model: ActionModel, source: Frames) -> tuple[float, dict[str, Tensor]]:
    logits = model(*source.channels)
    loss = F.cross_entropy(logits.flatten(0, 1), source.target.flatten())
    loss.backward()
    return loss.item(), gradients(model)


@settings(max_examples=60)
@given(batch=st.integers(1, 3), length=st.integers(1, 9), frame_chunk=st.integers(1, 10), state_every=st.integers(1, 10), kind=st.sampled_from(KINDS))
@example(batch=2, length=1, frame_chunk=1, state_every=1, kind=("conv", "lstm"))
@example(batch=2, length=7, frame_chunk=2, state_every=3, kind=("conv", "lstm"))
def test_gradients_equal_plain_autograd(batch, length, frame_chunk, state_every, kind):
    config = replace(CONFIG, frame_head=kind[0], reduction=kind[1])
    model, source = ActionModel(config, seed=1).double(), windows(batch, length)
    loss, expected = plain(model, source)
    streamed = streaming_backward(model, source, frame_chunk=frame_chunk, state_every=state_every)
    assert abs(streamed - loss) < 1e-12
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-12)
    assert source.widest[True] <= min(frame_chunk, state_every)
    assert source.widest[False] <= min(WITHOUT_GRAPH * frame_chunk, state_every)


class Activations:
    """Bytes of the tensors that autograd holds for backward passes, now and at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def hold(self, tensor: Tensor) -> Held:
        return Held(self, tensor)


class Held:
    """One of them; autograd drops it when it needs it no longer."""

    def __init__(self, all_of_them: Activations, tensor: Tensor) -> None:
        self.all, self.tensor = all_of_them, tensor.detach()
        self.all.now += tensor.nbytes
        self.all.most = max(self.all.most, self.all.now)

    def __del__(self) -> None:
        self.all.now -= self.tensor.nbytes


def most_activations(length: int, run) -> int:
    held = Activations()
    with torch.autograd.graph.saved_tensors_hooks(held.hold, lambda kept: kept.tensor):
        run(ActionModel(CONFIG, seed=1), windows(2, length))
    return held.most


def test_activations_do_not_grow_with_the_length():
    """Counted, not measured: the same bytes at five times the length, where plain autograd needs five times as many."""
    lengths = (8, 40)
    short, long = (most_activations(n, lambda model, source: streaming_backward(model, source, frame_chunk=2, state_every=4)) for n in lengths)
    assert short == long
    short, long = (most_activations(n, plain) for n in lengths)
    assert long > 4 * short


def test_parts_of_a_batch_add_up_to_the_whole():
    model, source = ActionModel(CONFIG, seed=1).double(), windows(5, 4)
    loss, expected = plain(model, source)
    parts = [streaming_backward(model, source.narrow(i, j), frame_chunk=2, state_every=3, share=(j - i) / 5) for i, j in ((0, 2), (2, 5))]
    assert abs(sum(parts) - loss) < 1e-12
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-12)


def test_a_cut_between_chunks_would_be_seen():
    """The comparison can fail: without the gradients handed over between chunks, the early positions get others."""
    model, source = ActionModel(CONFIG, seed=1).double(), windows(2, 6)
    _, expected = plain(model, source)
    for start in (0, 3):
        part = Frames(tuple(channel[:, start : start + 3] for channel in source.channels), source.target[:, start : start + 3])
        streaming_backward(model, part, frame_chunk=3, state_every=3, share=0.5)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-12)


def test_frames_come_lazily_from_recordings(tmp_path):
    path = record(tmp_path / "a.fbam", 1)
    tokenizer(tmp_path / "tokenizer.json", [path])
    part = Windows([Recording(path)], ActionTokenizer.load(tmp_path / "tokenizer.json"))
    lazy = part.draw(np.random.default_rng(4), 3, 7)
    whole = part.sample(np.random.default_rng(4), 3, 7)
    for start, stop in ((0, 7), (2, 3), (5, 7)):
        for piece, channel in zip(lazy.frames(start, stop), whole.frames, strict=True):
            torch.testing.assert_close(piece, channel[:, start:stop], rtol=0, atol=0)
    config = ModelConfig(rows=part.rows, cols=part.cols, vocab_size=part.vocab_size, codes=64, width=8, heads=1,
                         poolings=1, head_blocks=0, layers=1)
    model = ActionModel(config, seed=2).double()
    loss = F.cross_entropy(model(*whole.frames).flatten(0, 1), whole.target.flatten())
    loss.backward()
    expected = gradients(model)
    assert abs(streaming_backward(model, lazy, frame_chunk=2, state_every=4) - loss.item()) < 1e-12
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-12)


def test_attention_as_main_model_is_refused_with_the_remedy():
    model = ActionModel(replace(CONFIG, main="attention"))
    with pytest.raises(StreamingError, match="set frame_chunk to 0"):
        streaming_backward(model, windows(1, 2), frame_chunk=1, state_every=1)


def test_pages_come_back_from_the_last_to_the_first():
    pages = Pages(torch.device("cpu"))
    groups = [[torch.full((2,), float(n)), torch.full((1,), -float(n))] for n in range(3)]
    for group in groups:
        pages.keep(group)
    assert [[part.tolist() for part in pages.take()] for _ in range(len(pages))] == [[p.tolist() for p in g] for g in reversed(groups)]
    assert len(pages) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("head", FRAME_HEADS)
def test_on_a_cuda_device_states_page_to_the_host_and_gradients_are_the_same(head):
    model, source = ActionModel(replace(CONFIG, frame_head=head), seed=1).double().cuda(), windows(3, 9)
    source = Frames(tuple(channel.cuda() for channel in source.channels), source.target.cuda())
    loss, expected = plain(model, source)
    assert abs(streaming_backward(model, source, frame_chunk=2, state_every=2) - loss) < 1e-12
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-12)
    pages = Pages(torch.device("cuda"))
    groups = [[torch.full((1 << 20,), float(n), device="cuda")] for n in range(8)]
    for group in groups:
        pages.keep(group)
    assert all(host.is_pinned() and not host.is_cuda for group in pages._stack for host in group)
    assert [pages.take()[0].mean().item() for _ in range(8)] == list(range(7, -1, -1))
