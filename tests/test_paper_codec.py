"""The paper's encoding rebuilt: round trips, the bits of figure 15, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.recording import paper_codec
from fbam.recording.cells import CELL, REVERSE, Frames, blank
from fbam.recording.paper_codec import HEADER, decode, encode, encode_chunks


@st.composite
def sessions(draw: st.DrawFn) -> Frames:
    """(n, R, C) frames, n at least 0: cells typed, rows shifted, frames scrolled or filled with noise."""
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    frame, frames = blank(rows, cols), [blank(rows, cols)]
    for _ in range(draw(st.integers(0, 20))):
        y, x = rng.integers(rows), rng.integers(cols)
        match rng.integers(6):
            case 0:
                frame[y, x] = (rng.choice([10, 97, 0x10FFFF, 2**32 - 1]), rng.integers(256), rng.integers(256), rng.integers(256))
            case 1:
                frame[y, 1:] = frame[y, :-1].copy()
            case 2:
                frame[:] = np.roll(frame, 1, axis=0)
            case 3:
                frame["code"] = rng.integers(97, rng.choice([99, 2**32]), size=frame.shape)
            case 4:
                frame[y:] = frame[y, x]
            case _:
                frame["style"][y, x:] ^= REVERSE
        frames.append(frame.copy())
    return np.stack(frames)[draw(st.integers(0, 1)) :]


def bits(frames: Frames) -> str:
    """What follows the header, as digits."""
    return "".join(f"{byte:08b}" for byte in encode(frames)[HEADER.size :])


def row(text: str) -> Frames:
    frame = blank(1, len(text))
    frame["code"][0] = [ord(character) for character in text]
    return frame


@given(sessions(), st.data())
def test_round_trip_in_any_chunks(frames: Frames, data: st.DataObject) -> None:
    encoded = encode(frames)
    got = decode(encoded)
    assert got.dtype == CELL and np.array_equal(got, frames)
    cut = data.draw(st.integers(0, len(frames)))
    assert encode_chunks([frames[:cut], frames[cut:]], *frames.shape[1:]) == encoded


def test_more_cells_than_window_and_palette_hold() -> None:
    rng = np.random.default_rng(0)
    frames = np.zeros((4, 200, 200), dtype=CELL)
    frames["code"] = rng.integers(0, 2**17, size=frames.shape)
    frames["code"][3] = frames["code"][1]  # last seen longer ago than the window goes back
    frames["fg"][2, 100:] = 7
    assert np.array_equal(decode(encode(frames)), frames)
    one = np.zeros((2, 1, 200_000), dtype=CELL)  # runs longer than 16 bits can say
    one["code"][1, 0, 100_000:] = 5
    assert np.array_equal(decode(encode(one)), one)


def test_runs_are_written_as_in_figure_15() -> None:
    unchanged = np.stack([blank(48, 160)])
    assert bits(unchanged).rstrip("0") == "101" + f"{48 * 160 - 1:016b}"
    new_cell, equal = f"0{ord('x'):056b}", "100" + f"{40 - 1:08b}"
    assert bits(np.stack([row("x" + " " * 40)])).startswith(new_cell + equal)
    repeat = "110" + f"{39 - 1:08b}" + "0" + f"{1 - 1:08b}"
    assert bits(np.stack([row("x" * 40)])).startswith(new_cell + repeat)


def test_a_row_seen_before_is_a_reference() -> None:
    text = "the quick brown fox jumps over the lazy dog."
    frames = np.stack([row(" " * 44), row(text), row(" " * 44), row(text)])
    sizes = [len(encode(frames[:n])) for n in range(1, 5)]
    assert sizes[3] - sizes[2] <= 5 < sizes[1] - sizes[0]


def test_a_file_of_another_kind_is_refused() -> None:
    frames = np.stack([blank(3, 8)] * 9)
    frames["code"][4:] = np.random.default_rng(0).integers(97, 100, size=(5, 3, 8))
    encoded = encode(frames)
    for size in range(len(encoded)):
        with pytest.raises(ValueError, match="end too early"):
            decode(encoded[:size])
    rng = np.random.default_rng(1)
    for _ in range(300):
        damaged = np.frombuffer(encoded, dtype=np.uint8).copy()
        damaged[rng.integers(HEADER.size, len(damaged))] = rng.integers(256)
        try:
            decode(damaged.tobytes())
        except ValueError as error:
            assert "frames" in str(error)
    with pytest.raises(ValueError, match="must all be 3 x 9"):
        encode_chunks([frames], 3, 9)


def test_room_for_the_worst_cell() -> None:
    assert 8 * paper_codec.BYTES_A_CELL >= 1 + 16 + paper_codec.CELL_BITS
