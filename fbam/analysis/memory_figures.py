"""Memory and time of a backward pass against the trained length (paper, section 10.3)."""

from __future__ import annotations

from matplotlib.axes import Axes

from fbam.analysis.figures import COLOURS, DASHES, MARKERS, Rows

WAYS = ("plain", "checkpointed", "streaming")


def memory_against_length(axes: Axes, rows: Rows) -> None:
    """Peak memory of each way in MB against L, both in logarithms. rows: `way`, `L`, `peak_bytes`."""
    _lines(axes, rows, lambda row: row["peak_bytes"] / 1e6)
    axes.set_ylabel("peak above base, MB")


def time_against_length(axes: Axes, rows: Rows) -> None:
    """Processor milliseconds a frame of each way against L. rows: `way`, `L`, `batch`, `cpu_seconds`."""
    _lines(axes, rows, lambda row: 1e3 * row["cpu_seconds"] / (row["L"] * row["batch"]))
    axes.set_ylabel("processor time a frame, ms")
    axes.set_ylim(bottom=0)


def _lines(axes: Axes, rows: Rows, value) -> None:
    rows = list(rows)
    for way, colour, marker, dash in zip(WAYS, COLOURS, MARKERS, DASHES):
        points = sorted((row["L"], value(row)) for row in rows if row["way"] == way)
        axes.plot(*zip(*points), dash, marker=marker, color=colour, label=way)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("frames a sequence, L")
    axes.legend()
