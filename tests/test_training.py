"""Training: the optimisers' parts, the loss, the references, and that a result depends on the configuration alone."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from fbam.training import checkpoint
from fbam.training.checkpoint import CheckpointError
from fbam.training.determinism import deterministic
from fbam.training.evaluation import bigram_loss, unigram_loss
from fbam.training.loop import CellConfig, NonFiniteLossError, TrainingError, fingerprint, plain_backward, train_cell, train_step
from fbam.training.optim import optimisers, split_parameters
from typist import record, tokenizer

TRAINING = """
import json, sys, time
from pathlib import Path
from fbam.training.loop import train_cell
config = json.loads(sys.argv[1])
def tick(share):
    print(round(share * config["steps"]), flush=True)
    if share == 1:
        time.sleep(600)  # to be killed even if the killer is late
train_cell(config, Path(sys.argv[2]), tick)
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict:
    """A training of a second or two on two tiny recordings."""
    folder: Path = tmp_path_factory.mktemp("training")
    paths = [record(folder / f"{seed}.fbam", seed) for seed in (1, 2)]
    tokenizer(folder / "tokenizer.json", paths)
    return {
        "recordings": [str(path) for path in paths],
        "tokenizer": str(folder / "tokenizer.json"),
        "data": fingerprint(paths, folder / "tokenizer.json"),
        "length": 3,
        "batch": 4,
        "steps": 30,
        "seed": 5,
        "width": 16,
        "heads": 1,
        "poolings": 1,
        "head_blocks": 1,
        "layers": 2,
        "codes": 128,
        "muon_lr": 3e-3,
        "adamw_lr": 3e-4,
        "adamw_betas": [0.9, 0.95],
        "weight_decay": 0.01,
        "held_out": 0.2,
        "eval_windows": 7,
        "eval_length": 6,
        "checkpoint_every": 4,
        "frame_chunk": 0,
        "state_every": 2,
        "micro_batch": 0,
    }


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory) -> str:
    """The result of that training without interruption, as JSON."""
    return json.dumps(train_cell(config, tmp_path_factory.mktemp("whole"), lambda share: None)[0])


def test_every_parameter_goes_to_one_optimiser(config):
    train, _ = CellConfig.parse(config).windows()
    model, (muon, adamw) = CellConfig.parse(config).build(train)
    name = {id(parameter): key for key, parameter in model.named_parameters()}
    matrices, others = ([name[id(p)] for o in (part,) for g in o.param_groups for p in g["params"]] for part in (muon, adamw))
    assert sorted(matrices + others) == sorted(name.values())
    assert {key.rsplit(".", 1)[0] for key in matrices} == {
        *(f"head.{block}.{part}" for block in ("stages.0", "blocks.0") for part in (
            "attention.query_key_value", "attention.outer", "mlp.inner", "mlp.outer")),
        "head.reduction.cell",
        *(f"layers.{i}.{part}" for i in (0, 1) for part in ("lstm.cell", "mlp.inner", "mlp.outer")),
    }
    assert not any("bias" in key for key in matrices)


def test_defaults_of_the_optimisers_are_the_papers():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    muon, adamw = optimisers(model, model[1])
    assert (muon.param_groups[0]["lr"], muon.param_groups[0]["weight_decay"]) == (3e-3, 0.01)
    assert {k: adamw.param_groups[0][k] for k in ("lr", "betas", "weight_decay")} == {
        "lr": 3e-4, "betas": (0.9, 0.95), "weight_decay": 0.01
    }
    assert [len(part) for part in split_parameters(model, model[1])] == [1, 3]


def test_loss_and_gradient_are_divided_by_all_actions_of_the_batch(config):
    train, _ = CellConfig.parse(config).windows()
    model, both = CellConfig.parse(config).build(train)
    lazy = train.draw(np.random.default_rng(0), 4, 3)
    batch, total = lazy.whole(), 0.0
    for b in range(4):
        logits = model(*(channel[b : b + 1] for channel in batch.frames))
        total = total - sum(F.log_softmax(logits[0, t], -1)[batch.target[b, t]] for t in range(3))
    slow = torch.autograd.grad(total / 12, list(model.parameters()), allow_unused=True)
    assert train_step(model, both, lambda: plain_backward(model, lazy)) == pytest.approx((total / 12).item(), rel=1e-5)
    for parameter, expected in zip(model.parameters(), slow):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-6)


def test_streaming_in_parts_trains_like_plain_autograd(config, whole, tmp_path):
    changes = {"frame_chunk": 1, "state_every": 2, "micro_batch": 3}
    result, _ = train_cell(config | changes, tmp_path, lambda share: None)
    plain = json.loads(whole)
    np.testing.assert_allclose(result["losses"][:10], plain["losses"][:10], rtol=1e-4)
    assert result["losses"] != plain["losses"]  # other rounding, so it was another way to the same gradients


def test_initial_weights_do_not_depend_on_the_length(config):
    models = []
    for length in (1, 3):
        cell = CellConfig.parse(config | {"length": length})
        models.append(cell.build(cell.windows()[0])[0].state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_training_learns_and_is_a_function_of_the_configuration(config, whole, tmp_path):
    result, measured = train_cell(config, tmp_path / "again", lambda share: None)
    assert json.dumps(result) == whole
    assert len(result["losses"]) == 30
    assert np.mean(result["losses"][-5:]) < result["losses"][0] - 0.5
    assert result["held_out_positions"] == result["held_out_windows"] * 6 == 42
    assert np.mean(result["held_out_cross_entropy_by_position"]) == pytest.approx(result["held_out_cross_entropy"])
    assert np.mean(result["held_out_cross_entropy_by_window"]) == pytest.approx(result["held_out_cross_entropy"])
    assert all(value > 0 for value in measured.values())


def test_all_cells_are_evaluated_on_the_same_positions(config, whole, tmp_path):
    other, _ = train_cell(config | {"length": 1, "seed": 9, "steps": 2}, tmp_path, lambda share: None)
    whole = json.loads(whole)
    assert other["losses"][0] != whole["losses"][0] or other["losses"][1] != whole["losses"][1]
    for name in ("held_out_positions", "unigram_cross_entropy", "bigram_cross_entropy"):
        assert other[name] == whole[name]


def test_killed_at_a_random_step_the_result_is_the_same(config, whole, tmp_path):
    kill, steps = random.Random(os.urandom(8)).randrange(5, 30), []
    command = [sys.executable, "-c", TRAINING, json.dumps(config), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= kill:
                break
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    result, _ = train_cell(config, tmp_path, lambda share: steps.append(round(share * 30)))
    assert json.dumps(result) == whole, f"killed at step {kill}"
    assert min(steps, default=30) > kill - config["checkpoint_every"], f"killed at step {kill}, not resumed"


def test_a_crash_while_the_checkpoint_is_written_leaves_the_one_before(config, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as broken:
        def crash(path: Path, content: bytes) -> None:
            path.with_name(f".{path.name}.half").write_bytes(content[:1000])
            if (tmp_path / checkpoint.NAME).exists():
                raise KeyboardInterrupt
            path.write_bytes(content)

        broken.setattr(checkpoint, "write_bytes", crash)
        with pytest.raises(KeyboardInterrupt):
            train_cell(config, tmp_path, lambda share: None)
    result, _ = train_cell(config, tmp_path, lambda share: None)
    assert json.dumps(result) == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint.NAME]


def test_a_finished_training_is_only_evaluated_again(config, whole, tmp_path):
    train_cell(config, tmp_path, lambda share: None)
    before, shares = (tmp_path / checkpoint.NAME).read_bytes(), []
    assert json.dumps(train_cell(config, tmp_path, shares.append)[0]) == whole
    assert shares == [] and (tmp_path / checkpoint.NAME).read_bytes() == before


def test_checkpoints_of_others_and_damaged_ones_are_refused(config, tmp_path):
    short = config | {"steps": 1}
    train_cell(short, tmp_path, lambda share: None)
    with pytest.raises(CheckpointError, match="its own folder"):
        train_cell(short | {"seed": 6}, tmp_path, lambda share: None)
    file = tmp_path / checkpoint.NAME
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="delete it"):
        train_cell(short, tmp_path, lambda share: None)


def test_a_loss_that_is_no_number_stops_with_its_batch(config, tmp_path):
    with pytest.raises(NonFiniteLossError, match="at step 2;") as error:
        train_cell(config | {"adamw_lr": 1e30}, tmp_path, lambda share: None)
    batch = load_file(tmp_path / "nonfinite-step-2.safetensors")
    assert str(tmp_path / "nonfinite-step-2.safetensors") in str(error.value)
    train, _ = CellConfig.parse(config).windows()
    again = train.sample(np.random.default_rng([5, 2]), 4, 3)
    assert torch.equal(batch["code"], again.code) and torch.equal(batch["target"], again.target)


@pytest.mark.parametrize(
    "change", [{"length": 0}, {"lenght": 3}, {"steps": "30"}, {"held_out": 1.0}, {"muon_lr": math.inf}]
)
def test_a_wrong_configuration_names_its_key(config, tmp_path, change):
    with pytest.raises(TrainingError, match=next(iter(change))):
        train_cell(config | change, tmp_path, lambda share: None)


def test_a_missing_key_is_named(config, tmp_path):
    with pytest.raises(TrainingError, match="batch"):
        train_cell({key: value for key, value in config.items() if key != "batch"}, tmp_path, lambda share: None)


def test_other_data_than_named_are_refused(config, tmp_path):
    with pytest.raises(TrainingError, match="the recordings or the tokenizer changed"):
        train_cell(config | {"data": "0" * 16}, tmp_path, lambda share: None)
    first, last = config["recordings"]
    assert fingerprint([first, last], config["tokenizer"]) != fingerprint([last, first], config["tokenizer"])


def test_settings_of_torch_are_restored():
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    with pytest.raises(ZeroDivisionError), deterministic():
        assert torch.get_num_threads() == 1 and torch.are_deterministic_algorithms_enabled()
        raise ZeroDivisionError
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


def slow_bigram(pairs: Counter, single: dict[int, float], before: int, after: int) -> float:
    """Witten-Bell by loops over a dictionary."""
    following = {b: n for (a, b), n in pairs.items() if a == before}
    if not following:
        return single[after]
    n, kinds = sum(following.values()), len(following)
    return (following.get(after, 0) + kinds * single[after]) / (n + kinds)


def test_references_are_distributions_and_those_of_a_loop(config):
    train, held_out = CellConfig.parse(config).windows()
    counts, size = train.counts(), train.vocab_size
    pairs = Counter({(int(a), int(b)): int(n) for (a, b), n in counts.pair.todok().items()})
    total = int(counts.single.sum())
    single = {token: (int(counts.single[token]) + 1) / (total + size) for token in range(size)}
    seen, unseen = int(counts.single.argmax()), int(counts.single.argmin())
    assert counts.single[unseen] == 0
    for before in (seen, unseen):
        table = np.array([[before, after] for after in range(size)])
        assert np.exp(-unigram_loss(counts, table[:, 1:])).sum() == pytest.approx(1)
        loss = bigram_loss(counts, table)
        assert np.exp(-loss[:, 1]).sum() == pytest.approx(1)
        expected = [-math.log(slow_bigram(pairs, single, before, after)) for after in range(size)]
        np.testing.assert_allclose(loss[:, 1], expected)
        np.testing.assert_allclose(loss[:, 0], -math.log(single[before]))
