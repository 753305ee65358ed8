r"""Newton's iteration on a nonlinear recurrence: rounds against length and contraction (paper, section 2; Lim et al. 2024).

All n equations $h_t = \tanh(W h_{t-1} + U x_t + b)$ are solved at once, each round a linear recurrence by a scan. How many rounds
are needed depends on how errors travel, which the largest Lyapunov exponent of the driven recurrence measures:

$$\lambda = \tfrac{1}{n} \log \lVert J_n \cdots J_1 v \rVert$$

Below zero errors die out and a few rounds do; above zero they grow, and in the worst case each round only makes one more
position exact, so that the parallel form is deeper than the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import torch
from torch import Tensor

from fbam.sequence.newton import NewtonElman
from fbam.theory.depth import true_depth


def draw_recurrence(width: int, gain: float, seed: int) -> NewtonElman:
    """An Elman network in double precision whose recurrent matrix is Gaussian with spectral radius about `gain`, with weak inputs."""
    torch.manual_seed(seed)
    module = NewtonElman(width).double()
    with torch.no_grad():
        module.cell.weight_hh_l0.copy_(gain * torch.randn(width, width, dtype=torch.float64) / width**0.5)
        module.cell.weight_ih_l0.mul_(0.5)
    return module


@torch.no_grad()
def lyapunov(module: NewtonElman, h: Tensor) -> float:
    """Largest Lyapunov exponent a step along the states h of one sequence, (n, D), from the growth of a fixed first direction."""
    v, growth = torch.ones(h.shape[1], dtype=h.dtype) / h.shape[1] ** 0.5, 0.0
    for h_t in h:
        v = (1 - h_t**2) * (module.cell.weight_hh_l0 @ v)
        growth += float(v.norm().log())
        v = v / v.norm()
    return growth / len(h)


def newton_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Solve one recurrence at several lengths: a grid cell.

    :param config: gain, width, lengths, seed
    :returns: rows with the rounds, the exponent, the difference from the loop, and both depths with fan-in 2
    """
    start, rows = process_time(), []
    torch.set_num_threads(1)
    module = draw_recurrence(config["width"], config["gain"], config["seed"])
    for position, n in enumerate(config["lengths"]):
        x = torch.randn(1, n, config["width"], generator=torch.Generator().manual_seed(config["seed"] + n), dtype=torch.float64)
        with torch.no_grad():
            solved, rounds = module.solve(x, module.initial_state(1))
            loop, _ = module.serial(x)
        rows.append({
            "gain": config["gain"], "n": n, "lyapunov": lyapunov(module, loop[0]), "rounds": rounds,
            "difference": float((solved - loop).abs().max()),
            "depth": true_depth(lambda x: module.solve(x, module.initial_state(1))[0], x, fan_in=2, backward=False).depth,
            "serial_depth": true_depth(lambda x: module.serial(x)[0], x, fan_in=2, backward=False).depth,
        })
        tick((position + 1) / len(config["lengths"]))
    return {"rows": rows}, {"cpu_seconds": process_time() - start}
