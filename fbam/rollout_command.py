"""``fbam rollout``: let a trained model drive the terminal, beside the true session (section 10.4).

    fbam rollout build/cells/tasks/0123456789abcdef --task edits --seed 7 --out edits.fbam
    fbam rollout build/cells/training/0123456789abcdef --task build/recordings/training/interpreter.fbam --session -1
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fbam.recording.format import Recording, RecordingError
from fbam.tasks.keyboard_task import TaskError, beginning
from fbam.tasks.typing_task import TASKS

if TYPE_CHECKING:
    from fbam.rollout import Play


class RolloutCommandError(RecordingError):
    """A roll-out that cannot be done with these arguments."""


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``rollout`` to the command line."""
    parser = commands.add_parser("rollout", help="let a trained model drive the terminal, beside the true session")
    parser.add_argument("folder", type=Path, metavar="RUN", help="folder of a training, with its checkpoint")
    parser.add_argument("--task", required=True, metavar="TASK", help=f"{', '.join(TASKS)}, or a recording whose commits are the sessions")
    parser.add_argument("--session", type=int, default=-1, metavar="K", help="commit of a recording, from 0; -1 is the last (default)")
    parser.add_argument("--given", type=int, metavar="N", help="keys that the model is shown first (default: as many as leave nothing "
                        "to chance, or half of the session)")
    parser.add_argument("--steps", type=int, metavar="N", help="keys that it presses (default: to the end of the true session)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the session of a task, and of drawing (default 0)")
    parser.add_argument("--draw", action="store_true", help="draw each token by its probability instead of the most likely one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the roll-out as a recording")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    :raises RolloutCommandError: no model there, no such session, numbers out of range, or a session in frames of another size
    """
    from fbam import rollout  # slow to import, and no other command needs it
    from fbam.models.action_model import ModelConfigError
    from fbam.training.checkpoint import CheckpointError, load_model

    try:
        model, tokenizer = load_model(options.folder)
        shape = (model.config.rows, model.config.cols)
        before, actions, given = _session(options, *shape)
        steps = len(actions) - given if options.steps is None else options.steps
        if not 0 <= given <= len(actions) or steps < 1:
            raise RolloutCommandError(f"the session has {len(actions)} keys: give --given 0 to {len(actions) - 1} and --steps 1 or more")
        true = rollout.replay(rollout.terminal_after(*shape, before), actions[: given + steps], given)
        rng = np.random.default_rng(options.seed) if options.draw else None
        ours = rollout.roll_out(model, tokenizer, rollout.terminal_after(*shape, before), actions[:given], steps, rng)
    except (CheckpointError, ModelConfigError, TaskError) as error:
        raise RolloutCommandError(str(error)) from error
    found = rollout.compare(true, ours)
    print(_report(true, ours, shape))
    print(f"{found.correct} of {found.actions} keys as in the true session, {found.sustained} before the first that differs; "
          f"texts {found.similarity:.0%} alike")
    if options.out:
        rollout.write_play(ours, options.out, {"source": f"roll-out of {options.folder.name}", "revision": str(options.seed)})


def _session(options: argparse.Namespace, rows: int, cols: int) -> tuple[list[str], list[str], int]:
    """Keys pressed before the session, those of the session, and how many of these are given."""
    if options.task in TASKS:
        task = TASKS[options.task](rows, cols)
        session = task.sample(np.random.default_rng(options.seed))
        before, actions, given = task.earlier, list(session.actions), beginning(session)
    else:
        recording = Recording(Path(options.task))
        if (recording.rows, recording.cols) != (rows, cols):
            size = f"{recording.rows} x {recording.cols}"
            raise RolloutCommandError(f"{options.task} has frames of {size}, the model reads {rows} x {cols}: compile it at that size")
        try:
            span = recording.commits[options.session]
        except IndexError:
            raise RolloutCommandError(f"{options.task} has commits 0 to {len(recording.commits) - 1}, not {options.session}") from None
        before, actions = recording.actions[: span.start], recording.actions[span.start : span.stop]
        given = len(actions) // 2
    return before, actions, given if options.given is None else options.given


def _report(true: Play, ours: Play, shape: tuple[int, int]) -> str:
    """Last screens of both, side by side."""
    rows = [[_plain(row) for row in play.frames[-1]] for play in (true, ours)]
    head = f"{'true session':<{shape[1]}} | roll-out"
    return "\n".join([head, *(f"{left:<{shape[1]}} | {right}".rstrip() for left, right in zip(*rows))])


def _plain(row: np.ndarray) -> str:
    return "".join(chr(code) for code in row["code"].tolist() if code)
