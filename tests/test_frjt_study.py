"""The jumps study: its grid, its rows, the values the ledger reads, and its figures."""

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

from fbam.analysis import figures, frjt, frjt_figures, frjt_tables
from fbam.experiments.files import read_yaml
from fbam.experiments.grid import Outcome
from fbam.training import jumps_study as study
from fbam.training.jumps import JumpsConfig, train_jumps

SETTINGS = {
    "registers": 2, "width": 16,
    "learning": {"rates": [0.001, 0.01], "trial_steps": 3, "trial_tokens": 40,
                 "trial_depths": [2], "weight_decay": 0.1, "grad_clip": 0.3, "warm_up": 1},
    "adaptive": {"advance_at": 0.9, "check_every": 2, "check_programs": 16, "even_jumps": 0.5},
    "testing": {"depths": [2, 3, 4, 8, 64], "programs": 20, "curve_every": 2},
    "data": {"programs": 50, "depth": 4},
}
MODELS = [{"family": "lstm", "layers": 1, "steps": 4, "tokens": 50}, {"family": "mamba2", "layers": 2, "steps": 2, "tokens": 30}]
HEADLINE = {"name": "headline", "max_depth": 4, "seeds": [3, 4], "models": MODELS}
PAPER = HEADLINE | {"name": "paper", "exits": "single", "curriculum": "mix", "programs": 10, "seeds": [0]}


def test_every_run_of_every_study_is_planned_with_its_familys_rate():
    runs = study.plan([HEADLINE, PAPER], SETTINGS, {"lstm": 0.01, "mamba2": 0.001})
    assert [(run.study, run.config["family"], run.config["seed"], run.config["lr"]) for run in runs] == [
        ("headline", "lstm", 3, 0.01), ("headline", "lstm", 4, 0.01), ("headline", "mamba2", 3, 0.001), ("headline", "mamba2", 4, 0.001),
        ("paper", "lstm", 0, 0.01), ("paper", "mamba2", 0, 0.001)]
    assert all(JumpsConfig.parse(run.config) for run in runs)
    assert {(*run.config["curve_depths"],) for run in runs} == {(2, 4)}, "powers of two that were trained on"
    assert {(*run.config["test_depths"],) for run in runs} == {(2, 3, 4, 8)}, "up to four times the depth trained on"
    assert {run.task for run in runs} == {"paired exits", "single exits"}


def test_every_family_is_tried_at_every_rate_with_one_seed():
    runs = study.rate_runs([HEADLINE, PAPER], SETTINGS)
    assert sorted((run.config["family"], run.config["lr"], run.config["seed"], run.config["steps"], run.config["tokens"]) for run in runs) == [
        ("lstm", 0.001, 3, 3, 40), ("lstm", 0.01, 3, 3, 40), ("mamba2", 0.001, 3, 2, 30), ("mamba2", 0.01, 3, 2, 30)]
    assert all(run.config["test_depths"] == [2] for run in runs)


def outcome(correct, split="validation"):
    scores = [{"depth": 4, "split": s, "n": 10, "correct": correct if s == split else 10} for s in ("train", "validation", "test")]
    return Outcome({}, {"scores": scores}, {})


def test_the_rate_is_chosen_on_validation_programs_alone():
    runs = study.rate_runs([HEADLINE], SETTINGS)  # lstm and mamba2 at .001, then at .01
    assert study.chosen_rates(runs, [outcome(8), outcome(5), outcome(6), outcome(5)]) == {"lstm": 0.001, "mamba2": 0.001}
    assert study.chosen_rates(runs, [outcome(1, "test"), outcome(5), outcome(6), outcome(7)]) == {"lstm": 0.001, "mamba2": 0.01}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    runs = study.plan([HEADLINE, PAPER], SETTINGS, {"lstm": 0.01, "mamba2": 0.001})
    outcomes = [Outcome(run.config, *train_jumps(run.config, tmp_path_factory.mktemp("cell"), lambda share: None)) for run in runs]
    return runs, outcomes


def test_rows_hold_every_model_seed_and_depth(finished):
    rows = list(study.score_rows(*finished))
    assert len(rows) == 6 * 4 and {(row.model, row.layers) for row in rows} == {("lstm", 1), ("mamba2", 2)}
    for row in rows:
        assert row.test_low <= row.test_accuracy <= row.test_high and (row.test_accuracy * 20) % 1 == pytest.approx(0, abs=1e-9)
    curves = list(study.curve_rows(*finished))
    assert [row.step for row in curves if row.study == "headline" and row.model == "lstm"] == [2, 4, 2, 4]
    assert all([depth for depth, *_ in row.by_depth] == [2, 4] for row in curves)
    assert len(list(study.timing_rows(*finished))) == 6


def test_variants_cover_every_depth_that_is_tested():
    found = study.variants([HEADLINE, PAPER, HEADLINE | {"name": "more", "max_depth": 16}], SETTINGS)
    assert [(config["exits"], config["depths"]) for config in found] == [("paired", [2, 3, 4, 8, 64]), ("single", [2, 3, 4, 8])]


# ------------------------------------------------------------------ verdicts

def scored(name, model, accuracy, layers=2, depth=16, seed=0, **more):
    return {"study": name, "model": model, "layers": layers, "depth": depth, "seed": seed, "n": 400, "test_accuracy": accuracy,
            "train_accuracy": accuracy, "validation_accuracy": accuracy, "task": "single exits", "max_depth": 8, "deepest": 8, **more}


def curve(model, losses, study="paper", seed=0):
    return [{"study": study, "model": model, "layers": 2, "seed": seed, "step": step, "validation_loss": loss, "deepest": 2 + step,
             "validation_accuracy": 1 - loss} for step, loss in enumerate(losses)]


def rows_that_hold():
    scores = [scored("headline", model, accuracy, depth=depth, seed=seed)
              for model, line in {"lstm": (1, 1, 0.99), "transformer": (0.9, 0.5, 0.5), "mamba": (0.95, 0.6, 0.5)}.items()
              for depth, accuracy in zip((4, 16, 32), line, strict=True) for seed in (0, 1)]
    scores += [scored("layers", "mamba", accuracy, layers=layers, depth=4) for layers, accuracy in ((1, 0.8), (4, 0.99))]
    scores += [scored("paper", model, 0.7, depth=depth) for model in ("lstm", "transformer", "mamba") for depth in (4, 8)]
    scores.append(scored("paper", "lstm", 0.0, depth=16))  # deeper than the training: no part of the mix
    scores.append(scored("scratchpad", "transformer", 1.0, depth=32))
    curves = curve("lstm", [0.7, 0.3, 0.2]) + curve("transformer", [0.7, 0.6, 0.9]) + curve("mamba", [0.7, 0.5, 0.53])
    curves += curve("lstm", [0.5, 0.3, 0.1], "headline") + curve("mamba", [0.5, 0.4], "headline")
    tasks = [{"depth": depth, "solver_states": 18, "solver_rounds": rounds, "solver_agreement": 1.0} for depth, rounds in ((4, 2), (9, 4))]
    return scores, curves, tasks, [{"task": "single exits", "depth": 8, "predictor": "flow only", "accuracy": 0.66}]


def test_verdicts_pass_where_the_papers_statements_are_true():
    found = frjt.verdicts(*rows_that_hold())
    truths = {name for name, value in found.items() if value is True}
    assert truths == {"lstm_above_others", "mamba_better_with_layers", "mamba_worse_with_depth", "overfit_all_but_lstm", "scratchpad_solves",
                      "solver_agrees"}
    assert (found["lstm_deep"], found["mamba_middle"], found["floor"]) == (0.99, 0.6, 0.66)
    assert (found["matched_step"], found["matched_step_lstm"], found["matched_step_mamba"]) == (1, 0.7, 0.6)
    assert found["paper_lstm_validation"] == found["paper_lstm_last"] == 0.7
    assert found["rise_transformer"] == pytest.approx(0.3) and found["middle_depth"] == 16


def test_each_seed_is_read_alone():
    scores = rows_that_hold()[0] + [scored("headline", "lstm", accuracy, depth=depth, seed=2) for depth, accuracy in ((4, 1), (16, 0.5), (32, 0.5))]
    scores += [scored("headline", model, 0.6, depth=depth, seed=2) for model in ("transformer", "mamba") for depth in (4, 16, 32)]
    rows = frjt.by_seed(scores)
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert [row["at_target"] for row in rows] == [row["lstm_above_others"] for row in rows] == [True, True, False]
    last = cells_of(frjt_tables.seeds(rows, ("at_target", "lstm_above_others")))[-1]
    assert last[0] == "seeds for which it holds" and last.count("2 of 3") == 2


@pytest.mark.parametrize("change, fails", [
    (lambda s, c, t: s.append(scored("headline", "mamba", 1.0, seed=2)), "lstm_above_others"),
    (lambda s, c, t: s.extend(scored("headline", "mamba", 1.0, depth=32, seed=seed) for seed in range(40)), "mamba_worse_with_depth"),
    (lambda s, c, t: s.extend(scored("layers", "mamba", 0.5, layers=4, depth=4, seed=seed) for seed in (1, 2)), "mamba_better_with_layers"),
    (lambda s, c, t: c.extend(curve("mamba", [0.5])), "overfit_all_but_lstm"),
    (lambda s, c, t: c.extend(curve("lstm", [0.4])), "overfit_all_but_lstm"),
    (lambda s, c, t: s.append(scored("scratchpad", "transformer", 0.5, depth=32, seed=1)), "scratchpad_solves"),
    (lambda s, c, t: t.append({"depth": 8, "solver_states": 18, "solver_rounds": 8, "solver_agreement": 1.0}), "solver_agrees"),
    (lambda s, c, t: t.append({"depth": 8, "solver_states": 18, "solver_rounds": 3, "solver_agreement": 0.999}), "solver_agrees"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_each_verdict_can_fail(change, fails):
    scores, curves, tasks, baselines = rows_that_hold()
    change(scores, curves, tasks)
    assert frjt.verdicts(scores, curves, tasks, baselines)[fails] is False


def test_models_are_compared_at_one_budget():
    course = curve("lstm", [0.5, 0.3, 0.1, 0.0]) + curve("lstm", [0.5, 0.5, 0.5, 0.5], seed=1) + curve("mamba", [0.5, 0.4, 0.2])
    budget, found = frjt.matched(course)
    assert budget == 2 and found["mamba"] == {"validation_accuracy": 0.8, "deepest": 4}
    assert found["lstm"]["validation_accuracy"] == pytest.approx((0.9 + 0.5) / 2)
    budget, found = frjt.matched(course, {("lstm", 0): 1.0, ("lstm", 1): 2.0, ("mamba", 0): 4.0})
    assert budget == 3 and found["mamba"]["validation_accuracy"] == 0.5, "one step of Mamba costs more than the budget"
    assert found["lstm"]["validation_accuracy"] == pytest.approx((1.0 + 0.5) / 2)


def test_missing_rows_are_named():
    scores, curves, tasks, baselines = rows_that_hold()
    with pytest.raises(frjt.FrjtError, match="study scratchpad"):
        frjt.verdicts([row for row in scores if row["study"] != "scratchpad"], curves, tasks, baselines)
    with pytest.raises(frjt.FrjtError, match="another number"):
        frjt.better_with_layers([scored("headline", "mamba", 1.0)], "mamba")
    with pytest.raises(frjt.FrjtError, match="fixed number of registers"):
        frjt.solver_agrees([{"depth": 4, "solver_states": 0}])


# ------------------------------------------------------------------ figures

def test_figures_show_every_model(finished):
    figures.use_style()
    scores, curves = ([row.model_dump() for row in rows(*finished)] for rows in (study.score_rows, study.curve_rows))
    headline, course = frjt.select(scores, study="headline"), frjt.select(curves, study="headline")
    figure, axes = plt.subplots()
    frjt_figures.accuracy_against_depth(axes, headline, [{"predictor": "flow only", "depth": d, "accuracy": 0.5} for d in (2, 8)], ["flow only"])
    seconds = {(row.model, row.seed): row.cpu_seconds_a_step for row in study.timing_rows(*finished) if row.study == "headline"}
    drawings = [figure, frjt_figures.learning_curves(course), frjt_figures.learning_curves(course, seconds),
             frjt_figures.overfitting(frjt.select(curves, study="paper")), frjt_figures.accuracy_by_layers(headline, 0.9)]
    for drawing in drawings:
        assert all(axes.lines for axes in drawing.axes) and "<svg" in figures.svg(drawing)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["LSTM", "Mamba-2", "flow only"]
    plt.close("all")


def cells_of(table):
    return [[cell.get_text(" ", strip=True) for cell in line.find_all(["th", "td"])] for line in BeautifulSoup(table, "html.parser").find_all("tr")]


def test_tables_hold_every_run_and_depth(finished):
    scores, curves = ([row.model_dump() for row in rows(*finished)] for rows in (study.score_rows, study.curve_rows))
    headline = frjt.select(scores, study="headline")
    lines = cells_of(frjt_tables.runs(headline))
    assert lines[0][-4:] == ["2", "3", "4", "8"] and [line[:2] for line in lines[1:]] == [["LSTM", "3"], ["LSTM", "4"], ["Mamba-2", "3"], ["Mamba-2", "4"]]
    assert [line[2] for line in cells_of(frjt_tables.splits(headline))[1:]] == ["train", "validation", "test"] * 2
    assert [line[0] for line in cells_of(frjt_tables.others(scores))[1:]] == ["headline", "headline", "paper", "paper"]
    trials = [{"model": "lstm", "lr": rate, "validation_accuracy": accuracy} for rate, accuracy in ((0.1, 0.4), (0.1, 0.5), (0.2, 0.75))]
    assert cells_of(frjt_tables.rates(trials, {"lstm": 0.2})) == [["model", "0.1", "0.2", "taken"], ["LSTM", "0.450", "0.750", "0.200"]]
    course = frjt.select(curves, study="headline")
    assert [line[0] for line in cells_of(frjt_tables.budgets(frjt.matched(course), frjt.matched(course)))[1:]] == ["LSTM", "Mamba-2"]


def test_a_mean_over_depths_is_one_row_a_model():
    rows = [scored("paper", "lstm", accuracy, depth=depth, seed=seed) for accuracy, depth, seed in ((1.0, 2, 0), (0.5, 4, 0), (0.6, 4, 1))]
    assert [(row["model"], row["validation_accuracy"]) for row in frjt.over_depths([*rows, scored("paper", "mamba", 0.9)])] == [
        ("lstm", pytest.approx(0.7)), ("mamba", 0.9)]


def test_the_papers_points_are_drawn_beside_ours():
    paper = read_yaml(ROOT / "data/paper_frjt.yaml")
    assert len(paper["mamba"]) == 21 and {point["source"] for points in paper.values() for point in points} == {"paper", "secondary"}
    figure, axes = plt.subplots()
    frjt_figures.paper_and_ours(axes, paper, [{"model": "mamba", "layers": 2, "max_depth": 8, "validation_accuracy": 0.7}])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["paper, Mamba to depth 4", "paper, Mamba to depth 8", "ours, Mamba to depth 8", "paper, Mamba to depth 16"]
    assert sum(len(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "--") == 21
    plt.close("all")


def test_failing_depths_show_bounds_and_laws():
    figure, axes = plt.subplots()
    rows = [{"model": "mamba", "layers": layers, "depth": depth, "low": depth - 1, "high": depth + 1, "bound": bound}
            for layers, depth, bound in ((1, 4, "reached"), (2, 8, "reached"), (4, 16, "above"))]
    frjt_figures.failing_depths(axes, rows, {"mamba": {"c L": 4.0, "a 2^L": 2.0}})
    assert [text.get_text() for text in axes.texts] == ["at least"]
    assert axes.lines[-1].get_ydata()[-1] == pytest.approx(2 * 2**axes.lines[-1].get_xdata()[-1])
    plt.close("all")
