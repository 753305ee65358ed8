r"""Action model: frame head, residual stack of LSTM and MLP, next action (paper, sections 9 and 10.2, appendix J).

The frame head turns each frame x_t into one vector; the main model reads these vectors in order and predicts the action
a_t that was taken on x_t from all frames up to x_t:

$$p(a_t \mid x_1, \dots, x_t)$$

Two kinds of head (``frame_head``: attention as in the paper, conv) and two main models (``main``: lstm as in the paper; causal attention
with learned positions, the ablation of appendix E) have the same three methods: ``encode`` a frame, ``initial_state``, ``advance``.

Initial weights are a function of the configuration and the seed alone, never of the sequence length: embeddings are
normal with deviation ``EMBEDDING_DEVIATION``, matrices and kernels of fan-in m uniform in $\pm 1/\sqrt{m}$, LSTM weights and biases
uniform in $\pm 1/\sqrt{H}$ with 1 added to the forget gate, gains of norms 1 and the bias of the output layer 0. The
output layer must not start at zero: at the paper's rate for AdamW it would then hold back the rest for hundreds of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from fbam.models.convolution_head import Convolution, ConvolutionHead
from fbam.models.frame_head import MLP, REDUCTIONS, AttentionHead, FrameHead
from fbam.sequence.lstm import LSTM
from fbam.sequence.transformer import Transformer

FRAME_HEADS = ("attention", "conv")
MAIN_MODELS = ("lstm", "attention")
POSITIONS = 1024
"""Frames that a main model of causal attention can tell apart: the longest sequence it takes."""
State = tuple[Tensor, Tensor]
"""What a layer of the main model carries on: h and c, (B, D) each; or keys and values, (B, heads, t, D / heads) each."""

EMBEDDING_DEVIATION = 0.1
"""Standard deviation of the embeddings before training."""


class ModelConfigError(ValueError):
    """A model of this shape cannot be built; the message names the value and the remedy."""


@dataclass(frozen=True)
class ModelConfig:
    """Shape of a model: frame R x C, vocabulary V, code points, width D, heads, P, L_t, L_s, and the kinds of its parts."""

    rows: int
    cols: int
    vocab_size: int
    codes: int
    width: int
    heads: int
    poolings: int
    head_blocks: int
    layers: int
    frame_head: str = "attention"
    reduction: str = "lstm"
    main: str = "lstm"

    def __post_init__(self) -> None:
        kinds = {"frame_head": FRAME_HEADS, "reduction": REDUCTIONS, "main": MAIN_MODELS}
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("poolings", "head_blocks") else 1
            if field.name in kinds and value not in kinds[field.name]:
                raise ModelConfigError(f"{field.name} {value!r} is unknown; use {' or '.join(kinds[field.name])}")
            if field.name not in kinds and value < least:
                raise ModelConfigError(f"{field.name} is {value}; it must be at least {least}")
        if self.frame_head == "attention" and self.cells % 2**self.poolings:
            raise ModelConfigError(
                f"{self.rows} x {self.cols} = {self.cells} cells cannot be halved {self.poolings} times; "
                f"choose fewer poolings or a frame whose cells are a multiple of {2**self.poolings}"
            )
        if self.width % self.heads:
            raise ModelConfigError(f"width {self.width} is not a multiple of heads {self.heads}; change one of them")

    @property
    def cells(self) -> int:
        """Cells of a frame, N_f = R C."""
        return self.rows * self.cols


class Layer(nn.Module):
    """One layer of the main model: LSTM or causal attention, then MLP, each behind a norm and beside a residual path."""

    def __init__(self, mixer: LSTM | Transformer, width: int) -> None:
        super().__init__()
        self.mixer_norm = nn.RMSNorm(width)
        self.mixer = mixer
        self.mlp_norm = nn.RMSNorm(width)
        self.mlp = MLP(width)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Map (B, L, D) to (B, L, D) and the state of the mixer after it; position t reads positions up to t."""
        y, state = self.mixer(self.mixer_norm(x), state)
        x = x + y
        return x + self.mlp(self.mlp_norm(x)), state


class ActionModel(nn.Module):
    """Predict the next action from the frames so far.

    :param config: shape of the model
    :param seed: seed of the initial weights
    """

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = _frame_head(config)
            if config.main == "attention":
                self.position = nn.Embedding(POSITIONS, config.width)
            self.layers = nn.ModuleList(Layer(_mixer(config), config.width) for _ in range(config.layers))
            self.norm = nn.RMSNorm(config.width)
            self.output = nn.Linear(config.width, config.vocab_size)
            _initialise(self)

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, code: Tensor, fg: Tensor, bg: Tensor, style: Tensor) -> Tensor:
        """Score the next action at each position.

        :param code: code points, (B, L, N_f) int64
        :param fg: palette index of the text, (B, L, N_f) int64
        :param bg: palette index of the background, (B, L, N_f) int64
        :param style: style bits, (B, L, N_f) int64
        :returns: logits, (B, L, V)
        """
        x, _ = self.advance(self.encode(code, fg, bg, style), self.initial_state(code.shape[0]))
        return self.output(x)

    def encode(self, code: Tensor, fg: Tensor, bg: Tensor, style: Tensor) -> Tensor:
        """Turn each frame into its vector e_t: four (B, L, N_f) int64 to (B, L, D)."""
        batch, length, _ = code.shape
        frames = self.head(*(channel.flatten(0, 1) for channel in (code, fg, bg, style)))  # (B L, D)
        return frames.view(batch, length, self.config.width)

    def initial_state(self, batch: int) -> list[State]:
        """Return the state before the first frame: zero h and c of (B, D) each for every layer, or empty caches."""
        return [layer.mixer.initial_state(batch) for layer in self.layers]

    def advance(self, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """Run the main model over some of the positions, going on from earlier ones.

        :param x: vectors of the frames, (B, k, D)
        :param states: state of each layer before them
        :returns: what the output layer reads, (B, k, D), and the states after the last position
        :raises ModelConfigError: attention as main model, and more than ``POSITIONS`` positions
        """
        if self.config.main == "attention":
            start = states[0][0].shape[2]
            if (stop := start + x.shape[1]) > POSITIONS:
                raise ModelConfigError(f"attention as main model takes {POSITIONS} frames, not {stop}; choose a shorter length or main: lstm")
            x = x + self.position.weight[start:stop]
        after = []
        for layer, state in zip(self.layers, states, strict=True):
            x, state = layer(x, state)
            after.append(state)
        return self.norm(x), after


def _frame_head(config: ModelConfig) -> FrameHead:
    if config.frame_head == "conv":
        return ConvolutionHead(config.rows, config.cols, config.codes, config.width, config.poolings, config.head_blocks, config.reduction)
    return AttentionHead(
        config.cells, config.codes, config.width, config.heads, config.poolings, config.head_blocks, config.reduction
    )


def _mixer(config: ModelConfig) -> LSTM | Transformer:
    return Transformer(config.width, config.heads) if config.main == "attention" else LSTM(config.width, config.width)


@torch.no_grad()
def _initialise(model: ActionModel) -> None:
    """Draw all weights from torch's current generator, as stated at the top of this module."""
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_DEVIATION)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            nn.init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, Convolution):
            bound = module.weight.shape[1] ** -0.5
            nn.init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, nn.LSTM):
            module.reset_parameters()
            module.bias_ih_l0.chunk(4)[1].add_(1.0)
        elif isinstance(module, nn.RMSNorm):
            nn.init.ones_(module.weight)
    nn.init.zeros_(model.output.bias)
