"""Section 10.5: the rows and the verdicts that follow from the losses of the sweeps, as protocol.md lays them down.

`Reading` holds the losses of every task and where the law is read: the fixed steps, and the window whose mean is the loss at a step.
Everything else is a function of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fbam.analysis import forms, scaling
from fbam.analysis.losses import Losses, by_task
from fbam.analysis.paper_scaling import Paper
from fbam.experiments.rows import FitRow
from fbam.experiments.scaling_rows import ExponentRow, FormRow, LocalRow

FIXED_BATCH = "fixed batch"
FIXED_LABELS = "fixed batch x L"
R2_AT_LEAST = 0.9
NAMES = ("early", "middle", "late")  # of the three fixed steps
STEP_RESAMPLES = 200  # of the bootstrap where the law is read at every step


@dataclass(frozen=True)
class Reading:
    """Losses of every task, its three fixed steps, the share of its steps that a loss is the mean of, and the bootstrap's settings."""

    losses: Mapping[str, Losses]
    steps: Mapping[str, Sequence[int]]
    window: float
    resamples: int
    seed: int

    @classmethod
    def of(cls, rows: Iterable[Mapping], tasks: Sequence[Mapping], window: float, resamples: int, seed: int) -> Reading:
        """From loss rows, and tasks with `name` and `read_at`."""
        steps = {task["name"]: task["read_at"] for task in tasks}
        return cls(by_task(rows), steps, window, resamples, seed)

    @classmethod
    def stored(cls, results: Mapping) -> Reading:
        """From what stage scaling wrote: its rows, and the steps, the window and the bootstrap's settings in its summary."""
        found, tasks = results["summary"], list(dict.fromkeys(row["task"] for row in results["rows"]))
        listed = [{"name": task, "read_at": [found[f"{task}_{name}_step"] for name in NAMES]} for task in tasks]
        return cls.of(results["rows"], listed, found["window"], found["resamples"], found["seed"])

    @cached_property
    def windows(self) -> dict[str, int]:
        """Task -> steps that a loss is the mean of."""
        return {task: losses.window(self.window) for task, losses in self.losses.items()}

    @property
    def last(self) -> dict[str, int]:
        """Task -> its last fixed step."""
        return {task: self.steps[task][-1] for task in self.losses}

    @property
    def laws(self) -> list[tuple[str, str]]:
        """(task, family) of every family with three lengths or more that reaches the last fixed step: where a law is fitted."""
        return [(task, family) for task, losses in self.losses.items() for family in losses.families
                if len(losses.lengths(family)) > 2 and losses.last[family] >= self.last[task]]

    def common(self, task: str, *families: str) -> int:
        """The last fixed step that all of these families reach: where they are compared."""
        last = min(self.losses[task].last[family] for family in families)
        reached = [step for step in self.steps[task] if step <= last]
        if not reached:
            raise scaling.FitError(f"{' and '.join(families)} end before the first fixed step {self.steps[task][0]} of {task}")
        return reached[-1]

    def at(self, task: str, family: str, step: int) -> tuple[list[int], NDArray[np.float64]]:
        """Lengths (n,) and losses (n, seeds) of a family at a step."""
        return self.losses[task].at(family, step, self.windows[task])

    def points(self, task: str, family: str, step: int) -> list[dict]:
        """One {length, loss} a run, for drawing."""
        return self.losses[task].points(family, step, self.windows[task])

    def final(self, task: str, family: str, length: int, seed: int) -> float:
        """The last training loss of one run."""
        losses = self.losses[task]
        return float(losses.final(family, length, self.windows[task])[losses.seeds(family).index(seed)])

    @cached_property
    def fits(self) -> dict[tuple[str, str, int], scaling.PowerLaw]:
        """The law of every family at the fixed steps of its task."""
        return {(task, family, step): self._fit(task, family, step, self.resamples)
                for task, family in self.laws for step in self.steps[task]}

    def _fit(self, task: str, family: str, step: int, resamples: int) -> scaling.PowerLaw:
        return scaling.fit_power_law(*self.at(task, family, step), resamples=resamples, seed=self.seed)

    def at_every_step(self, task: str, family: str) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Steps from the first window on, and A and alpha of the law there, (m,) each."""
        losses = self.losses[task]
        steps = losses.smoothed(family, losses.lengths(family)[0], self.windows[task])[0]
        fits = [self._fit(task, family, int(step), STEP_RESAMPLES) for step in steps]
        return steps, np.array([fit.A for fit in fits]), np.array([fit.alpha for fit in fits])

    def holds(self, task: str, family: str, step: int, reference: float) -> bool:
        """The verdict test of the law: its fit holds, and every run lies below the reference loss."""
        return self.fits[task, family, step].holds(R2_AT_LEAST) and float(self.at(task, family, step)[1].max()) < reference

    def residuals(self, task: str, family: str) -> dict[int, NDArray[np.float64]]:
        """Length -> how far each run lies above the law at the last fixed step, in log loss."""
        at = self.at(task, family, self.last[task])
        return dict(zip(at[0], scaling.log_residuals(self.fits[task, family, self.last[task]], *at), strict=True))


def fit_rows(reading: Reading) -> Iterator[FitRow]:
    """One row a family and fixed step."""
    for (task, family, step), f in reading.fits.items():
        yield FitRow(task=task, control=family, step=step, A=f.A, alpha=f.alpha, low=f.low, high=f.high, r2=f.r2, lengths=f.n,
                     seeds=f.seeds, interval=f.method, points=[[float(p["length"]), p["loss"]] for p in reading.points(task, family, step)])


def exponent_rows(reading: Reading) -> Iterator[ExponentRow]:
    """One row a family and step, from the first window on: alpha(s) for all s."""
    for task, family in reading.laws:
        losses = reading.losses[task]
        for step in losses.smoothed(family, losses.lengths(family)[0], reading.windows[task])[0].tolist():
            f = reading._fit(task, family, step, STEP_RESAMPLES)
            gaps = scaling.log_residuals(f, *reading.at(task, family, step)).mean(axis=1)
            yield ExponentRow(task=task, control=family, step=step, A=f.A, alpha=f.alpha, low=f.low, high=f.high, r2=f.r2,
                              largest_residual=float(np.abs(gaps).max()))


def form_rows(reading: Reading, resamples: int = 200) -> Iterator[FormRow]:
    """One row a task and form for the family with the batch fixed, at the last fixed step, the best form first."""
    for task, step in reading.last.items():
        at = reading.at(task, FIXED_BATCH, step)
        for score in forms.choose(*at, resamples=resamples, seed=reading.seed):
            fit, low, high = forms.fit_form(score.form, *at), None, None
            if forms.FORMS[score.form].floor:
                low, high = forms.floor_interval(score.form, *at)
            yield FormRow(task=task, control=FIXED_BATCH, step=step, form=score.form, constants=score.constants, E=fit.E, E_low=low,
                          E_high=high, A=fit.A, rate=fit.rate, held_out=score.held_out, wins=score.wins)


def local_rows(reading: Reading) -> Iterator[LocalRow]:
    """One row a task and pair of neighbouring lengths for the family with the batch fixed, at the last fixed step."""
    for task, step in reading.last.items():
        for found in scaling.local_exponents(*reading.at(task, FIXED_BATCH, step)):
            yield LocalRow(task=task, control=FIXED_BATCH, step=step, shorter=int(found.shorter), longer=int(found.longer),
                           alpha=found.alpha, low=found.low, high=found.high)


def saturations(rows: Iterable[ExponentRow]) -> dict[tuple[str, str], scaling.Saturation | str]:
    """(task, family) -> equation 9 fitted to its exponents, or why it gives no number."""
    series: dict[tuple[str, str], list[ExponentRow]] = {}
    for row in rows:
        series.setdefault((row.task, row.control), []).append(row)
    found: dict[tuple[str, str], scaling.Saturation | str] = {}
    for key, mine in series.items():
        try:
            found[key] = scaling.fit_saturation([row.step for row in mine], [row.alpha for row in mine])
        except scaling.FitError as error:
            found[key] = str(error)
    return found


def summary(reading: Reading, references: Mapping[str, Mapping[str, float]], paper: Paper) -> dict[str, float | bool]:
    """Named values for the ledger; references: task -> `train_unigram` and more, in nats.

    The first task is the main one, the last the fully observable one.
    """
    main, observable = list(reading.losses)[0], list(reading.losses)[-1]

    def holds(task: str, step: int) -> bool:
        return reading.holds(task, FIXED_BATCH, step, references[task]["train_unigram"])

    at_steps = dict(zip(NAMES, reading.steps[main], strict=True))
    values: dict[str, float | bool] = {f"law_{name}": holds(main, step) for name, step in at_steps.items()}
    held = {task: holds(task, step) for task, step in reading.last.items()}
    values |= {"law_observable": held[observable], "law_all": len(held) > 1 and all(held.values())}
    named = {name: (main, FIXED_BATCH, step) for name, step in at_steps.items()}
    named["observable"] = (observable, FIXED_BATCH, reading.last[observable])
    named |= {f"{name}_labels": (task, FIXED_LABELS, reading.last[task]) for name, task in (("main", main), ("observable", observable))}
    for name, key in named.items():
        f = reading.fits[key]
        values |= {f"alpha_{name}": f.alpha, f"alpha_{name}_low": f.low, f"alpha_{name}_high": f.high, f"r2_{name}": f.r2}
    values |= {f"doubling_{step}": saved for step, saved in paper.savings().items()}
    values |= {"equation9_max_error": max(paper.equation9_errors().values()), "window": reading.window}
    values |= {"resamples": reading.resamples, "seed": reading.seed}
    values |= {f"{task}_{name}_step": step for task, steps in reading.steps.items() for name, step in zip(NAMES, steps, strict=True)}
    return values | {f"{task}_{name}": loss for task, found in references.items() for name, loss in found.items()}
