"""Figures and examples of section 8.2: accuracy against the number of diffs (figures 7 to 9), and against hidden effects.

Functions take rows and draw them; intervals are drawn as they stand in the rows.
"""

import html
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from fbam.analysis.figures import COLOURS, DASHES, MARKERS

Rows = Sequence[Mapping[str, object]]
CONTEXT_NAMES = {3: "U3, git's default", 1: "U1, one line", 0: "U0, none"}
BOX = "border:1px solid #8c959f;padding:.4em;line-height:1.25;overflow-x:auto;color:#24292f;background:#ffffff;font-size:.8em"
ONLY_WANTED, ONLY_GIVEN = "background:#d7f0dd", "background:#fbdfe0"


def accuracy_panels(rows: Rows, title: str) -> Figure:
    """Accuracy against the number of diffs N, a panel for each context, a curve for each solver, with its intervals.

    rows: `solver`, `context`, `n_diffs`, `accuracy`, `low`, `high`, of one history.
    """
    contexts = sorted({int(row["context"]) for row in rows}, reverse=True)
    figure, panels = plt.subplots(1, len(contexts), figsize=(9, 3.6), sharey=True, squeeze=False)
    for axes, context in zip(panels[0], contexts, strict=True):
        here = [row for row in rows if row["context"] == context]
        _curves(axes, here, "n_diffs", list(dict.fromkeys(row["solver"] for row in rows)), "solver")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({int(row["n_diffs"]) for row in rows})))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("diffs N")
        axes.set_title(CONTEXT_NAMES.get(context, f"U{context}"))
    panels[0][0].set_ylabel("share of files rebuilt")
    _legend(figure, panels[0][0])
    figure.suptitle(title)
    return figure


def effect_panels(rows: Rows) -> Figure:
    """Accuracy against the probability p of a hidden effect, a panel for each way of printing the file, a curve for each observer.

    rows: `observer`, `p`, `print_every`, `accuracy`, `low`, `high`, of one context. The chances stand at equal distances.
    """
    chances = sorted({float(row["p"]) for row in rows})
    placed = [dict(row) | {"place": chances.index(float(row["p"]))} for row in rows]
    ways = sorted({int(row["print_every"]) for row in rows})
    figure, panels = plt.subplots(1, len(ways), figsize=(9, 3.6), sharey=True, squeeze=False)
    for axes, every in zip(panels[0], ways, strict=True):
        here = [row for row in placed if row["print_every"] == every]
        _curves(axes, here, "place", list(dict.fromkeys(row["observer"] for row in rows)), "observer")
        axes.set_xticks(range(len(chances)), [f"{p:g}" for p in chances])
        axes.set_xlabel("probability p of a hidden effect after a diff")
        axes.set_title(f"the file is printed every {every} diffs" if every else "the file is never printed")
    panels[0][0].set_ylabel("share of files known at the end")
    _legend(figure, panels[0][0])
    return figure


def _curves(axes: Axes, rows: Rows, x: str, names: Sequence[object], column: str) -> None:
    """A curve for each name, moved sideways a little so that those on top of each other can be seen."""
    for number, name in enumerate(names):
        curve = sorted((row for row in rows if row[column] == name), key=lambda row: float(row[x]))
        shift = number - (len(names) - 1) / 2
        places = [row[x] * 1.03**shift if column == "solver" else row[x] + 0.06 * shift for row in curve]
        values = [row["accuracy"] for row in curve]
        errors = [[max(0.0, row["accuracy"] - row["low"]) for row in curve], [max(0.0, row["high"] - row["accuracy"]) for row in curve]]
        axes.errorbar(places, values, yerr=errors, capsize=2, elinewidth=0.9, markersize=4.5, label=str(name), color=COLOURS[number % 6],
                      marker=MARKERS[number % 6], linestyle=DASHES[number % 4])  # fmt: skip
    axes.set_ylim(-0.04, 1.04)


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small")


def example_html(example: Mapping[str, object]) -> str:
    """An example side by side: what was wanted on the left, what the solver gave on the right, differing lines tinted.

    example: `path`, `n_diffs`, `context`, and `rows` of [line number, wanted line, given line], None where one side has none.
    """
    rows = example["rows"]
    title = f"{example['path']}, {example['n_diffs']} diffs, {CONTEXT_NAMES.get(example['context'], example['context'])}"
    left = "\n".join(_line(f"{number:4d} ", wanted, given, ONLY_WANTED) for number, wanted, given in rows)
    right = "\n".join(_line("", given, wanted, ONLY_GIVEN) for _, wanted, given in rows)
    columns = "".join(
        f'<div style="flex:1 1 20em;min-width:0"><p>{name}</p><pre style="{BOX}">{text}</pre></div>'
        for name, text in (("the file", left), ("the approximation", right))
    )
    return f'<p><strong>{html.escape(title)}</strong></p><div style="display:flex;flex-wrap:wrap;gap:1em">{columns}</div>'


def examples_html(examples: Iterable[Mapping[str, object]]) -> str:
    """All examples, one below the other; a sentence where there is none."""
    return "".join(map(example_html, examples)) or "<p>The approximation never fails on these cases.</p>"


def _line(label: str, text: str | None, other: str | None, tint: str) -> str:
    """A line with its label, tinted where the other side differs; blank where this side has no line."""
    if text is None:
        return " " * (len(label) + 1)
    shown = html.escape(text.rstrip("\n").encode("utf-8", "replace").decode()) or " "
    return label + (shown if text == other else f'<span style="{tint}">{shown}</span>')
