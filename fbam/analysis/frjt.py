"""What the ledger asks of the jumps study (paper, sections 4, 8.1.1 and 9), read from its rows; the tests stand in protocol.md.

Studies are told apart by name: `headline` (shortcuts closed, curriculum), `paper` (the paper's own task on a fixed set), `layers`
(the headline with other numbers of layers), `scratchpad` (states written out).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from fbam.experiments.statistics import Interval, proportion

Row = Mapping[str, object]
HEADLINE, PAPER, LAYERS, SCRATCHPAD = "headline", "paper", "layers", "scratchpad"
SERIAL = "lstm"
GUESS = 0.5  # accuracy of a coin
LEAST_DEPTH = 4  # below it most programs repeat
RISE = 0.02  # nats by which validation loss must end above its lowest point to count as turned up
SOLVED = 0.95  # accuracy from which a model is said to solve programs of a depth
SEEDED = ("lstm_above_others", "mamba_worse_with_depth")  # verdicts that each seed of the headline gives by itself
COMPARED_DEPTH, DEEP = 16, 32  # depths of the paper's comparison and of the target
TARGET = 0.99  # accuracy at DEEP that this study set itself for the LSTM; decides nothing


class FrjtError(ValueError):
    """Rows that a verdict needs are not there."""


def select(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows whose fields have these values. Raises FrjtError when there are none."""
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if not found:
        raise FrjtError("no rows with " + ", ".join(f"{name} {value}" for name, value in wanted.items()) + "; see the studies in params.yaml")
    return found


def mean_of(rows: Iterable[Row], field: str, **wanted: object) -> float:
    """Mean of a field over the rows wanted."""
    return fmean(float(row[field]) for row in select(rows, **wanted))


def nearest_depth(rows: Sequence[Row], depth: int) -> int:
    """The deepest tested depth up to `depth`, so that a small profile still compares something."""
    return max([int(row["depth"]) for row in rows if int(row["depth"]) <= depth], default=min(int(row["depth"]) for row in rows))


def trained_depths(rows: Iterable[Row]) -> list[Row]:
    """Rows of programs no deeper than those of the training: what the paper's accuracy is a mean over."""
    return [row for row in rows if row["depth"] <= row["max_depth"]]


def over_depths(rows: Sequence[Row]) -> list[Row]:
    """One row a model and number of layers, its validation accuracy a mean over runs and depths."""
    first = {(row["model"], row["layers"]): row for row in reversed(rows)}
    return [{**row, "validation_accuracy": mean_of(rows, "validation_accuracy", model=model, layers=layers)}
            for (model, layers), row in reversed(first.items())]


def pooled(rows: Iterable[Row]) -> Interval:
    """Test accuracy over all programs of these rows, with Wilson's interval."""
    rows = list(rows)
    total = sum(int(row["n"]) for row in rows)
    return proportion(round(sum(float(row["test_accuracy"]) * int(row["n"]) for row in rows)), total)


def above_all_others(rows: Sequence[Row], model: str, depth: int) -> bool:
    """Whether every run of one model is better than every run of every other one at a depth."""
    at = select(rows, depth=depth)
    return min(row["test_accuracy"] for row in at if row["model"] == model) > max(row["test_accuracy"] for row in at if row["model"] != model)


def better_with_layers(rows: Sequence[Row], model: str) -> bool:
    """Whether the deepest stack of a model beats its shallowest one, intervals apart, over the depths that both were tested at.

    Below a depth of LEAST_DEPTH most programs repeat, so nothing is read there; the larger stack must also be above guessing.
    """
    mine = select(rows, model=model)
    fewest, most = (pick(int(row["layers"]) for row in mine) for pick in (min, max))
    if fewest == most:
        raise FrjtError(f"{model} was trained with {fewest} layers only; give another number in a study")
    depths = {row["depth"] for row in select(mine, layers=fewest)} & {row["depth"] for row in select(mine, layers=most)}
    depths = {depth for depth in depths if int(depth) >= LEAST_DEPTH}
    few, many = (pooled(row for row in mine if row["layers"] == layers and row["depth"] in depths) for layers in (fewest, most))
    return many.low > max(few.high, GUESS)


def worse_with_depth(rows: Sequence[Row], model: str) -> bool:
    """Whether a model does better at the shallowest tested depth than at the deepest, intervals apart."""
    mine = select(rows, model=model)
    shallow, deep = (pick(int(row["depth"]) for row in mine) for pick in (min, max))
    return pooled(select(mine, depth=shallow)).low > pooled(select(mine, depth=deep)).high


def matched(curves: Iterable[Row], cost: Mapping[tuple, float] | None = None) -> tuple[float, dict[str, Row]]:
    """Every model at one budget: the largest that all runs have used up, in steps, or in steps times `cost` of (model, seed).

    :returns: the budget; and for each model the means over its runs of `validation_accuracy` and `deepest` at the last point of the
        curve within the budget
    """
    runs: dict[tuple, list[tuple[float, Row]]] = {}
    for row in curves:
        key = row["model"], row["seed"]
        runs.setdefault(key, []).append((float(row["step"]) * (cost[key] if cost else 1.0), row))
    budget = min(max(used for used, _ in points) for points in runs.values())
    found: dict[str, list[Row]] = {}
    for (model, _), points in runs.items():
        within = [row for used, row in points if used <= budget] or [points[0][1]]
        found.setdefault(str(model), []).append(within[-1])
    return budget, {model: {name: fmean(float(row[name]) for row in rows) for name in ("validation_accuracy", "deepest")}
                    for model, rows in found.items()}


def rise(curves: Iterable[Row], model: str) -> float:
    """Validation loss at the last step above its lowest point, in nats, mean over the runs of a model."""
    runs: dict[object, list[float]] = {}
    for row in select(curves, study=PAPER, model=model):
        runs.setdefault((row["layers"], row["seed"]), []).append(float(row["validation_loss"]))
    return fmean(losses[-1] - min(losses) for losses in runs.values())


def by_seed(scores: Iterable[Row]) -> list[dict[str, float | bool]]:
    """What each seed of the headline alone would give: the tests that read it, and the LSTM beside the target."""
    headline = select(scores, study=HEADLINE)
    middle, deep = (nearest_depth(headline, depth) for depth in (COMPARED_DEPTH, DEEP))
    found = []
    for seed in sorted({int(row["seed"]) for row in select(headline, model=SERIAL)}):
        rows = select(headline, seed=seed)
        lstm = min(select(rows, model=SERIAL, depth=deep), key=lambda row: row["layers"])
        found.append({
            "seed": seed, "lstm_reached": lstm["deepest"], "lstm_deep": lstm["test_accuracy"],
            "at_target": lstm["test_accuracy"] >= TARGET, "lstm_above_others": above_all_others(rows, SERIAL, middle),
            "mamba_worse_with_depth": worse_with_depth(rows, "mamba"),
        })
    return found


def solver_agrees(tasks: Iterable[Row]) -> bool:
    """Whether the prefix scan gave the interpreter's answer on every program, in ceil(log2 depth) rounds, wherever it applies."""
    solved = [row for row in tasks if row["solver_states"]]
    if not solved:
        raise FrjtError("no variant with a fixed number of registers was solved")
    return all(row["solver_agreement"] == 1 and row["solver_rounds"] == math.ceil(math.log2(row["depth"])) for row in solved)


def verdicts(scores: Sequence[Row], curves: Sequence[Row], tasks: Sequence[Row], baselines: Sequence[Row]) -> dict[str, float | bool]:
    """The summary values that the ledger reads."""
    headline, paper = select(scores, study=HEADLINE), trained_depths(select(scores, study=PAPER))
    others = sorted({str(row["model"]) for row in paper} - {SERIAL})
    middle, deep, longest = (nearest_depth(headline, depth) for depth in (COMPARED_DEPTH, DEEP, 10**9))
    widened = [row for row in scores if row["study"] in (HEADLINE, LAYERS)]
    rises = {model: rise(curves, model) for model in [SERIAL, *others]}
    written = select(scores, study=SCRATCHPAD)
    last = nearest_depth(paper, COMPARED_DEPTH)
    found: dict[str, float | bool] = {
        f"{model}_middle": mean_of(headline, "test_accuracy", model=model, depth=middle) for model in sorted({row["model"] for row in headline})
    } | {
        "lstm_deep": mean_of(headline, "test_accuracy", model=SERIAL, depth=deep),
        "lstm_longest": mean_of(headline, "test_accuracy", model=SERIAL, depth=longest),
        "middle_depth": middle, "deep_depth": deep, "longest_depth": longest,
        "lstm_above_others": above_all_others(headline, SERIAL, middle),
        "mamba_better_with_layers": better_with_layers(widened, "mamba"),
        "mamba_worse_with_depth": worse_with_depth(headline, "mamba"),
        "overfit_all_but_lstm": rises[SERIAL] < RISE <= min(rises[model] for model in others),
        "scratchpad_deep": mean_of(written, "test_accuracy", depth=nearest_depth(written, DEEP)),
        "solver_agrees": solver_agrees(tasks),
        "linear_rounds_needed": not solver_agrees(tasks),
        "floor": mean_of(baselines, "accuracy", task=paper[0]["task"], predictor="flow only", depth=last),
    }
    step, at_step = matched(select(curves, study=HEADLINE))
    found |= {"matched_step": step} | {f"matched_step_{model}": values["validation_accuracy"] for model, values in at_step.items()}
    for model in [SERIAL, *others]:
        found |= {f"paper_{model}_train": mean_of(paper, "train_accuracy", model=model), f"rise_{model}": rises[model],
                  f"paper_{model}_validation": mean_of(paper, "validation_accuracy", model=model),
                  f"paper_{model}_last": mean_of(paper, "validation_accuracy", model=model, depth=last)}
    seeds = by_seed(scores)
    found |= {"seeds": len(seeds)} | {f"seeds_{name}": sum(row[name] for row in seeds)
                                      for name in ("at_target", *SEEDED)}
    unwritten = max(found[f"{model}_middle"] for model in others)
    return found | {"scratchpad_solves": found["scratchpad_deep"] >= SOLVED > unwritten}
