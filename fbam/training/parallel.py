r"""Data parallel training over processes or machines (paper, section 10.12).

Each of N processes takes its share of the windows of the global batch, adds up gradients as one process would, and all of them are
summed in one all-reduce, so that every process takes the same step:

$$\nabla \mathrm{loss} = \sum_{r=1}^{N} \nabla \mathrm{loss}_r$$

where loss_r is the part of the windows of process r, divided by all labels of the batch. What is sent a step is one number a
parameter, whatever the length L of the windows: longer sequences mean more arithmetic for the same traffic.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed, nn

from fbam.training.windows import LazyBatch


class ParallelError(ValueError):
    """The processes cannot train together; the message names the remedy."""


@dataclass
class Processes:
    """The processes that train one model: number `rank` of `size`, and the bytes this one has handed to all-reduce."""

    rank: int = 0
    size: int = 1
    reduced_bytes: int = 0

    def share(self, batch: LazyBatch) -> LazyBatch:
        """Return the windows of this process."""
        windows = batch.target.shape[0]
        if windows < self.size:
            raise ParallelError(f"{windows} windows cannot be shared by {self.size} processes; raise batch or start fewer")
        return batch.narrow(windows * self.rank // self.size, windows * (self.rank + 1) // self.size)

    def add_up(self, model: nn.Module, loss: float) -> float:
        """Replace the gradients by their sums over all processes, in place, and return the sum of the losses."""
        if self.size == 1:
            return loss
        gradients = [parameter.grad for parameter in model.parameters()]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        total = torch.tensor([loss], dtype=torch.float64, device=flat.device)
        for tensor in (flat, total):
            distributed.all_reduce(tensor)
            self.reduced_bytes += tensor.numel() * tensor.element_size()
        for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(part.view_as(gradient))
        return total.item()

    def agree(self, step: int) -> None:
        """Raise ParallelError unless all processes stand at the same step."""
        if self.size == 1:
            return
        steps: list[int | None] = [None] * self.size
        distributed.all_gather_object(steps, step)
        if len(set(steps)) > 1:
            raise ParallelError(f"the processes stand at steps {steps}; give all of them the same folder, on a file system that they share")


ALONE = Processes()
"""One process that asks nobody."""


@contextmanager
def processes(device: str) -> Iterator[Processes]:
    """Join the processes that torchrun has started; without torchrun there is one.

    :param device: `cpu` (gloo) or `cuda` (nccl, one device a process of a machine)
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield Processes()
        return
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Processes(distributed.get_rank(), size)
    finally:
        distributed.destroy_process_group()
