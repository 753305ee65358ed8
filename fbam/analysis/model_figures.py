"""Diagrams of the model from its parts (paper, figures 18 and 21), and the bandwidth that a length needs (section 10.12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from fbam.analysis.figures import COLOURS, DASHES, MARKERS, Rows

STEPS = ("t-1", "t", "t+1")
FILL = {"head": "#e3eef6", "main": "#fbe9dd", "other": "#eeeeee"}


def whole(axes: Axes, rows: Rows) -> None:
    """Frame head and main model over three steps (figure 18). rows: `part`, `inputs`, `outputs`, `repeats`."""
    parts = {row["part"]: row for row in rows}
    layers = parts["main, mixer"]["repeats"]
    frame, vector = parts["cell embedding"]["inputs"], parts["head, reduction"]["outputs"].split(" x ")[-1]
    levels = ["frame", "head", *(f"layer {i + 1}" for i in range(layers)), "output", "action"]
    for column, step in enumerate(STEPS):
        _box(axes, column, 0, f"frame $x_{{{step}}}$\n{frame} cells", FILL["other"])
        _box(axes, column, 1, "frame head", FILL["head"])
        for layer in range(layers):
            _box(axes, column, 2 + layer, f"LSTM + MLP, {layer + 1}", FILL["main"])
            start = (column - 0.62 if column == 0 else column - 0.66, 2 + layer)
            axes.annotate("", (column - 0.34, 2 + layer), start, arrowprops={"arrowstyle": "-|>", "color": COLOURS[1]})
        _box(axes, column, 2 + layers, "output", FILL["other"])
        axes.text(column, 3 + layers - 0.12, f"$a_{{{step}}}$", ha="center", va="center")
        for level in range(len(levels) - 1):
            _up(axes, column, level, level + (0.72 if level == len(levels) - 2 else 1))
    axes.text(2.06, 1.5, vector, va="center", fontsize=8)
    axes.text(2.06, len(levels) - 1.55, parts["output"]["outputs"].split(" x ")[-1], va="center", fontsize=8)
    axes.text(-0.66, 2.3, "$h, c$", fontsize=9, color=COLOURS[1], ha="center")
    axes.set_xlim(-0.85, 2.5)
    axes.set_ylim(-0.4, len(levels) - 0.8)
    axes.axis("off")


def head(axes: Axes, rows: Rows, title: str, words: Mapping[str, str]) -> None:
    """The parts of a frame head from the cells up, with the shapes between them (figure 21).

    rows: as for `whole`; `words` says what a stage, the blocks and the reduction are.
    """
    parts = list(_head_parts(rows))
    for level, row in enumerate(parts):
        name = row["part"].removeprefix("head, ")
        times = f" ({row['repeats']} times)" if row["repeats"] > 1 else ""
        what = words.get(name.split()[0])
        _box(axes, 0, level, name + (f":\n{what}{times}" if what else ""), FILL["head"])
        axes.text(0.06, level - 0.5, row["inputs"], va="center", fontsize=8)
        _up(axes, 0, level - 1, level)
    _up(axes, 0, len(parts) - 1, len(parts))
    axes.text(0.06, len(parts) - 0.5, parts[-1]["outputs"].split(" x ")[-1], va="center", fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_xlim(-0.6, 0.75)
    axes.set_ylim(-1.1, len(parts) + 0.1)
    axes.axis("off")


def bandwidth(axes: Axes, curves: Mapping[str, Mapping[int, float]]) -> None:
    """Bytes a second against L for each named curve, both in logarithms."""
    for (name, points), colour, marker, dash in zip(curves.items(), COLOURS, MARKERS, DASHES):
        axes.plot(*zip(*sorted(points.items())), dash, marker=marker, color=colour, label=name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yscale("log")
    axes.set_xlabel("frames a sequence, L")
    axes.set_ylabel("bandwidth needed, bytes/s")
    axes.legend()


def _head_parts(rows: Rows) -> Iterator[Mapping]:
    return (row for row in rows if row["part"] == "cell embedding" or row["part"].startswith("head, "))


def _box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.add_patch(FancyBboxPatch((x - 0.32, y - 0.26), 0.64, 0.52, boxstyle="round,pad=0.02,rounding_size=0.05", facecolor=colour,
                                  edgecolor="#555555", linewidth=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def _up(axes: Axes, x: float, below: float, above: float) -> None:
    """An arrow from the box at height `below` to the one at height `above`."""
    axes.annotate("", (x, above - 0.28), (x, below + 0.28), arrowprops={"arrowstyle": "-|>", "color": "#333333"})
