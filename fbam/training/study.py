"""The grid of section 10.5: which models are trained, and the rows that come out.

Two families of runs over the trained length L: the batch held fixed in sequences, as in the paper, where a longer L also
means more labels an update; and the labels an update B x L held fixed (appendix I), the control that tells the two apart.
A run that belongs to both is trained once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from fbam.experiments.grid import Outcome, cell_folders
from fbam.experiments.rows import EvaluationRow, LossRow, PositionRow, TrainingTimingRow
from fbam.training.loop import CellConfig, fingerprint, train_cell
from fbam.training.windows import WindowError

FIXED_BATCH = "fixed batch"
FIXED_LABELS = "fixed batch x L"


@dataclass(frozen=True)
class Run:
    """One trained model as part of one family."""

    control: str
    length: int
    batch: int
    seed: int


def plan(lengths: Sequence[int], batch: int, labels: int, seeds: Sequence[int]) -> list[Run]:
    """All runs, the paper's family first; `labels` = 0 leaves the control out."""
    runs = [Run(FIXED_BATCH, length, batch, seed) for seed in seeds for length in lengths]
    if labels:
        runs += [Run(FIXED_LABELS, length, labels // length, seed) for seed in seeds for length in lengths]
    return runs


def configs(runs: Sequence[Run], recordings: Sequence[Path], tokenizer: Path, settings: dict) -> list[dict]:
    """One configuration a run for `train_cell`; equal runs of two families get equal configurations."""
    data = {"recordings": [str(path) for path in recordings], "tokenizer": str(tokenizer)}
    data["data"] = fingerprint(recordings, tokenizer)
    return [data | settings | {"length": run.length, "batch": run.batch, "seed": run.seed} for run in runs]


def evaluation_configs(configs: Sequence[dict], lengths: Sequence[int], windows: int, root: Path) -> list[dict]:
    """One configuration a training and length for `evaluate_cell`; `root` is the folder of the grid that trains."""
    folders = cell_folders(train_cell, configs, root)
    return [{"model": str(folder), "length": length, "windows": windows} for folder in folders for length in lengths]


def check_held_out(configs: Sequence[dict], lengths: Sequence[int]) -> None:
    """Raise WindowError before anything is trained when the data are too short for the windows asked for.

    :param configs: the trainings
    :param lengths: frames of the windows evaluated, of which an interval needs two
    """
    train, held_out = CellConfig.parse(configs[0]).windows()
    longest = max(config["length"] for config in configs)
    for part, tokens, needed, remedy in [
        ("training", train.tokens, longest, "shorten training.lengths"),
        ("held-out", held_out.tokens, 2 * max(lengths), "lower training.eval_lengths or raise training.held_out"),
    ]:
        if tokens < needed:
            raise WindowError(f"the {part} part has {tokens} tokens and the windows need {needed}: {remedy}, or compile more commits")


def training_references(config: dict) -> dict[str, float]:
    """Cross entropy on the training part, in nats a token, of its own token frequencies and frequencies of pairs."""
    counts = CellConfig.parse(config).windows()[0].counts()
    single = counts.single[counts.single > 0]
    pair = counts.pair.tocoo()
    after = counts.pair.sum(axis=1)[pair.coords[0]]
    return {
        "train_unigram": float(-(single * np.log(single / single.sum())).sum() / single.sum()),
        "train_bigram": float(-(pair.data * np.log(pair.data / after)).sum() / pair.data.sum()),
    }


def cost(config: dict) -> int:
    """What a run costs, in frames: those it reads, and 16 a step for the optimisers, which do not depend on the batch."""
    return config["steps"] * (16 + config["length"] * config["batch"])


def _kinds(config: dict) -> dict[str, str]:
    return {"head": config["frame_head"], "main": config["main"]}


def loss_rows(task: str, runs: Sequence[Run], outcomes: Sequence[Outcome], every: int) -> Iterator[LossRow]:
    """One row a run and `every` steps, the mean loss of these steps; steps count from 1."""
    for run, outcome in zip(runs, outcomes, strict=True):
        losses = outcome.result["losses"]
        for step in range(every, len(losses) + 1, every):
            yield LossRow(task=task, control=run.control, **_kinds(outcome.config), L=run.length, batch=run.batch,
                          seed=run.seed, step=step, n=every * run.batch * run.length, loss=fmean(losses[step - every : step]))


def _evaluated(
    runs: Sequence[Run], outcomes: Sequence[Outcome], evaluations: Sequence[Outcome]
) -> Iterator[tuple[dict, dict, Outcome]]:
    """(what the rows of a run have in common, its configuration, one of its evaluations); evaluations come run by run."""
    lengths = len(evaluations) // len(runs)
    for i, (run, outcome) in enumerate(zip(runs, outcomes, strict=True)):
        same = {"control": run.control, **_kinds(outcome.config), "L": run.length, "batch": run.batch, "seed": run.seed}
        for evaluation in evaluations[i * lengths : (i + 1) * lengths]:
            yield same | {"length": evaluation.config["length"]}, outcome.config, evaluation


def evaluation_rows(
    task: str, runs: Sequence[Run], outcomes: Sequence[Outcome], evaluations: Sequence[Outcome]
) -> Iterator[EvaluationRow]:
    """One row a run, length of the held-out windows and predictor: the model after the last step, and those that only count."""
    for same, config, evaluation in _evaluated(runs, outcomes, evaluations):
        found = evaluation.result
        for predictor, measures in found["predictors"].items():
            values = {name + bound: value for name, three in measures.items() for bound, value in zip(("", "_low", "_high"), three)}
            yield EvaluationRow(task=task, **same, steps=config["steps"], windows=found["windows"], n=found["positions"],
                                predictor=predictor, **values)


def position_rows(
    task: str, runs: Sequence[Run], outcomes: Sequence[Outcome], evaluations: Sequence[Outcome], length: int
) -> Iterator[PositionRow]:
    """One row a run and position of the held-out windows of `length` frames."""
    for same, _, evaluation in _evaluated(runs, outcomes, evaluations):
        if same["length"] == length:
            found = evaluation.result
            for i, (loss, top1) in enumerate(zip(found["loss_by_position"], found["top1_by_position"])):
                yield PositionRow(task=task, **same, position=i + 1, n=found["windows"], loss=loss, top1=top1)


def ends_off_the_mean(rows: Sequence[PositionRow], ends: int = 4) -> float:
    """How far the loss over the first or last `ends` positions of a model is from its mean over all, as a share, at most (appendix H)."""
    losses: dict[tuple, list[float]] = {}
    for row in rows:
        losses.setdefault((row.control, row.L, row.batch, row.seed), []).append(row.loss)
    return max(abs(fmean(part) / fmean(run) - 1) for run in losses.values() for part in (run[:ends], run[-ends:]))


def is_better(rows: Sequence[EvaluationRow]) -> bool:
    """Whether the top-1 interval of the model lies above those of all references; rows of one run at one length."""
    top1 = {row.predictor: row for row in rows}
    model = top1.pop("model")
    return all(model.top1_low > row.top1_high for row in top1.values())


def timing_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[TrainingTimingRow]:
    """One row a run: what a step cost on this machine."""
    for run, outcome in zip(runs, outcomes, strict=True):
        yield TrainingTimingRow(control=run.control, L=run.length, batch=run.batch, seed=run.seed,
                                cpu_seconds_a_step=outcome.measured["cpu_seconds_a_step"],
                                frames_per_cpu_second=outcome.measured["frames_a_cpu_second"])
