"""Loss rows of trainings, sorted into tasks, families of runs and steps for section 10.5 and its appendices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from fbam.analysis.scaling import FitError, loss_at


class Losses:
    """Losses of all runs of one task: family -> (L, seed) -> mean loss of each stretch of `every` steps, from the first on.

    A family is what the rows call `control`. Families may differ in their numbers of steps (`last`), the runs of one may not. Raises
    FitError when rows are missing, doubled or of several tasks, because a gap would shift every later step.
    """

    def __init__(self, rows: Iterable[Mapping]):
        collected: dict[str, dict[tuple[int, int], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        self._batch: dict[tuple[str, int], int] = {}
        tasks = set()
        for row in rows:
            run = collected[row["control"]][row["L"], row["seed"]]
            if row["step"] in run:
                raise FitError(f"two losses at step {row['step']} of L = {row['L']}, seed {row['seed']}, {row['control']}")
            run[row["step"]] = row["loss"]
            self._batch[row["control"], row["L"]] = row["batch"]
            tasks.add(row["task"])
        if len(tasks) != 1:
            raise FitError(f"the losses of exactly one task are needed, got those of {sorted(tasks) or 'none'}")
        (self.task,) = tasks
        self.every = min(step for runs in collected.values() for run in runs.values() for step in run)
        self.last = {family: max(step for run in runs.values() for step in run) for family, runs in collected.items()}
        self.steps = max(self.last.values())
        self._runs = {family: {key: self._in_order(run, self.last[family]) for key, run in sorted(runs.items())}
                      for family, runs in collected.items()}

    def _in_order(self, run: Mapping[int, float], last: int) -> list[float]:
        wanted = list(range(self.every, last + 1, self.every))
        if sorted(run) != wanted:
            raise FitError(f"a run has {len(run)} losses where {len(wanted)} are due; train it again")
        return [run[step] for step in wanted]

    @property
    def families(self) -> list[str]:
        """Names of the families, in the order of the rows."""
        return list(self._runs)

    @property
    def runs(self) -> int:
        """Number of runs over all families."""
        return sum(map(len, self._runs.values()))

    def lengths(self, family: str) -> list[int]:
        """The trained lengths of a family, rising."""
        return sorted({length for length, _ in self._runs[family]})

    def seeds(self, family: str) -> list[int]:
        """The seeds of a family, rising."""
        return sorted({seed for _, seed in self._runs[family]})

    def batch(self, family: str, length: int) -> int:
        """Sequences an update at one length."""
        return self._batch[family, length]

    def window(self, share: float) -> int:
        """A share of all steps in steps: a whole number of rows, at least one."""
        return max(1, round(share * self.steps / self.every)) * self.every

    def smoothed(self, family: str, length: int, window: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps (m,) and losses (m, seeds) of one length, each the mean of the last `window` steps up to it."""
        count, runs = self._rows(window), [self._run(family, length, seed) for seed in self.seeds(family)]
        means = np.array([np.convolve(run, np.full(count, 1 / count), mode="valid") for run in runs]).T  # (m, seeds)
        return window + self.every * np.arange(len(means)), means

    def at(self, family: str, step: int, window: int) -> tuple[list[int], NDArray[np.float64]]:
        """Lengths (n,) and losses (n, seeds) at `step`, each the mean of the last `window` steps up to it."""
        lengths, seeds = self.lengths(family), self.seeds(family)
        return lengths, np.array([[self._loss(self._run(family, length, seed), step, window) for seed in seeds] for length in lengths])

    def final(self, family: str, length: int, window: int) -> NDArray[np.float64]:
        """Losses (seeds,) at the last step of the family."""
        return np.array([loss_at(self._run(family, length, seed), len(self._run(family, length, seed)), self._rows(window))
                         for seed in self.seeds(family)])

    def curves(self, family: str) -> list[dict]:
        """One {length, batch, seed, losses} a run, for drawing; a loss every `every` steps."""
        return [{"length": length, "batch": self._batch[family, length], "seed": seed, "losses": losses}
                for (length, seed), losses in self._runs[family].items()]

    def points(self, family: str, step: int, window: int) -> list[dict]:
        """One {length, loss} a run at `step`, for drawing."""
        return [{"length": length, "loss": self._loss(losses, step, window)} for (length, _), losses in self._runs[family].items()]

    def _run(self, family: str, length: int, seed: int) -> list[float]:
        try:
            return self._runs[family][length, seed]
        except KeyError:
            raise FitError(f"there is no run of L = {length} with seed {seed} in {family}") from None

    def _rows(self, window: int) -> int:
        if window % self.every:
            raise FitError(f"rows stand every {self.every} steps: a window of {window} steps may not end between")
        return window // self.every

    def _loss(self, losses: list[float], step: int, window: int) -> float:
        if step % self.every or window % self.every:
            raise FitError(f"rows stand every {self.every} steps: neither step {step} nor a window of {window} may lie between")
        return loss_at(losses, step // self.every, window // self.every)


def by_task(rows: Iterable[Mapping]) -> dict[str, Losses]:
    """One `Losses` for each task, in the order of the rows."""
    collected: dict[str, list[Mapping]] = defaultdict(list)
    for row in rows:
        collected[row["task"]].append(row)
    return {task: Losses(found) for task, found in collected.items()}
