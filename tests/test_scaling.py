"""Section 10.5: the fits recover what was put in, their intervals cover it as often as they say, and bad input is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from conftest import ROOT
from fbam.analysis import scaling
from fbam.analysis.paper_scaling import read_paper
from fbam.analysis.scaling import FitError, fit_power_law, fit_saturation

LENGTHS = [1, 2, 4, 8, 16]


def noisy(rng, seeds, alpha=0.3, spread=0.05, lengths=LENGTHS):
    noise = np.exp(spread * rng.standard_normal((len(lengths), seeds)))
    return 5 * np.array(lengths, dtype=float)[:, None] ** -alpha * noise  # (n, seeds)


@given(A=st.floats(0.1, 20), alpha=st.floats(-1, 1).filter(lambda a: abs(a) > 1e-3))
def test_an_exact_law_is_recovered(A, alpha):
    fit = fit_power_law(LENGTHS, A * np.array(LENGTHS, dtype=float) ** -alpha)
    assert fit.A == pytest.approx(A, rel=1e-9)
    assert fit.alpha == pytest.approx(alpha, rel=1e-6)
    assert fit.r2 == pytest.approx(1, abs=1e-6)
    assert fit.low == pytest.approx(fit.high, abs=1e-6)
    np.testing.assert_allclose(fit.loss([2, 32]), A * np.array([2.0, 32.0]) ** -alpha, rtol=1e-6)


@pytest.mark.parametrize("seeds", [1, 4])
def test_a_noisy_law_is_recovered(seeds):
    fit = fit_power_law(LENGTHS, noisy(np.random.default_rng(1), seeds))
    assert fit.alpha == pytest.approx(0.3, abs=0.04)
    assert fit.A == pytest.approx(5, rel=0.1)
    assert (fit.n, fit.seeds) == (5, seeds)
    assert fit.low < fit.alpha < fit.high


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_the_interval_covers_the_truth_as_often_as_it_says(seeds):
    rng, runs = np.random.default_rng(seeds), 400
    fits = [fit_power_law(LENGTHS, noisy(rng, seeds), resamples=400, seed=run) for run in range(runs)]
    covered = sum(fit.low <= 0.3 <= fit.high for fit in fits)
    assert stats.binomtest(covered, runs, scaling.CONFIDENCE).pvalue > 0.001


def test_the_t_interval_equals_the_textbook_formula():
    losses = noisy(np.random.default_rng(2), 1)[:, 0]
    fit = fit_power_law(LENGTHS, losses)
    (slope, intercept), covariance = np.polyfit(np.log(LENGTHS), np.log(losses), 1, cov=True)
    half = 3.182446 * np.sqrt(covariance[0, 0])  # Student's t, 97.5 %, 3 degrees of freedom
    assert (fit.alpha, np.log(fit.A)) == pytest.approx((-slope, intercept))
    assert (fit.low, fit.high) == pytest.approx((-slope - half, -slope + half), rel=1e-6)
    assert "t interval" in fit.method


def slow_bootstrap(lengths, losses, resamples, seed):
    """The studentised bootstrap of the exponent, one resample after another."""
    x, y = np.log(lengths), np.log(losses)
    n, seeds = y.shape

    def alpha_and_error(runs):
        means = runs.mean(axis=1)
        within = sum((runs[i, j] - means[i]) ** 2 for i in range(n) for j in range(seeds)) / (n * (seeds - 1))
        return -np.polyfit(x, means, 1)[0], np.sqrt(within / seeds / np.sum((x - x.mean()) ** 2))

    alpha, error = alpha_and_error(y)
    residuals = [y[i, j] - y[i].mean() for i in range(n) for j in range(seeds)]
    draws = np.random.default_rng(seed).choice(residuals, size=(resamples, n, seeds))
    ratios = sorted(a / e for a, e in map(alpha_and_error, draws))
    return alpha - ratios[int(0.975 * resamples) - 1] * error, alpha - ratios[int(0.025 * resamples) - 1] * error


def test_the_bootstrap_equals_its_slow_form():
    losses = noisy(np.random.default_rng(3), 3)
    fit = fit_power_law(LENGTHS, losses, resamples=1000, seed=7)
    assert (fit.low, fit.high) == pytest.approx(slow_bootstrap(LENGTHS, losses, 1000, 7), abs=2e-3)
    assert fit.method == "bootstrap over 3 seeds"


def test_the_same_seed_gives_the_same_interval():
    losses = noisy(np.random.default_rng(4), 3)
    assert fit_power_law(LENGTHS, losses, seed=1) == fit_power_law(LENGTHS, losses, seed=1)
    assert fit_power_law(LENGTHS, losses, seed=1).low != fit_power_law(LENGTHS, losses, seed=2).low


@settings(max_examples=30)
@given(factor=st.floats(0.01, 100), order=st.permutations(range(5)))
def test_the_exponent_knows_no_unit_and_no_order(factor, order):
    losses = noisy(np.random.default_rng(5), 1)[:, 0]
    fit = fit_power_law(LENGTHS, losses)
    other = fit_power_law([LENGTHS[i] for i in order], factor * losses[list(order)])
    assert (other.alpha, other.r2, other.A) == pytest.approx((fit.alpha, fit.r2, factor * fit.A))


def test_the_verdict_needs_interval_and_r2():
    falling = fit_power_law(LENGTHS, noisy(np.random.default_rng(6), 3))
    assert falling.holds(0.9) and not falling.holds(1.0)
    rising = fit_power_law(LENGTHS, noisy(np.random.default_rng(6), 3, alpha=-0.3))
    assert rising.r2 > 0.9 and not rising.holds(0.9)
    unsure = fit_power_law(LENGTHS[:3], [3.0, 2.5, 2.3])
    assert unsure.r2 > 0.9 and unsure.low < 0 and not unsure.holds(0.9)


@pytest.mark.parametrize(
    ("lengths", "losses", "message"),
    [
        ([1, 2], [3.0, 2.0], "three or more"),
        ([1, 2, 2], [3.0, 2.0, 1.0], "different"),
        ([1, 2, 4], [3.0, 2.0, 0.0], "loss must be positive and finite, not 0"),
        ([1, 2, 4], [3.0, 2.0, -1.0], "positive"),
        ([1, 2, 4], [3.0, 2.0, float("nan")], "finite, not nan"),
        ([1, 2, 4], [3.0, 2.0, float("inf")], "finite, not inf"),
        ([0, 2, 4], [3.0, 2.0, 1.0], "length must be positive"),
        ([1, 2, 4], [3.0, 2.0], "got"),
        ([1, 2, 4], [[], [], []], "got"),
        ([1, 2, 4], [2.0, 2.0, 2.0], "equal"),
        ([1, 2, 4], [[2.0, 3.0], [3.0, 2.0], [2.0, 3.0]], "means at every length"),
        ([1, 2, 4], [[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]], "seeds do not differ"),
    ],
)
def test_degenerate_input_is_refused(lengths, losses, message):
    with pytest.raises(FitError, match=message):
        fit_power_law(lengths, losses)


def test_equation_9_is_recovered_from_noise():
    steps = np.array([100, 200, 400, 800, 1600, 3200])
    alphas = scaling.saturating(steps, 0.3, 700) + 0.002 * np.random.default_rng(8).standard_normal(6)
    fit = fit_saturation(steps, alphas)
    assert (fit.alpha_inf, fit.tau) == pytest.approx((0.3, 700), rel=0.05)
    assert fit.max_error < 0.006
    np.testing.assert_allclose(fit.alpha(steps), alphas, atol=fit.max_error * 1.001)


@pytest.mark.parametrize(
    ("steps", "alphas", "message"),
    [
        ([400, 650], [0.1, 0.2], "three or more"),
        ([400, 400, 650], [0.1, 0.1, 0.2], "three or more"),
        ([400, 650, 4000], [0.1, 0.2], "three or more"),
        ([0, 650, 4000], [0.1, 0.2, 0.3], "positive steps"),
        ([400, 650, 4000], [0.1, float("nan"), 0.3], "finite"),
        ([100, 200, 300], [0.1, 0.2, 0.3], "tau is not determined"),
        ([100, 200, 300], [0.3, 0.3, 0.3], "tau is not determined"),
    ],
)
def test_a_plateau_that_is_not_determined_is_refused(steps, alphas, message):
    with pytest.raises(FitError, match=message):
        fit_saturation(steps, alphas)


def test_a_failing_optimiser_gives_an_error_and_no_number(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no optimum")

    monkeypatch.setattr(scaling.optimize, "curve_fit", fail)
    with pytest.raises(FitError, match="no optimum"):
        fit_saturation([400, 650, 4000], [0.129, 0.196, 0.318])


def test_the_papers_own_numbers():
    paper = read_paper(ROOT / "data/paper_scaling.yaml")
    assert paper.savings() == pytest.approx({400: 0.0855, 650: 0.1270, "plateau": 0.1922}, abs=5e-5)
    assert paper.doubling == pytest.approx(paper.savings(), rel=0.03)
    assert scaling.doubling_gain(paper.alpha(4000)) == pytest.approx(0.1978, abs=5e-5)
    assert paper.equation9_errors() == pytest.approx({400: 0.0023, 650: 0.0129, 4000: 0.0112}, abs=5e-5)


def test_the_loss_at_a_step_is_the_mean_of_the_window_that_ends_there():
    losses = [5.0, 4.0, 3.0, 1.0]
    assert scaling.loss_at(losses, 3, 2) == 3.5
    assert scaling.loss_at(losses, 4, 4) == 3.25
    for step, window in ((5, 1), (2, 3), (0, 1), (3, 0)):
        with pytest.raises(FitError, match="no mean"):
            scaling.loss_at(losses, step, window)


def test_residuals_are_distances_from_the_law_in_log_loss():
    losses = noisy(np.random.default_rng(7), 3)
    law = fit_power_law(LENGTHS, losses)
    residuals = scaling.log_residuals(law, LENGTHS, losses)
    np.testing.assert_allclose(np.exp(residuals) * law.loss(LENGTHS)[:, None], losses)
    assert residuals.mean() == pytest.approx(0, abs=1e-12)


def test_local_exponents_of_a_law_are_all_its_exponent():
    losses = 5 * np.array(LENGTHS, dtype=float) ** -0.3
    for found, shorter in zip(scaling.local_exponents(LENGTHS, losses), LENGTHS):
        assert (found.shorter, found.longer) == (shorter, 2 * shorter) and found.alpha == pytest.approx(0.3)
        assert found.low is None and found.high is None, "one seed has no interval"


def test_local_exponents_know_no_order_and_cover_the_truth():
    rng, runs = np.random.default_rng(9), 400
    found = [scaling.local_exponents(LENGTHS, noisy(rng, 3))[2] for _ in range(runs)]
    assert stats.binomtest(sum(f.low <= 0.3 <= f.high for f in found), runs, scaling.CONFIDENCE).pvalue > 0.001
    losses = noisy(rng, 2)
    assert scaling.local_exponents(LENGTHS[::-1], losses[::-1]) == scaling.local_exponents(LENGTHS, losses)
