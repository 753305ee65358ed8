"""Windows against the recordings they were cut from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.recording.cells import CELL
from fbam.recording.format import Recording
from fbam.training.windows import Batch, WindowError, Windows
from typist import record, sessions, tokenizer


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Two recordings, one of them short, and their tokenizer."""
    folder: Path = tmp_path_factory.mktemp("windows")
    paths = [record(folder / "long.fbam", seed=1), record(folder / "short.fbam", seed=2, commits=5, words=2)]
    return [Recording(path) for path in paths], tokenizer(folder / "tokenizer.json", paths)


def streams(source, first: float, last: float) -> list[list[tuple[bytes, int]]]:
    """The slow reference: for each recording the (frame, token) pairs of a part, all decoded at once."""
    recordings, tokens = source
    found = []
    for recording in recordings:
        n = len(recording.commits)
        spans = recording.commits[round(first * n) : round(last * n)]
        actions = [action for span in spans for action in recording.actions[span.start : span.stop]]
        frame, token = tokens.encode(actions)
        cells = recording.frames(spans[0].start, spans[-1].stop)
        found.append([(cells[f].tobytes(), int(t)) for f, t in zip(frame, token)])
    return found


def rows_of(batch: Batch) -> list[list[tuple[bytes, int]]]:
    """A batch back as (frame, token) pairs."""
    found = []
    for b in range(batch.target.shape[0]):
        cells = np.zeros(batch.code.shape[1:], dtype=CELL)  # (L, N_f)
        for name in ("code", "fg", "bg", "style"):
            cells[name] = getattr(batch, name)[b].numpy()
        found.append([(frame.tobytes(), int(t)) for frame, t in zip(cells, batch.target[b])])
    return found


def is_run_of(row: list, stream: list) -> bool:
    return any(stream[i : i + len(row)] == row for i in range(len(stream) - len(row) + 1))


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), length=st.integers(1, 30), part=st.sampled_from([(0.0, 0.8), (0.8, 1.0), (0.0, 1.0)]))
def test_a_window_is_a_run_of_one_recording(source, seed: int, length: int, part: tuple[float, float]):
    windows = Windows(*source, *part)
    longest = max(map(len, streams(source, *part)))
    if length > longest:
        with pytest.raises(WindowError, match="shorter length"):
            windows.sample(np.random.default_rng(seed), 2, length)
        return
    batch = windows.sample(np.random.default_rng(seed), 4, length)
    assert batch.target.shape == (4, length) and batch.code.shape == (4, length, 16)
    assert all(tensor.dtype == torch.int64 for tensor in (*batch.frames, batch.target))
    expected = streams(source, *part)
    for row in rows_of(batch):
        assert any(is_run_of(row, stream) for stream in expected)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), length=st.integers(1, 12), cut=st.tuples(st.integers(0, 11), st.integers(1, 12)))
def test_the_loader_gives_the_frames_that_were_written(source, seed: int, length: int, cut: tuple[int, int]):
    """The reference needs no decoder: the typist makes the frames once more."""
    recordings, tokens = source
    written = [frame for typed in sessions(1) for frame, _ in typed]
    batch = Windows(recordings[:1], tokens).draw(np.random.default_rng(seed), 3, length)
    start, stop = min(cut[0], length - 1), min(max(cut[0] + 1, cut[1]), length)
    for name, channel in zip(("code", "fg", "bg", "style"), batch.frames(start, stop)):
        expected = np.stack([[written[number][name].ravel() for number in numbers[start:stop]] for numbers in batch.numbers])
        assert np.array_equal(channel.numpy(), expected)


def test_decoding_more_leaves_what_was_decoded(source):
    """The buffer is one for all batches of the windows; the tensors are not."""
    windows = Windows(*source)
    batch, other = (windows.draw(np.random.default_rng(seed), 3, 8) for seed in (0, 1))
    first = batch.frames(0, 4)
    kept = [channel.clone() for channel in first]
    other.frames(0, 8)
    batch.narrow(1, 3).frames(2, 5)
    assert all(torch.equal(a, b) for a, b in zip(first, kept))
    assert all(torch.equal(a, b) for a, b in zip(batch.frames(0, 4), kept))


def test_the_same_generator_gives_the_same_windows(source):
    windows = Windows(*source)
    first, same, other = (windows.sample(np.random.default_rng(seed), 8, 3) for seed in ([5, 7], [5, 7], [5, 8]))
    assert all(torch.equal(a, b) for a, b in zip(first.frames, same.frames))
    assert torch.equal(first.target, same.target) and not torch.equal(first.target, other.target)


def test_all_starts_are_drawn(source):
    windows = Windows(*source, 0.8, 1.0)
    length = 4
    possible = {tuple(s[i : i + length]) for s in streams(source, 0.8, 1.0) for i in range(len(s) - length + 1)}
    drawn = {tuple(row) for row in rows_of(windows.sample(np.random.default_rng(0), 2000, length))}
    assert drawn == possible


def numbers(recording: Recording, tokens, first: float, last: float) -> list[int]:
    """The numbers that the frames of a part of one recording carry."""
    windows = Windows([recording], tokens, first, last)
    first_cells = [(batch.fg[:, :, 0] * 256 + batch.bg[:, :, 0]).flatten() for batch in windows.spread(10**6, 1, 64)]
    assert len(first_cells) == -(-windows.tokens // 64)
    return torch.cat(first_cells).tolist()


def test_training_and_held_out_share_no_frame_and_leave_none_out(source):
    recordings, tokens = source
    for recording in recordings:
        train, held_out = numbers(recording, tokens, 0.0, 0.8), numbers(recording, tokens, 0.8, 1.0)
        border = recording.commits[round(0.8 * len(recording.commits))].start
        assert max(train) < border == min(held_out)
        assert train == sorted(set(train)) and held_out == sorted(set(held_out))
        assert train + held_out == numbers(recording, tokens, 0.0, 1.0)


@pytest.mark.parametrize("count", [1, 3, 7, 10**6])
def test_spread_windows_do_not_overlap_and_do_not_change(source, count: int):
    windows, length = Windows(*source), 5
    rows = [row for batch in windows.spread(count, length, batch=4) for row in rows_of(batch)]
    again = [row for batch in windows.spread(count, length, batch=3) for row in rows_of(batch)]
    assert rows == again
    slots = [s[i : i + length] for s in streams(source, 0, 1) for i in range(0, len(s) - length + 1, length)]
    assert len(rows) == min(count, len(slots))
    assert [slot for slot in slots if slot in rows] == rows


def test_counts_are_those_of_a_loop(source):
    counts = Windows(*source).counts()
    tokens = [[token for _, token in stream] for stream in streams(source, 0, 1)]
    single = Counter(token for stream in tokens for token in stream)
    pair = Counter(p for stream in tokens for p in zip(stream, stream[1:]))
    assert dict(single) == {i: int(n) for i, n in enumerate(counts.single) if n}
    assert dict(pair) == {(int(a), int(b)): int(n) for (a, b), n in counts.pair.todok().items()}


def test_parts_that_cannot_be_are_refused(source, tmp_path):
    recordings, tokens = source
    with pytest.raises(WindowError, match="one size"):
        Windows([*recordings, Recording(record(tmp_path / "wide.fbam", 3, cols=9))], tokens)
    with pytest.raises(WindowError, match="none"):
        Windows([], tokens)
    with pytest.raises(WindowError, match="0.5 to 0.5"):
        Windows(recordings, tokens, 0.5, 0.5)
    with pytest.raises(WindowError, match="no actions"):
        Windows(recordings, tokens, 0.0, 0.01)
    with pytest.raises(WindowError, match="shorter length"):
        next(Windows(recordings, tokens).spread(3, 10**6, 1))
