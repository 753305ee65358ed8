"""The rows of Diff-Inflate-Bench and of the coding-agent task, and how they and their tests follow from single outcomes (section 8.2).

An outcome is the JSON form of ``fbam.tasks.diff_outcomes.Outcome``. Only answered ones count; faults are counted beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from scipy import stats

from fbam.experiments.records import Row
from fbam.experiments.statistics import Interval, proportion

SIGNIFICANT = 0.05
GOOD = 0.8
"""Accuracy at git's default context from which the approximation counts as good; fixed in protocol.md."""
SIZES = ("small", "middle", "large")
OVERLAPS = ("none", "little", "much")


class DiffRow(Row):
    """A solver on the cases of one history with N diffs. `cases` were answered, `faults` were not and count nowhere.

    `accuracy` is by the syntax tree, with Wilson's 95 % interval as if cases were independent; they come from `files` files.
    """

    history: str
    solver: str
    context: int
    n_diffs: int
    cases: int
    files: int
    correct: int
    accuracy: float
    low: float
    high: float
    same_bytes: float
    line_distance: float  # mean lines to change until the answer is the target
    faults: dict[str, int]


class StratumRow(Row):
    """A solver on the cases of one stratum, all N above 1 together."""

    solver: str
    context: int
    stratum: str
    cases: int
    accuracy: float
    low: float
    high: float


class AgentRow(Row):
    """What an observer of an agent's diffs believes at the end: exactly the file in `correct` of `streams`."""

    observer: str
    context: int
    n_diffs: int
    p: float
    print_every: int
    streams: int
    correct: int
    accuracy: float
    low: float
    high: float
    line_distance: float


def share(row: DiffRow | StratumRow | AgentRow | None) -> str:
    """A row's accuracy with its interval, for a table; empty where there is no row."""
    return f"{row.accuracy:.2f} [{row.low:.2f}, {row.high:.2f}]" if row else ""


def equivalent(outcome: dict[str, Any]) -> bool:
    """The verdict that counts: of the syntax tree, of the bytes where there is none."""
    verdicts = outcome["verdicts"]
    return verdicts["bytes"] if verdicts["tree"] is None else verdicts["tree"]


def _groups(outcomes: Iterable[dict], key: Callable[[dict], tuple]) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return groups


def _accuracy(answered: Sequence[dict]) -> Interval:
    return proportion(sum(map(equivalent, answered)), len(answered))


def diff_rows(outcomes: Iterable[dict]) -> list[DiffRow]:
    """One row a history, solver, context and N that has an answer."""
    rows = []
    groups = _groups(outcomes, lambda o: (o["history"], o["solver"], o["context"], o["n_diffs"]))
    for (history, solver, context, n_diffs), group in groups.items():
        answered = [outcome for outcome in group if outcome["verdicts"]]
        if not answered:
            continue
        found = _accuracy(answered)
        rows.append(DiffRow(
            history=history, solver=solver, context=context, n_diffs=n_diffs, cases=len(answered),
            files=len({outcome["path"] for outcome in answered}), correct=sum(map(equivalent, answered)),
            accuracy=found.value, low=found.low, high=found.high,
            same_bytes=fmean(outcome["verdicts"]["bytes"] for outcome in answered),
            line_distance=fmean(outcome["verdicts"]["distance"] for outcome in answered),
            faults=dict(sorted(Counter(outcome["status"] for outcome in group if not outcome["verdicts"]).items())),
        ))
    return rows


def stratum_rows(outcomes: Iterable[dict]) -> list[StratumRow]:
    """By size of the file, and by how much of what later diffs delete earlier ones wrote; all histories and N above 1 together."""
    rows = []
    counted = [outcome for outcome in outcomes if outcome["verdicts"] and outcome["n_diffs"] > 1]
    for name, labels in (("size", SIZES), ("overlap", OVERLAPS)):
        for (solver, context, label), group in _groups(counted, lambda o: (o["solver"], o["context"], o[name])).items():
            found = _accuracy(group)
            rows.append(StratumRow(solver=solver, context=context, stratum=f"{name}: {labels[label]}", cases=len(group),
                                   accuracy=found.value, low=found.low, high=found.high))
    order = [f"{name}: {label}" for name, labels in (("size", SIZES), ("overlap", OVERLAPS)) for label in labels]
    return sorted(rows, key=lambda row: (row.solver, -row.context, order.index(row.stratum)))


def agent_rows(found: Iterable[dict[str, Any]], n_diffs: int) -> list[AgentRow]:
    """Rows from the result of the agent study's cell, in which a stream has `n_diffs` diffs."""
    rows = []
    for entry in found:
        correct = entry["correct"]
        known = proportion(sum(correct), len(correct))
        rows.append(AgentRow(
            observer=entry["observer"], context=entry["context"], n_diffs=n_diffs, p=float(entry["p"]),
            print_every=entry["print_every"], streams=len(correct), correct=sum(correct), accuracy=known.value,
            low=known.low, high=known.high, line_distance=fmean(entry["distance"]),
        ))
    return rows


# ---------------------------------------------------------------- tests, as fixed in protocol.md


def pooled(outcomes: Iterable[dict], solver: str, context: int) -> Interval:
    """Accuracy of a solver in a context over all answered cases with more than one diff."""
    return _accuracy([o for o in outcomes if o["verdicts"] and (o["solver"], o["context"]) == (solver, context) and o["n_diffs"] > 1])


def falls(rows: Sequence[DiffRow], solver: str, context: int) -> bool:
    """Whether in every history the interval at the largest N lies below that at the smallest, and no next point rises above the last."""
    curves = _groups(({"row": row, "history": row.history} for row in rows if (row.solver, row.context) == (solver, context)),
                     lambda entry: (entry["history"],))
    verdicts = []
    for entries in curves.values():
        curve = sorted((entry["row"] for entry in entries), key=lambda row: row.n_diffs)
        rises = any(later.low > earlier.high for earlier, later in zip(curve, curve[1:]))
        verdicts.append(curve[-1].high < curve[0].low and not rises)
    return bool(verdicts) and all(verdicts)


def better_with(outcomes: Sequence[dict], solver: str, more: int, less: int) -> tuple[int, int, float]:
    """Cases above one diff that the solver gets right with `more` context lines and not with `less`, the reverse, and the p of an
    exact sign test that the first is no likelier than the second (McNemar's test, one-sided)."""
    right: dict[int, dict[tuple, bool]] = {more: {}, less: {}}
    for o in outcomes:
        if o["verdicts"] and o["solver"] == solver and o["context"] in right and o["n_diffs"] > 1:
            right[o["context"]][o["history"], o["case"]] = equivalent(o)
    both = right[more].keys() & right[less].keys()
    gained = sum(right[more][case] and not right[less][case] for case in both)
    lost = sum(right[less][case] and not right[more][case] for case in both)
    p = stats.binomtest(gained, gained + lost, alternative="greater").pvalue if gained + lost else 1.0
    return gained, lost, float(p)


def context_order(outcomes: Sequence[dict], solver: str, contexts: Sequence[int]) -> bool:
    """Whether each context beats the next smaller one at the 5 % level."""
    falling = sorted(contexts, reverse=True)
    return all(better_with(outcomes, solver, more, less)[2] < SIGNIFICANT for more, less in zip(falling, falling[1:]))


def falls_faster(rows: Sequence[DiffRow], solver: str, context: int, history: str) -> dict[str, bool]:
    """For each other history, whether `history` lies below it at the largest N of both, intervals apart."""
    curves = {(row.history, row.n_diffs): row for row in rows if (row.solver, row.context) == (solver, context)}
    verdicts = {}
    for other in dict.fromkeys(name for name, _ in curves if name != history):
        shared = [n for name, n in curves if name == history and (other, n) in curves]
        if shared:
            verdicts[other] = curves[history, max(shared)].high < curves[other, max(shared)].low
    return verdicts
