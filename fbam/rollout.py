r"""Roll-out: a trained model drives the real terminal (paper, sections 9 and 10.4).

The model sees a frame, its most likely token is pressed, the terminal draws the next frame:

$$a_t = \arg\max_a p(a \mid x_1, \dots, x_t), \qquad x_{t+1} = \mathrm{terminal}(x_t, a_t)$$

Beside it stands the true session on a terminal of its own. Both begin with the same ``given`` keys, which the model watches. Nothing
corrects the model afterwards: a wrong key stays on its screen, and all it sees from then on is its own doing.

Tokens that only spell a character never seen in training, several for one key, are not pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rapidfuzz.distance import Indel
from torch import Tensor

from fbam.models.action_model import ActionModel
from fbam.recording.cells import Frames
from fbam.recording.format import RecordingWriter
from fbam.recording.tokens import RESERVED, ActionTokenizer
from fbam.sessions.screen import Terminal


class RolloutError(ValueError):
    """A roll-out that cannot be done; the message names the remedy."""


@dataclass(frozen=True)
class Play:
    """What was pressed on a terminal and what it showed.

    :ivar frames: (n + 1, R, C) cells: before each action, and after the last one
    :ivar actions: n actions
    :ivar text: the text in the editor when it was last open, empty where it never was
    :ivar given: the first actions, which the model was shown
    """

    frames: Frames
    actions: list[str]
    text: str
    given: int


@dataclass(frozen=True)
class Comparison:
    """How far a roll-out follows the true session, counted behind the given actions.

    :ivar actions: actions of the true session
    :ivar correct: of these, actions that the roll-out has at the same place
    :ivar sustained: actions before the first that differs
    :ivar similarity: of the two texts at the end, 1 - (characters to remove and insert) / (characters of both)
    """

    actions: int
    correct: int
    sustained: int
    similarity: float

    @property
    def diverged(self) -> bool:
        """Whether the roll-out ever left the true session."""
        return self.sustained < self.actions


class Stage:
    """A terminal that remembers what it has shown."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.frames = [terminal.frame.copy()]
        self.actions: list[str] = []
        self.text = ""

    def press(self, actions: Sequence[str]) -> None:
        """Press some actions."""
        for action in actions:
            self.terminal.press(action)
            self.actions.append(action)
            self.frames.append(self.terminal.frame.copy())
            if self.terminal.shell.editor is not None:
                self.text = "\n".join(self.terminal.shell.editor.lines)

    def play(self, given: int) -> Play:
        """All that has happened."""
        return Play(np.stack(self.frames), self.actions, self.text, given)


class Agent:
    """A model in the middle of a session: frames go in one by one, and its state goes on.

    :param model: the model, in evaluation mode
    :param tokenizer: its tokenizer
    """

    def __init__(self, model: ActionModel, tokenizer: ActionTokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.states = model.initial_state(1)

    @torch.no_grad()
    def observe(self, frame: Frames) -> Tensor:
        """Look at an (R, C) frame and return the logits of the next token, (V,)."""
        x, self.states = self.model.advance(self.model.encode(*channels(frame[None])), self.states)
        return self.model.output(x)[0, -1]

    def choose(self, logits: Tensor, rng: np.random.Generator | None) -> list[str]:
        """The actions of the most likely token, or of one drawn by its probability."""
        pressable = logits[len(RESERVED) :].double()
        if rng is None:
            token = int(pressable.argmax())
        else:
            token = int(rng.choice(len(pressable), p=torch.softmax(pressable, 0).numpy()))
        return self.tokenizer.decode([len(RESERVED) + token])


def channels(frames: Frames) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(n, R, C) frames as one sequence for the model: code, fg, bg, style, (1, n, N_f) int64 each."""
    cells = frames.reshape(1, len(frames), -1)
    return tuple(torch.from_numpy(cells[name].astype(np.int64)) for name in ("code", "fg", "bg", "style"))


def terminal_after(rows: int, cols: int, actions: Sequence[str]) -> Terminal:
    """A terminal of (R, C) cells on which some actions have been pressed."""
    terminal = Terminal(rows, cols)
    for action in actions:
        terminal.press(action)
    return terminal


def replay(terminal: Terminal, actions: Sequence[str], given: int) -> Play:
    """The true session, pressed on a terminal."""
    stage = Stage(terminal)
    stage.press(actions)
    return stage.play(given)


def roll_out(
    model: ActionModel,
    tokenizer: ActionTokenizer,
    terminal: Terminal,
    given: Sequence[str],
    steps: int,
    rng: np.random.Generator | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Play:
    """Show the model the given actions, then let it press ``steps`` more.

    :param terminal: a terminal at the start of the session
    :param rng: draw tokens by their probability; without one the most likely is taken
    :param on_step: called with the number of actions pressed, after each token
    :raises RolloutError: the terminal is not of the size that the model was trained on
    """
    shape, trained = terminal.frame.shape, (model.config.rows, model.config.cols)
    if shape != trained:
        raise RolloutError(f"the model reads frames of {trained[0]} x {trained[1]}, the terminal has {shape[0]} x {shape[1]}")
    stage, agent = Stage(terminal), Agent(model, tokenizer)
    starts, _ = tokenizer.encode(given)
    stage.press(given)
    for start in starts:
        agent.observe(stage.frames[start])
    end = len(given) + steps
    while len(stage.actions) < end:
        actions = agent.choose(agent.observe(stage.frames[-1]), rng)
        stage.press(actions[: end - len(stage.actions)])
        if on_step:
            on_step(len(stage.actions) - len(given))
    return stage.play(len(given))


def compare(true: Play, ours: Play) -> Comparison:
    """Hold a roll-out against the true session behind their given actions; what it pressed beyond the end of it does not count."""
    pairs = list(zip(true.actions[true.given :], ours.actions[ours.given :]))
    hits = [a == b for a, b in pairs]
    sustained = hits.index(False) if False in hits else len(hits)
    similarity = Indel.normalized_similarity(true.text, ours.text)
    return Comparison(len(true.actions) - true.given, sum(hits), sustained, similarity)


def write_play(play: Play, path: Path, header: dict) -> None:
    """Write a roll-out as a recording."""
    rows, cols = play.frames.shape[1:]
    with RecordingWriter(path, rows, cols, header=header) as writer:
        for frame, action in zip(play.frames, play.actions):
            writer.append(frame, action)
