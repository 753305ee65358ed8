r"""Causal convolutions a channel: a short one with a state, and one as long as the sequence.

$$y_t = b + \sum_{j=0}^{K-1} w_j \odot x_{t-j}$$

Many scan-style layers put the short one, K = 4, before their recurrence; it adds a constant depth. The long one, K = T,
is evaluated as a product with a triangular Toeplitz matrix a channel: at the lengths of this project that is as cheap as
a Fourier transform, and its longest path is a sum over T.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalConvolution(nn.Module):
    """Depthwise convolution over the last K positions, with the K - 1 inputs before as its state.

    :param channels: number of channels E
    :param kernel: number of taps K
    """

    def __init__(self, channels: int, kernel: int = 4) -> None:
        super().__init__()
        self.kernel = kernel
        taps = nn.Conv1d(channels, channels, kernel, groups=channels)
        self.weight = nn.Parameter(taps.weight.detach().squeeze(1))  # (E, K), the last tap reads the present
        self.bias = nn.Parameter(taps.bias.detach())

    def initial_state(self, batch: int) -> Tensor:
        """Return K - 1 zero inputs, (B, K - 1, E)."""
        return self.weight.new_zeros(batch, self.kernel - 1, self.weight.shape[0])

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, T, E) to (B, T, E); return the last K - 1 inputs beside it."""
        length = x.shape[1]
        padded = torch.cat([state, x], dim=1)  # (B, K - 1 + T, E)
        image = padded.transpose(1, 2).unsqueeze(2)  # (B, E, 1, K - 1 + T), channels last in memory: the kernel's fast layout
        y = F.conv2d(image, self.weight[:, None, None], self.bias, groups=x.shape[-1])  # (B, E, 1, T)
        return y.squeeze(2).transpose(1, 2), padded[:, length:]

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Map one position, (B, E), to (B, E)."""
        window = torch.cat([state, x.unsqueeze(1)], dim=1)  # (B, K, E)
        return (window * self.weight.T).sum(dim=1) + self.bias, window[:, 1:]


def long_convolution(x: Tensor, kernel: Tensor) -> Tensor:
    """Convolve each channel with a kernel as long as the sequence.

    :param x: (B, T, D)
    :param kernel: (D, T), the first entry multiplies the present
    :returns: (B, T, D)
    """
    t = torch.arange(x.shape[1], device=x.device)
    matrix = kernel[:, (t[:, None] - t).clamp_min(0)].tril()  # (D, T, T)
    return (matrix @ x.permute(2, 1, 0)).permute(2, 1, 0)
