"""The recording format: the block codec against a slow reference, round trips, damage, aborted writers."""

import hashlib
import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fbam.recording import blocks, exact_json, kernels, reference
from fbam.recording.blocks import Block, encode_block
from fbam.recording.cells import BOLD, CELL, REVERSE, Frames, blank, pack, unpack
from fbam.recording.format import FORMAT_VERSION, MAGIC, Recording, RecordingError, RecordingWriter

TEXT = st.text(st.characters())  # lone surrogates included
CONTROL = st.sampled_from(["\r", "\t", "\x7f", "\x1b", "\0", "\x1b[A", "\x1b[5~", "\x1b[3~"])
ACTION = st.one_of(st.characters(), CONTROL, TEXT.map(lambda text: f"\x1b[200~{text}\x1b[201~"), TEXT)
CODE = st.one_of(st.integers(32, 126), st.integers(0, 0x10FFFF), st.just(2**32 - 1))
CELLS = st.tuples(CODE, st.integers(0, 255), st.integers(0, 255), st.integers(0, 7))


@st.composite
def sessions(draw: st.DrawFn, most: int = 12) -> Frames:
    """(n, R, C) frames, n at least 1, each the one before with up to four cells replaced, or filled anew."""
    rows, cols = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    frame = blank(rows, cols)
    frames = []
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 9)) == 0:
            frame[:] = np.array(draw(CELLS), dtype=CELL)
        for _ in range(draw(st.integers(0, 4))):
            frame[draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))] = draw(CELLS)
        frames.append(frame.copy())
    return np.stack(frames)


@st.composite
def edited(draw: st.DrawFn) -> Frames:
    """(n, R, C) frames of few characters and looks, with what the operations are made for: shifts, scrolls, numbers."""
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(1, 14))
    return edit(draw(st.integers(0, 2**32)), draw(st.integers(1, 20)), rows, cols)


def edit(seed: int, n: int, rows: int, cols: int) -> Frames:
    rng = np.random.default_rng(seed)
    frame = blank(rows, cols)
    frames = []
    for _ in range(n):
        for _ in range(rng.integers(0, 4)):
            y, x, h, n = rng.integers(rows), rng.integers(cols), rng.integers(1, rows + 1), rng.integers(1, 4)
            match rng.integers(7):
                case 0:
                    frame[y, x + n :] = frame[y, x : max(x, cols - n)][: max(0, cols - x - n)].copy()
                    frame["code"][y, x : x + n] = rng.choice([10, 32, 97, 48, 200, 70000], size=len(frame[y, x : x + n]))
                case 1:
                    frame[y, x : max(x, cols - n)] = frame[y, x + n :].copy()
                case 2:
                    frame[:, x:] = np.roll(frame[:, x:], rng.integers(-h, h + 1), axis=0)
                case 3:
                    frame["code"][y:h, x:] = rng.integers(97, 123, size=frame[y:h, x:].shape)
                case 4:
                    frame["code"][y, x : x + n] = rng.integers(48, 58, size=len(frame[y, x : x + n]))
                case 5:
                    frame["style"][y : y + n, x:] ^= REVERSE
                case _:
                    frame[y, x] = (rng.integers(97, 100), rng.integers(3), 0, 0)
        frames.append(frame.copy())
    return np.stack(frames)


def as_lists(frames: Frames) -> list[reference.Frame]:
    return [[(int(cell) & 0xFFFFFFFF, int(cell) >> 32) for cell in frame.reshape(-1)] for frame in pack(frames)]


def drawn(payload: bytes, frames: Frames, palette: list[int]) -> Frames:
    out = np.empty_like(frames)
    numbers = np.arange(len(frames))
    block = Block(payload, *frames.shape, np.array(palette, dtype=np.uint32))
    block.draw(numbers, numbers, out.reshape(len(out), -1).view(np.uint8))
    return out


def write(path: Path, frames: Frames, actions: list[str], marks: dict[int, list[tuple[str, str]]], **options) -> Path:
    """Write a recording; ``marks`` gives the commits that end before each pair."""
    header = options.pop("header", {"source": "a test"})
    with RecordingWriter(path, *frames.shape[1:], header=header, **options) as writer:
        for t in range(len(actions) + 1):
            for commit in marks.get(t, []):
                writer.mark_commit(*commit)
            if t < len(actions):
                writer.append(frames[t], actions[t])
    return path


def read_all(path: Path) -> tuple[dict, Frames, list[str], list]:
    recording = Recording(path)
    recording.check()
    return recording.header, recording.frames(0, recording.n_frames), recording.actions, recording.commits


def typed(n: int, rows: int = 2, cols: int = 8) -> tuple[Frames, list[str]]:
    """A session that types the alphabet around the screen."""
    frames, actions, frame = [], [], blank(rows, cols)
    for t in range(n):
        frame["style"].reshape(-1)[t % (rows * cols)] = REVERSE | BOLD
        frames.append(frame.copy())
        actions.append(chr(97 + t % 26))
        frame.reshape(-1)[t % (rows * cols)] = (ord(actions[-1]), 2, 0, 0)
    return np.stack(frames), actions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def sample(folder: Path) -> bytes:
    """The bytes of a small whole file: several blocks, actions, commits."""
    marks = {4: [("c1", "first\n\nbody")], 10: [("c2", "caf\udcc3\udca9")]}
    return write(folder / "sample.fbam", *typed(11), marks, block_frames=3).read_bytes()


@given(st.one_of(sessions(), edited()))
def test_blocks_equal_the_reference(frames: Frames) -> None:
    payload, palette = encode_block(frames)
    encoder = reference.Encoder(*frames.shape[1:])
    for frame in as_lists(frames):
        encoder.add(frame)
    assert (encoder.payload(), encoder.palette) == (payload, palette.tolist())
    decoder = reference.Decoder(payload, *frames.shape[1:], encoder.palette)
    assert [decoder.next() for _ in frames] == as_lists(frames)
    assert np.array_equal(drawn(payload, frames, encoder.palette), frames)


def test_a_run_of_typing_is_a_run_of_equal_bytes() -> None:
    frames, _ = typed(6, 1, 8)
    for t in range(6):
        frames["style"][t] = 0
    payload, _ = encode_block(frames)
    lengths = struct.unpack_from("<4I", payload)
    assert payload[16 : 16 + lengths[0]] == bytes(kernels.LAST | k for k in [kernels.NOTHING, kernels.INSERT, *[kernels.AGAIN] * 4])


@given(st.one_of(sessions(), edited()), st.data())
def test_a_crafted_block_draws_something_or_is_refused(frames: Frames, data: st.DataObject) -> None:
    payload, palette = encode_block(frames)
    crafted = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 6))):
        crafted[data.draw(st.integers(16, len(crafted) - 1))] = data.draw(st.integers(0, 255))
    try:
        drawn(bytes(crafted), frames, palette.tolist())
    except ValueError as error:
        assert "block" in str(error)


def test_more_looks_than_the_first_palette_holds() -> None:
    frames = np.stack([blank(1, 2)] * 300)
    frames["fg"] = np.arange(600).reshape(300, 1, 2) % 256
    frames["bg"] = np.arange(600).reshape(300, 1, 2) // 256
    payload, palette = encode_block(frames)
    assert len(palette) == 599  # the look of a blank cell is never written
    assert np.array_equal(drawn(payload, frames, palette.tolist()), frames)


@pytest.mark.parametrize("payload", [bytes(10), bytes(17)])
def test_a_block_that_does_not_fit_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="streams"):
        Block(payload, 4, 2, 3, np.zeros(1, np.uint32))


@settings(max_examples=60)
@given(st.data())
def test_round_trip(folder: Path, data: st.DataObject) -> None:
    frames = data.draw(sessions())
    n = len(frames)
    actions = data.draw(st.lists(ACTION, min_size=n, max_size=n))
    marks = data.draw(st.dictionaries(st.integers(0, n), st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=2)))
    own_key = TEXT.map(lambda text: f"x{text}")  # a key of the format's own is refused
    extra = data.draw(st.dictionaries(own_key, st.one_of(TEXT, st.integers(), st.none()), max_size=3))
    block_frames = data.draw(st.integers(1, 14))
    path = write(folder / "trip.fbam", frames, actions, marks, block_frames=block_frames, header=extra)
    recording = Recording(path)
    sizes = {"rows": recording.rows, "cols": recording.cols, "block_frames": block_frames}
    assert recording.header == extra | sizes | {"format_version": FORMAT_VERSION}
    assert (recording.n_frames, recording.rows, recording.cols) == frames.shape
    assert recording.actions == actions
    assert [span[:2] for span in recording.commits] == [commit for t in sorted(marks) for commit in marks[t]]
    assert [span.stop for span in recording.commits] == [t for t in sorted(marks) for _ in marks[t]]
    assert [span.start for span in recording.commits] == [0, *(span.stop for span in recording.commits)][:-1]
    wanted = data.draw(st.lists(st.integers(0, n - 1)))
    assert np.array_equal(recording.gather(wanted), frames[wanted])
    start = data.draw(st.integers(0, n))
    assert np.array_equal(recording.frames(start, n), frames[start:])


@settings(max_examples=60)
@given(st.one_of(sessions(), edited()), st.data())
def test_batches_equal_one_pair_at_a_time(folder: Path, frames: Frames, data: st.DataObject) -> None:
    n = len(frames)
    actions = data.draw(st.lists(ACTION, min_size=n, max_size=n))
    slow = write(folder / "slow.fbam", frames, actions, {}, block_frames=5)
    packed = pack(frames).reshape(n, -1)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    with RecordingWriter(folder / "fast.fbam", *frames.shape[1:], block_frames=5, header={"source": "a test"}) as writer:
        codes = np.array([writer.code(action) for action in actions], dtype=np.int32)
        writer.draw(np.arange(packed.shape[1]), packed[0])
        position = [np.flatnonzero(after != before) for before, after in zip(packed, packed[1:])]
        position = [rng.permutation(np.r_[p, rng.integers(0, packed.shape[1], 2)]) for p in position] + [np.zeros(0, int)]
        cell = [after[p] for p, after in zip(position, [*packed[1:], packed[-1]])]
        offsets = np.cumsum([0, *map(len, position)])
        cut = data.draw(st.integers(0, n))
        for start, stop in ((0, cut), (cut, n)):
            writer.extend(codes[start:stop], offsets[start : stop + 1], np.concatenate(position), np.concatenate(cell))
    assert (folder / "fast.fbam").read_bytes() == slow.read_bytes()
    recording = Recording(slow)
    assert np.array_equal(recording.action_codes, codes)
    out = np.empty_like(frames)
    recording.decode_into(0, out)
    assert np.array_equal(out, frames) and np.array_equal(unpack(pack(out)), out)


def test_opened_files_and_exclusions(folder: Path) -> None:
    gone = ("c1", "a\udcffb.bin", "0" * 40, 12, "binary")
    with RecordingWriter(folder / "notes.fbam", 2, 3, header={}) as writer:
        writer.exclude(*gone)
        writer.mark_file("first.py")
        for path in ("second.py", "third.py"):
            writer.append(blank(2, 3), "\x1b[A")
            writer.mark_file(path)
        writer.mark_file("fourth.py", ahead=1)
        writer.append(blank(2, 3), "x")
    recording = Recording(folder / "notes.fbam")
    assert recording.opened == [(0, "first.py"), (1, "second.py"), (2, "third.py"), (3, "fourth.py")]
    assert recording.exclusions == [gone] and recording.exclusions[0].reason == "binary"
    assert recording.action_table == ["\x1b[A"] and recording.actions == ["\x1b[A", "\x1b[A", "x"]


def test_bad_batches(tmp_path: Path) -> None:
    one = np.ones(1, np.int64)
    with RecordingWriter(tmp_path / "x.fbam", 2, 3, header={}) as writer:
        for codes, offsets, position, reason in [
            ([0x110000], [0, 0], [0], "take them from code"), ([-1], [0, 0], [0], "take them"), ([97], [0], [0], "need 2 offsets"),
            ([97], [0, 1], [6], "outside the frame"), ([97], [0, 1], [-1], "outside"), ([97], [0, 2], [0], "offsets"),
            ([97], [1, 0], [0], "offsets"),
        ]:  # fmt: skip
            with pytest.raises(ValueError, match=reason):
                writer.extend(np.array(codes, np.int32), np.array(offsets), np.array(position), one.astype(np.uint64))


def test_many_blocks_in_any_order(folder: Path) -> None:
    frames, actions = typed(700, 3, 5)
    recording = Recording(write(folder / "many.fbam", frames, actions, {}, block_frames=8))
    rng = np.random.default_rng(0)
    for _ in range(50):
        wanted = rng.integers(0, 700, size=20)
        assert np.array_equal(recording.gather(wanted), frames[wanted])


@pytest.fixture(scope="module")
def long(folder: Path) -> tuple[Path, Frames]:
    """A recording of blocks that keep every fourth frame, and its frames as the reference decodes them."""
    frames = edit(0, 150, 4, 9)
    path = write(folder / "long.fbam", frames, ["a"] * 150, {}, block_frames=64)
    slow = []
    for start in range(0, 150, 64):
        payload, palette = encode_block(frames[start : start + 64])
        decoder = reference.Decoder(payload, 4, 9, palette.tolist())
        slow += [decoder.next() for _ in frames[start : start + 64]]
    packed = [[code | look << 32 for code, look in frame] for frame in slow]
    return path, unpack(np.array(packed, np.uint64)).reshape(150, 4, 9)


NUMBER = st.integers(0, 149)
CALL = st.one_of(st.tuples(NUMBER, st.integers(1, 90)), st.lists(NUMBER, min_size=1, max_size=9))


@given(st.lists(CALL, min_size=1, max_size=9), st.booleans())
def test_calls_in_any_order_equal_the_reference(long: tuple[Path, Frames], calls: list, on: bool) -> None:
    path, expected = long
    recording, at = Recording(path), 0
    for call in calls:
        if isinstance(call, list):
            assert np.array_equal(recording.gather(call), expected[call])
        else:
            start = at if on else call[0]  # where the last range ends, or anywhere
            at = min(start + call[1], 150)
            assert np.array_equal(recording.frames(start, at), expected[start:at])
            at %= 150


def test_reading_on_reads_nothing_again() -> None:
    frames = edit(1, 200, 4, 9)
    payload, palette = encode_block(frames)
    block, out = Block(payload, 200, 4, 9, palette), np.empty_like(frames[:50])
    drawing = out.reshape(50, -1).view(np.uint8)
    for start in range(0, 200, 50):
        block.draw(np.arange(start, start + 50), np.arange(50), drawing)
        assert np.array_equal(out, frames[start : start + 50])
        codes, place = block._places[0, kernels.CODES], block._places[-1, kernels.CODES]
        spoilt = payload[:codes] + bytes([255]) * (place - codes) + payload[place:]
        block._payload = np.frombuffer(spoilt, np.uint8)
    with pytest.raises(ValueError, match="number of the block"):
        block.draw(np.arange(150, 151), np.arange(1), drawing)


@pytest.mark.parametrize("offset", range(8))
def test_arrays_beyond_the_caches(long: tuple[Path, Frames], monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    monkeypatch.setattr(blocks, "LARGE_ARRAY", 0)
    path, expected = long
    around = bytearray(b"\xaa" * (16 + offset + 150 * expected[0].nbytes))
    out = np.frombuffer(around, CELL, expected.size, offset).reshape(expected.shape)
    Recording(path).decode_into(0, out)
    assert np.array_equal(out, expected)
    assert set(around[:offset] + around[offset + out.nbytes :]) == {0xAA}, "bytes beside the array"


def test_nothing_recorded(folder: Path) -> None:
    path = write(folder / "empty.fbam", np.stack([blank(2, 3)]), [], {0: [("c", "nothing changed")]})
    _, frames, actions, commits = read_all(path)
    assert frames.shape == (0, 2, 3) and actions == [] and commits == [("c", "nothing changed", 0, 0)]


def test_the_writer_takes_any_layout_of_a_frame(folder: Path) -> None:
    frames, actions = typed(5)
    turned = np.asfortranarray(np.stack([frames] * 2, axis=-1))[..., 1]
    _, got, _, _ = read_all(write(folder / "layout.fbam", turned, actions, {}))
    assert np.array_equal(got, frames)


def test_same_input_same_bytes(folder: Path) -> None:
    frames, actions = typed(50)
    files = [
        write(folder / f"same{k}.fbam", frames, actions, {9: [("c", "m")]}, block_frames=16, header=header)
        for k, header in enumerate([{"source": "s", "revision": "r"}, {"revision": "r", "source": "s"}])
    ]
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert len(digests) == 1


def test_every_flipped_byte_is_noticed(folder: Path, sample: bytes) -> None:
    path = folder / "flipped.fbam"
    rng = np.random.default_rng(0)
    for at in range(len(sample)):
        damaged = bytearray(sample)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(RecordingError):
            read_all(path)


def test_every_truncation_is_noticed(folder: Path, sample: bytes) -> None:
    path = folder / "cut.fbam"
    for size in range(len(sample)):
        path.write_bytes(sample[:size])
        with pytest.raises(RecordingError):
            read_all(path)


def test_every_inserted_byte_is_noticed(folder: Path, sample: bytes) -> None:
    path = folder / "longer.fbam"
    for at in range(len(sample) + 1):
        path.write_bytes(sample[:at] + b"\0" + sample[at:])
        with pytest.raises(RecordingError):
            read_all(path)


@given(data=st.data())
def test_replaced_stretches_are_noticed(folder: Path, sample: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sample)))
    stop = start + data.draw(st.integers(0, 40))
    junk = data.draw(st.one_of(st.binary(max_size=40), st.just(bytes(stop - start))))
    damaged = sample[:start] + junk + sample[stop:]
    path = folder / "junk.fbam"
    path.write_bytes(damaged)
    if damaged == sample:
        read_all(path)
    else:
        with pytest.raises(RecordingError):
            read_all(path)


def test_a_damaged_block_leaves_the_others_readable(folder: Path, sample: bytes) -> None:
    whole = folder / "whole.fbam"
    whole.write_bytes(sample)
    start, length, _ = Recording(whole)._block_places[1]
    path = folder / "block.fbam"
    path.write_bytes(sample[:start] + bytes(length) + sample[start + length :])
    recording = Recording(path)
    frames, actions = typed(11)
    assert recording.actions == actions
    assert np.array_equal(recording.gather([0, 2, 6, 10]), frames[[0, 2, 6, 10]])
    with pytest.raises(RecordingError, match=r"block\.fbam: truncated or damaged: block 1"):
        recording.frames(2, 4)


def test_a_newer_version_is_named(folder: Path) -> None:
    header = exact_json.dumps({"format_version": FORMAT_VERSION + 1, "layout": "unknown yet"})
    path = folder / "newer.fbam"
    path.write_bytes(MAGIC + struct.pack("<II", len(header), zlib.crc32(header)) + header + b"whatever follows")
    with pytest.raises(RecordingError, match=rf"version {FORMAT_VERSION + 1}, this fbam reads {FORMAT_VERSION}: update fbam"):
        Recording(path)


def test_what_is_not_a_recording(folder: Path) -> None:
    (folder / "void.fbam").write_bytes(b"")
    (folder / "text.fbam").write_text("a text\n" * 20)
    for name, reason in [("absent.fbam", "No such file"), ("void.fbam", "empty"), ("text.fbam", "not a recording")]:
        with pytest.raises(RecordingError, match=rf"{name}: .*{reason}"):
            Recording(folder / name)
    with pytest.raises(RecordingError, match="cannot be read"):
        Recording(folder)


@pytest.mark.parametrize("wanted", [[-1], [11], [0, 99]])
def test_a_frame_that_is_not_there(folder: Path, sample: bytes, wanted: list[int]) -> None:
    path = folder / "range.fbam"
    path.write_bytes(sample)
    with pytest.raises(ValueError, match=f"frame {wanted[-1]}: .* has 11 frames"):
        Recording(path).gather(wanted)


def test_bad_input_to_the_writer(tmp_path: Path) -> None:
    for rows, cols, block_frames in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (2**16, 2**16, 1)]:
        with pytest.raises(ValueError, match=f"rows {rows}, cols {cols}"):
            RecordingWriter(tmp_path / "x.fbam", rows, cols, block_frames=block_frames, header={})
    with pytest.raises(ValueError, match="'rows'"):
        RecordingWriter(tmp_path / "x.fbam", 2, 2, header={"rows": 3})
    with pytest.raises(ValueError, match="JSON"):
        RecordingWriter(tmp_path / "x.fbam", 2, 2, header={"source": tmp_path})
    with RecordingWriter(tmp_path / "x.fbam", 2, 2, header={}) as writer:
        for frame in (blank(2, 3), blank(2, 2)["code"]):
            with pytest.raises(ValueError, match="must be CELL"):
                writer.append(frame, "a")
        with pytest.raises(ValueError, match="an action is a str"):
            writer.append(blank(2, 2), 97)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_no_file(tmp_path: Path, error: type[BaseException]) -> None:
    frames, actions = typed(20)
    with pytest.raises(error), RecordingWriter(tmp_path / "x.fbam", 2, 8, block_frames=4, header={}) as writer:
        for frame, action in zip(frames, actions, strict=True):
            writer.append(frame, action)
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_finishing_leaves_the_older_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.fbam", *typed(5), {})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"), RecordingWriter(path, 2, 8, header={}) as writer:
        writer.mark_commit("c", object())  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from fbam.recording.cells import blank
from fbam.recording.format import RecordingWriter
with RecordingWriter(sys.argv[1], 2, 8, block_frames=4, header={}) as writer:
    for _ in range(10):
        writer.append(blank(2, 8), "a")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_publishes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.fbam"
    result = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert result.returncode == -signal.SIGKILL
    assert not path.exists()
    frames, actions = typed(5)
    assert np.array_equal(read_all(write(path, frames, actions, {}))[1], frames)
    assert list(tmp_path.iterdir()) == [path]


def test_the_writer_holds_one_block(tmp_path: Path) -> None:
    def peak(blocks: int) -> int:
        frame = blank(24, 80)
        tracemalloc.start()
        with RecordingWriter(tmp_path / "x.fbam", 24, 80, block_frames=16, header={}) as writer:
            for t in range(16 * blocks):
                frame["code"].reshape(-1)[t % 1920] = 97 + t % 26
                writer.append(frame, "a")
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(60) < 1.3 * peak(3)


def test_blank_needs_a_size() -> None:
    assert (blank(2, 3) == np.array((32, 0, 0, 0), dtype=CELL)).all()
    with pytest.raises(ValueError, match="0 x 3"):
        blank(0, 3)


@given(st.dictionaries(TEXT, st.lists(st.one_of(TEXT, st.integers(), st.none()), max_size=3), max_size=3))
@example({"\ud83d\ude00": ["\udc80", "\U0001f600", '"\\\0']})
def test_exact_json_keeps_every_string(value: object) -> None:
    assert exact_json.loads(exact_json.dumps(value)) == value
