r"""RetNet: linear attention with a fixed decay a head and rotated queries and keys (paper, section 2).

$$S_t = \gamma S_{t-1} + k_t v_t^\top, \qquad y_t = S_t^\top q_t = \sum_{s \le t} \gamma^{t-s} (q_t \cdot k_s) \, v_s$$

The decays are constants, $\gamma_h = 1 - 2^{-5-h}$; rotations of q and k by their positions make the products complex
exponentials of the distance. With $\gamma$ as the only memory, the layer is a time-invariant linear system.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, split_heads
from fbam.sequence.transformer import rotary_frequency, rotate

State = tuple[Tensor, int]
"""S, (B, H, P, P), and the number of positions read."""


class RetNet(nn.Module):
    """Multi-scale retention with a norm a head and a swish gate.

    :param width: model width D
    :param heads: number of heads H; D / H must be even
    """

    REFERENCE: ClassVar[str] = "Sun et al. 2023"
    UPDATE: ClassVar[str] = r"S_t = \gamma S_{t-1} + k_t v_t^\top, \quad y_t = S_t^\top q_t"
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)
        self.outer = nn.Linear(width, width, bias=False)
        self.norm = nn.RMSNorm(self.head_size)
        self.register_buffer("log_decay", torch.log1p(-(2.0 ** (-5 - torch.arange(heads)))), persistent=False)  # (H,)
        self.register_buffer("frequency", rotary_frequency(self.head_size), persistent=False)

    def initial_state(self, batch: int) -> State:
        """Return a zero matrix a head at position 0."""
        return self.outer.weight.new_zeros(batch, self.heads, self.head_size, self.head_size), 0

    def _project(self, x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return q and k, rotated, and v, (B, H, T, P) each, for (B, T, D)."""
        q, k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1))
        return rotate(q, start, self.frequency) * self.head_size**-0.5, rotate(k, start, self.frequency), v

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run the quadratic form over (B, T, D)."""
        s, start = state or self.initial_state(x.shape[0])
        q, k, v = self._project(x, start)
        length = x.shape[1]
        t = torch.arange(length, device=x.device, dtype=x.dtype)
        distance = t[:, None] - t  # (T, T)
        decay = torch.exp(self.log_decay[:, None, None] * distance.clamp_min(0)).tril()  # (H, T, T)
        since = torch.exp(self.log_decay[:, None] * (t + 1)).unsqueeze(-1)  # (H, T, 1)
        y = (decay * (q @ k.transpose(-1, -2))) @ v + since * (q @ s)
        s = since[:, -1:] * s + (decay[:, -1].unsqueeze(-1) * k).transpose(-1, -2) @ v
        return self._close(y.transpose(1, 2), x), (s, start + length)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        s, start = state
        q, k, v = (part.squeeze(2) for part in self._project(x.unsqueeze(1), start))  # (B, H, P) each
        s = self.log_decay.exp()[:, None, None] * s + k.unsqueeze(-1) * v.unsqueeze(-2)
        return self._close((q.unsqueeze(-1) * s).sum(dim=-2), x), (s, start + 1)

    def _close(self, y: Tensor, x: Tensor) -> Tensor:
        """Normalise each head, gate and project: (..., H, P) to (..., D)."""
        return self.outer(F.silu(self.gate(x)) * self.norm(y).flatten(-2))
