"""The true-depth meter: programs whose depth is known, forward and backward, by storage and by element."""

from __future__ import annotations

import doctest
import math
import time
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import fbam.theory.depth as module
from fbam.theory import true_depth
from fbam.theory.cost import CostModel, DepthRuleError

MODELS = ("unbounded", 2)


def levels(fan_in, k):
    """ceil(log2 k) or 1, the slow way."""
    if fan_in == "unbounded":
        return int(k > 1)
    return next(level for level in range(64) if 2**level >= k)


def tree_sum(x):
    """Sum over dimension 0 by a balanced tree of pairs."""
    while len(x) > 1:
        x = x[0::2] + x[1::2]
    return x[0]


def doubling(x):
    """Prefix sums over dimension 0 in log2 n rounds (Hillis and Steele)."""
    step = 1
    while step < len(x):
        x = torch.cat([x[:step], x[step:] + x[:-step]])
        step *= 2
    return x


def running(x):
    """Prefix sums over dimension 0, one after the other."""
    sums = [x[0]]
    for row in x[1:]:
        sums.append(sums[-1] + row)
    return torch.stack(sums)


def test_docstring_example():
    found = doctest.testmod(module)
    assert found.attempted >= 5 and found.failed == 0


@pytest.mark.parametrize("fan_in", MODELS)
@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("elements", [False, True])
def test_chain_of_matrices(fan_in, k, elements):
    matrices = [torch.randn(5, 5) for _ in range(k)]
    found = true_depth(lambda: torch.linalg.multi_dot(matrices) if k == 2 else _product(matrices), fan_in=fan_in, elements=elements)
    assert found.depth == (k - 1) * (1 + levels(fan_in, 5))
    assert found.work == (k - 1) * 25 * 9 and found.backward_depth is None


def _product(matrices):
    result = matrices[0]
    for matrix in matrices[1:]:
        result = result @ matrix
    return result


@pytest.mark.parametrize("n", [2, 8, 64])
def test_two_implementations_of_a_sum_are_told_apart(n):
    x = torch.randn(n, 3)
    assert torch.allclose(tree_sum(x), running(x)[-1], atol=1e-5)
    assert true_depth(tree_sum, x).depth == math.log2(n)
    assert true_depth(lambda x: running(x)[-1], x).depth == n - 1
    assert true_depth(lambda x: x.sum(0), x).depth == 1 and true_depth(lambda x: x.sum(0), x, fan_in=2).depth == math.log2(n)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 16])
@pytest.mark.parametrize("elements", [False, True])
def test_cumulative_sum_as_loop_and_as_scan(n, elements):
    x = torch.randn(n, 2)
    measure = lambda fn, **options: true_depth(fn, x, elements=elements, **options)
    assert torch.allclose(doubling(x), running(x), atol=1e-5)
    assert measure(running).depth == measure(lambda x: x.cumsum(0)).depth == n - 1
    assert measure(doubling).depth == measure(lambda x: x.cumsum(0), fan_in=2, cumulative="tree").depth == levels(2, n)
    assert measure(lambda x: x.cumsum(0), cumulative="tree").depth == 1
    assert "serial chain" in measure(lambda x: x.cumsum(0)).assumptions[0]


def test_each_element_of_a_cumulative_sum_by_itself():
    x = torch.randn(6, requires_grad=True)
    assert true_depth(lambda x: x.cumsum(0), x, elements=True).outputs[0].tolist() == [0, 1, 2, 3, 4, 5]
    late = true_depth(lambda x: torch.cat([x[:3], x[3:].exp().exp().exp()]).cumsum(0), x, elements=True)
    assert late.outputs[0].tolist() == [0, 1, 2, 4, 5, 6]
    tree = true_depth(lambda x: x.cumsum(0), x, elements=True, fan_in=2, cumulative="tree")
    assert tree.outputs[0].tolist() == [levels(2, k) for k in range(1, 7)]
    assert tree.backward_depth == levels(2, 6)


@pytest.mark.parametrize("fan_in", MODELS)
def test_mlp_forward_and_backward(fan_in):
    mlp, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.randn(5, 8)
    for elements in (False, True):
        found = true_depth(mlp, x, fan_in=fan_in, elements=elements)
        assert found.depth == (1 + levels(fan_in, 8) + 1) + 1 + (1 + levels(fan_in, 16) + 1)
        # gradient through the second matrix (over 4), through the ReLU, then the first matrix's gradient (over 5 rows)
        assert found.backward_depth == (1 + levels(fan_in, 4)) + 1 + (1 + levels(fan_in, 5))
        assert found.total == found.depth + found.backward_depth


@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("elements", [False, True])
def test_unrolled_recurrence(n, elements):
    w, x = torch.randn(3, 3, requires_grad=True), torch.randn(n, 2, 3)

    def rnn(x):
        h = torch.zeros(2, 3)
        for row in x:
            h = torch.tanh(row + h @ w)
        return h

    found = true_depth(rnn, x, elements=elements)
    assert found.depth == 4 * n  # product, sum, addition, tanh; the zero state is not yet a constant product, w is an input
    assert len(found.critical_path) == 3 * n and "rnn" in found.critical_path[0].line
    assert found.critical_path[-1].depth == found.depth and found.critical_path[-1].name == "tanh"


def test_backward_of_a_recurrence_grows_with_n():
    lstm = nn.LSTM(4, 4)
    depths = [true_depth(lstm, torch.randn(n, 1, 4)).backward_depth for n in (4, 8, 16)]
    assert depths[2] - depths[1] == 2 * (depths[1] - depths[0]) > 0


def test_branches_that_join():
    x = torch.randn(3)
    branches = lambda x: torch.cat([x.exp(), x.sin().cos().tan()]) * 2
    assert true_depth(branches, x).depth == 4
    assert true_depth(branches, x, elements=True).outputs[0].tolist() == [2, 2, 2, 4, 4, 4]
    assert true_depth(lambda x: (x.exp() + x.sin().cos()).exp(), x).depth == 4
    assert true_depth(lambda x: (x.exp(), x.sin().cos()), x).outputs == (1, 2)


@pytest.mark.parametrize("elements", [False, True])
def test_views_share_and_writes_in_place_reach_them(elements):
    def program(x):
        y = x.exp()  # 1
        view = y.view(2, 3).t()
        y.mul_(2)  # 2
        return view + 1  # 3

    assert true_depth(program, torch.randn(6), elements=elements).depth == 3
    assert true_depth(lambda x: x.t().reshape(-1)[2:].unsqueeze(0), torch.randn(3, 4), elements=elements).depth == 0


@pytest.mark.parametrize("elements", [False, True])
def test_parts_of_a_buffer_do_not_wait_for_each_other(elements):
    def parallel(x):
        out = torch.empty(4, 3)
        for t in range(4):
            out[t] = x[t].exp()
        return out.clone()

    def serial(x):
        out = torch.zeros(5, 3)
        for t in range(4):
            out[t + 1] = out[t] + x[t].exp()
        return out

    def gates(x):
        both = torch.addmm(torch.ones(8), x, torch.ones(3, 8))
        for part in both.chunk(4, dim=1):
            part.sigmoid_()
        return both

    x = torch.randn(4, 3)
    assert true_depth(parallel, x, elements=elements).depth == 1
    assert true_depth(serial, x, elements=elements).depth == 5  # exp, then four additions
    assert true_depth(gates, x, elements=elements).depth == 4


def test_serial_buffer_counts_every_addition():
    found = true_depth(lambda x: (torch.zeros(3) + x[0]) + x[1], torch.randn(2, 3))
    assert found.depth == 2


def test_broadcasting_constants_and_dropout():
    x = torch.randn(4, 1)
    assert true_depth(lambda x: x + torch.arange(5.0).exp().cumsum(0), x).depth == 1  # what comes from constants is free
    assert true_depth(lambda x: (x + x.T).sum(), x, fan_in=2).depth == 1 + 4
    assert true_depth(lambda x: F.dropout(x, 0.5), x).depth == 1
    assert true_depth(lambda x: torch.ones(3).cumsum(0), x).depth == 0


class Cube(torch.autograd.Function):
    """x^3 with a backward pass of its own: one level forward, three backward."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * (x * x * 3)


@pytest.mark.parametrize("elements", [False, True])
def test_autograd_functions(elements):
    found = true_depth(Cube.apply, torch.randn(3, requires_grad=True), elements=elements)
    assert (found.depth, found.backward_depth, found.total) == (1, 3, 3)  # x * x * 3 does not wait for the output


def test_saved_tensors_carry_their_depth():
    x = torch.randn(3, requires_grad=True)
    found = true_depth(lambda x: x.sin().sin().exp(), x)  # exp saves its result, of depth 3; cosines are taken meanwhile
    assert (found.depth, found.backward_depth, found.total) == (3, 3, 6)


@pytest.mark.parametrize("build", [
    lambda: nn.LSTM(8, 8), lambda: nn.GRU(8, 8), lambda: nn.RNN(8, 8), lambda: nn.TransformerEncoderLayer(8, 2, 16), lambda: nn.LayerNorm(8),
    lambda: nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1))])
@pytest.mark.parametrize("fan_in", MODELS)
def test_element_mode_agrees_where_layers_mix_everything(build, fan_in):
    model, x = build(), torch.randn(4, 1, 8)
    whole, single = (true_depth(model, x, fan_in=fan_in, elements=elements) for elements in (False, True))
    assert (whole.depth, whole.backward_depth, whole.total, whole.work) == (single.depth, single.backward_depth, single.total, single.work)
    assert not single.assumptions


def test_transformer_and_lstm_of_the_library():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch remarks that nested tensors are not used
        transformer = nn.Transformer(8, 2, 2, 2, 16)
    depths = {(n, fan_in): true_depth(transformer, torch.randn(n, 1, 8), torch.randn(n, 1, 8), fan_in=fan_in, backward=False).depth
              for n in (4, 8, 16) for fan_in in MODELS}
    assert depths[4, "unbounded"] == depths[16, "unbounded"]
    assert depths[16, 2] - depths[8, 2] == depths[8, 2] - depths[4, 2] > 0
    eval_mode = true_depth(transformer.eval(), torch.randn(4, 1, 8), torch.randn(4, 1, 8))
    assert eval_mode.depth < depths[4, "unbounded"] and eval_mode.backward_depth > 0  # no dropout; no fused kernel either
    assert true_depth(nn.LSTM(8, 8, 2, batch_first=True), torch.randn(1, 16, 8)).depth > 16 * 9


@pytest.mark.parametrize("fan_in, expected", [("unbounded", 1 + 1 + 1 + 1 + 1), (2, 3 + 1 + 1 + 3 + 1)])
def test_softmax_is_maximum_difference_exponential_sum_quotient(fan_in, expected):
    assert true_depth(lambda x: x.softmax(-1), torch.randn(2, 8), fan_in=fan_in).depth == expected


def test_fused_operators_are_never_one():
    q = torch.randn(1, 2, 6, 4, requires_grad=True)
    attention = true_depth(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    assert attention.depth > 8 and attention.backward_depth > 4
    assert true_depth(torch.linalg.solve, torch.eye(6), torch.randn(6, 1)).depth > 6
    assert true_depth(lambda x: torch.fft.fft(x), torch.randn(16), fan_in=2).depth == 12
    assert true_depth(lambda x: F.embedding(torch.tensor([1, 2]), x), torch.randn(8, 3), fan_in=2).depth == 0
    assert true_depth(lambda i: F.embedding(i, torch.ones(8, 3)), torch.tensor([1, 2]), fan_in=2).depth == 1 + 3
    convolution = true_depth(lambda x: F.conv1d(x, torch.ones(5, 4, 3)), torch.randn(1, 4, 9), fan_in=2)
    assert convolution.depth == 1 + levels(2, 12)


def test_an_operator_without_a_rule_is_named():
    with pytest.raises(DepthRuleError, match=r"linalg_eigh.*@rule"):
        true_depth(torch.linalg.eigh, torch.eye(3))


def test_leaving_the_tensors_is_reported():
    found = true_depth(lambda x: x * 2 if x.sum().item() > 0 else x, torch.ones(3))
    assert any("item" in note for note in found.assumptions)


def test_bad_models_are_refused():
    with pytest.raises(ValueError, match="fan_in is 3"):
        CostModel(fan_in=3)
    with pytest.raises(ValueError, match="cumulative"):
        CostModel(cumulative="fast")


def test_the_meter_leaves_no_trace():
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    state, expected = torch.random.get_rng_state(), model(x)
    true_depth(model, x)
    assert model.weight.grad is None and torch.equal(model(x), expected) and torch.equal(torch.random.get_rng_state(), state)


def test_operations_form_the_graph():
    found = true_depth(lambda x: x.exp() + x.sin().cos(), torch.randn(3))
    assert [(op.name, op.parents) for op in found.operations] == [("exp", ()), ("sin", ()), ("cos", (1,)), ("add", (0, 2))]
    for op in found.operations:
        assert op.depth == op.levels + max((found.operations[parent].depth for parent in op.parents), default=0)
    assert found.parallelism == found.work / 3 == 4.0


STEPS = ("exp", "add", "halves", "reverse", "matmul", "sum", "inplace", "roll", "cumsum", "transpose")


def _run(steps, x):
    """A random program on a 4 x 4 matrix."""
    for step in steps:
        if step == "exp":
            x = torch.tanh(x)
        elif step == "add":
            x = x + x[:1]
        elif step == "halves":
            x = torch.cat([x[:2].sin(), x[2:]])
        elif step == "reverse":
            x = x.flip(1)
        elif step == "matmul":
            x = x @ x.t()
        elif step == "sum":
            x = x - x.sum(1, keepdim=True)
        elif step == "inplace":
            x = x.clone()
            x[:, 1].mul_(3)
        elif step == "roll":
            x = x.roll(1, 0)
        elif step == "cumsum":
            x = x.cumsum(1)
        else:
            x = x.t()
    return x


@settings(max_examples=40)
@given(st.lists(st.sampled_from(STEPS), max_size=8), st.sampled_from(MODELS))
def test_element_mode_never_exceeds_storage_mode(steps, fan_in):
    x = torch.randn(4, 4, requires_grad=True)
    whole, single = (true_depth(lambda x: _run(steps, x), x, fan_in=fan_in, elements=elements) for elements in (False, True))
    assert single.depth <= whole.depth and single.backward_depth in (None, *range((whole.backward_depth or 0) + 1))
    for found in (whole, single):
        assert sum(op.levels for op in found.critical_path) == found.depth
        assert sum(op.levels for op in found.backward_path) == (found.backward_depth or 0)


def test_many_operations_are_quick():
    def chain(x):
        for _ in range(5_000):
            x = x + 1
        return x

    def seconds(run):
        start = time.process_time()
        run()
        return time.process_time() - start

    true_depth(chain, torch.zeros(4))  # first use imports decompositions
    plain = min(seconds(lambda: chain(torch.zeros(4))) for _ in range(3))
    assert true_depth(chain, torch.zeros(4)).depth == 5_000
    assert seconds(lambda: true_depth(chain, torch.zeros(4))) < 50 * plain  # about 15 times; 100,000 operations take about 5 s of an idle core
