"""Held-out windows: loss by position, and the model beside predictors that count (paper, section 10.4.1, appendix H)."""

from __future__ import annotations

from statistics import fmean

from matplotlib.axes import Axes

from fbam.analysis.figures import COLOURS, DASHES, MARKERS, Rows

PREDICTORS = ("model", "unigram", "bigram", "copy")


def loss_by_position(axes: Axes, rows: Rows) -> None:
    """Mean loss at each position of a window, one line a trained length, whose end is marked. rows: `L`, `position`, `loss`."""
    rows = list(rows)
    for i, length in enumerate(sorted({row["L"] for row in rows})):
        at: dict[int, list[float]] = {}
        for row in rows:
            if row["L"] == length:
                at.setdefault(row["position"], []).append(row["loss"])
        points = {position: fmean(losses) for position, losses in sorted(at.items())}
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(*zip(*points.items()), DASHES[i % len(DASHES)], color=colour, linewidth=1.2, label=f"trained at L = {length}")
        if length in points:
            axes.plot(length, points[length], MARKERS[i % len(MARKERS)], color=colour)
    axes.set_xlabel("position in the window (marker: the trained length)")
    axes.set_ylabel("held-out loss, nats")
    axes.legend(ncols=2, fontsize=8)


def with_intervals(axes: Axes, rows: Rows, measure: str, label: str) -> None:
    """One measure of model and references against the trained length, with intervals. rows: of one family and one window length."""
    rows = list(rows)
    lengths = sorted({row["L"] for row in rows})
    for i, (predictor, colour, marker) in enumerate(zip(PREDICTORS, COLOURS, MARKERS)):
        chosen = [row for row in rows if row["predictor"] == predictor]
        x = [lengths.index(row["L"]) + 0.14 * (i - 1.5) for row in chosen]
        value = [row[measure] for row in chosen]
        low = [row[measure] - row[f"{measure}_low"] for row in chosen]
        high = [row[f"{measure}_high"] - row[measure] for row in chosen]
        axes.errorbar(x, value, (low, high), fmt=marker, color=colour, capsize=2, markersize=4, linewidth=1, label=predictor)
    axes.set_xticks(range(len(lengths)), [f"{length:g}" for length in lengths])
    axes.set_xlabel("trained length L")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8, columnspacing=1.0, handletextpad=0.2)
