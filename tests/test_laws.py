"""Growth laws: known laws are found with their coefficients, few or unclear points are refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fbam.theory import true_depth
from fbam.theory.laws import LawError, fit_law

LENGTHS = (8, 16, 32, 64)


@given(st.integers(1, 50), st.integers(1, 20), st.sampled_from(["constant", "logarithmic", "linear", "n/chunk"]))
def test_known_laws_are_recovered(offset, slope, name):
    value = {"constant": lambda n: 0, "logarithmic": math.log2, "linear": lambda n: n, "n/chunk": lambda n: n / 4}[name]
    law = fit_law(LENGTHS, [offset + slope * value(n) for n in LENGTHS], chunk=4 if name == "n/chunk" else None)
    assert law.name == name and law.error < 1e-6
    assert law.offset == pytest.approx(offset, abs=1e-6) and law.slope == pytest.approx(0 if name == "constant" else slope)
    assert law(128) == pytest.approx(offset + slope * value(128))


def test_other_growth_is_unclear():
    assert fit_law(LENGTHS, [n**2 for n in LENGTHS]).name == "unclear"
    assert fit_law((2, 8, 32, 128), [5, 90, 3, 40]).name == "unclear"


def test_a_logarithm_and_a_line_that_fit_alike_are_not_told_apart():
    assert fit_law((32, 64, 128, 256), [38, 39, 40, 42]).name == "unclear"
    assert fit_law((32, 64, 128, 256), [38, 39, 40, 41]).name == "logarithmic"


@pytest.mark.parametrize("lengths", [(8, 16, 64), (8, 8, 8, 64), (8, 9, 10, 11)])
def test_too_few_points_are_refused(lengths):
    with pytest.raises(LawError, match="cannot tell"):
        fit_law(lengths, range(len(lengths)))
    with pytest.raises(LawError, match="one depth"):
        fit_law(LENGTHS, [1])


def test_laws_in_words():
    assert str(fit_law(LENGTHS, [9 * n for n in LENGTHS])) == "9 n"
    assert str(fit_law(LENGTHS, [3 * math.log2(n) - 1 for n in LENGTHS])) == "3 log2 n - 1"
    assert str(fit_law(LENGTHS, [2 + n / 8 for n in LENGTHS], chunk=8)) == "1 n/8 + 2"
    assert str(fit_law(LENGTHS, [7] * 4)) == "7"


def test_an_lstm_is_linear_and_attention_is_constant_or_logarithmic():
    lstm, attention = torch.nn.LSTM(4, 4), torch.nn.TransformerEncoderLayer(4, 1, 8)
    measure = lambda model, fan_in: fit_law(LENGTHS, [true_depth(model, torch.randn(n, 1, 4), fan_in=fan_in, backward=False).depth for n in LENGTHS])
    assert str(measure(lstm, "unbounded")) == "9 n"
    assert measure(lstm, 2).name == "linear"
    assert measure(attention, "unbounded").name == "constant"
    assert measure(attention, 2).name == "logarithmic"
