"""What a program says without being run: predictors to hold beside every accuracy on the jumps task (paper, section 8.1.1).

A model above all of these has computed something serial; a model at one of them may have found just that shortcut. The look-up
tables are counted on training programs, everything else needs no training.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fbam.tasks import kernels
from fbam.tasks.frjt import HALT_A, HALT_B, Programs, run

Labels = NDArray[np.int8]
WINDOWS = (1, 2, 4, 8)  # blocks that the interpreters with a window may run


def signed(score: NDArray[np.float64], majority: int) -> Labels:
    """1 where the score is positive, 0 where it is negative, the majority label at 0."""
    return np.where(score == 0, majority, score > 0).astype(np.int8)


def bag_of_targets(programs: Programs) -> NDArray[np.float64]:
    """Exits to B minus exits to A, wherever they stand."""
    targets = programs.fields[..., 2:]
    inside = (np.arange(targets.shape[1]) < programs.depths[:, None])[..., None]
    return (((targets == HALT_B).astype(float) - (targets == HALT_A)) * inside).sum((1, 2))


def flow_only(programs: Programs) -> NDArray[np.float64]:
    """Probability of B minus that of A when each condition is a fair coin: the jumps without the registers."""
    return np.round(2 * kernels.flow_shares(programs.fields, programs.depths) - 1, 12)


def straight_line(programs: Programs) -> Labels:
    """Execute every block up to the last as if nothing were skipped: the parity of the negations decides the last condition."""
    n, rows = len(programs), np.arange(len(programs))
    last = programs.fields[rows, programs.depths - 1].astype(np.int64)  # (N, 4)
    inside = np.arange(programs.fields.shape[1]) < programs.depths[:, None]
    negations = ((programs.fields[..., 0] == last[:, 1:2] // 2 + 1) & inside).sum(1)
    holds = (negations % 2 == 1) != (last[:, 1] % 2 == 1)
    return -np.where(holds, last[:, 2], last[:, 3]).astype(np.int8).reshape(n)


def windowed(programs: Programs, width: int) -> Labels:
    """Run only the last `width` blocks, registers 0 before them."""
    return run(programs, np.maximum(programs.depths - width, 0)).halts


def first_steps(programs: Programs, steps: int, majority: int) -> Labels:
    """Run the first `steps` blocks that execute; the majority label where the program has not halted by then.

    This is what serial computation of a fixed depth yields, so it bounds from below what such a model can reach.
    """
    runs = run(programs)
    return np.where(runs.executed.sum(1) <= steps, runs.halts, majority).astype(np.int8)


def _block_ids(programs: Programs, place: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> list[bytes]:
    rows = np.ascontiguousarray(programs.fields[np.arange(len(programs)), place(programs.depths)])  # (N, 4)
    return [row.tobytes() for row in rows]


def _look_up(train: Programs, labels: Labels, test: Programs, place: Callable, majority: int) -> Labels:
    counts: dict[bytes, int] = {}
    for block, label in zip(_block_ids(train, place), labels, strict=True):
        counts[block] = counts.get(block, 0) + 2 * int(label) - 1
    return signed(np.array([counts.get(block, 0) for block in _block_ids(test, place)], float), majority)


def accuracies(train: Programs, test: Programs) -> dict[str, float]:
    """Accuracy of each predictor on `test`, tables counted on `train`."""
    labels, truth = run(train).halts, run(test).halts
    majority = int(labels.mean() > 0.5)
    predictions = {
        "majority": np.full(len(test), majority, np.int8),
        "bag of targets": signed(bag_of_targets(test), majority),
        "flow only": signed(flow_only(test), majority),
        "straight line": straight_line(test),
        "first block": _look_up(train, labels, test, lambda depths: depths * 0, majority),
        "last block": _look_up(train, labels, test, lambda depths: depths - 1, majority),
        **{f"last {width} blocks": windowed(test, width) for width in WINDOWS},
        **{f"first {steps} steps": first_steps(test, steps, majority) for steps in WINDOWS},
    }
    return {name: float((predicted == truth).mean()) for name, predicted in predictions.items()}
