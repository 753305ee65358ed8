"""Side effects of commands on a file: S_t = sideeffect(apply(S_{t-1}, delta_t)), equation 7 of the paper (section 8.2.1).

The agent sees which command it ran and not what the command did. Each effect is a function of the whole file, so what a later one
does depends on all that the earlier ones left.
"""

import re
from collections import Counter
from collections.abc import Callable

from fbam.tasks.patches import Lines

NAME = re.compile(r"\b[a-z_][a-z_0-9]{2,}\b")
KEPT_NAMES = frozenset("and assert class continue def elif else except for from import not pass raise return self try while with yield".split())
RENAMED = "_new"
GENERATED = "# generated: names defined above\n"


def reformat(lines: Lines) -> Lines:
    """A formatter: no space at line ends, one space around a lone =, at most one blank line in a row, a line feed at the end."""
    tidy = [re.sub(r"(?<=[\w)\]]) *= *(?=[\w(\[\"'])", " = ", line.rstrip()) + "\n" for line in lines]
    return [line for line, before in zip(tidy, ["", *tidy], strict=False) if line != "\n" or before != "\n"]


def rename(lines: Lines) -> Lines:
    """A refactoring: the most frequent name that has not been renamed yet gets a new one, the first in the alphabet at equal counts."""
    counts = Counter(name for line in lines for name in NAME.findall(line))
    names = [(-count, name) for name, count in counts.items() if name not in KEPT_NAMES and not name.endswith(RENAMED)]
    if not names:
        return list(lines)
    _, chosen = min(names)
    return [re.sub(rf"\b{chosen}\b", chosen + RENAMED, line) for line in lines]


def generate(lines: Lines) -> Lines:
    """A generator: writes the list of all names that the file defines anew, as its last part."""
    above = lines[: lines.index(GENERATED)] if GENERATED in lines else list(lines)
    if above and not above[-1].endswith("\n"):
        above[-1] += "\n"
    names = [match.group(1) for line in above if (match := re.match(r"\s*(?:def|class) (\w+)", line))]
    return [*above, GENERATED, *(f"# {number} {name}\n" for number, name in enumerate(names, start=1))]


NO_EFFECT = "test"
EFFECTS: dict[str, Callable[[Lines], Lines]] = {NO_EFFECT: list, "format": reformat, "rename": rename, "generate": generate}
