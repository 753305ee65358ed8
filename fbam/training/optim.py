r"""Muon for matrices, AdamW for everything else (paper, section 10.4).

Muon replaces the momentum of a matrix by the nearest orthogonal one, so that each step moves all directions alike:

$$W \leftarrow (1 - \gamma \lambda) W - \gamma \sqrt{\max(1, m / n)} \, U V^\top, \qquad \text{momentum} = U S V^\top$$

for W of m rows and n columns. Matrices are the weights of attention, MLP and LSTM. Embeddings, norms, biases and the output layer go to
AdamW, as Muon's authors advise. Fused matrices (query, key and value; the four gates of an LSTM) count as one, and a convolution
kernel is the matrix of D rows and 9 D columns that maps a neighbourhood to a position. The
paper names the weight decay beside AdamW only; we use the same for both.

The orthogonal factor comes from five steps of Newton and Schulz. torch takes them in bfloat16, which on a processor without arithmetic
for it is many times slower than single precision; ``Muon`` here takes them in the precision of the matrix on a processor, and is
torch's own elsewhere. AdamW is torch's with its fused kernel, which
spends less time between small parameters than its loop does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim import Muon as TorchMuon


def orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Move all singular values of a matrix, (m, n), towards 1: five steps bring them to between about 0.7 and 1.2."""
    a, b, c = coefficients
    wide = x.T if x.shape[0] > x.shape[1] else x
    wide = wide / wide.norm().clamp(min=eps)
    for _ in range(steps):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.T if x.shape[0] > x.shape[1] else wide


class Muon(TorchMuon):
    """``torch.optim.Muon`` with its iteration in the precision of the matrices, for a processor; settings and state are torch's."""

    @torch.no_grad()
    def step(self) -> None:
        """Take one step on all matrices that have a gradient."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._move(matrix, group)

    def _move(self, matrix: nn.Parameter, group: dict) -> None:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer = state["momentum_buffer"].lerp_(matrix.grad, 1 - group["momentum"])
        update = matrix.grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = matrix.shape
        matrix.mul_(1 - group["lr"] * group["weight_decay"])
        matrix.add_(update, alpha=-group["lr"] * math.sqrt(max(1, rows / columns)))


def split_parameters(model: nn.Module, output: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices for Muon and all other parameters for AdamW, each in the model's order.

    :param model: the model to be trained
    :param output: its output layer, whose matrix is left to AdamW
    """
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    spared = {id(parameter) for module in [output, *tables] for parameter in module.parameters()}
    matrices, others = [], []
    for parameter in model.parameters():
        (matrices if parameter.ndim == 2 and id(parameter) not in spared else others).append(parameter)
    return matrices, others


def optimisers(
    model: nn.Module,
    output: nn.Module,
    *,
    muon_lr: float = 3e-3,
    adamw_lr: float = 3e-4,
    adamw_betas: tuple[float, float] = (0.9, 0.95),
    weight_decay: float = 0.01,
) -> list[Optimizer]:
    """Return the two optimisers with the paper's values as defaults; a schedule, if any, is the caller's.

    :param model: the model to be trained
    :param output: its output layer
    :param muon_lr: learning rate of the matrices
    :param adamw_lr: learning rate of all other parameters
    :param adamw_betas: decay of AdamW's first and second moment
    :param weight_decay: decoupled weight decay of both
    """
    matrices, others = split_parameters(model, output)
    kind = Muon if matrices[0].device.type == "cpu" else TorchMuon
    return [
        kind(matrices, lr=muon_lr, weight_decay=weight_decay),
        AdamW(others, lr=adamw_lr, betas=adamw_betas, weight_decay=weight_decay, fused=True),
    ]
