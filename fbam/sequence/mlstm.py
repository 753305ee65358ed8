r"""mLSTM: matrix memory with exponential gates that read the input only (paper, section 2).

$$C_t = f' C_{t-1} + i' k_t v_t^\top, \quad n_t = f' n_{t-1} + i' k_t, \quad
h_t = o \odot \frac{C_t^\top q_t}{\max(|n_t \cdot q_t|, e^{-m_t})}, \quad m_t = \max(\log f + m_{t-1}, \log i)$$

with $i' = e^{\log i - m_t}$ and $f' = e^{\log f + m_{t-1} - m_t}$. Nothing on the right reads h_{t-1}: the update is a
linear recurrence, its stabiliser a scan of the associative pair (sum, maximum). ``step`` is the recurrence, ``forward``
the same sum over s <= t with the weights

$$w_{ts} = (q_t \cdot k_s) \, e^{F_t - F_s + \log i_s - m_t}, \qquad F_t = \log f_1 + \dots + \log f_t$$
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.heads import head_size, split_heads
from fbam.sequence.scans import prefix_sums

State = tuple[Tensor, Tensor, Tensor]
"""C, (B, H, P, P), n, (B, H, P), and m, (B, H)."""
EMPTY = -1e30
"""Stabiliser of an empty memory: the logarithm of a weight that is zero."""


class MLSTM(nn.Module):
    """mLSTM layer with H heads, a norm a head and an output map.

    :param width: model width D
    :param heads: number of heads H, a divisor of D
    """

    REFERENCE: ClassVar[str] = "Beck et al. 2024"
    UPDATE: ClassVar[str] = (
        r"C_t = f_t C_{t-1} + i_t k_t v_t^\top, \quad n_t = f_t n_{t-1} + i_t k_t, \quad "
        r"h_t = o_t \odot C_t^\top q_t / \max(|n_t \cdot q_t|, 1)"
    )
    ASSOCIATIVE: ClassVar[bool] = True
    FORMS: ClassVar[tuple[str, ...]] = ("parallel", "chunked", "recurrent")

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.head_size = heads, head_size(width, heads)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.gates = nn.Linear(width, 2 * heads)  # i and f, a number a head
        with torch.no_grad():
            self.gates.bias[heads:] = torch.linspace(3.0, 6.0, heads)  # heads that forget within 20 to 400 positions
        self.output_gate = nn.Linear(width, width)
        self.norm = nn.RMSNorm(self.head_size)
        self.outer = nn.Linear(width, width, bias=False)

    def initial_state(self, batch: int) -> State:
        """Return a zero memory and the stabiliser of an empty one."""
        memory = self.outer.weight.new_zeros(batch, self.heads, self.head_size, self.head_size)
        return memory, memory[..., 0], torch.full_like(memory[..., 0, 0], EMPTY)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return q, k and v, (B, H, T, P), log i and log f, (B, H, T); without T for one position."""
        q, k, v = (split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1))
        log_i, raw_f = self.gates(x).chunk(2, dim=-1)
        if x.dim() == 3:
            log_i, raw_f = log_i.transpose(1, 2), raw_f.transpose(1, 2)
        return q, k * self.head_size**-0.5, v, log_i, F.logsigmoid(raw_f)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Run the quadratic form over (B, T, D)."""
        memory, n, m = state or self.initial_state(x.shape[0])
        q, k, v, log_i, log_f = self._project(x)
        total = prefix_sums(log_f)  # F, (B, H, T)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        log_w = (total.unsqueeze(-1) - total.unsqueeze(-2) + log_i.unsqueeze(-2)).masked_fill(future, -torch.inf)
        log_past = total + m.unsqueeze(-1)  # weight of the state before, (B, H, T)
        m = torch.maximum(log_w.amax(dim=-1), log_past)  # (B, H, T)
        w = torch.exp(log_w - m.unsqueeze(-1))  # (B, H, T, T)
        past = torch.exp(log_past - m).unsqueeze(-1)  # (B, H, T, 1)
        scores = w * (q @ k.transpose(-1, -2))
        sums = scores.sum(dim=-1) + (past * q * n.unsqueeze(-2)).sum(dim=-1)  # n_t . q_t, (B, H, T)
        h = (scores @ v + past * (q @ memory)) / torch.maximum(sums.abs(), torch.exp(-m)).unsqueeze(-1)
        last = w[..., -1, :].unsqueeze(-1) * k  # (B, H, T, P)
        state = (past[..., -1:, :] * memory + last.transpose(-1, -2) @ v, past[..., -1, :] * n + last.sum(dim=-2), m[..., -1])
        return self._close(h.transpose(1, 2), x), state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the recurrence over one position, (B, D)."""
        memory, n, m = state
        q, k, v, log_i, log_f = self._project(x)  # (B, H, P) and (B, H)
        kept = log_f + m
        m = torch.maximum(kept, log_i)
        f, i = torch.exp(kept - m).unsqueeze(-1), torch.exp(log_i - m).unsqueeze(-1)
        memory = f.unsqueeze(-1) * memory + (i * k).unsqueeze(-1) * v.unsqueeze(-2)
        n = f * n + i * k
        scale = torch.maximum((n * q).sum(dim=-1).abs(), torch.exp(-m)).unsqueeze(-1)
        h = (q.unsqueeze(-1) * memory).sum(dim=-2) / scale
        return self._close(h, x), (memory, n, m)

    def _close(self, h: Tensor, x: Tensor) -> Tensor:
        """Normalise each head, gate and project: (..., H, P) to (..., D)."""
        return self.outer(torch.sigmoid(self.output_gate(x)) * self.norm(h).flatten(-2))
