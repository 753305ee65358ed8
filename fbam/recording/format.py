"""The recording file ``.fbam``: frames, actions and commits of an editing session (paper, section 10.1).

Pair t of a recording is the frame x_t, the screen before, and the action a_t pressed on it. The file is written from
front to back and read by blocks, so a window of frames costs the decoding of one or two blocks wherever it lies:

=========  ===========================================================================================================
preamble   ``MAGIC``, length and CRC-32 of the header
header     JSON: format_version, rows, cols, block_frames, and what the writer of the file adds
blocks     each ``block_frames`` frames (the last may hold fewer), self-contained, see ``blocks.py``; zstd
actions    the code of each action, one byte for most; bzip2
index      JSON: length and CRC-32 of each block and of the actions, number of frames, palette, actions of several
           characters, commits, opened files, exclusions; zstd
trailer    length and CRC-32 of the index, CRC-32 of all before the trailer, ``MAGIC``
=========  ===========================================================================================================

Preamble, header and its key ``format_version`` stay as they are in every later version; all after them may change.
Every byte is under a checksum or compared. The bytes depend on the input and on the versions of zstd and bzip2 only.
"""

import bz2
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

from fbam.recording import exact_json, kernels
from fbam.recording.blocks import SNAPSHOTS, Block, Canvas
from fbam.recording.cells import CELL, Frames, pack
from fbam.recording.exclusions import Exclusion

FORMAT_VERSION = 3
MAGIC = b"\x89fbam\r\n\x1a"
"""First and last 8 bytes: not text, and damaged by any change of line ends on the way."""

LENGTH_AND_CHECKSUM = struct.Struct("<II")
TRAILER = struct.Struct("<III")
LEVEL = 5
"""zstd level of blocks and index."""

MAX_CELLS, MAX_BLOCK_FRAMES = 2**24, 2**20
"""Largest frame and longest block."""

CACHE_BYTES = 2**26
"""Memory for the blocks that a reader keeps, the last ones used."""
MAX_CACHED = 1024
"""Most blocks that a reader keeps."""


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

    Memory holds one block; actions, compressed, and index aside. The file appears under its name when the context is left
    without an exception. Until then it grows as ``.NAME.part`` beside it, which an exception removes; what a killed
    process leaves of it is overwritten by the next writer of that file. An older file of the name stays until then.

    The writer holds the present frame, blank at first. A pair is the present frame and an action; the changes that come
    with it are what the action does to the frame.

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
        if min(rows, cols, block_frames) < 1 or rows * cols > MAX_CELLS or block_frames > MAX_BLOCK_FRAMES:
            sizes = f"rows {rows}, cols {cols}, block_frames {block_frames}"
            limits = f"at most {MAX_CELLS} cells and {MAX_BLOCK_FRAMES} frames a block"
            raise ValueError(f"{sizes}: each must be at least 1, with {limits}")
        own = {"format_version": FORMAT_VERSION, "rows": rows, "cols": cols, "block_frames": block_frames}
        if taken := sorted(header.keys() & own):
            raise ValueError(f"header key {taken[0]!r} is written by the format itself: choose another name")
        self.path = Path(path)
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._header = exact_json.dumps(header | own)
        self._canvas = Canvas(rows, cols)
        self._block_frames = block_frames
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._n_frames = self._checksum = 0
        self._blocks: list[tuple[int, int]] = []
        self._actions = bz2.BZ2Compressor()
        self._action_data: list[bytes] = []
        self._sequences: dict[str, int] = {}
        self._commits: list[tuple[str, str, int]] = []
        self._opened: list[tuple[int, str]] = []
        self._exclusions: list[Exclusion] = []

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        self._put(MAGIC + LENGTH_AND_CHECKSUM.pack(len(self._header), zlib.crc32(self._header)) + self._header)
        return self

    def code(self, action: str) -> int:
        """Return the code of an action: its code point if it is one character, a number from 0x110000 on else.

        :raises ValueError: an action that is not a str, or too many of several characters
        """
        if not isinstance(action, str):
            raise ValueError(f"action {action!r} is a {type(action).__name__}: an action is a str")
        if len(action) == 1:
            return ord(action)
        code = kernels.FIRST_SEQUENCE + self._sequences.setdefault(action, len(self._sequences))
        if code > kernels.MAX_CODE:
            raise ValueError(f"{self.path}: more than {len(self._sequences) - 1} different actions of several characters")
        return code

    def extend(
        self,
        codes: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        position: npt.NDArray[np.integer],
        cell: npt.NDArray[np.uint64],
    ) -> None:
        """Add pairs.

        :param codes: (n,) code of each action, see ``code``
        :param offsets: (n + 1,) action i makes the changes offsets[i] to offsets[i + 1] - 1
        :param position: (m,) changed cells, row * C + column, in any order; of repeated ones the last holds
        :param cell: (m,) what they become, see ``cells.pack``
        :raises ValueError: a code that ``code`` did not give, or changes outside the frame or the batch
        """
        n = len(codes)
        if n and not 0 <= codes.min() <= codes.max() < kernels.FIRST_SEQUENCE + len(self._sequences):
            raise ValueError(f"{self.path}: action codes {codes.min()} to {codes.max()}: take them from code()")
        if len(offsets) != n + 1:
            raise ValueError(f"{self.path}: {n} actions need {n + 1} offsets, not {len(offsets)}")
        done = 0
        while done < n:
            stop = min(n, done + self._block_frames - self._n_frames % self._block_frames)
            self._canvas.add(done, stop, offsets, position, cell)
            self._n_frames += stop - done
            done = stop
            if self._n_frames % self._block_frames == 0:
                self._write_block()
        data = np.empty(4 * n, dtype=np.uint8)
        self._action_data.append(self._actions.compress(data[: kernels.put_actions(codes, data)]))

    def draw(self, position: npt.NDArray[np.integer], cell: npt.NDArray[np.uint64]) -> None:
        """Change cells of the present frame without an action.

        :raises ValueError: a position outside the frame
        """
        self._canvas.change(position, cell)

    def append(self, frame: Frames, action: str) -> None:
        """Make a frame the present one and add one pair, the slow way.

        :param frame: (R, C) array of ``CELL``
        :param action: one character, one control sequence or one paste
        :raises ValueError: a frame of another shape or type, or an action that is not a str
        """
        shape = (self._canvas.rows, self._canvas.cols)
        if frame.shape != shape or frame.dtype != CELL:
            raise ValueError(f"frame of {frame.dtype} {frame.shape}: it must be CELL {shape}")
        codes = np.array([self.code(action)], dtype=np.int32)
        self._canvas.show(pack(frame).reshape(-1))
        self.extend(codes, np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))

    def mark_commit(self, commit_id: str, message: str) -> None:
        """Give all pairs since the last mark, or none if there are none, to one commit."""
        self._commits.append((commit_id, message, self._n_frames))

    def mark_file(self, path: str, ahead: int = 0) -> None:
        """Note that the next pair shows a file just opened.

        :param ahead: pairs before that one which the caller has yet to hand over
        """
        self._opened.append((self._n_frames + ahead, path))

    def exclude(self, commit: str, path: str, oid: str, size: int, reason: str) -> None:
        """Note a content that is left out."""
        self._exclusions.append(Exclusion(commit, path, oid, size, reason))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._checksum = zlib.crc32(data, self._checksum)

    def _write_block(self) -> None:
        data = self._compressor.compress(self._canvas.payload())
        self._blocks.append((len(data), zlib.crc32(data)))
        self._put(data)
        self._canvas.begin()

    def _finish(self) -> None:
        if self._n_frames % self._block_frames:
            self._write_block()
        actions = b"".join([*self._action_data, self._actions.flush()])
        self._put(actions)
        index = {
            "n_frames": self._n_frames,
            "blocks": self._blocks,
            "actions": (len(actions), zlib.crc32(actions)),
            "palette": self._canvas.palette.tolist(),
            "sequences": list(self._sequences),
            "commits": self._commits,
            "opened": self._opened,
            "exclusions": self._exclusions,
        }
        data = self._compressor.compress(exact_json.dumps(index))
        self._put(data)
        self._file.write(TRAILER.pack(len(data), zlib.crc32(data), self._checksum) + MAGIC)

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
        self.action_table: list[str] = index["sequences"]
        """Actions of several characters: the action of code 0x110000 + k is number k."""
        self.opened: list[tuple[int, str]] = [(pair, path) for pair, path in index["opened"]]
        """Pairs that show a file just opened, and its path."""
        self.exclusions = [Exclusion(*entry) for entry in index["exclusions"]]
        """What the recording leaves out of the history."""
        self._palette = np.array(index["palette"], dtype=np.uint32)
        self._marks: list[tuple[str, str, int]] = index["commits"]
        block_bytes = (SNAPSHOTS + 1) * self.rows * self.cols * CELL.itemsize
        self._block = lru_cache(maxsize=max(1, min(MAX_CACHED, CACHE_BYTES // block_bytes)))(self._read_block)

    @cached_property
    def action_codes(self) -> npt.NDArray[np.int32]:
        """(n_frames,) the code of each action: a code point, or 0x110000 + its place in ``action_table``."""
        packed = self._checked(*self._actions_place, "the actions")
        codes = np.empty(self.n_frames, dtype=np.int32)
        try:
            data = bz2.decompress(packed)
        except (OSError, ValueError):
            raise self._damaged("the actions") from None
        if not kernels.get_actions(np.frombuffer(data, dtype=np.uint8), codes):
            raise self._damaged("the actions")
        return codes

    @cached_property
    def actions(self) -> list[str]:
        """The action of each pair, n_frames of them."""
        used, places = np.unique(self.action_codes, return_inverse=True)
        first = kernels.FIRST_SEQUENCE
        names = [chr(code) if code < first else self.action_table[code - first] for code in used.tolist()]
        return [names[k] for k in places.tolist()]

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
        out = np.empty((max(0, stop - start), self.rows, self.cols), dtype=CELL)
        self.decode_into(start, out)
        return out

    def decode_into(self, start: int, out: Frames) -> None:
        """Write the frames from ``start`` on into an array.

        To stream, hand over the same array of some 64 frames again and again, each time for the frames that follow. The
        reader goes on from the last frame it has drawn in a block, so that a frame costs its own changes and a copy, and
        such an array stays in the caches.

        :param out: (k, R, C) array of ``CELL`` in C order, filled with k frames
        :raises ValueError: another array, or the range does not lie in the recording
        """
        if out.dtype != CELL or out.shape[1:] != (self.rows, self.cols) or not out.flags.c_contiguous:
            raise ValueError(f"an array of {out.dtype} {out.shape}: it must be CELL (k, {self.rows}, {self.cols}) in C order")
        stop = start + len(out)
        if not len(out):
            return
        if not 0 <= start < stop <= self.n_frames:
            raise self._absent(start if not 0 <= start < self.n_frames else stop - 1)
        for number in range(start // self._block_frames, -(-stop // self._block_frames)):
            first = number * self._block_frames
            low, high = max(start, first), min(stop, first + self._block_frames)
            self._draw(number, np.arange(low - first, high - first), np.arange(low - start, high - start), out)

    def gather(self, indices: Sequence[int] | npt.NDArray[np.integer]) -> Frames:
        """Return frames in any order, with repetitions if asked for.

        :param indices: (k,) frame numbers, 0 to n_frames - 1
        :returns: (k, R, C) array of ``CELL``
        :raises ValueError: a number that is not in the recording
        """
        indices = np.asarray(indices, dtype=np.int64)  # (k,)
        outside = (indices < 0) | (indices >= self.n_frames)
        if outside.any():
            raise self._absent(indices[outside][0])
        out = np.empty((len(indices), self.rows, self.cols), dtype=CELL)  # (k, R, C)
        order = np.argsort(indices, kind="stable")  # (k,)
        number, local = np.divmod(indices[order], self._block_frames)  # (k,), (k,)
        blocks, starts = np.unique(number, return_index=True)
        for block, start, stop in zip(blocks.tolist(), starts, [*starts[1:], len(order)]):
            self._draw(block, local[start:stop], order[start:stop], out)
        return out

    def _absent(self, frame: int) -> ValueError:
        return ValueError(f"frame {frame}: {self.path} has {self.n_frames} frames, counted from 0")

    def _draw(self, number: int, wanted: npt.NDArray[np.int64], slots: npt.NDArray[np.int64], out: Frames) -> None:
        block = self._block(number)
        try:
            block.draw(wanted, slots, out.reshape(len(out), -1).view(np.uint8))
        except ValueError:
            raise self._damaged(f"block {number}") from None

    def check(self) -> None:
        """Hold the checksum of the whole file against its bytes.

        :raises RecordingError: they differ
        """
        stop = len(self._data) - TRAILER.size - len(MAGIC)
        if zlib.crc32(memoryview(self._data)[:stop]) != TRAILER.unpack_from(self._data, stop)[2]:
            raise self._damaged("the file")

    def _read_header(self) -> tuple[dict[str, Any], int]:
        """Return the header and the position of the first block."""
        start = len(MAGIC) + LENGTH_AND_CHECKSUM.size
        if self._data[: len(MAGIC)] != MAGIC or len(self._data) < start:
            raise RecordingError(f"{self.path}: not a recording: the mark of the format is missing")
        length, checksum = LENGTH_AND_CHECKSUM.unpack_from(self._data, len(MAGIC))
        header: dict[str, Any] = exact_json.loads(self._checked(start, length, checksum, "the header"))
        version = header["format_version"]
        if version != FORMAT_VERSION:
            remedy = "update fbam" if version > FORMAT_VERSION else "compile it again"
            raise RecordingError(f"{self.path}: written in format version {version}, this fbam reads {FORMAT_VERSION}: {remedy}")
        return header, start + length

    def _read_index(self, first_block: int) -> dict[str, Any]:
        """Return the index, with the place (start, length, checksum) of each block and of the actions added."""
        stop = len(self._data) - TRAILER.size - len(MAGIC)
        if stop < first_block or self._data[-len(MAGIC) :] != MAGIC:
            raise self._damaged("the end")
        length, checksum, _ = TRAILER.unpack_from(self._data, stop)
        index: dict[str, Any] = exact_json.loads(self._decompressed(stop - length, length, checksum, "the index"))
        parts = [*index["blocks"], index["actions"]]
        *starts, end = accumulate((size for size, _ in parts), initial=first_block)
        if end != stop - length:
            raise self._damaged("the length")
        index["places"] = [(start, *part) for start, part in zip(starts, parts, strict=True)]
        return index

    def _read_block(self, number: int) -> Block:
        what = f"block {number}"
        payload = self._decompressed(*self._block_places[number], what)
        n = min(self._block_frames, self.n_frames - number * self._block_frames)
        try:
            return Block(payload, n, self.rows, self.cols, self._palette)
        except ValueError:
            raise self._damaged(what) from None

    def _checked(self, start: int, length: int, checksum: int, what: str) -> bytes:
        data = self._data[max(start, 0) : start + length]
        if not 0 < len(data) == length or zlib.crc32(data) != checksum:
            raise self._damaged(what)
        return data

    def _decompressed(self, start: int, length: int, checksum: int, what: str) -> bytes:
        with zstandard.ZstdDecompressor().stream_reader(self._checked(start, length, checksum, what)) as reader:
            return reader.read()

    def _damaged(self, what: str) -> RecordingError:
        return RecordingError(f"{self.path}: truncated or damaged: {what} is not as written; compile it again")
