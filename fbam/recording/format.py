"""The recording file ``.fbam``: frames, actions and commits of an editing session (paper, section 10.1).

Pair t of a recording is the frame x_t, the screen before, and the action a_t pressed on it. The file is written from
front to back and read by blocks, so a window of frames costs the decoding of one or two blocks wherever it lies:

=========  ===========================================================================================================
preamble   ``MAGIC``, length and CRC-32 of the header
header     JSON: format_version, rows, cols, block_frames, and what the writer of the file adds
blocks     each ``block_frames`` frames (the last may hold fewer), self-contained, see ``blocks.py``; zstd
actions    JSON list of all actions; zstd
index      JSON: length and CRC-32 of each block and of the actions, number of frames, commits; zstd
trailer    length and CRC-32 of the index, ``MAGIC``
=========  ===========================================================================================================

Preamble, header and its key ``format_version`` stay as they are in every later version; all after them may change.
Every byte is under a checksum or compared. The bytes depend on the input and on the version of zstd only.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import zstandard

from fbam.recording import exact_json
from fbam.recording.blocks import MAX_STRIP, OPAQUE, Block, encode_block
from fbam.recording.cells import CELL, Frames

FORMAT_VERSION = 1
MAGIC = b"\x89fbam\r\n\x1a"
"""First and last 8 bytes: not text, and damaged by any change of line ends on the way."""

LENGTH_AND_CHECKSUM = struct.Struct("<II")
LEVEL = 9
"""zstd level; 12 saves 1 to 4 % of the bytes and takes longer."""

CACHED_BLOCKS = 16
"""Blocks whose changes a reader keeps in memory, the last ones used."""


class RecordingError(ValueError):
    """A recording cannot be read: absent, not ours, of a newer version, truncated or damaged."""


class CommitSpan(NamedTuple):
    """The pairs start to stop - 1 of a recording, which belong to one commit."""

    commit_id: str
    message: str
    start: int
    stop: int


class RecordingWriter:
    """Writes a recording; a context manager.

    Memory holds one block of frames; actions and index aside. The file appears under its name when the context is left
    without an exception. Until then it grows as ``.NAME.part`` beside it, which an exception removes; what a killed
    process leaves of it is overwritten by the next writer of that file. An older file of the name stays until then.

    :param path: file to write; its folder exists
    :param rows: R, rows of each frame
    :param cols: C, columns of each frame
    :param block_frames: frames a block; fewer make random access faster and the file larger
    :param header: what else to store about the recording (source, revision, ...), anything JSON can express
    :raises ValueError: a size out of range, or a header with a reserved key or something JSON cannot express
    """

    def __init__(
        self, path: Path | str, rows: int, cols: int, *, block_frames: int = 128, header: dict[str, Any]
    ) -> None:
        if min(rows, cols, block_frames) < 1 or rows * cols * block_frames > MAX_STRIP:
            sizes = f"rows {rows}, cols {cols}, block_frames {block_frames}"
            raise ValueError(f"{sizes}: each must be at least 1 and their product below 2**32")
        own = {"format_version": FORMAT_VERSION, "rows": rows, "cols": cols, "block_frames": block_frames}
        if taken := sorted(header.keys() & own):
            raise ValueError(f"header key {taken[0]!r} is written by the format itself: choose another name")
        self.path = Path(path)
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._header = exact_json.dumps(header | own)
        self._buffer = np.empty((block_frames, rows, cols), dtype=CELL)
        self._opaque = self._buffer.view(OPAQUE)
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._blocks: list[tuple[int, int]] = []
        self._actions: list[str] = []
        self._marks: list[tuple[str, str, int]] = []

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        self._file.write(MAGIC + LENGTH_AND_CHECKSUM.pack(len(self._header), zlib.crc32(self._header)) + self._header)
        return self

    def append(self, frame: Frames, action: str) -> None:
        """Add one pair.

        :param frame: (R, C) array of ``CELL``, copied
        :param action: one character, one control sequence or one paste
        :raises ValueError: a frame of another shape or type, or an action that is not a str
        """
        if frame.shape != self._buffer.shape[1:] or frame.dtype != CELL:
            raise ValueError(f"frame of {frame.dtype} {frame.shape}: it must be CELL {self._buffer.shape[1:]}")
        if not isinstance(action, str):
            raise ValueError(f"action {action!r} is a {type(action).__name__}: an action is a str")
        self._opaque[len(self._actions) % len(self._buffer)] = frame.view(OPAQUE)
        self._actions.append(action)
        if len(self._actions) % len(self._buffer) == 0:
            self._blocks.append(self._write(encode_block(self._buffer)))

    def mark_commit(self, commit_id: str, message: str) -> None:
        """Give all pairs since the last mark, or none if there are none, to one commit."""
        self._marks.append((commit_id, message, len(self._actions)))

    def _write(self, payload: bytes) -> tuple[int, int]:
        data = self._compressor.compress(payload)
        self._file.write(data)
        return len(data), zlib.crc32(data)

    def _finish(self) -> None:
        if rest := len(self._actions) % len(self._buffer):
            self._blocks.append(self._write(encode_block(self._buffer[:rest])))
        actions = self._write(exact_json.dumps(self._actions))
        index = {"n_frames": len(self._actions), "blocks": self._blocks, "actions": actions, "commits": self._marks}
        self._file.write(LENGTH_AND_CHECKSUM.pack(*self._write(exact_json.dumps(index))) + MAGIC)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with self._file:
                if kind is None:
                    self._finish()
            if kind is None:
                os.replace(self._part, self.path)
        finally:
            self._part.unlink(missing_ok=True)


class Recording:
    """Reads a recording. Opening reads header and index; blocks and actions are read and checked when first needed.

    :param path: a ``.fbam`` file
    :raises RecordingError: here or at first use of a damaged part
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError:  # an empty file cannot be mapped
            raise RecordingError(f"{path}: not a recording: the file is empty") from None
        self.header, first_block = self._read_header()
        """What the writer was given, and format_version, rows, cols, block_frames."""
        self.rows: int = self.header["rows"]
        self.cols: int = self.header["cols"]
        self._block_frames: int = self.header["block_frames"]
        index = self._read_index(first_block)
        *self._block_places, self._actions_place = index["places"]
        self.n_frames: int = index["n_frames"]
        self._marks: list[tuple[str, str, int]] = index["commits"]
        self._block = lru_cache(maxsize=CACHED_BLOCKS)(self._read_block)

    @cached_property
    def actions(self) -> list[str]:
        """The action of each pair, n_frames of them."""
        return exact_json.loads(self._decompressed(*self._actions_place, "the actions"))

    @cached_property
    def commits(self) -> list[CommitSpan]:
        """The marked commits in order; pairs after the last mark belong to none."""
        starts = [0, *(stop for _, _, stop in self._marks)]
        return [CommitSpan(name, text, start, stop) for start, (name, text, stop) in zip(starts, self._marks)]

    def frames(self, start: int, stop: int) -> Frames:
        """Return the frames start to stop - 1.

        :returns: (stop - start, R, C) array of ``CELL``; none when stop is not after start
        :raises ValueError: the range does not lie in the recording
        """
        return self.gather(np.arange(start, stop))

    def gather(self, indices: Sequence[int] | npt.NDArray[np.integer]) -> Frames:
        """Return frames in any order, with repetitions if asked for.

        :param indices: (k,) frame numbers, 0 to n_frames - 1
        :returns: (k, R, C) array of ``CELL``
        :raises ValueError: a number that is not in the recording
        """
        indices = np.asarray(indices, dtype=np.int64)  # (k,)
        outside = (indices < 0) | (indices >= self.n_frames)
        if outside.any():
            raise ValueError(f"frame {indices[outside][0]}: {self.path} has {self.n_frames} frames, counted from 0")
        out = np.empty((len(indices), self.rows, self.cols), dtype=CELL)  # (k, R, C)
        order = np.argsort(indices, kind="stable")  # (k,)
        number, local = np.divmod(indices[order], self._block_frames)  # (k,), (k,)
        blocks, starts = np.unique(number, return_index=True)
        for block, start, stop in zip(blocks.tolist(), starts, [*starts[1:], len(order)]):
            self._block(block).draw(local[start:stop].tolist(), order[start:stop].tolist(), out)
        return out

    def _read_header(self) -> tuple[dict[str, Any], int]:
        """Return the header and the position of the first block."""
        start = len(MAGIC) + LENGTH_AND_CHECKSUM.size
        if self._data[: len(MAGIC)] != MAGIC or len(self._data) < start:
            raise RecordingError(f"{self.path}: not a recording: the mark of the format is missing")
        length, checksum = LENGTH_AND_CHECKSUM.unpack_from(self._data, len(MAGIC))
        header: dict[str, Any] = exact_json.loads(self._checked(start, length, checksum, "the header"))
        if header["format_version"] > FORMAT_VERSION:
            versions = f"format version {header['format_version']}, this fbam reads up to {FORMAT_VERSION}"
            raise RecordingError(f"{self.path}: written in {versions}: update fbam")
        return header, start + length

    def _read_index(self, first_block: int) -> dict[str, Any]:
        """Return the index, with the place (start, length, checksum) of each block and of the actions added."""
        stop = len(self._data) - LENGTH_AND_CHECKSUM.size - len(MAGIC)
        if stop < first_block or self._data[-len(MAGIC) :] != MAGIC:
            raise self._damaged("the end")
        length, checksum = LENGTH_AND_CHECKSUM.unpack_from(self._data, stop)
        index: dict[str, Any] = exact_json.loads(self._decompressed(stop - length, length, checksum, "the index"))
        parts = [*index["blocks"], index["actions"]]
        *starts, end = accumulate((size for size, _ in parts), initial=first_block)
        if end != stop - length:
            raise self._damaged("the length")
        index["places"] = [(start, *part) for start, part in zip(starts, parts, strict=True)]
        return index

    def _read_block(self, number: int) -> Block:
        payload = self._decompressed(*self._block_places[number], f"block {number}")
        n = min(self._block_frames, self.n_frames - number * self._block_frames)
        return Block.decode(payload, n, self.rows, self.cols)

    def _checked(self, start: int, length: int, checksum: int, what: str) -> bytes:
        data = self._data[max(start, 0) : start + length]
        if not 0 < len(data) == length or zlib.crc32(data) != checksum:
            raise self._damaged(what)
        return data

    def _decompressed(self, start: int, length: int, checksum: int, what: str) -> bytes:
        return zstandard.decompress(self._checked(start, length, checksum, what))

    def _damaged(self, what: str) -> RecordingError:
        return RecordingError(f"{self.path}: truncated or damaged: {what} is not as written; compile it again")
