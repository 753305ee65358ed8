"""Figures of the scaling study beside those of `figures`: they take rows or results and compute nothing but means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from fbam.analysis.figures import COLOURS, DASHES, MARKERS, _shades, length_axis, loss_against_labels, loss_curves, plain_ticks, reference_lines

Rows = Iterable[Mapping[str, object]]
GREY = "#777777"


def curves_of_tasks(curves: Mapping[str, Sequence[Mapping]], windows: Mapping[str, int], every: int,
                    references: Mapping[str, Mapping[str, float]]) -> Figure:
    """Training loss against the step, a panel a task: task -> curves, window in steps, dotted reference losses."""
    figure, panels = plt.subplots(1, len(curves), figsize=(9, 3.8), squeeze=False)
    for axes, (task, runs) in zip(panels[0], curves.items(), strict=True):
        loss_curves(axes, runs, windows[task], every)
        reference_lines(axes, references[task])
        axes.set_title(task)
    return figure


def labels_of_tasks(curves: Mapping[str, Sequence[Mapping]], windows: Mapping[str, int], every: int) -> Figure:
    """Training loss against the labels seen, a panel a task: task -> curves, window in steps."""
    figure, panels = plt.subplots(1, len(curves), figsize=(9, 3.8), squeeze=False)
    for axes, (task, runs) in zip(panels[0], curves.items(), strict=True):
        loss_against_labels(axes, runs, windows[task], every)
        axes.set_title(task)
    return figure


def laws(axes: Axes, families: Mapping[str, tuple[Rows, tuple[float, float]]]) -> None:
    """Loss against trained length in logarithms: label -> (rows of `length` and `loss`, one a run; (A, alpha) of the law)."""
    lengths: list[float] = []
    for (label, (rows, (A, alpha))), colour, marker, dash in zip(families.items(), cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False):
        rows = list(rows)
        axes.plot([row["length"] for row in rows], [row["loss"] for row in rows], marker, color=colour, markersize=4, linestyle="none")
        ends = np.array([min(row["length"] for row in rows), max(row["length"] for row in rows)], dtype=float)
        axes.plot(ends, A * ends**-alpha, dash, color=colour, label=f"{label}: {A:.2f} L$^{{{-alpha:.3f}}}$")
        lengths += [row["length"] for row in rows]
    length_axis(axes, lengths)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.set_ylabel("loss, nats an action")
    axes.legend(fontsize="small")


def residuals(axes: Axes, rows: Mapping[str, Mapping[int, Sequence[float]]]) -> None:
    """How far each run lies above its law, in log loss: label -> length -> one value a seed."""
    lengths: list[float] = []
    for number, ((label, by_length), colour) in enumerate(zip(rows.items(), cycle(COLOURS), strict=False)):
        x = [length * 1.04**number for length, found in by_length.items() for _ in found]
        axes.plot(x, [value for found in by_length.values() for value in found], MARKERS[number % len(MARKERS)], color=colour,
                  markersize=4, label=label)
        lengths += by_length
    axes.axhline(0, color=GREY, linewidth=0.8)
    length_axis(axes, lengths)
    axes.set_ylabel("log loss above the law")
    axes.legend(fontsize="small")


def exponents(axes: Axes, families: Mapping[str, Rows], curves: Mapping[str, tuple[float, float]]) -> None:
    """The exponent at every step with its 95 % interval as a band, and saturating curves (equation 9) as dashed lines.

    families: label -> rows of `step`, `alpha`, `low`, `high`. curves: label -> (alpha_inf, tau).
    """
    last = top = 0.0
    for (label, rows), colour, marker in zip(families.items(), COLOURS, MARKERS, strict=False):
        step, alpha, low, high = (np.array([row[name] for row in rows], dtype=float) for name in ("step", "alpha", "low", "high"))
        axes.plot(step, alpha, marker + "-", color=colour, markersize=3, label=label)
        axes.fill_between(step, low, high, color=colour, alpha=0.15, linewidth=0)
        last, top = max(last, step.max()), max(top, alpha.max())
    grid = np.linspace(0, last, 200)
    for (label, (alpha_inf, tau)), dash in zip(curves.items(), cycle(DASHES[1:]), strict=False):
        axes.plot(grid, -alpha_inf * np.expm1(-grid / tau), dash, color=GREY, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_ylim(-1, top + 0.5)  # where a line through three lengths has an interval wider than this, it leaves the picture
    axes.set_xlabel("step s")
    axes.set_ylabel("exponent α(s), 95 % interval")
    axes.legend(fontsize="small")


def ratios(axes: Axes, rows: Rows) -> None:
    """A point a comparison with its interval where there is one, on a logarithmic axis with a line at 1.

    rows: `label`, `value`, `low`, `high` (None without an interval).
    """
    rows = list(rows)
    for number, row in enumerate(rows):
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [number, number], color=COLOURS[0], linewidth=2)
        axes.plot(row["value"], number, "o", color=COLOURS[0] if row["low"] is not None else COLOURS[1])
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_yticks(range(len(rows)), [row["label"] for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("ratio of losses; with a bar: 95 % interval over seeds, orange: one seed")


def kinds(axes: Axes, curves: Mapping[str, tuple[Sequence[int], np.ndarray]]) -> None:
    """Training loss against the step, a line a label (mean over seeds): label -> (steps (m,), losses (m, seeds))."""
    for (label, (steps, losses)), colour, dash in zip(curves.items(), cycle(COLOURS), cycle(DASHES), strict=False):
        axes.plot(steps, losses.mean(axis=1), dash, color=colour, label=label)
    axes.set_xlabel("step s")
    axes.set_ylabel("loss, nats an action")
    axes.legend()


def profiles(axes: Axes, rows: Rows) -> None:
    """Loss against the position of a window, a line a model, its mean dotted. rows: `label`, `position`, `loss`."""
    found = defaultdict(list)
    for row in rows:
        found[row["label"]].append((row["position"], row["loss"]))
    for (label, points), colour, dash in zip(found.items(), cycle(COLOURS), cycle(DASHES), strict=False):
        position, loss = np.array(sorted(points), dtype=float).T
        axes.plot(position, loss, dash, color=colour, label=label)
        axes.axhline(loss.mean(), color=colour, linewidth=0.8, linestyle=":")
    axes.set_xlabel("position in the window; dotted: the mean")
    axes.set_ylabel("loss, nats an action")
    axes.margins(y=0.35)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", ncols=2, loc="upper center")


def against_seconds(axes: Axes, curves: Rows, crossings: Iterable[tuple[float, float]] = ()) -> None:
    """Loss against processor seconds, a line a length (mean over seeds), darker for longer, and a mark at each crossing.

    curves: `length`, `seconds` (m,), `losses` (m, seeds). crossings: (seconds, loss).
    """
    curves = sorted(curves, key=lambda curve: curve["length"])
    for (length, shade), curve, dash in zip(_shades(curve["length"] for curve in curves).items(), curves, cycle(DASHES), strict=False):
        axes.plot(curve["seconds"], np.mean(curve["losses"], axis=1), dash, color=shade, label=f"L = {length}")
    for seconds, loss in crossings:
        axes.plot(seconds, loss, "x", color=COLOURS[1], markersize=7)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("processor seconds")
    axes.set_ylabel("loss, nats an action")
    axes.legend(fontsize="small")


def step_costs(axes: Axes, rows: Rows, line: tuple[float, float]) -> None:
    """Processor seconds a step against L, a point a run, and the line (base, a frame). rows: `L`, `cpu_seconds_a_step`."""
    rows = list(rows)
    lengths = np.array([row["L"] for row in rows], dtype=float)
    axes.plot(lengths, [1000 * row["cpu_seconds_a_step"] for row in rows], "o", color=COLOURS[0], label="runs, median step")
    grid = np.linspace(0, lengths.max(), 50)
    axes.plot(grid, 1000 * (line[0] + line[1] * grid), "-", color=COLOURS[1], label=f"{1000 * line[0]:.1f} + {1000 * line[1]:.2f} L ms")
    axes.plot(grid, 1000 * line[1] * grid, ":", color=GREY, label="in proportion to L, as the claim assumes")
    axes.set_xlabel("trained sequence length L, frames")
    axes.set_ylabel("processor milliseconds a step")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", fontsize="small")
