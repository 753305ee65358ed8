"""Step files: the written form of the history, one step for each commit.

A step file is read line by line; the first character of a line says what the line is. Empty lines are ignored.

    # a remark                      choice NAME: A ; B        <<NAME>> stands for A or B, as the seed says
    === parens                      the step called "parens" begins
    group: calculator               neighbours of one group are put in an order that the seed picks
    branch: dicts                   the commit goes to a side branch, forked from main at its first step
    merge: dicts                    the commit joins the side branch into main
    subject: Parse parentheses      given several times: the seed picks one
    > A line of the message body.
    * create PATH                   the lines that follow, after "+", are the file
    * edit PATH                     hunks divided by "@": "|" kept, "-" removed, "+" added lines; after
                                    "@ end" added lines go to the end of the file
    * rename OLD NEW | delete PATH | newline PATH | link PATH TARGET | mode PATH 755 | word OLD NEW PATH…
    * move OLD NEW NAME…            Python functions and classes go from file OLD to the end of file NEW

A hunk has no line numbers: its kept and removed lines must occur in the file exactly once. `newline` adds the line feed that the
last line of a file lacks; "\\" after a created file leaves it out. `word` replaces a whole word in each of the files.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

_ARGUMENTS = {
    "create": (1, 1),
    "edit": (1, 1),
    "rename": (2, 2),
    "delete": (1, 1),
    "newline": (1, 1),
    "link": (2, 2),
    "mode": (2, 2),
    "move": (3, 99),
    "word": (3, 99),
}


class StepError(ValueError):
    """A step that cannot be read or does not fit the tree it is applied to."""


@dataclass(frozen=True)
class Hunk:
    """A run of lines `old` that becomes `new`; with `at_end`, `new` goes to the end of the file."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    at_end: bool = False


@dataclass(frozen=True)
class Operation:
    """One change of the tree: the verb, its arguments, and the hunks of `create` and `edit`."""

    verb: str
    arguments: tuple[str, ...]
    hunks: tuple[Hunk, ...]
    final_newline: bool
    place: str


@dataclass(frozen=True)
class Step:
    """One commit in waiting; `place` is FILE:LINE for error messages."""

    name: str
    place: str
    group: str = ""
    branch: str = ""
    merge: str = ""
    subjects: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()


@dataclass
class Script:
    """All steps in written order, and the choices that the seed decides."""

    steps: list[Step] = field(default_factory=list)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_script(folder: Path) -> Script:
    """Read every `*.steps` file of the folder in order of name; StepError names the file and the line at fault."""
    script = Script()
    for path in sorted(folder.glob("*.steps")):
        _read_file(path, script)
    names = [step.name for step in script.steps]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled or not names:
        raise StepError(f"{folder}: step names must be unique, and there must be a step; doubled: {sorted(doubled)}")
    return script


def _read_file(path: Path, script: Script) -> None:
    for number, line in enumerate(path.read_bytes().decode().split("\n"), start=1):
        place = f"{path.name}:{number}"
        if line == "" or line.startswith("#"):
            continue
        if line.startswith("choice "):
            name, _, options = line.removeprefix("choice ").partition(": ")
            script.choices[name] = tuple(options.split(" ; "))
        elif line.startswith("=== "):
            script.steps.append(Step(name=line.removeprefix("=== "), place=place))
        elif script.steps:
            script.steps[-1] = _extended(script.steps[-1], line, place)
        else:
            raise StepError(f"{place}: the line belongs to no step; begin one with '=== name'")


def _extended(step: Step, line: str, place: str) -> Step:
    """The step with one more line of its description."""
    key, colon, value = line.partition(": ")
    if colon and key in ("group", "branch", "merge"):
        return replace(step, **{key: value})
    if colon and key == "subject":
        return replace(step, subjects=(*step.subjects, value))
    if line.startswith(">"):
        return replace(step, body=(*step.body, line[2:]))
    if line.startswith("* "):
        return replace(step, operations=(*step.operations, _operation(line, place)))
    if not step.operations:
        raise StepError(f"{place}: expected a header line, a body line or an operation, got {line!r}")
    *before, last = step.operations
    return replace(step, operations=(*before, _with_payload(last, line, place)))


def _operation(line: str, place: str) -> Operation:
    verb, *arguments = line[2:].split()
    least, most = _ARGUMENTS.get(verb, (1, 0))
    if not least <= len(arguments) <= most:
        raise StepError(f"{place}: not an operation with the right arguments: {line!r}; see the top of stepfile.py")
    return Operation(verb, tuple(arguments), (Hunk(),), True, place)


def _with_payload(operation: Operation, line: str, place: str) -> Operation:
    sign, text = line[0], line[1:]
    *before, hunk = operation.hunks
    if sign == "\\":
        return replace(operation, final_newline=False)
    if sign == "@":
        begun = tuple(before) if hunk == Hunk() else operation.hunks
        return replace(operation, hunks=(*begun, Hunk(at_end=text == " end")))
    if sign not in "|-+":
        raise StepError(f"{place}: a line of a file begins with '|', '-' or '+', got {line!r}")
    old = (*hunk.old, text) if sign in "|-" else hunk.old
    new = (*hunk.new, text) if sign in "|+" else hunk.new
    return replace(operation, hunks=(*before, replace(hunk, old=old, new=new)))


def fill(text: str, chosen: dict[str, str], place: str) -> str:
    """The text with each <<name>> replaced by what was chosen for it."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in chosen:
            raise StepError(f"{place}: no choice is called {match[1]!r}; add a line 'choice {match[1]}: …'")
        return chosen[match[1]]

    return re.sub(r"<<([a-z]+)>>", value, text)
