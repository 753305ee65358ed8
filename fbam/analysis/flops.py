"""Appendix J: what one forward pass costs, with a multiply-add counted as 2 FLOPs.

A Transformer block over T positions costs `24 B T D^2 + 4 B T^2 D`, an LSTM layer of width D costs `16 B T D^2`. The head
runs one block at each of the P lengths N_f, N_f / 2, …, then L_t blocks and a reduction LSTM at N_f / 2^P. The paper writes
this as a sum (equation 15) and in closed form (equation 16); `head_products` counts it a third way, one matrix product after
another. Norms, residuals, pooling, softmax and activations are left out, as in the paper.

The head is applied to each of the T_s frames, so its cost and that of the LSTM main model are both linear in the length: their
ratio is a constant. Only attention as the main model grows faster, and it overtakes the head at `attention_crossing`.

The paper uses T_s twice: in this module T_s is the number of frames in a sequence, never the length after s poolings.
"""

from dataclasses import dataclass, fields
from fractions import Fraction

MLP_FACTOR = 4  # D -> 4 D -> D, in the head's blocks and in the main model


@dataclass(frozen=True)
class Shape:
    """The sizes that decide the cost, in the paper's letters.

    Raises ValueError when a size is not a positive whole number (P and L_t may be 0) or P poolings do not divide N_f.
    """

    B: int  # sequences in a batch
    D: int  # width
    N_f: int  # cells of a frame
    P: int  # poolings, each halves the positions of a frame
    L_t: int  # head blocks after the last pooling
    T_s: int  # frames of a sequence
    L_s: int  # layers of the main model

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("P", "L_t") else 1
            if type(value) is not int or value < least:
                raise ValueError(f"{field.name} must be a whole number of at least {least}, not {value!r}")
        if self.N_f % 2**self.P:
            raise ValueError(f"N_f = {self.N_f} cannot be halved P = {self.P} times; choose a multiple of {2**self.P}")

    @property
    def pooled_lengths(self) -> list[int]:
        """Positions of a frame after 0, 1, …, P poolings."""
        return [self.N_f // 2**pooling for pooling in range(self.P + 1)]

    @property
    def reduction_steps(self) -> int:
        """Serial steps of the head's own reduction LSTM, a frame."""
        return self.pooled_lengths[-1]


# Figure 30's caption: 48 x 160 cells, batch 512, width 768, two poolings, three blocks, 1024 frames, two layers.
PAPER = Shape(B=512, D=768, N_f=48 * 160, P=2, L_t=3, T_s=1024, L_s=2)


@dataclass(frozen=True)
class Product:
    """`count` products of a (rows, inner) with an (inner, columns) matrix."""

    component: str
    count: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """Two FLOPs a multiply-add."""
        return 2 * self.count * self.rows * self.inner * self.columns


def block(B: int, T: int, D: int) -> int:
    """FLOPs of one Transformer block with full attention over T positions."""
    return 24 * B * T * D**2 + 4 * B * T**2 * D


def lstm(B: int, T: int, D: int) -> int:
    """FLOPs of one LSTM layer of width D over T positions."""
    return 16 * B * T * D**2


def head_by_sum(shape: Shape) -> int:
    """FLOPs of the frame head for one frame of each of the B sequences: equation 15, term by term."""
    *before, last = shape.pooled_lengths
    blocks = sum(block(shape.B, length, shape.D) for length in before) + shape.L_t * block(shape.B, last, shape.D)
    return blocks + lstm(shape.B, last, shape.D)


def head_closed(shape: Shape) -> int:
    """The same as `head_by_sum` by the closed form of equation 16, in exact fractions."""
    B, D, N, P, L = shape.B, shape.D, shape.N_f, shape.P, shape.L_t
    quadratic = Fraction(16, 3) * (1 - Fraction(1, 4**P)) + Fraction(4 * L, 4**P)
    linear = 48 + Fraction(24 * L - 32, 2**P)
    return int(B * D * N**2 * quadratic + B * D**2 * N * linear)


def block_products(component: str, B: int, T: int, D: int) -> list[Product]:
    """The matrix products of one block: query, key, value and output, scores, mixing, and the MLP."""
    return [
        Product(component, 4, B * T, D, D),
        Product(component, B, T, D, T),
        Product(component, B, T, T, D),
        Product(component, 1, B * T, D, MLP_FACTOR * D),
        Product(component, 1, B * T, MLP_FACTOR * D, D),
    ]


def lstm_products(component: str, B: int, T: int, D: int) -> list[Product]:
    """The matrix products of one LSTM layer: four gates from the input and four from the hidden state, at each step."""
    return [Product(component, 2 * T, B, D, 4 * D)]


def head_products(shape: Shape) -> list[Product]:
    """Every matrix product of the head on one frame of each of the B sequences, without the paper's formulas."""
    B, D, products = shape.B, shape.D, []
    for pooling, length in enumerate(shape.pooled_lengths[:-1]):
        products += block_products(f"block before pooling {pooling + 1}", B, length, D)
    last = shape.pooled_lengths[-1]
    for _ in range(shape.L_t):
        products += block_products("blocks after the last pooling", B, last, D)
    return products + lstm_products("reduction LSTM", B, last, D)


def main_products(shape: Shape) -> list[Product]:
    """Every matrix product of the LSTM main model over the whole sequence."""
    B, T, D, products = shape.B, shape.T_s, shape.D, []
    for _ in range(shape.L_s):
        products += lstm_products("main model, LSTM", B, T, D)
        products.append(Product("main model, MLP", 1, B * T, D, MLP_FACTOR * D))
        products.append(Product("main model, MLP", 1, B * T, MLP_FACTOR * D, D))
    return products


def by_component(products: list[Product]) -> dict[str, int]:
    """FLOPs of each component, in the order of first appearance."""
    totals: dict[str, int] = {}
    for product in products:
        totals[product.component] = totals.get(product.component, 0) + product.flops
    return totals


def total(products: list[Product]) -> int:
    """FLOPs of all products together."""
    return sum(product.flops for product in products)


def head_sequence(shape: Shape) -> int:
    """FLOPs of the head over the T_s frames of each sequence."""
    return shape.T_s * head_by_sum(shape)


def main_lstm(shape: Shape) -> int:
    """FLOPs of the main model over the sequence, L_s layers of LSTM and MLP with hidden size D: `32 B T_s D^2 L_s`."""
    return 32 * shape.B * shape.T_s * shape.D**2 * shape.L_s


def main_attention(shape: Shape) -> int:
    """FLOPs with attention in the place of the LSTM: L_s blocks over T_s frames.

    The score matrix is counted in full, as in the head; a kernel that skips the masked half halves the T_s^2 term.
    """
    return shape.L_s * block(shape.B, shape.T_s, shape.D)


def head_to_main_ratio(shape: Shape) -> float:
    """How many times the head costs the LSTM main model over a sequence; the same for every T_s."""
    return head_sequence(shape) / main_lstm(shape)


def attention_crossing(shape: Shape) -> float:
    """The number of frames from which attention as the main model costs more than the head; T_s is not used.

    Solves `T head = L_s (24 B T D^2 + 4 B T^2 D)` for T; 0 when attention costs more from the first frame on.
    """
    quadratic = 4 * shape.B * shape.D
    return max(0.0, (head_by_sum(shape) / shape.L_s - 24 * shape.B * shape.D**2) / quadratic)


def parameters(shape: Shape, codes: int, vocabulary: int) -> int:
    """Trained values of the whole model: embeddings of codes, cells, 2 x 256 colours and 8 styles; blocks, LSTMs, MLPs, norms; output."""
    D, norm = shape.D, shape.D
    block_size = 4 * D**2 + 2 * MLP_FACTOR * D**2 + 2 * norm
    lstm_size = 8 * D**2 + 8 * D
    head = (codes + shape.N_f + 2 * 256 + 8) * D + (shape.P + shape.L_t) * block_size + norm + lstm_size
    main = shape.L_s * (lstm_size + 2 * MLP_FACTOR * D**2 + 2 * norm) + norm
    return head + main + vocabulary * (D + 1)


def state_bytes(count: int, matrices: int, size: int = 4) -> int:
    """Bytes of `count` weights and their gradients, one moment for the `matrices` (Muon), two for all others (AdamW), `size` bytes each."""
    return size * (2 * count + matrices + 2 * (count - matrices))


def matrix_parameters(shape: Shape) -> int:
    """Trained values that Muon takes: the weights of attention, MLP and LSTM."""
    return shape.D**2 * ((4 + 2 * MLP_FACTOR) * (shape.P + shape.L_t) + 8 + (8 + 2 * MLP_FACTOR) * shape.L_s)


def kept_bytes(shape: Shape, state_every: int, size: int = 4) -> int:
    """What streaming keeps on the host: a vector a frame, its gradient, and h and c of each main layer every `state_every` frames."""
    return size * shape.B * shape.D * (2 * shape.T_s + 2 * shape.L_s * (shape.T_s // state_every))


def seconds(flops: float, rate: float) -> float:
    """Time for `flops` at a sustained `rate` in FLOP/s. Raises ValueError unless the rate is positive."""
    if not rate > 0:
        raise ValueError(f"rate must be a positive number of FLOP/s, not {rate!r}")
    return flops / rate
