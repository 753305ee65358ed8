"""Judges: is a candidate file the one asked for? (Paper, section 8.2.2.)

The paper's judge is a language model that is told to allow other formatting and another order of function declarations. Here:

* bytes: the same content;
* syntax tree: the same Python, formatting, comments and the order of neighbouring definitions ignored;
* lines: no line inserted, deleted or replaced, blank lines and space at line ends ignored; the distance is reported too.

A judge that cannot tell, as of a target that is no Python, says None and is not counted.
"""

import ast
import warnings
from functools import lru_cache
from itertools import combinations, groupby
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from fbam.tasks.patches import split_lines

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Verdicts(NamedTuple):
    """What the judges say of one candidate; ``distance`` in lines, of the files as they are."""

    bytes: bool
    tree: bool | None
    lines: bool
    distance: int

    @property
    def equivalent(self) -> bool:
        """The verdict that counts: of the syntax tree, of the bytes where there is none."""
        return self.bytes if self.tree is None else self.tree


class Agreement(NamedTuple):
    """Two judges on the cases that both judged: share of equal verdicts, and Cohen's kappa, None where it is undefined."""

    cases: int
    agreed: float
    kappa: float | None


def judge(candidate: str, target: str) -> Verdicts:
    """Hold a candidate against the target."""
    same = candidate == target
    plain = line_distance(_bare(candidate), _bare(target)) == 0
    distance = 0 if same else line_distance(split_lines(candidate), split_lines(target))
    return Verdicts(same, same_tree(candidate, target), plain, distance)


def line_distance(one: list[str], other: list[str]) -> int:
    """Fewest lines inserted, deleted or replaced that lead from one list to the other."""
    numbers: dict[str, int] = {}  # rapidfuzz compares by hash, so equal numbers stand for equal lines
    coded = [[numbers.setdefault(line, len(numbers)) for line in lines] for lines in (one, other)]
    return Levenshtein.distance(*coded)


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def same_tree(candidate: str, target: str) -> bool | None:
    """Whether both are the same Python up to formatting, comments and the order of neighbouring definitions.

    :returns: None if the target itself does not parse
    """
    wanted = _normal_form(target)
    return None if wanted is None else candidate == target or _normal_form(candidate) == wanted


@lru_cache(maxsize=256)
def _normal_form(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in other people's code
            return ast.dump(_Sorted().visit(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Sorted(ast.NodeTransformer):
    """Sorts neighbouring definitions by name; those of one name keep their order, as the last one counts."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, _sorted_definitions(statements))
        return node


def _sorted_definitions(statements: list[ast.AST]) -> list[ast.AST]:
    found: list[ast.AST] = []
    for are_definitions, run in groupby(statements, key=lambda node: isinstance(node, DEFINITIONS)):
        found += sorted(run, key=lambda node: node.name) if are_definitions else run
    return found


def agreement(one: list[bool | None], other: list[bool | None]) -> Agreement:
    """How far two judges agree on the same cases, in the same order.

    kappa = (agreed - expected) / (1 - expected), the agreement beyond chance (Cohen, 1960). Raises ValueError if there is no case
    that both judged.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if not pairs:
        raise ValueError("the two judges have no case in common")
    n = len(pairs)
    agreed = sum(a == b for a, b in pairs) / n
    first, second = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    expected = first * second + (1 - first) * (1 - second)
    return Agreement(n, agreed, None if expected == 1 else (agreed - expected) / (1 - expected))


def agreements(verdicts: dict[str, list[bool | None]]) -> dict[tuple[str, str], Agreement]:
    """``agreement`` of every two judges that have judged a case together."""
    return {
        (a, b): agreement(verdicts[a], verdicts[b])
        for a, b in combinations(verdicts, 2)
        if any(x is not None and y is not None for x, y in zip(verdicts[a], verdicts[b], strict=True))
    }
