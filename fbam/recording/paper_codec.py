r"""The paper's own encoding of frames, rebuilt from its text for a comparison of sizes (section 10.1, figure 15).

A frame is written cell by cell, row by row, into a stream of bits, high bits first:

====================================  =================================================================================
bits                                  meaning
====================================  =================================================================================
``0``, place                          normal cell: its place in the palette; place 0, and 56 bits: a new cell
``1 0``, length                       equivalence run: the next cells are those of the frame before
``1 1``, length, distance             repeat run: the next cells repeat what stands ``distance`` cells back in the window
====================================  =================================================================================

A length or a distance is ``0`` and 8 bits, or ``1`` and 16 bits, less 1. So an unchanged frame of 48 x 160 takes 19 bits.

The text gives the runs and their header, 8 or 16 bits of length, and the words sliding window, palette and tight packing.
It leaves open, and here was chosen:

- the window is the last 2^16 cells that no equivalence run gave, since normal cells are what "runs may reference"; a
  repeat of one cell is a distance of 1; distances are written as lengths are;
- the palette holds whole cells as they appear, at most 2^16 - 1; a place takes as many bits as the palette needs at
  that moment, and a new cell is 32 bits of code point and 24 of colours and style;
- a run ends with its frame at the latest, the frame before the first is blank, and there are no keyframes: one stream;
- the encoder is greedy: of the runs that are shorter than normal cells it takes the longest.

Actions are stored apart, as in the paper, and are not part of this.
"""

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from numba import njit

from fbam.recording.cells import CELL, Frames, blank, pack, unpack

HEADER = struct.Struct("<III")
"""Number of frames, rows, columns."""
WINDOW = 1 << 16
PALETTE = (1 << 16) - 1
CELL_BITS = 56
SHORTEST = 4
"""Cells that a place in the window is found by; a run at distance 1 may be shorter."""
BYTES_A_CELL = 10
"""Room for a cell in any case: one bit, 16 of its place, and the cell."""

AT, SEEN, KNOWN = range(3)
"""State: place in the stream in bits, cells that went through the window, size of the palette."""

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
HASH_SHIFT = np.uint64(47)
SLOTS = 1 << 17

compiled = njit(cache=True, error_model="numpy")


@compiled
def put(out, state, value, width):
    for k in range(width - 1, -1, -1):
        out[state[AT] >> 3] |= np.uint8(((value >> np.uint64(k)) & np.uint64(1)) << np.uint64(7 - (state[AT] & 7)))
        state[AT] += 1


@compiled
def put_length(out, state, length):
    """Write a length or a distance."""
    long = length > 256
    put(out, state, np.uint64(long), 1)
    put(out, state, np.uint64(length - 1), 16 if long else 8)


@compiled
def length_bits(length):
    return 17 if length > 256 else 9


@compiled
def place_bits(known):
    """Bits of a place 0 to ``known``."""
    bits = 0
    while known >> bits:
        bits += 1
    return bits


@compiled
def put_cell(out, state, cell, palette, slots):
    """Write a normal cell; ``slots`` is a hash table of places in the palette, counted from 1, 0 where it is free."""
    slot = np.int64((cell * MULTIPLIER) >> HASH_SHIFT)
    while slots[slot] and palette[slots[slot] - 1] != cell:
        slot = (slot + 1) % SLOTS
    put(out, state, np.uint64(0), 1)
    put(out, state, np.uint64(slots[slot]), place_bits(state[KNOWN]))
    if not slots[slot]:
        put(out, state, cell, CELL_BITS)
        if state[KNOWN] < PALETTE:
            palette[state[KNOWN]] = cell
            state[KNOWN] += 1
            slots[slot] = state[KNOWN]


@compiled
def window_hash(window, last):
    """The hash of the ``SHORTEST`` cells of the window that end with number ``last``."""
    value = np.uint64(0)
    for k in range(SHORTEST):
        value = (value + window[(last - k) % WINDOW]) * MULTIPLIER
    return np.int64(value >> HASH_SHIFT)


@compiled
def slide(window, newest, state, cell):
    """Put a cell into the window; ``newest`` finds the newest place by hash."""
    seen = state[SEEN]
    window[seen % WINDOW] = cell
    state[SEEN] = seen + 1
    if seen + 1 >= SHORTEST:
        newest[window_hash(window, seen)] = seen + 1 - SHORTEST


@compiled
def repeated(window, seen, distance, new, p):
    """How many cells from ``p`` on are those ``distance`` back in the window, which goes on with them."""
    if not 0 < distance <= min(seen, WINDOW):
        return 0
    n, most = 0, min(len(new) - p, WINDOW)
    while n < most and new[p + n] == (window[(seen - distance + n) % WINDOW] if n < distance else new[p + n - distance]):
        n += 1
    return n


@compiled
def newest_distance(window, newest, seen, new, p):
    """How far back the window last held the next cells; 0 if that is not known."""
    if p + SHORTEST > len(new):
        return 0
    value = np.uint64(0)
    for k in range(SHORTEST):
        value = (value + new[p + SHORTEST - 1 - k]) * MULTIPLIER
    place = newest[np.int64(value >> HASH_SHIFT)]
    return seen - place if place >= 0 else 0


@compiled
def encode_frame(old, new, out, state, palette, slots, window, newest):
    """Write one frame.

    :param old: (R C,) packed cells of the frame before
    :param new: (R C,) those of this one
    :param out: zeros from the first free bit on
    """
    p = 0
    while p < len(new):
        same = 0
        while p + same < len(new) and same < WINDOW and new[p + same] == old[p + same]:
            same += 1
        cell_bits = 1 + place_bits(state[KNOWN])
        if same and 2 + length_bits(same) >= same * cell_bits:
            same = 0
        best, distance = 0, 0
        for candidate in (1, newest_distance(window, newest, state[SEEN], new, p)):
            n = repeated(window, state[SEEN], candidate, new, p)
            if n > best and 2 + length_bits(n) + length_bits(candidate) < n * cell_bits:
                best, distance = n, candidate
        if same and same >= best:
            put(out, state, np.uint64(0b10), 2)
            put_length(out, state, same)
            p += same
            continue
        if best:
            put(out, state, np.uint64(0b11), 2)
            put_length(out, state, best)
            put_length(out, state, distance)
        else:
            put_cell(out, state, new[p], palette, slots)
        for q in range(p, p + max(best, 1)):
            slide(window, newest, state, new[q])
        p += max(best, 1)


@compiled
def get(data, state, width):
    if state[AT] + width > 8 * len(data):
        raise ValueError("the frames end too early")
    value = np.uint64(0)
    for _ in range(width):
        bit = (data[state[AT] >> 3] >> np.uint8(7 - (state[AT] & 7))) & np.uint8(1)
        value = value << np.uint64(1) | np.uint64(bit)
        state[AT] += 1
    return value


@compiled
def get_length(data, state):
    return np.int64(get(data, state, 16 if get(data, state, 1) else 8)) + 1


@compiled
def get_cell(data, state, palette):
    place = np.int64(get(data, state, place_bits(state[KNOWN])))
    if place > state[KNOWN]:
        raise ValueError("a cell of the frames is not in the palette")
    if place:
        return palette[place - 1]
    cell = get(data, state, CELL_BITS)
    if state[KNOWN] < PALETTE:
        palette[state[KNOWN]] = cell
        state[KNOWN] += 1
    return cell


@compiled
def decode_frame(data, state, frame, palette, window):
    """Turn the frame before into the next one."""
    p = 0
    while p < len(frame):
        run = get(data, state, 1)
        repeat = run and get(data, state, 1)
        n = get_length(data, state) if run else 1
        if p + n > len(frame):
            raise ValueError("a run of the frames is longer than its frame")
        if not run:
            cell = get_cell(data, state, palette)
        distance = get_length(data, state) if repeat else 0
        if distance > state[SEEN]:
            raise ValueError("a run of the frames begins before them")
        if run and not repeat:
            p += n
            continue
        for q in range(p, p + n):
            if repeat:
                cell = window[(state[SEEN] - distance) % WINDOW]
            frame[q] = cell
            window[state[SEEN] % WINDOW] = cell
            state[SEEN] += 1
        p += n


def encode_chunks(chunks: Iterable[Frames], rows: int, cols: int) -> bytes:
    """Return frames, given some at a time, as bytes; how they are divided makes no difference.

    :param chunks: arrays (k, R, C) of ``CELL``
    :raises ValueError: frames of another size
    """
    old = pack(blank(rows, cols)).reshape(-1)  # (R C,)
    state = np.zeros(3, dtype=np.int64)
    palette, slots = np.zeros(PALETTE, dtype=np.uint64), np.zeros(SLOTS, dtype=np.int64)
    window, newest = np.zeros(WINDOW, dtype=np.uint64), np.full(SLOTS, -1, dtype=np.int64)
    out = np.zeros(BYTES_A_CELL * rows * cols + 1, dtype=np.uint8)
    data, n = bytearray(), 0
    for frames in chunks:
        if frames.shape[1:] != (rows, cols):
            raise ValueError(f"frames of {frames.shape[1:]}: they must all be {rows} x {cols}")
        for new in pack(frames).reshape(-1, rows * cols):
            encode_frame(old, new, out, state, palette, slots, window, newest)
            whole = state[AT] // 8
            data += out[:whole].tobytes()
            unfinished = out[whole]
            out[: whole + 1] = 0
            out[0], state[AT], old = unfinished, state[AT] % 8, new
        n += len(frames)
    return HEADER.pack(n, rows, cols) + bytes(data) + out[: -(-state[AT] // 8)].tobytes()


def encode(frames: Frames) -> bytes:
    """Return (n, R, C) frames of ``CELL`` as bytes."""
    return encode_chunks([frames], *frames.shape[1:])


def decode(data: bytes) -> Frames:
    """Return the (n, R, C) frames that ``encode`` wrote.

    :raises ValueError: other bytes
    """
    if len(data) < HEADER.size:
        raise ValueError("the frames end too early")
    n, rows, cols = HEADER.unpack_from(data)
    stream = np.frombuffer(data, dtype=np.uint8, offset=HEADER.size)
    frame = pack(blank(rows, cols)).reshape(-1)  # (R C,)
    state = np.zeros(3, dtype=np.int64)
    palette, window = np.zeros(PALETTE, dtype=np.uint64), np.zeros(WINDOW, dtype=np.uint64)
    out = np.empty((n, rows, cols), dtype=CELL)
    for t in range(n):
        decode_frame(stream, state, frame, palette, window)
        out[t] = unpack(frame).reshape(rows, cols)
    return out
