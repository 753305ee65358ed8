"""Splitting a vector into heads, and the one error of this package."""

from __future__ import annotations

from torch import Tensor


class SequenceError(ValueError):
    """A sequence layer cannot be built or run this way; the message names the value and the remedy."""


def head_size(width: int, heads: int) -> int:
    """Return D / H.

    :raises SequenceError: H does not divide D
    """
    if heads < 1 or width % heads:
        raise SequenceError(f"width {width} is not a multiple of heads {heads}; change one of them")
    return width // heads


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Turn (B, T, D) into (B, H, T, D / H), or (B, D) into (B, H, D / H)."""
    x = x.unflatten(-1, (heads, -1))  # (B, T, H, D / H) or (B, H, D / H)
    return x.transpose(1, 2) if x.dim() == 4 else x


def join_heads(x: Tensor) -> Tensor:
    """Undo ``split_heads``."""
    return (x.transpose(1, 2) if x.dim() == 4 else x).flatten(-2)
