r"""Windows of L frames and the actions taken on them, cut from recordings (paper, sections 9 and 10.4).

A recording is a session over the commits of one history. Its actions become tokens, and a token that spans several
actions is attached to the frame before the first of them. A window is L consecutive tokens of one recording:

$$(x_1, a_1), \dots, (x_L, a_L)$$

Training takes the first commits of each recording and the held-out part the rest, so that no frame is in both. Frames
are decoded where a batch needs them, into one buffer that all batches of these windows use; between batches only tokens and frame
numbers are kept. There is no loader process: decoding is about a hundredth of a step (``fbam bench --only streaming`` and the page on
section 10.3 measure its share), and that is all one could save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fbam.recording.cells import CELL, Frames
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer


class WindowError(ValueError):
    """The recordings cannot give the windows asked for; the message names the remedy."""


@dataclass(frozen=True)
class Batch:
    """B windows of L frames with N_f cells each, all int64.

    ``code``, ``fg``, ``bg`` and ``style`` are (B, L, N_f), the actions ``target`` are (B, L).
    """

    code: Tensor
    fg: Tensor
    bg: Tensor
    style: Tensor
    target: Tensor

    @property
    def frames(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four channels in the order in which the model takes them."""
        return self.code, self.fg, self.bg, self.style


class FrameBuffer:
    """Room for decoded frames that is used again by each decoding and grows to the largest one; for one thread."""

    def __init__(self) -> None:
        self._cells = np.empty(0, dtype=CELL)

    def decode(self, recordings: Sequence[Recording], numbers: np.ndarray) -> Frames:
        """Decode k frames of each of B recordings.

        :param numbers: frame numbers, (B, k)
        :returns: (B, k, N_f) of ``CELL``, which hold until the next call
        """
        windows, k = numbers.shape
        rows, cols = recordings[0].rows, recordings[0].cols
        if self._cells.size < numbers.size * rows * cols:
            self._cells = np.empty(numbers.size * rows * cols, dtype=CELL)
        cells = self._cells[: numbers.size * rows * cols].reshape(windows, k, rows, cols)
        for recording, wanted, out in zip(recordings, numbers, cells, strict=True):
            if (np.diff(wanted) == 1).all():
                recording.decode_into(int(wanted[0]), out)
            else:  # some token spans several actions, so frames are left out
                out[:] = recording.gather(wanted)
        return cells.reshape(windows, k, -1)


@dataclass(frozen=True)
class LazyBatch:
    """B windows of L frames of which only frame numbers and actions are in memory; frames are decoded when asked for.

    ``recordings`` has one entry a window, ``numbers`` and ``target`` are (B, L); the ``buffer`` may be shared with other batches.
    """

    recordings: Sequence[Recording]
    numbers: np.ndarray
    target: Tensor
    buffer: FrameBuffer = field(default_factory=FrameBuffer)

    def on(self, device: torch.device | str) -> LazyBatch:
        """Return the batch with its actions, and the frames to come, on a device."""
        return replace(self, target=self.target.to(device))

    def frames(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Decode positions ``start`` to ``stop`` - 1: code, fg, bg, style, (B, stop - start, N_f) int64 each."""
        frames = self.buffer.decode(self.recordings, self.numbers[:, start:stop])  # (B, k, N_f)
        device = self.target.device
        return tuple(torch.from_numpy(frames[name].astype(np.int64)).to(device) for name in ("code", "fg", "bg", "style"))

    def narrow(self, first: int, last: int) -> LazyBatch:
        """Return windows ``first`` to ``last`` - 1 of the batch."""
        return replace(self, recordings=self.recordings[first:last], numbers=self.numbers[first:last], target=self.target[first:last])

    def whole(self) -> Batch:
        """Decode everything."""
        return Batch(*self.frames(0, self.target.shape[1]), target=self.target)


@dataclass(frozen=True)
class TokenCounts:
    """How often each token was seen, (V,), and how often each token followed each other one, (V, V) sparse."""

    single: np.ndarray
    pair: sparse.csr_array


@dataclass(frozen=True)
class _Part:
    """A run of commits of one recording: for each of its T tokens the frame it was taken on and the token."""

    recording: Recording
    frame: np.ndarray  # (T,)
    token: np.ndarray  # (T,)


class DrawnOtherwise:
    """Windows whose ``draw`` a subclass changes; everything else is handed through.

    :param windows: where the windows come from
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def __getattr__(self, name: str) -> object:
        return getattr(self._windows, name)


def open_windows(recordings: Sequence[Path | str], tokenizer: Path | str, held_out: float) -> tuple[Windows, Windows]:
    """Open recordings and return the part to train on and the part held out.

    :param recordings: paths of recordings, compiled histories or generated tasks alike, with frames of one size; the commits
        of each are split in order, so each has commits in both parts
    :param tokenizer: path of the tokenizer's file
    :param held_out: share of each recording's commits, at its end, that is held out, between 0 and 1
    :raises WindowError: as ``Windows`` does
    """
    opened, tokens, border = [Recording(Path(path)) for path in recordings], ActionTokenizer.load(Path(tokenizer)), 1 - held_out
    return Windows(opened, tokens, 0.0, border), Windows(opened, tokens, border, 1.0)


def _cut(recording: Recording, tokenizer: ActionTokenizer, first: float, last: float) -> _Part:
    commits = recording.commits
    chosen = commits[round(first * len(commits)) : round(last * len(commits))]
    start, stop = (chosen[0].start, chosen[-1].stop) if chosen else (0, 0)
    frame, token = tokenizer.encode(recording.actions[start:stop])
    return _Part(recording, frame + start, token)


class Windows:
    """Windows over the same share of the commits of several recordings.

    :param recordings: recordings with frames of one size
    :param tokenizer: turns actions into tokens
    :param first: share of the commits that comes before this part, 0 to 1
    :param last: share of the commits at which this part ends, ``first`` to 1
    :raises WindowError: no recording, frames of different sizes, no actions in this part
    """

    def __init__(
        self, recordings: Sequence[Recording], tokenizer: ActionTokenizer, first: float = 0.0, last: float = 1.0
    ) -> None:
        sizes = {(recording.rows, recording.cols) for recording in recordings}
        if len(sizes) != 1:
            listed = ", ".join(f"{rows} x {cols}" for rows, cols in sorted(sizes)) or "none"
            raise WindowError(f"frames must have one size, found {listed}; compile the histories at the same size")
        if not 0 <= first < last <= 1:
            raise WindowError(f"part {first} to {last} of the commits is empty; give 0 <= first < last <= 1")
        (self.rows, self.cols), self.vocab_size = sizes.pop(), tokenizer.vocab_size
        self._buffer = FrameBuffer()
        self._parts = [_cut(recording, tokenizer, first, last) for recording in recordings]
        if self.tokens == 0:
            raise WindowError(f"no actions in {first} to {last} of the commits; give a larger part or more recordings")

    @property
    def tokens(self) -> int:
        """Tokens in this part, over all recordings."""
        return sum(part.token.size for part in self._parts)

    def counts(self) -> TokenCounts:
        """Count tokens and pairs of neighbouring tokens of one recording."""
        size = self.vocab_size
        single = sum(np.bincount(part.token, minlength=size) for part in self._parts)
        before = np.concatenate([part.token[:-1] for part in self._parts])
        after = np.concatenate([part.token[1:] for part in self._parts])
        ones = np.ones(before.size, dtype=np.int64)
        return TokenCounts(single, sparse.coo_array((ones, (before, after)), shape=(size, size)).tocsr())

    def draw(self, rng: np.random.Generator, batch: int, length: int) -> LazyBatch:
        """Draw B windows of L tokens, each position of each recording being as likely a start as any other.

        :raises WindowError: no recording has L tokens in this part
        """
        ends = np.cumsum([max(0, part.token.size - length + 1) for part in self._parts])
        self._require(ends[-1], length)
        return self._choose(rng.integers(ends[-1], size=batch), ends, 1, length)

    def sample(self, rng: np.random.Generator, batch: int, length: int) -> Batch:
        """Draw as ``draw`` does and decode everything."""
        return self.draw(rng, batch, length).whole()

    def spread(self, count: int, length: int, batch: int) -> Iterator[Batch]:
        """Yield up to ``count`` windows, spread evenly and without overlap, the same ones at each call.

        There are fewer when this part does not hold ``count`` windows, so that no position is seen twice.

        :param count: number of windows wanted
        :param length: tokens of a window L
        :param batch: windows decoded at a time; the last batch may be smaller
        :raises WindowError: no recording has L tokens in this part
        """
        ends = np.cumsum([part.token.size // length for part in self._parts])
        self._require(ends[-1], length)
        count = min(count, int(ends[-1]))
        chosen = np.arange(count) * ends[-1] // count
        for i in range(0, count, batch):
            yield self._choose(chosen[i : i + batch], ends, length, length).whole()

    def _require(self, windows: int, length: int) -> None:
        if windows == 0:
            longest = max(part.token.size for part in self._parts)
            raise WindowError(f"no window of {length} tokens: the longest recording has {longest}; choose a shorter length")

    def _choose(self, numbers: np.ndarray, ends: np.ndarray, stride: int, length: int) -> LazyBatch:
        """Return the windows with these numbers (B,); window k of a recording starts at token k * stride."""
        recordings, frames, target = [], [], []
        for number in numbers:
            which = int(np.searchsorted(ends, number, side="right"))
            part = self._parts[which]
            start = int(number - (ends[which - 1] if which else 0)) * stride
            recordings.append(part.recording)
            frames.append(part.frame[start : start + length])
            target.append(part.token[start : start + length])
        return LazyBatch(recordings, np.stack(frames), torch.from_numpy(np.stack(target).astype(np.int64)), self._buffer)
