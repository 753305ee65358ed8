"""The jumps study as a grid: which models are trained on which variant, and the rows that come out (paper, section 8.1.1).

A study is a variant of the task, a curriculum and a list of models. The learning rate of a family is chosen once, by validation accuracy
after short runs of the first study with the first seed, from the same grid for every family; all its other runs take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from fbam.experiments.frjt_rows import FrjtBaselineRow, FrjtCurveRow, FrjtRow, FrjtSpeedRow, FrjtTaskRow, FrjtTimingRow
from fbam.experiments.grid import Outcome
from fbam.experiments.statistics import proportion
from fbam.tasks.frjt import SPLITS

SETTINGS = ("registers", "width", "learning", "adaptive", "testing", "data")
"""Keys of the section in params.yaml that are read here, beside the studies."""
DEFAULTS = {"exits": "paired", "registers_per_block": 0.0, "curriculum": "adaptive", "programs": 0, "initial_noise": 0.0, "scratchpad": False}
"""What a study in params.yaml may leave out."""
BEYOND = 4  # programs are tested up to this many times the depth trained on


@dataclass(frozen=True)
class Run:
    """One training of one study."""

    study: str
    task: str
    config: dict[str, Any]


def task_name(exits: str, registers_per_block: float) -> str:
    """A variant of the task as it is named in rows and figures."""
    return f"{exits} exits" + (", registers grow" if registers_per_block else "")


def _shared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that all runs have in common."""
    learning, adaptive, testing = settings["learning"], settings["adaptive"], settings["testing"]
    return {
        "registers": settings["registers"], "width": settings["width"], "fused": True, "labels": "relative", "schedule": "cosine",
        **{name: learning[name] for name in ("weight_decay", "grad_clip", "warm_up")}, **adaptive,
        "curve_every": testing["curve_every"], "test_programs": testing["programs"],
    }


def plan(studies: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], rates: Mapping[str, float]) -> list[Run]:
    """Every run of every study.

    :param studies: as in params.yaml
    :param settings: the keys `SETTINGS` of the section
    :param rates: the learning rate of each family
    """
    runs, testing = [], settings["testing"]
    for study in ({**DEFAULTS, **study} for study in studies):
        deepest = study["max_depth"]
        own = {name: study[name] for name in ("exits", "curriculum", "max_depth", "programs", "scratchpad")} | {
            "registers_per_block": float(study["registers_per_block"]), "initial_noise": float(study["initial_noise"]),
            "curve_depths": [depth for depth in testing["depths"] if depth <= deepest and depth.bit_count() == 1],
            "test_depths": [depth for depth in testing["depths"] if depth <= BEYOND * deepest],
        }
        task = task_name(study["exits"], study["registers_per_block"])
        for model in study["models"]:
            for seed in study["seeds"]:
                config = _shared(settings) | own | model | {"seed": seed, "lr": rates[model["family"]]}
                runs.append(Run(study["name"], task, config))
    return runs


def families(studies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every family that occurs, in order."""
    return list(dict.fromkeys(model["family"] for study in studies for model in study["models"]))


def rate_runs(studies: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[Run]:
    """Short runs on the first study's task, one a family and learning rate, all with its first seed.

    A family takes the first model it has in the studies, for the same number of updates of the same size, and is tested at depths so
    small that every family learns something about them in a short run; at larger ones the choice would fall to chance.
    """
    learning, models = settings["learning"], [model for study in studies for model in study["models"]]
    first = {family: next(model for model in models if model["family"] == family) for family in families(studies)}
    limits = {"steps": learning["trial_steps"], "tokens": learning["trial_tokens"]}
    short = [{**model, **{name: min(limit, model[name]) for name, limit in limits.items()}} for model in first.values()]
    study = {**studies[0], "name": "rate", "models": short, "seeds": studies[0]["seeds"][:1]}
    runs = [run for rate in learning["rates"] for run in plan([study], settings, dict.fromkeys(first, float(rate)))]
    return [replace(run, config=run.config | {"test_depths": list(learning["trial_depths"])}) for run in runs]


def chosen_rates(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The rate with the best mean validation accuracy of each family; the smaller one of two equal ones."""
    found: dict[str, dict[float, float]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        validation = [s["correct"] / s["n"] for s in outcome.result["scores"] if s["split"] == "validation"]
        found.setdefault(run.config["family"], {})[run.config["lr"]] = fmean(validation)
    return {family: max(sorted(scores), key=scores.__getitem__) for family, scores in found.items()}


def cost(config: Mapping[str, Any]) -> float:
    """What a run costs, in tokens weighed by the family and layers."""
    weight = {"lstm": 1, "gru": 1, "elman": 1, "mamba": 4}.get(config["family"], 2)
    return config["steps"] * config["tokens"] * config["layers"] * weight


def _key(run: Run) -> dict[str, Any]:
    config = run.config
    return {"study": run.study, "model": config["family"], "layers": config["layers"], "task": run.task, "max_depth": config["max_depth"],
            "seed": config["seed"], "lr": config["lr"]}


def _curriculum(run: Run) -> str:
    return "states written out" if run.config["scratchpad"] else run.config["curriculum"]


def score_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[FrjtRow]:
    """One row a run and tested depth."""
    for run, outcome in zip(runs, outcomes, strict=True):
        result, config = outcome.result, run.config
        scores = {(s["depth"], s["split"]): s for s in result["scores"]}
        for depth in config["test_depths"]:
            train, validation, test = (scores[depth, split] for split in SPLITS)
            share = proportion(test["correct"], test["n"])
            yield FrjtRow(
                **_key(run), width=config["width"], parameters=result["parameters"], curriculum=_curriculum(run), depth=depth,
                steps=config["steps"], n=test["n"], train_accuracy=train["correct"] / train["n"],
                validation_accuracy=validation["correct"] / validation["n"], test_accuracy=share.value, test_low=share.low,
                test_high=share.high, deepest=result.get("deepest", config["max_depth"]),
            )


def curve_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[FrjtCurveRow]:
    """One row a run and point of its curve, scratchpads left out."""
    for run, outcome in zip(runs, outcomes, strict=True):
        for point in outcome.result.get("curve", []):
            if "validation" in point:
                scores, train = point["validation"], point["train"]
                yield FrjtCurveRow(
                    **_key(run), curriculum=_curriculum(run), step=point["step"], deepest=point["deepest"],
                    n=scores[0]["n"], train_loss=fmean(s["loss"] for s in train), train_accuracy=fmean(s["correct"] / s["n"] for s in train),
                    validation_loss=fmean(s["loss"] for s in scores), validation_accuracy=fmean(s["correct"] / s["n"] for s in scores),
                    by_depth=[[s["depth"], s["correct"] / s["n"], s["loss"]] for s in scores],
                )


def timing_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[FrjtTimingRow]:
    """One row a run."""
    for run, outcome in zip(runs, outcomes, strict=True):
        yield FrjtTimingRow(**_key(run), steps=run.config["steps"], **outcome.measured)


def variants(studies: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Configurations of `frjt_cells.describe`, one a variant of the task, at every depth that is tested on it."""
    depths: dict[tuple[str, float], set[int]] = {}
    for run in plan(studies, settings, dict.fromkeys(families(studies), 1.0)):
        depths.setdefault((run.config["exits"], run.config["registers_per_block"]), set()).update(run.config["test_depths"])
    return [{"exits": exits, "registers": settings["registers"], "registers_per_block": grow, "depths": sorted(found),
             "programs": settings["data"]["programs"], "data_depth": settings["data"]["depth"], "seed": 0} for (exits, grow), found in depths.items()]


def task_rows(configs: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]) -> Iterator[FrjtTaskRow | FrjtBaselineRow]:
    """One row a variant and depth, and one a predictor."""
    for config, outcome in zip(configs, outcomes, strict=True):
        task = task_name(config["exits"], config["registers_per_block"])
        for found in outcome.result["depths"]:
            shares = {name: found[name] for name in ("depth", "n", "coverage", "halting_B", "early_exits", "equal_targets", "duplicates")}
            yield FrjtTaskRow(task=task, **shares, solver_states=found.get("states", 0), solver_rounds=found.get("rounds", 0),
                              solver_agreement=found.get("agreement", 0.0))
            for predictor, accuracy in found["baselines"].items():
                yield FrjtBaselineRow(task=task, depth=found["depth"], n=found["n"], predictor=predictor, accuracy=accuracy)


def speed_rows(configs: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]) -> Iterator[FrjtSpeedRow]:
    """How fast programs of each variant are made."""
    for config, outcome in zip(configs, outcomes, strict=True):
        yield FrjtSpeedRow(task=task_name(config["exits"], config["registers_per_block"]), **outcome.measured)
