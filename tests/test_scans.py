"""Scans, reverse passes, Newton's iteration and aggregation: each parallel program against its serial loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.theory import aggregation, newton, reverse, scans, video
from fbam.theory.laws import fit_law

NAMES = {update.name: update for update in scans.UPDATES}


@pytest.mark.parametrize("name", NAMES)
def test_a_scan_equals_the_loop_exactly_where_no_counterexample_exists(name):
    found = scans.compare(NAMES[name], 37, seed=1)
    associative = scans.counterexample(NAMES[name], (-1.0, 0.0, 2.0)) is None
    assert (found["difference"] < 1e-9) == associative
    assert found["scan_depth"] < found["serial_depth"]


def test_a_counterexample_is_one():
    x, y, z = scans.counterexample(NAMES["difference"], (0.0, 1.0))
    assert (x[0] - y[0]) - z[0] != x[0] - (y[0] - z[0])


def test_serial_prefixes_of_a_sum():
    x = torch.arange(6.0).view(1, 6)
    assert torch.equal(scans.serial(NAMES["sum"], (x,))[0], x.cumsum(1))


def test_price_of_composing_maps():
    assert [scans.bits_of_a_map(b) for b in (1, 5, 10)] == [2, 160, 10_240]
    assert scans.rounds_and_work(1024, 18)["scan rounds"] == 10


@settings(max_examples=10)
@given(st.integers(1, 12), st.integers(0, 1000))
def test_gradients_by_scan_equal_autograd(n, seed):
    assert all(row["difference"] < 1e-10 for row in reverse.compare(n, 3, seed))


def test_the_backward_pass_is_linear_by_autograd_and_logarithmic_as_a_scan():
    rows = [reverse.compare(n, 3, 0)[1] for n in (4, 8, 16, 32)]
    assert fit_law([4, 8, 16, 32], [row["autograd_depth"] for row in rows]).name == "linear"
    assert fit_law([4, 8, 16, 32], [row["scan_depth"] for row in rows]).name == "logarithmic"


def test_newton_needs_few_rounds_where_errors_die_out():
    cell = lambda gain: newton.newton_cell({"gain": gain, "width": 6, "lengths": [48], "seed": 0}, None, lambda share: None)[0]
    rows = {gain: cell(gain)["rows"][0] for gain in (0.3, 4.0)}
    assert rows[0.3]["rounds"] < 8 < rows[4.0]["rounds"]
    assert rows[0.3]["lyapunov"] < rows[4.0]["lyapunov"]
    assert all(row["difference"] < 1e-8 for row in rows.values())


def test_lyapunov_exponent_of_a_linear_recurrence():
    module = newton.draw_recurrence(3, 1.0, 0)
    with torch.no_grad():
        module.cell.weight_hh_l0.copy_(0.5 * torch.eye(3))
    assert newton.lyapunov(module, torch.zeros(20, 3, dtype=torch.float64)) == pytest.approx(np.log(0.5))


def test_words_that_a_sum_cannot_tell_apart():
    u, v = aggregation.same_counts_different_answers(3)
    answers = aggregation.TASKS["S5"].answers(np.array([u, v]))[:, -1]
    assert sorted(u) == sorted(v) and answers[0] != answers[1]
    x = aggregation.SYMBOLS[torch.tensor([u, v])]
    assert torch.equal(*aggregation.by_sum(x)) and not torch.equal(*aggregation.by_loop(x))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=20))
def test_loop_and_scan_over_maps_follow_the_automaton(word):
    x = aggregation.SYMBOLS[torch.tensor([word])]
    answer = aggregation.TASKS["S5"].answers(np.array([word]))[0, -1]
    assert aggregation.by_loop(x).argmax() == aggregation.by_scan_over_maps(x).argmax() == answer


def test_depths_of_the_ways_to_aggregate():
    depth = lambda way, n: aggregation.depths(way, n)
    assert depth("sum", 64) == {"unbounded": 1, "fan-in 2": 6}
    for model in ("unbounded", "fan-in 2"):
        laws = {way: fit_law([4, 8, 16, 32], [depth(way, n)[model] for n in (4, 8, 16, 32)]).name for way in ("serial", "scan over maps")}
        assert laws == {"serial": "linear", "scan over maps": "logarithmic"}
    assert aggregation.word_accuracy("serial", 9, 50, 0) == aggregation.word_accuracy("scan over maps", 9, 50, 0) == 1.0
    assert aggregation.word_accuracy("sum", 24, 400, 0) < 0.5


def test_video():
    stream = video.full_hd(60)
    assert stream.bytes_a_second == 1920 * 1080 * 3 * 60 == 373_248_000
    assert stream.held(10) == 10 * stream.bytes_a_second
    assert video.working_bytes(stream, 2, 768) == stream.frame_bytes + 2 * 2 * 768 * 4
