"""Pictures of the maze study: the maze with a walk in it (the paper's figure 5) and accuracy against depth and step (figures 4, 6).

The functions take plain arrays and rows, and compute nothing but means over seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fbam.analysis.figures import COLOURS, DASHES, MARKERS

LEFT, RIGHT, UP, DOWN = range(4)
WITHHELD = 2  # the result that is not shown
NAMES = {"lstm": "LSTM", "transformer": "Transformer", "transformer_rotary": "Transformer, rotary", "mamba": "Mamba", "mamba2": "Mamba-2",
         "sum": "sum over time", "elman": "Elman", "gru": "GRU", "slstm": "sLSTM", "mlstm": "mLSTM", "dense_scan": "dense scan"}
ORDER = list(NAMES)
FEW = 100  # a point that rests on fewer moves is not drawn
Rows = Iterable[Mapping]


def wall_segments(step: NDArray[np.integer], size: int) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The walls as lines between (column, row) corners; cell (r, c) is the square from (c, r) to (c + 1, r + 1).

    step: (4, size^2) the cell after each move, itself at a wall.
    """
    blocked = (step == np.arange(size**2)).reshape(4, size, size)
    segments = [((0.0, 0.0), (float(size), 0.0)), ((0.0, 0.0), (0.0, float(size)))]
    segments += [((c + 1.0, float(r)), (c + 1.0, r + 1.0)) for r, c in np.argwhere(blocked[RIGHT]).tolist()]
    segments += [((float(c), r + 1.0), (c + 1.0, r + 1.0)) for r, c in np.argwhere(blocked[DOWN]).tolist()]
    return segments


def draw_maze(axes: Axes, step: NDArray[np.integer], size: int) -> None:
    """The walls of a maze, row 0 on top."""
    axes.add_collection(LineCollection(wall_segments(step, size), colors="#222222", linewidths=1.2, capstyle="projecting"))
    axes.set_xlim(-0.5, size + 0.5)
    axes.set_ylim(size + 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def draw_walk(axes: Axes, size: int, start: int, cells: Sequence[int], results: Sequence[int]) -> None:
    """A walk in a maze: its path, start and end, and a mark at each move whose result is withheld, in the cell it leads to.

    cells and results: (T,) of one walk.
    """
    rows, columns = np.divmod(np.array([start, *cells], dtype=int), size)
    x, y = columns + 0.5, rows + 0.5
    axes.plot(x, y, color=COLOURS[0], linewidth=2, alpha=0.8, label="walk")
    hidden = 1 + np.flatnonzero(np.asarray(results) == WITHHELD)
    axes.plot(x[hidden], y[hidden], "x", color=COLOURS[1], markersize=7, markeredgewidth=2, label="result withheld")
    axes.plot(x[0], y[0], "o", color=COLOURS[2], label="start")
    axes.plot(x[-1], y[-1], "s", color=COLOURS[0], label="end")


def zoom(axes: Axes, size: int, start: int, cells: Sequence[int], margin: int = 2) -> None:
    """Show the part of the maze that a walk stays in."""
    rows, columns = np.divmod(np.array([start, *cells], dtype=int), size)
    axes.set_xlim(columns.min() - margin - 0.1, columns.max() + margin + 1.1)
    axes.set_ylim(rows.max() + margin + 1.1, rows.min() - margin - 0.1)


def name_of(model: str) -> str:
    """A family's name for readers."""
    return NAMES.get(model, model)


def colour_of(model: str) -> str:
    """The colour of a family, the same in all figures of the study."""
    return COLOURS[ORDER.index(model) % len(COLOURS)] if model in ORDER else "#666666"


def seed_means(rows: Rows) -> dict[int, float]:
    """x -> mean of y over the rows that have this x, points on few moves left out."""
    found = defaultdict(list)
    for row in rows:
        for x, y, n in zip(row["x"], row["y"], row["n"], strict=True):
            if n >= FEW:
                found[x].append(y)
    return {x: float(np.mean(ys)) for x, ys in sorted(found.items())}


def lines(axes: Axes, rows: Rows, label: Callable[[Mapping], str], seeds: bool = False, scale: Callable[[Mapping], float] = lambda row: 1.0) -> None:
    """Accuracy curves, a line for each label, the mean over seeds; with `seeds` also each seed, thin.

    rows: `model`, `seed`, `x`, `y`, `n`. scale: what x is divided by.
    """
    groups = defaultdict(list)
    for row in rows:
        groups[label(row)].append(row)
    used: dict[str, int] = defaultdict(int)
    for name, part in groups.items():
        model = part[0]["model"]
        dash, colour = DASHES[used[model] % len(DASHES)], colour_of(model)
        used[model] += 1
        for row in part if seeds and len(part) > 1 else []:
            axes.plot(np.array(row["x"]) / scale(row), row["y"], dash, color=colour, linewidth=0.6, alpha=0.5)
        points = seed_means(part)
        axes.plot(np.array(list(points)) / scale(part[0]), list(points.values()), dash, color=colour, label=name)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("accuracy")


def paper_points(axes: Axes, points: Sequence[Mapping]) -> None:
    """The paper's numbers as dotted lines across, since the figures they belong to are lost; `label` and `accuracy` each.

    Points that round to the same hundredth share a line's place for their labels.
    """
    labels = defaultdict(list)
    for point in points:
        axes.axhline(point["accuracy"], color="#666666", linewidth=1, linestyle=":")
        labels[round(point["accuracy"], 2)].append(point["label"])
    for accuracy, names in labels.items():
        axes.annotate("\n".join(names), (0.99, accuracy), xycoords=("axes fraction", "data"), xytext=(0, -2),
                      textcoords="offset points", ha="right", va="top", fontsize="x-small", color="#444444")


def model_dots(axes: Axes, rows: Rows, tasks: Sequence[str]) -> None:
    """Test accuracy of every model in parts of the study side by side: a dot a seed, a bar at their mean.

    rows: `model`, `task`, `test_accuracy`.
    """
    rows = [row for row in rows if row["task"] in tasks]
    models = sorted({row["model"] for row in rows}, key=lambda model: (ORDER.index(model) if model in ORDER else len(ORDER), model))
    named: set[str] = set()
    for (i, model), marker in zip(enumerate(models), cycle(MARKERS), strict=False):
        for j, task in enumerate(tasks):
            values = [row["test_accuracy"] for row in rows if (row["model"], row["task"]) == (model, task)]
            if values:
                x = j + 0.16 * (i - (len(models) - 1) / 2)
                axes.plot([x] * len(values), values, marker, color=colour_of(model), markersize=5,
                          label=None if model in named else name_of(model))
                named.add(model)
                axes.hlines(np.mean(values), x - 0.06, x + 0.06, color=colour_of(model), linewidth=2)
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_xlim(-0.5, len(tasks) - 0.5)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("test accuracy, all moves")
    axes.legend(fontsize="small", loc="upper left")


def maze_panels(step: NDArray[np.integer], size: int, start: int, cells: Sequence[int], results: Sequence[int]) -> Figure:
    """The whole maze with a walk in it, and the part of the maze that the walk stays in."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.6), width_ratios=[1.1, 1])
    for axes in panels:
        draw_maze(axes, step, size)
        draw_walk(axes, size, start, cells, results)
    zoom(panels[1], size, start, cells)
    panels[1].legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, fontsize="small")
    return figure


def length_panels(series: Rows, titles: Mapping[str, str], trained: int) -> Figure:
    """Accuracy by move on the longest test walks of each part of the study, one panel a part; a dotted line where training ended.

    titles: task -> title of its panel.
    """
    by_move = [row for row in series if row["against"] == "move"]
    figure, panels = plt.subplots(1, len(titles), figsize=(9, 3.8), sharey=True)
    for axes, (task, title) in zip(panels, titles.items(), strict=True):
        part = [row for row in by_move if row["task"] == task]
        longest = max(len(row["x"]) for row in part)
        lines(axes, [row for row in part if len(row["x"]) == longest], lambda row: name_of(row["model"]))
        axes.axvline(trained, color="#666666", linewidth=1, linestyle=":")
        axes.set_xlabel("move (trained up to the dotted line)")
        axes.set_title(title)
        axes.legend(fontsize="small")
    return figure


def training_panels(series: Rows, rows: Rows, points: Sequence[Mapping], at_cost: str, at_steps: str, at_most: str) -> Figure:
    """Left: validation accuracy against updates (the form of figure 6) with the paper's points. Right: test accuracy of the three parts.

    at_cost, at_steps, at_most: the names of the parts with about equal cost, equally few updates, and as many as the most.
    """
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
    curves = [row for row in series if row["against"] == "step"]
    cheapest = max((row for row in curves if row["task"] == at_cost), key=lambda row: row["steps"])["model"]
    shown = [row for row in curves if row["task"] == at_cost or (row["task"] == at_most and row["model"] != cheapest)]
    lines(panels[0], shown, lambda row: name_of(row["model"]) + (", as many updates" if row["task"] == at_most else ""), seeds=True)
    paper_points(panels[0], points)
    panels[0].set_xlabel("updates")
    panels[0].legend(fontsize="x-small", loc="lower right")
    model_dots(panels[1], rows, [at_steps, at_cost, at_most])
    panels[1].set_xticks(range(3), ["equally few\nupdates", "about equal\ncost", "as many updates\nas the LSTM"])
    return figure


def sweep_panels(series: Rows, task: str) -> Figure:
    """Left: accuracy against withheld results so far at each p, LSTM and the Transformer with most layers. Right: against n / L at the largest p."""
    swept = [row for row in series if row["task"] == task and row["p"] > 0]
    deepest, most = max(row["layers"] for row in swept), max(row["p"] for row in swept)
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
    left = [row for row in swept if row["against"] == "withheld" and (row["model"] != "transformer" or row["layers"] == deepest)]
    lines(panels[0], sorted(left, key=lambda row: (row["model"], row["p"])), lambda row: f"{name_of(row['model'])}, p = {row['p']:g}")
    panels[0].set_xlabel("results withheld so far")
    right = [row for row in swept if row["against"] == "move" and row["p"] == most and row["model"] == "transformer"]
    lines(panels[1], right, lambda row: f"Transformer, L = {row['layers']}, p = {most:g}", scale=lambda row: row["layers"])
    panels[1].set_xlabel("n / L, moves so far a layer")
    for axes in panels:
        axes.legend(fontsize="x-small")
    return figure
