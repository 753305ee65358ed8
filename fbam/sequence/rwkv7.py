r"""RWKV-7 style: a delta rule with a decay and a rate of their own for each channel (paper, section 2).

$$S_t = \big(\mathrm{diag}(w_t) - (a_t \odot \hat\kappa_t) \hat\kappa_t^\top\big) S_{t-1} + k_t v_t^\top, \qquad y_t = S_t^\top r_t$$

All coefficients read the present input mixed with the one before. The factors are dense P x P matrices, diagonal plus rank
one, so ``forward`` is a scan of matrix products.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size
from fbam.sequence.rwkv4 import TokenShift, shifted
from fbam.sequence.scans import dense_scan

State = tuple[Tensor, Tensor]
"""Input before, (B, D), and S, (B, H, P, P)."""


class RWKV7(nn.Module):
    """RWKV-7 time mixing without its low-rank maps and value residual; keys are written at the rate a.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Peng et al. 2025"
    UPDATE: ClassVar[str] = (
        r"S_t = (\mathrm{diag}(w_t) - (a_t \odot \hat\kappa_t) \hat\kappa_t^\top) S_{t-1} + k_t v_t^\top, \quad y_t = S_t^\top r_t"
    )
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")
    NOTE: ClassVar[str] = "RWKV-5 and 6 keep the diagonal part alone, constant and input-dependent, as RetNet and GLA"

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.shift = TokenShift(width, 6)
        self.receptance, self.key, self.value, self.gate, self.outer = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.decay, self.rate = nn.Linear(width, width), nn.Linear(width, width)
        self.removal = nn.Parameter(torch.ones(width))  # kappa = removal * k
        self.norm = nn.RMSNorm(self.head_size)

    def initial_state(self, batch: int) -> State:
        """Return a zero input and S_0 = 0."""
        zero = self.outer.weight.new_zeros(batch, self.heads, self.head_size, self.head_size)
        return zero[..., 0].flatten(1), zero

    def _coefficients(self, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        """Return r, w, a * kappa, kappa, k and v, (..., H, P) each, and the gate, (..., D)."""
        of_r, of_w, of_k, of_v, of_a, of_g = self.shift(x, before)
        k, a = self.key(of_k), torch.sigmoid(self.rate(of_a))
        w = torch.exp(-0.6065 * torch.sigmoid(self.decay(of_w)))  # e^{-1/2} = 0.6065, so that w > 0.545
        parts = (self.receptance(of_r), w, a, self.removal * k, k * a, self.value(of_v))
        r, w, a, kappa, k, v = (part.unflatten(-1, (self.heads, -1)) for part in parts)
        kappa = F.normalize(kappa, dim=-1)
        return r, w, a * kappa, kappa, k, v, torch.sigmoid(self.gate(of_g))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run over (B, T, D) as a scan of matrix products."""
        before, s = state or self.initial_state(x.shape[0])
        r, w, scaled, kappa, k, v, gate = self._coefficients(x, shifted(x, before))
        factors = torch.diag_embed(w) - scaled.unsqueeze(-1) * kappa.unsqueeze(-2)  # (B, T, H, P, P)
        s = dense_scan(factors, k.unsqueeze(-1) * v.unsqueeze(-2), s)
        return self._close(r, s, gate), (x[:, -1], s[:, -1])

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D): fade, remove the answer to kappa, write."""
        before, s = state
        r, w, scaled, kappa, k, v, gate = self._coefficients(x, before)
        answer = (kappa.unsqueeze(-1) * s).sum(dim=-2, keepdim=True)  # (B, H, 1, P)
        s = w.unsqueeze(-1) * s - scaled.unsqueeze(-1) * answer + k.unsqueeze(-1) * v.unsqueeze(-2)
        return self._close(r, s, gate), (x, s)

    def _close(self, r: Tensor, s: Tensor, gate: Tensor) -> Tensor:
        """Read with r, normalise each head, gate and project: (..., D)."""
        return self.outer(gate * self.norm((r.unsqueeze(-1) * s).sum(dim=-2)).flatten(-2))
