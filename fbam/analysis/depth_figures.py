"""Figures of the study of true depth: laws, the graph of a small program, probes, the backward pass, Newton's rounds (sections 2 and 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fbam.analysis.figures import COLOURS, DASHES, MARKERS

Rows = Iterable[Mapping[str, Any]]


def depth_lines(axes: Axes, rows: Rows, label: str = "family") -> None:
    """Depth against length in logarithms, one line a row; rows: `lengths`, `depths` and the key named by `label`. The legend is the caller's."""
    for number, row in enumerate(rows):
        axes.plot(row["lengths"], row["depths"], markersize=5, label=row[label], **line_style(number))
    _log2_axis(axes, "length n")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("depth, levels")


def line_style(number: int) -> dict[str, Any]:
    """Colour, dash and marker of the line of this number; where the colours come round again, markers are hollow and others than before."""
    again, place = divmod(number, len(COLOURS))
    colour = COLOURS[place]
    return {"color": colour, "linestyle": DASHES[number % len(DASHES)], "marker": MARKERS[(place + 2 * again) % len(MARKERS)],
            "markerfacecolor": "white" if again % 2 else colour}


def _log2_axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(label)


def dag(axes: Axes, operations: Sequence[Any]) -> None:
    """The graph of a small program: a column a depth, an arrow for each use, the longest path in the second colour.

    operations: nodes with `name`, `depth`, `parents` (indices of nodes before), as the meter gives them.
    """
    columns: dict[int, int] = defaultdict(int)
    places = []
    for operation in operations:
        places.append((operation.depth, -columns[operation.depth]))
        columns[operation.depth] += 1
    longest = _longest_path(operations)
    for node, operation in enumerate(operations):
        for parent in operation.parents:
            colour = COLOURS[1] if node in longest and parent in longest else "#999999"
            axes.annotate("", places[node], places[parent], arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 12, "shrinkB": 14})
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[1] if node in longest else "#999999"}
        axes.text(*places[node], operation.name, ha="center", va="center", fontsize=8, bbox=box)
    axes.set_xlim(0.4, max(columns) + 0.6)
    axes.set_ylim(-max(columns.values()) + 0.4, 0.6)
    axes.set_yticks([])
    axes.set_xlabel("depth, levels")
    axes.grid(False)


def _longest_path(operations: Sequence[Any]) -> set[int]:
    node: int | None = max(range(len(operations)), key=lambda i: operations[i].depth)
    path = set()
    while node is not None:
        path.add(node)
        node = max(operations[node].parents, key=lambda parent: operations[parent].depth, default=None)
    return path


def probe_grid(axes: Axes, rows: Rows) -> None:
    """Accuracy beyond the trained length, a line a family and a column a task, shaded from chance to 1.

    rows: `family`, `task`, `extended`, `trained`, `chance`.
    """
    cells = {(row["family"], row["task"]): row for row in rows}
    families, tasks = list(dict.fromkeys(f for f, _ in cells)), list(dict.fromkeys(t for _, t in cells))
    shade = np.array([[(cells[f, t]["extended"] - cells[f, t]["chance"]) / (1 - cells[f, t]["chance"]) for t in tasks] for f in families])
    axes.imshow(np.clip(shade, 0, 1), cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for i, family in enumerate(families):
        for j, task in enumerate(tasks):
            row = cells[family, task]
            axes.text(j, i, f"{row['extended']:.2f}  (trained {row['trained']:.2f})", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_yticks(range(len(families)), families)
    axes.grid(False)


def backward_depths(axes: Axes, rows: Rows) -> None:
    """Depth of the backward pass against n, as autograd runs it and as a scan, by cost model; rows of BackwardRow."""
    rows = list(rows)
    for model, dash in zip(dict.fromkeys(row["model"] for row in rows), DASHES):
        part = [row for row in rows if row["model"] == model]
        lengths = [row["n"] for row in part]
        axes.plot(lengths, [row["autograd_depth"] for row in part], dash, marker="o", color=COLOURS[0], label=f"autograd, {model}")
        axes.plot(lengths, [row["scan_depth"] for row in part], dash, marker="s", color=COLOURS[1], label=f"scan over Jacobians, {model}")
    _log2_axis(axes, "length n")
    axes.set_ylabel("depth of the backward pass, levels")
    axes.legend(fontsize=8)


def newton_rounds(axes: Axes, rows: Rows) -> None:
    """Rounds of Newton's iteration against n, one line a gain with its Lyapunov exponent at the largest n; rows of NewtonRow."""
    by_gain: dict[float, list[Mapping]] = defaultdict(list)
    for row in rows:
        by_gain[row["gain"]].append(row)
    for (gain, part), colour, marker in zip(sorted(by_gain.items()), cycle(COLOURS), cycle(MARKERS)):
        exponent = max(part, key=lambda row: row["n"])["lyapunov"]
        label = f"gain {gain:g}, λ = {exponent:+.2f}"
        axes.plot([row["n"] for row in part], [row["rounds"] for row in part], marker=marker, color=colour, label=label)
    lengths = sorted({row["n"] for part in by_gain.values() for row in part})
    axes.plot(lengths, lengths, ":", color="#666666", label="n rounds: nothing gained")
    _log2_axis(axes, "length n")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("rounds until nothing moves")
    axes.legend(fontsize=8)
