"""Appendix J: three ways of counting agree, and the paper's setting gives the numbers we quote."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.analysis import flops
from fbam.analysis.flops import PAPER, Shape

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
