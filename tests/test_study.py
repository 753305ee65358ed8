"""The grid of section 10.5: which runs, which cells, and rows that mean what they say."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.analysis.losses import Losses
from fbam.analysis.scaling import FitError
from fbam.experiments.grid import Outcome, cell_folder
from fbam.training import study
from fbam.training.loop import CellConfig, train_cell
from fbam.training.windows import WindowError
from typist import record, tokenizer


def outcomes_of(runs: list[study.Run], steps: int) -> list[Outcome]:
    return [Outcome({"steps": steps, "frame_head": "attention", "main": "lstm"}, {"losses": [run.length * 100.0 + step for step in range(steps)]}, {}) for run in runs]


def test_two_families_share_the_run_they_have_in_common(tmp_path):
    runs = study.plan([1, 2, 4], batch=8, labels=32, seeds=[0, 1])
    assert [(r.control, r.length, r.batch) for r in runs if r.seed == 0] == [
        ("fixed batch", 1, 8), ("fixed batch", 2, 8), ("fixed batch", 4, 8),
        ("fixed batch x L", 1, 32), ("fixed batch x L", 2, 16), ("fixed batch x L", 4, 8)]
    assert len(study.plan([1, 2], 8, 0, [0])) == 2
    (tmp_path / "a").write_text("a")
    configs = study.configs(runs, [tmp_path / "a"], tmp_path / "a", {"steps": 5})
    assert len({str(config) for config in configs}) == len(configs) - 2, "L = 4, batch 8 is one cell a seed"


@pytest.fixture(scope="module")
def cell(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("study")
    path = record(folder / "1.fbam", 1)
    tokenizer(folder / "tokenizer.json", [path])
    return study.configs([study.Run("fixed batch", 2, 4, 0)], [path], folder / "tokenizer.json", {
        "steps": 1, "width": 8, "heads": 1, "poolings": 0, "head_blocks": 0, "layers": 1, "codes": 128, "frame_head": "attention",
        "reduction": "lstm", "main": "lstm", "muon_lr": 0.1, "adamw_lr": 0.1, "adamw_betas": [0.9, 0.95], "weight_decay": 0.0,
        "schedule": "constant", "warm_up": 0, "held_out": 0.3, "checkpoint_every": 1, "frame_chunk": 0, "state_every": 1,
        "micro_batch": 0, "device": "cpu"})[0]


def test_references_are_those_of_a_loop(cell):
    train, _ = CellConfig.parse(cell).windows()
    tokens = [int(token) for part in train._parts for token in part.token]
    single, pairs, first = Counter(tokens), Counter(zip(tokens, tokens[1:])), Counter(tokens[:-1])
    unigram = -sum(n * math.log(n / len(tokens)) for n in single.values()) / len(tokens)
    bigram = -sum(n * math.log(n / first[a]) for (a, _), n in pairs.items()) / (len(tokens) - 1)
    found = study.training_references(cell)
    assert found["train_unigram"] == pytest.approx(unigram) and found["train_bigram"] == pytest.approx(bigram)
    assert bigram < unigram


def test_data_too_short_are_refused_before_training_with_the_keys_to_change(cell):
    study.check_held_out([cell], [1, 2])
    with pytest.raises(WindowError, match="held-out part has .* lower training.eval_lengths or raise training.held_out"):
        study.check_held_out([cell], [2, 10**6])
    with pytest.raises(WindowError, match="training part has .* shorten training.lengths"):
        study.check_held_out([cell, cell | {"length": 10**6}], [2])


def evaluations_of(runs: list[study.Run], lengths: list[int]) -> list[Outcome]:
    """Evaluations whose numbers tell where they come from: value = L + length, one less where only counted."""
    found = []
    for run in runs:
        for length in lengths:
            three = [run.length + length, run.length + length - 0.5, run.length + length + 0.5]
            predictors = {name: {measure: [v - lower for v in three] for measure in ("loss", "top1", "sustained")}
                          for name, lower in (("model", 0.0), ("unigram", 2.0), ("bigram", 2.0), ("copy", 2.0))}
            by_position = [run.length + position / 100 for position in range(length)]
            found.append(Outcome({"length": length}, {"windows": 3, "positions": 3 * length, "predictors": predictors,
                                                      "loss_by_position": by_position, "top1_by_position": by_position}, {}))
    return found


def test_rows_of_the_evaluation_name_run_length_and_predictor():
    runs = study.plan([1, 4], batch=4, labels=0, seeds=[0])
    outcomes, evaluations = outcomes_of(runs, 2), evaluations_of(runs, [8, 16])
    rows = list(study.evaluation_rows("t", runs, outcomes, evaluations))
    assert [(r.L, r.length, r.predictor) for r in rows] == [
        (L, length, name) for L in (1, 4) for length in (8, 16) for name in ("model", "unigram", "bigram", "copy")]
    assert all((r.loss, r.top1_low, r.sustained_high) == (r.L + r.length, r.L + r.length - 0.5, r.L + r.length + 0.5)
               for r in rows if r.predictor == "model")
    assert study.is_better(rows[:4])
    assert not study.is_better([rows[0], *(row.model_copy(update={"top1_high": rows[0].top1_low}) for row in rows[1:4])])
    positions = list(study.position_rows("t", runs, outcomes, evaluations, 8))
    assert [(r.L, r.position, r.loss) for r in positions] == [(L, t, L + (t - 1) / 100) for L in (1, 4) for t in range(1, 9)]
    assert study.ends_off_the_mean(positions) == pytest.approx(0.02 / 1.035)


def test_another_evaluation_leaves_the_training_as_it_is(tmp_path):
    configs = [{"length": 1}, {"length": 2}]
    found = study.evaluation_configs(configs, [8, 16], 3, tmp_path)
    assert [(c["length"], c["windows"]) for c in found] == [(8, 3), (16, 3)] * 2
    assert [c["model"] for c in found[::2]] == [str(cell_folder(train_cell, config, tmp_path)) for config in configs]


@given(every=st.sampled_from([1, 2, 5]), rows=st.integers(2, 8))
def test_a_row_is_the_mean_of_its_steps_and_the_fit_reads_it_back(every, rows):
    runs = study.plan([1, 2, 4], batch=4, labels=0, seeds=[0])
    table = [row.model_dump() for row in study.loss_rows("t", runs, outcomes_of(runs, every * rows), every)]
    assert len(table) == 3 * rows and table[0]["n"] == every * 4
    losses = Losses(reversed(table))
    assert (losses.every, losses.steps, losses.runs, losses.families) == (every, every * rows, 3, ["fixed batch"])
    lengths, values = losses.at("fixed batch", every * rows, 2 * every)
    last = range(every * (rows - 2), every * rows)
    expected = [length * 100 + sum(last) / len(last) for length in (1, 2, 4)]
    assert lengths == [1, 2, 4] and values[:, 0].tolist() == pytest.approx(expected)


def test_gaps_doubles_and_steps_between_rows_are_refused():
    runs = study.plan([1, 2, 4], batch=4, labels=0, seeds=[0])
    table = [row.model_dump() for row in study.loss_rows("t", runs, outcomes_of(runs, 10), 2)]
    for wrong, said in [(table[:3] + table[4:], "where 5 are due"), ([*table, table[0]], "two losses at step 2"),
                        ([*table, table[0] | {"task": "u", "seed": 1}], "exactly one task"), ([], "exactly one task")]:
        with pytest.raises(FitError, match=said):
            Losses(wrong)
    with pytest.raises(FitError, match="rows stand every 2 steps"):
        Losses(table).at("fixed batch", 5, 2)
