r"""A causal Transformer on flattened frames: the plain answer to "vanilla Transformers?" (the paper's section of that title is lost).

No frame head and no recurrence: the cells of all frames of a window and the actions between them are one sequence of L (N_f + 1) tokens,

$$x_{1,1}, \dots, x_{1,N_f}, a_1, x_{2,1}, \dots, x_{2,N_f}, a_2, \dots$$

and the action a_t is read off the last cell of frame t, which has seen all cells up to there and the actions before, which the other
models are not shown. A cell is the sum of embeddings of its code point, colours, style, place in the frame, and number of the frame.
Attention over all of it costs of the order of (L N_f)^2 D, where a frame head and a recurrence cost L times a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fbam.models.action_model import EMBEDDING_DEVIATION, Layer
from fbam.models.frame_head import COLOURS, STYLES
from fbam.models.sequence_stack import FieldEmbedding
from fbam.sequence.transformer import Transformer
from fbam.training.windows import Batch, DrawnOtherwise, LazyBatch


@dataclass(frozen=True)
class FlattenedShape:
    """Shape of a model: N_f cells a frame, vocabulary V, code points, width D, heads, layers, and the longest window in frames."""

    cells: int
    vocab_size: int
    codes: int
    width: int
    heads: int
    layers: int
    length: int


class FlattenedTransformer(nn.Module):
    """Predict the next action by causal attention over every cell of the window.

    Initial weights follow the rule of `ActionModel`: embeddings normal, matrices of fan-in m uniform in 1 / sqrt(m), no output bias.

    :param config: shape of the model
    :param seed: seed of the initial weights
    """

    def __init__(self, config: FlattenedShape, seed: int = 0) -> None:
        super().__init__()
        self.config, width = config, config.width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.cell = FieldEmbedding([config.codes, COLOURS, COLOURS, STYLES], width)
            self.place, self.number = nn.Embedding(config.cells, width), nn.Embedding(config.length, width)
            self.action = nn.Embedding(config.vocab_size, width)
            self.layers = nn.ModuleList(Layer(Transformer(width, config.heads), width) for _ in range(config.layers))
            self.norm = nn.RMSNorm(width)
            self.output = nn.Linear(width, config.vocab_size)
            for module in self.modules():
                if isinstance(module, nn.Embedding):
                    nn.init.normal_(module.weight, std=EMBEDDING_DEVIATION)
            nn.init.zeros_(self.output.bias)

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, code: Tensor, fg: Tensor, bg: Tensor, style: Tensor, action: Tensor) -> Tensor:
        """Score the action after each frame.

        :param code: code points, and likewise fg, bg and style, (B, L, N_f) int64
        :param action: the action after each frame, (B, L) int64; the score of one is computed from those before it
        :returns: logits, (B, L, V)
        """
        length, cells = code.shape[1:]
        channels = torch.stack([code.clamp(max=self.config.codes - 1), fg, bg, style], dim=-1)  # (B, L, N_f, 4)
        x = self.cell(channels) + self.place.weight  # (B, L, N_f, D)
        x = torch.cat([x, self.action(action).unsqueeze(2)], dim=2) + self.number.weight[:length, None]  # (B, L, N_f + 1, D)
        x = x.flatten(1, 2)
        for layer in self.layers:
            x, _ = layer(x)
        return self.output(self.norm(x.unflatten(1, (length, cells + 1))[:, :, cells - 1]))


@dataclass(frozen=True)
class ActedBatch(Batch):
    """A batch that hands the model the actions with the frames."""

    @property
    def frames(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The four channels and the actions."""
        return *super().frames, self.target


@dataclass(frozen=True)
class ActedLazyBatch(LazyBatch):
    """A batch that will hand the model the actions with the frames."""

    def whole(self) -> ActedBatch:
        """Decode everything."""
        return ActedBatch(*self.frames(0, self.target.shape[1]), target=self.target)


class WithActions(DrawnOtherwise):
    """Windows whose batches hand the model the actions with the frames; the draws are those of the windows."""

    def draw(self, rng: np.random.Generator, batch: int, length: int) -> ActedLazyBatch:
        """Draw as `Windows.draw` does."""
        return ActedLazyBatch(**vars(self._windows.draw(rng, batch, length)))
