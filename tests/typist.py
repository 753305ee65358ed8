"""Small recordings for the tests of windows and training: someone types words, one character an action.

Each frame carries its number in the colours of its first cell, so that no two frames of a recording are alike.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fbam.recording.cells import REVERSE, Frames, blank
from fbam.recording.format import Recording, RecordingWriter
from fbam.recording.tokens import ActionTokenizer

WORDS = ["one", "two", "three", "four"]


def screen(number: int, text: str, rows: int, cols: int) -> Frames:
    """Frame `number`: the last characters of `text`, a cursor behind them, (R, C)."""
    frame = blank(rows, cols)
    frame["fg"][0, 0], frame["bg"][0, 0] = divmod(number, 256)
    shown = text[-(rows * cols - 1) :]
    flat = frame.reshape(-1)
    flat["code"][: len(shown)] = [ord(character) for character in shown]
    flat["style"][len(shown)] = REVERSE
    return frame


def sessions(seed: int, commits: int = 10, words: int = 6, rows: int = 2, cols: int = 8) -> list[list[tuple[Frames, str]]]:
    """For each commit the (frame, action) pairs of typing `words` random words."""
    rng, pairs, found = np.random.default_rng(seed), 0, []
    for _ in range(commits):
        text, typed = "", []
        for character in " ".join(rng.choice(WORDS, size=words)) + "\r":
            typed.append((screen(pairs, text, rows, cols), character))
            text, pairs = text + character, pairs + 1
        found.append(typed)
    return found


def record(path: Path, seed: int, commits: int = 10, words: int = 6, rows: int = 2, cols: int = 8) -> Path:
    """Write a recording of `commits` commits with `words` random words each, and return its path."""
    with RecordingWriter(path, rows, cols, block_frames=16, header={"source": "typist"}) as writer:
        for number, typed in enumerate(sessions(seed, commits, words, rows, cols)):
            for frame, character in typed:
                writer.append(frame, character)
            writer.mark_commit(f"{seed}-{number}", f"words {number}")
    return path


def tokenizer(path: Path, recordings: list[Path], vocab_size: int = 300) -> ActionTokenizer:
    """Train a tokenizer on recordings and save it."""
    trained = ActionTokenizer.train([Recording(recording).actions for recording in recordings], vocab_size)
    trained.save(path)
    return trained
