"""Diff-Inflate-Bench: the final state of a file, to be told from N diffs (paper, section 8.2.2).

A case takes a file through N of its states in a row, across renames. Its first diff creates the file as it stood at the first of
them, each other one is the change to the next, so N = 1 asks for a copy. The paper starts at the file's creation; here any state
may be the first, which gives more cases from one history. States with the same content count once.

Cases are drawn evenly over strata of size and overlap,

    overlap = deleted lines that an earlier diff of the case (not the first) wrote / all lines deleted after the second diff,

deterministically by seed, and no two of them have the same contents.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fbam.experiments.files import write_text
from fbam.sessions.files import REGULAR, decode, encode
from fbam.sessions.history import Entry, History
from fbam.tasks.git_diffs import DiffWriter, State
from fbam.tasks.patches import Patch, parse, split_lines

SIZES = (50, 150)
"""Lines up to which a file is small, and up to which it is of middle size."""
OVERLAPS = (0.0, 0.25)
"""Overlap up to which a case counts as without, and up to which as with little of it."""
CANDIDATES = 4
"""Cases looked at for each one that is kept, so that every stratum is met."""


class BenchmarkError(ValueError):
    """What the benchmark cannot work with: a broken file of cases, a history without any, arguments that do not fit, no model."""


@dataclass(frozen=True)
class Version:
    """A state of a file in the history: the commit that made it, path, git mode, and object id of the content."""

    commit: str
    path: str
    mode: int
    oid: str


@dataclass(frozen=True)
class Case:
    """One question and its answer; texts have surrogate escapes.

    :ivar start: states of the file before the first one of the case
    :ivar diffs: lines of context -> the diffs, oldest first
    :ivar target: the file after the last diff, of git object id ``oid``
    :ivar overlap: see the module
    """

    id: str
    history: str
    path: str
    commit: str
    start: int
    diffs: dict[int, list[str]]
    target: str
    oid: str
    overlap: float

    @property
    def n_diffs(self) -> int:
        """N."""
        return len(next(iter(self.diffs.values())))

    @property
    def lines(self) -> int:
        """Lines of the target."""
        return len(split_lines(self.target))

    @property
    def stratum(self) -> tuple[int, int]:
        """Class of size and class of overlap, 0 to 2 each."""
        return sum(self.lines > limit for limit in SIZES), sum(self.overlap > limit for limit in OVERLAPS)


def chains(history: History, suffixes: Sequence[str]) -> list[list[Version]]:
    """The states of each regular file whose name ends in one of ``suffixes``, oldest first, followed through renames.

    A chain ends where the file is deleted; a file of the same name that comes later begins a new one.
    """
    finished: list[list[Version]] = []
    open_chains: dict[str, list[Version]] = {}
    before: dict[str, Entry] = {}
    previous = None
    for commit in history.commits:
        after = {path: entry for path, entry in history.tree(commit).items() if _wanted(path, entry, suffixes)}
        gone = before.keys() - after.keys()
        moved = dict(history.renames(previous, commit)) if gone and after.keys() - before.keys() else {}
        ended = {path: open_chains.pop(path) for path in sorted(gone)}
        for old, new in moved.items():
            if old in ended and new in after and new not in before:
                open_chains[new] = ended.pop(old)
        finished += ended.values()
        for path, entry in after.items():
            chain = open_chains.setdefault(path, [])
            if not chain or chain[-1].oid != entry.oid:
                chain.append(Version(commit.id, path, entry.mode, entry.oid))
        before, previous = after, commit
    return finished + list(open_chains.values())


def _wanted(path: str, entry: Entry, suffixes: Sequence[str]) -> bool:
    return path.endswith(tuple(suffixes)) and entry.mode & 0o170000 == REGULAR & 0o170000


def draw_cases(
    history: History,
    chains: Sequence[Sequence[Version]],
    n_diffs: int,
    count: int,
    contexts: Sequence[int],
    largest_bytes: int,
    seed: int,
    writer: DiffWriter,
) -> list[Case]:
    """Draw up to ``count`` cases of N diffs each; fewer where the history has no more.

    :param largest_bytes: cases with a state larger than this are left out
    """
    windows = [(i, chain[i : i + n_diffs]) for chain in chains for i in range(len(chain) - n_diffs + 1)]
    distinct = {tuple(version.oid for version in window): (i, window) for i, window in reversed(windows)}
    ranked = sorted(distinct.values(), key=lambda found: _rank(seed, found[1]))
    spread = _evenly(ranked, lambda found: found[1][-1].path)
    fitting = (found for found in spread if all(_fits(history, version, largest_bytes) for version in found[1]))
    drawn = [_case(history, *found, contexts, writer) for found in islice(fitting, CANDIDATES * count)]
    return _evenly(drawn, lambda case: case.stratum)[:count]


def _fits(history: History, version: Version, largest_bytes: int) -> bool:
    """Text of a size within the limit; an empty file, or one that is missing in a partial clone, has no case."""
    return 0 < history.size(version.oid) <= largest_bytes and b"\0" not in history.blob(version.oid)


def _rank(seed: int, window: Sequence[Version]) -> str:
    return hashlib.sha256(repr((seed, [version.oid for version in window])).encode()).hexdigest()


def _evenly(items: Iterable[Any], group: Any) -> list[Any]:
    """One of each group, then a second of each, and so on; within a group the order stays."""
    turn: dict[Any, int] = {}
    turns = []
    for number, item in enumerate(items):
        key = group(item)
        turn[key] = turn.get(key, -1) + 1
        turns.append((turn[key], number, item))
    return [item for _, _, item in sorted(turns, key=lambda entry: entry[:2])]


def _case(
    history: History, start: int, window: Sequence[Version], contexts: Sequence[int], writer: DiffWriter
) -> Case:
    states = [State(version.path, version.mode, history.blob(version.oid)) for version in window]
    pairs = list(zip([None, *states], states, strict=False))
    diffs = {context: [writer.diff(old, new, context) for old, new in pairs] for context in contexts}
    last = window[-1]
    text = decode(states[-1].data)
    name = hashlib.sha256("".join(version.oid for version in window).encode()).hexdigest()[:12]
    patches = [parse(diff) for diff in diffs[contexts[0]]]
    return Case(name, history.name, last.path, last.commit, start, diffs, text, last.oid, overlap(patches))


def overlap(patches: Sequence[Patch]) -> float:
    """Share of the lines deleted after the second diff that an earlier one, the first not counted, wrote; 0 if none is."""
    writers: list[int] = []  # the diff that wrote each line of the file
    deleted = rewritten = 0
    for number, patch in enumerate(patches):
        for hunk in patch.hunks:
            position = hunk.new_index
            for mark, _ in hunk.body:
                if mark == "+":
                    writers.insert(position, number)
                elif mark == "-":
                    writer = writers.pop(position)
                    deleted += number > 1
                    rewritten += number > 1 and writer > 0
                position += mark != "-"
    return rewritten / deleted if deleted else 0.0


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """One case a line of JSON in ASCII, which keeps bytes that are no UTF-8 as lone surrogates."""
    write_text(path, "".join(json.dumps(asdict(case) | {"n_diffs": case.n_diffs}) + "\n" for case in cases))


def read_cases(path: Path) -> Iterator[Case]:
    """Read what ``write_cases`` wrote.

    :raises BenchmarkError: a line is no case, or its target is not the content that its object id names
    """
    for number, line in enumerate(path.read_text("ascii").splitlines(), start=1):
        try:
            stored = json.loads(line)
            diffs = {int(context): diffs for context, diffs in stored.pop("diffs").items()}
            del stored["n_diffs"]
            case = Case(diffs=diffs, **stored)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BenchmarkError(f"{path} line {number} is no case ({error}); export the cases again") from error
        if blob_id(case.target) != case.oid:
            raise BenchmarkError(f"{path} line {number}: the target is not the content of {case.oid}; export the cases again")
        yield case


def blob_id(text: str) -> str:
    """Git's object id of a content, 40 hexadecimal digits."""
    data = encode(text)
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
