r"""Stack of layers of one sequence family, from inputs to logits (paper, section 8.1).

The diagnostics compare families inside one frame: embedding, residual blocks with a norm before each part, a last norm,
an output map. A block is the family's layer; families whose standard block has an MLP get one of D -> 4 D -> D behind it
(sLSTM and mLSTM share that block, so that the pair differs by its gates alone). A single layer of Elman, GRU or LSTM
stands plain, without norm and residual path, as in the paper's one-layer LSTM:

$$x \leftarrow x + \mathrm{layer}(\mathrm{norm}(x)), \qquad x \leftarrow x + \mathrm{MLP}(\mathrm{norm}(x))$$
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fbam.models.frame_head import MLP
from fbam.sequence.families import FAMILIES, build
from fbam.sequence.heads import SequenceError

PLAIN = frozenset({"elman", "gru", "lstm"})
"""Families that stand plain when there is one layer."""
WITHOUT_MLP = PLAIN | {
    "mamba", "mamba2", "mingru", "minlstm", "newton_elman", "tcn", "gated_cnn", "looped", "feedback", "recurrent_memory", "latent_recurrent",
}
"""Families whose standard block is the layer alone, or has its MLP inside."""

State = tuple[int, list[Any]]
"""Number of positions read and the state of each layer."""


class FieldEmbedding(nn.Module):
    """Sum of one embedding a field, plus one a position where the stack learns positions.

    :param sizes: number of values of each field
    :param width: D
    """

    def __init__(self, sizes: Sequence[int], width: int) -> None:
        super().__init__()
        self.fields = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        for field in self.fields:
            nn.init.normal_(field.weight, std=len(sizes) ** -0.5)  # the sum has variance 1

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, F) int64, or (B, T) with a single field, to (B, T, D)."""
        if x.dim() == 2:
            x = x.unsqueeze(-1)
        return sum(field(x[..., i]) for i, field in enumerate(self.fields))


class Block(nn.Module):
    """The family's layer, and an MLP where its standard block has one.

    :param residual: norm before each part and a path around it; otherwise the layer alone
    """

    def __init__(self, family: str, width: int, residual: bool, **options: Any) -> None:
        super().__init__()
        self.layer = build(family, width, **options)
        self.norm = nn.RMSNorm(width) if residual else None
        mlp = residual and family not in WITHOUT_MLP
        self.mlp = nn.Sequential(nn.RMSNorm(width), MLP(width)) if mlp else None

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Map (B, T, D) to (B, T, D) and hand on the layer's state."""
        return self._finish(x, *self.layer(x if self.norm is None else self.norm(x), state))

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Map one position, (B, D), to (B, D)."""
        return self._finish(x, *self.layer.step(x if self.norm is None else self.norm(x), state))

    def _finish(self, x: Tensor, y: Tensor, state: Any) -> tuple[Tensor, Any]:
        x = y if self.norm is None else x + y
        return (x if self.mlp is None else x + self.mlp(x)), state


class SequenceStack(nn.Module):
    """Embedding, blocks of one family, norm, logits; the weights are a function of the arguments and the seed alone.

    :param family: a key of ``FAMILIES``
    :param width: D
    :param layers: number of blocks
    :param inputs: number of tokens, or of values of each field, or a module that maps the input to (B, T, D), whose
        weights are drawn anew from the seed
    :param outputs: logits a position
    :param seed: seed of the initial weights
    :param max_length: positions there are learned vectors for, in a family with learned positions
    :param options: further arguments of the family's class
    :raises SequenceError: unknown family, no layers, or an option that does not fit the width
    """

    def __init__(
        self, family: str, width: int, layers: int, inputs: int | Sequence[int] | nn.Module, outputs: int, seed: int = 0,
        *, max_length: int = 512, **options: Any,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise SequenceError(f"layers is {layers}; a stack needs at least 1")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = _embedding(inputs, width)
            residual = layers > 1 or family not in PLAIN
            self.blocks = nn.ModuleList(Block(family, width, residual, **options) for _ in range(layers))
            learned = getattr(FAMILIES[family], "POSITIONS", None) == "learned"
            self.positions = nn.Parameter(torch.randn(max_length, width)) if learned else None
            self.norm = nn.RMSNorm(width)
            self.output = nn.Linear(width, outputs)
        _open_forget_gates(self)

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def initial_state(self, batch: int) -> State:
        """Return the state before the first position."""
        return 0, [block.layer.initial_state(batch) for block in self.blocks]

    def forward(self, x: Tensor) -> Tensor:
        """Score a sequence.

        :param x: (B, T, F) or (B, T) int64, or what the input module takes
        :returns: logits, (B, T, outputs)
        """
        return self.advance(x, self.initial_state(x.shape[0]))[0]

    def advance(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Score the positions that follow a state; return the logits and the state after the last one."""
        start, states = state
        x = self._place(self.embed(x), start)  # (B, T, D)
        length, after = x.shape[1], []
        for block, before in zip(self.blocks, states, strict=True):
            x, new = block(x, before)
            after.append(new)
        return self.output(self.norm(x)), (start + length, after)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Score one position, (B, F) or (B,) int64 or (B, K), by the recurrent forms; return (B, outputs) and the state."""
        start, states = state
        x = self._place(self.embed(x.unsqueeze(1)), start).squeeze(1)  # (B, D)
        after = []
        for block, before in zip(self.blocks, states, strict=True):
            x, new = block.step(x, before)
            after.append(new)
        return self.output(self.norm(x)), (start + 1, after)

    def _place(self, x: Tensor, start: int) -> Tensor:
        """Add the learned positions from ``start`` on to (B, T, D), where the family has them."""
        if self.positions is None:
            return x
        end = start + x.shape[1]
        if end > len(self.positions):
            raise SequenceError(f"position {end} has no learned vector; build the stack with max_length {end} or more")
        return x + self.positions[start:end]


def _embedding(inputs: int | Sequence[int] | nn.Module, width: int) -> nn.Module:
    if isinstance(inputs, nn.Module):
        for module in inputs.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        return inputs
    return FieldEmbedding([inputs] if isinstance(inputs, int) else list(inputs), width)


@torch.no_grad()
def _open_forget_gates(stack: nn.Module) -> None:
    """Add 1 to the bias of each LSTM's forget gate, as in the main model."""
    for module in stack.modules():
        if isinstance(module, nn.LSTM):
            module.bias_ih_l0.chunk(4)[1].add_(1.0)
