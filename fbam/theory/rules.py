"""Cost rules, one an operator, under the name torch dispatches it (paper, section 2, "unit-cost primitive gates").

Elementwise operators need no entry: torch tags them, and each is one gate. Compound operators without an entry here (softmax,
norms, losses) are run as their decomposition, so that every level of them is counted. What is charged as a whole, because the
library runs it as a kernel, states its assumption in a note: cumulative sums, Fourier transforms, solvers, sorting.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fbam.theory.cost import RULES, Call, Charge, CostModel, rule


def sized(call: Call, levels: int, kind: str, note: str = "") -> Charge:
    return Charge(levels, levels * sum(out.numel() for out in call.outputs), kind, note)


def pointwise(model: CostModel, call: Call) -> Charge:
    """One gate an element."""
    return sized(call, 1, "pointwise")


FREE = Charge(0, 0, "move")
POINTWISE = (
    "masked_fill softplus_backward elu_backward hardtanh_backward copysign complex polar log_sigmoid_backward floor_divide "
    "where hardswish_backward leaky_relu_backward gelu_backward rrelu_with_noise"
)
MOVES = (
    "clone _to_copy copy contiguous cat stack flip roll repeat constant_pad_nd tril triu select_backward slice_backward diagonal_backward "
    "slice_scatter select_scatter diagonal_scatter diag_embed unfold_backward _unsafe_view _reshape_copy unsafe_split unsafe_chunk expand_copy "
    "view_copy permute_copy im2col unfold_copy pixel_shuffle pixel_unshuffle reflection_pad1d replication_pad1d lift lift_fresh_copy "
    "repeat_interleave _conj_physical as_strided_scatter resize as_strided_copy"
)
RULES.update(dict.fromkeys(POINTWISE.split(), pointwise))
RULES.update(dict.fromkeys(MOVES.split(), lambda model, call: FREE))


@rule("addcmul", "addcdiv")
def _two_gates(model: CostModel, call: Call) -> Charge:
    return sized(call, 2, "pointwise")


@rule("lerp")
def _three_gates(model: CostModel, call: Call) -> Charge:
    return sized(call, 3, "pointwise")


@rule("sum", "nansum", "amax", "amin", "max", "min", "prod", "any", "all", "argmax", "argmin", "count_nonzero", "aminmax")
def _reduction(model: CostModel, call: Call) -> Charge:
    k = call.args[0].numel() // max(1, call.outputs[0].numel())
    return Charge(model.join(k), (k - 1) * call.outputs[0].numel(), "reduce")


@rule("mean")
def _mean(model: CostModel, call: Call) -> Charge:
    total = _reduction(model, call)
    return total._replace(levels=total.levels + 1, operations=total.operations + call.outputs[0].numel())


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def _pooling(model: CostModel, call: Call) -> Charge:
    k = torch.Size([call.args[1]] if isinstance(call.args[1], int) else call.args[1]).numel()
    return sized(call, model.join(k) + int(call.name.startswith("avg")), "all")


@rule("avg_pool1d_backward", "avg_pool2d_backward", "avg_pool3d_backward")
def _pooling_backward(model: CostModel, call: Call) -> Charge:
    k = torch.Size([call.args[2]] if isinstance(call.args[2], int) else call.args[2]).numel()
    return sized(call, model.join(k) + 1, "all")


@rule("var", "std", "var_mean", "std_mean")
def _variance(model: CostModel, call: Call) -> Charge:
    total = _reduction(model, call)
    mean = model.join(call.args[0].numel() // max(1, call.outputs[0].numel())) + 1
    variance = 2 * mean + 2 + int(call.name.startswith("std"))  # mean, difference, square, mean, root
    return Charge((variance, mean)[: len(call.outputs)], 4 * total.operations, "reduce")


def _contraction(model: CostModel, call: Call, k: int, added: int = 0) -> Charge:
    size = call.outputs[0].numel()
    return Charge(model.contract(k) + added, size * (2 * k - 1 + added), "contract")


@rule("mm", "bmm", "mv", "dot", "vdot", "_int_mm")
def _product(model: CostModel, call: Call) -> Charge:
    return _contraction(model, call, call.args[0].shape[-1])


@rule("addmm", "baddbmm", "addmv")
def _product_and_sum(model: CostModel, call: Call) -> Charge:
    return _contraction(model, call, call.args[1].shape[-1], added=1)


@rule("convolution")
def _convolution(model: CostModel, call: Call) -> Charge:
    weight, bias = call.args[1], call.argument(2)
    charge = _contraction(model, call, weight[0].numel(), added=int(bias is not None))
    return charge._replace(kind="all")


@rule("convolution_backward")
def _convolution_backward(model: CostModel, call: Call) -> Charge:
    gradient, x, weight = call.args[:3]
    positions = gradient.numel() // gradient.shape[1]
    groups = x.shape[1] // weight.shape[1]
    k = weight[0, 0].numel() * weight.shape[0] // groups
    wanted = call.args[-1]
    levels = tuple(cost for cost, want in zip((model.contract(k), model.contract(positions), model.join(positions)), wanted) if want)
    return Charge(levels, 4 * gradient.numel() * weight[0].numel())


@rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def _cumulative(model: CostModel, call: Call) -> Charge:
    x, out = call.args[0], call.outputs[0]
    n = x.shape[call.args[1]] if x.dim() else 1
    how = "a serial chain, as the library's kernel runs it" if model.cumulative == "serial" else "a scan"
    return Charge(model.prefix(n), out.numel(), "prefix", f"{call.name} is charged as {how}")


@rule("index", "index_select", "gather", "embedding", "take")
def _selection(model: CostModel, call: Call) -> Charge:
    source, indices = (call.args[0], flat_tensors(call.args[1:]))
    if all(call.constant(index) for index in indices):
        return FREE
    k = source.shape[0] if call.name == "embedding" else _extent(source, call)
    return sized(call, model.select(k), "select")


@rule("scatter", "scatter_add", "scatter_reduce", "index_put", "_index_put_impl", "_unsafe_index_put", "index_add", "index_copy", "masked_scatter")
def _scattering(model: CostModel, call: Call) -> Charge:
    indices = [t for t in flat_tensors(call.args[1:]) if t.dtype in (torch.int64, torch.int32, torch.bool)]
    adds = call.name in ("scatter_add", "scatter_reduce", "index_add") or call.argument(3) is True
    k = max([1, *(index.numel() for index in indices)])
    if all(call.constant(index) for index in indices) and not adds:
        return FREE if call.name != "masked_scatter" else sized(call, 1, "all")
    return sized(call, model.select(k), "all")


@rule("_fft_r2c", "_fft_c2c", "_fft_c2r")
def _fourier(model: CostModel, call: Call) -> Charge:
    sizes = call.outputs[0].shape if call.name == "_fft_c2r" else call.args[0].shape
    n = max(1, torch.Size([sizes[axis] for axis in call.args[1]]).numel())
    stages = max(1, (n - 1).bit_length())
    levels = 3 if model.fan_in == "unbounded" else 3 * stages  # complex product (2) and sum: once, or once a stage of butterflies
    note = "a Fourier transform over n is charged as one complex contraction with unbounded fan-in, as 3 levels a butterfly stage with fan-in 2"
    return Charge(levels, 10 * call.outputs[0].numel() * stages, "all", note)


@rule("linalg_solve_triangular", "triangular_solve")
def _substitution(model: CostModel, call: Call) -> Charge:
    n = call.args[0].shape[-1]
    note = "a triangular solve over n is charged as substitution row by row: product, subtraction and division, 3 n levels"
    return Charge(3 * n, 2 * n * call.outputs[0].numel(), "all", note)


@rule("_linalg_solve_ex", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_inv_ex", "linalg_cholesky_ex")
def _elimination(model: CostModel, call: Call) -> Charge:
    n = call.args[0].shape[-1]
    levels = n * (model.join(n) + 3) + 6 * n
    note = "a dense solve, inverse or factor over n is charged as elimination column by column (pivot, 3 gates) and two substitutions"
    return Charge(levels, 2 * n * n * call.outputs[0].numel(), "all", note)


@rule("sort", "argsort", "topk", "msort")
def _sorting(model: CostModel, call: Call) -> Charge:
    n = call.args[0].shape[call.argument(1 if call.name != "topk" else 2, -1)] if call.args[0].dim() else 1
    stages = (n - 1).bit_length()
    levels = 4 if model.fan_in == "unbounded" else stages * (stages + 1) // 2
    note = "sorting n is charged as ranking by all comparisons with unbounded fan-in, as a bitonic network with fan-in 2"
    return Charge(levels, call.args[0].numel() * max(1, stages), "all", note)


def flat_tensors(arguments: Any) -> list[Tensor]:
    """All tensors in nested lists of arguments, in order."""
    found: list[Tensor] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif isinstance(argument, list | tuple):
            found += flat_tensors(argument)
    return found


def _extent(source: Tensor, call: Call) -> int:
    """Entries that a computed index chooses among."""
    if call.name in ("gather", "index_select"):
        return source.shape[call.args[1]]
    if call.name == "index":
        used = [size for size, index in zip(source.shape, call.args[1]) if index is not None]
        return torch.Size(used).numel()
    return source.numel()
