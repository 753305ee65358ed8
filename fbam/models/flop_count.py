"""FLOPs as torch's own counter sees them on the real modules (paper, appendix J).

The counter knows matrix products, convolutions and attention but no fused LSTM, so the fused kernels are switched off while it watches:
the same products, one by one. `census` counts by part and by formula; this counts what is really called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def counted(function: Callable[[], object]) -> int:
    """FLOPs of the matrix products and convolutions that a function does, backward passes too, a multiply-add as 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the switch also sets a mode of a device that may not be there
        unfused = torch.backends.mkldnn.flags(enabled=False)
        with unfused, sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            function()
    return counter.get_total_flops()
