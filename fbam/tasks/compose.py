"""Patches without side effects compose: the parallel solution that the paper grants (section 8.2.2).

A patch maps a file to a file by copying stretches of it and putting literal lines between them. Such maps are closed under
composition, and composition is associative,

    (p3 . p2) . p1 = p3 . (p2 . p1),

so N patches become one in a tree of ceil(log2 N) rounds, and no file state in between is ever formed. Positions must be exact,
which they are in a clean sequence of diffs.
"""

from collections.abc import Sequence

from fbam.tasks.patches import Lines, Patch

Piece = range | tuple[str, ...]
"""A stretch of the old file by line indices, or literal lines."""
Map = list[Piece]


def as_map(patch: Patch, length: int) -> Map:
    """A patch as a map of files with ``length`` lines; context counts as copied."""
    pieces: Map = []
    position = 0
    for hunk in patch.hunks:
        pieces.append(range(position, hunk.old_index))
        position = hunk.old_index
        for mark, line in hunk.body:
            if mark == "+":
                pieces.append((line,))
            elif mark == " ":
                pieces.append(range(position, position + 1))
            position += mark != "+"
    return _joined([*pieces, range(position, length)])


def compose(first: Map, second: Map) -> Map:
    """The map that does ``first`` and then ``second``."""
    starts = [0]
    for piece in first:
        starts.append(starts[-1] + len(piece))
    pieces: Map = []
    for piece in second:
        if isinstance(piece, tuple):
            pieces.append(piece)
            continue
        for start, source in zip(starts, first, strict=False):
            pieces.append(source[max(piece.start - start, 0) : max(piece.stop - start, 0)])
    return _joined(pieces)


def compose_all(maps: Sequence[Map]) -> tuple[Map, int]:
    """All maps as one, by pairs in rounds; returns the number of rounds too."""
    rounds = 0
    while len(maps) > 1:
        pairs = [compose(*maps[i : i + 2]) for i in range(0, len(maps) - 1, 2)]
        maps = [*pairs, *maps[len(pairs) * 2 :]]
        rounds += 1
    return maps[0], rounds


def render(pieces: Map, lines: Lines) -> Lines:
    """The new file, given the old one."""
    parts = (piece if isinstance(piece, tuple) else lines[piece.start : piece.stop] for piece in pieces)
    return [line for part in parts for line in part]


def _joined(pieces: Map) -> Map:
    """The same map in the fewest pieces, none empty."""
    joined: Map = []
    for piece in filter(len, pieces):
        last = joined[-1] if joined else ()
        if isinstance(piece, tuple) and isinstance(last, tuple) and last:
            joined[-1] = last + piece
        elif isinstance(piece, range) and isinstance(last, range) and last.stop == piece.start:
            joined[-1] = range(last.start, piece.stop)
        else:
            joined.append(piece)
    return joined
