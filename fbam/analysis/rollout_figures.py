"""Figures of the roll-out study: shares with their intervals, one line a predictor."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes


def top1_intervals(axes: Axes, labels: Sequence[str], rows: Sequence[dict]) -> None:
    """One point and its interval a row, the first at the top; ``rows`` have top1, top1_low and top1_high, shares from 0 to 1."""
    places = range(len(rows))
    for place, row in zip(places, rows, strict=True):
        axes.plot([row["top1_low"], row["top1_high"]], [place, place], color="C0", linewidth=3, solid_capstyle="butt")
        axes.plot(row["top1"], place, "o", color="C0", markersize=7)
    axes.set_yticks(places, labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of keys predicted right")
