"""Pictures of section 10.1: a history as a graph, a difference by lines and characters, actions, tokens.

The graph and the bars are drawn with matplotlib; what is text is HTML, in the colours of the page around it: inserted text is
underlined and removed text struck through, so nothing rests on colour alone.
"""

import html
from collections.abc import Iterable, Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fbam.analysis.figures import COLOURS
from fbam.analysis.player import key_label

INSERTED = "background:var(--holds-wash,#e0f2e6);color:var(--ink,#1d2127);text-decoration:underline"
REMOVED = "background:var(--error-wash,#fceeed);color:var(--ink,#1d2127);text-decoration:line-through"
MARKS = {"inserted": INSERTED, "removed": REMOVED, "kept": ""}
KEY = "border:1px solid #8c959f;border-radius:4px;padding:0 .3em;font:inherit"
TOKENS = ("background:var(--wash,#f6f6f3)", "background:var(--shape-wash,#dcf1f3)")
TOKEN = "color:var(--ink,#1d2127);border-radius:3px;padding:0 .1em;margin-right:1px"


def commit_graph(commits: Sequence[Mapping]) -> Figure:
    """A history, the newest commit on top: a dot a commit, a line to each parent, lanes side by side where it branches.

    commits: rows of `id`, `parents`, `author` and `subject`, children before parents; lines lead out of the picture to the
    parents that are not among them.
    """
    figure, axes = plt.subplots(figsize=(9, 0.27 * len(commits) + 0.4))
    lanes = lanes_of(commits)
    rows = {commit["id"]: y for y, commit in enumerate(commits)}
    for y, commit in enumerate(commits):
        lane = lanes[commit["id"]]
        for parent in commit["parents"]:
            below, x = rows.get(parent, len(commits)), lanes.get(parent, lane)
            side = max(lane, x)
            axes.plot([lane, side, side, x], [y, y + 0.7, max(below - 0.7, y + 0.7), below], color=COLOURS[side % len(COLOURS)],
                      linewidth=1.2, zorder=1)  # fmt: skip
        axes.plot(lane, y, "o", color=COLOURS[lane % len(COLOURS)], markersize=5)
    left = max(lanes.values()) + 0.6
    for y, commit in enumerate(commits):
        subject = commit["subject"] if len(commit["subject"]) <= 70 else commit["subject"][:69] + "…"
        axes.text(left, y, f"{commit['id'][:8]}   {subject}".replace("$", r"\$"), va="center", fontsize=8)
        axes.text(left + 16, y, commit["author"].replace("$", r"\$"), va="center", fontsize=8, color="#555555")
    axes.set(xlim=(-0.6, left + 20), ylim=(len(commits) - 0.2, -0.8))
    axes.axis("off")
    return figure


def lanes_of(commits: Sequence[Mapping]) -> dict[str, int]:
    """The lane of each commit, 0 for the first line of parents: a commit takes the lane of the child that has it as
    first parent, and each further parent the next free one.

    >>> lanes_of([{"id": "m", "parents": ["a", "b"]}, {"id": "b", "parents": ["a"]}, {"id": "a", "parents": []}])
    {'m': 0, 'b': 1, 'a': 0}
    """
    waiting: list[str | None] = []  # of each lane, the commit that it leads to
    found: dict[str, int] = {}
    for commit in commits:
        if commit["id"] not in waiting:
            _take(waiting, commit["id"])
        lane = found[commit["id"]] = waiting.index(commit["id"])
        waiting[:] = [None if name == commit["id"] else name for name in waiting]
        for number, parent in enumerate(commit["parents"]):
            if parent in waiting and (number or waiting.index(parent) <= lane):
                continue
            if number == 0:
                waiting[:] = [None if name == parent else name for name in waiting]
                waiting[lane] = parent
            else:
                _take(waiting, parent)
    return found


def _take(waiting: list[str | None], name: str) -> None:
    """Put a commit into the first free lane."""
    if None not in waiting:
        waiting.append(None)
    waiting[waiting.index(None)] = name


def diff_html(lines: Iterable[str]) -> str:
    """The lines of a unified diff."""
    def style(line: str) -> str:
        if line.startswith(("---", "+++", "@@")):
            return "color:var(--quiet,#59616c)"
        return {"+": INSERTED, "-": REMOVED}.get(line[:1], "").split(";text-decoration")[0]

    return _pre([_span(line.rstrip("\n"), style(line)) for line in lines], "A unified diff")


def marked_html(lines: Iterable[tuple[int, Sequence[tuple[str, str]]]]) -> str:
    """Numbered lines of runs (mark, text), see `fbam.sessions.marked`; a gap in the numbers is shown as dots."""
    pieces, before = [], None
    for number, runs in lines:
        if before is not None and number > before + 1:
            pieces.append(_span("   …", "color:var(--quiet,#59616c)"))
        marks = {mark for mark, _ in runs}
        sign = "~" if len(marks) > 1 else {"kept": " ", "inserted": "+", "removed": "-"}[marks.pop()]
        pieces.append(f"{sign} " + "".join(_span(_ends(mark, text), MARKS[mark]) for mark, text in runs))
        before = number
    return _pre(pieces, "A difference by lines and by characters inside them")


def actions_html(actions: Sequence[str]) -> str:
    """Actions in order: typed text as it is, every other key in a box, repetitions counted."""
    pieces: list[str] = []
    at = 0
    while at < len(actions):
        stop = at + 1
        if _types(actions[at]):
            while stop < len(actions) and _types(actions[stop]):
                stop += 1
            pieces.append(_span("".join(actions[at:stop]), ""))
        else:
            while stop < len(actions) and actions[stop] == actions[at]:
                stop += 1
            times = f" ×{stop - at}" if stop > at + 1 else ""
            pieces.append(_key(key_label(actions[at]) + times) + ("\n" if actions[at] == "\r" else ""))
        at = stop
    return _pre(["".join(pieces).rstrip("\n")], "Editor actions", "white-space:pre-wrap")


def tokens_html(lines: Iterable[Sequence[str]]) -> str:
    """Lines cut into tokens, neighbours in different shades; a dot stands for a space."""
    rows = ["".join(_span(token.replace(" ", "·"), f"{TOKENS[k % 2]};{TOKEN}") for k, token in enumerate(line)) for line in lines]
    return _pre(rows, "Text cut into tokens")


def action_bars(axes: Axes, counts: Mapping[str, int]) -> None:
    """A horizontal bar a kind of action, the most frequent on top, its number and share written beside it."""
    total = sum(counts.values())
    _bars(axes, counts, {name: f"{count}  ({count / total:.1%})" for name, count in counts.items()})
    axes.set_xlabel("actions")


def share_bars(axes: Axes, shares: Mapping[str, float]) -> None:
    """A horizontal bar a part of a whole, the largest on top."""
    _bars(axes, shares, {name: f"{share:.1%}" for name, share in shares.items()})
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _bars(axes: Axes, values: Mapping[str, float], labels: Mapping[str, str]) -> None:
    names = sorted(values, key=lambda name: (-values[name], name))
    bars = axes.barh(names, [values[name] for name in names], color=COLOURS[0])
    axes.bar_label(bars, [labels[name] for name in names], padding=4, fontsize=8)
    axes.set_xlim(0, max(values.values()) * 1.3)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _types(action: str) -> bool:
    return len(action) == 1 and action.isprintable()


def _ends(mark: str, text: str) -> str:
    """A new line that comes or goes by itself would not be seen: it is drawn as a sign."""
    return text.removesuffix("\n") if mark == "kept" or text.strip() else text.replace("\n", "⏎")


def _key(label: str) -> str:
    return f'<kbd style="{KEY}">{_escape(label)}</kbd>'


def _span(text: str, style: str) -> str:
    return f'<span style="{style}">{_escape(text)}</span>' if style else _escape(text)


def _escape(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode())


def _pre(lines: Sequence[str], label: str, wrap: str = "overflow-x:auto") -> str:
    body = "\n".join(lines)
    return f'<pre role="group" aria-label="{label}" tabindex="0" style="line-height:1.5;{wrap}">{body}</pre>'
