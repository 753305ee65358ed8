r"""DeltaNet and DeltaProduct: linear recurrences whose factors are (products of) Householder-like matrices (paper, section 2).

The delta rule replaces what the state answers to the key k, |k| = 1, by the value v, at the rate $\beta$:

$$S_t = (I - \beta_t k_t k_t^\top) \, S_{t-1} + \beta_t k_t v_t^\top, \qquad y_t = S_t^\top q_t$$

The eigenvalue along k is $1 - \beta$. With $\beta$ in (0, 1) it is positive, and the layer cannot count modulo 2; with
$\beta$ in (0, 2) it may be -1, a reflection, which is one transposition a token (Grazzi et al. 2025). DeltaProduct makes
several such updates a token, hence products of reflections, among them all permutations (Siems et al. 2025).

The factors are P x P matrices that do not read S, so ``parallel`` is a scan of matrix products. ``forward`` is the form used
for training: with $S_t = S_0 + \sum_{s \le t} k_s u_s^\top$ the recurrence is a triangular system for the u,

$$(I + L) \, U = \mathrm{diag}(\beta) (V - K S_0), \qquad L_{ts} = \beta_t \, k_t \cdot k_s \text{ for } s < t$$

solved for V and K apart, so that chunks wait for $S_0$ only behind the solution. Substitution is serial in T inside one
kernel, and several times as fast here as the scan.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size
from fbam.sequence.scans import dense_scan


class DeltaNet(nn.Module):
    """Delta rule with rates in (0, 1), and a norm a head.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Schlag, Irie and Schmidhuber 2021; Yang et al. 2024 (DeltaNet)"
    UPDATE: ClassVar[str] = r"S_t = (I - \beta_t k_t k_t^\top) S_{t-1} + \beta_t k_t v_t^\top, \quad y_t = S_t^\top q_t, \quad 0 < \beta_t < 1"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "serial", "chunked", "recurrent")
    NOTE: ClassVar[str] = "Gated DeltaNet multiplies the factor by a decay; the update stays linear in S"
    LARGEST_RATE: ClassVar[float] = 1.0

    def __init__(self, width: int, heads: int = 4, products: int = 1) -> None:
        super().__init__()
        self.heads, self.head_size, self.products = heads, head_size(width, heads), products
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * products * width, bias=False)
        self.rate = nn.Linear(width, products * heads)
        self.norm = nn.RMSNorm(self.head_size)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> Tensor:
        """Return S_0 = 0, (B, H, P, P)."""
        return self.outer.weight.new_zeros(batch, self.heads, self.head_size, self.head_size)

    def _updates(self, x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return k, beta k and v, (..., H, P) each, for each update of a token."""
        shape = (self.products, 2, self.heads, self.head_size)
        k, v = self.key_value(x).unflatten(-1, shape).unbind(-3)  # (..., products, H, P) each
        k = F.normalize(k, dim=-1)
        rate = self.LARGEST_RATE * torch.sigmoid(self.rate(x)).unflatten(-1, (self.products, self.heads, 1))
        return list(zip(k.unbind(-3), (rate * k).unbind(-3), v.unbind(-3), strict=True))

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the product of a token's factors and the sum of its writes, (..., H, P, P) each."""
        identity = torch.eye(self.head_size, dtype=x.dtype, device=x.device)
        a, b = None, None
        for k, scaled, v in self._updates(x):
            factor = identity - scaled.unsqueeze(-1) * k.unsqueeze(-2)
            write = scaled.unsqueeze(-1) * v.unsqueeze(-2)
            a, b = (factor, write) if a is None else (factor @ a, factor @ b + write)
        return a, b

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) by substitution in the triangular system."""
        s = self.initial_state(x.shape[0]) if state is None else state
        k, scaled, v = (torch.stack(part, dim=2).flatten(1, 2).transpose(1, 2) for part in zip(*self._updates(x), strict=True))
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, P); k, scaled, v: (B, H, U, P)
        rate = (scaled * k).sum(dim=-1, keepdim=True)  # beta, since |k| = 1
        system = (scaled @ k.transpose(-1, -2)).tril(-1)  # (B, H, U, U); the solver takes ones on the diagonal
        solved = torch.linalg.solve_triangular(system, torch.cat([rate * v, scaled], dim=-1), upper=False, unitriangular=True)
        values, keys = solved.chunk(2, dim=-1)  # (B, H, U, P) each
        u = values - keys @ s
        update = torch.arange(k.shape[2], device=x.device) // self.products  # token of each update
        seen = update <= torch.arange(x.shape[1], device=x.device)[:, None]  # (T, U)
        y = q @ s + ((q @ k.transpose(-1, -2)) * seen) @ u  # (B, H, T, P)
        return self._close(y.transpose(1, 2)), s + k.transpose(-1, -2) @ u

    def parallel(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over (B, T, D) as a scan of matrix products."""
        s = dense_scan(*self._affine(x), self.initial_state(x.shape[0]) if state is None else state)  # (B, T, H, P, P)
        return self._close(self._read(s, x)), s[:, -1]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the recurrence over one position, (B, D): read the answer to k, write the difference."""
        s = state
        for k, scaled, v in self._updates(x):
            answer = (k.unsqueeze(-1) * s).sum(dim=-2)  # (B, H, P)
            s = s + scaled.unsqueeze(-1) * (v - answer).unsqueeze(-2)
        return self._close(self._read(s, x)), s

    def _read(self, s: Tensor, x: Tensor) -> Tensor:
        """Return S^T q, (..., H, P), from the states, (..., H, P, P)."""
        q = self.query(x).unflatten(-1, (self.heads, -1))
        return (q.unsqueeze(-1) * s).sum(dim=-2)

    def _close(self, y: Tensor) -> Tensor:
        """Normalise each head and project: (..., H, P) to (..., D)."""
        return self.outer(self.norm(y).flatten(-2))


class NegativeDeltaNet(DeltaNet):
    """Delta rule with rates in (0, 2): eigenvalues from -1 to 1."""

    REFERENCE: ClassVar[str] = "Grazzi et al. 2025"
    UPDATE: ClassVar[str] = r"S_t = (I - \beta_t k_t k_t^\top) S_{t-1} + \beta_t k_t v_t^\top, \quad y_t = S_t^\top q_t, \quad 0 < \beta_t < 2"
    NOTE: ClassVar[str] = "a rate of 2 reflects: one transposition a token"
    LARGEST_RATE: ClassVar[float] = 2.0


class DeltaProduct(NegativeDeltaNet):
    """Several delta-rule updates a token, with rates in (0, 2).

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param products: updates a token
    """

    REFERENCE: ClassVar[str] = "Siems et al. 2025"
    UPDATE: ClassVar[str] = (
        r"S_t = \prod_j (I - \beta_{t,j} k_{t,j} k_{t,j}^\top) \, S_{t-1} + \dots, \quad y_t = S_t^\top q_t, \quad 0 < \beta_{t,j} < 2"
    )
    NOTE: ClassVar[str] = "products of reflections hold every permutation once they are as many as its transpositions"

    def __init__(self, width: int, heads: int = 4, products: int = 4) -> None:
        super().__init__(width, heads, products)
