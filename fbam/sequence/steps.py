"""A layer over a sequence by its own step, one position after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def over_steps(layer: nn.Module, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
    """Run ``layer.step`` over (B, T, D) from ``state``, or from its initial state; return (B, T, D) and the state after it."""
    state = layer.initial_state(x.shape[0]) if state is None else state
    outputs = []
    for x_t in x.unbind(1):
        y, state = layer.step(x_t, state)
        outputs.append(y)
    return torch.stack(outputs, dim=1), state
