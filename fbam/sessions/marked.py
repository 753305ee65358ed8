"""What edits do to a text, character by character: kept, removed or inserted (paper, figure 12).

The marks come from carrying the edits out in order, as the editor does, on a text in which nothing is ever lost: without
what is inserted it is the old text, without what is removed the new one.
"""

from collections.abc import Iterable
from itertools import groupby

from fbam.sessions.edits import Cut, Edit

KEPT, REMOVED, INSERTED = "kept", "removed", "inserted"
Marked = list[tuple[str, str]]
"""A line as runs of (mark, text); only its last run ends with a new line."""


def marked_text(old: str, edits: Iterable[Edit]) -> list[tuple[str, str]]:
    """(mark, character) of each character of the old and the new text in their common order."""
    text = [(KEPT, character) for character in old]
    for edit in edits:
        starts = _line_starts(text)
        if isinstance(edit, Cut):
            _remove(text, *_cut_range(starts, edit))
            continue
        start = starts[edit.line] + edit.column
        _remove(text, start, start + edit.removed)
        place = _place(text, start)
        text[place:place] = [(INSERTED, character) for character in edit.text]
    return text


def marked_lines(old: str, edits: Iterable[Edit]) -> list[Marked]:
    """``marked_text`` as lines; one ends at each new line, whatever its mark."""
    lines: list[list[tuple[str, str]]] = [[]]
    for mark, character in marked_text(old, edits):
        lines[-1].append((mark, character))
        if character == "\n":
            lines.append([])
    return [[(mark, "".join(c for _, c in run)) for mark, run in groupby(line, key=lambda pair: pair[0])] for line in lines if line]


def near_changes(lines: list[Marked], context: int) -> list[tuple[int, Marked]]:
    """(number, line) of each line that differs or has one that does at most ``context`` lines away; numbers from 1."""
    changed = [k for k, line in enumerate(lines) if any(mark != KEPT for mark, _ in line)]
    near = sorted({j for k in changed for j in range(max(0, k - context), min(len(lines), k + context + 1))})
    return [(k + 1, lines[k]) for k in near]


def _visible(text: list[tuple[str, str]]) -> list[int]:
    """Places of the characters that are still there."""
    return [k for k, (mark, _) in enumerate(text) if mark != REMOVED]


def _line_starts(text: list[tuple[str, str]]) -> list[int]:
    """Number of the first visible character of each visible line; one more entry for the end."""
    visible = [character for mark, character in text if mark != REMOVED]
    return [0, *(k + 1 for k, character in enumerate(visible) if character == "\n"), len(visible) + 1]


def _cut_range(starts: list[int], edit: Cut) -> tuple[int, int]:
    """Visible characters of whole lines; of the last line of a text the new line before it."""
    start, stop = starts[edit.line], starts[edit.line + edit.count]
    return (max(start - 1, 0), stop - 1) if stop == starts[-1] else (start, stop)


def _place(text: list[tuple[str, str]], number: int) -> int:
    """Where visible character ``number`` stands, or the end."""
    visible = _visible(text)
    return visible[number] if number < len(visible) else len(text)


def _remove(text: list[tuple[str, str]], start: int, stop: int) -> None:
    """Mark the visible characters start to stop - 1; what was inserted only to be removed again disappears."""
    for k in reversed(_visible(text)[start:stop]):
        if text[k][0] == INSERTED:
            del text[k]
        else:
            text[k] = (REMOVED, text[k][1])
