r"""Does the message of a commit condition the edits that follow it (paper, section 10.1: the message is typed first)?

A history is recorded twice, with the messages typed first and with none; after the message the keys of a commit are the same. What is
predicted are windows of E actions inside files, at the same places in both. With its message, such a window is read after the last M
frames on which the message was typed, whose state the main model carries to it; without, from an empty state:

$$p(a_t \mid m_1, \dots, m_M, x_1, \dots, x_t) \quad \mathrm{against} \quad p(a_t \mid x_1, \dots, x_t)$$

One model learns both, each update one of them by a fair draw, so that its two losses differ by what is read and not by chance in
training. A third reading shows another commit's message: it tells what the message says from the mere presence of one.
The frames of the window do not show the message; no key of it counts in a loss.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from pydantic import Field, model_validator

from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.checkpoint import load_model, training_config
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.evaluation import score
from fbam.training.loop import CellConfig, TrainingError, train_cell
from fbam.training.sweep import BATCH, UNLABELLED
from fbam.training.windows import Batch, FrameBuffer, LazyBatch, WindowError

READINGS = ("own", "other", "none")
"""Whose message is read before a window: that of its commit, that of the next commit of the part, no one's."""
SAVE = [":", "w", "q", "\r"]
"""Keys with which a file is left."""
WORD = re.compile(r"[a-z]{4,}")
"""A word that a message and an edit can have in common, in lower case."""
INSERT = re.compile(r"(^|:\d+\r)i")
"""The key i that begins to type, where a file is opened or a line was gone to: it belongs to no word."""


@dataclass(frozen=True)
class Edited:
    """One commit: frames of its message's last tokens, (M,), and of its tokens inside files, (T,) each, numbered in both recordings.

    ``start`` is (T,), the first token of the file that a token lies in, as an index of these arrays.
    """

    message: np.ndarray
    first: np.ndarray
    none: np.ndarray
    token: np.ndarray
    start: np.ndarray


def in_files(actions: Sequence[str], opened: Sequence[int]) -> list[tuple[int, int]]:
    """The stretches (start, stop) of a commit's actions inside files: from where one is shown to the Enter that leaves it.

    :param actions: all actions of the commit
    :param opened: which of them are the first in a file, rising
    """
    found = []
    for start, end in zip(opened, [*opened, len(actions)][1:], strict=True):
        stop = next((i for i in range(end - len(SAVE), start - 1, -1) if list(actions[i : i + len(SAVE)]) == SAVE), None)
        found.append((start, end if stop is None else stop + len(SAVE)))
    return found


def edited(with_message: Recording, without: Recording, tokenizer: ActionTokenizer, frames: int) -> list[Edited]:
    """Every commit that edits a file, the same actions found in both recordings.

    :param frames: M, tokens of the message line that are kept; a shorter line begins in the commit before, the first with its first frame
    :raises WindowError: after its message, a commit differs between the recordings
    """
    found, actions, plain = [], with_message.actions, without.actions
    for long, short in zip(with_message.commits, without.commits, strict=True):
        shift = (long.stop - long.start) - (short.stop - short.start)  # keys of the message line
        mine = actions[long.start + shift : long.stop]
        if shift <= 0 or mine != plain[short.start : short.stop]:
            raise WindowError(f"commit {long.commit_id}: the recordings differ in more than its message; compile both from one history")
        opened = [pair - long.start - shift for pair, _ in with_message.opened if long.start <= pair < long.stop]
        if not opened:
            continue
        stretches = [(begin, *tokenizer.encode(mine[begin:end])) for begin, end in in_files(mine, opened)]
        place = np.concatenate([begin + frame for begin, frame, _ in stretches])
        sizes = [len(token) for *_, token in stretches]
        line = long.start + tokenizer.encode(actions[long.start : long.start + shift])[0]
        message = np.concatenate([np.maximum(0, long.start - np.arange(frames, 0, -1)), line])[-frames:]
        found.append(Edited(message, long.start + shift + place, short.start + place, np.concatenate([token for *_, token in stretches]),
                            np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)))
    return found


def shared_words(recording: Recording) -> tuple[float, float]:
    """Share of the words typed inside files that stand in the commit's message, and in another commit's, on average over all others.

    It bounds what spelling alone lets a message tell of its edits.

    :raises WindowError: there are no two commits, or no words
    """
    typed, messages = [], []
    for commit in recording.commits:
        actions = recording.actions[commit.start : commit.stop]
        opened = [pair - commit.start for pair, _ in recording.opened if commit.start <= pair < commit.stop]
        text = "\n".join(INSERT.sub(r"\1 ", "".join(a if len(a) == 1 else "\n" for a in actions[i:j])) for i, j in in_files(actions, opened))
        typed.append(WORD.findall(text.lower()))
        messages.append(set(WORD.findall(commit.message.lower())))
    total = sum(map(len, typed))
    if total == 0 or len(messages) < 2:
        raise WindowError(f"{recording.path} has {len(messages)} commits with {total} words: words in common need two commits and more")
    shared = np.array([[sum(word in message for word in words) for message in messages] for words in typed])  # (commits, commits)
    own = int(np.trace(shared))
    return own / total, float(shared.sum() - own) / total / (len(messages) - 1)


class MessageWindows:
    """Windows of E tokens inside files, each with its message, another one or none before it.

    :param recordings: the one with messages and the one without
    :param commits: the commits of this part
    :param vocab_size: tokens of the vocabulary
    """

    def __init__(self, recordings: Sequence[Recording], commits: Sequence[Edited], vocab_size: int) -> None:
        self.with_message, self.without = recordings
        self.commits, self.vocab_size = list(commits), vocab_size
        self.rows, self.cols = self.with_message.rows, self.with_message.cols
        self._places: dict[int, np.ndarray] = {}
        self._buffer = FrameBuffer()

    @property
    def tokens(self) -> int:
        """Tokens inside files."""
        return sum(len(commit.token) for commit in self.commits)

    def starts(self, commit: Edited, length: int) -> np.ndarray:
        """Where windows of `length` tokens that lie in one file can begin."""
        ends = np.arange(max(0, len(commit.token) - length + 1))
        return ends[commit.start[ends] == commit.start[ends + length - 1]]

    def draw(self, rng: np.random.Generator, batch: int, length: int) -> LazyBatch:
        """Draw windows, each place being as likely as any other, all with their messages or all without.

        :raises WindowError: no file of this part has so many tokens
        """
        if length not in self._places:
            starts = [self.starts(commit, length) for commit in self.commits]
            numbers = np.repeat(np.arange(len(starts)), [len(found) for found in starts])
            self._places[length] = np.stack([numbers, np.concatenate(starts)], axis=1)  # (n, 2)
        places = self._places[length]
        if not len(places):
            raise WindowError(f"no file of this part has {length} tokens; choose a shorter length")
        chosen = places[rng.integers(len(places), size=batch)].tolist()
        return self.batch(chosen, length, "own" if rng.integers(2) else "none")

    def batch(self, places: Sequence[Sequence[int]], length: int, reading: str) -> LazyBatch:
        """Windows at (commit, start), read in one of the ways of ``READINGS``; only the tokens inside files are labelled."""
        numbers, target = [], []
        for number, start in places:
            commit = self.commits[number]
            before = self.commits[(number + (reading == "other")) % len(self.commits)].message if reading != "none" else commit.message[:0]
            inside = (commit.none if reading == "none" else commit.first)[start : start + length]
            numbers.append(np.concatenate([before, inside]))
            target.append(np.concatenate([np.full(len(before), UNLABELLED), commit.token[start : start + length]]))
        recording = self.without if reading == "none" else self.with_message
        return LazyBatch([recording] * len(places), np.stack(numbers), torch.from_numpy(np.stack(target).astype(np.int64)), self._buffer)

    def spread(self, count: int, length: int) -> list[tuple[int, int]]:
        """Up to `count` places a commit, without overlap, the first being where its first file is opened."""
        found = []
        for number, commit in enumerate(self.commits):
            starts, chosen = self.starts(commit, length), []
            for start in starts.tolist():
                if not chosen or start >= chosen[-1] + length:
                    chosen.append(start)
            kept = np.unique(np.linspace(0, len(chosen) - 1, min(count, len(chosen))).round().astype(int))
            found += [(number, chosen[i]) for i in kept]
        return found


class MessageConfig(CellConfig):
    """Configuration of one training; `recordings` are the one with messages and the one without, `length` is E."""

    message_frames: int = Field(ge=1)  # M

    @model_validator(mode="after")
    def _two_recordings(self) -> Self:
        if len(self.recordings) != 2 or self.frame_chunk:
            raise ValueError("a training on messages needs two recordings, with messages and without, and frame_chunk 0")
        return self

    def windows(self) -> tuple[MessageWindows, MessageWindows]:
        """The commits to train on and those held out, which are the last."""
        self.check_data()
        opened, tokenizer = [Recording(Path(path)) for path in self.recordings], ActionTokenizer.load(Path(self.tokenizer))
        commits = edited(*opened, tokenizer, self.message_frames)
        border = round((1 - self.held_out) * len(commits))
        return tuple(MessageWindows(opened, part, tokenizer.vocab_size) for part in (commits[:border], commits[border:]))


def message_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one model; see `loop.train_cell`.

    :param config: the keys of ``MessageConfig``, JSON values
    """
    return train_cell(config, folder, tick, kind=MessageConfig)


class ReadingConfig(TrainingConfig):
    """Configuration of one evaluation; all keys are required, as JSON values."""

    ERROR = TrainingError
    TRAINING = "an evaluation with and without messages"

    model: str  # folder of the run
    windows: int = Field(ge=1)  # a commit, at most


def reading_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Evaluate one model on the same windows of the commits held out, read in each of the ways of ``READINGS``.

    :param config: the keys of ``ReadingConfig``, JSON values
    :returns: the commit of each window, and for each reading its mean loss, in nats an action, and where it directly follows the message
    """
    wanted, started = ReadingConfig.parse(config), time.process_time()
    with deterministic():
        cell, (model, _) = MessageConfig.parse(training_config(Path(wanted.model))), load_model(Path(wanted.model))
        _, held_out = cell.windows()
        places = held_out.spread(wanted.windows, cell.length)
        losses = {reading: score(model, _batches(held_out, places, cell.length, reading)).loss[:, -cell.length :].mean(axis=1).tolist()
                  for reading in READINGS}
    commits = [number for number, _ in places]
    return {"commits": commits, "follows": [start == 0 for _, start in places], **losses}, {"cpu_seconds": time.process_time() - started}


def _batches(windows: MessageWindows, places: Sequence[tuple[int, int]], length: int, reading: str) -> Iterator[Batch]:
    for i in range(0, len(places), BATCH):
        yield windows.batch(places[i : i + BATCH], length, reading).whole()
