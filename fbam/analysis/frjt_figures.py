"""Figures of the jumps and criticality studies, in the form of the paper's figures 2 to 4; they take rows and compute means only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from fbam.analysis.figures import COLOURS, DASHES, MARKERS

Rows = Iterable[Mapping[str, object]]
GREY = "#777777"
NAMES = {"lstm": "LSTM", "transformer": "Transformer", "transformer_rotary": "Transformer, rotary", "mamba": "Mamba", "mamba2": "Mamba-2"}


def name_of(model: str) -> str:
    """A family as it is written in figures and tables."""
    return NAMES.get(model, model)


def _grouped(rows: Rows, *keys: str) -> dict[tuple, list[Mapping[str, object]]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    if not groups:
        raise ValueError(f"there is nothing to draw: no rows with {', '.join(keys)}")
    return dict(groups)


def _depth_axis(axes: Axes, depths: Iterable[float], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted(set(depths))))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def accuracy_against_depth(axes: Axes, rows: Rows, baselines: Rows, predictors: Iterable[str], field: str = "test_accuracy") -> None:
    """Accuracy against the depth of the tested program: the mean over seeds of each model, a dot a run, and predictors as dotted lines.

    rows: `model`, `depth`, `seed` and `field`. baselines: `predictor`, `depth`, `accuracy`.
    """
    rows = list(rows)
    for number, ((model,), found) in enumerate(_grouped(rows, "model").items()):
        means = {depth: fmean(row[field] for row in group) for (depth,), group in sorted(_grouped(found, "depth").items())}
        axes.plot(means.keys(), means.values(), MARKERS[number] + "-", color=COLOURS[number], label=name_of(model))
        axes.plot([row["depth"] for row in found], [row[field] for row in found], ".", color=COLOURS[number], markersize=3, alpha=0.7)
    baselines = _grouped(baselines, "predictor")
    for number, predictor in enumerate(predictors):
        line = sorted((row["depth"], row["accuracy"]) for row in baselines[predictor,])
        axes.plot(*zip(*line, strict=True), DASHES[1 + number % 3], color=GREY, linewidth=1, label=predictor)
    _depth_axis(axes, (row["depth"] for row in rows), "blocks of the tested program")
    axes.set_ylim(0.45, 1.01)
    axes.set_ylabel(field.replace("_", " "))
    axes.legend(fontsize="small")


def train_and_validation(rows: Rows) -> Figure:
    """Training accuracy beside validation accuracy against depth, a panel a model, one line a seed."""
    groups = _grouped(rows, "model")
    figure, panels = plt.subplots(1, len(groups), figsize=(9, 3.2), sharey=True, squeeze=False)
    for axes, ((model,), found) in zip(panels[0], groups.items(), strict=True):
        for number, (field, dash) in enumerate([("train_accuracy", "-"), ("validation_accuracy", "--")]):
            for (seed,), run in _grouped(found, "seed").items():
                points = sorted((row["depth"], row[field]) for row in run)
                label = field.split("_")[0] if seed == found[0]["seed"] else None
                axes.plot(*zip(*points, strict=True), dash, marker=MARKERS[number], markersize=4, color=COLOURS[number], label=label)
        axes.set_title(name_of(model))
        axes.set_xlabel("blocks of the program")
    panels[0][0].set_ylabel("accuracy")
    panels[0][0].legend()
    return figure


def learning_curves(rows: Rows, seconds: Mapping[tuple, float] | None = None) -> Figure:
    """Depth that the curriculum reached, and mean validation accuracy, against the step, or against processor seconds where
    `seconds` gives the cost of a step for (model, seed)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    rows = list(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    for (model, seed), run in _grouped(rows, "model", "seed").items():
        number = models.index(model)
        scale = seconds[model, seed] if seconds else 1
        x = [row["step"] * scale for row in run]
        label = name_of(model) if seed == min(row["seed"] for row in rows if row["model"] == model) else None
        left.plot(x, [row["deepest"] for row in run], DASHES[number % 4], color=COLOURS[number], label=label)
        right.plot(x, [row["validation_accuracy"] for row in run], DASHES[number % 4], color=COLOURS[number], label=label)
    for axes in (left, right):
        axes.set_xlabel("processor seconds" if seconds else "step")
    left.set_yscale("log", base=2)
    left.yaxis.set_major_formatter("{x:g}")
    left.set_ylabel("deepest programs trained on")
    right.set_ylabel("validation accuracy, mean over depths")
    left.legend()
    return figure


def overfitting(rows: Rows) -> Figure:
    """Training loss beside validation loss against the step, a panel a model."""
    groups = _grouped(rows, "model")
    figure, panels = plt.subplots(1, len(groups), figsize=(9, 3.2), sharey=True, squeeze=False)
    for axes, ((model,), found) in zip(panels[0], groups.items(), strict=True):
        for run in _grouped(found, "seed").values():
            first = run is found or run[0]["seed"] == found[0]["seed"]
            for number, field in enumerate(["train_loss", "validation_loss"]):
                axes.plot([row["step"] for row in run], [row[field] for row in run], DASHES[number], color=COLOURS[number],
                          label=field.replace("_", " ") if first else None)
        axes.set_title(name_of(model))
        axes.set_xlabel("step")
    panels[0][0].set_ylabel("cross entropy, nats")
    panels[0][0].legend()
    return figure


def paper_and_ours(axes: Axes, paper: Mapping[str, Rows], rows: Rows) -> None:
    """Validation accuracy against the number of layers, one line a maximal depth (figures 2 and 3): the paper's Mamba hollow and
    dashed, its other points as text, ours filled.

    paper: model -> `max_depth`, `validation`, and `layers` where known. rows: `model`, `layers`, `max_depth`, `validation_accuracy`.
    """
    ours = list(rows)
    depths = sorted({point["max_depth"] for point in paper["mamba"]} | {row["max_depth"] for row in ours})
    for number, depth in enumerate(depths):
        line = sorted((point["layers"], point["validation"]) for point in paper["mamba"] if point["max_depth"] == depth)
        if line:
            axes.plot(*zip(*line, strict=True), "o--", mfc="none", color=COLOURS[number], label=f"paper, Mamba to depth {depth}")
        for marker, model in zip(MARKERS[1:], dict.fromkeys(row["model"] for row in ours), strict=False):
            mine = [(row["layers"], row["validation_accuracy"]) for row in ours if (row["model"], row["max_depth"]) == (model, depth)]
            if mine:
                axes.plot(*zip(*mine, strict=True), marker, color=COLOURS[number], label=f"ours, {name_of(model)} to depth {depth}")
    for model in ("lstm", "transformer"):
        for point in paper[model]:
            axes.axhline(point["validation"], color=GREY, linewidth=0.8, linestyle=":")
            axes.annotate(f"paper, {name_of(model)} to depth {point['max_depth']}" + (" *" if point["source"] != "paper" else ""),
                          (0.99, point["validation"]), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
                          fontsize="small", color="#444444", ha="right")
    axes.set_xlabel("layers")
    axes.set_ylabel("validation accuracy")
    axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)


def failing_depths(axes: Axes, rows: Rows, laws: Mapping[str, Mapping[str, float]]) -> None:
    """Failing depth against layers with intervals, and for each fitted model its laws through the points.

    rows: `model`, `layers`, `depth`, `low`, `high`, `bound`. laws: model -> law -> constant.
    """
    groups = _grouped(rows, "model")
    for number, ((model,), found) in enumerate(groups.items()):
        x = np.array([row["layers"] for row in found], float) * (1 + 0.03 * number)
        depth, low, high = (np.array([row[key] for row in found], float) for key in ("depth", "low", "high"))
        error = [np.maximum(0, depth - low), np.maximum(0, high - depth)]
        axes.errorbar(x, depth, yerr=error, fmt=MARKERS[number], capsize=4, color=COLOURS[number], label=name_of(model))
        for row, at in zip(found, x, strict=True):
            if row["bound"] != "reached":
                axes.annotate("at least" if row["bound"] == "above" else "at most", (at, row["depth"]), xytext=(6, 4),
                              textcoords="offset points", fontsize="small")
        grid = np.linspace(min(x), max(x), 50)
        for dash, (law, constant) in zip(DASHES[1:], laws.get(model, {}).items(), strict=False):
            growth = {"c L": grid, "a 2^L": 2.0**grid, "constant": np.ones_like(grid)}[law]
            axes.plot(grid, constant * growth, dash, color=COLOURS[number], linewidth=1, label=f"{name_of(model)}: {law}")
    _depth_axis(axes, (row["layers"] for row in rows), "layers L")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("blocks at which accuracy falls below the threshold")
    axes.legend(fontsize="small")


def accuracy_by_layers(rows: Rows, threshold: float) -> Figure:
    """Mean test accuracy against depth, a panel a model, one line a number of layers, the threshold dotted."""
    groups = _grouped(rows, "model")
    figure, panels = plt.subplots(1, len(groups), figsize=(9, 3.4), sharey=True, squeeze=False)
    for axes, ((model,), found) in zip(panels[0], groups.items(), strict=True):
        for number, ((layers,), group) in enumerate(sorted(_grouped(found, "layers").items())):
            means = {depth: fmean(row["test_accuracy"] for row in at) for (depth,), at in sorted(_grouped(group, "depth").items())}
            axes.plot(means.keys(), means.values(), MARKERS[number] + DASHES[number % 4], color=COLOURS[number],
                      label=f"{layers} layer" + "s" * (layers > 1))
        axes.axhline(threshold, color=GREY, linewidth=1, linestyle=":")
        axes.set_title(name_of(model))
        _depth_axis(axes, [depth for depth in means if np.log2(depth) % 1 == 0], "blocks of the tested program")
        axes.legend(fontsize="small")
    panels[0][0].set_ylabel("test accuracy")
    return figure
