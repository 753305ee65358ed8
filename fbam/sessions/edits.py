"""From two states of a file to the edits that lead from one to the other (paper, section 10.1, figures 12 and 13).

Lines are compared first; inside a block of replaced lines old and new lines are paired so that the fewest keys are
needed; inside a pair characters are compared, and a line is typed anew where its differences cost more keys:

    keys(old -> new) = min(sum of removed + inserted + cursor keys, 2 + |new|).

Edits are applied in order, from top to bottom; their coordinates hold at the moment each is applied. Longest common
subsequences come from rapidfuzz. It compares list elements by their hash, so lines are numbered before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from fbam.sessions.kernels import pair_steps

PAIRING_CELLS = 40_000
"""Largest old lines x new lines of a block whose lines are paired by cost; larger blocks are paired in order."""
FEW_PAIRS = 8
"""Pairs of lines up to which a call for each is faster than one for all."""
ALIGNMENT_CELLS = 400_000_000
"""Largest old lines x new lines that are compared line by line (one bit each); beyond, one block is replaced."""
CUT_KEYS = 2
"""Keys counted for a deleted line when lines are paired."""
RETYPE_KEYS = 2
"""Keys that empty a line: End and Control-U."""
STEPS = PAIRED, DELETED, INSERTED = "paired", "deleted", "inserted"
"""Steps of an alignment of lines; at equal cost the first in this order is taken."""


@dataclass(frozen=True)
class Limits:
    """What is typed key by key; text beyond is pasted with one action a region.

    :ivar file_characters: longest file, old or new
    :ivar line_characters: longest line, old or new
    :ivar commit_actions: actions of one commit after which the rest of it is pasted
    """

    file_characters: int = 65_536
    line_characters: int = 1_000
    commit_actions: int = 100_000


class Splice(NamedTuple):
    """At (``line``, ``column``), both from 0: remove ``removed`` characters of that line, insert ``text``."""

    line: int
    column: int
    removed: int
    text: str
    paste: bool = False


class Cut(NamedTuple):
    """Delete ``count`` whole lines from ``line`` (from 0) on."""

    line: int
    count: int


Edit = Splice | Cut


@dataclass(frozen=True)
class Plan:
    """The edits of one file; ``changed`` counts the characters removed and inserted by the smallest difference found."""

    edits: list[Edit]
    changed: int

    @property
    def keys(self) -> int:
        """About how many keys the plan takes: its characters, and eight keys a change to get there."""
        return sum(8 + (0 if isinstance(edit, Cut) or edit.paste else edit.removed + len(edit.text)) for edit in self.edits)


def line_change(old: str, new: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Compare two lines by characters.

    :returns: characters removed and inserted; then (column, removed, inserted text) from left to right, columns counted
        in the line as changed so far. It is one change of the whole line where typing it anew needs fewer keys.
    """
    changes: list[tuple[int, int, str]] = []
    distance = moves = cursor = 0
    for tag, start, stop, first, end in Indel.opcodes(old, new):
        if tag == "equal":
            continue
        column, removed, text = first, stop - start, new[first:end]
        if changes and cursor == column:
            column, removed_before, text_before = changes.pop()
            removed, text = removed_before + removed, text_before + text
        else:
            moves += min(column - cursor, 1 + len(old) - stop)
        changes.append((column, removed, text))
        distance += stop - start + (end - first)
        cursor = end
    if old and distance + moves > RETYPE_KEYS + len(new):
        return distance, [(0, len(old), new)]
    return distance, changes


def pair_lines(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Align two non-empty blocks of lines in order so that about the fewest keys are needed.

    :returns: one of PAIRED, DELETED, INSERTED for each step through both blocks from the top
    """
    n, m = len(old), len(new)
    if n == m == 1:  # never dearer than to delete one and type the other
        return [PAIRED]
    if n * m > PAIRING_CELLS:
        return [PAIRED] * min(n, m) + [DELETED] * (n - m) + [INSERTED] * (m - n)
    typed = np.array([len(line) + 1 for line in new])  # (m,)
    if n * m > FEW_PAIRS:
        distance = cdist(old, new, scorer=Indel.distance, dtype=np.int64)  # (n, m)
    else:
        distance = np.array([[Indel.distance(line, other) for other in new] for line in old])
    pair = np.minimum(distance, typed + 1)  # (n, m)
    return [STEPS[step] for step in pair_steps(pair, typed, CUT_KEYS).tolist()]


@dataclass
class _Planner:
    """Collects edits from top to bottom: ``taken`` old lines are behind the cursor, as ``line`` lines of the new state.

    ``old`` and ``new`` are a part of the files that begins ``base`` lines from their start, with an equal line unless
    that is 0, and ends with an equal line unless it is their end.
    """

    old: list[str]
    new: list[str]
    base: int
    taken: int = 0
    line: int = 0
    changed: int = 0
    edits: list[Edit] = field(default_factory=list)

    def cut(self, count: int) -> None:
        """Delete the next ``count`` old lines."""
        if count:
            self.edits.append(Cut(self.base + self.line, count))
            self.changed += sum(map(len, self.old[self.taken : self.taken + count])) + count
            self.taken += count

    def insert(self, count: int, paste: bool = False) -> None:
        """Insert the next ``count`` new lines."""
        if not count:
            return
        text = "\n".join(self.new[self.line : self.line + count])
        if self.line:
            above = self.line - 1
            self.edits.append(Splice(self.base + above, len(self.new[above]), 0, "\n" + text, paste))
        elif self.taken == len(self.old):
            self.edits.append(Splice(0, 0, 0, text, paste))
        elif paste or not self.old[self.taken]:
            self.edits.append(Splice(0, 0, 0, text + "\n", paste))
        else:  # make room first, so that the line below is not pushed along while typing
            self.edits += [Splice(0, 0, 0, "\n"), Splice(0, 0, 0, text)]
        self.line += count
        self.changed += len(text) + 1

    def change(self) -> None:
        """Turn the next old line into the next new one."""
        distance, changes = line_change(self.old[self.taken], self.new[self.line])
        self.edits += [Splice(self.base + self.line, column, removed, text) for column, removed, text in changes]
        self.changed += distance
        self.taken += 1
        self.line += 1

    def replace(self, removed: int, inserted: int, paste: bool) -> None:
        """Turn the next ``removed`` old lines into the next ``inserted`` new ones."""
        if paste or not removed or not inserted:
            self.cut(removed)
            self.insert(inserted, paste)
            return
        old = self.old[self.taken : self.taken + removed]
        new = self.new[self.line : self.line + inserted]
        for step, group in groupby(pair_lines(old, new)):
            count = len(list(group))
            if step == DELETED:
                self.cut(count)
            elif step == INSERTED:
                self.insert(count)
            else:
                for _ in range(count):
                    self.change()


def plan(old: str, new: str, limits: Limits, keys_left: int) -> Plan:
    """The edits that turn ``old`` into ``new``.

    :param limits: blocks of lines beyond them are cut and pasted
    :param keys_left: where the plan would take more keys than this, everything from the first to the last line that
        differs is cut and pasted as one block
    """
    base, lines_old, lines_new = _differing_part(old, new)
    planner = _Planner(lines_old, lines_new, base)
    big = max(len(old), len(new)) > limits.file_characters
    for start, stop, first, last in _blocks(planner.old, planner.new):
        planner.taken, planner.line = start, first
        lines = planner.old[start:stop] + planner.new[first:last]
        paste = big or max(map(len, lines)) > limits.line_characters
        planner.replace(stop - start, last - first, paste)
    typed = Plan(planner.edits, planner.changed)
    if typed.keys <= keys_left:
        return typed
    head, tail = _common_ends(planner.old, planner.new)
    whole = _Planner(planner.old, planner.new, base, head, head)
    whole.replace(len(whole.old) - head - tail, len(whole.new) - head - tail, paste=True)
    return Plan(whole.edits, typed.changed)


def _differing_part(old: str, new: str) -> tuple[int, list[str], list[str]]:
    """The lines from the one before the first difference to the one behind the last, and how many stand before them.

    Large files differ in few places, and strings are compared several hundred times faster than lists of lines.
    """
    start = old.rfind("\n", 0, max(old.rfind("\n", 0, _common_prefix(old, new)), 0)) + 1
    stop = old.find("\n", len(old) - _common_suffix(old, new, start))
    stop = old.find("\n", stop + 1) if stop >= 0 else -1
    if stop < 0:
        return old.count("\n", 0, start), old[start:].split("\n"), new[start:].split("\n")
    return old.count("\n", 0, start), old[start:stop].split("\n"), new[start : stop - len(old) + len(new)].split("\n")


def _common_prefix(a: str, b: str) -> int:
    """How many characters two texts share at the start."""
    known, most = 0, min(len(a), len(b))
    while known < most:
        middle = (known + most + 1) // 2
        if a.startswith(b[known:middle], known):
            known = middle
        else:
            most = middle - 1
    return known


def _common_suffix(a: str, b: str, start: int) -> int:
    """How many characters two texts share at the end, behind ``start``."""
    known, most = 0, min(len(a), len(b)) - start
    while known < most:
        middle = (known + most + 1) // 2
        if a.endswith(b[len(b) - middle : len(b) - known], start, len(a) - known):
            known = middle
        else:
            most = middle - 1
    return known


def _common_ends(a: Sequence[object], b: Sequence[object]) -> tuple[int, int]:
    """How many elements two sequences share at the start and, of the rest, at the end."""
    short = min(len(a), len(b))
    head = next((k for k in range(short) if a[k] != b[k]), short)
    tail = next((k for k in range(short - head) if a[-1 - k] != b[-1 - k]), short - head)
    return head, tail


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """(old start, old stop, new start, new stop) of each stretch of lines that differs."""
    head, tail = _common_ends(old, new)
    parts = old[head : len(old) - tail], new[head : len(new) - tail]
    if min(map(len, parts)) == 0 or max(map(len, parts)) == 1:
        if any(parts):
            yield head, len(old) - tail, head, len(new) - tail
        return
    numbers = {line: number for number, line in enumerate(dict.fromkeys(chain(*parts)))}
    a, b = (list(map(numbers.__getitem__, lines)) for lines in parts)
    if len(a) * len(b) > ALIGNMENT_CELLS:
        yield head, head + len(a), head, head + len(b)
        return
    i = j = 0
    equal = [(block.src_start, block.src_end, block.dest_start, block.dest_end)
             for block in Indel.opcodes(a, b) if block.tag == "equal"]  # fmt: skip
    for start, stop, first, last in [*equal, (len(a), len(a), len(b), len(b))]:
        if i < start or j < first:
            yield head + i, head + start, head + j, head + first
        i, j = stop, last
