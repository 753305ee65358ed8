"""The studies of section 8.2 as cells of the grid: Diff-Inflate-Bench on a history, and the coding-agent task.

A cell's configuration names the commit that the history is read to, so that another history is another cell.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from fbam.sessions.files import decode
from fbam.sessions.history import History, open_history
from fbam.tasks.agent_stream import OBSERVERS, Event, observe, stream
from fbam.tasks.diff_inflate import Case, BenchmarkError, chains, draw_cases, write_cases
from fbam.tasks.diff_outcomes import Outcome, by_program, record
from fbam.tasks.git_diffs import DiffWriter
from fbam.tasks.judges import line_distance
from fbam.tasks.patches import split_lines
from fbam.tasks.solvers_diff import APPROXIMATION, EXACT, SOLVERS

EXAMPLE_LINES = 24
"""Rows of an example, from a little above the first line that differs."""
AGENT_LINES = (30, 200)
"""Lines of the files that the agent starts from."""


def configs(histories: Sequence[dict], root: Path, settings: dict) -> list[dict]:
    """One configuration a history: {source, revision}, the commit that they stand for, and the settings.

    :raises HistoryError: a source cannot be read
    :raises BenchmarkError: two histories have one name
    """
    found, names = [], []
    for history in histories:
        source = str(root / history["source"]) if (root / history["source"]).exists() else history["source"]
        config = {"source": source, "revision": history["revision"]}
        with _opened(config) as (opened, _):
            names.append(opened.name)
            found.append(config | {"head": opened.commits[-1].id, **settings})
    if len(set(names)) < len(names):
        raise BenchmarkError(f"two histories have the same name in {', '.join(names)}; rename one")
    return found


@contextmanager
def _opened(config: dict) -> Iterator[tuple[History, DiffWriter]]:
    """The history and a scratch repository, for as long as they are used."""
    with TemporaryDirectory(prefix="fbam-") as workspace:
        yield open_history(config["source"], config["revision"], Path(workspace)), DiffWriter(Path(workspace, "scratch"))


def benchmark_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Draw the cases of one history and let every built-in solver loose on them.

    :returns: outcomes without their texts, examples (see ``examples``), and what the history had to give; processor seconds.
        The cases themselves are in ``cases.jsonl`` in the folder.
    :raises BenchmarkError: the exact solver is not exact on a case
    """
    started = time.process_time()
    with _opened(config) as (history, writer):
        cases, outcomes = [], []
        found = chains(history, config["suffixes"])
        for number, n_diffs in enumerate(config["diffs"], start=1):
            limits = config["contexts"], config["largest_bytes"], config["seed"]
            drawn = draw_cases(history, found, n_diffs, config["cases"], *limits, writer)
            outcomes += [by_program(case, context, solver) for case in drawn for context in config["contexts"] for solver in SOLVERS]
            cases += drawn
            tick(number / len(config["diffs"]))
    _check_oracle(outcomes)
    write_cases(folder / "cases.jsonl", cases)
    result = {
        "history": history.name,
        "commits": len(history.commits),
        "files": len(found),
        "outcomes": [record(outcome) | {"text": ""} for outcome in outcomes],
        "examples": examples(cases, outcomes),
    }
    return result, {"cpu_seconds": time.process_time() - started}


def _check_oracle(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.solver == EXACT and not outcome.verdicts.bytes:
            raise BenchmarkError(f"case {outcome.case} (-U{outcome.context}): applying its diffs does not give git's blob")


def examples(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> list[dict]:
    """Where the approximation first fails in each context: the case of the fewest diffs, then of the shortest file.

    :returns: for each context that fails: case, path, n_diffs, context, and rows as of ``side_by_side``
    """
    targets = {case.id: case for case in cases}
    failed = [o for o in outcomes if o.solver == APPROXIMATION and not o.verdicts.equivalent]
    found = []
    for context in dict.fromkeys(o.context for o in failed):
        first = min((o for o in failed if o.context == context), key=lambda o: (o.n_diffs, targets[o.case].lines, o.case))
        rows = side_by_side(targets[first.case].target, first.text)
        found.append({"case": first.case, "path": first.path, "n_diffs": first.n_diffs, "context": context, "rows": rows})
    return found


def side_by_side(wanted: str, given: str) -> list[list]:
    """Two files line by line from a little above their first difference: [line number wanted, line, line given]; None where one has none."""
    left, right = split_lines(wanted), split_lines(given)
    rows: list[list] = []
    for _, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for k in range(max(i_end - i, j_end - j)):
            rows.append([i + k + 1, left[i + k] if i + k < i_end else None, right[j + k] if j + k < j_end else None])
    first = next((number for number, (_, a, b) in enumerate(rows) if a != b), 0)
    start = max(0, first - 3)
    return rows[start : start + EXAMPLE_LINES]


def agent_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Let agents edit files of a history with side effects, and hold what observers believe at the end against the truth.

    :returns: a list of {p, observer, context, print_every, correct, distance}: truth values and distances in lines, one a stream;
        processor seconds
    """
    started = time.process_time()
    with _opened(config) as (history, writer):
        texts = _starting_texts(history, config["suffixes"])
        rows = []
        for number, p in enumerate(config["chances"], start=1):
            streams = [
                stream(texts[i % len(texts)], config["turns"], p, config["contexts"], (config["seed"], i), writer)
                for i in range(config["streams"])
            ]
            for way in product(OBSERVERS, config["contexts"], config["print_every"]):
                rows.append({"p": p, **dict(zip(("observer", "context", "print_every"), way)), **_observed(streams, *way)})
            tick(number / len(config["chances"]))
    return {"rows": rows}, {"cpu_seconds": time.process_time() - started}


def _observed(streams: Sequence[Sequence[Event]], observer: str, context: int, every: int) -> dict[str, list]:
    """Whether an observer knows the file at the end of each stream, and how many lines it is off."""
    pairs = [(observe(observer, events, context, every), events[-1].state) for events in streams]
    return {
        "correct": [given == truth for given, truth in pairs],
        "distance": [line_distance(split_lines(given), split_lines(truth)) for given, truth in pairs],
    }


def _starting_texts(history: History, suffixes: Sequence[str]) -> list[str]:
    """The last states of the history's files that are neither short nor long."""
    low, high = AGENT_LINES
    texts = [decode(history.blob(chain[-1].oid)) for chain in chains(history, suffixes)]
    texts = [text for text in texts if low <= len(split_lines(text)) <= high]
    if not texts:
        raise BenchmarkError(f"{history.name} has no file of {low} to {high} lines that ends in {', '.join(suffixes)}")
    return texts
