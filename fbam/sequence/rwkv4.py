r"""RWKV-4: an average of the past with weights that fade channel by channel (paper, section 2).

$$y_t = \sigma(r_t) \odot \frac{\sum_{s < t} e^{k_s - (t - 1 - s) w} \odot v_s + e^{u + k_t} \odot v_t}
{\sum_{s < t} e^{k_s - (t - 1 - s) w} + e^{u + k_t}}$$

r, k, v read the present input mixed with the one before (token shift). The state is kept as (logarithm of the mass, mean):
two such pairs join associatively, and no exponential leaves its range.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.scans import Elements, associative_scan

State = tuple[Tensor, Tensor, Tensor]
"""Input before, logarithm of the mass and mean, (B, D) each."""
EMPTY = -1e30
"""Logarithm of no mass."""


class TokenShift(nn.Module):
    """Mix each input with the one before, by a learned share a channel and use.

    :param width: D
    :param uses: number of mixes
    """

    def __init__(self, width: int, uses: int) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.rand(uses, width))

    def forward(self, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        """Return the mixes of x, (..., D), and the inputs before, (..., D)."""
        return tuple(x + share * (before - x) for share in self.share)


def shifted(x: Tensor, before: Tensor) -> Tensor:
    """Return the inputs before those of (B, T, D), of which the first is ``before``, (B, D)."""
    return torch.cat([before.unsqueeze(1), x[:, :-1]], dim=1)


class RWKV4(nn.Module):
    """RWKV-4 time mixing.

    :param width: model width D
    """

    REFERENCE: ClassVar[str] = "Peng et al. 2023"
    UPDATE: ClassVar[str] = (
        r"a_t = e^{-w} a_{t-1} + e^{k_t} v_t, \quad b_t = e^{-w} b_{t-1} + e^{k_t}, \quad "
        r"y_t = \sigma(r_t) \odot \frac{a_{t-1} + e^{u + k_t} v_t}{b_{t-1} + e^{u + k_t}}"
    )
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "recurrent")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = TokenShift(width, 3)
        self.receptance, self.key, self.value, self.outer = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.log_rate = nn.Parameter(torch.linspace(-5.0, 3.0, width))  # log w
        self.bonus = nn.Parameter(torch.full((width,), 0.3).log())  # u

    def initial_state(self, batch: int) -> State:
        """Return a zero input and no mass."""
        zero = self.bonus.new_zeros(batch, len(self.bonus))
        return zero, torch.full_like(zero, EMPTY), zero

    def _project(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return r, k and v, (..., D) each."""
        of_r, of_k, of_v = self.shift(x, before)
        return torch.sigmoid(self.receptance(of_r)), self.key(of_k), self.value(of_v)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D) as a scan."""
        before, mass, mean = state or self.initial_state(x.shape[0])
        r, k, v = self._project(x, shifted(x, before))
        fade, masses, means = associative_scan(_join, ((-self.log_rate.exp()).expand_as(k), k, v))
        masses, means = _mix(mass.unsqueeze(1) + fade, mean.unsqueeze(1), masses, means)  # (B, T, D)
        _, y = _mix(shifted(masses, mass), shifted(means, mean), self.bonus + k, v)
        return self.outer(r * y), (x[:, -1], masses[:, -1], means[:, -1])

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        before, mass, mean = state
        r, k, v = self._project(x, before)
        _, y = _mix(mass, mean, self.bonus + k, v)
        mass, mean = _mix(mass - self.log_rate.exp(), mean, k, v)
        return self.outer(r * y), (x, mass, mean)


def _mix(mass1: Tensor, mean1: Tensor, mass2: Tensor, mean2: Tensor) -> tuple[Tensor, Tensor]:
    """Join two weighted means; masses are logarithms."""
    share = torch.sigmoid(mass2 - mass1)
    return torch.logaddexp(mass1, mass2), (1 - share) * mean1 + share * mean2


def _join(earlier: Elements, later: Elements) -> Elements:
    """Compose two spans (fade, mass, mean): the earlier one fades over the length of the later."""
    (fade1, mass1, mean1), (fade2, mass2, mean2) = earlier, later
    return (fade1 + fade2, *_mix(mass1 + fade2, mean1, mass2, mean2))
