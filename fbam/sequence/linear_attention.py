r"""Linear attention: a kernel in place of the softmax, hence a sum that a state can carry (paper, section 2).

$$S_t = S_{t-1} + \phi(k_t) v_t^\top, \quad z_t = z_{t-1} + \phi(k_t), \qquad y_t = \frac{S_t^\top \phi(q_t)}{z_t \cdot \phi(q_t)}$$

The state is a plain sum over the past. Two feature maps: elu + 1, and the positive random features of the Performer,
$\phi(x) = e^{\omega^\top x - |x|^2 / 2}$, whose products estimate the kernel of softmax attention without bias.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, join_heads, split_heads

State = tuple[Tensor, Tensor]
"""S, (B, H, M, P), and z, (B, H, M), for M features."""
FLOOR = 1e-6
"""Added to each feature, so that the sum in the denominator is never zero."""


class LinearAttention(nn.Module):
    """Causal linear attention with the features elu(x) + 1.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Katharopoulos et al. 2020"
    UPDATE: ClassVar[str] = (
        r"S_t = S_{t-1} + \phi(k_t) v_t^\top, \quad z_t = z_{t-1} + \phi(k_t), \quad "
        r"y_t = S_t^\top \phi(q_t) / (z_t \cdot \phi(q_t)), \quad \phi = \mathrm{elu} + 1"
    )
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.features = self.head_size  # M
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return empty sums."""
        s = self.outer.weight.new_zeros(batch, self.heads, self.features, self.head_size)
        return s, s[..., 0]

    def feature_map(self, x: Tensor) -> Tensor:
        """Map queries or keys, (..., P), to positive features, (..., M)."""
        return F.elu(x) + 1 + FLOOR

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return features of q and k, (B, H, T, M), and v, (B, H, T, P); without T for one position."""
        q, k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1))
        return self.feature_map(q), self.feature_map(k), v

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run the quadratic form over (B, T, D)."""
        s, z = state or self.initial_state(x.shape[0])
        q, k, v = self._project(x)
        scores = (q @ k.transpose(-1, -2)).tril()  # (B, H, T, T)
        total = scores.sum(dim=-1, keepdim=True) + q @ z.unsqueeze(-1)  # (B, H, T, 1)
        y = (scores @ v + q @ s) / total
        return self.outer(join_heads(y)), (s + k.transpose(-1, -2) @ v, z + k.sum(dim=-2))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        s, z = state
        q, k, v = self._project(x)
        s, z = s + k.unsqueeze(-1) * v.unsqueeze(-2), z + k
        y = (q.unsqueeze(-1) * s).sum(dim=-2) / (q * z).sum(dim=-1, keepdim=True)
        return self.outer(join_heads(y)), (s, z)


class Performer(LinearAttention):
    """Causal linear attention with positive random features.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    :param features: number M of random features a head
    """

    REFERENCE: ClassVar[str] = "Choromanski et al. 2021"
    UPDATE: ClassVar[str] = (
        r"S_t = S_{t-1} + \phi(k_t) v_t^\top, \quad z_t = z_{t-1} + \phi(k_t), \quad "
        r"y_t = S_t^\top \phi(q_t) / (z_t \cdot \phi(q_t)), \quad \phi(x) = e^{\omega^\top x - |x|^2 / 2}"
    )

    def __init__(self, width: int, heads: int = 4, features: int = 32) -> None:
        super().__init__(width, heads)
        self.features = features
        self.register_buffer("directions", torch.randn(self.head_size, features))  # omega, (P, M)

    def feature_map(self, x: Tensor) -> Tensor:
        """Map queries or keys, (..., P), to positive features, (..., M); their products estimate exp(q . k / sqrt(P))."""
        x = x * self.head_size**-0.25
        return torch.exp(x @ self.directions - (x * x).sum(dim=-1, keepdim=True) / 2) + FLOOR
