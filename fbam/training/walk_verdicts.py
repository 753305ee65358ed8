"""The verdict tests of the maze study, as protocol.md states them, and the summary the ledger reads.

A test returns true or false and leaves no room for judgement after the run. With withheld results the order of LSTM and Transformer
counts only if it is seen twice: at about equal cost, over seeds, and with as many updates for the one as for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fbam.experiments.maze_rows import MazePredictorRow, MazeRow, MazeSeriesRow
from fbam.experiments.statistics import Interval, mean, proportion
from fbam.training.walk_study import MATCHED, MOST, SWEEP, UNWITHHELD, WITHHELD

SPIKE = 0.02  # a fall of validation accuracy from one evaluation to the next that counts as a spike


def over_seeds(found: Sequence[MazeRow], task: str, model: str) -> Interval:
    """Test accuracy at the trained length: mean and Student's 95 % interval over seeds, with one seed Wilson's of its walks."""
    part = [row for row in found if (row.task, row.model, row.moves) == (task, model, row.trained_moves)]
    if len(part) == 1:
        return Interval(part[0].test_accuracy, part[0].low, part[0].high)
    return mean([row.test_accuracy for row in part])


def above(found: Sequence[MazeRow], task: str, first: str, second: str) -> bool:
    """Whether the first model's interval over seeds lies wholly above the second's."""
    return over_seeds(found, task, first).low > over_seeds(found, task, second).high


def spikes(accuracies: Sequence[float]) -> tuple[int, int]:
    """How often accuracy fell by SPIKE or more from one evaluation to the next, and after how many of these falls it later rose higher."""
    falls = [i for i in range(1, len(accuracies)) if accuracies[i - 1] - accuracies[i] >= SPIKE]
    return len(falls), sum(max(accuracies[i:]) > accuracies[i - 1] for i in falls)


def by_seed(found: Sequence[MazeRow], series: Sequence[MazeSeriesRow]) -> list[dict[str, float | bool]]:
    """What each seed alone would give with withheld results at equal cost: the order of LSTM and Transformer, their Wilson intervals
    apart, and whether the LSTM's falls are there and mostly exceeded later."""
    at_end = {(row.seed, row.model): row for row in found if row.task == WITHHELD and row.moves == row.trained_moves}
    curves = {row.seed: row.y for row in series if (row.task, row.model, row.against) == (WITHHELD, "lstm", "step")}
    rows = []
    for seed, curve in sorted(curves.items()):
        lstm, transformer = at_end[seed, "lstm"], at_end[seed, "transformer"]
        falls, recovered = spikes(curve)
        rows.append({"seed": seed, "lstm": lstm.test_accuracy, "transformer": transformer.test_accuracy, "order": lstm.low > transformer.high,
                     "falls": falls, "exceeded later": recovered, "spikes recover": 2 * recovered > falls > 0})
    return rows


def quarter(series: Sequence[MazeSeriesRow], layers: int, p: float, last: bool) -> Interval:
    """The Transformer's accuracy in the first or last quarter of the walks of the sweep at p, Wilson's interval with one trial a walk."""
    key = (SWEEP, "transformer", layers, p, "move")
    (row,) = [r for r in series if (r.task, r.model, r.layers, r.p, r.against) == key]
    part = row.y[-(len(row.y) // 4) :] if last else row.y[: len(row.y) // 4]
    return proportion(round(fmean(part) * row.n[0]), row.n[0])


def falls_with_p(series: Sequence[MazeSeriesRow], layers: Sequence[int], probabilities: Sequence[float]) -> bool:
    """Section 6: at every p > 0 late accuracy lies below early accuracy and below late accuracy at p = 0, intervals apart."""
    return all(
        quarter(series, number, p, last=True).high < min(quarter(series, number, p, last=False).low,
                                                        quarter(series, number, 0.0, last=True).low)
        for number in layers for p in probabilities if p > 0)


def rises_with_layers(series: Sequence[MazeSeriesRow], layers: Sequence[int], probabilities: Sequence[float]) -> bool:
    """Section 6: at every p > 0 late accuracy is higher with the most layers than with the fewest, intervals apart."""
    return all(quarter(series, max(layers), p, last=True).low > quarter(series, min(layers), p, last=True).high
               for p in probabilities if p > 0)


def on_longer_walks(found: Sequence[MazeRow], task: str, model: str) -> float:
    """Mean test accuracy, over seeds, on walks longer than those of training."""
    return fmean(row.test_accuracy for row in found if (row.task, row.model) == (task, model) and row.moves > row.trained_moves)


def summary(found: Sequence[MazeRow], series: Sequence[MazeSeriesRow], predictors: Sequence[MazePredictorRow],
            layers: Sequence[int], probabilities: Sequence[float]) -> dict[str, float | bool | int]:
    """Every scalar of the study; the families are those of the rows."""
    values: dict[str, float | bool | int] = {"seeds": len({row.seed for row in found if row.task == WITHHELD})}
    untrained = [row for row in predictors if row.predictor != "serial tracker" and row.depth and row.moves == found[0].trained_moves]
    values["best_predictor"] = max(row.accuracy for row in untrained)
    for task, name in [(WITHHELD, "withheld"), (MATCHED, "matched"), (MOST, "most_steps"), (UNWITHHELD, "unwithheld")]:
        for model in dict.fromkeys(row.model for row in found if row.task == task):
            accuracy = over_seeds(found, task, model)
            values |= {f"{name}_{model}": accuracy.value, f"{name}_{model}_low": accuracy.low, f"{name}_{model}_high": accuracy.high}
            if any(row.moves > row.trained_moves for row in found):
                values[f"{name}_longer_{model}"] = on_longer_walks(found, task, model)
    return values | _verdicts(found, series, layers, probabilities)


def _verdicts(found: Sequence[MazeRow], series: Sequence[MazeSeriesRow], layers: Sequence[int],
              probabilities: Sequence[float]) -> dict[str, bool | int]:
    curves = [row for row in series if row.against == "step"]
    falls, recovered = zip(*(spikes(row.y) for row in curves if (row.task, row.model) == (WITHHELD, "lstm")), strict=True)
    others = [spikes(row.y)[0] for row in curves if (row.task, row.model) == (MOST, "transformer")]
    with_p, with_layers = falls_with_p(series, layers, probabilities), rises_with_layers(series, layers, probabilities)
    return {
        "order": all(above(found, task, "lstm", "transformer") for task in (WITHHELD, MOST)),
        "spikes": sum(falls), "spikes_recovered": sum(recovered), "spikes_transformer": sum(others),
        "spikes_recover": min(falls) > 0 and 2 * sum(recovered) > sum(falls),
        "falls_with_p": with_p, "rises_with_layers": with_layers, "any_p": with_p and with_layers,
    }
