r"""Where depths are kept while a program runs: one number for each storage, and for parts of it that are written in place.

A tensor is a view of a storage, so views share their depth and writes in place reach every view. A track is a graph of operators with

$$\mathrm{depth}(v) = \mathrm{levels}(v) + \max_{u \to v} \mathrm{depth}(u)$$

Constants have no depth at all; inputs have depth 0. fbam/theory/elements.py keeps the same for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from fbam.theory.cost import Charge

CONSTANT = -1


class Operation(NamedTuple):
    """One node: operator, shape of its first output, levels, depth after it, indices of its parents, and the line that called it."""

    name: str
    shape: tuple[int, ...]
    levels: int
    depth: int
    parents: tuple[int, ...]
    line: str

    def __str__(self) -> str:
        return f"{self.depth:>6}  {self.name} {list(self.shape)}  {self.line}".rstrip()


class Write(NamedTuple):
    """One dispatched call, as a track sees it: the operator, the line, the tensors it reads, the tensors it makes or writes, and the cost."""

    plan: Any
    line: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    charge: Charge
    args: tuple
    kwargs: dict

    @property
    def name(self) -> str:
        """Name of the operator."""
        return self.plan.name

    def levels(self, output: int) -> int:
        """Levels of one output."""
        return self.charge.levels if isinstance(self.charge.levels, int) else self.charge.levels[output]

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that a reduction or cumulative operator runs over; () = all."""
        if len(self.args) < 2 or self.args[1] is None or isinstance(self.args[1], bool | torch.dtype):
            return ()
        return (self.args[1],) if isinstance(self.args[1], int) else tuple(self.args[1])


def _covers(tensor: Tensor) -> bool:
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()


Region = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, sizes and strides of a view; sizes of 1 left out, largest stride first."""


def _region(tensor: Tensor) -> Region:
    axes = sorted(((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1), reverse=True)
    return tensor.storage_offset(), tuple(size for _, size in axes), tuple(stride for stride, _ in axes)


@lru_cache(maxsize=1 << 16)  # a loop meets the same pairs at each of its steps
def _disjoint(a: Region, b: Region) -> bool:
    """Whether two views surely share no element: out of each other's range, or, with equal strides, out of phase with one of them."""
    (first, sizes, strides), (second, others, _) = sorted((a, b))
    gap = second - first
    if gap > sum((size - 1) * stride for size, stride in zip(sizes, strides)):
        return True
    if strides != b[2] or strides != a[2] or any(outer % inner for outer, inner in zip(strides, strides[1:])):
        return False
    for level, stride in enumerate(strides):  # positions modulo this stride: an interval of length `inner` each
        inner, inner_other = (sum((n - 1) * s for n, s in zip(sides[level + 1 :], strides[level + 1 :])) for sides in (sizes, others))
        if inner < gap % stride and inner_other < stride - gap % stride:
            return True
    return False


class _Storage:
    """Depth and node of a storage, and of the parts of it that were written in place since."""

    __slots__ = ("depth", "node", "parts", "reference")

    def __init__(self, storage: torch.UntypedStorage, depth: int, node: int) -> None:
        self.reference = StorageWeakRef(storage)  # keeps the address from being used again
        self.depth, self.node = depth, node
        self.parts: dict[Region, tuple[int, int]] = {}


class TensorTrack:
    """Depth of each storage, and of parts of it written in place.

    :param given: tells constants from inputs among tensors that were there before this track
    """

    def __init__(self, given: Callable[[Tensor], bool] = lambda tensor: False) -> None:
        self.operations: list[Operation] = []
        self._given = given
        self._storages: dict[int, _Storage] = {}  # by address

    def read(self, tensor: Tensor) -> tuple[int, int]:
        """Depth and node of a tensor; a tensor not seen before is an input."""
        storage = tensor.untyped_storage()
        found = self._storages.get(storage._cdata)
        if found is None:
            found = self._storages[storage._cdata] = _Storage(storage, CONSTANT if self._given(tensor) else 0, -1)
        if not found.parts:
            return found.depth, found.node
        region = _region(tensor)
        return max((found.depth, found.node), *(part for place, part in found.parts.items() if not _disjoint(place, region)), (CONSTANT, -1))

    def set(self, tensor: Tensor, source: Tensor) -> None:
        """Give `tensor` the depth of `source`."""
        self._put(tensor, *self.read(source))

    def constant(self, tensor: Tensor) -> bool:
        """Whether the tensor depends on no input."""
        return self.read(tensor)[0] == CONSTANT

    def depth(self, tensor: Tensor) -> int:
        """Depth of a tensor, 0 for a constant."""
        return max(0, self.read(tensor)[0])

    def _put(self, tensor: Tensor, depth: int, node: int) -> None:
        """Note the depth of a tensor that was made, or of a part that was written."""
        storage = tensor.untyped_storage()
        found = self._storages.get(storage._cdata)
        if found is None or _covers(tensor):
            self._storages[storage._cdata] = _Storage(storage, depth, node)
        else:
            found.parts[_region(tensor)] = (depth, node)

    def make_constant(self, tensor: Tensor) -> None:
        """A fresh constant, or a part of the tensor overwritten with one."""
        self._put(tensor, CONSTANT, -1)

    def record(self, write: Write) -> None:
        """Add one call."""
        read = [self.read(tensor) for tensor in write.inputs]
        parents = tuple(sorted({node for _, node in read if node >= 0}))
        for number, output in enumerate(write.outputs):
            deepest = max((depth for depth, _ in read), default=CONSTANT)
            levels = write.levels(number)
            if deepest == CONSTANT:
                self._put(output, CONSTANT, -1)
            elif levels == 0 and len(parents) <= 1:
                self._put(output, deepest, parents[0] if parents else -1)
            else:
                self.operations.append(Operation(write.name, tuple(output.shape), levels, deepest + levels, parents, write.line))
                self._put(output, deepest + levels, len(self.operations) - 1)

    def path(self, tensors: Sequence[Tensor]) -> list[Operation]:
        """The longest path to the deepest of the tensors, from its first operation on."""
        node = max((self.read(tensor) for tensor in tensors), default=(0, -1))[1]
        path: list[Operation] = []
        while node >= 0:
            operation = self.operations[node]
            if operation.levels:
                path.append(operation)
            node = max(operation.parents, key=lambda parent: self.operations[parent].depth, default=-1)
        return path[::-1]
