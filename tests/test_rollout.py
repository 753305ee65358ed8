"""Roll-out: against a model that reads everything anew at each step, against scripted models, and as a command."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from fbam.analysis.rollout_figures import top1_intervals
from fbam.experiments.grid import Outcome
from fbam.recording.format import Recording
from fbam.recording.tokens import RESERVED, ActionTokenizer
from fbam.rollout import Agent, RolloutError, channels, compare, replay, roll_out, terminal_after, write_play
from fbam.rollout_command import RolloutCommandError, add_command
from fbam.rollout_study import StudyError, best_run, hits, recall_rows, rollout_rows, sessions_cell, share_interval
from fbam.sessions.screen import Terminal
from fbam.tasks.keyboard_task import beginning
from fbam.tasks.typing_task import Edits, Typing
from fbam.training.checkpoint import load_model
from fbam.training.loop import fingerprint, train_cell
from small_training import training_config

QUIET = lambda share: None  # noqa: E731
SIZE = (3, 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a model that has been trained on edits for a few steps, and has learnt next to nothing."""
    base = tmp_path_factory.mktemp("rollout")
    Edits(*SIZE).write_recording(base / "edits.fbam", 1, 20)
    Edits.tokenizer().save(base / "edits.json")
    paths = {"recordings": [str(base / "edits.fbam")], "tokenizer": str(base / "edits.json")}
    config = training_config(base) | paths | {"data": fingerprint([base / "edits.fbam"], base / "edits.json"), "steps": 5, "frame_head": "conv"}
    train_cell(config, base / "cell", QUIET)
    return base / "cell"


@pytest.fixture(scope="module")
def trained(folder):
    return load_model(folder)


@pytest.fixture(scope="module")
def session():
    return Edits(*SIZE).sample(np.random.default_rng(3))


class Scripted:
    """A model that scores fixed tokens in turn, whatever it sees, and keeps the frames that it was shown."""

    def __init__(self, tokens: list[int], vocab_size: int, size: tuple[int, int] = SIZE) -> None:
        self.config = SimpleNamespace(rows=size[0], cols=size[1])
        self.tokens, self.vocab_size, self.seen = tokens, vocab_size, []

    def initial_state(self, batch: int) -> int:
        return 0

    def encode(self, *frames: torch.Tensor) -> torch.Tensor:
        self.seen.append(frames[0][0, 0])
        return frames[0]

    def advance(self, x: torch.Tensor, state: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([[state]]), state + 1

    def output(self, x: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(1, 1, self.vocab_size)
        logits[0, 0, self.tokens[int(x)]] = 9.0
        logits[0, 0, : len(RESERVED)] = 99.0
        return logits


def test_a_roll_out_is_that_of_a_model_that_reads_everything_anew(trained, session):
    model, tokenizer = trained
    terminal, given, steps = Terminal(*SIZE), session.actions[:12], 15
    frames = [terminal.frame.copy()]
    for action in given:
        terminal.press(action)
        frames.append(terminal.frame.copy())
    pressed = []
    for _ in range(steps):
        with torch.no_grad():
            logits = model(*channels(np.stack(frames)))[0, -1]
        pressed += tokenizer.decode([len(RESERVED) + int(logits[len(RESERVED) :].argmax())])
        terminal.press(pressed[-1])
        frames.append(terminal.frame.copy())
    ours = roll_out(model, tokenizer, Terminal(*SIZE), given, steps)
    assert ours.actions == [*given, *pressed] and ours.given == 12
    assert ours.frames.tobytes() == np.stack(frames).tobytes()


def test_an_agent_carries_its_state_on(trained, session):
    model, tokenizer = trained
    play = replay(Terminal(*SIZE), session.actions, 0)
    agent = Agent(model, tokenizer)
    one_by_one = torch.stack([agent.observe(frame) for frame in play.frames])
    with torch.no_grad():
        assert torch.allclose(one_by_one, model(*channels(play.frames))[0], atol=1e-5)


def test_a_model_that_knows_the_session_follows_it_to_the_end(session):
    tokenizer = Edits.tokenizer()
    model = Scripted(tokenizer.encode(session.actions)[1].tolist(), tokenizer.vocab_size)
    given = beginning(session)
    ours = roll_out(model, tokenizer, Terminal(*SIZE), session.actions[:given], len(session.actions) - given)
    true = replay(Terminal(*SIZE), session.actions, given)
    found = compare(true, ours)
    assert found.actions == found.correct == found.sustained == len(session.actions) - given and found.similarity == 1
    assert ours.text == session.text and ours.frames.tobytes() == true.frames.tobytes()
    assert len(model.seen) == len(session.actions), "each frame is seen once, the last one not at all"


def test_the_first_wrong_key_ends_the_run_but_not_the_count(session):
    tokenizer = Edits.tokenizer()
    given, wrong = beginning(session), beginning(session) + 6
    actions = list(session.actions)
    actions[wrong] = "x" if actions[wrong] != "x" else "a"
    model = Scripted(tokenizer.encode(actions)[1].tolist(), tokenizer.vocab_size)
    ours = roll_out(model, tokenizer, Terminal(*SIZE), actions[:given], len(actions) - given)
    found = compare(replay(Terminal(*SIZE), session.actions, given), ours)
    assert (found.sustained, found.correct) == (6, len(actions) - given - 1)
    assert 0.5 < found.similarity < 1


def test_tokens_of_several_keys_skip_the_frames_between():
    tokenizer = ActionTokenizer(sorted(Edits.keys()), ["amor", "aqua"])
    typed = "vi a\riamor aqua"
    starts, tokens = tokenizer.encode(list(typed))
    model = Scripted(tokens.tolist(), tokenizer.vocab_size)
    ours = roll_out(model, tokenizer, Terminal(*SIZE), list(typed[:11]), 4)
    frames = ours.frames.reshape(len(ours.frames), -1)["code"]
    assert "".join(ours.actions) == typed and ours.text == "amor aqua"
    assert [code.tolist() for code in model.seen] == [frames[start].tolist() for start in starts]
    short = roll_out(Scripted(tokens.tolist(), tokenizer.vocab_size), tokenizer, Terminal(*SIZE), list(typed[:11]), 2)
    assert "".join(short.actions) == typed[:13], "no key beyond the number asked for"


def test_drawing_follows_the_seed(trained, session):
    model, tokenizer = trained
    drawn = [roll_out(model, tokenizer, Terminal(*SIZE), session.actions[:8], 20, np.random.default_rng(s)).actions for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_terminal_of_another_size_is_refused(trained):
    with pytest.raises(RolloutError, match="frames of 3 x 20, the terminal has 4 x 20"):
        roll_out(*trained, Terminal(4, 20), [], 1)


def test_a_roll_out_is_a_recording_that_its_keys_make_again(trained, session, tmp_path):
    ours = roll_out(*trained, Terminal(*SIZE), session.actions[:8], 20)
    write_play(ours, tmp_path / "ours.fbam", {"source": "roll-out"})
    recording = Recording(tmp_path / "ours.fbam")
    again = replay(Terminal(*SIZE), recording.actions, 0)
    assert recording.actions == ours.actions
    assert recording.frames(0, 28).tobytes() == again.frames[:-1].tobytes()


def test_hits_with_memory_and_without_are_those_of_loops(trained, session):
    model, tokenizer = trained
    kept, alone = hits(model, tokenizer, Edits(*SIZE), session)
    agent, slow_kept, slow_alone = Agent(model, tokenizer), [], []
    terminal = terminal_after(*SIZE, Edits(*SIZE).earlier)
    _, tokens = tokenizer.encode(session.actions)
    for token, action in zip(tokens, session.actions):
        slow_kept.append(int(agent.observe(terminal.frame).argmax()) == token)
        slow_alone.append(int(Agent(model, tokenizer).observe(terminal.frame).argmax()) == token)
        terminal.press(action)
    assert kept.tolist() == slow_kept and alone.tolist() == slow_alone


def test_the_cell_counts_and_rolls_out(folder, tmp_path):
    config = {"model": str(folder), "task": "edits", "rows": 3, "cols": 20, "data_seed": 1, "sessions": 20, "held_out": 0.2, "rollouts": 2}
    result, _ = sessions_cell(config, tmp_path, QUIET)
    assert result == sessions_cell(config, tmp_path, QUIET)[0]
    outcome = Outcome(config, result, {})
    rows = list(recall_rows([outcome], [0]))
    held_out = Edits(*SIZE).sessions(1, 20)[16:]
    assert [(row.keys, row.memory) for row in rows] == [(k, m) for k in ("all", "hidden", "recalled") for m in ("kept", "emptied")]
    assert [row.n for row in rows[::2]] == [sum(len(s.actions) for s in held_out), sum(np.count_nonzero(s.hidden) for s in held_out), 12]
    kept = [hits(*load_model(folder), Edits(*SIZE), session)[0] for session in held_out]
    assert rows[0].top1 == np.concatenate(kept).mean() and rows[0].top1_low <= rows[0].top1 <= rows[0].top1_high
    plays = list(rollout_rows([outcome], [0]))
    assert [(row.session, row.pressed) for row in plays] == [(k, p) for k in (16, 17) for p in ("most likely", "by probability")]
    assert all(row.sustained <= row.correct <= row.actions and 0 <= row.similarity <= 1 and row.known <= row.words for row in plays)
    with pytest.raises(StudyError, match="rollouts"):
        sessions_cell(config | {"rollouts": 0}, tmp_path, QUIET)


def test_the_bootstrap_resamples_sessions():
    rng = np.random.default_rng(1)
    n = rng.integers(5, 60, size=80)
    right = rng.binomial(n, rng.beta(4, 2, size=80))
    low, high = share_interval(right, n)
    draws = rng.integers(80, size=(4000, 80))
    slow = np.quantile(right[draws].sum(axis=1) / n[draws].sum(axis=1), [0.025, 0.975])
    assert np.allclose([low, high], slow, atol=0.01)
    assert share_interval(n, n) == (1.0, 1.0)


def test_the_best_run_comes_with_its_references():
    same = {"task": "t", "control": "c", "head": "conv", "main": "lstm", "batch": 8, "seed": 0, "length": 32}
    rows = [same | {"L": L, "predictor": p, "loss": loss} for L, p, loss in [
        (1, "model", 2.0), (1, "bigram", 1.0), (4, "model", 1.5), (4, "bigram", 1.0), (8, "model", 1.7)]]  # fmt: skip
    assert best_run(rows) == rows[2:4]


def test_the_figure_shows_each_share_with_its_interval():
    figure, axes = plt.subplots()
    rows = [{"top1": 0.5, "top1_low": 0.4, "top1_high": 0.7}, {"top1": 0.2, "top1_low": 0.1, "top1_high": 0.3}]
    top1_intervals(axes, ["model", "bigram"], rows)
    spans = [list(line.get_xdata()) for line in axes.lines[::2]]
    assert spans == [[0.4, 0.7], [0.1, 0.3]]
    assert [point.get_xdata()[0] for point in axes.lines[1::2]] == [0.5, 0.2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["model", "bigram"] and axes.yaxis_inverted()
    plt.close(figure)


def run(*words: str) -> None:
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers())
    options = parser.parse_args(["rollout", *words])
    options.run(options)


def test_the_command_prints_both_screens_and_writes_a_recording(folder, tmp_path, capsys):
    run(str(folder), "--task", "edits", "--seed", "3", "--out", str(tmp_path / "a.fbam"))
    printed = capsys.readouterr().out.split("\n")
    session = Edits(*SIZE).sample(np.random.default_rng(3))
    assert printed[0] == "true session         | roll-out" and len(printed) == 6
    assert f" of {len(session.actions) - session.given} keys as in the true session" in printed[4]
    assert Recording(tmp_path / "a.fbam").actions[: session.given] == list(session.actions[: session.given])


def test_the_command_goes_on_from_any_commit_of_a_recording(folder, tmp_path, capsys):
    path = folder.parent / "edits.fbam"
    run(str(folder), "--task", str(path), "--session", "1", "--given", "9", "--steps", "4", "--draw", "--out", str(tmp_path / "b.fbam"))
    recording, ours = Recording(path), Recording(tmp_path / "b.fbam")
    start = recording.commits[1].start
    assert "of 4 keys" in capsys.readouterr().out
    assert ours.n_frames == 13 and ours.actions[:9] == recording.actions[start : start + 9]
    assert ours.frames(0, 10).tobytes() == recording.frames(start, start + 10).tobytes()


@pytest.mark.parametrize("words, named", [
    (["--task", "edits", "--steps", "0"], "--steps 1 or more"),
    (["--task", "edits", "--given", "999"], "--given 0 to"),
    (["--task", "RECORDING", "--session", "20"], "commits 0 to 19, not 20"),
    (["--task", "OTHER"], "compile it at that size"),
    (["--task", "absent.fbam"], "absent.fbam"),
])  # fmt: skip
def test_the_command_refuses_in_one_line(folder, tmp_path, words, named):
    Typing(4, 20).write_recording(tmp_path / "other.fbam", 0, 2)
    known = {"RECORDING": str(folder.parent / "edits.fbam"), "OTHER": str(tmp_path / "other.fbam")}
    with pytest.raises((RolloutCommandError, ValueError, OSError), match=named):
        run(str(folder), *(known.get(word, word) for word in words))


def test_the_command_names_a_folder_without_a_model(tmp_path):
    with pytest.raises(RolloutCommandError, match="has no checkpoint"):
        run(str(tmp_path), "--task", "edits")
