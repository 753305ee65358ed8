r"""Muon for matrices, AdamW for everything else (paper, section 10.4).

Muon replaces the momentum of a matrix by the nearest orthogonal one, so that each step moves all directions alike:

$$W \leftarrow (1 - \gamma \lambda) W - \gamma \sqrt{\max(1, m / n)} \, U V^\top, \qquad \text{momentum} = U S V^\top$$

for W of m rows and n columns. Matrices are the weights of attention, MLP and LSTM. Embeddings, norms, biases and the output layer go to
AdamW, as Muon's authors advise. Fused matrices (query, key and value; the four gates of an LSTM) count as one. The
paper names the weight decay beside AdamW only; we use the same for both.
"""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW, Muon, Optimizer


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
    """Return the two optimisers with the paper's values as defaults; rates are constant over training.

    :param model: the model to be trained
    :param output: its output layer
    :param muon_lr: learning rate of the matrices
    :param adamw_lr: learning rate of all other parameters
    :param adamw_betas: decay of AdamW's first and second moment
    :param weight_decay: decoupled weight decay of both
    """
    matrices, others = split_parameters(model, output)
    return [
        Muon(matrices, lr=muon_lr, weight_decay=weight_decay),
        AdamW(others, lr=adamw_lr, betas=adamw_betas, weight_decay=weight_decay),
    ]
