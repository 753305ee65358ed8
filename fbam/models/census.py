"""Count parameters and FLOPs of a model's parts on its real modules, while they run (paper, section 10.2, appendix J).

A hook on each module that multiplies matrices counts its products, a multiply-add as 2. What appendix J leaves out is left out here
too: norms, residual paths, pooling, softmax, activations and the look-up of embeddings. Scores of causal attention count in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fbam.models.action_model import ActionModel
from fbam.models.convolution_head import Convolution
from fbam.models.frame_head import Attention
from fbam.sequence.transformer import Transformer

PARTS = (  # names of modules -> the part they belong to; {} is the number of a stage, from 1
    (r"head\.(?:code|position|fg|bg|style)\b", "cell embedding"),
    (r"head\.stages\.(\d+)", "head, stage {}"),
    (r"head\.blocks", "head, blocks"),
    (r"head\.(?:norm|reduction)", "head, reduction"),
    (r"position\b", "main, positions"),
    (r"layers\.\d+\.mixer", "main, mixer"),
    (r"layers\.\d+\.mlp", "main, MLP"),
    (r"norm|output", "output"),
)


@dataclass(frozen=True)
class Part:
    """One part of a model on one sequence; shapes are those of one frame in the head, and of the sequence behind it."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    repeats: int  # modules in a row that are the same
    parameters: int
    flops: int


def part_of(name: str) -> str:
    """The part that a module or parameter of this name belongs to."""
    for pattern, part in PARTS:
        if match := re.match(pattern, name):
            return part.format(*(int(number) + 1 for number in match.groups()))
    raise ValueError(f"{name} belongs to no part; name it in PARTS")


def products(module: nn.Module, x: Tensor, y: Any) -> int:
    """FLOPs of the matrix products that a module does itself, not in modules inside it.

    :param x: its input
    :param y: its output, a tensor or a tuple that begins with one
    """
    if isinstance(module, nn.Linear):
        return 2 * y.numel() * module.in_features
    if isinstance(module, Convolution):
        return 2 * y.numel() * module.weight.shape[1]
    if isinstance(module, nn.LSTM):
        return 2 * x.shape[0] * x.shape[1] * 4 * module.hidden_size * (module.input_size + module.hidden_size)
    if isinstance(module, (Attention, Transformer)):
        return 4 * x.shape[1] * x.numel()  # scores and mixing, B T^2 D each
    return 0


@torch.no_grad()
def census(model: ActionModel, length: int = 1) -> list[Part]:
    """Run one sequence of blank frames and return its parts in the order in which they run.

    :param length: frames of the sequence; FLOPs of the head are those of all of them
    """
    shapes: dict[str, tuple[int, ...]] = {}
    flops: dict[str, int] = {}

    def watch(name: str) -> Callable[[nn.Module, tuple, Any], None]:
        def hook(module: nn.Module, inputs: tuple, output: Any) -> None:
            part = part_of(name)
            shapes.setdefault(part, tuple(inputs[0].shape[1:]))
            flops[part] = flops.get(part, 0) + products(module, inputs[0], output)

        return hook

    names = [(name, module) for name, module in model.named_modules() if name and not name.endswith(("head", "layers", "stages", "blocks"))
             and not re.fullmatch(r"layers\.\d+", name)]
    hooks = [module.register_forward_hook(watch(name)) for name, module in names]
    blank = torch.zeros(1, length, model.config.cells, dtype=torch.int64, device=model.output.weight.device)
    logits = model(blank, blank, blank, blank)
    for hook in hooks:
        hook.remove()
    return _parts(model, shapes, flops, tuple(logits.shape[1:]))


def _parts(model: ActionModel, shapes: dict[str, tuple[int, ...]], flops: dict[str, int], last: tuple[int, ...]) -> list[Part]:
    parameters: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        parameters[part_of(name)] = parameters.get(part_of(name), 0) + parameter.numel()
    order = list(shapes)
    repeats = {"head, blocks": model.config.head_blocks, "main, mixer": model.config.layers, "main, MLP": model.config.layers}
    ends = {"main, mixer": shapes["main, mixer"]} | {part: shapes[after] for part, after in zip(order, order[1:])} | {order[-1]: last}
    found = [Part(part, shapes[part], ends[part], repeats.get(part, 1), parameters.get(part, 0), flops[part]) for part in order]
    return found + [Part(part, last[:1], shapes["main, mixer"], 1, count, 0) for part, count in parameters.items() if part not in shapes]
