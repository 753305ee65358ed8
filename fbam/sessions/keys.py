"""From an edit to the keys that carry it out in the editor (paper, section 10.1, figure 13).

The keys follow from the state of the editor they will be pressed on: cursor, mode, lengths of lines, page. Of the ways
to reach a place, arrows, page keys with arrows, and ``:N``, each followed by the best of arrows, Home and End, the
shortest is taken; likewise of the ways to remove text.
"""

from fbam.sessions.actions import (
    BACKSPACE, DELETE, DOWN, END, ENTER, ESCAPE, HOME, KILL_BEFORE, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, UP, keystrokes, paste,
)  # fmt: skip
from fbam.sessions.editor import INSERT, NORMAL, Editor
from fbam.sessions.edits import Cut, Edit, Splice


def edit_keys(editor: Editor, edit: Edit, pasting: bool = False) -> list[str]:
    """The actions that carry out ``edit`` on ``editor``, which must be in NORMAL or INSERT mode.

    :param pasting: paste the text even where the edit does not ask for it
    """
    if isinstance(edit, Cut):
        return _cut(editor, edit)
    keys = _removal(editor, edit) if edit.removed else reach(editor, edit.line, edit.column)
    if not edit.text:
        return keys
    if edit.paste or pasting and len(edit.text) > 1:
        return [*keys, paste(edit.text)]
    return keys + keystrokes(edit.text)


def reach(editor: Editor, line: int, column: int) -> list[str]:
    """The shortest way found to stand at (``line``, ``column``) in INSERT mode."""
    inserting = editor.mode == INSERT
    along = _across(0, column, len(editor.lines[line]))
    by_number = [*([ESCAPE] if inserting else []), *f":{line + 1}", ENTER, "i", *along]
    walks = (_walk(editor, line, column, pages, len(by_number)) for pages in _page_counts(editor, line))
    ways = [keys if inserting else ["i", *keys] for keys in walks if keys is not None]
    return min([*ways, by_number], key=len)


def leave_keys(editor: Editor) -> list[str]:
    """Save and close."""
    return ([ESCAPE] if editor.mode != NORMAL else []) + [":", "w", "q", ENTER]


def _page_counts(editor: Editor, line: int) -> list[int]:
    """Signed numbers of page keys worth trying: none, and the two whose landing places enclose the line."""
    distance = line - editor.line
    pages = abs(distance) // editor.page
    sign = 1 if distance > 0 else -1
    return sorted({0, sign * pages, sign * (pages + 1)}, key=abs)


def _walk(editor: Editor, line: int, column: int, pages: int, limit: int) -> list[str] | None:
    """``pages`` page keys, then arrows, then along the line; None where that takes ``limit`` keys or more.

    A vertical step onto a shorter line takes the cursor to its end, and it stays in that column.
    """
    page = editor.page if pages > 0 else -editor.page
    last = len(editor.lines) - 1
    landing = [min(max(editor.line + page * (k + 1), 0), last) for k in range(min(abs(pages), limit))]
    at = landing[-1] if landing else editor.line
    if len(landing) + abs(line - at) >= limit:
        return None
    step = 1 if line > at else -1
    visited = [*landing, *range(at + step, line + step, step)] if line != at else landing
    at_column = min([editor.column, *(len(editor.lines[k]) for k in visited)])
    vertical = [PAGE_DOWN if pages > 0 else PAGE_UP] * len(landing) + [DOWN if line > at else UP] * abs(line - at)
    return vertical + _across(at_column, column, len(editor.lines[line]))


def _across(start: int, stop: int, length: int) -> list[str]:
    """The fewest keys from one column of a line to another."""
    straight, from_home, from_end = abs(stop - start), 1 + stop, 1 + length - stop
    if straight <= min(from_home, from_end):
        return [RIGHT if stop > start else LEFT] * straight
    return [HOME] + [RIGHT] * stop if from_home <= from_end else [END] + [LEFT] * (length - stop)


def _removal(editor: Editor, edit: Splice) -> list[str]:
    """Remove from behind, from in front, or, at the start of a line, with Control-U."""
    stop = edit.column + edit.removed
    from_behind = reach(editor, edit.line, stop)
    ways = [
        from_behind + [BACKSPACE] * edit.removed,
        reach(editor, edit.line, edit.column) + [DELETE] * edit.removed,
    ]
    if edit.column == 0:
        ways.append([*from_behind, KILL_BEFORE])
    return min(ways, key=len)


def _cut(editor: Editor, edit: Cut) -> list[str]:
    """Delete lines by number, or with Delete from the end of the line above where that is shorter."""
    first, last = edit.line + 1, edit.line + edit.count
    numbers = f"{first},{last}" if edit.count > 1 else str(first)
    by_number = [*([ESCAPE] if editor.mode == INSERT else []), ":", *numbers, "d", ENTER]
    if edit.line == 0:
        return by_number
    above = edit.line - 1
    characters = sum(len(editor.lines[k]) + 1 for k in range(edit.line, last))
    if characters > len(by_number):
        return by_number
    joined = reach(editor, above, len(editor.lines[above])) + [DELETE] * characters
    return joined if len(joined) <= len(by_number) + 1 else by_number  # by number leaves INSERT: one key to return
