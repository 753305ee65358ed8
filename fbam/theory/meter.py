"""Following a running program below autograd: every operator that torch dispatches is charged to the tracks of each cost model.

Operators are treated by one plan each: charged by their rule, run as their decomposition, or, for views, sources of constants and
exits from the tensors, not charged at all. `plain_kernels` has torch run recurrent layers and attention as the operators they
consist of, so that nothing fused hides a path.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from fbam.theory.cost import RULES, Call, Charge, CostModel, DepthRuleError, Rule
from fbam.theory.rules import flat_tensors, pointwise
from fbam.theory.tracks import TensorTrack, Write


FACTORIES = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full full_like "
    "new_full arange eye linspace logspace rand rand_like randn randn_like randint randint_like randperm scalar_tensor tril_indices triu_indices "
    "lift_fresh fill zero bernoulli uniform normal exponential random cauchy geometric log_normal hann_window".split()
)
SILENT = frozenset("_linalg_check_errors _assert_async _assert_scalar _assert_tensor_metadata sym_size record_stream set_ set_data".split())
LEAVING = frozenset("_local_scalar_dense equal is_nonzero allclose".split())
SHARING = frozenset("_unsafe_view unsafe_split unsafe_split_with_sizes unsafe_chunk _to_copy contiguous lift_fresh_copy resize view_of".split())
LIBRARY = str(Path(torch.__file__).parent)
METER = tuple(str(Path(__file__).parent / name) for name in ("meter.py", "tracks.py", "elements.py", "cost.py", "rules.py", "depth.py"))


@dataclass
class Ledger:
    """What one cost model has charged so far.

    :param tracks: one from the start, and during the backward pass a second one that starts there
    :param work: scalar operations of two operands
    :param notes: assumptions, in the order they came up
    """

    model: CostModel
    tracks: list[TensorTrack]
    work: int = 0
    notes: dict[str, None] = field(default_factory=dict)

    def assumptions(self) -> tuple[str, ...]:
        """The notes, and the operators that element mode took as a whole."""
        fallbacks = sorted(set().union(*(getattr(track, "fallbacks", set()) for track in self.tracks)))
        whole = [f"no rule by element for {', '.join(fallbacks)}: each output element reads every input element"] if fallbacks else []
        return (*self.notes, *whole)


class Meter(TorchDispatchMode):
    """Charges every operator to the tracks of each cost model.

    :param models: cost models
    :param track: class that keeps the depths, by storage or by element
    """

    def __init__(self, models: Sequence[CostModel], track: type[TensorTrack]) -> None:
        super().__init__()
        self._track = track
        self.ledgers = [Ledger(model, [track()]) for model in models]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch's guard against it imports its compiler and costs a tenth of every operator

    def start_backward(self, outputs: Sequence[Tensor], seeds: Sequence[Tensor]) -> None:
        """From here on count the backward pass alone as well; each seed, the gradient of an output, depends on that output."""
        for ledger in self.ledgers:
            for output, seed in zip(outputs, seeds):
                ledger.tracks[0].set(seed, output)
            ledger.tracks.append(self._track(ledger.tracks[0].constant))

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        plan = _PLANS.get(func) or _PLANS.setdefault(func, _plan(func))
        if plan.treatment == "decompose":
            with self:
                return _decompose(func, plan.name, args, kwargs)
        result = func(*args, **kwargs)
        if plan.treatment == "charge":
            self._charge(plan, args, kwargs, flat_tensors(result if isinstance(result, tuple | list) else (result,)))
        elif plan.treatment == "constant":
            for track in (track for ledger in self.ledgers for track in ledger.tracks):
                for output in flat_tensors((result,)):
                    track.make_constant(output)
        elif plan.treatment == "leaves":
            for ledger in self.ledgers:
                ledger.notes["a value left the tensors through .item() or a comparison: what Python decides by it is not followed"] = None
        return result

    def _charge(self, plan: _Plan, args: tuple, kwargs: dict, outputs: list[Tensor]) -> None:
        inputs = flat_tensors(args)
        if kwargs:
            inputs += flat_tensors([value for key, value in kwargs.items() if key != "out"])
        if plan.writes:
            inputs = inputs[1:] if plan.name == "copy" else inputs
        elif plan.name in SHARING and outputs[0].untyped_storage()._cdata == inputs[0].untyped_storage()._cdata:
            return
        call, line = Call(plan.name, args, outputs, self.ledgers[0].tracks[0].constant), _caller()
        free = all(map(call.constant, inputs))
        for ledger in self.ledgers:
            charge = plan.rule(ledger.model, call)
            if free:
                charge = Charge(0 if isinstance(charge.levels, int) else (0,) * len(outputs), 0, charge.kind)
            elif charge.note:
                ledger.notes[charge.note] = None
            ledger.work += charge.operations
            write = Write(plan, line, inputs, outputs, charge, args, kwargs)
            for track in ledger.tracks:
                track.record(write)


@dataclass(frozen=True)
class _Plan:
    """How an operator is treated: charged by a rule, decomposed, or as a source of constants, a view, or an exit from the tensors."""

    func: Any
    name: str
    rule: Rule | None
    treatment: Literal["charge", "decompose", "constant", "leaves", "nothing"]
    writes: bool


_PLANS: dict[Any, _Plan] = {}


def _plan(func: Any) -> _Plan:
    """Decide once an operator: a rule registered for its name; else one gate an element where torch tags it so; else decomposition."""
    name = func._schema.name.removeprefix("aten::").removeprefix("prims::")
    writes = func._schema.is_mutable
    name = name.removesuffix("_") if writes else name
    rule = RULES.get(name) or (pointwise if torch.Tag.pointwise in func.tags else None)
    if name == "lift_fresh":  # torch.tensor of Python numbers
        treatment = "constant"
    elif func.is_view or torch.Tag.inplace_view in func.tags or name in SILENT:
        treatment = "nothing"
    elif name in LEAVING:
        treatment = "leaves"
    elif name in FACTORIES and not (name == "bernoulli" and func._overloadname in ("default", "Tensor")):
        treatment = "constant"
    else:
        treatment = "charge" if rule else "decompose"
    return _Plan(func, name, rule, treatment, writes)


def _decompose(func: Any, name: str, args: tuple, kwargs: dict) -> Any:
    if func in decomposition_table:
        return decomposition_table[func](*args, **kwargs)
    result = func.decompose(*args, **kwargs)
    if result is NotImplemented:
        raise DepthRuleError(
            f"operator {func} has no cost rule and no decomposition; write the model with operators that have one, or register a rule "
            f'with @rule("{name}") from fbam.theory.cost (a function of the cost model and the call that returns a Charge)'
        )
    return result


_OUTSIDE: dict[Any, bool] = {}  # code object -> neither torch nor the meter


def _outside(code: Any) -> bool:
    return not code.co_filename.startswith((LIBRARY, "<")) and code.co_filename not in METER


def _caller() -> str:
    """Function and line that called the operator, outside torch and the meter; empty in the backward pass."""
    frame = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        outside = _OUTSIDE.get(code)
        if outside is None:
            outside = _OUTSIDE[code] = _outside(code)
        if outside:
            return f"{code.co_qualname}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Have torch run recurrent layers and attention as the operators they consist of, not as fused kernels."""
    gc.disable()  # nothing of the growing graph is garbage, and the collector would walk all of it again and again
    fast, onednn = torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    torch._C._set_mkldnn_enabled(False)
    try:
        with torch.backends.cudnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch._C._set_mkldnn_enabled(onednn)
        gc.enable()
