r"""One small trainer for the synthetic diagnostics (paper, section 8.1).

A step draws a batch and minimises a loss over the positions of its mask, by default the cross entropy

$$\mathrm{loss} = -\frac{1}{|M|} \sum_{(b,t) \in M} \ln p(y_{b,t} \mid x_{b,1}, \dots, x_{b,t})$$

with AdamW, gradients clipped to a norm, and a learning rate that warms up linearly and is then constant or falls along a
cosine to zero. The same model, batches and settings give the same weights bit by bit; what a step costs is returned apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW

from fbam.training.determinism import deterministic

Schedule = Literal["constant", "cosine"]


class SupervisedError(ValueError):
    """A training that cannot be run as asked; the message names the setting."""


class DivergedError(ArithmeticError):
    """The loss is no longer a number; the message names the step."""


@dataclass(frozen=True)
class Batch:
    """What one step learns from.

    :param inputs: (B, T, F) fields of int64, or (B, T, K) floats, as the model takes them
    :param targets: (B, T) classes of int64, or (B, T, K) floats for a regression
    :param mask: (B, T) of bool, true where a target counts
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor


@dataclass
class Curve:
    """The course of a training: the loss of each step, and what `evaluate` returned, each under its step."""

    losses: list[float] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)


def masked_cross_entropy(outputs: Tensor, batch: Batch) -> Tensor:
    """Mean cross entropy over the positions of the mask, in nats.

    :param outputs: (B, T, V) logits
    """
    return F.cross_entropy(outputs[batch.mask], batch.targets[batch.mask])


def rate_factor(step: int, steps: int, schedule: Schedule, warm_up: int) -> float:
    """What the learning rate of this step, counted from 0, is multiplied by: a number in (0, 1]."""
    if schedule not in ("constant", "cosine"):
        raise SupervisedError(f"schedule {schedule!r} is unknown; use constant or cosine")
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    if schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


def _update(model: nn.Module, optimiser: AdamW, batch: Batch, loss_of: Callable[[Tensor, Batch], Tensor], grad_clip: float) -> float:
    """Take one step and return the loss before it; a loss that is not finite changes nothing."""
    loss = loss_of(model(batch.inputs), batch)
    if torch.isfinite(loss):
        optimiser.zero_grad()
        loss.backward()
        if grad_clip:
            nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimiser.step()
    return loss.item()


def _evaluated(model: nn.Module, evaluate: Callable[[int], dict[str, Any]], step: int) -> dict[str, Any]:
    model.eval()
    with torch.no_grad():
        found = evaluate(step)
    model.train()
    return {"step": step, **found}


def fit(
    model: nn.Module,
    sample: Callable[[int], Batch],
    *,
    steps: int,
    lr: float,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.98),
    schedule: Schedule = "cosine",
    warm_up: int = 0,
    grad_clip: float = 1.0,
    tick: Callable[[float], None] = lambda share: None,
    loss: Callable[[Tensor, Batch], Tensor] = masked_cross_entropy,
    evaluate: Callable[[int], dict[str, Any]] | None = None,
    evaluate_every: int = 0,
) -> tuple[Curve, list[float]]:
    """Train a model in place.

    :param model: takes `Batch.inputs` and returns (B, T, V)
    :param sample: the batch of a step, steps counted from 0
    :param steps: updates
    :param lr: learning rate after the warm-up
    :param warm_up: updates over which the rate rises to `lr`
    :param grad_clip: largest norm of the gradient; 0 leaves it as it is
    :param tick: called with the finished share
    :param loss: from (model output, batch) to a scalar
    :param evaluate: called in evaluation mode without gradients after every `evaluate_every` steps (0: never) and after the
        last one, with the number of steps taken; what it returns is kept in the curve
    :returns: the curve, and the processor seconds of each step, sampling included and evaluation not
    :raises DivergedError: the loss is no longer a number
    """
    if steps < 1 or not lr > 0:
        raise SupervisedError(f"steps {steps} and lr {lr} must be positive")
    curve, seconds = Curve(), []
    optimiser = AdamW(model.parameters(), lr=lr, betas=betas, weight_decay=weight_decay)
    with deterministic():
        model.train()
        for step in range(steps):
            started = time.process_time()
            optimiser.param_groups[0]["lr"] = lr * rate_factor(step, steps, schedule, warm_up)
            value = _update(model, optimiser, sample(step), loss, grad_clip)
            if not math.isfinite(value):
                raise DivergedError(f"loss is {value} at step {step}; lower the learning rate {lr}")
            curve.losses.append(value)
            seconds.append(time.process_time() - started)
            done = step + 1
            if evaluate and (done == steps or (evaluate_every and done % evaluate_every == 0)):
                curve.evaluations.append(_evaluated(model, evaluate, done))
            tick(done / steps)
    return curve, seconds
