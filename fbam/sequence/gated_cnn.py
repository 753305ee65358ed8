r"""Temporal convolutions: a fixed number of layers over a window of fixed length (paper, section 2).

$$y_t = x_t + \mathrm{ReLU}\Big(\sum_{j < K} W_j x_{t - d j}\Big), \qquad
y_t = \Big(\sum_{j < K} W_j x_{t-j}\Big) \odot \sigma\Big(\sum_{j < K} V_j x_{t-j}\Big)$$

The TCN (left) stacks layers with dilations d = 1, 2, 4, …, the gated CNN (right) has one gated convolution a layer.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.over_inputs import OverInputs


class TCN(OverInputs):
    """Dilated causal convolutions with residual paths.

    :param width: model width D
    :param kernel: taps K
    :param depth: convolutions, with dilations 1, 2, 4, …
    """

    REFERENCE: ClassVar[str] = "Bai, Kolter and Koltun 2018"
    UPDATE: ClassVar[str] = r"y_t = x_t + \mathrm{ReLU}(\sum_{j < K} W_j x_{t - d j}), \quad d = 1, 2, 4, \dots"

    def __init__(self, width: int, kernel: int = 3, depth: int = 3) -> None:
        super().__init__(width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, kernel, dilation=2**i) for i in range(depth))

    def mix(self, x: Tensor) -> Tensor:
        """Run the layers one after the other."""
        x = x.transpose(1, 2)  # (B, D, T)
        for layer in self.layers:
            reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
            x = x + torch.relu(layer(F.pad(x, (reach, 0))))
        return self.outer(x.transpose(1, 2))


class GatedCNN(OverInputs):
    """One causal convolution with a gate.

    :param width: model width D
    :param kernel: taps K
    """

    REFERENCE: ClassVar[str] = "Dauphin et al. 2017"
    UPDATE: ClassVar[str] = r"y_t = (\sum_{j < K} W_j x_{t-j}) \odot \sigma(\sum_{j < K} V_j x_{t-j})"

    def __init__(self, width: int, kernel: int = 4) -> None:
        super().__init__(width)
        self.convolution = nn.Conv1d(width, 2 * width, kernel)

    def mix(self, x: Tensor) -> Tensor:
        """Convolve and gate."""
        padded = F.pad(x.transpose(1, 2), (self.convolution.kernel_size[0] - 1, 0))
        return self.outer(F.glu(self.convolution(padded).transpose(1, 2), dim=-1))
