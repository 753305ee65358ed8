"""The encoder and decoder of a block in plain Python: what ``kernels.py`` must do, said slowly.

Frames are lists of cells row by row, and a cell is a pair (code, look). Payloads are byte for byte those of the kernels.
"""

import itertools

from fbam.recording.blocks import LENGTHS
from fbam.recording.kernels import (
    AGAIN,
    BLANK,
    CODES,
    COPY,
    DELETE,
    END,
    END_CODE,
    INSERT,
    LAST,
    LINE,
    LOOK,
    MERGED_GAP,
    MOST_DIGITS,
    MOST_SHIFTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    OPERATIONS,
    PLACES,
    SCROLLED_CELLS,
    SCROLLED_ROWS,
    STREAMS,
    TEXT,
)

REPEATED = OPERATIONS, PLACES, NUMBERS
"""Streams that ``AGAIN`` reads anew."""

Cell = tuple[int, int]
Frame = list[Cell]


def varint(value: int) -> bytes:
    """Return 7 bits a byte, low ones first; the last byte is below 128."""
    head, rest = value % 128, value // 128
    return bytes([head + 128]) + varint(rest) if rest else bytes([head])


def zigzag(value: int) -> int:
    """Return 0, 1, 2, 3... for 0, -1, 1, -2..."""
    return 2 * value if value >= 0 else -2 * value - 1


def signed(value: int) -> int:
    """The inverse of ``zigzag``."""
    return -(value + 1) // 2 if value % 2 else value // 2


def number_ending(codes: list[int], stop: int) -> int:
    """Where the decimal number begins that ends before ``stop``, of ``MOST_DIGITS`` digits at most."""
    start = stop
    while start > 0 and stop - start < MOST_DIGITS and 48 <= codes[start - 1] < 58:
        start -= 1
    return start


def decimal(codes: list[int]) -> int:
    """The number that digits show."""
    return int("".join(map(chr, codes)))


class Encoder:
    """Writes the frames of one block."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.frame: Frame = [(BLANK, 0)] * (rows * cols)
        self.palette: list[int] = []
        self.streams = [bytearray() for _ in range(STREAMS)]
        self.cursor = self.first_text = self.last_number = 0
        self.before: list[bytes] = []

    def payload(self) -> bytes:
        """The block so far."""
        return LENGTHS.pack(*map(len, self.streams)) + b"".join(self.streams)

    def add(self, new: Frame) -> None:
        """Write one frame."""
        starts = [len(stream) for stream in self.streams]
        self.last_text: int | None = None
        rows = self.ranges(new)
        if len(rows) >= SCROLLED_ROWS and (distance := self.distance(new, rows)):
            self.copy(new, rows, distance)
            rows = self.ranges(new)
        for row in rows:
            self.row(new, row)
        self.looks(new)
        if len(self.streams[OPERATIONS]) == starts[OPERATIONS]:
            self.put(NOTHING)
        self.streams[OPERATIONS][-1] += LAST
        self.shorten(starts)

    def shorten(self, starts: list[int]) -> None:
        """Say ``AGAIN`` instead of what has been written from ``starts`` on if but the code points are new."""
        written = [bytes(self.streams[k][starts[k] :]) for k in REPEATED]
        if written == self.before:
            for k in REPEATED:
                del self.streams[k][starts[k] :]
            self.put(AGAIN + LAST)
        self.before = written

    def ranges(self, new: Frame) -> dict[int, tuple[int, int]]:
        """Row -> first cell that differs, and the one after the last, counted from the start of the frame."""
        found = {}
        for row in range(self.rows):
            differ = [p for p in range(row * self.cols, (row + 1) * self.cols) if self.frame[p] != new[p]]
            if differ:
                found[row] = (differ[0], differ[-1] + 1)
        return found

    def put(self, operation: int, place: int | None = None, *numbers: int) -> None:
        """Write an operation, a distance of its place, and numbers."""
        self.streams[OPERATIONS].append(operation)
        if place is not None:
            self.streams[PLACES] += varint(zigzag(place))
        for number in numbers:
            self.streams[NUMBERS] += varint(number)

    def put_codes(self, cells: Frame) -> None:
        for code, _ in cells:
            self.streams[CODES] += varint(END_CODE if code == END else code)

    def look(self, look: int) -> int:
        if look not in self.palette:
            self.palette.append(look)
        return self.palette.index(look)

    def moved(self, new: Frame, start: int, stop: int, distance: int) -> bool:
        start_before, stop_before = start - distance * self.cols, stop - distance * self.cols
        inside = 0 <= start_before and stop_before <= len(new)
        return inside and new[start:stop] == self.frame[start_before:stop_before]

    def distance(self, new: Frame, rows: dict[int, tuple[int, int]]) -> int:
        """How far the screen scrolls, 0 if it does not."""
        spans = list(rows.values())
        total = sum(stop - start for start, stop in spans)
        shown = [any(code != BLANK for code, _ in new[start:stop]) for start, stop in spans]
        probes = [
            next((span for span, text in list(zip(spans, shown))[len(spans) * k // 4 :] if text), spans[-1]) for k in range(3)
        ]
        best, most = 0, SCROLLED_CELLS - 1
        for distance in itertools.chain.from_iterable((k, -k) for k in range(1, self.rows)):
            if any(self.moved(new, *span, distance) for span in probes):
                cells = sum(stop - start for start, stop in spans if self.moved(new, start, stop, distance))
                if cells > most:
                    best, most = distance, cells
            if 2 * most >= total:
                break
        return best

    def copy(self, new: Frame, rows: dict[int, tuple[int, int]], distance: int) -> None:
        moved = [row for row, span in rows.items() if self.moved(new, *span, distance)]
        left = min(rows[row][0] - row * self.cols for row in moved)
        right = max(rows[row][1] - row * self.cols for row in moved)
        first, last = moved[0], moved[-1] + 1
        self.put(COPY, None, zigzag(first - self.cursor // self.cols), last, left, right, zigzag(distance))
        before = self.frame.copy()
        for row in range(first, last):
            for p in range(row * self.cols + left, row * self.cols + right):
                self.frame[p] = before[p - distance * self.cols]

    def row(self, new: Frame, row: int) -> None:
        """Write one row, looks aside."""
        start, stop = self.ranges(new)[row]
        row_start, row_stop = row * self.cols, (row + 1) * self.cols
        if self.number(new, row_start, start, stop):
            return
        self.shift(new, start, row_stop, stop - start)
        if row in self.ranges(new):
            self.codes(new, *self.ranges(new)[row], row_start, row_stop)

    def number(self, new: Frame, row_start: int, start: int, stop: int) -> bool:
        before = [code for code, _ in self.frame[row_start:stop]]
        after = [code for code, _ in new[row_start:stop]]
        at = number_ending(before, len(before))
        if row_start + at > start or not all(48 <= code < 58 for code in after[at:]):
            return False
        self.put(NUMBER, stop - 1 - self.last_number, zigzag(decimal(after[at:]) - decimal(before[at:])))
        self.last_number = stop - 1
        self.write(new, row_start + at, stop)
        return True

    def shift(self, new: Frame, start: int, stop: int, changed: int) -> None:
        old = self.frame
        for n in range(1, min(MOST_SHIFTED, changed, stop - start - 1) + 1):
            if new[start + n : stop] == old[start : stop - n]:
                look = new[start][1]
                self.put(INSERT, start - self.cursor, n, self.look(look))
                self.put_codes(new[start : start + n])
                old[start + n : stop] = old[start : stop - n]
                old[start : start + n] = [(code, look) for code, _ in new[start : start + n]]
                self.cursor = start + n
                return
        for n in range(1, min(MOST_SHIFTED, stop - start - 1) + 1):
            if new[start : stop - n] == old[start + n : stop]:
                self.put(DELETE, start - self.cursor, n)
                old[start : stop - n] = old[start + n : stop]
                self.cursor = start
                return

    def codes(self, new: Frame, start: int, stop: int, row_start: int, row_stop: int) -> None:
        differ = [p for p in range(start, stop) if self.frame[p][0] != new[p][0]]
        runs = [list(run) for _, run in itertools.groupby(differ, key=lambda p: p - differ.index(p))]
        merged: tuple[int, int] | None = None
        for p, q in ((run[0], run[-1] + 1) for run in runs):
            if self.number(new, row_start, p, q):
                continue
            if merged and p - merged[1] > MERGED_GAP:
                self.text(new, *merged, row_stop)
                merged = None
            merged = (merged[0] if merged else p, q)
        if merged:
            self.text(new, *merged, row_stop)

    def text(self, new: Frame, start: int, stop: int, row_stop: int) -> None:
        text = [p for p in range(start, row_stop) if new[p][0] != BLANK]
        text_stop = text[-1] + 1 if text else start
        is_line = text_stop <= stop
        if self.last_text is None:
            place = start - self.first_text
            self.first_text = start
        else:
            place = start - self.last_text - self.cols
        self.last_text = start
        self.put(LINE if is_line else TEXT, place, *([] if is_line else [stop - start]))
        self.put_codes(new[start : text_stop if is_line else stop])
        if is_line:
            self.streams[CODES].append(END)
        self.write(new, start, row_stop if is_line else stop)

    def write(self, new: Frame, start: int, stop: int) -> None:
        """Take over codes."""
        for p in range(start, stop):
            self.frame[p] = (new[p][0], self.frame[p][1])

    def looks(self, new: Frame) -> None:
        if self.cursor < len(new) and self.frame[self.cursor] != new[self.cursor]:
            self.put_look(new, self.cursor, self.look_stop(new, self.cursor))
        for shortest in (2, 1):
            p = 0
            while p < len(new):
                stop = self.look_stop(new, p) if self.frame[p] != new[p] else p + 1
                if self.frame[p] != new[p] and stop - p >= shortest:
                    self.put_look(new, p, stop)
                p = stop

    def look_stop(self, new: Frame, p: int) -> int:
        look, stop = new[p][1], p
        while stop < (p // self.cols + 1) * self.cols and new[stop][1] == look != self.frame[stop][1]:
            stop += 1
        return stop

    def put_look(self, new: Frame, start: int, stop: int) -> None:
        self.put(LOOK, start - self.cursor, stop - start, self.look(new[start][1]))
        self.cursor = start
        self.frame[start:stop] = new[start:stop]


class Decoder:
    """Reads the frames of one block."""

    def __init__(self, payload: bytes, rows: int, cols: int, palette: list[int]) -> None:
        self.rows, self.cols, self.palette = rows, cols, palette
        self.frame: Frame = [(BLANK, 0)] * (rows * cols)
        self.payload = payload
        *self.at, _ = itertools.accumulate(LENGTHS.unpack_from(payload), initial=LENGTHS.size)
        self.before = self.at.copy()
        self.cursor = self.first_text = self.last_number = 0

    def byte(self, stream: int) -> int:
        self.at[stream] += 1
        return self.payload[self.at[stream] - 1]

    def varint(self, stream: int) -> int:
        byte = self.byte(stream)
        return byte if byte < 128 else byte - 128 + 128 * self.varint(stream)

    def code(self) -> int:
        code = self.varint(CODES)
        return END if code == END_CODE else code

    def next(self) -> Frame:
        """Return the next frame."""
        if self.payload[self.at[OPERATIONS]] == AGAIN + LAST:
            here = self.at.copy()
            for k in REPEATED:
                self.at[k] = self.before[k]
            self.pair()
            self.at = [here[OPERATIONS] + 1, self.at[CODES], here[PLACES], here[NUMBERS]]
        else:
            self.before = self.at.copy()
            self.pair()
        return self.frame.copy()

    def pair(self) -> None:
        """Carry out the operations that come next, up to the marked one."""
        self.last_text: int | None = None
        last = False
        while not last:
            operation = self.byte(OPERATIONS)
            last = operation >= LAST
            if operation % LAST != NOTHING:
                self.apply(operation % LAST)

    def apply(self, kind: int) -> None:
        if kind == COPY:
            self.copy()
            return
        place = signed(self.varint(PLACES))
        if kind == NUMBER:
            self.last_number += place
            self.number(self.last_number)
        elif kind in (TEXT, LINE):
            before = self.first_text if self.last_text is None else self.last_text + self.cols
            if self.last_text is None:
                self.first_text = before + place
            self.last_text = before + place
            self.text(self.last_text, kind == LINE)
        else:
            self.cursor += place
            self.at_cursor(kind)

    def copy(self) -> None:
        first = self.cursor // self.cols + signed(self.varint(NUMBERS))
        last, left, right = (self.varint(NUMBERS) for _ in range(3))
        distance = signed(self.varint(NUMBERS))
        before = self.frame.copy()
        for row in range(first, last):
            for p in range(row * self.cols + left, row * self.cols + right):
                self.frame[p] = before[p - distance * self.cols]

    def number(self, last: int) -> None:
        row_start = last // self.cols * self.cols
        codes = [code for code, _ in self.frame[row_start : last + 1]]
        at = number_ending(codes, len(codes))
        value = decimal(codes[at:]) + signed(self.varint(NUMBERS))
        for p, digit in enumerate(f"{value:0{len(codes) - at}}", row_start + at):
            self.frame[p] = (ord(digit), self.frame[p][1])

    def text(self, start: int, is_line: bool) -> None:
        if is_line:
            codes = [END if code == END_CODE else code for code in iter(lambda: self.varint(CODES), END)]
            codes += [BLANK] * ((start // self.cols + 1) * self.cols - start - len(codes))
        else:
            codes = [self.code() for _ in range(self.varint(NUMBERS))]
        for p, code in enumerate(codes, start):
            self.frame[p] = (code, self.frame[p][1])

    def at_cursor(self, kind: int) -> None:
        start, n = self.cursor, self.varint(NUMBERS)
        stop = (start // self.cols + 1) * self.cols
        row = self.frame[start:stop]
        if kind == INSERT:
            look = self.palette[self.varint(NUMBERS)]
            self.frame[start:stop] = ([(self.code(), look) for _ in range(n)] + row)[: len(row)]
            self.cursor += n
        elif kind == DELETE:
            self.frame[start:stop] = row[n:] + row[len(row) - n :]
        else:
            look = self.palette[self.varint(NUMBERS)]
            self.frame[start : start + n] = [(code, look) for code, _ in row[:n]]
