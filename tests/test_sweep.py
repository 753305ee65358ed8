"""The runs of the scaling study: which there are, what one label a window means, and rows that mean what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from ruamel.yaml import YAML

from conftest import ROOT
from fbam.analysis import ablations
from fbam.analysis.losses import by_task
from fbam.analysis.paper_scaling import read_paper
from fbam.analysis.scaling import FitError
from fbam.analysis.scaling_tables import FIXED_BATCH, FIXED_LABELS, Reading, form_rows, local_rows, summary
from fbam.experiments.grid import Outcome
from fbam.models.flop_count import counted
from fbam.params import read_sections
from fbam.schema.scaling import Scaling, Sweep, SweepTask
from fbam.training import sweep_study
from fbam.training.loop import TrainingError, train_cell
from fbam.training.peak import PeakError, peak_cell
from fbam.training.step_flops import step_cell
from fbam.training.sweep import UNLABELLED, OneLabel, SweepConfig, position_cell, sweep_cell
from fbam.training.windows import open_windows
from typist import record, tokenizer

SETTINGS = {
    "batch": 3, "labels": "all", "width": 8, "heads": 1, "frame_head": "conv", "reduction": "lstm", "poolings": 1, "head_blocks": 0,
    "main": "lstm", "layers": 1, "codes": 128, "muon_lr": 0.01, "adamw_lr": 0.01, "adamw_betas": [0.9, 0.95], "weight_decay": 0.0,
    "schedule": "constant", "warm_up": 0, "held_out": 0.3, "checkpoint_every": 2, "frame_chunk": 0, "state_every": 1, "micro_batch": 0,
    "device": "cpu",
}
SWEEPS = [
    {"task": "t", "control": FIXED_BATCH, "lengths": [1, 2, 4], "seeds": [0, 1]},
    {"task": "t", "control": FIXED_LABELS, "lengths": [1, 4], "seeds": [0], "an_update": 12},
    {"task": "t", "control": "one label", "lengths": [4], "seeds": [0], "labels": "one"},
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("sweep")
    path = record(folder / "1.fbam", 1)
    tokenizer(folder / "tokenizer.json", [path])
    return {"t": sweep_study.data_of([path], folder / "tokenizer.json")}


@pytest.fixture(scope="module")
def runs(data) -> list[sweep_study.Run]:
    return sweep_study.plan(SWEEPS, data, {"t": 4}, SETTINGS)


def quiet(share: float) -> None:
    pass


def test_runs_are_the_settings_with_what_their_sweep_changes(runs):
    assert [(run.control, run.config["length"], run.config["batch"], run.config["seed"], run.labels) for run in runs] == [
        (FIXED_BATCH, 1, 3, 0, 3), (FIXED_BATCH, 2, 3, 0, 6), (FIXED_BATCH, 4, 3, 0, 12),
        (FIXED_BATCH, 1, 3, 1, 3), (FIXED_BATCH, 2, 3, 1, 6), (FIXED_BATCH, 4, 3, 1, 12),
        (FIXED_LABELS, 1, 12, 0, 12), (FIXED_LABELS, 4, 3, 0, 12), ("one label", 4, 3, 0, 3)]
    for run in runs:
        SweepConfig.parse(run.config)
    assert runs[2].config == runs[7].config, "the run that two families share is one cell"
    assert sweep_study.firsts_of(runs, FIXED_BATCH) == runs[:3]


def test_one_label_keeps_the_windows_and_one_target_of_each(data):
    windows, _ = open_windows(data["t"]["recordings"], data["t"]["tokenizer"], 0.3)
    for step in range(20):
        whole = windows.draw(np.random.default_rng([0, step]), 5, 4)
        one = OneLabel(windows).draw(np.random.default_rng([0, step]), 5, 4)
        assert np.array_equal(one.numbers, whole.numbers)
        kept = one.target != UNLABELLED
        assert kept.sum(dim=1).tolist() == [1] * 5 and torch.equal(one.target[kept], whole.target[kept])
    drawn = [OneLabel(windows).draw(np.random.default_rng([0, step]), 5, 4).target != UNLABELLED for step in range(100)]
    share = torch.stack(drawn).float().mean(dim=(0, 1))  # (4,)
    assert share.tolist() == pytest.approx([0.25] * 4, abs=0.1)
    assert OneLabel(windows).tokens == windows.tokens


def test_the_loss_of_one_label_is_that_of_its_position(data, runs):
    cell = SweepConfig.parse(runs[-1].config)
    windows, _ = cell.windows()
    model, _ = cell.build(windows)
    batch = windows.draw(np.random.default_rng([cell.seed, 0]), cell.batch, cell.length)
    whole, kept = batch.whole(), (batch.target != UNLABELLED).nonzero().tolist()
    with torch.no_grad():
        logs = model(*whole.frames).log_softmax(dim=-1)
    expected = -sum(float(logs[b, t, batch.target[b, t]]) for b, t in kept) / cell.batch
    result, _ = sweep_cell(runs[-1].config | {"steps": 1}, Path(data["t"]["tokenizer"]).parent / "one", quiet)
    assert result["losses"] == pytest.approx([expected], rel=1e-5)


def test_a_run_is_a_training_and_goes_on_where_it_stopped(runs, tmp_path):
    config = runs[2].config
    result, measured = sweep_cell(config, tmp_path / "a", quiet)
    plain, _ = train_cell({name: value for name, value in config.items() if name != "labels"}, tmp_path / "b", quiet)
    assert result["losses"] == plain["losses"] and measured["cpu_seconds"] > 0

    class Stop(Exception):
        pass

    def stop(share: float) -> None:
        if share >= 0.5:
            raise Stop

    for run in (config, runs[-1].config):
        whole, _ = sweep_cell(run, tmp_path / f"whole {run['labels']}", quiet)
        with pytest.raises(Stop):
            sweep_cell(run, tmp_path / f"parts {run['labels']}", stop)
        resumed, _ = sweep_cell(run, tmp_path / f"parts {run['labels']}", quiet)
        assert resumed["losses"] == whole["losses"]


def test_a_profile_is_the_mean_of_its_windows(runs, tmp_path):
    sweep_cell(runs[2].config, tmp_path / "run", quiet)
    config = {"model": str(tmp_path / "run"), "part": "train", "windows": 5, "length": 8}
    found, _ = position_cell(config, tmp_path / "eval", quiet)
    assert found["windows"] == 5 and len(found["loss_by_position"]) == 8
    by_position = found["loss_by_position"]
    assert np.mean(found["all"]) == pytest.approx(np.mean(by_position))
    assert np.mean(found["first"]) == pytest.approx(np.mean(by_position[:4])) and np.mean(found["last"]) == pytest.approx(np.mean(by_position[4:]))
    run, outcome = runs[2], Outcome(config, found, {})
    (row,) = sweep_study.profile_rows([run], [outcome], lambda *key: 1.5 if key == ("t", FIXED_BATCH, 4, 0) else math.nan)
    assert (row.loss, row.training, row.n, row.part) == (pytest.approx(np.mean(found["all"])), 1.5, 5, "train")
    assert row.loss_low < row.loss < row.loss_high
    positions = list(sweep_study.position_rows([run], [outcome]))
    assert [p.position for p in positions] == list(range(1, 9)) and positions[0].control == f"{FIXED_BATCH}, train"


def test_wrong_configurations_name_the_key(runs):
    for change, said in [({"labels": "some"}, "labels"), ({"labels": "one", "frame_chunk": 1}, "labels: one needs frame_chunk 0")]:
        with pytest.raises(TrainingError, match=said):
            SweepConfig.parse(runs[0].config | change)


def test_the_backward_pass_of_a_product_costs_twice_its_forward_pass():
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert counted(lambda: a @ b) == 2 * 3 * 5 * 7
    assert counted(lambda: (a @ b).sum().backward()) == 3 * 2 * 3 * 5 * 7


def test_the_flops_of_a_step_grow_with_its_frames(runs, tmp_path):
    counts = [step_cell(run.config, tmp_path, quiet)[0]["flops"] for run in runs[:3]]
    assert counts[1] > 1.8 * counts[0] and counts[2] > 1.8 * counts[1]
    (row,) = sweep_study.step_rows(runs[:1], [Outcome({}, {"flops": counts[0]}, {})])
    assert (row.flops, row.L, row.batch) == (counts[0], 1, 3)


def test_the_peak_is_a_rate():
    _, measured = peak_cell({"size": 64, "repeats": 3}, Path(), quiet)
    assert measured["flops_per_second"] > 1e6
    with pytest.raises(PeakError, match="size"):
        peak_cell({"size": 0, "repeats": 3}, Path(), quiet)


def made(losses: dict, every: int = 2, rows: int = 10) -> list[dict]:
    """Rows of runs whose loss falls to (family, L, seed) -> value at the last step."""
    table = []
    for (task, family, batch, L, seed), value in losses.items():
        for step in range(every, every * rows + 1, every):
            table.append({"task": task, "control": family, "L": L, "batch": batch, "seed": seed, "step": step,
                          "loss": value * (1 + 0.02 * (every * rows - step))})
    return table


def study_rows(*, context: float = 1.01, attention: float = 1.2, flat: float = 0.9) -> list[dict]:
    """A small study: what `context` leaves of the loss at L = 4 with as many labels; attention over LSTM; what a late doubling leaves."""
    losses = {}
    for task, seeds in (("edits", (0, 1, 2)), ("typing", (0,))):
        for seed in seeds:
            for L in (1, 2, 4):
                losses[task, FIXED_BATCH, 8, L, seed] = 2 * L**-0.5 * (1 + 0.01 * ((seed * L) % 3))
                losses[task, FIXED_LABELS, 32 // L, L, seed] = 1 * context ** (math.log2(L) / 2) * (1 + 0.001 * ((seed + L) % 3))
    losses |= {("edits", "one label", 8, 4, 0): 2 * context, ("edits", "causal attention", 8, 4, 0): attention,
               ("edits", "twice batch and rate", 16, 2, 0): 1.3, ("edits", "batch 4", 4, 2, 0): 2.0, ("edits", "batch 16", 16, 2, 0): 1.414 * flat,
               ("edits", "width 16", 8, 4, 0): 1.1}
    return made(losses)


TASKS = [{"name": name, "read_at": [4, 10, 20]} for name in ("edits", "typing")]
PROFILES = [{"task": "typing", "part": "train", "loss": 1.0, "first": 1.05, "last": 0.97, "training": 1.1}]


def test_the_verdicts_of_the_controls_follow_the_losses():
    found = ablations.summary(Reading.of(study_rows(context=0.5), TASKS, 0.1, 200, 0), PROFILES, near=0.1)
    assert found["length_helps_at_fixed_labels"] and found["length_has_a_part"]
    assert found["fixed_labels_ratio"] == pytest.approx(0.5, rel=0.01) and found["one_label_ratio"] == pytest.approx(0.5)
    assert found["attention_ratio"] == pytest.approx(1.2) and not found["attention_stagnates"], "it falls by as much as the LSTM"
    assert found["batch_bends"] and found["larger_batch_loses"] and found["ends_near_the_mean"] and found["validation_below_training"]
    other = ablations.summary(Reading.of(study_rows(context=1.02, flat=0.5), TASKS, 0.1, 200, 0),
                              [PROFILES[0] | {"first": 1.2, "training": 0.9}], near=0.1)
    for name in ("length_helps_at_fixed_labels", "length_has_a_part", "batch_bends", "ends_near_the_mean", "validation_below_training"):
        assert not other[name], name


def test_the_law_of_a_study_is_read_where_it_was_made():
    reading = Reading.of(study_rows(), TASKS, 0.1, 200, 0)
    assert reading.windows == {"edits": 2, "typing": 2} and reading.laws == [
        (task, family) for task in ("edits", "typing") for family in (FIXED_BATCH, FIXED_LABELS)]
    law = reading.fits["edits", FIXED_BATCH, 20]
    assert law.alpha == pytest.approx(0.5, abs=0.02) and law.seeds == 3
    assert reading.holds("edits", FIXED_BATCH, 20, 3.0) and not reading.holds("edits", FIXED_BATCH, 20, 1.9), "a run above the reference"
    assert {row.form for row in form_rows(reading, 20) if row.task == "edits"} == {"power law", "exponential"}
    assert [row.alpha for row in local_rows(reading) if row.task == "typing"] == pytest.approx([0.5, 0.5], abs=0.02)
    assert [round(r["value"], 2) for r in ablations.ratio_rows(reading) if "width" in r["label"]] == [1.1]


def test_the_ledger_finds_every_value_that_it_names():
    reading, paper = Reading.of(study_rows(), TASKS, 0.1, 200, 0), read_paper(ROOT / "data/paper_scaling.yaml")
    references = {task: {"train_unigram": 3.0, "train_bigram": 1.0} for task in ("edits", "typing")}
    found = summary(reading, references, paper)
    assert found["law_late"] and found["law_observable"] and found["law_all"] and found["alpha_observable"] == pytest.approx(0.5, abs=0.02)
    assert found["doubling_400"] == pytest.approx(0.0855, abs=1e-4)
    low = summary(reading, references | {"typing": {"train_unigram": 1.9, "train_bigram": 1.0}}, paper)
    assert low["law_late"] and not low["law_observable"] and not low["law_all"], "a run of the typing task is above its frequencies"
    assert Reading.stored({"rows": study_rows(), "summary": found}).last == reading.last


def test_a_stored_study_is_read_like_a_fresh_one():
    rows = study_rows()
    steps = {f"{task}_{name}_step": step for task in ("edits", "typing") for name, step in zip(("early", "middle", "late"), (4, 10, 20))}
    stored = Reading.stored(json.loads(json.dumps({"rows": rows, "summary": steps | {"window": 0.1, "resamples": 200, "seed": 0}})))
    fresh = Reading.of(rows, TASKS, 0.1, 200, 0)
    assert stored.fits == fresh.fits and stored.last == fresh.last


def test_a_missing_run_is_an_error_and_no_number():
    rows = [row for row in study_rows() if (row["control"], row["L"], row["seed"]) != (FIXED_BATCH, 2, 1)]
    with pytest.raises(FitError, match="no run of L = 2 with seed 1"):
        by_task(rows)["edits"].at(FIXED_BATCH, 20, 2)
    with pytest.raises(FitError, match="no seed in common"):
        ablations.loss_ratio(by_task([*study_rows(), *made({("edits", "other", 1, 1, 9): 1.0})])["edits"], ("other", 1), (FIXED_BATCH, 1), 20, 2)
    with pytest.raises(FitError, match="two batches"):
        ablations.batch_gains({1: 2.0})


def test_a_sweep_with_values_is_a_family_a_value(data):
    sweep = {"task": "t", "control": "rate", "lengths": [2], "seeds": [0], "steps": 2, "each": "muon_lr", "values": [0.001, 0.1]}
    found = sweep_study.plan([sweep], data, {"t": 4}, SETTINGS)
    assert [(run.control, run.config["muon_lr"], run.config["steps"]) for run in found] == [("rate 0.001", 0.001, 2), ("rate 0.1", 0.1, 2)]
    assert sweep_study.families(SWEEPS[0]) == [SWEEPS[0]]
    for run in found:
        SweepConfig.parse(run.config)


def test_a_run_may_end_only_where_it_is_compared():
    section = read_sections(ROOT / "params.yaml")["scaling"]
    Scaling(**section)
    sweeps = [{**section["sweeps"][0], "control": "other", "steps": 150}, *section["sweeps"]]
    with pytest.raises(ValidationError, match="must be one of read_at"):
        Scaling(**section | {"sweeps": sweeps})


def test_the_schema_refuses_what_cannot_be():
    Sweep(task="t", control="c", lengths=[1, 2], seeds=[0], an_update=4)
    for wrong in ({"an_update": 3}, {"an_update": 4, "batch": 2}, {"lengths": [1, 1]}, {"each": "width"}, {"values": [2]},
                  {"each": "width", "values": [2], "width": 3}, {"each": "width", "values": [2, 2]}):
        with pytest.raises(ValidationError):
            Sweep(**{"task": "t", "control": "c", "lengths": [1, 2], "seeds": [0]} | wrong)
    for wrong in ({"read_at": [2, 1, 3]}, {"read_at": [1, 2, 30]}, {"sessions": 0}, {"name": "compiled"}):
        with pytest.raises(ValidationError):
            SweepTask(**{"name": "edits", "sessions": 5, "steps": 20, "read_at": [1, 2, 3]} | wrong)


def test_a_run_costs_what_its_frames_and_optimisers_cost(runs):
    assert sweep_study.cost(runs[2].config) == 4 * (sweep_study.OPTIMISERS + 12)


def test_paper_numbers_are_yaml_of_the_printed_constants():
    stored = YAML(typ="safe", pure=True).load((ROOT / "data/paper_scaling.yaml").read_text("utf-8"))
    assert [fit["step"] for fit in stored["fits"]] == [400, 650, 4000] and stored["saturation"] == {"alpha_inf": 0.308, "tau": 720.0}
