"""Appendix D: rows and the verdict on loss at equal time, from the loss rows and the times of the sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fbam.analysis.scaling_tables import FIXED_BATCH, Reading
from fbam.analysis.walltime import POINTS, Crossing, Curve, StepCost, crossing, law_crossing, step_cost
from fbam.experiments.scaling_rows import CrossingRow, RateRow

Timings = Sequence[Mapping]
"""Rows of `SweepTimingRow`."""


def cost(timings: Timings, task: str, family: str) -> StepCost:
    """What a step of one family costs against L."""
    rows = [row for row in timings if (row["task"], row["control"]) == (task, family)]
    return step_cost([row["L"] for row in rows], [row["cpu_seconds_a_step"] for row in rows])


def seconds_a_step(timings: Timings, task: str, family: str, length: int) -> float:
    """Median cost of a step over the runs of one length."""
    found = [row["cpu_seconds_a_step"] for row in timings if (row["task"], row["control"], row["L"]) == (task, family, length)]
    return float(np.median(found))


def curves(reading: Reading, timings: Timings, task: str, family: str) -> list[Curve]:
    """Loss against time of each length, smoothed as the law is read."""
    losses, found = reading.losses[task], []
    for length in losses.lengths(family):
        steps, values = losses.smoothed(family, length, reading.windows[task])
        found.append(Curve(length, steps * seconds_a_step(timings, task, family, length), values))
    return found


def crossings(reading: Reading, timings: Timings, task: str, family: str) -> list[CrossingRow]:
    """One row for every two neighbouring lengths of a family, and one for the shortest with the longest."""
    by_length = curves(reading, timings, task, family)
    pairs = [*zip(by_length, by_length[1:], strict=False), (by_length[0], by_length[-1])]
    return [_row(reading, timings, task, family, first, second) for first, second in pairs]


def _row(reading: Reading, timings: Timings, task: str, family: str, first: Curve, second: Curve) -> CrossingRow:
    found: Crossing = crossing(first, second)
    return CrossingRow(task=task, control=family, seeds=first.losses.shape[1], law=_by_law(reading, timings, task, family, found),
                       **vars(found))


def _by_law(reading: Reading, timings: Timings, task: str, family: str, found: Crossing) -> float | None:
    """The crossing that A(s) and alpha(s), straight between the steps at which they were fitted, imply at the measured costs."""
    steps, A, alpha = reading.at_every_step(task, family)
    costs = {length: seconds_a_step(timings, task, family, length) for length in (found.shorter, found.longer)}
    times = np.linspace(steps[0] * max(costs.values()), found.horizon, POINTS)
    return law_crossing(lambda s: np.interp(s, steps, np.log(A)), lambda s: np.interp(s, steps, alpha), found.shorter, found.longer,
                        times, cost=lambda length: costs[int(length)])


def marks(by_length: Sequence[Curve], rows: Iterable[CrossingRow]) -> list[tuple[float, float]]:
    """(seconds, loss of the longer one) at each crossing of neighbours, for drawing."""
    curve, lengths = {curve.length: curve for curve in by_length}, [curve.length for curve in by_length]
    return [(row.seconds, float(np.interp(row.seconds, curve[row.longer].seconds, curve[row.longer].losses.mean(axis=1))))
            for row in rows if row.seconds is not None and lengths.index(row.longer) == lengths.index(row.shorter) + 1]


def as_text(row: CrossingRow) -> list[str]:
    """One line of the table of crossings."""
    def seconds(value: float | None) -> str:
        return "open" if value is None else f"{value:.1f}"

    interval = "one seed" if row.seeds == 1 else f"{seconds(row.low)} to {seconds(row.high)}"
    return [row.task, row.control, f"{row.shorter} and {row.longer}", str(row.seeds), seconds(row.seconds), interval, seconds(row.law),
            f"{row.horizon:.1f}", f"{row.gain:.3f}"]


def rate_rows(steps: Iterable[Mapping], timings: Timings, peak: float) -> list[RateRow]:
    """One row for each counted step, held against its family's median time. steps: rows of `StepRow`. peak: FLOP/s."""
    found = []
    for row in steps:
        seconds = seconds_a_step(timings, row["task"], row["control"], row["L"])
        found.append(RateRow(task=row["task"], control=row["control"], L=row["L"], batch=row["batch"], flops_a_step=row["flops"],
                             cpu_seconds_a_step=seconds, flops_per_second=row["flops"] / seconds, share_of_peak=row["flops"] / seconds / peak))
    return found


def summary(reading: Reading, rows: Iterable[CrossingRow], costs: Mapping[str, StepCost], rates: Iterable[RateRow]) -> dict[str, float | bool]:
    """The verdict of protocol.md on the main task at fixed batch, and numbers beside it."""
    main = next(iter(reading.losses))
    lengths = reading.losses[main].lengths(FIXED_BATCH)
    neighbours = [row for row in rows if (row.task, row.control) == (main, FIXED_BATCH)
                  and lengths.index(row.longer) == lengths.index(row.shorter) + 1]
    return {
        "crossings_seen": all(row.seconds is not None and row.high is not None for row in neighbours),
        "neighbours": len(neighbours),
        "neighbours_crossed": sum(row.seconds is not None for row in neighbours),
        "neighbours_crossed_surely": sum(row.high is not None for row in neighbours),
        "fixed_share_of_a_step": costs[main].fixed_share,
        "largest_share_of_peak": max(row.share_of_peak for row in rates),
    }
