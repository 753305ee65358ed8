"""Tables of the maze study as HTML, from its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from tabulate import tabulate

from fbam.analysis.maze_figures import name_of
from fbam.experiments.maze_rows import MazePredictorRow, MazeRow, MazeTimingRow
from fbam.experiments.statistics import Interval


def model_table(rows: Iterable[MazeRow]) -> str:
    """One line a trained model; the bounds are Wilson's at 95 % with one trial a walk."""
    lines = [[name_of(r.model), r.layers, r.parameters, r.tokens, r.head, r.seed, r.steps, r.train_accuracy, r.validation_accuracy,
              f"{r.test_accuracy:.3f} [{r.low:.3f}, {r.high:.3f}]", r.last_accuracy] for r in rows]
    names = ["model", "layers", "parameters", "tokens", "head", "seed", "updates", "train", "validation", "test, all moves", "last move"]
    return tabulate(lines, names, tablefmt="html", floatfmt=".3f")


def predictor_table(rows: Iterable[MazePredictorRow]) -> str:
    """One line a predictor and kind of walk."""
    lines = [[r.predictor, r.moves, f"{r.depth:g}", r.accuracy, r.last_accuracy, r.n] for r in rows]
    return tabulate(lines, ["predictor", "moves", "withheld", "all moves", "last move", "walks"], tablefmt="html", floatfmt=".3f")


def rate_table(tried: Iterable[tuple[str, float, int, float]], chosen: Mapping[str, float]) -> str:
    """One line a family and learning rate: (family, rate, updates, validation accuracy); the chosen ones are marked."""
    lines = [[name_of(family), f"{rate:g}", steps, accuracy, "chosen" if chosen[family] == rate else ""]
             for family, rate, steps, accuracy in tried]
    return tabulate(lines, ["family", "rate", "updates", "validation", ""], tablefmt="html", floatfmt=".3f")


def cost_table(timings: Iterable[MazeTimingRow], tasks: Sequence[str]) -> str:
    """One line a part of the study, model and number of updates, the mean over seeds."""
    found = defaultdict(list)
    for row in timings:
        if row.task in tasks:
            found[row.task, row.model, row.layers, row.steps].append(row)
    lines = [[task, name_of(model), layers, steps, fmean(1000 * r.cpu_seconds_a_step for r in part), fmean(r.cpu_seconds for r in part)]
             for (task, model, layers, steps), part in found.items()]
    return tabulate(lines, ["part", "model", "layers", "updates", "ms an update", "processor seconds"], tablefmt="html", floatfmt=".1f")


def quarter_table(found: Mapping[tuple[int, float], tuple[Interval, Interval]]) -> str:
    """One line a Transformer's number of layers and p: accuracy in the first and the last quarter of the moves."""
    lines = [[layers, f"{p:g}", str(first), str(last)] for (layers, p), (first, last) in found.items()]
    return tabulate(lines, ["layers", "p", "first quarter of the moves", "last quarter"], tablefmt="html", disable_numparse=True)


def start_table(rows: Iterable[MazeRow]) -> str:
    """One line a run and length of the test walks, by the part of the study."""
    lines = [[row.task, row.moves, f"{row.test_accuracy:.3f} [{row.low:.3f}, {row.high:.3f}]"] for row in rows]
    return tabulate(lines, ["part", "moves of the test walks", "test, all moves"], tablefmt="html")


def seed_table(rows: Sequence[Mapping[str, float | bool]]) -> str:
    """One line a seed, and in the last line for how many seeds each test holds; rows as of `walk_verdicts.by_seed`."""
    names, flags = list(rows[0]), [name for name, value in rows[0].items() if isinstance(value, bool)]
    lines = [[str(row[name]) if name in flags else row[name] for name in names] for row in rows]
    total = ["holds for", *[f"{sum(row[name] for row in rows)} of {len(rows)}" if name in flags else "" for name in names[1:]]]
    return tabulate([*lines, total], names, tablefmt="html", floatfmt=".3f")
