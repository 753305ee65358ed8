"""Where the parts of the screen stand (paper, figure 14).

From 24 x 80 on the frame is a multiplexer of three panes above a bar:

    tree (a fifth of the columns) | editor (two thirds of the rows)
                                  |--------------------------------
                                  | shell
    mode      path of the file      command or complaint      place

Below 24 x 80 one pane, which is the shell or the editor, stands above the bar.
"""

from typing import NamedTuple

MIN_ROWS, MIN_COLS, MAX_SIZE = 3, 12, 1000
PANES_ROWS, PANES_COLS = 24, 80
"""Smallest frame with three panes."""
MODE_COLUMNS, PLACE_COLUMNS = 9, 15
"""Cells of the mode and of the cursor's place in the bar of three panes."""


class ScreenError(ValueError):
    """A frame too small or too large to draw in."""


class Pane(NamedTuple):
    """A rectangle of the frame, in cells."""

    row: int
    col: int
    rows: int
    cols: int


class Layout(NamedTuple):
    """Where the parts of the screen stand; with one pane the tree has no columns, and editor and shell share a pane."""

    tree: Pane
    editor: Pane
    shell: Pane
    bar: Pane

    @property
    def divided(self) -> bool:
        """Whether there are three panes."""
        return self.tree.cols > 0


class Bar(NamedTuple):
    """The parts of the bar of three panes, from left to right."""

    mode: Pane
    name: Pane
    command: Pane
    place: Pane


def layout(rows: int, cols: int) -> Layout:
    """Divide a frame of (R, C) cells.

    :raises ScreenError: the frame is smaller than 3 x 12 or larger than 1000 x 1000
    """
    if not (MIN_ROWS <= rows <= MAX_SIZE and MIN_COLS <= cols <= MAX_SIZE):
        sizes = f"{MIN_ROWS} to {MAX_SIZE} rows and {MIN_COLS} to {MAX_SIZE} columns"
        raise ScreenError(f"a screen has {sizes}, not {rows} x {cols}")
    bar = Pane(rows - 1, 0, 1, cols)
    if rows < PANES_ROWS or cols < PANES_COLS:
        main = Pane(0, 0, rows - 1, cols)
        return Layout(Pane(0, 0, rows - 1, 0), main, main, bar)
    left, lower = cols // 5, (rows - 2) // 3
    upper = rows - 2 - lower
    editor, shell = (Pane(row, left + 1, n, cols - left - 1) for row, n in ((0, upper), (upper + 1, lower)))
    return Layout(Pane(0, 0, rows - 1, left), editor, shell, bar)


def divide_bar(bar: Pane) -> Bar:
    """Divide the bar of three panes: mode and place have a fixed width, path and command share the rest."""
    middle = bar.cols - MODE_COLUMNS - PLACE_COLUMNS
    sizes = (MODE_COLUMNS, middle // 2, middle - middle // 2, PLACE_COLUMNS)
    return Bar(*(Pane(bar.row, bar.col + sum(sizes[:k]), 1, size) for k, size in enumerate(sizes)))
