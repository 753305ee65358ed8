"""Solvers of Diff-Inflate-Bench that are no language models, under one interface (paper, section 8.2.2).

A solver gets the diffs of one file, oldest first, the first of which creates it, and their lines of context; it returns the file.
"""

from collections.abc import Callable, Sequence
from functools import reduce

from fbam.tasks import compose, latest_diff
from fbam.tasks.patches import Lines, Patch, apply, parse

Solver = Callable[[Sequence[Patch], int], Lines]


def exact(patches: Sequence[Patch], context: int) -> Lines:
    """Apply one diff after the other, equation 6: the oracle."""
    return reduce(lambda lines, patch: apply(lines, patch, unidiff_zero=context == 0), patches, [])


def composed(patches: Sequence[Patch], context: int) -> Lines:
    """Compose all diffs in a tree and apply the result to the empty file once: exact, in ceil(log2 N) rounds."""
    maps, length = [], 0
    for patch in patches:
        maps.append(compose.as_map(patch, length))
        length += sum(hunk.growth for hunk in patch.hunks)
    return compose.render(compose.compose_all(maps)[0], [])


def latest(patches: Sequence[Patch], context: int) -> Lines:
    """The paper's parallel approximation: the latest diff that covers a region wins."""
    return latest_diff.by_context(patches, context) if context else latest_diff.by_line_numbers(patches)


def line_numbers(patches: Sequence[Patch], context: int) -> Lines:
    """The approximation by line numbers alone, whatever context there is."""
    return latest_diff.by_line_numbers(patches)


def last_diff(patches: Sequence[Patch], context: int) -> Lines:
    """Copy what the last diff shows."""
    return [line for hunk in patches[-1].hunks for line in hunk.shown]


EXACT, APPROXIMATION = "exact", "latest diff"
SOLVERS: dict[str, Solver] = {
    EXACT: exact,
    "composed": composed,
    APPROXIMATION: latest,
    "line numbers": line_numbers,
    "last diff": last_diff,
}


def solve(name: str, diffs: Sequence[str], context: int) -> str:
    """The file that solver ``name`` makes of the diffs.

    :raises PatchError: a diff cannot be read or, for the exact solver, does not fit
    """
    return "".join(SOLVERS[name]([parse(diff) for diff in diffs], context))
