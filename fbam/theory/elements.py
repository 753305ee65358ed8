"""Depth by element: for each element of each storage its depth and the node that made it, in one integer.

A maximum of such integers carries the deepest path along, and a view of a storage is the same view of its integers. Operators
that join elements in a known pattern have a rule in PATTERNS; any other output element is taken to read every input element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from fbam.theory.tracks import Operation, TensorTrack, Write

NODE_BITS = 40
NODES = (1 << NODE_BITS) - 1
INPUT = 1 << NODE_BITS  # depth 0, no node; constants are 0


class ElementTrack(TensorTrack):
    """Depth of each element: an int64 code for each element of each storage, depth + 1 above NODE_BITS bits of node number."""

    def __init__(self, given: Callable[[Tensor], bool] = lambda tensor: False) -> None:
        super().__init__(given)
        self.fallbacks: set[str] = set()
        self._codes: dict[int, tuple[StorageWeakRef, Tensor, int]] = {}  # address -> (…, codes of the storage, bytes an element)
        self._parents: list[Tensor] = []  # for each operation the deepest input of each of its output elements
        self._bases: list[int] = [1]  # number of each operation's first node

    def codes(self, tensor: Tensor) -> Tensor:
        """The codes of a tensor's elements, a view of its storage's codes."""
        storage = tensor.untyped_storage()
        found = self._codes.get(storage._cdata)
        if found is None:
            found = self._fill(tensor, 0 if self._given(tensor) else INPUT)
        _, codes, size = found
        if size != tensor.element_size():  # a view as another type: the elements no longer match
            return codes.max().expand(tensor.shape) if codes.numel() else codes.new_zeros(tensor.shape)
        return codes.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def _fill(self, tensor: Tensor, code: int) -> tuple[StorageWeakRef, Tensor, int]:
        storage, size = tensor.untyped_storage(), tensor.element_size()
        entry = (StorageWeakRef(storage), torch.full((storage.nbytes() // size,), code, dtype=torch.int64), size)
        self._codes[entry[0].cdata] = entry
        return entry

    def _write(self, tensor: Tensor, codes: Tensor) -> None:
        found = self._codes.get(tensor.untyped_storage()._cdata)
        if found is None:
            found = self._fill(tensor, 0)
        if found[2] != tensor.element_size():
            found[1].copy_(torch.maximum(found[1], codes.max()))
        else:
            self.codes(tensor).copy_(codes)

    def depths(self, tensor: Tensor) -> Tensor:
        """Depth of each element, in the shape of the tensor; 0 for constants."""
        return ((self.codes(tensor) >> NODE_BITS) - 1).clamp(min=0)

    def constant(self, tensor: Tensor) -> bool:
        """Whether no element depends on an input."""
        return not bool(self.codes(tensor).any())

    def depth(self, tensor: Tensor) -> int:
        """Depth of the deepest element."""
        return int(self.depths(tensor).max()) if tensor.numel() else 0

    def set(self, tensor: Tensor, source: Tensor) -> None:
        """Give each element of `tensor` the depth of the same element of `source`."""
        self._write(tensor, self.codes(source))

    def make_constant(self, tensor: Tensor) -> None:
        """A fresh constant, or a part of the tensor overwritten with one."""
        self._write(tensor, torch.zeros(tensor.shape, dtype=torch.int64))

    def record(self, write: Write) -> None:
        """Add one call."""
        inputs = [self.codes(tensor).clone() for tensor in write.inputs]
        for number, output in enumerate(write.outputs):
            top, extra = self._deepest(write, inputs, output, number)
            self._write(output, self._step(write, top, extra, number) if write.charge.kind != "move" else top)

    def _deepest(self, write: Write, inputs: list[Tensor], output: Tensor, number: int) -> tuple[Tensor, Tensor | int]:
        """The deepest input of each output element, and its levels."""
        levels = write.levels(number)
        if not inputs:
            return torch.zeros(output.shape, dtype=torch.int64), levels
        rule = PATTERNS.get(write.charge.kind)
        found = rule(write, inputs, number) if rule else None
        if found is None or found.shape != output.shape:
            if len(inputs) > 1 or inputs[0].numel() > 1:
                self.fallbacks.add(write.name)
            found = torch.stack([codes.max() for codes in inputs if codes.numel()] or [torch.tensor(0)]).max().expand(output.shape)
        if write.charge.kind == "prefix" and levels and found.dim():
            return _prefix(inputs[0], write.dims[0], levels)
        return found, levels

    def _step(self, write: Write, top: Tensor, levels: Tensor | int, number: int) -> Tensor:
        base = self._bases[-1]
        nodes = torch.arange(base, base + top.numel()).view(top.shape)
        codes = torch.where(top == 0, 0, (((top >> NODE_BITS) + levels) << NODE_BITS) + nodes)
        self._bases.append(base + top.numel())
        self._parents.append(top)
        depth = max(0, int(codes.max() >> NODE_BITS) - 1) if codes.numel() else 0
        self.operations.append(Operation(write.name, tuple(top.shape), int(torch.as_tensor(levels).max()), depth, (), write.line))
        return codes

    def path(self, tensors: Sequence[Tensor]) -> list[Operation]:
        """The longest path to the deepest element of the tensors; the depths along it are those of the elements on it."""
        code = max((int(self.codes(tensor).max()) for tensor in tensors if tensor.numel()), default=0)
        path: list[Operation] = []
        while code & NODES:
            number = bisect_right(self._bases, code & NODES) - 1
            parent = int(self._parents[number].reshape(-1)[(code & NODES) - self._bases[number]])
            made, depth = self.operations[number], (code >> NODE_BITS) - 1
            if depth > max(0, (parent >> NODE_BITS) - 1):
                path.append(Operation(made.name, made.shape, depth - max(0, (parent >> NODE_BITS) - 1), depth, (), made.line))
            code = parent
        return path[::-1]


def _broadcast(write: Write, inputs: list[Tensor], number: int) -> Tensor:
    top = inputs[0]
    for codes in inputs[1:]:
        top = torch.maximum(top, codes)
    return top


def _reduced(write: Write, inputs: list[Tensor], number: int) -> Tensor:
    dims = write.dims if write.dims else tuple(range(inputs[0].dim()))
    keep = write.outputs[number].dim() == inputs[0].dim()
    return inputs[0].amax(dims, keepdim=keep) if inputs[0].dim() else inputs[0]


def _contracted(write: Write, inputs: list[Tensor], number: int) -> Tensor | None:
    *added, left, right = inputs
    if not left.shape[-1]:
        return None
    left = left.amax(-1, keepdim=left.dim() > 1)  # (…, n, 1)
    right = right.amax(-2, keepdim=True) if right.dim() > 1 else right.amax(-1)  # (…, 1, m)
    if left.dim() > 1 and right.dim() == 0:
        left = left.squeeze(-1)
    top = torch.maximum(left, right)
    return torch.maximum(top, added[0]) if added else top


IDENTITY = frozenset("clone _to_copy copy contiguous _unsafe_view resize".split())


def _move(write: Write, codes: list[Tensor]) -> Any:
    """The same movement of data on other tensors: index tensors stay, data is replaced in order."""
    if write.name in IDENTITY:
        shape = write.outputs[0].shape
        return codes[0].reshape(shape) if codes[0].numel() == shape.numel() else codes[0].expand(shape)
    rest = iter(codes)

    def swap(value: Any, data: bool) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(swap(item, data) for item in value)
        if not isinstance(value, Tensor):
            return value
        code = next(rest)
        return code if data or value.is_floating_point() else value

    moved = [swap(value, position == 0) for position, value in enumerate(write.args)]
    return write.plan.func(*(moved[:2] if write.name == "constant_pad_nd" else moved), **write.kwargs)


def _moved(write: Write, inputs: list[Tensor], number: int) -> Tensor | None:
    moved = _move(write, inputs)
    moved = moved if isinstance(moved, Tensor) else moved[number]
    return moved if moved.dtype == torch.int64 else None


def _selected(write: Write, inputs: list[Tensor], number: int) -> Tensor | None:
    if write.name != "embedding":
        return None
    table, index = inputs  # (V, D), (…)
    return torch.maximum(table.amax(0), index.unsqueeze(-1))


def _running(write: Write, inputs: list[Tensor], number: int) -> Tensor:
    return inputs[0]


def _prefix(codes: Tensor, dim: int, levels: int) -> tuple[Tensor, Tensor]:
    """Deepest input of each prefix, and the levels from it to the prefix: along a serial chain where all n cost n - 1 levels, else in a tree."""
    n = codes.shape[dim]
    t = torch.arange(n).view([n if axis == dim % codes.dim() else 1 for axis in range(codes.dim())])
    if levels != n - 1:
        return torch.cummax(codes, dim).values, torch.where(t > 0, torch.ceil(torch.log2(t + 1.0)).long().clamp(max=levels), 0)
    joins = torch.clamp(t - 1, min=0)  # element i joins the chain in the step that makes prefix max(1, i)
    lead = torch.where(codes > 0, codes - (joins << NODE_BITS), -(1 << 62))
    best = torch.cummax(lead, dim).indices
    return torch.take_along_dim(codes, best, dim), torch.where(t > 0, t - torch.clamp(best - 1, min=0), 0)


PATTERNS: dict[str, Callable[[Write, list[Tensor], int], Tensor | None]] = {
    "pointwise": _broadcast,
    "reduce": _reduced,
    "contract": _contracted,
    "move": _moved,
    "select": _selected,
    "prefix": _running,
}
