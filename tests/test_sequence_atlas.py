"""The further families against slow, obvious readings of their equations, and for what sets each apart."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from fbam.sequence.convolution import long_convolution
from fbam.sequence.delta_net import DeltaNet, NegativeDeltaNet
from fbam.sequence.families import FAMILIES, build, run_form
from fbam.sequence.gated_linear_attention import GLA
from fbam.sequence.heads import SequenceError
from fbam.sequence.hyena import Hyena
from fbam.sequence.latent_recurrent import LatentRecurrent
from fbam.sequence.linear_attention import Performer
from fbam.sequence.linformer import Linformer
from fbam.sequence.looped import Looped
from fbam.sequence.min_max import MinMax, _product
from fbam.sequence.min_rnn import MinGRU, MinLSTM
from fbam.sequence.monarch import Monarch
from fbam.sequence.newton import NewtonElman
from fbam.sequence.rg_lru import RGLRU
from fbam.sequence.rwkv4 import RWKV4, shifted
from fbam.sequence.rwkv7 import RWKV7
from fbam.sequence.s4d import DiagonalSystem
from fbam.sequence.segments import Segmented
from fbam.sequence.sparse_attention import BigBird, Longformer, Reformer
from fbam.sequence.tree_lstm import TreeLSTM


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def influence(layer: torch.nn.Module, length: int, width: int = 8) -> torch.Tensor:
    """Which input moves which output, (T, T): entry (t, s) tells whether output t changes with input s."""
    layer = layer.double()
    x = torch.randn(1, length, width, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda z: layer(z)[0].sum(dim=(0, 2)), x)  # (T, 1, T, D)
    return jacobian.squeeze(1).abs().sum(dim=-1) > 1e-14


def test_performer_estimates_the_softmax_kernel():
    layer = Performer(4, heads=1, features=200_000)
    q, k = torch.randn(4), torch.randn(4)
    estimate = (layer.feature_map(q) @ layer.feature_map(k)) / 200_000
    assert estimate.item() == pytest.approx(math.exp(q @ k / 2), rel=0.05)


def test_retnet_is_attention_with_a_decay_a_distance():
    layer, x = build("retnet", 8, heads=2).double(), torch.randn(1, 5, 8, dtype=torch.float64)
    q, k, v = layer._project(x, 0)
    decay = torch.tensor([1 - 1 / 32, 1 - 1 / 64], dtype=torch.float64)
    y = torch.zeros(1, 5, 2, 4, dtype=torch.float64)
    for t in range(5):
        for s in range(t + 1):
            y[0, t] += (decay ** (t - s) * (q[0, :, t] * k[0, :, s]).sum(dim=-1))[:, None] * v[0, :, s]
    torch.testing.assert_close(layer(x)[0], layer._close(y, x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["gla", "gateloop"])
def test_gated_linear_attention_is_a_decayed_sum_of_writes(family: str):
    layer, x = build(family, 8, heads=2).double(), torch.randn(1, 6, 8, dtype=torch.float64)
    q, factors, writes = layer._project(x)
    sums = [sum(factors[:, s + 1 : t + 1].prod(dim=1) * writes[:, s] for s in range(t + 1)) for t in range(6)]
    torch.testing.assert_close(layer(x)[0], layer._close(q * torch.stack(sums, dim=1), x))
    assert isinstance(layer, GLA) and factors.abs().max() < 1


def test_a_delta_rule_answers_with_what_was_written_last():
    layer = DeltaNet(8, heads=2).double()
    k, v = F.normalize(torch.randn(2, 4, dtype=torch.float64), dim=-1), torch.randn(2, 4, dtype=torch.float64)
    s = torch.randn(2, 4, 4, dtype=torch.float64)
    layer._updates = lambda x: [(k, k, v)]  # a rate of 1
    _, s = layer.step(torch.randn(1, 8, dtype=torch.float64), s.unsqueeze(0))
    torch.testing.assert_close((k.unsqueeze(-1) * s[0]).sum(dim=-2), v)


@pytest.mark.parametrize(("family", "least"), [(DeltaNet, 0.0), (NegativeDeltaNet, -1.0)])
def test_rates_decide_the_sign_of_eigenvalues(family: type, least: float):
    layer = family(8, heads=2)
    with torch.no_grad():
        layer.rate.bias.fill_(20.0)
    factors, _ = layer._affine(torch.randn(1, 3, 8))
    smallest = torch.linalg.eigvalsh(factors).amin(dim=-1)
    torch.testing.assert_close(smallest, torch.full_like(smallest, least), atol=1e-4, rtol=0)


def test_a_product_of_two_reflections_is_a_cycle_of_three():
    layer = build("deltaproduct", 3, heads=1, products=2).double()
    swaps = F.normalize(torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], dtype=torch.float64), dim=-1)
    layer._updates = lambda x: [(k, 2 * k, torch.zeros_like(k)) for k in swaps]
    factor, _ = layer._affine(torch.zeros(3, dtype=torch.float64))
    assert torch.equal(factor.round(), torch.tensor([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64))


def test_rwkv4_is_its_weighted_mean():
    layer, x = RWKV4(6).double(), torch.randn(2, 7, 6, dtype=torch.float64)
    r, k, v = layer._project(x, shifted(x, torch.zeros(2, 6, dtype=torch.float64)))
    w, means = layer.log_rate.exp(), []
    for t in range(7):
        weights = [torch.exp(k[:, s] - (t - 1 - s) * w) for s in range(t)] + [torch.exp(layer.bonus + k[:, t])]
        means.append(sum(a * v[:, s] for s, a in enumerate(weights)) / sum(weights))
    torch.testing.assert_close(layer(x)[0], layer.outer(r * torch.stack(means, dim=1)))


def test_long_convolution_is_a_sum_over_the_past():
    x, kernel = torch.randn(2, 6, 3), torch.randn(3, 6)
    expected = torch.stack([sum(kernel[:, t - s] * x[:, s] for s in range(t + 1)) for t in range(6)], dim=1)
    torch.testing.assert_close(long_convolution(x, kernel), expected)


def test_s4d_states_decay_and_turn_as_the_continuous_system():
    system = DiagonalSystem(2, 3).double()
    scaled, write, _ = system._discrete()
    rate = torch.complex(-system.log_rate.exp(), system.angle)
    step = system.log_step.exp().unsqueeze(-1)
    torch.testing.assert_close(scaled, step * rate)
    times = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000 * step.unsqueeze(-1)  # (D, 1, points)
    integral = (torch.exp(rate.unsqueeze(-1) * times)).mean(dim=-1) * step  # of e^{A s} over one step
    torch.testing.assert_close(write, integral)


@pytest.mark.parametrize("family", ["s5", "lru"])
def test_shared_complex_states_follow_their_equation(family: str):
    layer, x = build(family, 4, state=3).double(), torch.randn(1, 5, 4, dtype=torch.float64)
    rate, angle = layer.log_rate.exp(), layer.angle
    if family == "s5":
        continuous, step = torch.complex(-rate, angle), layer.log_step.exp()
        factor = torch.exp(step * continuous)
        scale = (factor - 1) / continuous
    else:
        factor = torch.exp(-rate) * torch.complex(angle.cos(), angle.sin())
        scale = (1 - factor.abs() ** 2).sqrt()
    h = torch.zeros(1, 3, dtype=torch.complex128)
    for t in range(5):
        h = factor * h + scale * (x[:, t].to(h.dtype) @ torch.complex(*layer.write).T)
        y = F.gelu((h @ torch.complex(*layer.read).T).real + layer.skip * x[:, t])
        torch.testing.assert_close(layer(x)[0][:, t], y * torch.sigmoid(layer.outer(y)))


def test_h3_multiplies_shifted_keys_by_values():
    layer, x = build("h3", 4).double(), torch.randn(1, 6, 4, dtype=torch.float64)
    q, k, v = layer.query_key_value(x).chunk(3, dim=-1)
    k, _ = layer.shift(k, layer.shift.initial_state(1))
    y, _ = layer.system(k * v, layer.system.initial_state(1))
    torch.testing.assert_close(layer(x)[0], layer.outer(q * y))


def test_rg_lru_keeps_the_variance_of_its_inputs():
    layer = RGLRU(6).double()
    u = torch.randn(4, 6, dtype=torch.float64)
    factor, write = layer._affine(u)
    r, i = torch.sigmoid(layer.gates(u)).chunk(2, dim=-1)
    largest = torch.sigmoid(-layer.rate) ** 8  # exp(-8 softplus(Lambda)), the decay at r = 1
    assert 0.9 <= largest.min() and largest.max() <= 0.999
    torch.testing.assert_close(factor, largest**r)
    torch.testing.assert_close(write**2, (1 - factor**2) * (i * u) ** 2)


def test_rwkv7_removes_what_answers_to_kappa():
    layer, x = RWKV7(8, heads=2).double(), torch.randn(1, 8, dtype=torch.float64)
    before, s = torch.zeros(1, 8, dtype=torch.float64), torch.randn(1, 2, 4, 4, dtype=torch.float64)
    r, w, _, _, _, v, gate = layer._coefficients(x, before)
    of_k, of_a = (x * (1 - layer.shift.share[i]) for i in (2, 4))
    k, a = layer.key(of_k), torch.sigmoid(layer.rate(of_a)).unflatten(-1, (2, 4))
    kappa = F.normalize((layer.removal * k).unflatten(-1, (2, 4)), dim=-1)
    factor = torch.diag_embed(w) - (a * kappa).unsqueeze(-1) @ kappa.unsqueeze(-2)
    expected = factor @ s + (a * k.unflatten(-1, (2, 4))).unsqueeze(-1) @ v.unsqueeze(-2)
    y, (_, after) = layer.step(x, (before, s))
    torch.testing.assert_close(after, expected)
    read = torch.einsum("bhp,bhpv->bhv", r, expected)
    torch.testing.assert_close(y, layer.outer(gate * layer.norm(read).flatten(1)))
    assert 0.545 < w.min() and w.max() < 1


def test_hyena_convolves_between_gates():
    layer, x = Hyena(4).double(), torch.randn(1, 7, 4, dtype=torch.float64)
    mixed, _ = layer.short(layer.projection(x), layer.short.initial_state(1))
    v, first, second = mixed.chunk(3, dim=-1)
    kernels = layer.kernels(7)
    for gate, kernel in ((first, kernels[0]), (second, kernels[1])):
        v = gate * torch.stack([sum(kernel[:, t - s] * v[:, s] for s in range(t + 1)) for t in range(7)], dim=1)
    torch.testing.assert_close(layer(x)[0], layer.outer(v))
    torch.testing.assert_close(layer.kernels(5), kernels[..., :5])


def test_min_gates_share_one_unit_of_weight():
    gru, lstm, x = MinGRU(4), MinLSTM(4), torch.randn(2, 3, 4)
    z = torch.sigmoid(gru.gates_candidate(x)[..., :4])
    torch.testing.assert_close(gru._affine(x)[0], 1 - z)
    f, i = torch.sigmoid(lstm.gates_candidate(x)[..., :8]).chunk(2, dim=-1)
    torch.testing.assert_close(lstm._affine(x)[0], f / (f + i))


def test_min_max_products_are_associative_and_read_paths():
    a, b, c = (torch.randn(3, 3) for _ in range(3))
    torch.testing.assert_close(_product(_product(a, b), c), _product(a, _product(b, c)), rtol=0, atol=0)
    widest = max(min(a[0, j].item(), b[j, 2].item()) for j in range(3))
    assert _product(a, b)[0, 2].item() == widest


def test_min_max_states_stay_within_their_range():
    _, h = MinMax(8)(100 * torch.randn(2, 50, 8))
    assert h.abs().max() <= 1


def test_sparse_attention_reads_what_it_says():
    t = torch.arange(20)
    window = ((t[:, None] - t < 5) | (t < 2)).tril()
    assert torch.equal(influence(Longformer(8, heads=2, window=5, globals_=2), 20), window)
    reads = influence(BigBird(8, heads=2, window=5, globals_=2, randoms=1), 20)
    extra = reads & ~window
    assert (window & ~reads).sum() == 0 and 0 < extra.sum() and (extra.sum(dim=1) <= 1).all()


def test_reformer_reads_its_own_bucket():
    layer = Reformer(8, heads=1, buckets=4)
    _, k, _ = layer.project(torch.randn(1, 30, 8))
    near = k[0, 0] @ layer.directions  # (T, 2)
    bucket = [max(range(4), key=lambda b, row=row: (row[b % 2] * (1 if b < 2 else -1)).item()) for row in near]
    expected = torch.tensor([[a == b for b in bucket] for a in bucket])
    assert torch.equal(layer.allowed(k)[0, 0], expected) and 0 < expected.float().mean() < 1


def test_linformer_reads_complete_blocks_through_their_rows():
    layer = Linformer(8, heads=2, block=4, rows=1)
    with torch.no_grad():
        layer.compress[:, :, 1:] = 0.0  # a row holds the first position of its block alone
    t = torch.arange(11)
    own = (t[:, None] // 4 == t // 4).tril()
    first = (t % 4 == 0) & (t[:, None] // 4 > t // 4)
    assert torch.equal(influence(layer, 11), own | first)


@pytest.mark.parametrize(("family", "reach"), [("tcn", 1 + 2 * (1 + 2 + 4)), ("gated_cnn", 4)])
def test_convolutions_read_a_window(family: str, reach: int):
    t = torch.arange(20)
    reads = influence(build(family, 8), 20)
    assert not (reads & (t[:, None] - t >= reach)).any() and reads[-1, -1]


def test_monarch_reads_everything_before_and_refuses_what_does_not_fit():
    assert torch.equal(influence(Monarch(8, side=4), 16), torch.ones(16, 16, dtype=torch.bool).tril())
    with pytest.raises(SequenceError, match="side 4"):
        Monarch(8, side=4)(torch.zeros(1, 17, 8))
    with pytest.raises(SequenceError, match="max_length"):
        BigBird(8, max_length=16)(torch.zeros(1, 17, 8))


@pytest.mark.parametrize("family", ["block_recurrent", "recurrent_memory"])
def test_segments_meet_through_the_memory_alone(family: str):
    layer, x = build(family, 8, segment=4).double(), torch.randn(1, 12, 8, dtype=torch.float64)
    assert isinstance(layer, Segmented)
    memory, outputs = layer.initial_state(1)[0], []
    for i in range(3):
        y, memory = layer.meet(x[:, 4 * i : 4 * i + 4], memory)
        outputs.append(y)
    torch.testing.assert_close(layer(x)[0], torch.cat(outputs, dim=1))
    assert influence(layer, 12).tril().sum() == 12 * 13 / 2


def test_feedback_layers_read_the_top_of_the_past():
    """With all the weight of the memory on the top, a change of the last MLP of an early position reaches the next one."""
    layer, x = build("feedback", 8).double(), torch.randn(1, 3, 8, dtype=torch.float64)
    with torch.no_grad():
        layer.levels.copy_(torch.tensor([-50.0, -50.0, 50.0]))
    before = layer(x)[0]
    with torch.no_grad():
        layer.mlps[-1][-1].bias.add_(1.0)
    after = layer(x)[0] - before
    torch.testing.assert_close(after[:, 0], torch.ones_like(after[:, 0]))
    assert not torch.allclose(after[:, 1], torch.ones_like(after[:, 1]))


def test_looped_rounds_share_one_block():
    layer, x = Looped(8, rounds=3), torch.randn(1, 5, 8)
    h = torch.zeros_like(x)
    for _ in range(3):
        h = h + x
        h = h + layer.attention(layer.norm(h))[0]
        h = h + layer.mlp(h)
    torch.testing.assert_close(layer(x)[0], h)


def test_tree_folds_the_subtrees_that_the_length_names():
    layer, x = TreeLSTM(4).double(), torch.randn(1, 7, 4, dtype=torch.float64)
    a, b, c, d, e, f, g = (layer._leaves(x[:, t]) for t in range(7))
    four = layer._compose(layer._compose(a, b), layer._compose(c, d))
    expected = layer._compose(layer._compose(four, layer._compose(e, f)), g)[0]
    torch.testing.assert_close(layer(x)[0][:, 6], expected)
    chain = a
    for leaf in (b, c, d, e, f, g):
        chain = layer._compose(chain, leaf)
    assert not torch.allclose(chain[0], expected), "the composition is not associative: the tree matters"


def test_newton_takes_few_rounds_and_has_the_gradients_of_the_loop():
    layer, x = NewtonElman(8).double(), torch.randn(2, 64, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 64, 8, dtype=torch.float64)
    leaves = [x, *layer.parameters()]
    iterated, serial = (torch.autograd.grad((run_form(layer, form, x) * weight).sum(), leaves) for form in ("iterated", "serial"))
    for a, b in zip(iterated, serial, strict=True):
        torch.testing.assert_close(a, b)
    _, rounds = layer.solve(x, layer.initial_state(2))
    assert 2 <= rounds <= 16


def test_newton_makes_one_more_position_exact_each_round():
    layer, x = NewtonElman(6).double(), torch.randn(1, 10, 6, dtype=torch.float64)
    with torch.no_grad():
        layer.cell.weight_hh_l0.mul_(4.0)  # far from contractive
    exact, guess = run_form(layer, "serial", x), torch.zeros_like(x)
    for rounds in range(1, 11):
        guess = layer._round(x, layer.initial_state(1), guess)
        torch.testing.assert_close(guess[:, :rounds], exact[:, :rounds])


def test_passes_of_the_latent_recurrence_make_one_more_position_exact_each():
    layer, x = LatentRecurrent(8).double(), torch.randn(1, 6, 8, dtype=torch.float64)
    exact = layer(x)[0]
    for passes in range(1, 7):
        y = layer.refine(x, passes)[0]
        torch.testing.assert_close(y[:, :passes], exact[:, :passes])
        assert passes == 6 or not torch.allclose(y[:, passes], exact[:, passes])


def test_serial_families_are_not_called_associative():
    serial = {name for name, cls in FAMILIES.items() if "serial" in getattr(cls, "FORMS", ("serial",)) and not cls.ASSOCIATIVE}
    assert serial == {"elman", "gru", "lstm", "slstm", "block_recurrent", "recurrent_memory", "feedback", "latent_recurrent", "newton_elman"}
