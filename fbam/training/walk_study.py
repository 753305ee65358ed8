"""The study of the maze: which models are trained on what, and the rows that come out (paper, sections 6 and 8.1.3 to 8.1.4).

Parts of the study (`task` in the rows): `unwithheld` (section 8.1.3); `withheld`, exactly so many results a walk, each
model for the steps that cost about the same processor time; `matched steps`, the same with few updates, equally many for all,
and `most steps`, with as many as the model that has the most; `two tokens` and `classification`, controls of the input and
the head at the matched steps; `noisy start`, the LSTM trained from random states; `probabilities`, one model for several p (section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from fbam.experiments.grid import Outcome
from fbam.experiments.maze_rows import MazePredictorRow, MazeRow, MazeSeriesRow, MazeTimingRow
from fbam.experiments.statistics import proportion
from fbam.tasks import maze, maze_solvers
from fbam.training.walks import STREAMS

UNWITHHELD, WITHHELD, MATCHED, MOST, TOKENS, HEAD, NOISE, SWEEP = (
    "unwithheld", "withheld", "matched steps", "most steps", "two tokens", "classification", "noisy start", "probabilities")
TRAINING_WALKS = 4000  # walks of the training part that the majority is counted on
SCANNED = 20  # test walks on which the prefix scan is held against the serial tracker


@dataclass(frozen=True)
class Run:
    """One configuration of `walk_cell` in its part of the study."""

    task: str
    config: dict


def selection(settings: dict, models: Sequence[Mapping], rates: Sequence[float], share: float, seed: int) -> list[dict]:
    """The configurations that choose a learning rate: each family at each rate, a share of its steps, no test set.

    None where there is one rate and so nothing to choose.
    """
    if len(rates) == 1:
        return []
    return [settings | _model(model) | {"lr": rate, "seed": seed, "initial_noise": 0.0, "steps": max(1, round(share * model["steps"])), "test_walks": 0}
            for model in models for rate in rates]


def chosen(models: Sequence[Mapping], rates: Sequence[float], outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Family -> the rate with the highest validation accuracy after the last step; of equal ones the smaller."""
    if len(rates) == 1:
        return {model["family"]: rates[0] for model in models}
    best: dict[str, tuple[float, float]] = {}
    for outcome in outcomes:
        family, found = outcome.config["family"], (outcome.result["curve"][-1]["accuracy"], -outcome.config["lr"])
        best[family] = max(best.get(family, found), found)
    return {family: -rate for family, (_, rate) in best.items()}


def _model(model: Mapping) -> dict:
    return {name: model[name] for name in ("family", "layers", "steps")}


def plan(settings: dict, models: Sequence[Mapping], rates: Mapping[str, float], seeds: Sequence[int], *, controls: Sequence[str],
         unwithheld_factor: float, matched_steps: int, initial_noise: float, probabilities: list[float],
         sweep_layers: Sequence[int]) -> list[Run]:
    """All runs. settings: the keys of a configuration that no part of the study changes, with the headline's tokens, head and withheld."""
    def run(task: str, model: Mapping, **changes) -> Run:
        return Run(task, settings | _model(model) | {"lr": rates[model["family"]], "seed": seeds[0], "initial_noise": 0.0} | changes)

    controlled = [model for model in models if model["family"] in controls]
    most = max(model["steps"] for model in models)
    runs = [run(WITHHELD, model, seed=seed) for seed in seeds for model in models]
    runs += [run(MATCHED, model, seed=seed, steps=matched_steps) for seed in seeds for model in models]
    runs += [run(UNWITHHELD, model, withheld=0, steps=round(unwithheld_factor * model["steps"]))
             for model in models if model["family"] in (*controls, "sum")]
    runs += [run(TOKENS, model, tokens=3 - settings["tokens"], steps=matched_steps) for model in controlled]
    runs += [run(HEAD, model, head="classification", steps=matched_steps) for model in controlled]
    runs += [run(MOST, model, steps=most) for model in controlled]
    runs += [run(NOISE, model, initial_noise=initial_noise) for model in models if model["family"] == "lstm"]
    for model in controlled:
        layers = sweep_layers if model["family"] == "transformer" else [model["layers"]]
        runs += [run(SWEEP, model, withheld=list(probabilities), layers=number) for number in layers]
    return runs


def cost(models: Sequence[Mapping]) -> Callable[[dict], float]:
    """What a configuration costs, with a family's own steps at its own layers and one token as the unit."""
    unit = {model["family"]: model["steps"] * model["layers"] for model in models}
    return lambda config: config["steps"] * config["layers"] * config["tokens"] / unit[config["family"]]


def _share(withheld: int | list[float], moves: int) -> float:
    return fmean(withheld) if isinstance(withheld, list) else withheld / moves


def rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[MazeRow]:
    """One row a run and test."""
    for run, outcome in zip(runs, outcomes, strict=True):
        c, result = outcome.config, outcome.result
        for test in result["tests"]:
            moves, walks = test["moves"], test["walks"]
            accuracy, p = sum(test["by_move"]) / (walks * moves), _share(test["withheld"], moves)
            bounds = proportion(round(accuracy * walks), walks)
            yield MazeRow(
                model=c["family"], layers=c["layers"], width=c["width"], parameters=result["parameters"], task=run.task,
                tokens=c["tokens"], head=c["head"], p=p, depth=p * moves, moves=moves, trained_moves=c["moves"],
                trained_p=_share(c["withheld"], c["moves"]), lr=c["lr"], seed=c["seed"], steps=c["steps"],
                train_accuracy=result["train"]["accuracy"], validation_accuracy=result["curve"][-1]["accuracy"],
                test_accuracy=accuracy, last_accuracy=test["by_move"][-1] / walks, n=walks, low=bounds.low, high=bounds.high)


def series_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[MazeSeriesRow]:
    """The curves of each run: validation accuracy by step, test accuracy by move and by withheld results so far."""
    for run, outcome in zip(runs, outcomes, strict=True):
        c = outcome.config
        same = {"model": c["family"], "task": run.task} | {name: c[name] for name in ("layers", "tokens", "head", "seed", "steps")}
        curve, count = outcome.result["curve"], c["validation_walks"] * c["moves"]
        yield MazeSeriesRow(**same, p=_share(c["withheld"], c["moves"]), against="step", x=[e["step"] for e in curve],
                            y=[e["accuracy"] for e in curve], n=[count] * len(curve))
        for test in outcome.result["tests"]:
            p, moves, walks = _share(test["withheld"], test["moves"]), test["moves"], test["walks"]
            yield MazeSeriesRow(**same, p=p, against="move", x=list(range(1, moves + 1)), y=[k / walks for k in test["by_move"]],
                                n=[walks] * moves)
            found = [(d, k, n) for d, (k, n) in enumerate(zip(test["by_withheld"], test["n_by_withheld"], strict=True)) if n]
            yield MazeSeriesRow(**same, p=p, against="withheld", x=[d for d, _, _ in found], y=[k / n for _, k, n in found],
                                n=[n for _, _, n in found])


def timing_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[MazeTimingRow]:
    """One row a run: what it cost on this machine."""
    for run, outcome in zip(runs, outcomes, strict=True):
        c = outcome.config
        yield MazeTimingRow(model=c["family"], task=run.task, **{name: c[name] for name in ("layers", "tokens", "head", "seed", "steps")},
                            **{name: outcome.measured[name] for name in ("cpu_seconds_a_step", "cpu_seconds")})


def predictor_rows(world: maze.Maze, moves: int, withheld: int, count: int, longer: int) -> Iterator[MazePredictorRow]:
    """Baselines and exact solvers, without withheld results, with them, and on longer walks.

    Raises ArithmeticError when the prefix scan and the serial tracker disagree.
    """
    for length, hidden in [(moves, 0), (moves, withheld)] + [(longer * moves, longer * withheld)] * (longer > 1):
        number = max(1, count * moves // length)
        train = maze.sample(world, np.random.default_rng([STREAMS["seen"]]), TRAINING_WALKS, length, hidden, "train")
        walks = maze.sample(world, np.random.default_rng([STREAMS["test"]]), number, length, hidden, "test")
        serial = np.array([maze_solvers.track(world, intents) for intents in walks.intents])
        scanned = np.array([maze_solvers.scan(world, intents)[0] for intents in walks.intents[:SCANNED]])
        if not (scanned == serial[:SCANNED]).all():
            raise ArithmeticError("the prefix scan and the serial tracker disagree")
        found = maze_solvers.baselines(train, walks, world) | {"serial tracker": serial}
        for name, cells in found.items():
            correct = cells == walks.cells
            bounds = proportion(round(float(correct.mean()) * number), number)
            yield MazePredictorRow(predictor=name, p=hidden / length, depth=float(hidden), moves=length, accuracy=float(correct.mean()),
                                   last_accuracy=float(correct[:, -1].mean()), n=number, low=bounds.low, high=bounds.high)
