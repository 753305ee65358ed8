"""The grid of the scaling study: which runs there are, and the rows that come out (paper, section 10.5, appendices E to I).

A sweep is one family of runs on one task: lengths, seeds, and what differs from the settings that all runs share. The paper's own sweep
holds the batch fixed in sequences, so a longer L also brings more labels an update; the others are its controls. Equal runs of two
families are trained once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from fbam.experiments.grid import Outcome, cell_folders
from fbam.experiments.rows import LossRow, PositionRow
from fbam.experiments.scaling_rows import ProfileRow, StepRow, SweepTimingRow
from fbam.experiments.statistics import Interval, mean
from fbam.training.loop import fingerprint
from fbam.training.study import training_references
from fbam.training.sweep import FLATTENED, sweep_cell

OPTIMISERS = 200
"""Cost of a step that does not depend on the batch, in frames of the convolution head at width 32."""
FLATTENED_FRAME = 5
"""Cost of a frame whose cells are read one by one, in the same unit."""


@dataclass(frozen=True)
class Run:
    """One trained model as part of one family; `config` is what `sweep_cell` takes."""

    task: str
    control: str
    config: dict[str, Any]

    @property
    def key(self) -> dict[str, Any]:
        """What every row of this run has in common."""
        config = self.config
        return {"task": self.task, "control": self.control, "head": config["frame_head"], "main": config["main"],
                "L": config["length"], "batch": config["batch"], "seed": config["seed"]}

    @property
    def labels(self) -> int:
        """Labels an update."""
        return self.config["batch"] * (self.config["length"] if self.config["labels"] == "all" else 1)


def data_of(recordings: Sequence[Path], tokenizer: Path) -> dict[str, Any]:
    """The part of a configuration that names the data of a task."""
    return {"recordings": [str(path) for path in recordings], "tokenizer": str(tokenizer), "data": fingerprint(recordings, tokenizer)}


def families(sweep: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The families that a sweep stands for: itself, or one for each of its `values`, by whose name they differ."""
    changes = dict(sweep)
    setting, values = changes.pop("each", None), changes.pop("values", None)
    return [changes] if setting is None else [{**changes, "control": f"{sweep['control']} {value}", setting: value} for value in values]


def plan(sweeps: Sequence[Mapping[str, Any]], data: Mapping[str, Mapping], steps: Mapping[str, int], settings: Mapping[str, Any]) -> list[Run]:
    """All runs, sweep by sweep.

    sweeps: each with task, control, lengths, seeds; `an_update` (labels an update, from which the batch follows), `steps` and any of the
    settings are what differs; `each` and `values` stand for a family a value. data and steps: task -> its data and the updates of each run. settings: what `SweepConfig` needs else.
    """
    runs = []
    for changes in (family for sweep in sweeps for family in families(sweep)):
        task, control, lengths, seeds = (changes.pop(name) for name in ("task", "control", "lengths", "seeds"))
        an_update, updates = changes.pop("an_update", None), changes.pop("steps", steps[task])
        for seed in seeds:
            for length in lengths:
                batch = {"batch": an_update // length} if an_update else {}
                config = {**settings, **changes, **batch, **data[task], "steps": updates, "length": length, "seed": seed}
                runs.append(Run(task, control, config))
    return runs


def cost(config: dict) -> int:
    """What a run costs, in frames."""
    a_frame = FLATTENED_FRAME if config["main"] == FLATTENED else 1
    return config["steps"] * (OPTIMISERS + a_frame * config["length"] * config["batch"])


def firsts(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> dict[str, tuple[Run, Outcome]]:
    """Task -> its first run with its outcome."""
    return {run.task: (run, outcome) for run, outcome in reversed(list(zip(runs, outcomes, strict=True)))}


def references(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Task -> cross entropy of counting on its training part, in nats."""
    configs = {run.task: run.config for run in reversed(runs)}
    return {task: training_references({name: value for name, value in configs[task].items() if name != "labels"})
            for task in dict.fromkeys(run.task for run in runs)}


def loss_rows(runs: Sequence[Run], outcomes: Sequence[Outcome], every: int) -> Iterator[LossRow]:
    """One row a run and `every` steps, the mean loss of these steps; steps count from 1."""
    for run, outcome in zip(runs, outcomes, strict=True):
        losses = outcome.result["losses"]
        for step in range(every, len(losses) + 1, every):
            yield LossRow(**run.key, step=step, n=every * run.labels, loss=fmean(losses[step - every : step]))


def timing_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[SweepTimingRow]:
    """One row a run: what a step cost on this machine."""
    for run, outcome in zip(runs, outcomes, strict=True):
        measured = outcome.measured
        yield SweepTimingRow(**run.key, parameters=outcome.result["parameters"], cpu_seconds=measured["cpu_seconds"],
                             cpu_seconds_a_step=measured["cpu_seconds_a_step"], frames_per_cpu_second=measured["frames_a_cpu_second"])


def firsts_of(runs: Sequence[Run], control: str) -> list[Run]:
    """The runs of one family with the first seed of their task."""
    first = {run.task: run.config["seed"] for run in reversed(runs) if run.control == control}
    return [run for run in runs if run.control == control and run.config["seed"] == first[run.task]]


def step_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[StepRow]:
    """One row a run: the FLOPs of a step that `step_flops.step_cell` counted."""
    for run, outcome in zip(runs, outcomes, strict=True):
        yield StepRow(**run.key, flops=outcome.result["flops"])


def position_configs(runs: Sequence[Run], parts: Sequence[str], windows: int, length: int, root: Path) -> list[dict]:
    """One configuration of `position_cell` a run and part; `root` is the folder of the grid that trains."""
    folders = cell_folders(sweep_cell, [run.config for run in runs], root)
    return [{"model": str(folder), "part": part, "windows": windows, "length": length} for folder in folders for part in parts]


def _evaluated(runs: Sequence[Run], evaluations: Sequence[Outcome]) -> Iterator[tuple[Run, Outcome]]:
    """Each evaluation with its run; evaluations come run by run."""
    parts = len(evaluations) // len(runs)
    return ((runs[i // parts], evaluation) for i, evaluation in enumerate(evaluations))


def position_rows(runs: Sequence[Run], evaluations: Sequence[Outcome]) -> Iterator[PositionRow]:
    """One row a run, part and position."""
    for run, evaluation in _evaluated(runs, evaluations):
        key, found, config = run.key, evaluation.result, evaluation.config
        key["control"] += ", " + config["part"]
        for i, (loss, top1) in enumerate(zip(found["loss_by_position"], found["top1_by_position"], strict=True)):
            yield PositionRow(**key, length=config["length"], position=i + 1, n=found["windows"], loss=loss, top1=top1)


def profile_rows(
    runs: Sequence[Run], evaluations: Sequence[Outcome], training: Callable[[str, str, int, int], float]
) -> Iterator[ProfileRow]:
    """One row a run and part: loss over all positions and over those at the ends, beside the training loss.

    training: of task, control, L and seed, the last training loss of that run.
    """
    for run, evaluation in _evaluated(runs, evaluations):
        found = evaluation.result
        intervals = {name: mean(found[name]) for name in ("all", "first", "last")}
        yield ProfileRow(**run.key, part=evaluation.config["part"], length=evaluation.config["length"], n=found["windows"],
                         training=training(run.task, run.control, run.config["length"], run.config["seed"]), **_bounds(intervals))


def _bounds(intervals: Mapping[str, Interval]) -> dict[str, float]:
    names = {"all": "loss", "first": "first", "last": "last"}
    return {names[name] + suffix: value for name, found in intervals.items()
            for suffix, value in (("", found.value), ("_low", found.low), ("_high", found.high))}
