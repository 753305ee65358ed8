"""The file tree of the left pane (paper, figure 14): every directory on the way to the shown file is open, no other is.

A tree depends on the names that exist and on the shown file alone, so it stands still while text is typed.
"""

from fbam.sessions.files import FileSystem

OPEN, CLOSED, FILE = "\u25be ", "\u25b8 ", "  "
"""What stands before the name of a directory that is open, of one that is closed, and of a file."""


def tree(files: FileSystem, shown: str | None) -> list[tuple[str, str]]:
    """(path, text of its row) from top to bottom: directories first, then files, each by name."""
    ways = parents(shown) if shown else []
    rows: list[tuple[str, str]] = []
    waiting = files.below("")[::-1]
    while waiting:
        path = waiting.pop()
        mark = FILE if path not in files.directories else OPEN if path in ways else CLOSED
        rows.append((path, row_text(path, mark)))
        if mark == OPEN:
            waiting += files.below(path)[::-1]
    return rows


def row_text(path: str, mark: str) -> str:
    """The row of a path without a limit of width."""
    return "  " * path.count("/") + mark + path.rpartition("/")[2]


def parents(path: str) -> list[str]:
    """The directories above a path, the root aside."""
    parts = path.split("/")
    return ["/".join(parts[:k]) for k in range(1, len(parts))]
