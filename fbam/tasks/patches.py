"""Unified diffs: reading one, and applying it by the rules of ``git apply`` (paper, section 8.2).

The file state is S_t = apply(S_{t-1}, delta_t), equation 6. A file is a list of lines that keep their line feed, so a last
line without one differs from one with it; a carriage return belongs to its line. Text is decoded with surrogate escapes.

A hunk goes where its header says, counted in the new file. If its old lines are not there, the places around are tried, one
line later, one earlier, two later and so on, until they are found. A hunk that shows no lines after its last change must end
the file, one that starts at line 1 must begin it; diffs made without context (-U0) cannot tell, so these rules do not hold there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NO_LINE_FEED = "\\"
"""First character of git's remark that the line before it has no line feed."""
Lines = list[str]


class PatchError(ValueError):
    """A diff that cannot be read, or a hunk whose old lines are not in the file."""


@dataclass(frozen=True)
class Hunk:
    """One hunk: the counts of its header, and its lines as (mark, line), the mark being " ", "-" or "+"."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    body: tuple[tuple[str, str], ...]

    @cached_property
    def old(self) -> Lines:
        """The lines that it replaces: context and deleted lines."""
        return [line for mark, line in self.body if mark != "+"]

    @cached_property
    def shown(self) -> Lines:
        """The lines that stand there afterwards: context and added lines."""
        return [line for mark, line in self.body if mark != "-"]

    @cached_property
    def leading(self) -> int:
        """Context lines before the first change."""
        return next((i for i, (mark, _) in enumerate(self.body) if mark != " "), len(self.body))

    @cached_property
    def trailing(self) -> int:
        """Context lines after the last change."""
        return next((i for i, (mark, _) in enumerate(reversed(self.body)) if mark != " "), len(self.body))

    @property
    def old_index(self) -> int:
        """Index of its first old line in the file before, from 0; of the line it inserts before, where it has none."""
        return self.old_start - (self.old_count > 0)

    @property
    def new_index(self) -> int:
        """Index of its first shown line in the file after, from 0."""
        return self.new_start - (self.new_count > 0)

    @property
    def growth(self) -> int:
        """Lines by which it makes the file longer."""
        return self.new_count - self.old_count


@dataclass(frozen=True)
class Patch:
    """The diff of one file: the lines before its first hunk, and its hunks; a pure rename or change of mode has none."""

    header: tuple[str, ...]
    hunks: tuple[Hunk, ...]


def split_lines(text: str) -> Lines:
    """Cut at line feeds alone, which stay with their lines; the inverse of ``"".join``."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


@lru_cache(maxsize=2048)
def parse(diff: str) -> Patch:
    """Read git's diff of one file; what was read last is kept, because several solvers read the same diffs.

    :raises PatchError: a binary file, a broken hunk, or more than one file
    """
    lines = split_lines(diff)
    first = next((i for i, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    header = tuple(line.rstrip("\n") for line in lines[:first])
    if any(line.startswith(("Binary files ", "GIT binary patch")) for line in header):
        raise PatchError(f"{header[0]}: a binary file has no lines to patch; leave it out")
    return Patch(header, tuple(_hunks(lines, first)))


def _hunks(lines: Lines, position: int) -> Iterator[Hunk]:
    while position < len(lines):
        match = HEADER.match(lines[position])
        if match is None:
            raise PatchError(f"line {position + 1} of the diff should start a hunk, but is {lines[position]!r}")
        counts = [1 if number is None else int(number) for number in match.groups()]
        body, position = _body(lines, position + 1, counts[1], counts[3])
        yield Hunk(*counts, body)


def _body(lines: Lines, position: int, old: int, new: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """The lines of a hunk that has ``old`` and ``new`` lines, and the position after them."""
    body: list[tuple[str, str]] = []
    while old or new or (position < len(lines) and lines[position].startswith(NO_LINE_FEED)):
        if position == len(lines):
            raise PatchError(f"the diff ends in the middle of a hunk: {old} old and {new} new lines are missing")
        mark, line = lines[position][0], lines[position][1:]
        if mark == NO_LINE_FEED and body:
            body[-1] = (body[-1][0], body[-1][1].removesuffix("\n"))
        elif mark not in " -+" or old < (mark != "+") or new < (mark != "-"):
            raise PatchError(f"line {position + 1} of the diff does not fit its hunk: {lines[position]!r}")
        else:
            body.append((mark, line))
            old, new = old - (mark != "+"), new - (mark != "-")
        position += 1
    return tuple(body), position


def apply(lines: Lines, patch: Patch, unidiff_zero: bool = False) -> Lines:
    """The file after a patch.

    :param unidiff_zero: the diff was made with -U0, as in ``git apply --unidiff-zero``
    :raises PatchError: the old lines of a hunk are nowhere in the file
    """
    lines, rejected = apply_what_fits(lines, patch, unidiff_zero)
    if rejected:
        hunk = rejected[0]
        raise PatchError(f"hunk -{hunk.old_start},{hunk.old_count} does not fit: its old lines are not in the file")
    return lines


def apply_what_fits(lines: Lines, patch: Patch, unidiff_zero: bool = False) -> tuple[Lines, list[Hunk]]:
    """The file after the hunks that fit, and the others, as ``git apply --reject`` does it."""
    lines, rejected = list(lines), []
    patched = [False] * len(lines)  # written by an earlier hunk of this patch, which no later one may match
    for hunk in patch.hunks:
        position = _find(lines, patched, hunk, unidiff_zero)
        if position is None:
            rejected.append(hunk)
            continue
        lines[position : position + len(hunk.old)] = hunk.shown
        patched[position : position + len(hunk.old)] = [True] * len(hunk.shown)
    return lines, rejected


def _find(lines: Lines, patched: Sequence[bool], hunk: Hunk, unidiff_zero: bool) -> int | None:
    """Index where the old lines of a hunk stand, nearest to where its header says."""
    size = len(hunk.old)
    at_start = hunk.old_start == 0 or (hunk.old_start == 1 and not unidiff_zero)
    at_end = not unidiff_zero and hunk.trailing == 0
    wanted = 0 if at_start else len(lines) - size if at_end else max(hunk.new_start - 1, 0)
    for position in _around(wanted if 0 <= wanted <= len(lines) else len(lines), len(lines)):
        if (at_start and position != 0) or (at_end and position + size != len(lines)):
            continue
        if lines[position : position + size] == hunk.old and not any(patched[position : position + size]):
            return position
    return None


def _around(wanted: int, last: int) -> Iterator[int]:
    """``wanted``, then one more, one less, two more, … within 0 to ``last``."""
    yield wanted
    for distance in range(1, last + 1):
        if wanted + distance <= last:
            yield wanted + distance
        if wanted - distance >= 0:
            yield wanted - distance
