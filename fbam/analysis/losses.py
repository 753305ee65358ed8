"""The loss rows of stage training, sorted into families, runs and steps for section 10.5."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from fbam.analysis.scaling import FitError, loss_at


class Losses:
    """Losses of all runs of one task: family -> (L, seed) -> mean loss of each stretch of `every` steps, from the first on.

    Raises FitError when rows are missing, doubled or of several tasks, because a gap would shift every later step.
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
        steps = sorted({step for runs in collected.values() for run in runs.values() for step in run})
        self.every, self.steps = steps[0], steps[-1]
        self._runs = {family: {key: self._in_order(run) for key, run in sorted(runs.items())} for family, runs in collected.items()}

    def _in_order(self, run: Mapping[int, float]) -> list[float]:
        wanted = list(range(self.every, self.steps + 1, self.every))
        if sorted(run) != wanted:
            raise FitError(f"a run has {len(run)} losses where {len(wanted)} are due; compute stage training again")
        return [run[step] for step in wanted]

    @property
    def families(self) -> list[str]:
        """Names of the families, in the order of the rows."""
        return list(self._runs)

    @property
    def runs(self) -> int:
        """Number of runs over all families."""
        return sum(map(len, self._runs.values()))

    def window(self, share: float) -> int:
        """A share of all steps in steps: a whole number of rows, at least one."""
        return max(1, round(share * self.steps / self.every)) * self.every

    def _loss(self, losses: list[float], step: int, window: int) -> float:
        if step % self.every or window % self.every:
            raise FitError(f"rows stand every {self.every} steps: neither step {step} nor a window of {window} may lie between")
        return loss_at(losses, step // self.every, window // self.every)

    def at(self, family: str, step: int, window: int) -> tuple[list[int], NDArray[np.float64]]:
        """Lengths (n,) and losses (n, seeds) at `step`, each the mean of the last `window` steps up to it."""
        runs = self._runs[family]
        lengths, seeds = sorted({length for length, _ in runs}), sorted({seed for _, seed in runs})
        return lengths, np.array([[self._loss(runs[length, seed], step, window) for seed in seeds] for length in lengths])

    def curves(self, family: str) -> list[dict]:
        """One {length, batch, seed, losses} a run, for drawing; a loss every `every` steps."""
        return [{"length": length, "batch": self._batch[family, length], "seed": seed, "losses": losses}
                for (length, seed), losses in self._runs[family].items()]

    def points(self, family: str, step: int, window: int) -> list[dict]:
        """One {length, loss} a run at `step`, for drawing."""
        return [{"length": length, "loss": self._loss(losses, step, window)} for (length, _), losses in self._runs[family].items()]
