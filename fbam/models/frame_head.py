r"""Frame head: from the cells of one frame to one vector (paper, sections 9 and 10.2, appendix J).

The $N_f$ cells of a frame are embedded one by one. Each of P stages is a full-attention block followed by a pooling that
halves the sequence, so that the head learns its own tokens; L_t more blocks work on what is left, and an LSTM reads
the result from first to last and hands over its final state:

$$T_s = N_f / 2^s, \quad s = 0 \dots P$$

The mean and the last position can take the LSTM's place (``reduction``); ``convolution_head.py`` is another head.

The paper does not say how neighbours are merged. We average them: it has no parameters, and appendix J counts pooling as
low-order cost, which a learned merge would not be. Blocks carry no biases.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from fbam.sequence.lstm import LSTM

COLOURS = 256
"""Palette entries of text and background."""
STYLES = 8
"""Combinations of bold, reverse and underline."""
REDUCTIONS = ("lstm", "mean", "last")
"""Ways from a sequence to one vector."""


class MLP(nn.Module):
    """Two linear maps D -> 4 D -> D with a GELU between."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4 * width, bias=False)
        self.outer = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        return self.outer(F.gelu(self.inner(x)))


class Attention(nn.Module):
    """Full self-attention: each position sees all positions of its frame.

    :param width: model width D
    :param heads: number of attention heads, a divisor of D
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, T, D) to (n, T, D)."""
        n, t, d = x.shape
        qkv = self.query_key_value(x).view(n, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (n, heads, T, D / heads) each
        y = F.scaled_dot_product_attention(q, k, v)
        return self.outer(y.transpose(1, 2).reshape(n, t, d))


class Block(nn.Module):
    """Attention and MLP, each behind a norm and beside a residual path."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.RMSNorm(width)
        self.mlp = MLP(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, T, D) to (n, T, D)."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


def pool(x: Tensor) -> Tensor:
    """Average each pair of neighbours: (n, T, D) to (n, T / 2, D)."""
    return 0.5 * (x[:, 0::2] + x[:, 1::2])


class FrameHead(nn.Module):
    """Embed frames of N_f cells into vectors of width D: embedding and reduction, the same for every kind of head.

    What lies between is a subclass's: ``mix`` turns (n, N_f, D) into a shorter sequence (n, T, D).

    :param cells: cells of a frame N_f
    :param codes: size of the table of code points; all from ``codes - 1`` on share its last entry
    :param width: model width D
    :param reduction: one of ``REDUCTIONS``: final state of an LSTM (the paper), mean, or last position
    """

    def __init__(self, cells: int, codes: int, width: int, reduction: str = "lstm") -> None:
        super().__init__()
        self.code = nn.Embedding(codes, width)
        self.position = nn.Embedding(cells, width)
        self.fg = nn.Embedding(COLOURS, width)
        self.bg = nn.Embedding(COLOURS, width)
        self.style = nn.Embedding(STYLES, width)
        self.norm = nn.RMSNorm(width)
        self.kind = reduction
        if reduction == "lstm":
            self.reduction = LSTM(width, width)

    def embed(self, code: Tensor, fg: Tensor, bg: Tensor, style: Tensor) -> Tensor:
        """Sum the five embeddings of each cell: four (n, N_f) int64 to (n, N_f, D)."""
        code = code.clamp(max=self.code.num_embeddings - 1)
        return self.code(code) + self.fg(fg) + self.bg(bg) + self.style(style) + self.position.weight

    def mix(self, x: Tensor) -> Tensor:
        """Map the embedded cells, (n, N_f, D), to the sequence that is reduced, (n, T, D)."""
        raise NotImplementedError

    def reduce(self, x: Tensor) -> Tensor:
        """Reduce (n, T, D) to (n, D)."""
        x = self.norm(x)
        if self.kind == "mean":
            return x.mean(dim=1)
        if self.kind == "last":
            return x[:, -1]
        _, (h, _) = self.reduction(x)
        return h

    def forward(self, code: Tensor, fg: Tensor, bg: Tensor, style: Tensor) -> Tensor:
        """Embed n frames.

        :param code: code points, (n, N_f) int64
        :param fg: palette index of the text, (n, N_f) int64
        :param bg: palette index of the background, (n, N_f) int64
        :param style: style bits, (n, N_f) int64
        :returns: (n, D)
        """
        return self.reduce(self.mix(self.embed(code, fg, bg, style)))


class AttentionHead(FrameHead):
    """The paper's head: full attention and pooling.

    :param cells: cells of a frame N_f, divisible by 2^P
    :param heads: attention heads, a divisor of D
    :param poolings: stages P, each a block and a halving of the sequence
    :param blocks: blocks L_t after the last pooling
    """

    def __init__(
        self, cells: int, codes: int, width: int, heads: int, poolings: int, blocks: int, reduction: str = "lstm"
    ) -> None:
        super().__init__(cells, codes, width, reduction)
        self.stages = nn.ModuleList(Block(width, heads) for _ in range(poolings))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))

    def mix(self, x: Tensor) -> Tensor:
        """Map (n, N_f, D) to (n, N_f / 2^P, D)."""
        for stage in self.stages:
            x = pool(stage(x))  # (n, T_s, D) -> (n, T_{s+1}, D)
        for block in self.blocks:
            x = block(x)  # (n, T_P, D)
        return x
