r"""Compiled code of the recording format: frames to operations and back (paper, section 10.1).

A block is the blank frame and, for each of its pairs, the operations that turn the frame before into the next one, made
for what editors and shells do:

==========  ================================  ====================================================================
operation   arguments                         effect
==========  ================================  ====================================================================
``NOTHING``                                   the frame stays
``COPY``    rows, columns, distance           a rectangle shows what the one ``distance`` rows above it showed
``INSERT``  place, count, look, codes         the rest of the row moves right, what leaves it is lost
``DELETE``  place, count                      the rest of the row moves left, the last cells stay
``NUMBER``  place of its last digit, amount   a decimal number grows or shrinks and keeps its width
``TEXT``    place, count, codes               code points of some cells of a row
``LINE``    place, codes, ``END``             code points up to ``END``, spaces from there to the end of the row
``LOOK``    place, count, look                look of some cells of a row
``AGAIN``   codes                             the operations of the last pair without ``AGAIN``, with the same
                                              places and numbers, and code points of its own
==========  ================================  ====================================================================

A place counts cells row by row and is stored as a distance: for ``INSERT``, ``DELETE`` and ``LOOK`` from a register that
follows the cursor, as it is set by ``LOOK`` and pushed by ``INSERT`` and ``DELETE``; for the others from the one before
of its kind. So the pairs of a run of typing are alike but for what is typed, and each but the first of them is one
``AGAIN``. Names of operations, code points, places and other numbers go into four streams, each number as a varint of 7
bits a byte, low ones first; the last operation of a pair has the bit ``LAST``. ``fbam.recording.reference`` says the same
slowly, in plain Python.

In this file a cell is a number of 64 bits, the code point in the low 32 and the look in the high ones, where frames are
made; and the seven bytes of ``CELL`` where they are drawn.
"""

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

compiled = njit(cache=True, error_model="numpy", _nrt=False)
"""No function here makes an array, so none needs to count references, which would take half of the time."""
inlined = njit(cache=True, error_model="numpy", _nrt=False, forceinline=True)
"""For what is called once or twice for each row: to hand over a dozen arrays takes longer than the work itself."""

NOTHING, COPY, INSERT, DELETE, NUMBER, TEXT, LINE, LOOK, AGAIN = range(9)
LAST = 0x80

OPERATIONS, CODES, PLACES, NUMBERS = range(4)
STREAMS = 4

END = 10
"""Ends the code points of a ``LINE``; a cell of code point 10 is written as ``END_CODE``."""
END_CODE = 1 << 32

FIRST_SEQUENCE = 0x110000
"""Code of the first action of several characters; below are the code points."""
LONG_ACTION = 255
SHORT_SEQUENCES = LONG_ACTION - 128
"""So many actions of several characters are one byte each, as those of ASCII are; others take four."""
MAX_CODE = (1 << 24) - 1

BLANK = 32
CELL_BYTES = 7

CURSOR, FIRST_TEXT, LAST_TEXT, LAST_NUMBER, OPERATIONS_BEFORE, PLACES_BEFORE, NUMBERS_BEFORE = range(7)
"""Registers of a block, all 0 at its start; the last three are where the last pair without ``AGAIN`` begins in its streams."""
REGISTERS = 7

MOST_SHIFTED = 8
"""Most cells of one ``INSERT`` or ``DELETE``: a tab."""
MOST_DIGITS = 9
MERGED_GAP = 4
"""Changed stretches of a row with at most so many equal cells between them are written as one."""
SCROLLED_ROWS = 3
"""A ``COPY`` is tried where so many rows change."""
SCROLLED_CELLS = 24
"""Fewest changed cells that a ``COPY`` must get right."""

CODE_MASK = np.uint64(0xFFFFFFFF)
LOOK_SHIFT = np.uint64(32)
LOOK_MASK = np.uint64(0xFFFFFFFF00000000)


@compiled
def put_varint(streams, used, which, value):
    at = used[which]
    value = np.uint64(value)
    while value >= np.uint64(128):
        streams[which, at] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= np.uint64(7)
        at += 1
    streams[which, at] = np.uint8(value)
    used[which] = at + 1


@compiled
def put_signed(streams, used, which, value):
    put_varint(streams, used, which, 2 * value if value >= 0 else -2 * value - 1)


@compiled
def put_operation(streams, used, operation):
    streams[OPERATIONS, used[OPERATIONS]] = operation
    used[OPERATIONS] += 1


@compiled
def put_code(streams, used, cell):
    code = np.int64(cell & CODE_MASK)
    put_varint(streams, used, CODES, END_CODE if code == END else code)


@inlined
def put_codes(streams, used, cells):
    """Write code points, most of which are those of ASCII."""
    stream, at = streams[CODES], used[CODES]
    for k in range(len(cells)):
        code = cells[k] & CODE_MASK
        if code < np.uint64(128) and code != np.uint64(END):
            stream[at] = code
            at += 1
        else:
            used[CODES] = at
            put_code(streams, used, cells[k])
            at = used[CODES]
    used[CODES] = at


@inlined
def take_codes(old, new):
    """Give cells the code points of others and leave them their looks."""
    for k in range(len(old)):
        old[k] = old[k] & LOOK_MASK | new[k] & CODE_MASK


@inlined
def put_look(streams, used, palette, size, cell):
    """Write the place of a cell's look in the palette, where it is added if need be."""
    look = np.uint32(cell >> LOOK_SHIFT)
    k = 0
    while k < size[0] and palette[k] != look:
        k += 1
    if k == size[0]:
        palette[k] = look
        size[0] += 1
    put_varint(streams, used, NUMBERS, k)


@compiled
def are_equal(left, right):
    """Whether two slices of cells are equal; without a way out, which the compiler makes wide comparisons of."""
    difference = np.uint64(0)
    for k in range(len(left)):
        difference |= left[k] ^ right[k]
    return difference == np.uint64(0)


@inlined
def trim(old, new, base, row, low, high):
    """Shrink the range of a row that begins at ``base`` to the cells that differ; True if there are any."""
    a, b = low[row], high[row]
    while a < b and old[base + a] == new[base + a]:
        a += 1
    while a < b and old[base + b - 1] == new[base + b - 1]:
        b -= 1
    low[row], high[row] = a, b
    return a < b


@compiled
def trim_all(old, new, cols, dirty, low, high):
    """Sort the dirty rows, shrink their ranges and forget those that do not differ; return how many stay."""
    count, kept = dirty[0], 0
    for k in range(count):
        row, at = dirty[k + 1], k
        while at > 0 and dirty[at] > row:
            dirty[at + 1] = dirty[at]
            at -= 1
        dirty[at + 1] = row
    for k in range(count):
        row = dirty[k + 1]
        if trim(old, new, row * cols, row, low, high):
            kept += 1
            dirty[kept] = row
        else:
            low[row], high[row] = cols, 0
    dirty[0] = kept
    return kept


@compiled
def is_moved(old, new, start, stop, shift):
    """Whether the cells ``start`` to ``stop`` - 1 show what was ``shift`` cells before them."""
    if start < shift or stop - shift > len(old):
        return False
    for p in range(start, stop):
        if new[p] != old[p - shift]:
            return False
    return True


@compiled
def moved_cells(old, new, cols, dirty, low, high, shift):
    total = 0
    for k in range(dirty[0]):
        row = dirty[k + 1]
        if is_moved(old, new, row * cols + low[row], row * cols + high[row], shift):
            total += high[row] - low[row]
    return total


@compiled
def is_blank(cells):
    other = np.uint64(0)
    for k in range(len(cells)):
        other |= (cells[k] ^ np.uint64(BLANK)) & CODE_MASK
    return other == np.uint64(0)


@compiled
def probe(new, cols, dirty, low, high, quarter):
    """The dirty row at a quarter of them or the first one after it that does not become blank; the last one if all do."""
    for k in range(dirty[0] * quarter // 4, dirty[0]):
        row = dirty[k + 1]
        if not is_blank(new[row * cols + low[row] : row * cols + high[row]]):
            return row
    return dirty[dirty[0]]


@compiled
def scroll_distance(old, new, rows, cols, dirty, low, high):
    """The distance that gets most of the changed cells right, at least ``SCROLLED_CELLS``; 0 if there is none.

    The first one that gets half of them right is as good. Only distances are looked at that are right for a probe: the
    dirty rows at no, one and two quarters of them, or the next that does not become blank.
    """
    total = 0
    for k in range(dirty[0]):
        total += high[dirty[k + 1]] - low[dirty[k + 1]]
    probes = (
        probe(new, cols, dirty, low, high, 0),
        probe(new, cols, dirty, low, high, 1),
        probe(new, cols, dirty, low, high, 2),
    )
    best, most = 0, SCROLLED_CELLS - 1
    for k in range(2, 2 * rows):
        distance = k // 2 if k % 2 == 0 else -(k // 2)
        for row in probes:
            if is_moved(old, new, row * cols + low[row], row * cols + high[row], distance * cols):
                cells = moved_cells(old, new, cols, dirty, low, high, distance * cols)
                if cells > most:
                    best, most = distance, cells
                break
        if 2 * most >= total:
            break
    return best


@compiled
def encode_copy(old, new, rows, cols, dirty, low, high, distance, registers, streams, used):
    """Write a ``COPY`` of the smallest rectangle with all rows that moved; its rows become dirty."""
    first, last, left, right = -1, 0, cols, 0
    for k in range(dirty[0]):
        row = dirty[k + 1]
        if is_moved(old, new, row * cols + low[row], row * cols + high[row], distance * cols):
            first, last = row if first < 0 else first, row + 1
            left, right = min(left, low[row]), max(right, high[row])
    put_operation(streams, used, COPY)
    put_signed(streams, used, NUMBERS, first - registers[CURSOR] // cols)
    put_varint(streams, used, NUMBERS, last)
    put_varint(streams, used, NUMBERS, left)
    put_varint(streams, used, NUMBERS, right)
    put_signed(streams, used, NUMBERS, distance)
    for k in range(last - first):
        row = last - 1 - k if distance > 0 else first + k
        for p in range(row * cols + left, row * cols + right):
            old[p] = old[p - distance * cols]
        if low[row] >= high[row]:
            dirty[0] += 1
            dirty[dirty[0]] = row
        low[row], high[row] = min(low[row], left), max(high[row], right)
    return trim_all(old, new, cols, dirty, low, high)


@inlined
def inserted(old, new, start, stop, changed):
    """Number of cells that an insertion at ``start`` pushes the rest of the row by, ``changed`` at most; 0 if it is none."""
    for n in range(1, min(MOST_SHIFTED, changed, stop - start - 1) + 1):
        if new[start + n] == old[start] and are_equal(new[start + n : stop], old[start : stop - n]):
            return n
    return 0


@inlined
def deleted(old, new, start, stop):
    """Number of cells that a deletion at ``start`` pulls the rest of the row by, 0 if it is none."""
    for n in range(1, min(MOST_SHIFTED, stop - start - 1) + 1):
        if new[start] == old[start + n] and are_equal(new[start : stop - n], old[start + n : stop]):
            return n
    return 0


@inlined
def encode_shift(old, new, start, stop, changed, registers, streams, used, palette, size):
    """Write an ``INSERT`` or ``DELETE`` at ``start`` if one explains the row from there to its end at ``stop``."""
    n = inserted(old, new, start, stop, changed)
    if n:
        put_operation(streams, used, INSERT)
        put_signed(streams, used, PLACES, start - registers[CURSOR])
        put_varint(streams, used, NUMBERS, n)
        put_look(streams, used, palette, size, new[start])
        put_codes(streams, used, new[start : start + n])
        for p in range(start, start + changed):
            old[p] = new[p]
        look = new[start] & LOOK_MASK
        for p in range(start, start + n):
            old[p] = new[p] & CODE_MASK | look
        registers[CURSOR] = start + n
        return True
    n = deleted(old, new, start, stop)
    if n:
        put_operation(streams, used, DELETE)
        put_signed(streams, used, PLACES, start - registers[CURSOR])
        put_varint(streams, used, NUMBERS, n)
        for p in range(start, stop - n):
            old[p] = new[p]
        registers[CURSOR] = start
        return True
    return False


@compiled
def differ_in_code(old, new, p):
    return (old[p] ^ new[p]) & CODE_MASK != np.uint64(0)


@compiled
def digit(cell):
    """The decimal digit a cell shows, -1 if none."""
    code = np.int64(cell & CODE_MASK)
    return code - 48 if 48 <= code < 58 else -1


@inlined
def encode_number(old, new, row_start, start, stop, registers, streams, used):
    """Write a stretch as ``NUMBER`` if it ends a number before and after, of the same width."""
    p, before, after, scale = stop - 1, 0, 0, 1
    while p >= row_start and stop - p <= MOST_DIGITS and digit(old[p]) >= 0:
        if digit(new[p]) < 0:
            return False
        before += scale * digit(old[p])
        after += scale * digit(new[p])
        scale *= 10
        p -= 1
    if p >= start:
        return False
    take_codes(old[p + 1 : stop], new[p + 1 : stop])
    put_operation(streams, used, NUMBER)
    put_signed(streams, used, PLACES, stop - 1 - registers[LAST_NUMBER])
    put_signed(streams, used, NUMBERS, after - before)
    registers[LAST_NUMBER] = stop - 1
    return True


@inlined
def encode_text(old, new, start, stop, row_stop, cols, registers, streams, used):
    """Write the code points of a stretch as ``LINE`` if spaces follow to the end of the row, as ``TEXT`` else."""
    is_line = is_blank(new[stop:row_stop])
    blank = stop
    while is_line and blank > start and new[blank - 1] & CODE_MASK == np.uint64(BLANK):
        blank -= 1
    put_operation(streams, used, LINE if is_line else TEXT)
    if registers[LAST_TEXT] < 0:
        put_signed(streams, used, PLACES, start - registers[FIRST_TEXT])
        registers[FIRST_TEXT] = start
    else:
        put_signed(streams, used, PLACES, start - registers[LAST_TEXT] - cols)
    registers[LAST_TEXT] = start
    if not is_line:
        put_varint(streams, used, NUMBERS, stop - start)
    put_codes(streams, used, new[start : blank if is_line else stop])
    if is_line:
        put_varint(streams, used, CODES, END)
    stop = row_stop if is_line else stop
    take_codes(old[start:stop], new[start:stop])


@inlined
def encode_codes(old, new, start, stop, row_start, row_stop, cols, registers, streams, used):
    """Write the code points that differ from ``start`` to ``stop`` of a row."""
    first, last = -1, -1  # a stretch to be written
    p = start
    while p < stop:
        if not differ_in_code(old, new, p):
            p += 1
            continue
        q = p + 1
        while q < stop and differ_in_code(old, new, q):
            q += 1
        if not encode_number(old, new, row_start, p, q, registers, streams, used):
            if first >= 0 and p - last > MERGED_GAP:
                encode_text(old, new, first, last, row_stop, cols, registers, streams, used)
                first = -1
            first, last = p if first < 0 else first, q
        p = q
    if first >= 0:
        encode_text(old, new, first, last, row_stop, cols, registers, streams, used)


@compiled
def look_stop(old, new, p, stop):
    """Where the cells from ``p`` on end that are to change to one look."""
    look = new[p] & LOOK_MASK
    q = p
    while q < stop and new[q] & LOOK_MASK == look and old[q] & LOOK_MASK != look:
        q += 1
    return q


@compiled
def encode_look(old, new, p, stop, registers, streams, used, palette, size):
    """Write one ``LOOK``."""
    put_operation(streams, used, LOOK)
    put_signed(streams, used, PLACES, p - registers[CURSOR])
    put_varint(streams, used, NUMBERS, stop - p)
    put_look(streams, used, palette, size, new[p])
    registers[CURSOR] = p
    for q in range(p, stop):
        old[q] = new[q]


@compiled
def encode_looks(old, new, cols, dirty, low, high, shortest, registers, streams, used, palette, size):
    """Write the looks that differ in the ranges of the rows, of ``shortest`` cells at least; return whether all are."""
    whole = True
    for k in range(dirty[0]):
        row = dirty[k + 1]
        p, stop = row * cols + low[row], row * cols + high[row]
        while p < stop:
            q = p + 1
            if old[p] != new[p]:
                q = look_stop(old, new, p, stop)
                if q - p >= shortest:
                    encode_look(old, new, p, q, registers, streams, used, palette, size)
                else:
                    whole = False
            p = q
    return whole


@inlined
def encode_row(old, new, row, cols, low, high, registers, streams, used, palette, size):
    """Write what differs in the range of a row, looks aside; the range shrinks to these."""
    row_start, row_stop = row * cols, (row + 1) * cols
    start, stop = row_start + low[row], row_start + high[row]
    if not encode_number(old, new, row_start, start, stop, registers, streams, used):
        encode_shift(old, new, start, row_stop, stop - start, registers, streams, used, palette, size)
        if trim(old, new, row_start, row, low, high):
            start, stop = row_start + low[row], row_start + high[row]
            encode_codes(old, new, start, stop, row_start, row_stop, cols, registers, streams, used)
    return trim(old, new, row_start, row, low, high)


@inlined
def is_again(stream, before, start, stop):
    """Whether what a pair has written from ``start`` to ``stop`` is what was written from ``before`` on.

    Bytes that are equal end alike: the last operation of a pair is marked, and so is the last byte of a number.
    """
    k = start
    while k < stop and stream[k] == stream[before + k - start]:
        k += 1
    return k == stop


@compiled
def encode_pair(old, new, rows, cols, dirty, low, high, registers, streams, used, palette, size):
    """Write the operations that turn ``old`` into ``new``, and do so; no row is dirty afterwards.

    Looks come last: at the cursor, then runs, then single cells. So a cursor that moves is the first and the last.
    """
    operations, places, numbers = used[OPERATIONS], used[PLACES], used[NUMBERS]
    registers[LAST_TEXT] = -1
    changed = trim_all(old, new, cols, dirty, low, high)
    if changed >= SCROLLED_ROWS:
        distance = scroll_distance(old, new, rows, cols, dirty, low, high)
        if distance:
            changed = encode_copy(old, new, rows, cols, dirty, low, high, distance, registers, streams, used)
    looks = False
    for k in range(changed):
        looks |= encode_row(old, new, dirty[k + 1], cols, low, high, registers, streams, used, palette, size)
    if looks:
        p = registers[CURSOR]
        if p < len(old) and old[p] != new[p]:
            stop = look_stop(old, new, p, (p // cols + 1) * cols)
            encode_look(old, new, p, stop, registers, streams, used, palette, size)
        if not encode_looks(old, new, cols, dirty, low, high, 2, registers, streams, used, palette, size):
            encode_looks(old, new, cols, dirty, low, high, 1, registers, streams, used, palette, size)
    for k in range(changed):
        low[dirty[k + 1]], high[dirty[k + 1]] = cols, 0
    dirty[0] = 0
    if used[OPERATIONS] == operations:
        put_operation(streams, used, NOTHING)
    streams[OPERATIONS, used[OPERATIONS] - 1] |= np.uint8(LAST)
    if (
        operations
        and is_again(streams[OPERATIONS], registers[OPERATIONS_BEFORE], operations, used[OPERATIONS])
        and is_again(streams[PLACES], registers[PLACES_BEFORE], places, used[PLACES])
        and is_again(streams[NUMBERS], registers[NUMBERS_BEFORE], numbers, used[NUMBERS])
    ):
        used[OPERATIONS], used[PLACES], used[NUMBERS] = operations, places, numbers
        put_operation(streams, used, AGAIN | LAST)
    else:
        registers[OPERATIONS_BEFORE], registers[PLACES_BEFORE], registers[NUMBERS_BEFORE] = operations, places, numbers


@compiled
def change(new, cols, dirty, low, high, position, cell, start, stop):
    """Replace cells of the present frame and widen the ranges of their rows.

    :param dirty: number of dirty rows, then these
    """
    if not 0 <= start <= stop <= min(len(position), len(cell)):
        raise ValueError("the offsets of a batch do not fit its changes")
    row_start, row_stop, row = 0, 0, 0
    for j in range(start, stop):
        p = position[j]
        if not 0 <= p < len(new):
            raise ValueError("a change lies outside the frame")
        if new[p] == cell[j]:
            continue
        new[p] = cell[j]
        if not row_start <= p < row_stop:
            row = p // cols
            row_start, row_stop = row * cols, (row + 1) * cols
            if low[row] >= high[row]:
                dirty[0] += 1
                dirty[dirty[0]] = row
        low[row], high[row] = min(low[row], p - row_start), max(high[row], p - row_start + 1)


@compiled
def begin_block(old, rows, cols, dirty, low, high, registers, used):
    """Make the next pair the first of a block: the frame before it is the blank one."""
    old[:] = np.uint64(BLANK)
    for row in range(rows):
        low[row], high[row], dirty[row + 1] = 0, cols, row
    dirty[0] = rows
    registers[:] = 0
    used[:] = 0


@compiled
def pair_room(rows, cols):
    """Bytes of one stream that hold any pair."""
    return 16 * rows * cols + 64


@compiled
def encode_pairs(first, stop, offsets, position, cell, old, new, rows, cols, dirty, low, high, registers, streams, used,
                 palette, size):
    """Write pairs ``first`` to ``stop`` - 1 of a batch as long as there is room; return the pair that comes next.

    A pair is the present frame, written as what differs from the frame before it, and then the changes of its action.
    """
    room = streams.shape[1] - pair_room(rows, cols)
    for i in range(first, stop):
        if max(used[OPERATIONS], used[CODES], used[PLACES], used[NUMBERS]) > room or size[0] + rows * cols > len(palette):
            return i
        encode_pair(old, new, rows, cols, dirty, low, high, registers, streams, used, palette, size)
        change(new, cols, dirty, low, high, position, cell, offsets[i], offsets[i + 1])
    return stop


@compiled
def compare(new, frame, cols, dirty, low, high):
    """Make ``frame`` the present one."""
    for p in range(len(new)):
        if new[p] != frame[p]:
            new[p] = frame[p]
            row = p // cols
            if low[row] >= high[row]:
                dirty[0] += 1
                dirty[dirty[0]] = row
            low[row], high[row] = min(low[row], p - row * cols), max(high[row], p - row * cols + 1)


@compiled
def get_byte(payload, place, which):
    at = place[which]
    if at >= place[STREAMS + which]:
        raise ValueError("a stream of the block ends too early")
    place[which] = at + 1
    return np.int64(payload[at])


@compiled
def get_varint(payload, place, which):
    value, shift, byte = 0, 0, 128
    while byte >= 128:
        if shift > 28:
            raise ValueError("a number of the block is too long")
        byte = get_byte(payload, place, which)
        value |= (byte & 127) << shift
        shift += 7
    return value


@compiled
def get_signed(payload, place, which):
    value = get_varint(payload, place, which)
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1


@compiled
def check_cells(start, stop, frame):
    if start < 0 or stop < start or CELL_BYTES * stop > len(frame):
        raise ValueError("an operation of the block lies outside the frame")


@compiled
def set_code(frame, p, code):
    at = CELL_BYTES * p
    frame[at] = code & 255
    frame[at + 1] = (code >> 8) & 255
    frame[at + 2] = (code >> 16) & 255
    frame[at + 3] = (code >> 24) & 255


@compiled
def set_look(frame, p, look):
    at = CELL_BYTES * p + 4
    frame[at] = look & 255
    frame[at + 1] = (look >> 8) & 255
    frame[at + 2] = (look >> 16) & 255


@compiled
def get_look(payload, place, palette):
    k = get_varint(payload, place, NUMBERS)
    if k >= len(palette):
        raise ValueError("a look of the block is not in the palette")
    return np.int64(palette[k])


@compiled
def copy(source, at, target, to, size):
    """Copy between places that do not overlap; in slices, which the compiler makes wide copies of."""
    here, there = source[at : at + size], target[to : to + size]
    for k in range(len(there)):
        there[k] = here[k]


@intrinsic
def put_past_caches(typing_context, source, at, target, to):
    """Copy 8 bytes to an address that is a multiple of 8, with a store that leaves the caches alone."""

    def code(context, builder, signature, values):
        def address(k):
            array = context.make_array(signature.args[k])(context, builder, values[k])
            place = cgutils.gep_inbounds(builder, array.data, values[k + 1])
            return builder.bitcast(place, context.get_value_type(types.uint64).as_pointer())

        store = builder.store(builder.load(address(0), align=1), address(2), align=8)
        store.set_metadata("nontemporal", builder.module.add_metadata([context.get_constant(types.int32, 1)]))

    return types.void(source, types.intp, target, types.intp), code


@intrinsic
def wait_for_stores(typing_context):
    """Let no store of ``put_past_caches`` be seen later than those that follow."""

    def code(context, builder, signature, values):
        builder.fence("seq_cst")

    return types.void(), code


@compiled
def copy_past_caches(source, at, target, to, size, aligned):
    """As ``copy``; byte ``aligned`` of the target and each eighth one from there have addresses that are multiples of 8."""
    head = min((aligned - to) % 8, size)
    tail = head + (size - head) // 8 * 8
    copy(source, at, target, to, head)
    for k in range(head, tail, 8):
        put_past_caches(source, at + k, target, to + k)
    copy(source, at + tail, target, to + tail, size - tail)


@compiled
def apply_copy(payload, place, frame, rows, cols, cursor):
    first = cursor // cols + get_signed(payload, place, NUMBERS)
    last = get_varint(payload, place, NUMBERS)
    left = get_varint(payload, place, NUMBERS)
    right = get_varint(payload, place, NUMBERS)
    distance = get_signed(payload, place, NUMBERS)
    if not (0 <= first <= last <= rows and left <= right <= cols and 0 <= first - distance and last - distance <= rows):
        raise ValueError("a copy of the block lies outside the frame")
    for k in range(last - first):
        row = last - 1 - k if distance > 0 else first + k
        start = CELL_BYTES * (row * cols + left)
        copy(frame, start - CELL_BYTES * distance * cols, frame, start, CELL_BYTES * (right - left))


@compiled
def apply_insert(payload, place, frame, scratch, cols, start, palette):
    n = get_varint(payload, place, NUMBERS)
    stop = (start // cols + 1) * cols
    check_cells(start, start + n, frame)
    if start + n > stop:
        raise ValueError("an insertion of the block is longer than its row")
    size = CELL_BYTES * (stop - start - n)
    copy(frame, CELL_BYTES * start, scratch, 0, size)
    copy(scratch, 0, frame, CELL_BYTES * (start + n), size)
    look = get_look(payload, place, palette)
    for p in range(start, start + n):
        set_code(frame, p, get_code(payload, place))
        set_look(frame, p, look)
    return start + n


@compiled
def apply_delete(payload, place, frame, scratch, cols, start):
    n = get_varint(payload, place, NUMBERS)
    stop = (start // cols + 1) * cols
    check_cells(start, start + n, frame)
    if start + n > stop:
        raise ValueError("a deletion of the block is longer than its row")
    size = CELL_BYTES * (stop - start - n)
    copy(frame, CELL_BYTES * (start + n), scratch, 0, size)
    copy(scratch, 0, frame, CELL_BYTES * start, size)


@compiled
def get_code(payload, place):
    code = get_varint(payload, place, CODES)
    return END if code == END_CODE else code


@compiled
def frame_digit(frame, p):
    """The decimal digit that cell ``p`` shows, -1 if none."""
    at = CELL_BYTES * p
    if frame[at + 1] or frame[at + 2] or frame[at + 3]:
        return -1
    return np.int64(frame[at]) - 48 if 48 <= frame[at] < 58 else -1


@compiled
def apply_number(payload, place, frame, cols, last):
    check_cells(last, last + 1, frame)
    row_start = last // cols * cols
    p, value, scale = last, 0, 1
    while p >= row_start and last - p < MOST_DIGITS and frame_digit(frame, p) >= 0:
        value += scale * frame_digit(frame, p)
        scale *= 10
        p -= 1
    value += get_signed(payload, place, NUMBERS)
    if not 0 <= value < scale:
        raise ValueError("a number of the block changes its width")
    for q in range(last, p, -1):
        set_code(frame, q, 48 + value % 10)
        value //= 10


@compiled
def apply_text(payload, place, frame, cols, start, is_line):
    check_cells(start, start + 1, frame)
    stop = (start // cols + 1) * cols
    if is_line:
        code = get_varint(payload, place, CODES)
        p = start
        while code != END:
            if p >= stop:
                raise ValueError("a line of the block is longer than its row")
            set_code(frame, p, END if code == END_CODE else code)
            p += 1
            code = get_varint(payload, place, CODES)
        for q in range(p, stop):
            set_code(frame, q, BLANK)
    else:
        n = get_varint(payload, place, NUMBERS)
        check_cells(start, start + n, frame)
        for p in range(start, start + n):
            set_code(frame, p, get_code(payload, place))


@compiled
def apply_look(payload, place, frame, start, palette):
    n = get_varint(payload, place, NUMBERS)
    check_cells(start, start + n, frame)
    look = get_look(payload, place, palette)
    for p in range(start, start + n):
        set_look(frame, p, look)


@compiled
def apply_operations(payload, place, registers, frame, scratch, rows, cols, palette):
    """Carry out the operations that stand at ``place``, up to the marked one."""
    registers[LAST_TEXT] = -1
    operation = 0
    while operation < LAST:
        operation = get_byte(payload, place, OPERATIONS)
        kind = operation & (LAST - 1)
        if kind == INSERT or kind == DELETE or kind == LOOK:
            start = registers[CURSOR] + get_signed(payload, place, PLACES)
            check_cells(start, start, frame)
            registers[CURSOR] = start
            if kind == INSERT:
                registers[CURSOR] = apply_insert(payload, place, frame, scratch, cols, start, palette)
            elif kind == DELETE:
                apply_delete(payload, place, frame, scratch, cols, start)
            else:
                apply_look(payload, place, frame, start, palette)
        elif kind == NUMBER:
            registers[LAST_NUMBER] += get_signed(payload, place, PLACES)
            apply_number(payload, place, frame, cols, registers[LAST_NUMBER])
        elif kind == TEXT or kind == LINE:
            start = get_signed(payload, place, PLACES)
            if registers[LAST_TEXT] < 0:
                start += registers[FIRST_TEXT]
                registers[FIRST_TEXT] = start
            else:
                start += registers[LAST_TEXT] + cols
            registers[LAST_TEXT] = start
            apply_text(payload, place, frame, cols, start, kind == LINE)
        elif kind == COPY:
            apply_copy(payload, place, frame, rows, cols, registers[CURSOR])
        elif kind != NOTHING:
            raise ValueError("an operation of the block is unknown")


@compiled
def apply_pair(payload, place, registers, frame, scratch, rows, cols, palette):
    """Carry out one pair."""
    operations, places, numbers = place[OPERATIONS], place[PLACES], place[NUMBERS]
    is_again = get_byte(payload, place, OPERATIONS) == AGAIN | LAST
    if is_again:
        place[OPERATIONS], place[PLACES] = registers[OPERATIONS_BEFORE], registers[PLACES_BEFORE]
        place[NUMBERS] = registers[NUMBERS_BEFORE]
    else:
        place[OPERATIONS] = operations
        registers[OPERATIONS_BEFORE], registers[PLACES_BEFORE], registers[NUMBERS_BEFORE] = operations, places, numbers
    apply_operations(payload, place, registers, frame, scratch, rows, cols, palette)
    if is_again:
        place[OPERATIONS], place[PLACES], place[NUMBERS] = operations + 1, places, numbers


@compiled
def draw_frames(payload, palette, rows, cols, frames, places, known, interval, wanted, slots, out, aligned):
    """Write frames of a block.

    The frame to work with stays as it is left, so that to go on from there costs nothing. Frames to come back to are kept
    where pairs are passed over on the way to one that is wanted: who reads on and on needs none.

    :param payload: the four streams of the block, one after the other
    :param frames: (K + 2, 7 R C) frames after 0, ``interval``, 2 ``interval``... pairs, as far as they are known, and two
        to work with
    :param places: (K + 1, 15) for each of these the reader's place in each stream, where each stream stops, and the
        registers; and one to work with
    :param known: (2,) number of these, which grows on the way; and pairs that the frame to work with has behind it, -1 if it
        holds none
    :param wanted: (w,) frame numbers in the block, ascending
    :param slots: (w,) for each of them its row of ``out``
    :param out: (k, 7 R C) bytes of frames
    :param aligned: -1 to write as usual, else see ``copy_past_caches``
    """
    most, size, width = len(frames) - 2, frames.shape[1], places.shape[1]
    frame, scratch = frames[most], frames[most + 1]
    place, registers = places[most, : 2 * STREAMS], places[most, 2 * STREAMS :]
    all_frames, all_places, all_out = frames.reshape(-1), places.reshape(-1), out.reshape(-1)
    done, known[1] = known[1], -1
    for i in range(len(wanted)):
        goal = wanted[i] + 1
        nearest = min(known[0] - 1, goal // interval)
        if not nearest * interval <= done <= goal:
            copy(all_frames, nearest * size, all_frames, most * size, size)
            copy(all_places, nearest * width, all_places, most * width, width)
            done = nearest * interval
        while done < goal:
            apply_pair(payload, place, registers, frame, scratch, rows, cols, palette)
            done += 1
            if done < goal and done == known[0] * interval and known[0] < most:
                copy(all_frames, most * size, all_frames, known[0] * size, size)
                copy(all_places, most * width, all_places, known[0] * width, width)
                known[0] += 1
        if aligned < 0:
            copy(all_frames, most * size, all_out, slots[i] * size, size)
        else:
            copy_past_caches(all_frames, most * size, all_out, slots[i] * size, size, aligned)
    if aligned >= 0:
        wait_for_stores()
    known[1] = done


@compiled
def put_actions(codes, out):
    """Write action codes, 4 bytes each at most; return how many bytes."""
    at = 0
    for code in codes:
        if code < 128:
            out[at] = code
        elif FIRST_SEQUENCE <= code < FIRST_SEQUENCE + SHORT_SEQUENCES:
            out[at] = 128 + code - FIRST_SEQUENCE
        else:
            out[at] = LONG_ACTION
            out[at + 1], out[at + 2], out[at + 3] = code & 255, (code >> 8) & 255, code >> 16
            at += 3
        at += 1
    return at


@compiled
def get_actions(data, codes):
    """Read action codes; return whether the bytes are those of as many as ``codes`` holds."""
    at, n = 0, len(data)
    for i in range(len(codes)):
        if at >= n or data[at] == LONG_ACTION and at + 3 >= n:
            return False
        byte = np.int64(data[at])
        if byte < 128:
            codes[i] = byte
        elif byte < LONG_ACTION:
            codes[i] = FIRST_SEQUENCE + byte - 128
        else:
            codes[i] = np.int64(data[at + 1]) | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3]) << 16
            at += 3
        at += 1
    return at == n
