r"""Hyena: long convolutions with learned implicit kernels between gates (paper, section 2).

$$z^{(1)} = v, \qquad z^{(n+1)}_t = x^{(n)}_t \odot (h^{(n)} * z^{(n)})_t, \qquad y = z^{(N+1)}$$

A kernel is a small network of the position with a decaying window, so it is as long as the sequence and has no state of
fixed size.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fbam.sequence.convolution import CausalConvolution, long_convolution
from fbam.sequence.over_inputs import OverInputs


class Hyena(OverInputs):
    """Hyena operator.

    :param width: model width D
    :param order: number N of gated convolutions
    :param features: sines and cosines of the position, each
    """

    REFERENCE: ClassVar[str] = "Poli et al. 2023"
    UPDATE: ClassVar[str] = r"z^{(n+1)}_t = x^{(n)}_t \odot (h^{(n)} * z^{(n)})_t"

    def __init__(self, width: int, order: int = 2, features: int = 8) -> None:
        super().__init__(width)
        self.width, self.order = width, order
        self.projection = nn.Linear(width, (order + 1) * width, bias=False)
        self.short = CausalConvolution((order + 1) * width, kernel=3)
        self.inner_filter, self.outer_filter = nn.Linear(2 * features, 32), nn.Linear(32, order * width)
        self.log_decay = nn.Parameter(torch.linspace(-5.0, -1.0, width).repeat(order))  # of the window, (N D,)
        self.register_buffer("frequency", 2.0 ** -torch.arange(features), persistent=False)

    def kernels(self, length: int) -> Tensor:
        """Return the kernels, (N, D, T)."""
        t = torch.arange(length, device=self.log_decay.device, dtype=self.log_decay.dtype)
        angle = t[:, None] * self.frequency  # (T, features)
        values = self.outer_filter(torch.sin(self.inner_filter(torch.cat([angle.sin(), angle.cos()], dim=-1))))  # (T, N D)
        return (values * torch.exp(-t[:, None] * self.log_decay.exp())).T.unflatten(0, (self.order, self.width))

    def mix(self, x: Tensor) -> Tensor:
        """Convolve and gate N times."""
        mixed, _ = self.short(self.projection(x), self.short.initial_state(x.shape[0]))
        z, *gates = mixed.chunk(self.order + 1, dim=-1)  # (B, T, D) each
        for gate, kernel in zip(gates, self.kernels(x.shape[1]), strict=True):
            z = gate * long_convolution(z, kernel)
        return self.outer(z)
