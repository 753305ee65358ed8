"""Tables of the jumps study as HTML; they take rows and compute means only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from fbam.analysis.frjt import Row, mean_of, select
from fbam.analysis.frjt_figures import name_of

SPLITS = ("train", "validation", "test")
TASK_COLUMNS = ("depth", "coverage", "halting_B", "early_exits", "equal_targets", "duplicates", "solver_states", "solver_rounds", "solver_agreement")
RUN_COLUMNS = ("seed", "layers", "parameters", "steps", "lr", "deepest")
OTHER_KEYS = ("layers", "max_depth", "deepest")


def html(lines: Iterable[Sequence[object]], heads: Sequence[object], digits: str = ".3f") -> str:
    return tabulate(lines, heads, tablefmt="html", floatfmt=digits)


def _depths(rows: Iterable[Row]) -> list[int]:
    return sorted({int(row["depth"]) for row in rows})


def tasks(rows: Iterable[Row]) -> str:
    """Statistics and solver, one line a variant and depth."""
    return html([[row["task"], *[row[name] for name in TASK_COLUMNS]] for row in rows], ["task", *TASK_COLUMNS])


def groups(found: Mapping[int, Any]) -> str:
    """What the transition monoid contains, one line a farthest jump; values with the fields of `fbam.tasks.monoid.Groups`."""
    lines = [[reach, group.states, group.maps, group.sets, group.order, "yes" if group.solvable else "no"] for reach, group in found.items()]
    return html(lines, ["jumps up to", "states", "maps a block can be", "classes of five states", "largest group", "solvable"])


def predictors(rows: Sequence[Row], depths: Sequence[int]) -> str:
    """Accuracy of each predictor, one column a variant and depth."""
    accuracy = {(row["predictor"], row["task"], row["depth"]): row["accuracy"] for row in rows}
    columns = [key for key in dict.fromkeys((row["task"], row["depth"]) for row in rows) if key[1] in depths]
    names = dict.fromkeys(row["predictor"] for row in rows)
    return html([[name, *[accuracy[name, *key] for key in columns]] for name in names], ["predictor", *[f"{task}, {d}" for task, d in columns]])


def rates(rows: Sequence[Row], chosen: Mapping[str, float]) -> str:
    """Mean validation accuracy of each trial over its depths, and the rate taken."""
    tried = sorted({float(row["lr"]) for row in rows})
    lines = [[name_of(model), *[mean_of(rows, "validation_accuracy", model=model, lr=rate) for rate in tried], rate] for model, rate in chosen.items()]
    return html(lines, ["model", *tried, "taken"])


def runs(rows: Sequence[Row]) -> str:
    """Test accuracy of each run by depth, with what it was and how deep its curriculum went."""
    depths = _depths(rows)
    lines = []
    for model, seed in dict.fromkeys((row["model"], row["seed"]) for row in rows):
        run = select(rows, model=model, seed=seed)
        accuracies = [mean_of(run, "test_accuracy", depth=depth) for depth in depths]
        lines.append([name_of(model), *[run[0][name] for name in RUN_COLUMNS], *accuracies])
    return html(lines, ["model", *RUN_COLUMNS, *depths], ".3g")


def budgets(by_step: tuple[float, Mapping[str, Row]], by_cost: tuple[float, Mapping[str, Row]]) -> str:
    """Validation accuracy and depth trained on of each model at matched steps and at matched cost."""
    heads = ["model", f"accuracy after {by_step[0]:.0f} steps", "deepest", f"accuracy after {by_cost[0]:.0f} s", "deepest"]
    return html([[name_of(model), *by_step[1][model].values(), *by_cost[1][model].values()] for model in by_step[1]], heads, ".3g")


def splits(rows: Sequence[Row]) -> str:
    """Mean accuracy of each model on training, validation and test programs by depth."""
    depths, lines = _depths(rows), []
    for model, layers in dict.fromkeys((row["model"], row["layers"]) for row in rows):
        mine = select(rows, model=model, layers=layers)
        lines += [[name_of(model), layers, split, *[mean_of(mine, f"{split}_accuracy", depth=d) for d in depths]] for split in SPLITS]
    return html(lines, ["model", "layers", "programs", *depths])


def others(rows: Sequence[Row]) -> str:
    """Mean test accuracy of each model of each study by depth."""
    depths, groups = _depths(rows), {}
    for row in rows:
        groups.setdefault((row["study"], name_of(str(row["model"])), *[row[key] for key in OTHER_KEYS]), []).append(row)
    lines = []
    for key, group in groups.items():
        tested = _depths(group)
        lines.append([*key, *[mean_of(group, "test_accuracy", depth=depth) if depth in tested else "" for depth in depths]])
    return html(lines, ["study", "model", "layers", "trained to", "reached", *depths])


def seeds(rows: Sequence[Row], marks: Sequence[str]) -> str:
    """What each seed alone would give, one line a seed, and in the last line for how many seeds each of the `marks` is true."""
    names = list(rows[0])
    lines = [[str(row[name]) if name in marks else row[name] for name in names] for row in rows]
    total = ["seeds for which it holds", *[f"{sum(row[name] for row in rows)} of {len(rows)}" if name in marks else "" for name in names[1:]]]
    return html([*lines, total], names)


def summary(values: Mapping[str, float | bool]) -> str:
    """The values for the ledger."""
    return html([[name, str(value) if isinstance(value, bool) else value] for name, value in values.items()], ["value", "ours"], ".4f")
