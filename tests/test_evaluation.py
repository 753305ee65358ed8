"""Evaluation: references against loops over dictionaries, measures by hand, and cells that train nothing anew."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.nn import functional as F

from fbam.experiments.statistics import mean
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.assess import AssessmentError, evaluate_cell
from fbam.training.checkpoint import CheckpointError, load_model
from fbam.training.evaluation import REFERENCES, bigram_loss, copy_guess, copy_loss, measures, score, sustained, unigram_loss
from fbam.training.loop import fingerprint, train_cell
from fbam.training.windows import WindowError, open_windows
from typist import record, tokenizer
from small_training import training_config

QUIET = lambda share: None  # noqa: E731


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Configuration and folder of a training of a few steps."""
    folder = tmp_path_factory.mktemp("evaluation")
    config = training_config(folder) | {"steps": 3}
    train_cell(config, folder / "cell", QUIET)
    return config, folder / "cell"


def slow_bigram(pairs: Counter, single: dict[int, float], before: int, after: int) -> float:
    """Witten-Bell by loops over a dictionary."""
    following = {b: n for (a, b), n in pairs.items() if a == before}
    if not following:
        return single[after]
    n, kinds = sum(following.values()), len(following)
    return (following.get(after, 0) + kinds * single[after]) / (n + kinds)


def test_references_are_distributions_and_those_of_a_loop(trained):
    train, _ = open_windows(trained[0]["recordings"], trained[0]["tokenizer"], 0.2)
    counts, size = train.counts(), train.vocab_size
    pairs = Counter({(int(a), int(b)): int(n) for (a, b), n in counts.pair.todok().items()})
    total = int(counts.single.sum())
    single = {token: (int(counts.single[token]) + 1) / (total + size) for token in range(size)}
    seen, unseen = int(counts.single.argmax()), int(counts.single.argmin())
    repeated = (sum(n for (a, b), n in pairs.items() if a == b) + 1) / (sum(pairs.values()) + 2)
    assert counts.single[unseen] == 0
    for before in (seen, unseen):
        table = np.array([[before, after] for after in range(size)])
        assert np.exp(-unigram_loss(counts, table[:, 1:])).sum() == pytest.approx(1)
        copied = [repeated * (after == before) + (1 - repeated) * single[after] for after in range(size)]
        for function, expected in [(bigram_loss, [slow_bigram(pairs, single, before, after) for after in range(size)]), (copy_loss, copied)]:
            loss = function(counts, table)
            assert np.exp(-loss[:, 1]).sum() == pytest.approx(1)
            np.testing.assert_allclose(loss[:, 1], [-math.log(p) for p in expected])
            np.testing.assert_allclose(loss[:, 0], -math.log(single[before]))


def test_guesses_are_the_most_probable_tokens(trained):
    train, held_out = open_windows(trained[0]["recordings"], trained[0]["tokenizer"], 0.2)
    counts = train.counts()
    target = next(held_out.spread(2, 6, 2)).target.numpy()
    for name, (loss, guess) in REFERENCES.items():
        found = guess(counts, target)
        for window in range(2):
            for position in range(6):
                table = np.repeat(target[[window], : position + 1], train.vocab_size, axis=0)
                table[:, position] = np.arange(train.vocab_size)
                best = loss(counts, table)[:, position]
                if name != "copy":
                    assert best[found[window, position]] == pytest.approx(best.min())
    assert copy_guess(counts, target)[:, 1:].tolist() == target[:, :-1].tolist()


@given(arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 6))))
def test_sustained_counts_up_to_the_first_miss(hit):
    expected = []
    for row in hit.tolist():
        expected.append(row.index(False) if False in row else len(row))
    assert sustained(hit).tolist() == expected


def test_intervals_take_windows_as_units_and_stay_where_values_can_be():
    hit = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=bool)
    found = measures(np.ones((3, 4)), hit)
    assert found["loss"] == [1.0, 1.0, 1.0]
    value, low, high = found["top1"]
    expected = mean([1, 1, 0.75])
    assert (value, low, high) == (expected.value, expected.low, 1.0) and expected.high > 1
    assert found["sustained"][0] == pytest.approx(8 / 3) and found["sustained"][2] == 4.0


def test_scores_are_those_of_the_whole_window_at_once(trained):
    config, folder = trained
    model, _ = load_model(folder)
    _, held_out = open_windows(config["recordings"], config["tokenizer"], 0.2)
    batches = list(held_out.spread(3, 20, 2))  # longer than the frames read at once
    found, at = score(model, batches), 0
    for batch in batches:
        with torch.no_grad():
            logits = model(*batch.frames)
        n = len(batch.target)
        expected = -F.log_softmax(logits, -1).gather(2, batch.target[..., None])[..., 0]
        np.testing.assert_allclose(found.loss[at : at + n], expected.numpy(), atol=1e-5)
        assert (found.hit[at : at + n] == (logits.argmax(-1) == batch.target).numpy()).all()
        at += n


def test_a_cell_evaluates_a_trained_model_at_any_length(trained, tmp_path):
    _, folder = trained
    short, _ = evaluate_cell({"model": str(folder), "windows": 5, "length": 3}, tmp_path, QUIET)
    long, measured = evaluate_cell({"model": str(folder), "windows": 2, "length": 12}, tmp_path, QUIET)
    assert (short["windows"], short["positions"], len(short["loss_by_position"])) == (5, 15, 3)
    assert (long["windows"], long["positions"], len(long["top1_by_position"])) == (2, 24, 12)
    assert set(long["predictors"]) == {"model", "unigram", "bigram", "copy"} and measured["cpu_seconds"] > 0
    assert np.mean(long["loss_by_position"]) == pytest.approx(long["predictors"]["model"]["loss"][0])
    for three in (three for predictor in long["predictors"].values() for three in predictor.values()):
        assert three[1] <= three[0] <= three[2]


def test_what_cannot_be_evaluated_says_why(trained, tmp_path):
    config, folder = trained
    alone = {"recordings": config["recordings"][:1], "data": fingerprint(config["recordings"][:1], config["tokenizer"]), "steps": 1}
    train_cell(config | alone, tmp_path / "alone", QUIET)
    with pytest.raises(WindowError, match="an interval needs two; lower training.eval_lengths"):
        evaluate_cell({"model": str(tmp_path / "alone"), "windows": 2, "length": 20}, tmp_path, QUIET)
    with pytest.raises(AssessmentError, match="windows"):
        evaluate_cell({"model": str(folder), "windows": 1, "length": 2}, tmp_path, QUIET)
    with pytest.raises(CheckpointError, match="train the model first"):
        evaluate_cell({"model": str(tmp_path), "windows": 2, "length": 2}, tmp_path, QUIET)


def test_a_loaded_model_reads_frame_by_frame_what_it_reads_at_once(trained):
    config, folder = trained
    model, tokens = load_model(folder)
    assert tokens.vocab_size == ActionTokenizer.load(config["tokenizer"]).vocab_size == model.config.vocab_size
    _, held_out = open_windows(config["recordings"], config["tokenizer"], 0.2)
    frames = next(held_out.spread(1, 6, 1)).frames
    with torch.no_grad():
        whole, states, alone = model(*frames), model.initial_state(1), []
        for t in range(6):
            x, states = model.advance(model.encode(*(channel[:, t : t + 1] for channel in frames)), states)
            alone.append(model.output(x))
    torch.testing.assert_close(torch.cat(alone, dim=1), whole, rtol=1e-4, atol=1e-5)
    assert (model.config.rows, model.config.cols) == (Recording(config["recordings"][0]).rows, 8) and not model.training


def test_recordings_of_several_sources_make_one_corpus(tmp_path):
    paths = [record(tmp_path / "a.fbam", 1), record(tmp_path / "b.fbam", 2)]
    tokenizer(tmp_path / "t.json", paths)
    train, held_out = open_windows(paths, tmp_path / "t.json", 0.3)
    apart = [open_windows([path], tmp_path / "t.json", 0.3) for path in paths]
    assert train.tokens == sum(one.tokens for one, _ in apart) and held_out.tokens == sum(one.tokens for _, one in apart)
