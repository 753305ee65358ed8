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

from fbam.experiments.grid import Outcome
from fbam.experiments.rows import EvaluationRow, LossRow, TrainingTimingRow
from fbam.experiments.statistics import proportion
from fbam.training.loop import CellConfig, fingerprint
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


def check_held_out(configs: Sequence[dict]) -> None:
    """Raise WindowError before anything is trained when the data are too short for the windows asked for."""
    train, held_out = CellConfig.parse(configs[0]).windows()
    longest = max(config["length"] for config in configs)
    for part, tokens, needed, remedy in [
        ("training", train.tokens, longest, "shorten training.lengths"),
        ("held-out", held_out.tokens, configs[0]["eval_length"], "lower training.eval_length or raise training.held_out"),
    ]:
        if tokens < needed:
            raise WindowError(f"the {part} part has {tokens} tokens and a window needs {needed}: {remedy}, or compile more commits")


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


def loss_rows(task: str, runs: Sequence[Run], outcomes: Sequence[Outcome], every: int) -> Iterator[LossRow]:
    """One row a run and `every` steps, the mean loss of these steps; steps count from 1."""
    for run, outcome in zip(runs, outcomes, strict=True):
        losses = outcome.result["losses"]
        for step in range(every, len(losses) + 1, every):
            yield LossRow(task=task, control=run.control, head="attention", main="LSTM", L=run.length, batch=run.batch,
                          seed=run.seed, step=step, n=every * run.batch * run.length, loss=fmean(losses[step - every : step]))


def evaluation_rows(task: str, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[EvaluationRow]:
    """One row a run: the held-out part after the last step, beside predictors that only count."""
    for run, outcome in zip(runs, outcomes, strict=True):
        result = outcome.result
        n = result["held_out_positions"]
        top1 = proportion(round(result["held_out_top1"] * n), n)
        yield EvaluationRow(
            task=task, control=run.control, L=run.length, batch=run.batch, seed=run.seed, steps=outcome.config["steps"],
            n=n, loss=result["held_out_cross_entropy"], top1=top1.value, top1_low=top1.low, top1_high=top1.high,
            unigram_loss=result["unigram_cross_entropy"], unigram_top1=result["unigram_top1"],
            bigram_loss=result["bigram_cross_entropy"], bigram_top1=result["bigram_top1"],
        )


def timing_rows(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Iterator[TrainingTimingRow]:
    """One row a run: what a step cost on this machine."""
    for run, outcome in zip(runs, outcomes, strict=True):
        yield TrainingTimingRow(control=run.control, L=run.length, batch=run.batch, seed=run.seed,
                                cpu_seconds_a_step=outcome.measured["cpu_seconds_a_step"],
                                frames_per_cpu_second=outcome.measured["frames_a_cpu_second"])
