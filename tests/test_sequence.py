"""Every family of the registry against its own recurrence, for causality and for state passing; single ones against others."""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from fbam.sequence.convolution import CausalConvolution
from fbam.sequence.families import CHUNK, FAMILIES, build, forms_of, run_form
from fbam.sequence.heads import SequenceError, head_size
from fbam.sequence.mamba import Mamba
from fbam.sequence.scans import associative_scan, dense_scan, diagonal_scan
from fbam.sequence.transformer import RotaryTransformer, Transformer

WIDTH, LENGTH = 16, 21
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
every_family = pytest.mark.parametrize("family", FAMILIES)
stepping = pytest.mark.parametrize("family", [name for name, cls in FAMILIES.items() if "recurrent" in forms_of(cls)])


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def layer_and_input(family: str, dtype: torch.dtype = torch.float64, length: int = LENGTH):
    """A layer whose weights are larger than at the start, so that all of its parts matter, and an input (2, T, D)."""
    layer = build(family, WIDTH).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer, torch.randn(2, length, WIDTH, dtype=dtype)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    tolerance = TOLERANCE[a.dtype]
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1.0, b.abs().max().item()))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@stepping
def test_every_form_is_the_recurrence(family: str, dtype: torch.dtype):
    layer, x = layer_and_input(family, dtype)
    reference = run_form(layer, "recurrent", x)
    assert reference.shape == x.shape and reference.std() > 1e-3
    for form in forms_of(FAMILIES[family]):
        close(run_form(layer, form, x), reference)


@every_family
def test_the_past_does_not_see_the_future(family: str):
    layer, x = layer_and_input(family)
    for form in forms_of(FAMILIES[family]):
        before = run_form(layer, form, x)
        for t in (0, 1, 7, 8, LENGTH - 1):
            changed = x.clone()
            changed[:, t] += torch.randn(WIDTH, dtype=x.dtype)
            after = run_form(layer, form, changed)
            torch.testing.assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-13)
            assert (after[:, t] != before[:, t]).any(dim=-1).all()


@every_family
def test_gradients_reach_every_weight(family: str):
    layer, x = layer_and_input(family, torch.float32)
    x.requires_grad_()
    for form in forms_of(FAMILIES[family]):
        layer.zero_grad()
        (run_form(layer, form, x) * torch.randn(x.shape)).sum().backward()
        for name, parameter in [("input", x), *layer.named_parameters()]:
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{form}: {name}"
            assert parameter.grad.abs().max() > 0, f"{form}: {name}"


@stepping
def test_two_halves_with_the_state_handed_over_are_one_pass(family: str):
    layer, x = layer_and_input(family)
    whole, last = layer(x)
    for cut in (1, 9):
        first, state = layer(x[:, :cut])
        rest, state = layer(x[:, cut:], state)
        close(torch.cat([first, rest], dim=1), whole)
    next_x = torch.randn(2, WIDTH, dtype=x.dtype)
    close(layer.step(next_x, state)[0], layer.step(next_x, last)[0])


@every_family
def test_the_smallest_input_and_large_values_are_harmless(family: str):
    layer, x = layer_and_input(family, torch.float32, length=1)
    assert layer(x)[0].shape == x.shape
    assert layer(30 * torch.randn(2, LENGTH, WIDTH))[0].isfinite().all()


@every_family
def test_a_family_says_what_it_is(family: str):
    cls = FAMILIES[family]
    assert re.search(r"[A-Z]\w+ .*\b(19|20)\d\d\b", cls.REFERENCE) and "=" in cls.UPDATE and isinstance(cls.ASSOCIATIVE, bool)
    assert set(forms_of(cls)) <= {"parallel", "chunked", "serial", "recurrent", "iterated"}
    if cls.ASSOCIATIVE:
        assert {"parallel", "recurrent"} <= set(forms_of(cls))


def test_unknown_names_and_widths_are_refused():
    with pytest.raises(SequenceError, match="'lsmt'"):
        build("lsmt", 8)
    with pytest.raises(SequenceError, match="form 'parallel'"):
        run_form(build("gru", 8), "parallel", torch.zeros(1, 2, 8))
    with pytest.raises(SequenceError, match="10 is not a multiple of heads 4"):
        build("transformer", 10)
    with pytest.raises(SequenceError):
        head_size(8, 0)


def test_chunks_are_shorter_than_the_test_sequence():
    assert CHUNK < LENGTH


@settings(max_examples=30)
@given(length=st.integers(1, 40))
def test_associative_scan_of_a_product_that_does_not_commute(length: int):
    a = torch.randn(2, length, 3, 3, dtype=torch.float64)
    (fast,) = associative_scan(lambda earlier, later: (later[0] @ earlier[0],), (a,))
    product = torch.eye(3, dtype=torch.float64)
    for t in range(length):
        product = a[:, t] @ product
        torch.testing.assert_close(fast[:, t], product)


def test_scan_calls_its_product_twice_a_level():
    calls = []
    associative_scan(lambda earlier, later: (calls.append(earlier[0].shape[1]), (earlier[0] + later[0],))[1], (torch.ones(1, 64),))
    assert len(calls) == 2 * 6 - 1 and sum(calls) <= 2 * 64


def test_linear_recurrences_start_from_their_state():
    a, b, h = torch.rand(2, 9, 4), torch.randn(2, 9, 4), torch.randn(2, 4)
    dense = dense_scan(torch.diag_embed(a), b.unsqueeze(-1), h.unsqueeze(-1)).squeeze(-1)
    fast = diagonal_scan(a, b, h)
    torch.testing.assert_close(fast, dense)
    for t in range(9):
        h = a[:, t] * h + b[:, t]
        torch.testing.assert_close(fast[:, t], h)


def test_convolution_is_the_library_kernel_with_zeros_before():
    ours = CausalConvolution(5, kernel=4)
    x = torch.randn(2, 9, 5)
    expected = F.conv1d(x.transpose(1, 2), ours.weight.unsqueeze(1), ours.bias, padding=3, groups=5)[..., :9].transpose(1, 2)
    torch.testing.assert_close(ours(x, ours.initial_state(2))[0], expected)


@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
def test_steps_follow_the_library_cells(name: str):
    layer = build(name, 6)
    cell = {"elman": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}[name](6, 6)
    cell.load_state_dict({key.removesuffix("_l0"): value for key, value in layer.cell.state_dict().items()})
    x, state = torch.randn(3, 6), layer.initial_state(3)
    for _ in range(3):
        expected = cell(x, state)
        y, state = layer.step(x, state)
        torch.testing.assert_close(state, expected)


def test_attention_is_a_softmax_over_the_past():
    layer, x = Transformer(12, heads=3), torch.randn(2, 5, 12)
    q, k, v = layer.query_key_value(x).split(12, dim=-1)
    heads = []
    for i in range(3):
        part = slice(4 * i, 4 * i + 4)
        scores = (q[..., part] @ k[..., part].transpose(1, 2) / 2).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
        heads.append(torch.softmax(scores, dim=-1) @ v[..., part])
    torch.testing.assert_close(layer(x)[0], layer.outer(torch.cat(heads, dim=-1)))


def test_rotary_products_depend_on_distances_alone():
    layer = RotaryTransformer(16, heads=2)
    q, k = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 1, 8)
    near = layer.place(q, 7) @ layer.place(k, 3).transpose(-1, -2)
    torch.testing.assert_close(layer.place(q, 104) @ layer.place(k, 100).transpose(-1, -2), near)
    assert not torch.allclose(layer.place(q, 8) @ layer.place(k, 3).transpose(-1, -2), near)


@pytest.mark.parametrize("method", ["forward", "parallel"])
def test_mamba_is_the_reference_implementation(method: str):
    mambapy = pytest.importorskip("mambapy.mamba")
    config = mambapy.MambaConfig(d_model=12, n_layers=1, d_state=5)
    reference, ours = mambapy.MambaBlock(config), Mamba(12, state=5)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    ours.load_state_dict({
        "inner_projection.weight": reference.in_proj.weight,
        "convolution.weight": reference.conv1d.weight.squeeze(1),
        "convolution.bias": reference.conv1d.bias,
        "selection.weight": reference.x_proj.weight,
        "step_projection.weight": reference.dt_proj.weight,
        "step_projection.bias": reference.dt_proj.bias,
        "log_rate": reference.A_log.T,
        "skip": reference.D,
        "outer_projection.weight": reference.out_proj.weight,
    })
    x, weight = torch.randn(2, 16, 12, requires_grad=True), torch.randn(2, 16, 12)
    expected, y = reference(x), getattr(ours, method)(x)[0]
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    wanted, grad = (torch.autograd.grad((out * weight).sum(), x)[0] for out in (expected, y))
    torch.testing.assert_close(grad, wanted, rtol=1e-4, atol=1e-5)
    both = ((reference(x), reference.A_log), (getattr(ours, method)(x)[0], ours.log_rate))
    wanted, grad = (torch.autograd.grad((out * weight).sum(), rate)[0] for out, rate in both)
    torch.testing.assert_close(grad, wanted.T, rtol=1e-4, atol=1e-5)


def test_mamba_starts_with_the_published_rates_and_steps():
    layer = Mamba(32)
    torch.testing.assert_close(layer.log_rate.exp()[:, 0], torch.arange(1.0, 17))
    steps = F.softplus(layer.step_projection.bias)
    assert 0.001 <= steps.min() and steps.max() <= 0.1 and steps.log().std() > 0.5
    assert layer.step_projection.in_features == math.ceil(32 / 16)


def test_mamba2_is_a_diagonal_scan_over_matrices():
    layer, x = layer_and_input("mamba2")
    gate, mixed, raw_step = layer.inner_projection(x).split([32, 64, 1], dim=-1)
    u, b, c = F.silu(layer.convolution(mixed, layer.convolution.initial_state(2))[0]).split([32, 16, 16], dim=-1)
    u, step = u.unflatten(-1, (1, 32)), F.softplus(raw_step + layer.step_bias)
    log_decay = -step * layer.log_rate.exp()
    writes = b[:, :, None, :, None] * (step[..., None] * u).unsqueeze(3)  # (B, T, H, N, P)
    states = diagonal_scan(log_decay.exp()[..., None, None].expand_as(writes), writes, torch.zeros_like(writes[:, 0]))
    close(layer._close((c[:, :, None, :, None] * states).sum(dim=3), u, gate), layer(x)[0])


def test_the_matched_pair_differs_in_what_the_gates_read():
    """Two pasts that end in the same inputs: the next input's gates differ in the sLSTM only."""
    slstm, x = layer_and_input("slstm")
    hidden = [slstm(x * scale)[1][0] for scale in (1.0, -1.0)]
    assert not torch.allclose(*((h.transpose(0, 1) @ slstm.recurrent) for h in hidden))
    mlstm, x = layer_and_input("mlstm")
    assert {name.split(".")[0] for name, _ in mlstm.named_parameters()}.isdisjoint({"recurrent"})


def test_slstm_is_its_equation_without_stabiliser():
    layer, x = layer_and_input("slstm")
    h = c = n = torch.zeros(2, 4, 4, dtype=x.dtype)  # (B, H, P)
    for t in range(LENGTH):
        gates = layer.gates(x[:, t]).unflatten(-1, (4, 16)) + torch.einsum("bhp,hpg->bhg", h, layer.recurrent)
        z, i, f, o = gates.chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.exp(i) * torch.tanh(z)
        n = torch.sigmoid(f) * n + torch.exp(i)
        h = torch.sigmoid(o) * c / n
    close(layer(x)[1][0], h)


def test_mlstm_is_its_equation_without_stabiliser():
    layer, x = layer_and_input("mlstm")
    memory, n = torch.zeros(2, 4, 4, 4, dtype=x.dtype), torch.zeros(2, 4, 4, dtype=x.dtype)
    q, k, v = (part.unflatten(-1, (4, 4)) for part in layer.query_key_value(x).chunk(3, dim=-1))  # (B, T, H, P)
    i, f = (part.unsqueeze(-1) for part in layer.gates(x).chunk(2, dim=-1))
    for t in range(LENGTH):
        write = torch.exp(i[:, t]) * k[:, t] / 2  # keys are divided by the root of P = 4
        memory = torch.sigmoid(f[:, t]).unsqueeze(-1) * memory + write.unsqueeze(-1) * v[:, t].unsqueeze(-2)
        n = torch.sigmoid(f[:, t]) * n + write
        scale = (n * q[:, t]).sum(dim=-1, keepdim=True).abs().clamp_min(1.0)
        h = torch.einsum("bhpv,bhp->bhv", memory, q[:, t]) / scale
        y = layer.outer(torch.sigmoid(layer.output_gate(x[:, t])) * layer.norm(h).flatten(1))
        close(layer(x)[0][:, t], y)


def test_mlstm_stabiliser_cancels():
    layer, x = layer_and_input("mlstm")
    memory, n, m = layer(x)[1]
    shifted = (memory * math.exp(-3), n * math.exp(-3), m + 3)
    one = torch.randn(2, WIDTH, dtype=x.dtype)
    close(layer.step(one, shifted)[0], layer.step(one, (memory, n, m))[0])


def test_dense_scan_holds_a_permutation_for_ever():
    layer = build("dense_scan", 4, heads=1, state=5).double()
    order = torch.tensor([1, 2, 3, 4, 0])
    with torch.no_grad():
        layer.transition.weight.zero_()
        layer.transition.bias.copy_(torch.eye(5)[order].flatten())
        layer.write.weight.zero_()
        layer.write.bias.zero_()
    start = layer.initial_state(1)
    _, h = layer(torch.randn(1, 500, 4, dtype=torch.float64))
    torch.testing.assert_close(h, start)


def test_dense_scan_never_grows():
    layer, x = layer_and_input("dense_scan")
    a, b = layer._affine(x)
    torch.testing.assert_close(a.abs().sum(dim=-2), torch.ones_like(a[..., 0, :]))
    size, h = layer.start.abs().sum(dim=-2), layer.initial_state(2)
    for t in range(LENGTH):
        h, size = a[:, t] @ h + b[:, t], size + b[:, t].abs().sum(dim=-2)
        assert (h.abs().sum(dim=-2) <= size + 1e-12).all()
