"""How many bytes the same frames take in several encodings (paper, section 10.1).

Each size is that of what was written here; naive cells alone are counted: 32 bits of code point and 8 of colours and style. The
paper's encoding holds frames only, ours frames and actions.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard

from fbam.recording.cells import Frames, blank
from fbam.recording.format import LEVEL, Recording, RecordingWriter
from fbam.recording.paper_codec import encode_chunks

NAIVE_CELL_BYTES = 5
CHUNK = 256
"""Frames in memory at once."""


def encoded_sizes(recording: Recording, n: int, block_frames: Sequence[int]) -> dict[str, int]:
    """Bytes of the first ``n`` pairs of a recording by encoding.

    :param block_frames: frames a block of our format, one encoding each
    """
    sizes = {"naive cells": n * recording.rows * recording.cols * NAIVE_CELL_BYTES}
    theirs = encode_chunks(_chunks(recording, n), recording.rows, recording.cols)
    sizes |= {"the paper's runs": len(theirs), "the paper's runs, then zstd": len(zstandard.compress(theirs, LEVEL))}
    sizes |= {f"ours, blocks of {size} frames": _stored(recording, n, size) for size in block_frames}
    return sizes | {"ours, actions alone": _stored(recording, n, n, blank_frames=True)}


def _stored(recording: Recording, n: int, block_frames: int, blank_frames: bool = False) -> int:
    """Bytes of the recording written again; with blank frames little more than its actions is left."""
    nothing = blank(recording.rows, recording.cols)
    with tempfile.TemporaryDirectory(prefix="fbam-") as folder:
        path = Path(folder, "again.fbam")
        with RecordingWriter(path, recording.rows, recording.cols, block_frames=min(block_frames, n), header={}) as writer:
            actions = iter(recording.actions)
            for frames in _chunks(recording, n):
                for frame in frames:
                    writer.append(nothing if blank_frames else frame, next(actions))
        return path.stat().st_size


def _chunks(recording: Recording, n: int) -> Iterator[Frames]:
    """The first ``n`` frames in arrays of a few."""
    for start in range(0, n, CHUNK):
        yield recording.frames(start, min(start + CHUNK, n))
