r"""The backward pass of a nonlinear recurrence, step by step and as a scan over Jacobians (paper, appendix B).

For $h_t = \tanh(W h_{t-1} + x_t)$ and a loss with direct gradients $d_t$ at each $h_t$, the stored activations make the backward
pass a linear recurrence in the gradient, run from the last position to the first:

$$g_t = d_t + J_{t+1}^\top g_{t+1}, \qquad J_t = \mathrm{diag}(1 - h_t^2) \, W$$

Affine maps compose, so O(log n) rounds of products compute all $g_t$. That autograd takes n steps is a property of how it
runs, not of the gradient; the forward pass, which makes the $h_t$, stays serial.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fbam.sequence.scans import dense_scan
from fbam.theory.cost import CostModel
from fbam.theory.depth import true_depths

MODELS = (CostModel("unbounded"), CostModel(2))


def recurrence(w: Tensor, x: Tensor) -> Tensor:
    """Hidden states of (B, n, D) inputs, from zero, one position after the other."""
    h, states = torch.zeros_like(x[:, 0]), []
    for x_t in x.unbind(1):
        h = torch.tanh(h @ w.T + x_t)
        states.append(h)
    return torch.stack(states, dim=1)


def gradients_by_scan(w: Tensor, h: Tensor, direct: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of w and x from the stored states.

    :param w: (D, D)
    :param h: states of the forward pass, (B, n, D)
    :param direct: gradient of the loss at each state by itself, (B, n, D)
    :returns: gradients of w, (D, D), and of x, (B, n, D)
    """
    slope = 1 - h**2  # (B, n, D)
    jacobian = slope.unsqueeze(-1) * w  # J_t, (B, n, D, D)
    later = torch.cat([jacobian[:, 1:], torch.zeros_like(jacobian[:, :1])], dim=1).mT  # transposed J_{t+1}; nothing after the last
    backwards = dense_scan(later.flip(1), direct.flip(1).unsqueeze(-1), torch.zeros_like(direct[:, 0]).unsqueeze(-1))
    inner = backwards.flip(1).squeeze(-1) * slope  # gradient before the tanh, which is that of x, (B, n, D)
    before = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], dim=1)
    return inner.flatten(0, 1).mT @ before.flatten(0, 1), inner


def compare(n: int, width: int, seed: int) -> list[dict]:
    """Both backward passes on one random recurrence: depths under both cost models, and the largest difference of the gradients."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    w, x, direct = (draw(width, width) / width**0.5).requires_grad_(), draw(2, n, width).requires_grad_(), draw(2, n, width)
    h = recurrence(w, x)
    expected = torch.autograd.grad(h, (w, x), direct)
    found = gradients_by_scan(w.detach(), h.detach(), direct)
    difference = max(float((a - b).abs().max()) for a, b in zip(expected, found))
    loops = true_depths(recurrence, w, x, models=MODELS)
    scans = true_depths(gradients_by_scan, w.detach(), h.detach(), direct, models=MODELS)
    return [
        {"n": n, "model": loop.model.name, "autograd_depth": loop.backward_depth, "scan_depth": scan.depth, "difference": difference}
        for loop, scan in zip(loops, scans)
    ]
