"""Tensors put aside in order and taken back from the last to the first (paper, section 10.3).

On a processor they stay where they are. From a CUDA device they are copied to pinned host memory on a side stream, and each
group is fetched back on that stream while the one behind it is worked on, so that transfers and arithmetic run side by side:

    forward:   keep(0)  keep(1)  …  keep(n)
    backward:  take() = n, fetching n - 1 meanwhile;  take() = n - 1, fetching n - 2 meanwhile;  …
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Pages:
    """A stack of groups of tensors.

    :param device: where the tensors come from and go back to
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stack: list[list[Tensor]] = []
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._fetched: tuple[list[Tensor], torch.cuda.Event] | None = None

    def __len__(self) -> int:
        return len(self._stack) + (self._fetched is not None)

    def keep(self, tensors: Sequence[Tensor]) -> None:
        """Put a group on the stack. Its tensors must not be changed afterwards."""
        self._stack.append(list(tensors) if self._side is None else [self._to_host(tensor) for tensor in tensors])

    def take(self) -> list[Tensor]:
        """Remove the last group and return it on the device."""
        if self._side is None:
            return self._stack.pop()
        tensors, arrived = self._fetched or self._fetch()
        self._fetched = self._fetch() if self._stack else None
        present = torch.cuda.current_stream(self._device)
        present.wait_event(arrived)
        for tensor in tensors:
            tensor.record_stream(present)
        return tensors

    def _to_host(self, tensor: Tensor) -> Tensor:
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self._side.wait_stream(torch.cuda.current_stream(self._device))  # the tensor is computed first
        with torch.cuda.stream(self._side):
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self._side)  # its memory is not given away before the copy is done
        return host

    def _fetch(self) -> tuple[list[Tensor], torch.cuda.Event]:
        """Start the way back of the last group; copies of one stream run in order, so it has arrived at the host before."""
        with torch.cuda.stream(self._side):
            tensors = [host.to(self._device, non_blocking=True) for host in self._stack.pop()]
            arrived = self._side.record_event()
        return tensors, arrived
