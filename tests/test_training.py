"""Training: the optimisers' parts, the loss, the references, and that a result depends on the configuration alone."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from fbam.training import checkpoint, optim
from fbam.training.checkpoint import CheckpointError, History
from fbam.training.determinism import deterministic
from fbam.training.loop import CellConfig, NonFiniteLossError, TrainingError, _advance, fingerprint, plain_backward, train_cell, train_step
from fbam.training.optim import optimisers, split_parameters
from fbam.training.parallel import ALONE
from small_training import training_config

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
    return training_config(tmp_path_factory.mktemp("training"))


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
        *(f"layers.{i}.{part}" for i in (0, 1) for part in ("mixer.cell", "mlp.inner", "mlp.outer")),
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


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_muon_is_torchs_but_for_rounding_to_bfloat16(shape):
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.randn(shape)) for _ in range(2))
    theirs.data.copy_(ours)
    start, pair = ours.detach().clone(), (optim.Muon([ours], lr=0.1, weight_decay=0.1), torch.optim.Muon([theirs], lr=0.1, weight_decay=0.1))
    for _ in range(3):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        for optimiser in pair:
            optimiser.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.02 * moved
    assert torch.equal(pair[0].state[ours]["momentum_buffer"], pair[1].state[theirs]["momentum_buffer"])
    values = torch.linalg.svdvals(optim.orthogonal(ours.grad, (3.4445, -4.775, 2.0315), 5, 1e-7))
    assert 0.6 < values.min() and values.max() < 1.3


def test_fused_adamw_is_the_plain_one_but_for_rounding():
    torch.manual_seed(0)
    fused, plain = (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)) for _ in range(2))
    plain.load_state_dict(fused.state_dict())
    _, ours = optimisers(fused, fused[1], adamw_lr=0.01, weight_decay=0.1)
    reference = torch.optim.AdamW(split_parameters(plain, plain[1])[1], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1, foreach=False)
    for _ in range(5):
        for a, b in zip(fused.parameters(), plain.parameters()):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        ours.step()
        reference.step()
    torch.testing.assert_close(fused[1].state_dict(), plain[1].state_dict(), rtol=1e-5, atol=1e-7)


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
    assert all(measured[name] > 0 for name in ("cpu_seconds", "cpu_seconds_a_step", "frames_a_cpu_second"))
    assert (measured["processes"], measured["reduced_bytes_a_step"]) == (1, 0)


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
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint.NAME, checkpoint.TOKENIZER]


def test_a_finished_training_is_not_trained_again(config, whole, tmp_path):
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


@pytest.mark.parametrize("changes", [{"frame_head": "conv", "reduction": "mean"}, {"main": "attention", "reduction": "last"}])
def test_other_heads_and_main_models_train(config, tmp_path, changes):
    result, _ = train_cell(config | changes, tmp_path, lambda share: None)
    assert np.mean(result["losses"][-5:]) < result["losses"][0] - 0.3


def test_convolution_kernels_go_to_muon_as_matrices(config):
    cell = CellConfig.parse(config | {"frame_head": "conv"})
    model, (muon, _) = cell.build(cell.windows()[0])
    shapes = {tuple(parameter.shape) for parameter in muon.param_groups[0]["params"]}
    assert (16, 9 * 16) in shapes and any(parameter is model.head.stages[0].weight for parameter in muon.param_groups[0]["params"])


def test_attention_as_main_model_is_not_streamed_nor_longer_than_its_positions(config):
    for change in ({"frame_chunk": 1}, {"length": 1025}):
        with pytest.raises(TrainingError, match="main: attention needs frame_chunk 0"):
            CellConfig.parse(config | {"main": "attention"} | change)


def test_the_schedule_sets_both_rates(config, tmp_path):
    cell = CellConfig.parse(config | {"schedule": "cosine", "warm_up": 2, "steps": 4})
    train, _ = cell.windows()
    model, both = cell.build(train)
    history, rates = History([], []), []
    for _ in range(4):
        _advance(cell, tmp_path, train, model, both, history, ALONE)
        rates.append([optimiser.param_groups[0]["lr"] for optimiser in both])
    factors = [1 / 3, 2 / 3, 1.0, 0.5]
    assert np.allclose(rates, [[3e-3 * factor, 3e-4 * factor] for factor in factors])
