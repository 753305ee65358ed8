"""Compiled loops of the session: the editor, its keys, the command line and what they change on the screen.

One module, because numba's cache follows one source file only. ``fbam.sessions.fast`` says what calls what; the plain
reference of all of it is ``editor``, ``keys``, ``shell`` and ``screen``, and both give the same actions and cells.

A session is a few arrays that live as long as it does:

* ``s`` (int64): the state, one number a name below;
* ``frame`` (R C,) int64: packed cells, code | fg << 32 | bg << 40 | style << 48;
* ``table`` (n, 3) int64, ``arena`` uint32: the buffer. A row of ``table`` is a line: start, length and room in ``arena``.
  The table has a gap (``GAP``), so that a new line costs as much as the way from the last one; a line that outgrows its
  room moves to the end of the arena with twice as much;
* ``widths`` (0x110000,) uint8, ``glyph_at``, ``pieces``: how characters are drawn: cells of each, 255 for a tab, and
  for what is not drawn as itself the place of its cells in ``pieces``;
* ``out``: ``codes`` and ``offsets`` of the actions, ``position`` and ``cell`` of the changes, not yet written.

Each change goes through ``put``, which records a cell only where it differs. A kernel returns early where an array is
too small or a paste has no code yet, and continues where it was when it is called again.
"""

import numpy as np
from numba import njit

(
    ROWS, COLS, DIVIDED, ED_ROW, ED_COL, ED_ROWS, ED_COLS, SH_ROW, SH_COL, SH_ROWS, SH_COLS,
    BAR_ROW, NAME_COL, COMMAND_COL, PLACE_COL,  # geometry: see fbam.sessions.screen
    SHOWN, RENAMED, LINE, COLUMN, TOP, MODE, MODIFIED, LINES, GAP, ARENA,  # the editor and its buffer
    CURSOR, LEFT, GUTTER, AT, NAME, BAR_MODE, BAR_MODIFIED, BAR_COMMAND, TYPED_COMMAND,  # what is drawn
    OUT, ROW, INPUT_ROW, CELL_IN_ROW, INPUT_CELLS, INPUTS, FIRST,  # the shell's rows
    CHANGES, ACTIONS, DONE, EDIT, KEY, KEYS, TYPED, PASTED,  # progress
    STATE_SIZE,
) = range(50)  # fmt: skip

NORMAL, INSERT, COMMAND, LITERAL, SHELL = range(5)
MODES = np.array([list(f"{name:<7}".encode()) for name in ("NORMAL", "INSERT", "COMMAND", "LITERAL", "SHELL")], np.int64)
MODE_LENGTHS = np.array([6, 6, 7, 7, 5])

UP, DOWN, RIGHT, LEFTWARD, HOME, END, PAGE_UP, PAGE_DOWN, DELETE, PASTE = range(-1, -11, -1)
"""Keys of several characters, and a paste of the text of the present edit; other keys are their code point."""
ENTER, ESCAPE, BACKSPACE, KILL_BEFORE, LITERALLY, INSERTING, COLON = 13, 27, 127, 21, 22, 105, 58

SPLICE, CUT, LEAVE = range(3)
"""Kinds of rows of ``edits``: kind, line, column, characters removed or lines cut, text start, text stop, pasted, code."""
BY_NUMBER = 1 << 40
"""In place of a number of page keys: a way by line number."""
COMPLETE, FLUSH, GROW, NAME_PASTE = range(4)
"""Why a kernel returns: it is done, ``out`` is nearly full, the arena is, the next paste needs its code."""

TAB, TAB_STOP, CONTINUED = 255, 4, 0
BLANK, REVERSE, BACK = 32, 2 << 48, ~(2 << 48)
YELLOW, GREEN, BLUE, BAR = 3 << 32, 2 << 32, 4 << 32, 7 << 32 | 4 << 40
CODE = (1 << 32) - 1
LEFT_HALF, RIGHT_HALF = 60 | BLUE, 62 | BLUE  # < and > for half of a wide character

helper = njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""A function that only kernels call, without an entrance from Python, which would take as long to compile. Nothing here
makes arrays, so references to them need not be counted: counting took ten times as long as the work itself."""
kernel = njit(_nrt=False, cache=True)
"""A function that Python calls, and that makes no arrays."""


@helper
def put(s, frame, position, cell, place, value):
    """Make one cell ``value``, which has the cursor's style where the cursor is."""
    if place == s[CURSOR]:
        value |= REVERSE
    if frame[place] != value:
        frame[place] = value
        n = s[CHANGES]
        position[n] = place
        cell[n] = value
        s[CHANGES] = n + 1


@helper
def end_action(s, codes, offsets, code):
    """Give all changes since the last action to this one."""
    n = s[ACTIONS]
    codes[n] = code
    offsets[n + 1] = s[CHANGES]
    s[ACTIONS] = n + 1


@helper
def move_cursor(s, frame, position, cell, old):
    """Let the cursor leave cell ``old`` and stand at ``CURSOR``; a part of the bar that is in reverse is left alone."""
    new = s[CURSOR]
    if old != new and (s[DIVIDED] or old < s[BAR_ROW] * s[COLS]):
        put(s, frame, position, cell, old, frame[old] & BACK)
    put(s, frame, position, cell, new, frame[new])


@helper
def digits(number):
    """Decimal digits of a positive number."""
    n = 1
    while number >= 10:
        number //= 10
        n += 1
    return n


# --- the buffer ---


@helper
def row_of(s, table, line):
    """The row of ``table`` that holds a line."""
    return line if line < s[GAP] else line + table.shape[0] - s[LINES]


@helper
def length_of(s, table, line):
    """Characters of a line."""
    return table[row_of(s, table, line), 1]


@helper
def move_gap(s, table, line):
    """Let the gap of the table stand before a line."""
    gap, room = s[GAP], table.shape[0] - s[LINES]
    while gap < line:
        for k in range(3):
            table[gap, k] = table[gap + room, k]
        gap += 1
    while gap > line:
        gap -= 1
        for k in range(3):
            table[gap + room, k] = table[gap, k]
    s[GAP] = line


@helper
def make_room(s, table, arena, row, length):
    """Let a line have room for ``length`` characters."""
    start, now, room = table[row, 0], table[row, 1], table[row, 2]
    if length <= room:
        return
    room = 2 * length + 16
    if start + table[row, 2] != s[ARENA]:
        for k in range(now):
            arena[s[ARENA] + k] = arena[start + k]
        start = s[ARENA]
    table[row, 0], table[row, 2] = start, room
    s[ARENA] = start + room


@helper
def insert_character(s, table, arena, character):
    """Insert at the cursor and move behind it."""
    row, column = row_of(s, table, s[LINE]), s[COLUMN]
    length = table[row, 1]
    make_room(s, table, arena, row, length + 1)
    start = table[row, 0]
    for k in range(start + length, start + column, -1):
        arena[k] = arena[k - 1]
    arena[start + column] = character
    table[row, 1] = length + 1
    s[COLUMN], s[MODIFIED] = column + 1, 1


@helper
def break_line(s, table):
    """Insert a new line at the cursor; both parts keep their place in the arena."""
    line, column = s[LINE], s[COLUMN]
    move_gap(s, table, line + 1)
    start, length, room = table[line, 0], table[line, 1], table[line, 2]
    table[line, 1], table[line, 2] = column, column
    table[line + 1, 0], table[line + 1, 1], table[line + 1, 2] = start + column, length - column, room - column
    s[GAP], s[LINES] = line + 2, s[LINES] + 1
    s[LINE], s[COLUMN], s[MODIFIED] = line + 1, 0, 1


@helper
def cut_lines(s, table, first, count):
    """Remove ``count`` lines; what is left has one line at least."""
    move_gap(s, table, first)
    s[LINES] -= count
    if s[LINES] == 0:
        table[0, 0] = table[0, 1] = table[0, 2] = 0
        s[GAP] = s[LINES] = 1
    s[MODIFIED] = 1


@helper
def join_lines(s, table, arena, line):
    """Append the next line to this one; the cursor stands between them."""
    row, below = row_of(s, table, line), row_of(s, table, line + 1)
    length, more = table[row, 1], table[below, 1]
    make_room(s, table, arena, row, length + more)
    for k in range(more):
        arena[table[row, 0] + length + k] = arena[table[below, 0] + k]
    table[row, 1] = length + more
    cut_lines(s, table, line + 1, 1)
    s[LINE], s[COLUMN] = line, length


@helper
def remove_characters(s, table, arena, start, stop):
    """Remove a part of the cursor's line; the cursor stands there."""
    row = row_of(s, table, s[LINE])
    at, length = table[row, 0], table[row, 1]
    for k in range(stop, length):
        arena[at + start + k - stop] = arena[at + k]
    table[row, 1] = length - (stop - start)
    s[COLUMN], s[MODIFIED] = start, 1


@helper
def insert_text(s, table, arena, text, start, stop):
    """Insert a paste: the rest of the line waits below while the text is appended."""
    line, column = s[LINE], s[COLUMN]
    waiting = column < length_of(s, table, line)
    if waiting:
        break_line(s, table)
        s[LINE], s[COLUMN] = line, column
    for k in range(start, stop):
        if text[k] == 10:
            break_line(s, table)
        else:
            insert_character(s, table, arena, np.int32(text[k]))
    if waiting:
        join_lines(s, table, arena, s[LINE])
    s[MODIFIED] = 1


# --- drawing the editor ---


@helper
def cells_before(s, table, arena, widths, line, column):
    """Cells that the first ``column`` characters of a line take."""
    start, cells = table[row_of(s, table, line), 0], 0
    for k in range(start, start + column):
        width = widths[arena[k]]
        cells += TAB_STOP - cells % TAB_STOP if width == TAB else width
    return cells


@helper
def draw_text(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, line, character, cells):
    """Draw a line of the window from a character on, before which stand ``cells`` cells of the line."""
    y = line - s[TOP]
    left, gutter = s[LEFT], s[GUTTER]
    base = (s[ED_ROW] + y) * s[COLS] + s[ED_COL] + gutter
    width = s[ED_COLS] - gutter
    limit = left + width
    row = row_of(s, table, line)
    k, stop = table[row, 0] + character, table[row, 0] + table[row, 1]
    while k < stop and cells < limit:
        code = arena[k]
        n = widths[code]
        if n == 1:
            if cells >= left:
                put(s, frame, position, cell, base + cells - left, np.int64(code))
            cells += 1
        elif n == TAB:
            for _ in range(TAB_STOP - cells % TAB_STOP):
                if left <= cells < limit:
                    put(s, frame, position, cell, base + cells - left, BLANK)
                cells += 1
        else:
            at = glyph_at[code]
            for piece in range(n):
                if left <= cells < limit:
                    value = pieces[at + piece]
                    if cells == left and value == CONTINUED:
                        value = LEFT_HALF
                    if cells == limit - 1 and piece + 1 < n and pieces[at + piece + 1] == CONTINUED:
                        value = RIGHT_HALF
                    put(s, frame, position, cell, base + cells - left, value)
                cells += 1
        k += 1
    end = gutter + min(max(cells - left, 0), width)
    for x in range(end, extent[y]):
        put(s, frame, position, cell, base - gutter + x, BLANK)
    extent[y] = end


@helper
def draw_row(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, y):
    """Draw a row of the window: a line behind its number, or what stands below the last line."""
    base, line = (s[ED_ROW] + y) * s[COLS] + s[ED_COL], s[TOP] + y
    if line >= s[LINES]:
        put(s, frame, position, cell, base, 126 | BLUE)
        for x in range(1, extent[y]):
            put(s, frame, position, cell, base + x, BLANK)
        extent[y] = 1
        return
    number, x = line + 1, s[GUTTER] - 1
    put(s, frame, position, cell, base + x, BLANK | YELLOW)
    while x > 0:
        x -= 1
        put(s, frame, position, cell, base + x, (48 + number % 10 if number else BLANK) | YELLOW)
        number //= 10
    extent[y] = max(extent[y], s[GUTTER])
    draw_text(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, line, np.int64(0), np.int64(0))


@helper
def settle(s):
    """Let window and cursor follow the text up to the cursor, ``AT`` cells; returns whether all rows have to be drawn."""
    line, height = s[LINE], s[ED_ROWS]
    top, left, gutter = s[TOP], s[LEFT], s[GUTTER]
    if not top <= line < top + height:
        s[TOP] = max(0, line - height // 2)
    s[GUTTER] = max(2, digits(s[LINES])) + 1
    width = s[ED_COLS] - s[GUTTER]
    at = s[AT]
    half = max(1, width // 2)
    s[LEFT] = ((at - width) // half + 1) * half if at >= width else 0
    s[CURSOR] = (s[ED_ROW] + line - s[TOP]) * s[COLS] + s[ED_COL] + s[GUTTER] + at - s[LEFT]
    return top != s[TOP] or left != s[LEFT] or gutter != s[GUTTER]


# --- drawing the bar ---


@helper
def command_cursor(s):
    """Let the cursor stand behind the command that is typed."""
    first = s[COMMAND_COL] if s[DIVIDED] else 0
    room = (s[PLACE_COL] if s[DIVIDED] else s[COLS]) - first
    s[CURSOR] = s[BAR_ROW] * s[COLS] + first + min(s[TYPED_COMMAND] + 1, room - 1)


@helper
def draw_command(s, frame, command, position, cell, first, room):
    """The command line in ``room`` cells of the bar; its end is shown where it is too long."""
    base, n = s[BAR_ROW] * s[COLS] + first, s[TYPED_COMMAND] + 2
    skip = max(0, n - room)
    for x in range(room):
        k = skip + x
        put(s, frame, position, cell, base + x, COLON if k == 0 else command[k - 1] if k < n - 1 else BLANK)


@helper
def name_cell(name, skip, k):
    """Cell ``k`` of a name of which the first ``skip`` are left out."""
    return LEFT_HALF if k == 0 and name[skip] & CODE == CONTINUED else name[skip + k]


@helper
def draw_bar(s, frame, command, name, position, cell):
    """The bar of three panes."""
    base, mode = s[BAR_ROW] * s[COLS], s[MODE]
    if mode != s[BAR_MODE]:
        for k in range(7):
            put(s, frame, position, cell, base + 1 + k, MODES[mode, k] | BAR)
        s[BAR_MODE] = mode
    if s[RENAMED] or s[MODIFIED] != s[BAR_MODIFIED]:
        room, n = s[COMMAND_COL] - s[NAME_COL], s[NAME] - 1 + s[MODIFIED]
        skip = max(0, n - room)
        for k in range(room):
            code = name_cell(name, skip, k) & CODE if skip + k < n else BLANK
            put(s, frame, position, cell, base + s[NAME_COL] + k, code | BAR)
        s[BAR_MODIFIED], s[RENAMED] = s[MODIFIED], 0
    if s[SHOWN]:
        x, first, number = base + s[COLS] - 2, base + s[PLACE_COL], s[COLUMN] + 1
        while number:
            put(s, frame, position, cell, x, (48 + number % 10) | BAR)
            x, number = x - 1, number // 10
        put(s, frame, position, cell, x, COLON | BAR)
        x, number = x - 1, s[LINE] + 1
        while number:
            put(s, frame, position, cell, x, (48 + number % 10) | BAR)
            x, number = x - 1, number // 10
        while x >= first:
            put(s, frame, position, cell, x, BLANK | BAR)
            x -= 1
    if mode == COMMAND or s[BAR_COMMAND]:
        room = s[PLACE_COL] - s[COMMAND_COL]
        if mode == COMMAND:
            draw_command(s, frame, command, position, cell, s[COMMAND_COL], room)
        else:
            for x in range(room):
                put(s, frame, position, cell, base + s[COMMAND_COL] + x, BLANK)
        s[BAR_COMMAND] = mode == COMMAND


@helper
def draw_small_bar(s, frame, command, name, position, cell):
    """The bar below one pane: a name, and the mode with the cursor's place; or the command line."""
    cols, mode = s[COLS], s[MODE]
    if mode == COMMAND:
        draw_command(s, frame, command, position, cell, 0, cols)
        return
    base = s[BAR_ROW] * cols
    in_shell = not s[SHOWN]
    state = MODE_LENGTHS[mode]
    if not in_shell:
        state += 2 + digits(s[LINE] + 1) + digits(s[COLUMN] + 1)
    room = max(0, cols - state - 1)
    n = s[NAME] if in_shell else s[NAME] - 1 + s[MODIFIED]
    skip = max(0, n - room)
    for x in range(max(0, cols - state)):
        put(s, frame, position, cell, base + x, (name_cell(name, skip, x) if x < n - skip else BLANK) | REVERSE)
    x = cols - 1
    if not in_shell:
        number = s[COLUMN] + 1
        while number and x >= 0:
            put(s, frame, position, cell, base + x, (48 + number % 10) | REVERSE)
            x, number = x - 1, number // 10
        if x >= 0:
            put(s, frame, position, cell, base + x, COLON | REVERSE)
            x -= 1
        number = s[LINE] + 1
        while number and x >= 0:
            put(s, frame, position, cell, base + x, (48 + number % 10) | REVERSE)
            x, number = x - 1, number // 10
        if x >= 0:
            put(s, frame, position, cell, base + x, BLANK | REVERSE)
            x -= 1
    k = MODE_LENGTHS[mode] - 1
    while k >= 0 and x >= 0:
        put(s, frame, position, cell, base + x, MODES[mode, k] | REVERSE)
        x, k = x - 1, k - 1


# --- keys ---


@helper
def go(s, table, line, column):
    """Move the cursor as far as there is text."""
    s[LINE] = min(max(line, 0), s[LINES] - 1)
    s[COLUMN] = min(max(column, 0), length_of(s, table, s[LINE]))


@helper
def execute(s, table, command):
    """Carry out ``:N``, ``:Nd`` or ``:M,Nd``; returns whether lines were cut."""
    n, first, last, k = s[TYPED_COMMAND], 0, 0, 0
    while k < n and 48 <= command[k] < 58:
        first, k = 10 * first + command[k] - 48, k + 1
    last = first
    if k < n and command[k] == 44:
        last, k = 0, k + 1
        while k < n and 48 <= command[k] < 58:
            last, k = 10 * last + command[k] - 48, k + 1
    if k == n:
        go(s, table, first - 1, 0)
        return False
    cut_lines(s, table, first - 1, last - first + 1)
    go(s, table, first - 1, 0)
    return True


@helper
def move(s, table, key):
    """Take a key that only moves the cursor; returns whether it was one."""
    line, column, page = s[LINE], s[COLUMN], max(1, s[ED_ROWS] - 1)
    if key == UP:
        go(s, table, line - 1, column)
    elif key == DOWN:
        go(s, table, line + 1, column)
    elif key == LEFTWARD:
        go(s, table, line, column - 1)
    elif key == RIGHT:
        go(s, table, line, column + 1)
    elif key == HOME:
        s[COLUMN] = 0
    elif key == END:
        s[COLUMN] = length_of(s, table, line)
    elif key == PAGE_UP:
        go(s, table, line - page, column)
    elif key == PAGE_DOWN:
        go(s, table, line + page, column)
    else:
        return False
    return True


@helper
def take_key(s, table, arena, command, text, start, stop, key):
    """What one key does to editor and buffer.

    :returns: the first line and character that may look different, and whether lines below may; line -1 where none do
    """
    mode, line, column = s[MODE], s[LINE], s[COLUMN]
    if mode == LITERAL:
        s[MODE] = INSERT
        insert_character(s, table, arena, key)
        return line, column, False
    if mode == COMMAND:
        if key == ENTER:
            s[MODE] = NORMAL
            if execute(s, table, command):
                return s[LINE], 0, True
        else:
            command[s[TYPED_COMMAND]] = key
            s[TYPED_COMMAND] += 1
        return -1, 0, False
    if move(s, table, key):
        return -1, 0, False
    if key == PASTE:
        insert_text(s, table, arena, text, start, stop)
        return line, column, True
    if mode == NORMAL:
        if key == INSERTING:
            s[MODE] = INSERT
        else:
            s[MODE], s[TYPED_COMMAND] = COMMAND, 0
        return -1, 0, False
    if key == ESCAPE:
        s[MODE] = NORMAL
    elif key == LITERALLY:
        s[MODE] = LITERAL
    elif key == ENTER:
        break_line(s, table)
        return line, column, True
    elif key == BACKSPACE:
        if column:
            remove_characters(s, table, arena, column - 1, column)
            return line, column - 1, False
        if line:
            join_lines(s, table, arena, line - 1)
            return line - 1, s[COLUMN], True
    elif key == DELETE:
        if column < length_of(s, table, line):
            remove_characters(s, table, arena, column, column + 1)
            return line, column, False
        if line + 1 < s[LINES]:
            join_lines(s, table, arena, line)
            return line, column, True
    elif key == KILL_BEFORE:
        if column:
            remove_characters(s, table, arena, 0, column)
            return line, 0, False
    else:
        insert_character(s, table, arena, key)
        return line, column, False
    return -1, 0, False


@helper
def press(s, frame, table, arena, widths, glyph_at, pieces, extent, command, name, text, start, stop, position, cell, key):
    """Take one key and draw what it changes."""
    old = s[CURSOR]
    cells = s[AT]
    line, character, below = take_key(s, table, arena, command, text, start, stop, key)
    if line == s[LINE] and s[COLUMN] == character + 1 and not below:  # typed behind what is known
        width = widths[key]
        s[AT] = cells + (TAB_STOP - cells % TAB_STOP if width == TAB else width)
    else:
        s[AT] = cells_before(s, table, arena, widths, s[LINE], s[COLUMN])
        if line >= 0:
            cells = cells_before(s, table, arena, widths, line, character)
    anew = settle(s)
    if s[MODE] == COMMAND:
        command_cursor(s)
    if anew:
        for y in range(s[ED_ROWS]):
            draw_row(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, y)
    elif line >= 0:
        y = line - s[TOP]
        if y >= 0:
            draw_text(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, line, character, cells)
        if below:
            for row in range(max(y + 1, 0), s[ED_ROWS]):
                draw_row(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, row)
    if s[DIVIDED]:
        draw_bar(s, frame, command, name, position, cell)
    else:
        draw_small_bar(s, frame, command, name, position, cell)
    move_cursor(s, frame, position, cell, old)


@helper
def type_behind(s, frame, table, arena, widths, extent, codes, offsets, position, cell, keys):
    """Take the next keys, as far as each types one cell behind the end of a line in view: what ``press`` does, for what is
    most of a session. Then only that cell, the next one, and the last two digits of the column change.
    """
    line = s[LINE]
    row, last = row_of(s, table, line), (s[BAR_ROW] + 1) * s[COLS] - 2
    start, length, room = table[row, 0], table[row, 1], table[row, 2]
    drawn = s[BAR_MODE] == INSERT and s[BAR_MODIFIED] and not s[RENAMED] and not s[BAR_COMMAND]
    if s[COLUMN] != length or s[MODE] != INSERT or not s[MODIFIED] or not s[DIVIDED] or not drawn:
        return
    cells, cursor, k, n, m = s[AT], s[CURSOR], s[KEY], s[ACTIONS], s[CHANGES]
    limit = s[LEFT] + s[ED_COLS] - s[GUTTER] - 1
    stop = min(s[KEYS], k + codes.shape[0] - 2 - n, k + room - length, k + limit - cells, k + (position.shape[0] - m) // 4)
    first = k
    while k < stop:
        key, carry = keys[k], frame[last] & CODE == 57
        if key < 32 or key == BACKSPACE or widths[key] != 1 or carry and not 48 <= frame[last - 1] & CODE < 57:
            break
        arena[start + length] = key
        if carry:
            frame[last - 1] += 1
            position[m], cell[m] = last - 1, frame[last - 1]
            m += 1
        frame[cursor], frame[cursor + 1] = key, frame[cursor + 1] | REVERSE
        frame[last] += -9 if carry else 1
        for place in (cursor, cursor + 1, last):
            position[m], cell[m] = place, frame[place]
            m += 1
        codes[n], offsets[n + 1] = key, m
        k, n, cursor, length = k + 1, n + 1, cursor + 1, length + 1
    if k > first:
        table[row, 1] = s[COLUMN] = length
        s[AT], s[CURSOR], s[KEY], s[ACTIONS], s[CHANGES] = cells + k - first, cursor, k, n, m
        extent[line - s[TOP]] = s[GUTTER] + s[AT] - s[LEFT]


# --- planning keys: see fbam.sessions.keys ---


@helper
def across(start, stop, length):
    """The number of keys from one column of a line to another."""
    return min(abs(stop - start), 1 + stop, 1 + length - stop)


@helper
def write_across(keys, n, start, stop, length):
    """The keys themselves, from place ``n`` on; returns the place behind them."""
    straight, from_home, from_end = abs(stop - start), 1 + stop, 1 + length - stop
    if straight <= min(from_home, from_end):
        key, count = (RIGHT if stop > start else LEFTWARD), straight
    elif from_home <= from_end:
        keys[n], n = HOME, n + 1
        key, count = RIGHT, stop
    else:
        keys[n], n = END, n + 1
        key, count = LEFTWARD, length - stop
    keys[n : n + count] = key
    return n + count


@helper
def walk(s, table, line, pages, limit):
    """``abs(pages)`` page keys, then arrows up to a line.

    :returns: page keys, signed number of arrows, and column; the page keys are -1 where that takes ``limit`` keys or more
    """
    page, last = max(1, s[ED_ROWS] - 1), s[LINES] - 1
    page = page if pages > 0 else -page
    landings, at, column = min(abs(pages), limit), s[LINE], s[COLUMN]
    for k in range(landings):
        at = min(max(s[LINE] + page * (k + 1), 0), last)
        column = min(column, length_of(s, table, at))
    if landings + abs(line - at) >= limit:
        return -1, 0, 0
    step = 1 if line > at else -1
    for k in range(at, line, step):
        column = min(column, length_of(s, table, k + step))
    return landings, line - at, column


@helper
def number_keys(s, line, along):
    """Keys of a way by line number."""
    return (s[MODE] == INSERT) + 3 + digits(line + 1) + along


@helper
def best_way(s, table, line, column):
    """The shortest way to stand at a place in INSERT mode.

    :returns: its keys, and its signed number of page keys or ``BY_NUMBER``
    """
    length = length_of(s, table, line)
    by_number = number_keys(s, line, across(0, column, length))
    distance = line - s[LINE]
    pages, sign = abs(distance) // max(1, s[ED_ROWS] - 1), (1 if distance > 0 else -1)
    best, best_pages = by_number + 1, BY_NUMBER
    for k in range(3):
        count = 0 if k == 0 else sign * (pages + k - 1)
        if k == 1 and pages == 0:
            continue
        landings, arrows, at = walk(s, table, line, count, by_number)
        if landings >= 0:
            n = (s[MODE] != INSERT) + landings + abs(arrows) + across(at, column, length)
            if n < best:
                best, best_pages = n, count
    if by_number < best:
        return by_number, BY_NUMBER
    return best, best_pages


@helper
def write_number(keys, n, number):
    """The digits of a number."""
    count = digits(number)
    for k in range(count):
        keys[n + count - 1 - k] = 48 + number % 10
        number //= 10
    return n + count


@helper
def write_way(s, table, keys, n, line, column):
    """The keys of the shortest way; returns the place behind them."""
    length = length_of(s, table, line)
    _, pages = best_way(s, table, line, column)
    if pages == BY_NUMBER:
        if s[MODE] == INSERT:
            keys[n], n = ESCAPE, n + 1
        keys[n] = COLON
        n = write_number(keys, n + 1, line + 1)
        keys[n], keys[n + 1] = ENTER, INSERTING
        return write_across(keys, n + 2, 0, column, length)
    if s[MODE] != INSERT:
        keys[n], n = INSERTING, n + 1
    landings, arrows, at = walk(s, table, line, pages, number_keys(s, line, across(0, column, length)))
    keys[n : n + landings] = PAGE_DOWN if pages > 0 else PAGE_UP
    n += landings
    keys[n : n + abs(arrows)] = DOWN if arrows > 0 else UP
    return write_across(keys, n + abs(arrows), at, column, length)


@helper
def write_removal(s, table, keys, line, column, removed):
    """Remove from behind, from in front, or, at the start of a line, with Control-U."""
    behind, front = best_way(s, table, line, column + removed)[0], best_way(s, table, line, column)[0]
    if column == 0 and behind + 1 < behind + removed and behind + 1 < front + removed:
        n = write_way(s, table, keys, 0, line, removed)
        keys[n] = KILL_BEFORE
        return n + 1
    if behind <= front:
        n = write_way(s, table, keys, 0, line, column + removed)
        keys[n : n + removed] = BACKSPACE
    else:
        n = write_way(s, table, keys, 0, line, column)
        keys[n : n + removed] = DELETE
    return n + removed


@helper
def write_cut(s, table, keys, line, count):
    """Delete lines by number, or with Delete from the end of the line above where that is shorter."""
    by_number = (s[MODE] == INSERT) + 3 + digits(line + 1) + (1 + digits(line + count) if count > 1 else 0)
    if line > 0:
        characters = 0
        for k in range(line, line + count):
            characters += length_of(s, table, k) + 1
            if characters > by_number:
                break
        if characters <= by_number:
            end = length_of(s, table, line - 1)
            if best_way(s, table, line - 1, end)[0] + characters <= by_number + 1:
                n = write_way(s, table, keys, 0, line - 1, end)
                keys[n : n + characters] = DELETE
                return n + characters
    n = 0
    if s[MODE] == INSERT:
        keys[n], n = ESCAPE, n + 1
    keys[n] = COLON
    n = write_number(keys, n + 1, line + 1)
    if count > 1:
        keys[n] = 44
        n = write_number(keys, n + 1, line + count)
    keys[n], keys[n + 1] = 100, ENTER
    return n + 2


@helper
def write_text(keys, n, text, start, stop):
    """The keys that type a text."""
    for k in range(start, stop):
        code = text[k]
        if code == 10:
            keys[n], n = ENTER, n + 1
        elif code >= 32 and code != BACKSPACE or code == 9:
            keys[n], n = code, n + 1
        else:
            keys[n], keys[n + 1], n = LITERALLY, code, n + 2
    return n


@helper
def write_edit(s, table, keys, edit, text, file_limit, budget_end):
    """The keys of an edit; returns their number, -1 where the code of a paste is missing."""
    kind, line, column, removed, start, stop = edit[0], edit[1], edit[2], edit[3], edit[4], edit[5]
    if kind == CUT:
        return write_cut(s, table, keys, line, removed)
    if kind == LEAVE:
        n = 0
        if s[MODE] != NORMAL:
            keys[n], n = ESCAPE, n + 1
        keys[n], keys[n + 1], keys[n + 2] = COLON, 119, 113
        return n + 3
    beyond = edit[6] == 1 or stop - start > min(file_limit, budget_end - s[DONE] - s[ACTIONS])
    pasting = stop > start and (edit[6] == 1 or beyond and stop - start > 1)
    if pasting and edit[7] < 0:
        return -1
    s[PASTED if beyond else TYPED] += stop - start
    n = write_removal(s, table, keys, line, column, removed) if removed else write_way(s, table, keys, 0, line, column)
    if pasting:
        keys[n] = PASTE
        return n + 1
    return write_text(keys, n, text, start, stop)


# --- what Python calls ---


@kernel
def edit_file(
    s, frame, table, arena, widths, glyph_at, pieces, extent, command, name, codes, offsets, position, cell,
    key_codes, keys, edits, text, file_limit, budget_end,
):  # fmt: skip
    """Carry out ``edits`` (k, 8) key by key, from where it was left.

    :param key_codes: (11,) action codes of the keys -1 to -9
    :param keys: scratch for the keys of one edit
    :returns: ``COMPLETE``, ``FLUSH``, ``GROW`` or ``NAME_PASTE``
    """
    margin = 3 * s[ROWS] * s[COLS]
    while True:
        while s[KEY] < s[KEYS]:
            key, edit = keys[s[KEY]], edits[max(s[EDIT] - 1, 0)]
            pasted = edit[5] - edit[4] if key == PASTE else 0
            line = s[LINE]
            longest = length_of(s, table, line) + (length_of(s, table, line - 1) if line else 0)
            longest += length_of(s, table, line + 1) if line + 1 < s[LINES] else 0
            if s[ARENA] + 4 * longest + 5 * pasted + 64 > arena.shape[0]:
                return GROW
            if s[CHANGES] + margin > position.shape[0] or s[ACTIONS] + 2 > codes.shape[0]:
                return FLUSH
            if key >= 32:
                done = s[ACTIONS]
                type_behind(s, frame, table, arena, widths, extent, codes, offsets, position, cell, keys)
                if s[ACTIONS] > done:
                    continue
            press(s, frame, table, arena, widths, glyph_at, pieces, extent, command, name, text, edit[4], edit[5],
                  position, cell, key)  # fmt: skip
            end_action(s, codes, offsets, key if key >= 0 else edit[7] if key == PASTE else key_codes[-key])
            s[KEY] += 1
        if s[EDIT] == edits.shape[0]:
            return COMPLETE
        n = write_edit(s, table, keys, edits[s[EDIT]], text, file_limit, budget_end)
        if n < 0:
            return NAME_PASTE
        s[EDIT], s[KEY], s[KEYS] = s[EDIT] + 1, 0, n


@kernel
def load(s, table, arena, text):
    """Open a file: ``text`` (n,) code points become the buffer, and the cursor stands at its start."""
    line, start, n = 0, 0, text.shape[0]
    for k in range(n):
        arena[k] = text[k]
        if text[k] == 10:
            table[line, 0], table[line, 1], table[line, 2] = start, k - start, k - start
            line, start = line + 1, k + 1
    table[line, 0], table[line, 1], table[line, 2] = start, n - start, n - start
    s[LINES] = s[GAP] = line + 1
    s[ARENA], s[SHOWN], s[MODE] = n, 1, NORMAL
    s[LINE] = s[COLUMN] = s[AT] = s[TOP] = s[MODIFIED] = s[EDIT] = s[KEY] = s[KEYS] = 0


@kernel
def measure(s, table):
    """The number of characters of the buffer."""
    n = s[LINES] - 1
    for line in range(s[LINES]):
        n += length_of(s, table, line)
    return n


@kernel
def collect(s, table, arena, text):
    """Write the code points of the buffer into ``text``, of any type of numbers, and return all their bits or-ed."""
    at, bits = 0, 0
    for line in range(s[LINES]):
        row = row_of(s, table, line)
        if line:
            text[at] = 10
            at += 1
        start, length = table[row, 0], table[row, 1]
        for k in range(length):
            code = arena[start + k]
            text[at + k] = code
            bits |= code
        at += length
    return bits


@helper
def scroll_shell(s):
    """The first row of the shell that is shown, and the cell behind the command line."""
    wrapped = s[CELL_IN_ROW] == s[SH_COLS]
    last = s[ROW] + wrapped
    first = max(0, last + 1 - s[SH_ROWS])
    base = s[SH_ROW] * s[COLS] + s[SH_COL]
    return first, base + (last - first) * s[COLS] + (0 if wrapped else s[CELL_IN_ROW])


@helper
def draw_shell(s, frame, store, position, cell):
    """All rows of the shell's pane."""
    base, first = s[SH_ROW] * s[COLS] + s[SH_COL], s[FIRST]
    for y in range(s[SH_ROWS]):
        for x in range(s[SH_COLS]):
            value = store[first + y, x] if first + y <= s[ROW] else BLANK
            put(s, frame, position, cell, base + y * s[COLS] + x, value)


@helper
def start_row(s, store, prompt):
    """Begin a row of the shell; ``prompt`` is the first character of a prompt, 0 for a row that continues a line."""
    s[ROW] += 1
    store[s[ROW], :] = BLANK
    s[CELL_IN_ROW] = 0
    if prompt:
        store[s[ROW], 0], store[s[ROW], 1] = prompt | GREEN, BLANK | GREEN
        s[CELL_IN_ROW], s[INPUT_ROW], s[INPUT_CELLS] = 2, s[ROW], 0


@helper
def type_glyph(s, store, widths, glyph_at, pieces, code):
    """Append a character to the command line, in a new row where this one is full."""
    n, cols = widths[code], s[SH_COLS]
    wide = n == 2 and pieces[glyph_at[code] + 1] == CONTINUED
    if wide and s[CELL_IN_ROW] == cols - 1:
        start_row(s, store, 0)
    tab = n == TAB
    for k in range(TAB_STOP - s[INPUT_CELLS] % TAB_STOP if tab else n):
        if s[CELL_IN_ROW] == cols:
            start_row(s, store, 0)
        store[s[ROW], s[CELL_IN_ROW]] = BLANK if tab else code if n == 1 else pieces[glyph_at[code] + k]
        s[CELL_IN_ROW] += 1
        s[INPUT_CELLS] += 1


@helper
def draw_typed(s, frame, store, position, cell, row, x):
    """Draw the shell's rows from a row and a cell of it on, all of them where the pane scrolls."""
    old = s[CURSOR]
    first, s[CURSOR] = scroll_shell(s)
    if first != s[FIRST]:
        s[FIRST] = first
        draw_shell(s, frame, store, position, cell)
    else:
        base = s[SH_ROW] * s[COLS] + s[SH_COL]
        while row <= s[ROW]:
            for k in range(x, s[CELL_IN_ROW] if row == s[ROW] else s[SH_COLS]):
                put(s, frame, position, cell, base + (row - first) * s[COLS] + k, store[row, k])
            row, x = row + 1, np.int64(0)
    move_cursor(s, frame, position, cell, old)


@helper
def draw_state(s, frame, command, name, position, cell):
    """The bar in the present mode."""
    old = s[CURSOR]
    if s[DIVIDED]:
        draw_bar(s, frame, command, name, position, cell)
    else:
        draw_small_bar(s, frame, command, name, position, cell)
    move_cursor(s, frame, position, cell, old)


@kernel
def type_line(
    s, frame, widths, glyph_at, pieces, command, name, codes, offsets, position, cell, store, heights, text, paste_code,
):  # fmt: skip
    """Type a command at the prompt, without the Enter that ends it, from ``KEY`` on.

    :param store: (n, C') rows of the shell, finished ones and those of the command
    :param heights: rows of each line of the command but the last
    :param paste_code: code of the one action that pastes it all, -1 to type it
    :returns: ``COMPLETE`` or ``FLUSH``
    """
    margin = 6 * s[ROWS] * s[COLS]
    first_row, first_x = s[ROW], s[CELL_IN_ROW]
    while s[KEY] < text.shape[0]:
        if s[CHANGES] + margin > position.shape[0] or s[ACTIONS] + 3 > codes.shape[0]:
            return FLUSH
        code = text[s[KEY]]
        row, x, literal = s[ROW], s[CELL_IN_ROW], code != 10 and (code < 32 and code != 9 or code == BACKSPACE)
        if literal and paste_code < 0:
            s[MODE] = LITERAL
            draw_state(s, frame, command, name, position, cell)
            end_action(s, codes, offsets, LITERALLY)
        if code == 10:
            heights[s[INPUTS]] = s[ROW] - s[INPUT_ROW] + 1
            s[INPUTS] += 1
            start_row(s, store, 62)
        else:
            type_glyph(s, store, widths, glyph_at, pieces, code)
        if paste_code < 0:
            draw_typed(s, frame, store, position, cell, row, x)
            if literal:
                s[MODE] = SHELL
                draw_state(s, frame, command, name, position, cell)
            end_action(s, codes, offsets, ENTER if code == 10 else code)
        s[KEY] += 1
    if paste_code >= 0:
        draw_typed(s, frame, store, position, cell, first_row, first_x)
        end_action(s, codes, offsets, paste_code)
    return COMPLETE


@kernel
def show(
    s, frame, table, arena, widths, glyph_at, pieces, extent, command, name, codes, offsets, position, cell, store,
    names, lengths, highlighted,
):  # fmt: skip
    """Draw all panes and end the action Enter, which ran a command or left the editor.

    :param names: (n, C'') cells of the first rows of the tree's pane, not highlighted; ``lengths`` (n,) cells that have text
    :param highlighted: row of the shown file, -1 where it has none, -2 where the tree looks as before
    """
    old = s[CURSOR]
    s[FIRST], prompt = scroll_shell(s)
    if s[MODE] == SHELL:
        s[CURSOR] = prompt
    else:
        settle(s)
    if s[DIVIDED] or s[MODE] == SHELL:
        draw_shell(s, frame, store, position, cell)
    if s[MODE] != SHELL:
        for y in range(s[ED_ROWS]):
            draw_row(s, frame, table, arena, widths, glyph_at, pieces, extent, position, cell, y)
    if highlighted > -2:
        for y in range(s[BAR_ROW]):
            for x in range(s[ED_COL] - 1):
                value = names[y, x] if y < names.shape[0] else BLANK
                if y == highlighted and x < lengths[y]:
                    value = value & CODE | BAR
                put(s, frame, position, cell, y * s[COLS] + x, value)
    if s[DIVIDED]:
        draw_bar(s, frame, command, name, position, cell)
    else:
        draw_small_bar(s, frame, command, name, position, cell)
    move_cursor(s, frame, position, cell, old)
    end_action(s, codes, offsets, ENTER)


@njit(cache=True)
def pair_steps(pair, typed, cut):
    """Align n old lines with m new ones at the lowest cost: see ``fbam.sessions.edits.pair_lines``.

    :param pair: (n, m) keys that turn one line into another; ``typed``: (m,) keys of a new line; ``cut``: of a deleted one
    :returns: (k,) steps from the top: 0 paired, 1 deleted, 2 inserted
    """
    n, m = pair.shape
    cost = np.empty((n + 1, m + 1), np.int64)  # cost[i, j]: of the last n - i old lines and the last m - j new ones
    choice = np.empty((n + 1, m + 1), np.int8)
    for i in range(n + 1):
        cost[i, m], choice[i, m] = cut * (n - i), 1
    for j in range(m - 1, -1, -1):
        cost[n, j], choice[n, j] = typed[j] + cost[n, j + 1], 2
        for i in range(n - 1, -1, -1):
            best, step = pair[i, j] + cost[i + 1, j + 1], 0
            if cut + cost[i + 1, j] < best:
                best, step = cut + cost[i + 1, j], 1
            if typed[j] + cost[i, j + 1] < best:
                best, step = typed[j] + cost[i, j + 1], 2
            cost[i, j], choice[i, j] = best, step
    steps = np.empty(n + m, np.int8)
    i, j, k = 0, 0, 0
    while i < n or j < m:
        step = choice[i, j]
        steps[k], k = step, k + 1
        i += step != 2
        j += step != 1
    return steps[:k]
