"""The families by name, and one way to run each form of each (paper, section 2).

A form is a way to evaluate the same function: "parallel" takes the whole sequence at once, "serial" too but loops inside
(a kernel of the library, or a loop over positions or segments), "iterated" repeats a parallel evaluation until nothing
moves, "chunked" hands the state from one piece of the sequence to the next, "recurrent" is a loop over ``step``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fbam.sequence.delta_net import DeltaNet, DeltaProduct, NegativeDeltaNet
from fbam.sequence.dense_scan import DenseScan
from fbam.sequence.elman import Elman
from fbam.sequence.feedback import FeedbackTransformer
from fbam.sequence.gated_cnn import TCN, GatedCNN
from fbam.sequence.gated_linear_attention import GLA, GateLoop
from fbam.sequence.gru import GRU
from fbam.sequence.h3 import H3
from fbam.sequence.heads import SequenceError
from fbam.sequence.hyena import Hyena
from fbam.sequence.latent_recurrent import LatentRecurrent
from fbam.sequence.linear_attention import LinearAttention, Performer
from fbam.sequence.linformer import Linformer
from fbam.sequence.looped import Looped
from fbam.sequence.lstm import LSTM
from fbam.sequence.mamba import Mamba
from fbam.sequence.mamba2 import Mamba2
from fbam.sequence.min_max import MinMax
from fbam.sequence.min_rnn import MinGRU, MinLSTM
from fbam.sequence.mlstm import MLSTM
from fbam.sequence.monarch import Monarch
from fbam.sequence.newton import NewtonElman
from fbam.sequence.retnet import RetNet
from fbam.sequence.rg_lru import RGLRU
from fbam.sequence.rwkv4 import RWKV4
from fbam.sequence.rwkv7 import RWKV7
from fbam.sequence.s4d import S4D
from fbam.sequence.s5 import LRU, S5
from fbam.sequence.segments import BlockRecurrent, RecurrentMemory
from fbam.sequence.slstm import SLSTM
from fbam.sequence.sparse_attention import BigBird, Longformer, Reformer
from fbam.sequence.steps import over_steps
from fbam.sequence.transformer import RotaryTransformer, Transformer
from fbam.sequence.tree_lstm import TreeLSTM

CHUNK = 16
"""Positions a piece in the form "chunked"."""

# Each class has REFERENCE, UPDATE (TeX) and ASSOCIATIVE, most have FORMS, and a NOTE where relatives or a deviation need a word.
FAMILIES: dict[str, type[nn.Module]] = {
    "elman": Elman,
    "gru": GRU,
    "lstm": LSTM,
    "transformer": Transformer,
    "transformer_rotary": RotaryTransformer,
    "mamba": Mamba,
    "mamba2": Mamba2,
    "slstm": SLSTM,
    "mlstm": MLSTM,
    "dense_scan": DenseScan,
    "linear_attention": LinearAttention,
    "performer": Performer,
    "retnet": RetNet,
    "gla": GLA,
    "gateloop": GateLoop,
    "deltanet": DeltaNet,
    "deltanet_negative": NegativeDeltaNet,
    "deltaproduct": DeltaProduct,
    "rwkv4": RWKV4,
    "rwkv7": RWKV7,
    "s4d": S4D,
    "s5": S5,
    "lru": LRU,
    "h3": H3,
    "rg_lru": RGLRU,
    "mingru": MinGRU,
    "minlstm": MinLSTM,
    "minmax": MinMax,
    "linformer": Linformer,
    "longformer": Longformer,
    "bigbird": BigBird,
    "reformer": Reformer,
    "hyena": Hyena,
    "monarch": Monarch,
    "tcn": TCN,
    "gated_cnn": GatedCNN,
    "looped": Looped,
    "tree_lstm": TreeLSTM,
    "block_recurrent": BlockRecurrent,
    "recurrent_memory": RecurrentMemory,
    "feedback": FeedbackTransformer,
    "latent_recurrent": LatentRecurrent,
    "newton_elman": NewtonElman,
}


def build(family: str, width: int, **options: Any) -> nn.Module:
    """Return one layer that maps (B, T, D) to (B, T, D).

    :param family: a key of ``FAMILIES``
    :param width: D
    :param options: further arguments of the family's class
    :raises SequenceError: there is no such family
    """
    if family not in FAMILIES:
        raise SequenceError(f"there is no family {family!r}; choose one of {', '.join(FAMILIES)}")
    if family == "lstm":
        options = {"hidden": width, **options}
    return FAMILIES[family](width, **options)


def forms_of(family: type[nn.Module]) -> tuple[str, ...]:
    """Return the names of the forms a family has; a class that names none loops inside its ``forward``."""
    return getattr(family, "FORMS", ("serial", "recurrent"))


def run_form(module: nn.Module, form: str, x: Tensor) -> Tensor:
    """Evaluate a layer over a sequence in one of its forms, from its initial state.

    :param form: one of ``forms_of(type(module))``
    :param x: (B, T, D)
    :returns: (B, T, D)
    :raises SequenceError: the layer has no such form
    """
    forms = forms_of(type(module))
    if form not in forms:
        raise SequenceError(f"{type(module).__name__} has no form {form!r}; choose one of {', '.join(forms)}")
    if form == "recurrent":
        return over_steps(module, x)[0]
    if form == "chunked":
        return _over_chunks(module, x)
    return getattr(module, form, module)(x)[0]  # a method named like the form, else ``forward``


def _over_chunks(module: nn.Module, x: Tensor) -> Tensor:
    state, outputs = module.initial_state(x.shape[0]), []
    for piece in x.split(CHUNK, dim=1):
        y, state = module(piece, state)
        outputs.append(y)
    return torch.cat(outputs, dim=1)
