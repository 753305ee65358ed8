"""A Transformer on flattened frames and the capacity of the main model: rows and verdicts from made losses."""

from __future__ import annotations

import numpy as np
import pytest

from fbam.analysis import questions
from fbam.analysis.scaling import FitError
from fbam.analysis.scaling_tables import FIXED_BATCH, Reading
from fbam.experiments.scaling_rows import MessageRatioRow
from test_sweep import TASKS, made, study_rows

STEPS = [{"task": "edits", "control": FIXED_BATCH, "L": L, "flops": 10 * L} for L in (1, 2, 4)]
FLAT = {"task": "edits", "control": "flattened, rate 0.01", "L": 2, "flops": 60}


def reading(*, slow: float = 1.0, flat: float = 3.0, layers: float = 0.5, end: int = 10) -> Reading:
    """A study with the LSTM at one more rate, `slow` times as high, the Transformer at loss `flat`, and 4 layers whose exponent is `layers`."""
    losses = {("edits", "rate 0.01", 8, L, 0): slow * 2 * L**-0.5 for L in (2, 4)}
    losses |= {("edits", "layers 4", 8, L, 0): 2 * L**-layers for L in (1, 2, 4)}
    short = {("edits", f"flattened, rate {rate}", 8, 2, 0): flat * better for rate, better in (("0.01", 1.0), ("0.1", 1.5))}
    return Reading.of([*study_rows(), *made(losses), *made(short, rows=end // 2)], TASKS, 0.1, 200, 0)


def test_the_cheaper_side_goes_on_until_both_have_cost_as_much():
    steps, same, long = questions.matched_rows(reading(), "edits", [*STEPS, FLAT])
    assert (steps.matched, steps.flattened_steps, steps.steps, steps.L) == ("steps", 10, 10, 2)
    assert (same.L, same.steps, same.flops, same.flattened_steps, same.flattened_flops) == (2, 20, 400, 8, 480)
    assert same.flattened_flops >= same.flops and (same.flattened_steps - 2) * 60 < same.flops
    assert (long.L, long.flattened_steps, long.flattened_flops) == (4, 10, 600) and long.steps == 14 and long.flops == 560 <= 600
    assert same.flattened_family == "flattened, rate 0.01" and same.family in (FIXED_BATCH, "rate 0.01")
    assert same.ratio == pytest.approx(same.flattened_loss / same.loss) and same.rates == 2


def test_each_side_is_taken_at_its_best_rate():
    worse, better = (questions.matched_rows(reading(slow=slow), "edits", [*STEPS, FLAT])[1] for slow in (2.0, 0.5))
    assert worse.family == FIXED_BATCH and better.family == "rate 0.01" and better.loss < worse.loss
    assert worse.flattened_loss == better.flattened_loss


def test_a_comparison_that_costs_too_little_is_refused():
    with pytest.raises(FitError, match="costs too little"):
        questions.matched_rows(reading(end=2), "edits", [{**row, "flops": 1000 * row["flops"]} for row in STEPS] + [FLAT])


@pytest.mark.parametrize(("layers", "shifts"), [(0.5, False), (0.9, True)])
def test_capacity_shifts_the_exponent_only_beyond_the_spread_of_seeds(layers, shifts):
    found = reading(layers=layers)
    rows = questions.capacity_rows(found, "edits")
    assert [(row.control, row.seed) for row in rows] == [(FIXED_BATCH, 0), (FIXED_BATCH, 1), (FIXED_BATCH, 2), ("layers 4", 0)]
    assert rows[-1].alpha == pytest.approx(layers, abs=1e-6) and rows[-1].lengths == [1, 2, 4]
    main = np.array([row.alpha for row in rows[:3]])
    half = 4.3027 * main.std(ddof=1) * np.sqrt(4 / 3)  # Student's t with two degrees of freedom
    assert (rows[0].low, rows[0].high) == (pytest.approx(main.mean() - half, rel=1e-4), pytest.approx(main.mean() + half, rel=1e-4))
    ratio = [MessageRatioRow(at="all", against=against, commits=5, seeds=3, value=0.9, low=0.8, high=high, seeds_below=3)
             for against, high in (("other", 0.95), ("none", 1.05))]
    follows = [row.model_copy(update={"at": questions.FOLLOWING}) for row in ratio]
    values = questions.summary(questions.matched_rows(found, "edits", [*STEPS, FLAT]), rows, [*ratio, *follows])
    assert values["capacity_shifts"] is shifts and values["alpha_layers_4"] == pytest.approx(layers)
    assert values["flattened_loses"] and values["flattened_flops_a_step"] == 3
    assert not values["message_conditions"], "the interval over none reaches 1"
    told = questions.summary(questions.matched_rows(reading(flat=0.1), "edits", [*STEPS, FLAT]), rows,
                             [row.model_copy(update={"high": 0.95}) for row in (*ratio, *follows)])
    assert told["message_conditions"] and not told["flattened_loses"]
    assert len(questions.sentences(values)) == 3


def test_one_seed_is_held_against_the_line_and_no_layers_are_refused():
    rows = [row for row in study_rows() if row["seed"] == 0]
    with pytest.raises(FitError, match="capacity needs a family"):
        questions.capacity_rows(Reading.of(rows, TASKS, 0.1, 200, 0), "edits")
    more = made({("edits", "layers 4", 8, L, 0): 2 * L**-0.5 for L in (1, 2, 4)})
    found = Reading.of([*rows, *more], TASKS, 0.1, 200, 0)
    first, *_ = questions.capacity_rows(found, "edits")
    law = found.fits["edits", FIXED_BATCH, 20]
    assert (first.low, first.high) == (pytest.approx(law.low), pytest.approx(law.high))


def test_families_that_end_early_are_compared_where_both_are():
    found = reading()
    assert found.common("edits", FIXED_BATCH) == 20 and found.common("edits", FIXED_BATCH, "flattened, rate 0.01") == 10
    assert ("edits", "flattened, rate 0.01") not in found.laws
    with pytest.raises(FitError, match="end before the first fixed step"):
        reading(end=2).common("edits", "flattened, rate 0.01")
