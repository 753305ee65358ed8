"""Edits with and without the commit's message: the same places in both recordings, what is read before them, what counts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from gitrepos import Snapshot, make_repository

from fbam.analysis import questions
from fbam.experiments.grid import Outcome
from fbam.experiments.scaling_rows import MessageRow
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.sessions.compile import compile_history
from fbam.sessions.edits import Limits
from fbam.sessions.history import open_history
from fbam.training import message_study
from fbam.training.loop import TrainingError, plain_backward
from fbam.training.messages import UNLABELLED, MessageConfig, MessageWindows, edited, in_files, message_cell, reading_cell, shared_words
from fbam.training.windows import WindowError
from test_sweep import SETTINGS, quiet

MESSAGES = {"vocabulary": 300, "message_frames": 4, "length": 3, "batch": 4, "steps": 4, "seeds": [0, 1], "windows": 5}
STORY = [Snapshot({"lexer.py": b"def lexer():\n    return 1\n"}, "Add the lexer"),
         Snapshot({"lexer.py": b"def lexer():\n    return 2\n", "parser.py": b"import lexer\n"}, "Add the parser"),
         Snapshot({"parser.py": b"import lexer\n"}, "Remove what nobody calls"),
         Snapshot({"parser.py": b"import lexer\nprint(lexer)\n"}, "Print it"),
         Snapshot({"parser.py": b"import lexer\nprint(lexer, lexer)\n"}, "Print it twice")]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("messages")
    history, paths = open_history(str(make_repository(folder / "story.git", STORY)), None, folder), []
    for kind in ("first", "none"):
        paths.append(folder / f"{kind}.fbam")
        compile_history(history.afresh(), paths[-1], rows=4, cols=24, block_frames=32, limits=Limits(), message=kind, reference=True)
    history.close()
    return paths


@pytest.fixture(scope="module")
def commits(recordings) -> tuple[list[Recording], ActionTokenizer, list]:
    opened = [Recording(path) for path in recordings]
    tokenizer = ActionTokenizer.train([opened[0].actions], 300)
    return opened, tokenizer, edited(*opened, tokenizer, 4)


@pytest.fixture(scope="module")
def config(recordings) -> dict:
    return message_study.configs(recordings, recordings[0].with_name("tokenizer.json"), MESSAGES, SETTINGS)[0]


def test_the_stretches_inside_files_end_where_they_are_left():
    actions = [*"vi a\r", *"ix:wq\r", "\x1b", *":wq\r", *"vi b\r", *"iy", "\x1b", *":wq\r", *"vcs add\r"]
    first, second = 5, 21
    assert in_files(actions, [first, second]) == [(5, 16), (21, 28)]
    assert "".join(actions[21:28]) == "iy\x1b:wq\r" and in_files(actions, []) == []
    assert in_files([*"ixy"], [1]) == [(1, 3)], "a file that is never left ends with the commit"


def test_an_edit_is_the_same_one_in_both_recordings(commits):
    (first, none), tokenizer, found = commits
    assert len(found) == 4, "the commit that only removes a file has no edit"
    for commit in found:
        for place in range(len(commit.token)):
            a, b = int(commit.first[place]), int(commit.none[place])
            assert first.actions[a] == none.actions[b] and (first.frames(a, a + 1) == none.frames(b, b + 1)).all()
        assert not any("vcs" in "".join(first.actions[i : i + 3]) for i in commit.first)
    typed = "".join(tokenizer.decode([token for commit in found for token in commit.token]))
    assert "def lexer" in typed and "Add the" not in typed


def test_the_message_frames_are_the_last_ones_of_its_line(commits):
    (first, _), _, found = commits
    marks = [first.commits[number] for number in (0, 1, 3, 4)]
    for commit, mark in zip(found, marks, strict=True):
        assert len(commit.message) == 4 and (np.diff(commit.message) >= 0).all() and commit.message[-1] < commit.first[0]
        assert first.actions[commit.message[-1]] == "\r" and commit.message[0] >= mark.start
        shown = "".join(map(chr, first.frames(int(commit.message[-1]), int(commit.message[-1]) + 1)["code"].ravel().tolist()))
        assert mark.message.strip().split()[-1] in shown.replace("\n", "")


def test_only_edits_have_labels_whatever_is_read_before(commits):
    opened, tokenizer, found = commits
    windows = MessageWindows(opened, found, tokenizer.vocab_size)
    places = windows.spread(5, 3)
    own, other, none = (windows.batch(places, 3, reading) for reading in ("own", "other", "none"))
    assert own.numbers.shape == other.numbers.shape == (len(places), 4 + 3) and none.numbers.shape == (len(places), 3)
    for batch in (own, other):
        assert (batch.target[:, :4] == UNLABELLED).all() and torch.equal(batch.target[:, 4:], none.target)
        assert torch.equal(batch.whole().code[:, 4:], none.whole().code)
    for row, (number, _) in enumerate(places):
        assert own.numbers[row, :4].tolist() == found[number].message.tolist()
        assert other.numbers[row, :4].tolist() == found[(number + 1) % 4].message.tolist()
    assert places[0] == (0, 0) and all(found[n].start[s] == found[n].start[s + 2] for n, s in places), "a window stays in one file"


def test_draws_read_own_messages_or_none_by_a_fair_draw(commits):
    opened, tokenizer, found = commits
    windows = MessageWindows(opened, found, tokenizer.vocab_size)
    lengths = [windows.draw(np.random.default_rng([0, step]), 2, 3).target.shape[1] for step in range(200)]
    assert set(lengths) == {3, 7} and 70 < lengths.count(7) < 130
    with pytest.raises(WindowError, match="no file of this part has 1000 tokens"):
        windows.draw(np.random.default_rng(0), 2, 1000)


def test_recordings_of_different_histories_are_refused(commits):
    (first, _), tokenizer, _ = commits
    with pytest.raises(WindowError, match="differ in more than its message"):
        edited(first, first, tokenizer, 4)


def test_words_in_common_are_counted_by_hand(commits):
    (first, _), _, _ = commits
    # typed: lexer return | import lexer | - | print lexer | lexer; own messages: lexer | parser | remove what nobody calls | print | print twice
    assert shared_words(first) == (2 / 7, 4 / 7 / 4)


def test_a_model_is_trained_and_read_in_three_ways(config, tmp_path):
    result, _ = message_cell(config, tmp_path / "run", quiet)
    again, _ = message_cell(config, tmp_path / "again", quiet)
    assert result["losses"] == again["losses"] and len(result["losses"]) == 4 and all(map(math.isfinite, result["losses"]))
    reading = {"model": str(tmp_path / "run"), "windows": 5}
    found, _ = reading_cell(reading, tmp_path / "read", quiet)
    windows = len(found["commits"])
    assert all(len(found[name]) == windows for name in ("follows", "own", "other", "none"))
    rows = list(message_study.rows([config], [Outcome(reading, found, {})]))
    whole = [row for row in rows if row.at == message_study.ALL]
    assert sum(row.windows for row in whole) == windows
    assert sum(row.own * row.windows for row in whole) == pytest.approx(sum(found["own"]))


def test_a_loss_is_that_of_the_edits_alone(config, tmp_path):
    cell = MessageConfig.parse(config)
    train, _ = cell.windows()
    model, _ = cell.build(train)
    step = next(s for s in range(20) if train.draw(np.random.default_rng([0, s]), 4, 3).target.shape[1] == 7)
    batch = train.draw(np.random.default_rng([0, step]), 4, 3).whole()
    with torch.no_grad():
        logs = model(*batch.frames).log_softmax(dim=-1)[:, 4:]  # (B, E, V)
    expected = -logs.gather(2, batch.target[:, 4:, None]).mean()
    assert plain_backward(model, train.draw(np.random.default_rng([0, step]), 4, 3)) == pytest.approx(float(expected), rel=1e-5)


def test_wrong_configurations_say_so(config):
    for change in ({"recordings": config["recordings"][:1]}, {"frame_chunk": 1}):
        with pytest.raises(TrainingError, match="two recordings"):
            MessageConfig.parse(config | change)
    with pytest.raises(TrainingError, match="changed since"):
        MessageConfig.parse(config | {"data": "0"}).windows()


def made(own: float, noise: float) -> list[dict]:
    """Rows of 20 commits and three models whose loss after the own message is `own` times that after none; another one changes nothing."""
    rng, rows = np.random.default_rng(0), []
    for seed in range(3):
        for commit in range(20):
            level = 2 + commit / 10
            rows.append(MessageRow(at="all", seed=seed, commit=commit, windows=1 + commit % 3, own=level * own * np.exp(noise * rng.normal()),
                                   other=level, none=level).model_dump())
    return rows


def test_ratios_over_commits_find_the_effect_that_was_put_in():
    strong = {row.against: row for row in questions.ratio_rows(made(0.9, 0.01))}
    for row in strong.values():
        assert row.value == pytest.approx(0.9, abs=0.01) and row.low < row.value < row.high < 1 and (row.commits, row.seeds_below) == (20, 3)
    for row in questions.ratio_rows(made(1.0, 0.05)):
        assert row.low < 1 < row.high
