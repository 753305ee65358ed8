r"""A nonlinear recurrence solved in parallel by Newton's iteration (paper, section 2, on what parallel forms trade).

The T equations $h_t = f(h_{t-1}, x_t)$ are solved together. From a guess g, each round linearises f at the guess and solves
the linear recurrence that results by a scan:

$$h_t = f(g_{t-1}, x_t) + J_t (h_{t-1} - g_{t-1}), \qquad J_t = \partial f / \partial h \,(g_{t-1}, x_t)$$

Each round makes at least one more position exact, so T rounds always suffice; when f contracts, few do. The longest path
is that of one scan times the number of rounds, which depends on weights and inputs.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from fbam.sequence.elman import Elman
from fbam.sequence.scans import dense_scan


class NewtonElman(Elman):
    """Elman network whose ``forward`` is Newton's iteration.

    :param width: size D of an input vector and of the hidden state
    """

    REFERENCE: ClassVar[str] = "Elman 1990, solved as Lim et al. 2024"
    FORMS: ClassVar[tuple[str, ...]] = ("iterated", "serial", "recurrent")
    NOTE: ClassVar[str] = "ParaRNN (Danieli et al. 2025) does the same for gated cells with diagonal Jacobians"

    def serial(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the library's kernel instead, with the arguments and values of ``forward``."""
        return super().forward(x, state)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Solve for all hidden states of (B, T, D) at once; return them and the last.

        Only a last round, at the solution, is recorded for the backward pass: there the gradients of the linearisation
        are those of the recurrence.
        """
        start = self.initial_state(x.shape[0]) if state is None else state
        with torch.no_grad():
            h, _ = self.solve(x, start)
        h = self._round(x, start, h)
        return h, h[:, -1]

    def solve(self, x: Tensor, start: Tensor) -> tuple[Tensor, int]:
        """Iterate until nothing moves.

        :returns: the hidden states, (B, T, D), and the number of rounds
        """
        h = torch.zeros_like(x)
        for rounds in range(1, x.shape[1] + 1):
            last, h = h, self._round(x, start, h)
            if (h - last).abs().max() <= 10 * torch.finfo(x.dtype).eps:
                break
        return h, rounds

    def _round(self, x: Tensor, start: Tensor, guess: Tensor) -> Tensor:
        """Linearise at the guess, (B, T, D), and solve."""
        cell, before = self.cell, torch.cat([start.unsqueeze(1), guess[:, :-1]], dim=1)
        f = torch.tanh(x @ cell.weight_ih_l0.T + cell.bias_ih_l0 + before @ cell.weight_hh_l0.T + cell.bias_hh_l0)
        jacobian = ((1 - f * f).unsqueeze(-1) * cell.weight_hh_l0).detach()  # (B, T, D, D)
        writes = f.unsqueeze(-1) - jacobian @ before.unsqueeze(-1)
        return dense_scan(jacobian, writes, start.unsqueeze(-1)).squeeze(-1)
