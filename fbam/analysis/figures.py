"""One look for every figure: functions that take rows and draw them on axes, and compute nothing but a mean.

    use_style()
    figure, axes = plt.subplots()
    loss_against_length(axes, rows, {"fit": (5.1, 0.2)})
    plt.show()

Colours are those of Okabe and Ito, which stay apart for colour-blind readers, and each series has a marker or dash of its own.
Figures are SVG with a fixed hash salt and no date, so the same rows give the same bytes.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator
from matplotlib_inline.backend_inline import set_matplotlib_formats
from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's palette without its yellow and sky blue, which are too pale for lines on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
METADATA = {"Date": None}
STYLE = {
    "figure.figsize": (6.4, 3.8),
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "svg.hashsalt": "fbam",
}
Rows = Iterable[Mapping[str, object]]


def use_style() -> None:
    """Apply the style to all figures of this process; in a notebook, also show them as SVG without a date."""
    mpl.rcParams.update(STYLE)
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata=METADATA)


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same bytes for the same content."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": STYLE["svg.hashsalt"]}):
        figure.savefig(buffer, format="svg", metadata=METADATA)
    return buffer.getvalue()


def loss_against_length(axes: Axes, rows: Rows, laws: Mapping[str, tuple[float, float]]) -> None:
    """Loss against trained length L in logarithms: a point a run, and each law `A L^-alpha` over the same lengths.

    rows: `length` and `loss`, one a run. laws: label -> (A, alpha), ours and the paper's.
    """
    lengths, losses = _columns(rows, "length", "loss")
    axes.plot(lengths, losses, "o", color=COLOURS[0], label="runs", zorder=3)
    ends = np.array([lengths.min(), lengths.max()])
    for (label, (A, alpha)), colour, dash in zip(laws.items(), cycle(COLOURS), cycle(DASHES), strict=False):
        axes.plot(ends, A * ends**-alpha, dash, color=colour, label=f"{label}: {A:.2f} L$^{{{-alpha:.3f}}}$")
    length_axis(axes, lengths)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.set_ylabel("loss, nats an action")
    axes.legend(loc="upper right")


def scaling_panels(points: Mapping[str, Rows], laws: Mapping[str, tuple[float, float]], step: int) -> Figure:
    """`loss_against_length` of each family side by side at one step, on one scale of loss.

    points: family -> rows of `length` and `loss`. laws: family -> (A, alpha).
    """
    figure, panels = plt.subplots(1, len(points), figsize=(9, 3.8), sharey=True, squeeze=False)
    for axes, (family, rows) in zip(panels[0], points.items(), strict=True):
        loss_against_length(axes, rows, {"fit": laws[family]})
        axes.set_title(f"{family}, step {step}")
    return figure


def loss_curves(axes: Axes, rows: Rows, window: int, every: int = 1) -> None:
    """Training loss against the step, as a mean over the last `window` steps, one line a run, darker for longer sequences.

    rows: `length` and `losses`, a loss every `every` steps. Raises ValueError when a run is shorter than the window.
    """
    runs = sorted(((int(row["length"]), row["losses"]) for row in rows), key=lambda run: run[0])
    distinct = sorted({length for length, _ in runs})
    shades = dict(zip(distinct, mpl.colormaps["viridis_r"](np.linspace(0.3, 1, len(distinct))), strict=True))
    dashes = dict(zip(distinct, cycle(DASHES), strict=False))
    labelled: set[int] = set()
    for length, losses in runs:
        means = _running_mean(losses, window // every)
        label = None if length in labelled else f"L = {length}"
        axes.plot(window + every * np.arange(len(means)), means, dashes[length], color=shades[length], label=label)
        labelled.add(length)
    axes.set_xlabel("step s")
    axes.set_ylabel(f"loss, nats an action, mean of {window} steps")
    axes.legend()


def plain_ticks(axis: Axis) -> None:
    """Numbers without powers on a logarithmic axis: a power of ten, and twice, three and five times it."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def loss_against_labels(axes: Axes, rows: Rows, window: int, every: int) -> None:
    """Training loss against the labels seen so far, one line a run, darker for longer sequences, a dash for each batch.

    rows: `length`, `batch`, `seed` and `losses`, a loss every `every` steps; each point is the mean of `window` steps.
    """
    runs = {(row["length"], row["batch"], row["seed"]): row["losses"] for row in rows}  # one that two families share counts once
    shades = _shades(length for length, _, _ in runs)
    batches = {length: sorted({batch for other, batch, _ in runs if other == length}) for length in shades}
    for (length, batch, seed), losses in sorted(runs.items()):
        means = _running_mean(losses, window // every)
        labels = (window + every * np.arange(len(means))) * length * batch
        dash = DASHES[batches[length].index(batch) % len(DASHES)]
        first = seed == min(other for *run, other in runs if run == [length, batch])
        axes.plot(labels, means, dash, color=shades[length], label=f"L = {length}, batch {batch}" if first else None)
    axes.set_xscale("log")
    axes.set_xlabel("labels seen")
    axes.set_ylabel("loss, nats an action")
    axes.legend(fontsize="x-small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def reference_lines(axes: Axes, losses: Mapping[str, float]) -> None:
    """A dotted horizontal line for each predictor that sees no frame, its name written on it."""
    for name, loss in losses.items():
        axes.axhline(loss, color="#666666", linewidth=1, linestyle=":")
        axes.annotate(name, (0.01, loss), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
                      fontsize="small", color="#444444")


def flops_bars(axes: Axes, rows: Rows) -> None:
    """A horizontal bar a component, in logarithms, the first row on top and the number written beside each bar.

    rows: `component` and `flops`.
    """
    rows = list(rows)
    (flops,) = _columns(rows, "flops")
    bars = axes.barh([str(row["component"]) for row in rows], flops, color=COLOURS[0])
    axes.bar_label(bars, [f"{value:.2e}" for value in flops], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(flops.min() / 10, flops.max() * 10)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("forward FLOPs a batch")


def _columns(rows: Rows, *names: str) -> list[NDArray[np.float64]]:
    rows = list(rows)
    if not rows:
        raise ValueError(f"there is nothing to draw: no rows with {', '.join(names)}")
    return [np.array([row[name] for row in rows], dtype=float) for name in names]


def length_axis(axes: Axes, lengths: Sequence[float] | NDArray[np.float64]) -> None:
    """A logarithmic axis of trained lengths with a tick at each."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(np.unique(lengths)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("trained sequence length L, frames")


def _shades(lengths: Iterable[int]) -> dict[int, NDArray[np.float64]]:
    """A colour for each different length, in rising order, darker for longer."""
    distinct = sorted(set(lengths))
    return dict(zip(distinct, mpl.colormaps["viridis_r"](np.linspace(0.15, 1, len(distinct))), strict=True))


def _running_mean(losses: ArrayLike, window: int) -> NDArray[np.float64]:
    values = np.asarray(losses, dtype=float)  # (S,)
    if not 1 <= window <= len(values):
        raise ValueError(f"no mean over {window} steps in a run of {len(values)} steps")
    return np.convolve(values, np.full(window, 1 / window), mode="valid")
