"""The rows of the roll-out study."""

from __future__ import annotations

from fbam.experiments.records import Row


class RolloutRow(Row):
    """One held-out session that a model was to go on with by itself, beside the true one; counts behind the given keys."""

    task: str
    seed: int  # of the model
    session: int  # number of the session in its recording
    pressed: str  # the most likely token, or one drawn by its probability
    given: int  # keys that the model was shown
    actions: int  # true keys behind them
    correct: int  # of these, keys that the roll-out has at the same place
    sustained: int  # keys before the first that differs
    similarity: float  # of the two texts at the end, 1 where they are equal
    words: int  # words of the roll-out's text at the end
    known: int  # of these, words of the task's list


class RecallRow(Row):
    """Share of keys of whole held-out sessions that a model predicts, with the true keys before; interval over sessions at 95 %."""

    task: str
    seed: int
    keys: str  # all; hidden: letters that have been gone from the screen; recalled: the first of each run of these
    memory: str  # kept, or emptied before each frame
    sessions: int
    n: int
    top1: float
    top1_low: float
    top1_high: float
