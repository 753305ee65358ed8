r"""Cost models and cost rules of the true-depth meter (paper, section 2).

True depth is "the length of the longest directed path in the computation DAG" at unit cost a gate. What a gate is decides
the answer, so there are two models, never mixed in one number. An elementwise function costs 1 in both. A sum, product
or maximum over k operands, a contraction over k (one product, one sum) and a selection of one of k cost

$$\text{unbounded: } 1, \; 2, \; 2 \qquad \text{fan-in 2: } \lceil \log_2 k \rceil, \; 1 + \lceil \log_2 k \rceil, \; 1 + \lceil \log_2 k \rceil$$

Views, copies, constants and everything computed from constants alone cost nothing. fbam/theory/rules.py holds the
rules; an operator without one is run as its decomposition, or is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor


class DepthRuleError(ValueError):
    """An operator has no cost rule; the message names it and how to add one."""


@dataclass(frozen=True)
class CostModel:
    """Levels of the operations that join many operands.

    :param fan_in: operands of a gate, "unbounded" or 2
    :param cumulative: how cumsum and its kin are charged over n positions: "serial" as the library's processor kernel runs them,
        n - 1 levels; "tree" as a scan, ceil(log2 n) levels with fan-in 2 and 1 with unbounded fan-in
    """

    fan_in: Literal["unbounded", 2] = "unbounded"
    cumulative: Literal["serial", "tree"] = "serial"

    def __post_init__(self) -> None:
        if self.fan_in not in ("unbounded", 2):
            raise ValueError(f'fan_in is {self.fan_in!r}; it must be "unbounded" or 2')
        if self.cumulative not in ("serial", "tree"):
            raise ValueError(f'cumulative is {self.cumulative!r}; it must be "serial" or "tree"')

    @property
    def name(self) -> str:
        """"unbounded" or "fan-in 2"."""
        return "unbounded" if self.fan_in == "unbounded" else "fan-in 2"

    def join(self, k: int) -> int:
        """Levels of a sum, product or maximum over k operands."""
        return (1 if k > 1 else 0) if self.fan_in == "unbounded" else (k - 1).bit_length() if k > 1 else 0

    def contract(self, k: int) -> int:
        """Levels of a product and a sum over k terms."""
        return 1 + self.join(k)

    def select(self, k: int) -> int:
        """Levels of picking one of k by a computed index: compare-and-mask, then join; nothing where there is no choice."""
        return 1 + self.join(k) if k > 1 else 0

    def prefix(self, n: int) -> int:
        """Levels of all n prefixes of a cumulative sum, product or maximum."""
        return max(0, n - 1) if self.cumulative == "serial" else self.join(n)


class Call(NamedTuple):
    """One dispatched operator: its arguments, its output tensors, and a test whether a tensor is a constant."""

    name: str
    args: tuple[Any, ...]
    outputs: Sequence[Tensor]
    constant: Callable[[Tensor], bool]

    def argument(self, position: int, default: Any = None) -> Any:
        """The positional argument, or `default` where the call leaves it out."""
        return self.args[position] if len(self.args) > position else default


class Charge(NamedTuple):
    """What a call costs: levels of depth (one number, or one for each output) and scalar operations of two operands.

    `kind` tells element mode which inputs each output element reads: pointwise, reduce, contract, prefix, move, select or all.
    `note` is an assumption to report.
    """

    levels: int | tuple[int, ...]
    operations: int
    kind: str = "all"
    note: str = ""


Rule = Callable[[CostModel, Call], Charge]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a cost rule under operator names, without `aten::` and without the underscore of in-place variants."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
