"""The shared trainer, the curricula, and models trained on the jumps task with and without a scratchpad."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from fbam.tasks.frjt import run
from fbam.training import supervised
from fbam.training.curriculum import Curriculum, CurriculumError
from fbam.training.jumps import JumpsConfig, Training, held_out, score, tensors, train_jumps
from fbam.training.noisy_start import NoisyStart
from fbam.training.scratchpad import Scratchpad, train_cell, train_scratchpad
from fbam.training.supervised import Batch, DivergedError, SupervisedError, fit, masked_cross_entropy, rate_factor

CONFIG = {
    "family": "lstm", "layers": 1, "width": 16, "seed": 0, "registers": 2, "registers_per_block": 0.0, "exits": "paired", "fused": True,
    "labels": "relative", "curriculum": "adaptive", "max_depth": 6, "programs": 0, "scratchpad": False, "initial_noise": 0.0, "steps": 6, "tokens": 60,
    "lr": 0.01, "weight_decay": 0.1, "schedule": "cosine", "warm_up": 2, "grad_clip": 0.3, "advance_at": 0.9, "check_every": 2,
    "check_programs": 16, "even_jumps": 0.5, "curve_every": 4, "curve_depths": [4], "test_depths": [4, 8], "test_programs": 20,
}


def quiet(share):
    pass


# ------------------------------------------------------------------ the trainer

def xor_batch(step):
    """The parity of two bits; a linear model cannot learn it, and targets outside the mask are wrong on purpose."""
    bits = torch.from_numpy(np.random.default_rng(step).integers(0, 2, (64, 1, 2)))
    inputs = torch.cat([bits, 1 - bits], dim=1).float()  # (B, 2, 2)
    parity = bits.sum(-1) % 2
    return Batch(inputs, torch.cat([parity, 1 - parity], dim=1), torch.tensor([True, False]).expand(64, 2))


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))


def test_fit_learns_and_repeats_itself_bit_by_bit():
    models, curves = [small_model(), small_model()], []
    for model in models:
        curve, seconds = fit(model, xor_batch, steps=150, lr=0.03, warm_up=5)
        curves.append(curve)
        assert len(seconds) == 150 and all(second >= 0 for second in seconds)
    assert curves[0].losses == curves[1].losses and curves[0].losses[-1] < 0.05 < curves[0].losses[0]
    assert all(torch.equal(a, b) for a, b in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True))


def test_only_positions_of_the_mask_count():
    batch = xor_batch(0)
    logits = torch.randn(64, 2, 2, generator=torch.Generator().manual_seed(0))
    by_hand = -torch.stack([logits[b, 0].log_softmax(-1)[batch.targets[b, 0]] for b in range(64)]).mean()
    torch.testing.assert_close(masked_cross_entropy(logits, batch), by_hand)


def test_evaluation_is_called_without_gradients_and_training_goes_on():
    model, calls = small_model(), []

    def evaluate(step):
        calls.append((step, model.training, torch.is_grad_enabled()))
        return {"value": step}

    shares = []
    curve, _ = fit(model, xor_batch, steps=7, lr=0.01, evaluate=evaluate, evaluate_every=3, tick=shares.append)
    assert calls == [(3, False, False), (6, False, False), (7, False, False)] and model.training
    assert curve.evaluations == [{"step": 3, "value": 3}, {"step": 6, "value": 6}, {"step": 7, "value": 7}]
    assert shares == [step / 7 for step in range(1, 8)]


def test_another_loss_may_be_given():
    def squared(outputs, batch):
        return ((outputs - 1) ** 2).mean()

    curve, _ = fit(small_model(), xor_batch, steps=50, lr=0.03, loss=squared)
    assert curve.losses[-1] < 0.1 * curve.losses[0]


def test_rates_rise_then_fall_or_stay():
    cosine = [rate_factor(step, 20, "cosine", 4) for step in range(20)]
    assert cosine[:5] == [0.2, 0.4, 0.6, 0.8, 1.0] and cosine[12] == pytest.approx(0.5) and cosine[-1] < 0.01
    assert all(0 < a <= 1 for a in cosine) and cosine[4:] == sorted(cosine[4:], reverse=True)
    assert [rate_factor(step, 20, "constant", 1) for step in range(3)] == [0.5, 1.0, 1.0]


def test_gradients_are_clipped(monkeypatch):
    norms = []

    def watched(parameters, limit):
        parameters = list(parameters)
        nn.utils.clip_grad.clip_grad_norm_(parameters, limit)
        norms.append(math.sqrt(sum(float((p.grad**2).sum()) for p in parameters)))

    monkeypatch.setattr(supervised.nn.utils, "clip_grad_norm_", watched)
    fit(small_model(), xor_batch, steps=3, lr=0.01, grad_clip=1e-3)
    assert len(norms) == 3 and max(norms) <= 1.001e-3


@pytest.mark.parametrize("settings, message", [({"steps": 0}, "steps"), ({"lr": 0.0}, "lr"), ({"schedule": "step"}, "schedule")])
def test_a_training_that_cannot_be_is_refused(settings, message):
    with pytest.raises(SupervisedError, match=message):
        fit(small_model(), xor_batch, **{"steps": 2, "lr": 0.1, **settings})


def test_a_loss_that_is_no_number_stops_the_training():
    with pytest.raises(DivergedError, match="step 0"):
        fit(small_model(), xor_batch, steps=2, lr=0.1, loss=lambda outputs, batch: outputs.sum() * math.nan)


# ------------------------------------------------------------------ curricula

def test_the_mix_has_all_depths_from_the_start():
    curriculum = Curriculum("mix", 8, 100, 0.9)
    depths = curriculum.depths(np.random.default_rng(0), 0, tokens=9000)
    assert len(depths) == 1000 and set(depths) == set(range(1, 9))
    assert np.bincount(depths)[1:].min() > 80
    curriculum.observe(1.0)
    assert curriculum.deepest == 8


def test_the_time_curriculum_is_full_after_half_the_steps():
    curriculum = Curriculum("time", 8, 100, 0.9)
    found = [curriculum.depths(np.random.default_rng(step), step, tokens=600).max() for step in range(100)]
    assert found[0] == 2 and found[50] == found[99] == 8 and found == sorted(found)


def test_the_adaptive_curriculum_goes_deeper_when_mastered_only():
    curriculum = Curriculum("adaptive", 32, 100, 0.9)
    reached = []
    for accuracy in (0.89, *[0.9] * 25):
        curriculum.observe(accuracy)
        reached.append(curriculum.deepest)
    assert reached[:3] == [2, 3, 4] and 16 in reached and reached[reached.index(16) + 1] == 18 and reached[-1] == 32
    depths = curriculum.depths(np.random.default_rng(0), 0, tokens=3300)
    assert len(depths) == 100 and (depths[:50] == 32).all() and depths[50:].min() < 8


def test_an_unknown_curriculum_is_refused():
    with pytest.raises(CurriculumError, match="adaptive"):
        Curriculum("random", 8, 100, 0.9)


# ------------------------------------------------------------------ models on the task

@pytest.mark.parametrize("change", [{}, {"programs": 30, "curriculum": "mix"}, {"initial_noise": 0.5}, {"registers_per_block": 0.5},
                                    {"fused": False, "labels": "absolute"}, {"family": "mamba2", "layers": 2, "initial_noise": 0.5},
                                    {"family": "transformer", "layers": 2, "initial_noise": 0.5}], ids=str)
def test_a_cell_repeats_itself_and_scores_every_split(change, tmp_path):
    first, measured = train_jumps(CONFIG | change, tmp_path, quiet)
    assert first == train_jumps(CONFIG | change, tmp_path, quiet)[0] == json.loads(json.dumps(first))
    assert [(s["depth"], s["split"]) for s in first["scores"]] == [(d, s) for d in (4, 8) for s in ("train", "validation", "test")]
    assert [point["step"] for point in first["curve"]] == [2, 4, 6] and ["validation" in point for point in first["curve"]] == [False, True, True]
    assert measured["cpu_seconds"] > 0


def test_the_answer_is_read_at_the_query_and_scored_against_the_interpreter():
    training = Training(JumpsConfig.parse(CONFIG))
    programs = training.task.sample(np.random.default_rng(0), np.array([3, 6, 2]), "train")
    batch = tensors(training.tokenizer, programs)
    assert batch.mask.nonzero().tolist() == [[0, 3], [1, 6], [2, 2]]
    assert batch.targets[batch.mask].tolist() == run(programs).halts.tolist()

    class Oracle(nn.Module):
        def forward(self, inputs):
            halts = run(training.tokenizer.decode(inputs.numpy())).halts
            return 50.0 * nn.functional.one_hot(torch.from_numpy(halts.astype(np.int64)), 2)[:, None].expand(-1, inputs.shape[1], -1)

    loss, correct = score(Oracle(), training.tokenizer, programs)
    assert correct == 3 and loss < 1e-6


def test_training_programs_of_a_fixed_set_come_from_it():
    training = Training(JumpsConfig.parse(CONFIG | {"programs": 5, "curriculum": "mix"}))
    pool = {key for programs in training.pool.values() for key in programs.keys().tolist()}
    assert set(training.training_programs(np.random.default_rng(1), np.array([1, 4, 4, 6])).keys().tolist()) <= pool
    unseen = held_out(training.task, 4, "test", 50)
    assert not pool & set(unseen.keys().tolist())


def test_jumps_are_evened_out_in_the_share_of_programs_asked_for():
    long_jumps = {}
    for share in (0.0, 1.0):
        training = Training(JumpsConfig.parse(CONFIG | {"even_jumps": share, "max_depth": 16, "tokens": 16000}))
        training.curriculum.deepest = 16
        programs = training.tokenizer.decode(training.sample(0).inputs.numpy())
        first = programs.fields[programs.depths == 16, 0, 2:]  # far from the last block, to which longer jumps go
        assert run(programs).halts.size > 900
        long_jumps[share] = float((first[first > 0] == 4).mean())
    assert long_jumps[0.0] == pytest.approx(0.05, abs=0.03) and long_jumps[1.0] == pytest.approx(0.25, abs=0.05)


def test_noise_reaches_recurrent_states_in_training_only():
    for family, moved in [("lstm", True), ("mamba2", True), ("transformer", False)]:
        training = Training(JumpsConfig.parse(CONFIG | {"family": family, "layers": 2}))
        inputs = training.sample(0).inputs
        noisy = NoisyStart(training.model, 1.0, seed=0)
        with torch.no_grad():
            assert torch.equal(noisy(inputs), training.model(inputs)) != moved
            noisy.eval()
            assert torch.equal(noisy(inputs), training.model(inputs))


def test_a_wrong_configuration_names_the_key():
    with pytest.raises(SupervisedError, match="steps"):
        train_jumps(CONFIG | {"steps": 0}, None, quiet)
    with pytest.raises(SupervisedError, match="one token a block"):
        Scratchpad(JumpsConfig.parse(CONFIG | {"fused": False}))


class StateMachine:
    """A perfect model for the scratchpad: reads the last written state and the block, and writes the next state."""

    def __init__(self, pad):
        self.pad = pad

    def eval(self):
        pass

    def initial_state(self, batch):
        return np.zeros(batch, np.int64)

    def step(self, tokens, state):
        from fbam.tasks.frjt import Programs
        from fbam.tasks.kernels import transition_maps

        if tokens[0, -1] > 0:
            return None, tokens[:, -1].numpy() - 1
        fields = tokens[:, :4].numpy() - [2, 1, 2, 2]  # the inverse of the tokenizer's relative coding
        targets = np.where(tokens[:, 2:4].numpy() > 2, tokens[:, 2:4].numpy() - 2, 1 - tokens[:, 2:4].numpy())
        fields[:, 2:] = targets
        programs = Programs(fields[:, None].astype(np.int16), np.ones(len(fields), np.int64))
        maps = transition_maps(programs.fields, programs.depths, 2, 4)[:, 0]  # (N, S)
        after = torch.from_numpy(maps[np.arange(len(maps)), state].astype(np.int64))
        return nn.functional.one_hot(after, self.pad.states).float(), state


def test_a_perfect_scratchpad_is_scored_perfect():
    pad = Scratchpad(JumpsConfig.parse(CONFIG))
    pad.model = StateMachine(pad)
    assert all(pad.score(16, split, 50)["correct"] == 50 for split in ("train", "validation", "test"))


def test_a_scratchpad_supervises_the_state_after_each_block():
    pad = Scratchpad(JumpsConfig.parse(CONFIG))
    batch = pad.sample(0)
    assert batch.inputs.shape == (5, 12, 5) and batch.mask[0].tolist() == [True, False] * 6
    assert (batch.inputs[:, 1::2, -1] == 1 + batch.targets[:, ::2]).all() and (batch.inputs[:, ::2, -1] == 0).all()
    assert (batch.targets[:, -2] >= 16).all(), "after the last block every program has halted"


def test_a_scratchpad_cell_repeats_itself(tmp_path):
    config = CONFIG | {"family": "transformer_rotary", "test_depths": [4], "scratchpad": True}
    assert train_scratchpad(config, tmp_path, quiet)[0] == train_cell(config, tmp_path, quiet)[0]
    assert "curve" in train_cell(config | {"scratchpad": False}, tmp_path, quiet)[0]
