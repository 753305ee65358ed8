"""What a recording leaves out, and why (paper, section 10.1: text is recorded, other things cannot be typed).

=========  ============================================================================================================
submodule  a commit of another repository, without content here
binary     a NUL byte somewhere
missing    the object is not there: the repository is a partial clone
large      more than ``LARGEST_BYTES``
=========  ============================================================================================================
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Exclusion(NamedTuple):
    """A content that is left out, and the first commit that has it at this path; ``size`` in bytes, 0 if unknown."""

    commit: str
    path: str
    oid: str
    size: int
    reason: str


def by_reason(exclusions: Iterable[Exclusion]) -> dict[str, dict[str, int]]:
    """Count and bytes of what was left out, by reason."""
    table: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "bytes": 0})
    for exclusion in exclusions:
        table[exclusion.reason]["count"] += 1
        table[exclusion.reason]["bytes"] += exclusion.size
    return dict(sorted(table.items()))
