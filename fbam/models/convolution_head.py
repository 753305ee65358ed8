r"""Frame head of strided convolutions, the variant of the author's later trainer, beside the paper's attention (section 10.2).

The embedded cells keep their rows and columns. Each of P stages halves both with a 3 x 3 convolution of stride 2, L_t more
convolutions of stride 1 lie beside residual paths, and the positions left are reduced as in the attention head:

$$R_s = \lceil R_{s-1} / 2 \rceil, \quad C_s = \lceil C_{s-1} / 2 \rceil, \quad T = R_P C_P$$

Its cost is linear in the cells of a frame, where attention's grows with their square. A kernel is stored as a matrix of D rows
and 9 D columns, so Muon takes it like any other matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fbam.models.frame_head import FrameHead

KERNEL = 3
"""Rows and columns of a kernel."""


class Convolution(nn.Module):
    """Norm, GELU, and a 3 x 3 convolution over rows and columns.

    :param width: channels D, in and out
    :param stride: positions from one output to the next, in rows and in columns
    """

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.weight = nn.Parameter(torch.empty(width, width * KERNEL**2))  # (D, 9 D)
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, R, C, D) to (n, ceil(R / stride), ceil(C / stride), D)."""
        width = x.shape[-1]
        y = F.gelu(self.norm(x)).permute(0, 3, 1, 2)  # (n, D, R, C), channels last in memory
        kernel = self.weight.view(width, width, KERNEL, KERNEL)
        return F.conv2d(y, kernel, stride=self.stride, padding=KERNEL // 2).permute(0, 2, 3, 1)


class ConvolutionHead(FrameHead):
    """Strided convolutions in the place of attention and pooling.

    :param rows: rows of a frame R
    :param cols: columns of a frame C
    :param poolings: stages P, each halves rows and columns
    :param blocks: convolutions L_t after the last stage
    """

    def __init__(
        self, rows: int, cols: int, codes: int, width: int, poolings: int, blocks: int, reduction: str = "lstm"
    ) -> None:
        super().__init__(rows * cols, codes, width, reduction)
        self.rows, self.cols = rows, cols
        self.stages = nn.ModuleList(Convolution(width, 2) for _ in range(poolings))
        self.blocks = nn.ModuleList(Convolution(width, 1) for _ in range(blocks))

    def mix(self, x: Tensor) -> Tensor:
        """Map (n, N_f, D) to (n, R_P C_P, D)."""
        x = x.unflatten(1, (self.rows, self.cols))  # (n, R, C, D)
        for stage in self.stages:
            x = stage(x)
        for block in self.blocks:
            x = x + block(x)
        return x.flatten(1, 2)
