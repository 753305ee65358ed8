"""Section 10.5: the form that made the losses is found again, its floor lies in its interval, and bad input is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from fbam.analysis import forms
from fbam.analysis.scaling import FitError

LENGTHS = np.array([1, 2, 4, 8, 16], dtype=float)
MADE = {
    "power law": 5 * LENGTHS**-0.3,
    "power law with a floor": 1 + 4 * LENGTHS**-0.6,
    "exponential": 5 * np.exp(-0.1 * LENGTHS),
    "exponential with a floor": 1 + 4 * np.exp(-0.3 * LENGTHS),
}


def noisy(losses, seeds=3, spread=0.02, seed=0):
    return losses[:, None] * np.exp(spread * np.random.default_rng(seed).standard_normal((len(losses), seeds)))


@pytest.mark.parametrize("name", MADE)
def test_constants_are_recovered_from_exact_losses(name):
    fit = forms.fit_form(name, LENGTHS, MADE[name])
    E, A, rate = {"power law": (0, 5, 0.3), "power law with a floor": (1, 4, 0.6),
                  "exponential": (0, 5, 0.1), "exponential with a floor": (1, 4, 0.3)}[name]
    assert (fit.E, fit.A, fit.rate, fit.rms) == pytest.approx((E, A, rate, 0), rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(fit.loss(LENGTHS), MADE[name], rtol=1e-5)


@given(E=st.floats(0.3, 3), A=st.floats(0.5, 8), rate=st.floats(0.2, 1.5))
def test_a_floor_is_recovered_wherever_it_lies(E, A, rate):
    fit = forms.fit_form("power law with a floor", LENGTHS, E + A * LENGTHS**-rate)
    assert (fit.E, fit.A, fit.rate) == pytest.approx((E, A, rate), rel=1e-3)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["power law with a floor", "exponential with a floor"])
def test_no_other_optimiser_finds_a_better_floor(name, seed):
    losses = noisy(np.array([2.5, 2.2, 1.7, 1.4, 1.3]), spread=0.05, seed=seed)
    fit, mean, argument = forms.fit_form(name, LENGTHS, losses), np.log(losses).mean(axis=1), forms.FORMS[name].argument(np.log(LENGTHS))

    def squares(p):
        return float(np.sum((np.log(p[0] + p[1] * np.exp(-p[2] * argument)) - mean) ** 2))

    found = optimize.differential_evolution(squares, [(0, 1.4), (0.01, 10), (-1, 5)], seed=0, tol=1e-10, maxiter=150, polish=True)
    assert len(LENGTHS) * fit.rms**2 <= found.fun * 1.001 + 1e-12


@pytest.mark.parametrize("name", MADE)
def test_the_form_that_made_the_losses_is_chosen(name):
    scores = forms.choose(LENGTHS, noisy(MADE[name], spread=0.01), resamples=25)
    assert scores[0].form == name
    if name.endswith(forms.FLOOR):  # without one, the same form with a floor may win resamples and leave it open
        assert forms.chosen(scores) == name
    assert {score.form for score in scores} == set(forms.FORMS)


def slow_held_out(name, lengths, losses):
    errors = []
    for i in range(len(lengths)):
        fit = forms.fit_form(name, np.delete(lengths, i), np.delete(losses, i, axis=0))
        errors.append(np.log(fit.loss([lengths[i]])[0]) - np.log(losses[i]).mean())
    return np.sqrt(np.mean(np.square(errors)))


def test_the_criterion_is_the_error_of_lengths_left_out():
    losses = noisy(MADE["power law with a floor"])
    for score in forms.choose(LENGTHS, losses, resamples=2):
        assert score.held_out == pytest.approx(slow_held_out(score.form, LENGTHS, losses))


def test_losses_between_two_forms_decide_for_none():
    scores = forms.choose(LENGTHS, noisy(np.array([2.52, 2.47, 2.10, 1.76, 1.47]), spread=0.05), resamples=30)
    assert forms.chosen(scores) is None and 0 < max(score.wins for score in scores) < forms.DECIDED


def test_shares_of_wins_add_up_and_one_seed_has_none():
    assert sum(score.wins for score in forms.choose(LENGTHS, noisy(MADE["power law"]), resamples=25)) == pytest.approx(1)
    single = forms.choose(LENGTHS, noisy(MADE["power law"], seeds=1))
    assert all(score.wins is None for score in single) and forms.chosen(single) is None


def test_three_lengths_leave_no_room_for_a_floor():
    assert {score.form for score in forms.choose([1, 2, 4], [3.0, 2.4, 2.0])} == {"power law", "exponential"}


def test_the_interval_of_the_floor_covers_it_as_often_as_it_says():
    runs, rng = 60, np.random.default_rng(3)
    clean = MADE["power law with a floor"][:, None]
    covered = 0
    for _ in range(runs):
        low, high = forms.floor_interval("power law with a floor", LENGTHS, clean * np.exp(0.02 * rng.standard_normal((5, 3))))
        covered += low <= 1 <= high
    assert stats.binomtest(covered, runs, 0.95).pvalue > 0.001


def test_the_interval_of_a_floor_that_is_not_there_reaches_zero():
    low, high = forms.floor_interval("power law with a floor", LENGTHS, noisy(MADE["power law"]))
    assert low == 0 < high < 1


@pytest.mark.parametrize(
    ("name", "lengths", "losses", "message"),
    [
        ("power law", [1, 2], [3.0, 2.0], "three or more"),
        ("power law with a floor", [1, 2, 4], [3.0, 2.0, float("nan")], "finite"),
        ("exponential", [1, 2, 4], [2.0, 2.0, 2.0], "equal"),
        ("power law with a floor", [1, 2, 4, 8, 16], [4.0, 1.0, 1.0, 1.0, 1.0], "only one end differs|could not be fitted"),
    ],
)
def test_degenerate_input_is_refused(name, lengths, losses, message):
    with pytest.raises(FitError, match=message):
        forms.fit_form(name, lengths, losses)
    if len(lengths) == 3:
        with pytest.raises(FitError):
            forms.choose(lengths, losses)


def test_a_failing_optimiser_gives_an_error_and_no_number(monkeypatch):
    monkeypatch.setattr(forms.optimize, "least_squares", lambda *a, **k: optimize.OptimizeResult(
        x=np.array([0.0, 0.0, 1.0]), cost=1.0, success=False, message="no optimum"))
    with pytest.raises(FitError, match="no optimum"):
        forms.fit_form("power law with a floor", LENGTHS, MADE["power law with a floor"])


def test_a_floor_without_more_runs_than_constants_has_no_interval():
    with pytest.raises(FitError, match="3 runs for 3 constants"):
        forms.floor_interval("power law with a floor", [1, 2, 4], [3.0, 2.0, 1.8])
