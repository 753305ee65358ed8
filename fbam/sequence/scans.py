r"""Associative scan: all prefixes of a product in O(log T) rounds (paper, section 2; Blelloch 1990).

For an associative $\circ$ the prefixes $e_1 \circ \dots \circ e_t$ follow from the prefixes of the T / 2 products of
neighbours, by recursion: about 2 T products in all, on a longest path of about $2 \log_2 T$. Linear recurrences
$h_t = A_t h_{t-1} + b_t$ are prefixes of the composition of affine maps, whatever A_t depends on but h:

$$(A_2, b_2) \circ (A_1, b_1) = (A_2 A_1, \; A_2 b_1 + b_2)$$
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Elements = tuple[Tensor, ...]
Combine = Callable[[Elements, Elements], Elements]
"""Maps (earlier, later) to their product, position by position along dimension 1."""


def associative_scan(combine: Combine, elements: Elements) -> Elements:
    """Return the prefix products along dimension 1.

    :param combine: an associative product
    :param elements: tensors of (B, T, ...) that together hold T elements
    :returns: tensors of the same shapes; position t holds the product of the elements 1 to t
    """
    length = elements[0].shape[1]
    if length == 1:
        return elements
    pairs = combine(tuple(e[:, 0 : length - 1 : 2] for e in elements), tuple(e[:, 1::2] for e in elements))
    odd = associative_scan(combine, pairs)  # prefixes that end at positions 1, 3, 5, … counted from 0
    first = tuple(e[:, :1] for e in elements)
    if length == 2:
        return _concatenate(first, odd)
    rest = combine(tuple(e[:, : (length - 1) // 2] for e in odd), tuple(e[:, 2::2] for e in elements))
    return tuple(_interleave(e, o) for e, o in zip(_concatenate(first, rest), odd, strict=True))


def _concatenate(first: Elements, rest: Elements) -> Elements:
    return tuple(torch.cat([a, b], dim=1) for a, b in zip(first, rest, strict=True))


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    """Put (B, ceil(T / 2), ...) at the even and (B, floor(T / 2), ...) at the odd positions."""
    half = odd.shape[1]
    both = torch.stack([even[:, :half], odd], dim=2).flatten(1, 2)
    return both if even.shape[1] == half else torch.cat([both, even[:, half:]], dim=1)


def diagonal_scan(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """Solve h_t = a_t h_{t-1} + b_t entry by entry.

    :param a: factors, (B, T, ...)
    :param b: inputs, (B, T, ...)
    :param start: h_0, (B, ...)
    :returns: h_1 to h_T, (B, T, ...)
    """
    factors, sums = associative_scan(_compose_diagonal, (a, b))
    return factors * start.unsqueeze(1) + sums


def _compose_diagonal(earlier: Elements, later: Elements) -> Elements:
    (a1, b1), (a2, b2) = earlier, later
    return a2 * a1, a2 * b1 + b2


def prefix_sums(x: Tensor) -> Tensor:
    """Sum the positions up to each, as a product with a triangular matrix: one contraction, not a running sum.

    :param x: (..., T)
    :returns: (..., T)
    """
    length = x.shape[-1]
    return x @ torch.ones(length, length, dtype=x.dtype, device=x.device).triu()


def dense_scan(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """Solve h_t = A_t h_{t-1} + b_t for matrices h.

    :param a: A_t, (B, T, ..., N, N)
    :param b: b_t, (B, T, ..., N, M)
    :param start: h_0, (B, ..., N, M)
    :returns: h_1 to h_T, (B, T, ..., N, M)
    """
    factors, sums = associative_scan(_compose_dense, (a, b))
    return factors @ start.unsqueeze(1) + sums


def _compose_dense(earlier: Elements, later: Elements) -> Elements:
    (a1, b1), (a2, b2) = earlier, later
    return a2 @ a1, a2 @ b1 + b2
