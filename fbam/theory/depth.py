r"""True depth of a running torch program, forward and backward (paper, section 2).

The paper defines true depth on paper; here the real computation is followed operator by operator, below autograd, and each
tensor is given the length of the longest directed path that leads to it:

$$\mathrm{depth}(v) = \mathrm{levels}(v) + \max_{u \to v} \mathrm{depth}(u)$$

What is measured is the depth of this program: an upper bound of the function's depth, never a lower one. The same quantity is
called the span in work-span analysis; work / depth is the parallelism. fbam/theory/cost.py states what an operator costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from fbam.theory.cost import CostModel
from fbam.theory.elements import ElementTrack
from fbam.theory.meter import Ledger, Meter, plain_kernels
from fbam.theory.tracks import Operation, TensorTrack


@dataclass(frozen=True)
class TrueDepth:
    """What `true_depth` found.

    :param depth: levels from the inputs to the deepest output
    :param backward_depth: levels of the recorded backward pass alone, the forward values given; None where nothing asks for a gradient
    :param total: levels from the inputs through both passes; the gradient at the output is taken to depend on the output
    :param outputs: depth of each output tensor, a number or, by element, an int64 tensor of its shape
    :param work: scalar operations of two operands in the forward pass, whatever the cost model; `backward_work` alike
    :param critical_path: the longest path of the forward pass, first operation first; `backward_path` that of the backward pass alone
    :param operations: every node of the forward graph, in the order of execution (empty by element)
    :param assumptions: what was assumed beyond the cost model
    """

    model: CostModel
    elements: bool
    depth: int
    backward_depth: int | None
    total: int
    outputs: tuple[int | Tensor, ...]
    work: int
    backward_work: int
    critical_path: tuple[Operation, ...]
    backward_path: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    assumptions: tuple[str, ...]

    @property
    def parallelism(self) -> float:
        """Mean number of scalar operations a level of the forward pass, work / depth."""
        return self.work / max(1, self.depth)

    def __str__(self) -> str:
        backward = "no backward pass" if self.backward_depth is None else f"backward alone {self.backward_depth}, total {self.total}"
        head = f"true depth {self.depth} ({self.model.name}), {backward}; work {self.work}, parallelism {self.parallelism:.1f}"
        return "\n".join([head, *map(str, self.critical_path)])


def true_depth(
    fn: Callable[..., Any],
    *inputs: Any,
    fan_in: Literal["unbounded", 2] = "unbounded",
    elements: bool = False,
    cumulative: Literal["serial", "tree"] = "serial",
    backward: bool = True,
) -> TrueDepth:
    """Run `fn(*inputs)` and its backward pass, and measure the true depth of what was run.

    A recurrence gets deeper with the sequence, a Transformer does not:

    >>> import torch
    >>> from fbam.theory import true_depth
    >>> lstm, layer = torch.nn.LSTM(8, 8), torch.nn.TransformerEncoderLayer(8, 2, 16)
    >>> [true_depth(lstm, torch.randn(n, 1, 8)).depth for n in (4, 8, 16)]
    [36, 72, 144]
    >>> [true_depth(layer, torch.randn(n, 1, 8)).depth for n in (4, 8, 16)]
    [52, 52, 52]

    :param fn: a module or any function of torch tensors; its weights and whatever tensors it closes over are inputs of depth 0
    :param inputs: its arguments, nested lists, tuples and dicts of tensors among them
    :param fan_in: cost model, see fbam/theory/cost.py
    :param elements: follow each element by itself (small tensors only) in the place of each storage
    :param cumulative: how cumsum and its kin are charged, "serial" or "tree"
    :param backward: also follow the backward pass, from the outputs that ask for a gradient to every leaf
    :returns: see TrueDepth
    :raises DepthRuleError: an operator has no cost rule
    """
    return true_depths(fn, *inputs, models=[CostModel(fan_in, cumulative)], elements=elements, backward=backward)[0]


def true_depths(
    fn: Callable[..., Any], *inputs: Any, models: Sequence[CostModel], elements: bool = False, backward: bool = True
) -> list[TrueDepth]:
    """`true_depth` under several cost models from a single run, in the order of `models`."""
    meter = Meter(models, ElementTrack if elements else TensorTrack)
    with plain_kernels(), torch.random.fork_rng(devices=[]):
        with meter:
            result = fn(*inputs)
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        forward = [_read_forward(ledger, outputs, elements) for ledger in meter.ledgers]
        gradients = _run_backward(meter, outputs) if backward else []
    return [TrueDepth(**first, **_read_backward(ledger, first, gradients)) for ledger, first in zip(meter.ledgers, forward)]


def _read_forward(ledger: Ledger, outputs: Sequence[Tensor], elements: bool) -> dict[str, Any]:
    whole = ledger.tracks[0]
    return {
        "model": ledger.model,
        "elements": elements,
        "depth": max(map(whole.depth, outputs), default=0),
        "outputs": tuple(whole.depths(out) if elements else whole.depth(out) for out in outputs),
        "work": ledger.work,
        "critical_path": tuple(whole.path(outputs)),
        "operations": () if elements else tuple(whole.operations),
    }


def _read_backward(ledger: Ledger, forward: dict[str, Any], gradients: Sequence[Tensor]) -> dict[str, Any]:
    whole, alone = ledger.tracks[0], ledger.tracks[-1]
    return {
        "backward_depth": max(map(alone.depth, gradients)) if gradients else None,
        "total": max([forward["depth"], *map(whole.depth, gradients)]),
        "backward_path": tuple(alone.path(gradients)) if gradients else (),
        "backward_work": ledger.work - forward["work"],
        "assumptions": ledger.assumptions(),
    }


def _run_backward(meter: Meter, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Run the recorded backward pass under the meter and return the gradients of all leaves."""
    roots = [out for out in outputs if out.grad_fn is not None]
    leaves = _graph_leaves(roots)
    if not leaves:
        return []
    seeds = [torch.ones_like(out) for out in roots]
    meter.start_backward(roots, seeds)
    with meter:
        gradients = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
    return [gradient for gradient in gradients if gradient is not None]


def _graph_leaves(roots: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor at which the recorded backward graph ends, in the order of discovery."""
    seen, waiting, leaves = set(), [root.grad_fn for root in roots], []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        waiting += [parent for parent, _ in node.next_functions]
    return leaves
