"""Appendix J: three ways of counting agree, and the paper's setting gives the numbers we quote."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fbam.analysis import flops
from fbam.analysis.flops import PAPER, Shape
from fbam.models.action_model import ActionModel, ModelConfig
from fbam.models.flop_count import counted
from fbam.training.optim import split_parameters

sizes = st.integers(1, 64)
shapes = st.builds(
    lambda B, D, last, P, L_t, T_s, L_s: Shape(B=B, D=D, N_f=last * 2**P, P=P, L_t=L_t, T_s=T_s, L_s=L_s),
    sizes, sizes, sizes, st.integers(0, 6), st.integers(0, 8), st.integers(1, 5000), st.integers(1, 12),
)  # fmt: skip


@given(shapes)
def test_sum_closed_form_and_single_products_agree(shape):
    assert flops.head_by_sum(shape) == flops.head_closed(shape) == flops.total(flops.head_products(shape))
    assert flops.main_lstm(shape) == flops.total(flops.main_products(shape))


@given(shapes, st.sampled_from(["B", "D", "L_t"]))
def test_the_head_costs_more_when_a_size_grows(shape, name):
    assert flops.head_by_sum(replace(shape, **{name: getattr(shape, name) + 1})) > flops.head_by_sum(shape)


@given(shapes, st.sampled_from(["B", "D", "T_s", "L_s"]))
def test_the_main_models_cost_more_when_a_size_grows(shape, name):
    larger = replace(shape, **{name: getattr(shape, name) + 1})
    assert flops.main_lstm(larger) > flops.main_lstm(shape)
    assert flops.main_attention(larger) > flops.main_attention(shape)


def test_a_frame_with_more_cells_costs_more_than_in_proportion():
    assert flops.head_by_sum(replace(PAPER, N_f=2 * PAPER.N_f)) > 2 * flops.head_by_sum(PAPER)


def test_numbers_at_the_papers_setting():
    assert flops.head_by_sum(PAPER) == 267_877_110_251_520
    assert flops.main_lstm(PAPER) == 19_791_209_299_968
    assert flops.head_to_main_ratio(PAPER) == 13_860
    assert PAPER.reduction_steps == 1920


@given(st.integers(1, 10**9))
def test_head_and_lstm_keep_their_ratio_at_every_length(frames):
    assert flops.head_to_main_ratio(replace(PAPER, T_s=frames)) == pytest.approx(13_860, rel=1e-12)


def test_attention_overtakes_the_head_where_a_search_finds_it():
    low, high = 1, 2**40  # frames: attention is cheaper at low and dearer at high
    while high - low > 1:
        middle = (low + high) // 2
        shape = replace(PAPER, T_s=middle)
        low, high = (low, middle) if flops.main_attention(shape) > flops.head_sequence(shape) else (middle, high)
    assert low <= flops.attention_crossing(PAPER) <= high
    assert flops.attention_crossing(PAPER) == pytest.approx(8.5e7, rel=0.01)


def test_attention_dearer_from_the_first_frame_crosses_at_zero():
    assert flops.attention_crossing(replace(PAPER, N_f=1, P=0, L_t=0)) == 0


def test_components_add_up_and_keep_their_order():
    products = flops.head_products(PAPER)
    parts = flops.by_component(products)
    assert list(parts) == ["block before pooling 1", "block before pooling 2", "blocks after the last pooling", "reduction LSTM"]
    assert sum(parts.values()) == flops.total(products)
    assert parts["reduction LSTM"] == flops.lstm(512, 1920, 768)


@pytest.mark.parametrize("change", [{"B": 0}, {"D": -1}, {"L_s": 2.0}, {"T_s": True}, {"P": -1}, {"N_f": 7682}])
def test_a_shape_that_cannot_be_is_refused_by_name(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(PAPER, **change)


def test_seconds_at_a_rate():
    assert flops.seconds(6e14, 2e14) == 3
    for rate in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="rate"):
            flops.seconds(1.0, rate)


SMALL = [(Shape(B=2, D=8, N_f=48, P=2, L_t=3, T_s=5, L_s=2), 2), (Shape(B=1, D=12, N_f=24, P=1, L_t=0, T_s=3, L_s=1), 1),
         (Shape(B=3, D=4, N_f=16, P=0, L_t=1, T_s=2, L_s=3), 1)]
CODES, VOCABULARY = 16, 11


def model_of(shape, heads, main="lstm"):
    return ActionModel(ModelConfig(rows=2, cols=shape.N_f // 2, vocab_size=VOCABULARY, codes=CODES, width=shape.D, heads=heads,
                                   poolings=shape.P, head_blocks=shape.L_t, layers=shape.L_s, main=main))


@pytest.mark.parametrize(("shape", "heads"), SMALL)
def test_the_closed_forms_are_what_torch_counts_on_the_real_modules(shape, heads):
    blank = torch.zeros(shape.B, shape.T_s, shape.N_f, dtype=torch.int64)
    vectors = torch.randn(shape.B, shape.T_s, shape.D)
    for main, expected in [("lstm", flops.main_lstm(shape)), ("attention", flops.main_attention(shape))]:
        model = model_of(shape, heads, main)
        with torch.no_grad():
            assert counted(lambda: model.encode(blank, blank, blank, blank)) == flops.head_sequence(shape)
            assert counted(lambda: model.advance(vectors, model.initial_state(shape.B))) == expected
            whole = counted(lambda: model(blank, blank, blank, blank))
        output = 2 * shape.B * shape.T_s * shape.D * VOCABULARY
        assert whole == flops.head_sequence(shape) + expected + output


@pytest.mark.parametrize(("shape", "heads"), SMALL)
def test_parameters_are_those_of_the_real_model(shape, heads):
    model = model_of(shape, heads)
    assert flops.parameters(shape, CODES, VOCABULARY) == model.parameter_count
    matrices, others = split_parameters(model, model.output)
    assert flops.matrix_parameters(shape) == sum(parameter.numel() for parameter in matrices)
    expected = 4 * (2 * model.parameter_count + flops.matrix_parameters(shape) + 2 * sum(parameter.numel() for parameter in others))
    assert flops.state_bytes(model.parameter_count, flops.matrix_parameters(shape)) == expected


def test_what_streaming_keeps_grows_with_the_length_alone():
    one, two = (flops.kept_bytes(replace(PAPER, T_s=frames), 32) for frames in (1024, 2048))
    assert two == 2 * one == 2 * 4 * 512 * 768 * (2048 + 4 * 32)
