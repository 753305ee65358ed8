"""Appendix D: crossings are where curves cross, their intervals cover the truth, and what is not seen is None."""

import numpy as np
import pytest
from scipy import stats

from fbam.analysis import walltime, walltime_tables
from fbam.analysis.scaling import FitError, saturating
from fbam.analysis.scaling_tables import Reading
from fbam.analysis.walltime import Curve

SECONDS = np.linspace(1, 100, 500)


def curves(rng=None, seeds=1, spread=0.0, crossing=40.0):
    """Two lengths whose log losses cross at `crossing`; a seed moves its longer curve up or down as a whole."""
    shorter = np.repeat((5 * SECONDS**-0.2)[:, None], seeds, axis=1)
    gap = 0.01 * (crossing - SECONDS)[:, None] + (spread * rng.standard_normal(seeds) if spread else 0)
    return Curve(2, SECONDS, shorter), Curve(4, SECONDS, shorter * np.exp(gap))


def test_the_crossing_is_where_the_curves_cross():
    found = walltime.crossing(*reversed(curves()))
    assert (found.shorter, found.longer, found.low, found.high) == (2, 4, None, None)
    assert found.seconds == pytest.approx(40, abs=0.3) and found.horizon == 100
    assert found.gain == pytest.approx(np.exp(-0.6))


def test_the_interval_covers_the_crossing_as_often_as_it_says():
    rng, runs = np.random.default_rng(0), 300
    found = [walltime.crossing(*curves(rng, 3, 0.05)) for _ in range(runs)]
    covered = sum((c.low is not None and c.low <= 40.3) and (c.high is None or c.high >= 39.7) for c in found)
    assert stats.binomtest(covered, runs, 0.95).pvalue > 0.001
    assert sum(c.high is not None for c in found) > runs / 2, "intervals that are open tell nothing"


def test_what_is_not_seen_before_the_end_is_none():
    found = walltime.crossing(*curves(crossing=200.0))
    assert found.seconds is None and found.gain > 1


def test_a_later_return_is_no_crossing():
    assert walltime.stays_negative(np.arange(5), np.array([-1, -1, 1, -1, -1])) == 3
    assert walltime.stays_negative(np.arange(3), np.array([-1, -1, 0])) is None
    assert walltime.stays_negative(np.arange(3), np.array([-1.0, -1, -1])) == 0


def test_curves_without_a_common_time_or_seeds_are_refused():
    early, late = Curve(1, SECONDS, np.ones((500, 1))), Curve(2, SECONDS + 100, np.ones((500, 1)))
    with pytest.raises(FitError, match="no time in common"):
        walltime.crossing(early, late)
    with pytest.raises(FitError, match="as many seeds"):
        walltime.crossing(early, Curve(2, SECONDS, np.ones((500, 2))))


def test_the_cost_of_a_step_is_a_line():
    cost = walltime.step_cost([1, 2, 4, 8], 3.0 + 0.5 * np.array([1, 2, 4, 8]))
    assert (cost.base, cost.a_frame, cost.r2) == pytest.approx((3, 0.5, 1))
    assert cost.fixed_share == pytest.approx(3 / 3.5)
    with pytest.raises(FitError, match="three or more"):
        walltime.step_cost([1, 1, 2], [1, 1, 2])


def test_the_law_crosses_where_its_own_losses_do():
    times = np.linspace(1, 20_000, 100_000)
    log_A, alpha = lambda s: np.log(5) - 0.1 * np.log(s), lambda s: saturating(s, 0.3, 700)  # noqa: E731
    found = walltime.law_crossing(log_A, alpha, 4, 8, times)
    losses = {L: np.exp(log_A(times / L)) * L ** -alpha(times / L) for L in (4, 8)}
    before, after = times < found - 0.2, times >= found
    assert losses[8][after].max() and np.all(losses[8][after] < losses[4][after]) and losses[8][before][-1] >= losses[4][before][-1]
    assert walltime.law_crossing(log_A, alpha, 4, 8, times[:100]) is None
    dearer = walltime.law_crossing(log_A, alpha, 4, 8, times, cost=lambda L: L**1.2)
    assert dearer > found, "a step that costs more than in proportion delays the crossing"


def test_the_papers_constants_let_the_shortest_lose_from_the_start():
    first = 100 * 720 / 100_000  # one point of the grid
    assert walltime.saturated_crossing(0.308, 720, 1, 2) == pytest.approx(first)
    assert walltime.saturated_crossing(0.308, 720, 4, 8) == pytest.approx(499.7, abs=1)
    assert walltime.saturated_crossing(-0.3, 720, 4, 8) is None


def test_four_and_eight_cross_where_the_equation_says():
    steps = walltime.saturated_crossing(0.308, 720, 4, 8)
    gap = saturating(steps, 0.308, 720) * np.log(8) - saturating(2 * steps, 0.308, 720) * np.log(4)
    assert gap == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("L1", "L2"), [(1.0, 2.0), (3.0, 5.0), (1.5, 8.0)])
def test_the_corrected_bound_of_the_proof_holds_and_the_printed_one_can_fail(L1, L2):
    """|log A - log A_inf|, |alpha - alpha_inf|, |log(1 + r)| <= eps allow 4 eps + 2 eps log L1 - (alpha_inf - eps) log(L2 / L1)."""
    alpha, eps, rng, worst = 0.3, 0.02, np.random.default_rng(0), -np.inf
    for _ in range(2000):
        a1, a2, d1, d2, r1, r2 = eps * rng.choice([-1.0, 1.0], 6)
        worst = max(worst, a2 - a1 - (alpha + d2) * np.log(L2) + (alpha + d1) * np.log(L1) + r2 - r1)
    assert worst <= 4 * eps + 2 * eps * np.log(L1) - (alpha - eps) * np.log(L2 / L1) + 1e-12
    assert worst > 3 * eps + eps * np.log(L1) - (alpha - eps) * np.log(L2 / L1)


def study(fixed=1.0):
    """Three lengths whose losses fall as a power of the step; a step costs `fixed` + 0.1 L seconds."""
    steps = range(5, 401, 5)
    rows = [{"task": "t", "control": "fixed batch", "L": L, "batch": 1, "seed": seed, "step": s,
             "loss": 5 * s**-0.2 * L**-0.2 * (1 + 0.001 * seed * L)} for L in (1, 2, 4) for seed in (0, 1, 2) for s in steps]
    timings = [{"task": "t", "control": "fixed batch", "L": L, "batch": 1, "seed": seed, "cpu_seconds_a_step": fixed + 0.1 * L}
               for L in (1, 2, 4) for seed in (0, 1, 2)]
    return Reading.of(rows, [{"name": "t", "read_at": [50, 100, 400]}], 0.05, 200, 0), timings


def test_cheap_lengths_cross_early_and_dear_ones_never():
    reading, timings = study(fixed=1.0)  # at equal time L = 2 has done 1.1 / 1.2 of the steps of L = 1
    rows = walltime_tables.crossings(reading, timings, "t", "fixed batch")
    assert [(row.shorter, row.longer) for row in rows] == [(1, 2), (2, 4), (1, 4)]
    assert all(row.seconds is not None and row.high is not None and row.gain < 1 for row in rows)
    costs = {"t": walltime_tables.cost(timings, "t", "fixed batch")}
    steps = [{"task": "t", "control": "fixed batch", "L": 1, "batch": 1, "flops": 2200}]
    (rate,) = walltime_tables.rate_rows(steps, timings, peak=4000.0)
    assert (rate.flops_per_second, rate.share_of_peak) == (pytest.approx(2000), pytest.approx(0.5))
    found = walltime_tables.summary(reading, rows, costs, [rate])
    assert found["crossings_seen"] and found["neighbours"] == found["neighbours_crossed"] == 2
    assert found["fixed_share_of_a_step"] == pytest.approx(1 / 1.1)
    reading, timings = study(fixed=-0.05)  # each doubling more than doubles the cost of a step: 0.05, 0.15, 0.35 s
    late = walltime_tables.crossings(reading, timings, "t", "fixed batch")
    assert late[0].seconds is None and late[0].law is None and not walltime_tables.summary(reading, late, costs, [rate])["crossings_seen"]


def test_the_law_implies_the_crossing_that_its_own_losses_have():
    reading, timings = study(fixed=1.0)
    row = walltime_tables.crossings(reading, timings, "t", "fixed batch")[0]
    assert row.law == pytest.approx(row.seconds, rel=0.05)
    assert walltime_tables.as_text(row)[2] == "1 and 2"
    (mark,) = walltime_tables.marks(walltime_tables.curves(reading, timings, "t", "fixed batch"), [row])
    assert mark[0] == row.seconds and 0 < mark[1] < 5
