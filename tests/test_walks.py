"""Training on walks through the maze, and the study around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fbam.analysis import maze_tables
from fbam.experiments.grid import Outcome
from fbam.experiments.maze_rows import MazeRow, MazeSeriesRow
from fbam.models.running_sum import RunningSum
from fbam.tasks import maze
from fbam.training import walk_study, walk_verdicts, walks

TINY = {"size": 8, "opened": 0.25, "maze_seed": 0, "family": "lstm", "layers": 1, "width": 16, "tokens": 1, "head": "regression",
        "moves": 8, "withheld": 2, "longer": 3, "initial_noise": 0.0, "seed": 0, "lr": 0.01, "steps": 4, "batch": 8, "evaluate_every": 2,
        "validation_walks": 20, "test_walks": 30}  # fmt: skip
WORLD = maze.build_maze(8, 0.25, 0)
MODELS = [{"family": "lstm", "layers": 1, "steps": 40}, {"family": "transformer", "layers": 2, "steps": 20},
          {"family": "sum", "layers": 1, "steps": 40}]
PLAN = {"controls": ["lstm", "transformer"], "unwithheld_factor": 1.5, "matched_steps": 10, "initial_noise": 0.5,
        "probabilities": [0.0, 0.2], "sweep_layers": [1, 4]}


def run(tmp_path, **changes):
    return walks.walk_cell(TINY | changes, tmp_path, lambda share: None)


def drawn(withheld=2, count=30, seed=0):
    return maze.sample(WORLD, np.random.default_rng(seed), count, 8, withheld, "test")


class Oracle(torch.nn.Module):
    """Answers with what it is given: coordinates (N, T, 2), at all positions of all tokens."""

    def __init__(self, place, tokens, head, size=8):
        super().__init__()
        place = torch.from_numpy(place).repeat_interleave(tokens, dim=1)
        logits = torch.nn.functional.one_hot(place + size // 2, size).float().flatten(2)
        self.answers = list((place.float() if head == "regression" else logits).split(walks.EVALUATION_BATCH))

    def forward(self, inputs):
        return self.answers.pop(0)


@pytest.mark.parametrize("head", ["regression", "classification"])
@pytest.mark.parametrize("tokens", [1, 2])
def test_true_positions_are_right_and_wrong_ones_are_not(head, tokens):
    walk = drawn(count=300)
    place = maze.coordinates(walk.cells, WORLD)
    assert walks.right(Oracle(place, tokens, head), walk, WORLD, tokens, head).all()
    place[7, 3] = -place[7, 3] + 1
    found = walks.right(Oracle(place, tokens, head), walk, WORLD, tokens, head)
    assert not found[7, 3] and found.sum() == found.size - 1


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_batch_asks_after_each_move_and_its_input_has_no_position(tokens):
    walk = drawn()
    batch = walks.to_batch(walk, WORLD, tokens)
    assert batch.inputs.shape == (30, 8 * tokens, 1) and batch.inputs.dtype == torch.int64
    assert batch.mask.sum() == 30 * 8 and batch.mask[:, tokens - 1 :: tokens].all()
    assert (walks.asked(batch.targets, tokens).numpy() == maze.coordinates(walk.cells, WORLD)).all()
    elsewhere = walks.to_batch(replace(walk, cells=walk.cells[::-1].copy()), WORLD, tokens)
    assert (elsewhere.inputs == batch.inputs).all() and (elsewhere.targets != batch.targets).any()


def test_losses_are_zero_at_the_truth_and_by_hand_elsewhere():
    batch = walks.to_batch(drawn(), WORLD, 2)
    truth = batch.targets.float()
    assert walks.regression_loss(truth, batch) == 0
    assert walks.regression_loss(truth + torch.tensor([1.0, 3.0]), batch) == pytest.approx((1 + 9) / 2)
    logits = 50 * torch.nn.functional.one_hot(batch.targets + 4, 8).float().flatten(2)
    assert walks.classification_loss(logits, batch) < 1e-6
    assert walks.classification_loss(0 * logits, batch) == pytest.approx(2 * np.log(8))


def test_the_running_sum_is_a_sum():
    model, x = RunningSum(10, 4, 3, seed=0), torch.randint(0, 10, (2, 7, 1))
    expected = torch.stack([sum(model.embed.weight[token] for token in x[1, : t + 1, 0]) for t in range(7)])
    torch.testing.assert_close(model(x)[1], model.output(expected))
    assert model.parameter_count == 10 * 4 + 4 * 3 + 3


@pytest.mark.parametrize("changes", [{}, {"family": "transformer", "tokens": 2, "head": "classification", "withheld": [0.0, 0.3]},
                                     {"initial_noise": 0.5}])
def test_a_cell_gives_the_same_result_again(tmp_path, changes):
    first, second = (run(tmp_path, **changes)[0] for _ in range(2))
    assert first == second
    other = run(tmp_path, **changes, seed=1)[0]
    assert other["losses"] != first["losses"]


def test_a_cell_says_all_that_the_rows_need(tmp_path):
    shares = []
    result, measured = walks.walk_cell(TINY, tmp_path, shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert [entry["step"] for entry in result["curve"]] == [2, 4]
    assert [(t["moves"], t["withheld"], t["walks"]) for t in result["tests"]] == [(8, 2, 30), (24, 6, 10)]
    for test in result["tests"]:
        assert sum(test["n_by_withheld"]) == test["walks"] * test["moves"] and len(test["by_withheld"]) == test["withheld"] + 1
        assert sum(test["by_withheld"]) == sum(test["by_move"]) <= test["walks"] * test["moves"]
    assert measured["cpu_seconds"] > 0
    assert run(tmp_path, test_walks=0)[0]["tests"] == []


def test_training_and_its_curve_do_not_see_the_test_set(tmp_path, monkeypatch):
    asked_for = []
    sample = maze.sample
    monkeypatch.setattr(maze, "sample", lambda *args: asked_for.append(args[-1]) or sample(*args))
    run(tmp_path, test_walks=0)
    assert set(asked_for) == {"train", "validation"}


def test_the_sum_learns_what_is_a_sum(tmp_path):
    changes = {"family": "sum", "withheld": 0, "steps": 250, "batch": 32}
    before, after = (run(tmp_path, **changes | {"steps": steps})[0]["tests"] for steps in (1, 250))
    share = [sum(t[0]["by_move"]) / (30 * 8) for t in (before, after)]
    assert share[0] < 0.4 and share[1] > 0.99


def test_an_lstm_gets_better_with_withheld_results(tmp_path):
    found = run(tmp_path, steps=120, batch=32, evaluate_every=20)[0]
    assert found["curve"][-1]["accuracy"] > found["curve"][0]["accuracy"] + 0.1
    assert found["losses"][-1] < 0.5 * found["losses"][0]


@pytest.mark.parametrize(("changes", "named"), [({"tokens": 3}, "tokens"), ({"head": "other"}, "head"), ({"size": "8"}, "size"), ({"x": 1}, "x"),
                                                ({"lr": 0.0}, "lr")])  # fmt: skip
def test_a_wrong_configuration_is_named(changes, named):
    with pytest.raises(walks.WalkError, match=named):
        walks.WalkConfig.parse(TINY | changes)


def settings():
    return {key: value for key, value in TINY.items() if key not in ("family", "layers", "steps", "lr", "seed")}


def test_every_family_is_given_the_same_rates_and_no_test_set():
    configs = walk_study.selection(settings(), MODELS, [0.001, 0.01], 0.25, seed=3)
    assert [(c["family"], c["lr"], c["steps"]) for c in configs] == [
        ("lstm", 0.001, 10), ("lstm", 0.01, 10), ("transformer", 0.001, 5), ("transformer", 0.01, 5), ("sum", 0.001, 10), ("sum", 0.01, 10)]
    assert all(c["test_walks"] == 0 and c["seed"] == 3 and walks.WalkConfig.parse(c) for c in configs)


def test_the_best_rate_is_chosen_and_the_smaller_of_equal_ones():
    found = [("a", 0.1, 0.5), ("a", 0.2, 0.7), ("a", 0.3, 0.7), ("b", 0.1, 0.9), ("b", 0.2, 0.8)]
    outcomes = [Outcome({"family": f, "lr": lr}, {"curve": [{"accuracy": 1.0}, {"accuracy": a}]}, {}) for f, lr, a in found]
    assert walk_study.chosen([], [0.1, 0.2, 0.3], outcomes) == {"a": 0.2, "b": 0.1}
    assert walk_study.selection(settings(), MODELS, [0.01], 0.25, seed=3) == []
    assert walk_study.chosen(MODELS, [0.01], []) == {"lstm": 0.01, "transformer": 0.01, "sum": 0.01}


def test_the_plan_holds_each_part_once():
    rates = {"lstm": 0.01, "transformer": 0.003, "sum": 0.01}
    runs = walk_study.plan(settings(), MODELS, rates, [0, 1], **PLAN)
    assert all(walks.WalkConfig.parse(run.config) for run in runs)
    assert all(run.config["lr"] == rates[run.config["family"]] for run in runs)
    by_task = {task: [run.config for run in runs if run.task == task] for task in {run.task for run in runs}}
    assert len(by_task["withheld"]) == len(by_task["matched steps"]) == 6
    assert {c["steps"] for c in by_task["matched steps"]} == {10} and {c["steps"] for c in by_task["most steps"]} == {40}
    assert [(c["family"], c["steps"], c["withheld"]) for c in by_task["unwithheld"]] == [("lstm", 60, 0), ("transformer", 30, 0), ("sum", 60, 0)]
    assert [(c["family"], c["layers"]) for c in by_task["probabilities"]] == [("lstm", 1), ("transformer", 1), ("transformer", 4)]
    assert {c["tokens"] for c in by_task["two tokens"]} == {2} and {c["head"] for c in by_task["classification"]} == {"classification"}
    assert [(c["family"], c["initial_noise"]) for c in by_task["noisy start"]] == [("lstm", 0.5)]
    assert {c["initial_noise"] for run in by_task if run != "noisy start" for c in by_task[run]} == {0.0}
    price = walk_study.cost(MODELS)
    assert price(by_task["withheld"][0]) == 1 and price(by_task["probabilities"][2]) == 2


def test_rows_say_what_was_trained_and_tested(tmp_path):
    runs = [walk_study.Run("withheld", TINY), walk_study.Run("probabilities", TINY | {"withheld": [0.0, 0.5]})]
    outcomes = [Outcome(run.config, *walks.walk_cell(run.config, tmp_path, lambda share: None)) for run in runs]
    rows = list(walk_study.rows(runs, outcomes))
    assert [(row.task, row.p, row.depth, row.moves, row.trained_p, row.n) for row in rows] == [
        ("withheld", 0.25, 2.0, 8, 0.25, 30), ("withheld", 0.25, 6.0, 24, 0.25, 10),
        ("probabilities", 0.0, 0.0, 8, 0.25, 30), ("probabilities", 0.5, 4.0, 8, 0.25, 30)]
    series = list(walk_study.series_rows(runs, outcomes))
    assert [row.against for row in series] == ["step", "move", "withheld", "move", "withheld"] * 2
    for row in series:
        assert len(row.x) == len(row.y) == len(row.n) and all(0 <= y <= 1 for y in row.y) and min(row.n) > 0
    for row, curve in zip(rows, [r for r in series if r.against == "move"], strict=True):
        assert row.test_accuracy == pytest.approx(np.mean(curve.y)) and row.last_accuracy == curve.y[-1]
        assert row.low <= row.test_accuracy + 0.5 / row.n and row.high >= row.test_accuracy - 0.5 / row.n
    assert len(list(walk_study.timing_rows(runs, outcomes))) == 2
    one = walk_verdicts.over_seeds(rows, "withheld", "lstm")
    assert (one.value, one.low) == (rows[0].test_accuracy, rows[0].low)


def test_predictors_are_scored_beside_the_exact_solver():
    found = {(row.predictor, row.depth): row for row in walk_study.predictor_rows(WORLD, 8, 2, 100, 2)}
    assert len(found) == 15
    assert all(row.accuracy == row.high == 1 for (name, _), row in found.items() if name == "serial tracker")
    assert found["withheld = stayed", 0.0].accuracy == 1 > found["withheld = stayed", 2.0].accuracy > found["majority", 2.0].accuracy
    assert found["withheld = moved", 4.0].n == 50


def test_spikes_are_falls_and_recoveries():
    assert walk_verdicts.spikes([0.1, 0.5, 0.49, 0.6]) == (0, 0)
    assert walk_verdicts.spikes([0.1, 0.5, 0.4, 0.6, 0.5, 0.55]) == (2, 1)


def sweep(late: dict[tuple[int, float], float]):
    """Curves of the sweep that are .99 in the first half and `late` in the second."""
    return [MazeSeriesRow(model="transformer", layers=layers, task="probabilities", tokens=1, head="regression", p=p, seed=0, steps=1,
                          against="move", x=list(range(1, 9)), y=[0.99] * 4 + [value] * 4, n=[1000] * 8) for (layers, p), value in late.items()]


def row(model, task, seed, accuracy):
    return MazeRow(model=model, layers=1, width=1, parameters=1, task=task, tokens=1, head="regression", p=0.2, depth=8.0, moves=40,
                   trained_moves=40, trained_p=0.2, lr=0.1, seed=seed, steps=1, train_accuracy=0.5, validation_accuracy=0.5,
                   test_accuracy=accuracy, last_accuracy=0.5, n=1000, low=accuracy - 0.03, high=accuracy + 0.03)


def test_the_order_must_be_seen_at_equal_cost_and_at_equal_updates():
    cost = [row(model, "withheld", seed, mean + seed / 100) for model, mean in [("lstm", 0.9), ("transformer", 0.5)] for seed in (0, 1, 2)]
    most = [row("lstm", "most steps", 0, 0.9), row("transformer", "most steps", 0, 0.8)]
    few = [row(model, "matched steps", 0, 0.4) for model in ("lstm", "transformer")]
    curve = MazeSeriesRow(model="lstm", layers=1, task="withheld", tokens=1, head="regression", p=0.2, seed=0, steps=1, against="step",
                          x=[1, 2, 3, 4], y=[0.1, 0.5, 0.4, 0.6], n=[10] * 4)
    series = [curve, *sweep({(1, 0.0): 0.98, (1, 0.2): 0.5, (4, 0.0): 0.98, (4, 0.2): 0.7})]
    predictors = list(walk_study.predictor_rows(maze.build_maze(32, 0.25, 0), 40, 8, 20, 2))
    values = walk_verdicts.summary(cost + most + few, series, predictors, [1, 4], [0.0, 0.2])
    assert values["order"] and values["any_p"] and values["spikes_recover"]
    assert values["withheld_lstm"] == pytest.approx(0.91) and values["matched_transformer"] == 0.4
    assert values["seeds"] == 3 and 0.1 < values["best_predictor"] < 0.6
    closer = cost + few + [row("lstm", "most steps", 0, 0.9), row("transformer", "most steps", 0, 0.85)]
    assert not walk_verdicts.summary(closer, series, predictors, [1, 4], [0.0, 0.2])["order"]


def test_each_seed_is_read_alone():
    found = [row("lstm", "withheld", seed, accuracy) for seed, accuracy in enumerate((0.9, 0.5))] + [row("transformer", "withheld", seed, 0.5)
                                                                                                for seed in (0, 1)]
    curve = {"model": "lstm", "task": "withheld", "layers": 1, "tokens": 1, "head": "regression", "steps": 3, "p": 0.2, "against": "step",
             "x": [1, 2, 3], "n": [1, 1, 1]}
    series = [MazeSeriesRow(**curve, seed=0, y=[0.5, 0.4, 0.6]), MazeSeriesRow(**curve, seed=1, y=[0.5, 0.6, 0.7])]
    first, second = walk_verdicts.by_seed(found, series)
    assert (first["order"], first["falls"], first["spikes recover"]) == (True, 1, True)
    assert (second["order"], second["falls"], second["spikes recover"]) == (False, 0, False)
    assert "1 of 2" in maze_tables.seed_table([first, second])


def test_the_tests_of_section_6_can_pass_and_fail():
    shape = {(1, 0.0): 0.98, (1, 0.2): 0.5, (4, 0.0): 0.98, (4, 0.2): 0.7}
    both = lambda series: (walk_verdicts.falls_with_p(series, [1, 4], [0.0, 0.2]), walk_verdicts.rises_with_layers(series, [1, 4], [0.0, 0.2]))
    assert both(sweep(shape)) == (True, True)
    assert both(sweep(shape | {(4, 0.2): 0.51})) == (True, False)
    assert both(sweep(shape | {(1, 0.0): 0.51})) == (False, True)
    assert both(sweep(shape | {(4, 0.2): 0.98})) == (False, True)
