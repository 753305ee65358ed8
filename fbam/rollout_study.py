"""The cells of the roll-out study: trained models on held-out sessions of a task (paper, sections 10.4 and appendix G).

Two questions. How well does a model predict the keys that type what is no longer on the screen, and how well once its memory is
emptied before each frame, so that it knows the frame alone? And how far does it follow a true session when it drives the terminal itself?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from scipy import stats

from fbam.experiments.grid import Outcome
from fbam.experiments.rollout_rows import RecallRow, RolloutRow
from fbam.models.action_model import ActionModel
from fbam.recording.tokens import ActionTokenizer
from fbam.rollout import Play, channels, compare, replay, roll_out, terminal_after
from fbam.tasks.keyboard_task import KeyboardTask, Session, beginning
from fbam.tasks.typing_task import TASKS, WORDS
from fbam.training.checkpoint import load_model
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic

RESAMPLES = 2000
"""Resamples of the bootstrap over sessions."""
PRESSED = ("most likely", "by probability")


class StudyError(ValueError):
    """The configuration is not one of a roll-out study; the message names the key."""


class SessionsConfig(TrainingConfig):
    """Configuration of one model on the held-out sessions of a task; all keys are required, as JSON values."""

    ERROR = StudyError
    TRAINING = "a roll-out study"

    model: str  # folder of the training
    task: Literal["typing", "edits", "scrolling"]
    rows: int
    cols: int
    data_seed: int = Field(ge=0)
    sessions: int = Field(ge=1)  # of the whole recording
    held_out: float = Field(gt=0, lt=1)
    rollouts: int = Field(ge=1)  # the first so many held-out sessions are rolled out; the table reads all of them


def held_out_sessions(task: KeyboardTask, seed: int, count: int, share: float) -> list[tuple[int, Session]]:
    """(number, session) of each session that lies in the held-out part of the recording of ``seed`` and ``count``."""
    sessions = task.sessions(seed, count)
    return list(enumerate(sessions))[round((1 - share) * count) :]


@torch.no_grad()
def hits(model: ActionModel, tokenizer: ActionTokenizer, task: KeyboardTask, session: Session) -> tuple[np.ndarray, np.ndarray]:
    """Which keys of a session (n,) are predicted with the true keys before: with memory, and with memory emptied before each frame."""
    play = replay(terminal_after(task.rows, task.cols, task.earlier), session.actions, 0)
    _, tokens = tokenizer.encode(play.actions)
    seen = channels(play.frames[:-1])  # (1, n, N_f) each
    kept = model(*seen)[0].argmax(dim=-1).numpy() == tokens
    alone = model(*(channel.transpose(0, 1) for channel in seen))[:, 0].argmax(dim=-1).numpy() == tokens
    return kept, alone


def sessions_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Read all held-out sessions with the true keys, and roll out the first ones.

    :param config: the keys of ``SessionsConfig``, JSON values
    :returns: hits of each kind of key as [right, keys] a session, and one comparison a roll-out and way to press
    """
    asked = SessionsConfig.parse(config)
    task = TASKS[asked.task](asked.rows, asked.cols)
    held_out = held_out_sessions(task, asked.data_seed, asked.sessions, asked.held_out)
    with deterministic():
        model, tokenizer = load_model(Path(asked.model))
        counts: dict[str, dict[str, list[list[int]]]] = {}
        for done, (_, session) in enumerate(held_out, 1):
            for memory, hit in zip(("kept", "emptied"), hits(model, tokenizer, task, session)):
                for keys, places in _kinds(session).items():
                    counts.setdefault(keys, {}).setdefault(memory, []).append([int(hit[places].sum()), len(places)])
            tick(done / len(held_out) / 2)
        plays = []
        for done, (number, session) in enumerate(held_out[: asked.rollouts], 1):
            for pressed in PRESSED:
                pair = side_by_side(model, tokenizer, task, session, number if pressed == PRESSED[1] else None)
                plays.append({"session": number, "pressed": pressed, **_outcome(*pair)})
            tick((1 + done / min(asked.rollouts, len(held_out))) / 2)
    return {"counts": counts, "plays": plays}, {}


def _kinds(session: Session) -> dict[str, list[int]]:
    return {
        "all": list(range(len(session.actions))),
        "hidden": [t for t, gone in enumerate(session.hidden) if gone],
        "recalled": session.recalled,
    }


def side_by_side(
    model: ActionModel, tokenizer: ActionTokenizer, task: KeyboardTask, session: Session, seed: int | None = None
) -> tuple[Play, Play]:
    """A session as it was, and as the model goes on with it from ``beginning`` on for as many keys.

    :param seed: draw tokens by their probability; None for the most likely one
    """
    given = beginning(session)
    rng = None if seed is None else np.random.default_rng(seed)
    true = replay(terminal_after(task.rows, task.cols, task.earlier), session.actions, given)
    steps = len(session.actions) - given
    terminal = terminal_after(task.rows, task.cols, task.earlier)
    return true, roll_out(model, tokenizer, terminal, session.actions[:given], steps, rng)


def _outcome(true: Play, ours: Play) -> dict[str, int | float]:
    """A comparison with the true session, and how many words of the text at the end are words of the list."""
    words = ours.text.split()
    return vars(compare(true, ours)) | {"given": ours.given, "words": len(words), "known": sum(word in WORDS for word in words)}


def recall_rows(outcomes: Sequence[Outcome], seeds: Sequence[int]) -> Iterator[RecallRow]:
    """One row a model, kind of key and state of its memory; kinds that a task does not have are left out."""
    for outcome, seed in zip(outcomes, seeds, strict=True):
        for keys, found in outcome.result["counts"].items():
            for memory, counted in found.items():
                right, n = np.array(counted).T  # (sessions,) each
                if n.sum():
                    low, high = share_interval(right, n)
                    yield RecallRow(task=outcome.config["task"], seed=seed, keys=keys, memory=memory, sessions=len(n), n=int(n.sum()),
                                    top1=float(right.sum() / n.sum()), top1_low=low, top1_high=high)


def share_interval(right: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Bounds of sum(right) / sum(n) at 95 % by a bootstrap over the units, (units,) each."""
    found = stats.bootstrap(
        (right, n), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True, vectorized=True, n_resamples=RESAMPLES,
        method="percentile", rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def rollout_rows(outcomes: Sequence[Outcome], seeds: Sequence[int]) -> Iterator[RolloutRow]:
    """One row a model, session and way to press."""
    for outcome, seed in zip(outcomes, seeds, strict=True):
        for play in outcome.result["plays"]:
            yield RolloutRow(task=outcome.config["task"], seed=seed, **play)


def best_run(evaluation: Sequence[dict]) -> list[dict]:
    """Of the rows of an evaluation, one a predictor, those of the model with the lowest loss and of the references beside it."""
    best = min((row for row in evaluation if row["predictor"] == "model"), key=lambda row: row["loss"])
    same = ("task", "control", "head", "main", "L", "batch", "seed", "length")
    return [row for row in evaluation if all(row[name] == best[name] for name in same)]
