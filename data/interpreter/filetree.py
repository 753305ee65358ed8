"""A tree of files held in memory, and the operations of a step on it.

Nothing is guessed: an operation whose file or search text is missing or ambiguous raises StepError with the place of the step.
"""

import ast
import re
from dataclasses import dataclass, replace

from stepfile import Hunk, Operation, Step, StepError, fill

REGULAR, EXECUTABLE, LINK = 0o100644, 0o100755, 0o120000


@dataclass(frozen=True)
class File:
    """Text and git file mode; the text of a link is its target."""

    text: str
    mode: int = REGULAR


Tree = dict[str, File]


def apply_step(step: Step, tree: Tree, chosen: dict[str, str]) -> Tree:
    """The tree after the step; the tree given is left as it is."""
    tree = dict(tree)
    for operation in step.operations:
        arguments = [fill(argument, chosen, operation.place) for argument in operation.arguments]
        _VERBS[operation.verb](tree, operation, chosen, *arguments)
    return tree


def _take(tree: Tree, path: str, operation: Operation) -> File:
    if path not in tree:
        raise StepError(f"{operation.place}: {operation.verb} {path}: there is no such file in the tree")
    return tree[path]


def _free(tree: Tree, path: str, operation: Operation) -> None:
    if path in tree:
        raise StepError(f"{operation.place}: {operation.verb} {path}: the file exists already")


def _create(tree: Tree, operation: Operation, chosen: dict[str, str], path: str) -> None:
    _free(tree, path, operation)
    lines = [fill(line, chosen, operation.place) for line in operation.hunks[0].new]
    text = "\n".join(lines)
    tree[path] = File(text + "\n" if lines and operation.final_newline else text)


def _edit(tree: Tree, operation: Operation, chosen: dict[str, str], path: str) -> None:
    file = _take(tree, path, operation)
    lines = file.text.split("\n")
    for hunk in operation.hunks:
        old = [fill(line, chosen, operation.place) for line in hunk.old]
        new = [fill(line, chosen, operation.place) for line in hunk.new]
        start = len(lines) - 1 if hunk.at_end else _only_match(lines, old, path, operation)
        lines[start : start + len(old)] = new
        if old == new:
            raise StepError(f"{operation.place}: edit {path}: a hunk changes nothing:\n" + "\n".join(old))
    tree[path] = replace(file, text="\n".join(lines))


def _only_match(lines: list[str], old: list[str], path: str, operation: Operation) -> int:
    """Index of the first line of the one place where the lines `old` stand."""
    size = len(old)
    starts = [at for at in range(len(lines) - size + 1) if lines[at : at + size] == old]
    if len(starts) != 1 or not old:
        shown = "\n".join(old)
        raise StepError(f"{operation.place}: edit {path}: {len(starts)} places match, one is needed, for:\n{shown}")
    return starts[0]


def _rename(tree: Tree, operation: Operation, chosen: dict[str, str], path: str, target: str) -> None:
    file = _take(tree, path, operation)
    _free(tree, target, operation)
    del tree[path]
    tree[target] = file


def _delete(tree: Tree, operation: Operation, chosen: dict[str, str], path: str) -> None:
    _take(tree, path, operation)
    del tree[path]


def _newline(tree: Tree, operation: Operation, chosen: dict[str, str], path: str) -> None:
    file = _take(tree, path, operation)
    if file.text.endswith("\n"):
        raise StepError(f"{operation.place}: newline {path}: the file ends with a line feed already")
    tree[path] = replace(file, text=file.text + "\n")


def _link(tree: Tree, operation: Operation, chosen: dict[str, str], path: str, target: str) -> None:
    _free(tree, path, operation)
    tree[path] = File(target, LINK)


def _mode(tree: Tree, operation: Operation, chosen: dict[str, str], path: str, mode: str) -> None:
    modes = {"644": REGULAR, "755": EXECUTABLE}
    file = _take(tree, path, operation)
    if modes.get(mode) in (None, file.mode):
        raise StepError(f"{operation.place}: mode {path}: {mode} is not 644 or 755, or is the mode already")
    tree[path] = replace(file, mode=modes[mode])


def _word(tree: Tree, operation: Operation, chosen: dict[str, str], old: str, new: str, *paths: str) -> None:
    for path in paths:
        file = _take(tree, path, operation)
        text, count = re.subn(rf"\b{re.escape(old)}\b", lambda _: new, file.text)
        if not count:
            raise StepError(f"{operation.place}: word {old}: the word does not occur in {path}")
        tree[path] = replace(file, text=text)


def _move(tree: Tree, operation: Operation, chosen: dict[str, str], path: str, target: str, *names: str) -> None:
    lines = _take(tree, path, operation).text.split("\n")
    moved = _take(tree, target, operation).text
    for name in names:
        found = [node for node in ast.parse("\n".join(lines)).body if getattr(node, "name", None) == name]
        if len(found) != 1:
            raise StepError(f"{operation.place}: move {name}: {path} has {len(found)} definitions of it, one is needed")
        start = min(node.lineno for node in (found[0], *found[0].decorator_list)) - 1
        moved += "\n\n" + "\n".join(lines[start : found[0].end_lineno]) + "\n"
        after = found[0].end_lineno
        while after < len(lines) - 1 and lines[after] == "":
            after += 1
        del lines[start:after]
    while lines[-2:] == ["", ""]:
        lines.pop()
    tree[path] = replace(tree[path], text="\n".join(lines))
    tree[target] = replace(tree[target], text=moved)


_VERBS = {
    "create": _create,
    "edit": _edit,
    "rename": _rename,
    "delete": _delete,
    "newline": _newline,
    "link": _link,
    "mode": _mode,
    "move": _move,
    "word": _word,
}
