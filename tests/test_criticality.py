"""Section 5: failing depths and their laws recover what was put in, and refuse what cannot be read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.analysis import criticality
from fbam.analysis.criticality import CriticalityError, failing_depth, failure, fit_laws, growth

DEPTHS = [2, 4, 8, 16, 32]


def test_the_failing_depth_lies_between_the_tested_depths():
    assert failing_depth(DEPTHS, [1, 0.98, 0.82, 0.5, 0.5], 0.9) == (pytest.approx(4 * 2**0.5), "reached")
    assert failing_depth(DEPTHS, [1, 0.9, 0.8, 0.95, 0.5], 0.9) == (pytest.approx(4), "reached"), "the first fall counts"
    assert failing_depth(DEPTHS, [1, 1, 1, 1, 0.9], 0.9) == (32, "above")
    assert failing_depth(DEPTHS, [0.89, 1, 1, 1, 1], 0.9) == (2, "below")


@given(st.floats(1.5, 30), st.floats(0.05, 0.3))
def test_a_known_failing_depth_is_recovered(depth, slope):
    """Accuracy falls in a straight line over the logarithm of the depth, so interpolation is exact."""
    depths = np.geomspace(1, 32, 40)
    accuracies = 0.9 - slope * np.log(depths / depth)
    assert failing_depth(depths, accuracies, 0.9)[0] == pytest.approx(depth, rel=1e-6)


@pytest.mark.parametrize("depths, accuracies, threshold", [
    ([4], [1], 0.9), ([4, 2], [1, 1], 0.9), ([2, 4], [1], 0.9), ([2, 4], [1, float("nan")], 0.9), ([2, 4], [1, 0.5], 1.0), ([0, 4], [1, 0.5], 0.9)])
def test_accuracies_that_cannot_be_read_are_refused(depths, accuracies, threshold):
    with pytest.raises(CriticalityError):
        failing_depth(depths, accuracies, threshold)


def test_the_interval_of_a_failing_depth_covers_the_truth_as_often_as_it_says():
    """Programs drawn from known accuracies; the expected failing depth is inside about 95 times in 100."""
    truth = np.array([0.99, 0.95, 0.85, 0.6, 0.5])
    expected, rng, covered = failing_depth(DEPTHS, truth, 0.9)[0], np.random.default_rng(0), 0
    for trial in range(200):
        found = failure(DEPTHS, rng.binomial(400, truth, size=(1, 5)), 400, 0.9, 200, trial)
        covered += found.low <= expected <= found.high
    assert 180 <= covered <= 199


def test_seeds_that_disagree_widen_the_interval():
    same = failure(DEPTHS, np.array([[400, 392, 328, 200, 200]] * 3), 400, 0.9, 500, 0)
    apart = failure(DEPTHS, np.array([[400, 392, 328, 200, 200], [400, 340, 200, 200, 200], [400, 400, 396, 350, 200]]), 400, 0.9, 500, 0)
    assert apart.high - apart.low > 2 * (same.high - same.low) > 0
    with pytest.raises(CriticalityError, match="between 0 and 400"):
        failure(DEPTHS, np.array([[401, 0, 0, 0, 0]]), 400, 0.9, 100, 0)


@pytest.mark.parametrize("name, depths", [("c L", [3, 6, 12, 24]), ("a 2^L", [6, 12, 48, 768]), ("constant", [5, 5, 5, 5])])
def test_each_law_is_recovered_and_fits_best_where_it_is_true(name, depths):
    layers, noise = [1, 2, 4, 8], np.exp(0.01 * np.random.default_rng(0).standard_normal(4))
    laws = fit_laws(layers, np.array(depths) * noise)
    assert min(laws, key=lambda law: laws[law].squared_log_error) == name
    assert laws[name].constant == pytest.approx({"c L": 3, "a 2^L": 3, "constant": 5}[name], rel=0.02)
    assert laws[name].low < laws[name].constant < laws[name].high


def test_the_interval_of_a_constant_is_the_textbook_one():
    law = fit_laws([1, 2, 4], [3, 5, 14])["c L"]
    rest = np.log([3, 2.5, 3.5])
    half = 4.302653 * rest.std(ddof=1) / 3**0.5  # Student's t, 97.5 %, 2 degrees of freedom
    assert (np.log(law.low), np.log(law.high)) == (pytest.approx(rest.mean() - half), pytest.approx(rest.mean() + half))


def test_growth_is_seen_where_it_is_and_not_where_it_is_not():
    rng = np.random.default_rng(1)
    layers = np.repeat([1, 2, 4], 3)
    rising = growth(layers, 4 * layers * np.exp(0.1 * rng.standard_normal(9)))
    assert rising.seen and rising.low < 1 < rising.high
    flat = growth(layers, 5 * np.exp(0.1 * rng.standard_normal(9)))
    assert not flat.seen and flat.low < 0 < flat.high


def test_too_few_points_are_refused():
    with pytest.raises(CriticalityError, match="3 are needed"):
        fit_laws([1, 2, 2], [3, 6, 6])
    with pytest.raises(CriticalityError, match="4 are needed"):
        growth([1, 2, 4], [3, 6, 12])
    with pytest.raises(CriticalityError, match="positive"):
        fit_laws([1, 2, 4], [3, 6, 0])


def test_laws_are_written_as_the_paper_writes_them():
    layers = np.array([1.0, 2.0, 4.0])
    assert np.exp(criticality.LAWS["c L"](layers)).tolist() == pytest.approx([1, 2, 4])
    assert np.exp(criticality.LAWS["a 2^L"](layers)).tolist() == pytest.approx([2, 4, 16])


def row(model, layers, seed, depth, accuracy, n=200):
    return {"model": model, "layers": layers, "seed": seed, "depth": depth, "test_accuracy": accuracy, "n": n}


def rows_of_a_linear_law(model="mamba"):
    """Three seeds of 1, 2 and 4 layers that fail at about 4 L blocks."""
    accuracies = {1: [1, 0.9, 0.6, 0.5, 0.5], 2: [1, 1, 0.9, 0.6, 0.5], 4: [1, 1, 1, 0.9, 0.6]}
    return [row(model, layers, seed, depth, accuracy + 0.01 * seed * (0.5 < accuracy < 1))
            for layers, line in accuracies.items() for seed in range(3) for depth, accuracy in zip(DEPTHS, line, strict=True)]


def test_a_linear_law_is_read_off_result_rows():
    points = criticality.by_model(rows_of_a_linear_law())
    assert list(points) == [("mamba", 1), ("mamba", 2), ("mamba", 4)] and points["mamba", 2][1].shape == (3, 5)
    found = criticality.read_growth(criticality.run_failures(points, "mamba", 0.9))
    assert found.points == 9 and found.seen and found.proportional and not found.why
    assert min(found.laws, key=lambda law: found.laws[law].squared_log_error) == "c L"
    assert found.laws["c L"].constant == pytest.approx(4, rel=0.1)


def test_runs_that_never_fail_are_left_out_and_the_reason_is_given():
    points = criticality.by_model([row("lstm", 1, seed, depth, 1.0) for seed in (0, 1) for depth in DEPTHS])
    found = criticality.read_growth(criticality.run_failures(points, "lstm", 0.9))
    assert found.points == 0 and "3 are needed" in found.why and not found.seen and not found.proportional


def test_depths_that_not_all_runs_share_are_left_out():
    rows = [row("lstm", 1, 0, depth, 1.0) for depth in (2, 4, 8)] + [row("lstm", 1, 1, depth, 1.0) for depth in (4, 8, 16)]
    assert criticality.by_model(rows)["lstm", 1][0] == [4, 8]
    with pytest.raises(CriticalityError, match="one number"):
        criticality.by_model([*rows, row("lstm", 1, 2, 4, 1.0, n=100), row("lstm", 1, 2, 8, 1.0, n=100)])
