"""The parallel approximation that the paper suspects in language models (section 8.2.2).

"Repeat the lines that are not deleted, from the latest diff that appears to start with the region to be rendered." Here the file
is written from top to bottom, and every line is looked up, with no file state in between:

* it follows the line before it in the same hunk, unless a later diff starts here;
* a hunk starts here if its leading context is the last c lines written, c being the lines of context of the diffs;
* where a hunk ends, the latest diff that shows the last c lines goes on; of several places there, the one after most of the lines
  that the hunk replaced.

A line that diff t shows as line j can at the end be no further up than j minus all lines that later diffs remove on balance, and
no further down than j plus all that they add. Outside of this window a hunk is no candidate: its header is read, but no offset is
ever carried from diff to diff. Of the diffs' order only "latest" is used. Without context there is nothing to look up, and lines
are placed by the numbers in the headers alone, as if every diff had been made against the first file.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fbam.tasks.patches import Hunk, Lines, Patch


class Place(NamedTuple):
    """Line ``line`` of what hunk ``hunk`` of diff ``diff`` shows, all from 0."""

    diff: int
    hunk: int
    line: int


@dataclass(frozen=True)
class Window:
    """How far up (at most 0) and down a line of one diff can have been moved by the later ones."""

    up: int
    down: int


def windows(patches: Sequence[Patch]) -> list[Window]:
    """For each diff the sums of what the hunks of later diffs take away and add."""
    found: list[Window] = []
    up = down = 0
    for patch in reversed(patches):
        found.append(Window(up, down))
        up += sum(min(hunk.growth, 0) for hunk in patch.hunks)
        down += sum(max(hunk.growth, 0) for hunk in patch.hunks)
    return found[::-1]


class Shown:
    """All that the diffs show, indexed by c lines in a row."""

    def __init__(self, patches: Sequence[Patch], context: int) -> None:
        self.patches, self.context, self.windows = patches, context, windows(patches)
        self._starts: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        self._anywhere: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        for place, lines in self._all():
            for end in range(context, len(lines)):
                self._anywhere[tuple(lines[end - context : end])].append(place._replace(line=end))
            leading = self.hunk(place).leading
            if leading == context:
                self._starts[tuple(lines[:context])].append(place._replace(line=context))

    def _all(self) -> Iterator[tuple[Place, Lines]]:
        for d, patch in enumerate(self.patches):
            for h, hunk in enumerate(patch.hunks):
                yield Place(d, h, 0), hunk.shown

    def hunk(self, place: Place) -> Hunk:
        """The hunk of a place."""
        return self.patches[place.diff].hunks[place.hunk]

    def first(self) -> Place | None:
        """Where the file begins: the latest diff that shows line 1."""
        found = [place for place, lines in self._all() if lines and self.hunk(place).new_index == 0]
        return max(found, default=None)

    def starting(self, written: Lines, after: int) -> list[Place]:
        """Hunks of diffs later than ``after`` whose leading context has just been written, at their next line."""
        found = self._starts.get(tuple(written[-self.context :]), [])
        return [place for place in found if place.diff > after and self._within(place, len(written))]

    def following(self, written: Lines) -> list[Place]:
        """All places whose c lines before have just been written."""
        found = self._anywhere.get(tuple(written[-self.context :]), [])
        return [place for place in found if self._within(place, len(written))]

    def _within(self, place: Place, position: int) -> bool:
        shift = position - (self.hunk(place).new_index + place.line)
        window = self.windows[place.diff]
        return window.up <= shift <= window.down

    def ends_file(self, place: Place) -> bool:
        """True if the hunk shows fewer lines after its last change than diffs do elsewhere."""
        return self.hunk(place).trailing < self.context


def by_context(patches: Sequence[Patch], context: int) -> Lines:
    """Render the file by looking up what the latest diff shows.

    :param context: lines of context of the diffs, at least 1
    """
    shown = Shown(patches, context)
    written: Lines = []
    used: set[Place] = set()
    place = shown.first()
    while place is not None and place.line < len(shown.hunk(place).shown):  # a hunk that shows no more ends the file
        used.add(place)
        hunk = shown.hunk(place)
        written.append(hunk.shown[place.line])
        candidates = shown.starting(written, place.diff)
        if not candidates and place.line + 1 < len(hunk.shown):
            place = place._replace(line=place.line + 1)
            continue
        if not candidates and not shown.ends_file(place):
            candidates = shown.following(written)
        place = _latest(shown, [candidate for candidate in candidates if candidate not in used], len(written), hunk.old)
    return written


def _latest(shown: Shown, candidates: Sequence[Place], position: int, old: Lines) -> Place | None:
    """The place in the latest diff; of several there, after most of the lines that the hunk replaced; then the nearest by number."""
    def rank(place: Place) -> tuple[int, int, int]:
        hunk = shown.hunk(place)
        alike = _common_end(hunk.shown[: place.line], old)
        return -place.diff, -alike, abs(position - (hunk.new_index + place.line))

    return min(candidates, key=rank, default=None)


def _common_end(one: Lines, other: Lines) -> int:
    """How many lines the two have in common at their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def by_line_numbers(patches: Sequence[Patch]) -> Lines:
    """Put every hunk into the first file at the line its header names; where two cover a line, the later one stays."""
    first, *later = patches
    lines = [line for hunk in first.hunks for line in hunk.shown]
    kept: list[Hunk] = []
    for patch in reversed(later):
        kept += [hunk for hunk in patch.hunks if not any(_overlap(hunk, other) for other in kept)]
    for hunk in sorted(kept, key=lambda hunk: hunk.old_index, reverse=True):
        lines[hunk.old_index : hunk.old_index + hunk.old_count] = hunk.shown
    return lines


def _overlap(one: Hunk, other: Hunk) -> bool:
    same_point = one.old_index == other.old_index
    return same_point or (
        one.old_index < other.old_index + other.old_count and other.old_index < one.old_index + one.old_count
    )
