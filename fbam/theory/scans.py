r"""What a scan may reorder, and what it may not (paper, sections 2 and 3, appendix A).

A scan computes all prefixes $e_1 \circ \dots \circ e_t$ in O(log n) rounds because it may choose the brackets. For an associative
product the brackets do not matter; for a general update they do, and one triple of elements is enough to show it:

$$(x \circ y) \circ z \ne x \circ (y \circ z)$$
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from fbam.sequence.scans import Elements, associative_scan
from fbam.theory.depth import true_depth

Triple = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Update:
    """A product of elements, each a tuple of `parts` numbers.

    :param combine: maps (earlier, later), each a tuple of tensors, to their product
    """

    name: str
    parts: int
    combine: Callable[[Elements, Elements], Elements]


UPDATES = (
    Update("sum", 1, lambda e, f: (e[0] + f[0],)),
    Update("maximum", 1, lambda e, f: (torch.maximum(e[0], f[0]),)),
    Update("affine maps: a h + b", 2, lambda e, f: (f[0] * e[0], f[0] * e[1] + f[1])),
    Update("decayed maximum: max(f + m, i)", 2, lambda e, f: (e[0] + f[0], torch.maximum(f[0] + e[1], f[1]))),
    Update("difference", 1, lambda e, f: (e[0] - f[0],)),
    Update("1 - tanh(h x)", 1, lambda e, f: (1 - torch.tanh(e[0] * f[0]),)),
    Update("tanh(h + x)", 1, lambda e, f: (torch.tanh(e[0] + f[0]),)),
    Update("leaky ReLU(h + x)", 1, lambda e, f: (torch.nn.functional.leaky_relu(e[0] + f[0], 0.5),)),
)
"""Four associative products (those of linear scans and of mLSTM's stabiliser among them) and four that are not."""


def serial(update: Update, elements: Elements) -> Elements:
    """All prefixes of (B, n) elements, one after the other."""
    columns = list(zip(*(e.unbind(1) for e in elements)))
    prefixes = [columns[0]]
    for later in columns[1:]:
        prefixes.append(update.combine(prefixes[-1], later))
    return tuple(torch.stack(parts, dim=1) for parts in zip(*prefixes))


def counterexample(update: Update, values: Sequence[float]) -> Triple | None:
    """The first triple of elements with parts among `values` whose two bracketings differ; None if there is none."""
    elements = list(product(values, repeat=update.parts))
    for triple in product(elements, repeat=3):
        x, y, z = (tuple(torch.tensor([[part]], dtype=torch.float64) for part in element) for element in triple)
        left, right = update.combine(update.combine(x, y), z), update.combine(x, update.combine(y, z))
        if any(not torch.allclose(a, b) for a, b in zip(left, right)):
            return triple
    return None


def compare(update: Update, n: int, seed: int) -> dict[str, float]:
    """Run the serial loop and the scan on the same n random elements.

    :returns: largest difference over all prefixes, and the depth of either program, fan-in 2
    """
    generator = torch.Generator().manual_seed(seed)
    elements = tuple(torch.randn(4, n, generator=generator, dtype=torch.float64) for _ in range(update.parts))
    loop, scan = (lambda *e: serial(update, e)), (lambda *e: associative_scan(update.combine, e))
    difference = max(float((a - b).abs().max()) for a, b in zip(loop(*elements), scan(*elements)))
    depths = [true_depth(program, *elements, fan_in=2, backward=False).depth for program in (loop, scan)]
    return {"difference": difference, "serial_depth": depths[0], "scan_depth": depths[1]}


def bits_of_a_map(state_bits: int) -> int:
    """Bits that an arbitrary function on states of b bits takes, b 2^b: what a scan over maps must compose when g has no structure."""
    return state_bits * 2**state_bits


def rounds_and_work(n: int, states: int) -> dict[str, int]:
    """Rounds and evaluations of g for n steps of a machine with `states` states: step by step, and as a scan over its maps."""
    rounds = (n - 1).bit_length()
    return {"serial rounds": n, "serial evaluations": n, "scan rounds": rounds, "scan evaluations": states * n * max(1, rounds)}
