"""The rows of the maze study (paper, sections 8.1.2 to 8.1.4), with units. Accuracy is the share of moves after which the cell is right."""

from __future__ import annotations

from fbam.experiments.records import Row


class MazeRow(Row):
    """One trained model on one test set. `low` and `high` are Wilson's 95 % bounds of test_accuracy with one trial a walk."""

    model: str
    layers: int
    width: int
    parameters: int
    task: str  # the part of the study the run belongs to
    tokens: int  # a move
    head: str
    p: float  # share of the results that are withheld in the test
    depth: float  # withheld results a walk of the test, the mean where their number is drawn
    moves: int  # a walk of the test
    trained_moves: int
    trained_p: float
    lr: float
    seed: int
    steps: int
    train_accuracy: float  # on walks of the training part, all moves
    validation_accuracy: float  # all moves
    test_accuracy: float  # all moves
    last_accuracy: float  # after the last move of the test
    n: int  # walks of the test
    low: float
    high: float


class MazePredictorRow(Row):
    """A predictor that is not trained, on the same test walks as the models."""

    predictor: str
    p: float
    depth: float
    moves: int
    accuracy: float
    last_accuracy: float
    n: int
    low: float
    high: float


class MazeSeriesRow(Row):
    """One run as a curve: share of right cells y, of n moves each, against x."""

    model: str
    layers: int
    task: str
    tokens: int
    head: str
    p: float
    seed: int
    steps: int
    against: str  # step (validation walks), or move, or withheld (results so far; test walks)
    x: list[int]
    y: list[float]
    n: list[int]


class MazeTimingRow(Row):
    """What one run cost, in processor seconds of one process, evaluation not counted."""

    model: str
    layers: int
    task: str
    tokens: int
    head: str
    seed: int
    steps: int
    cpu_seconds_a_step: float
    cpu_seconds: float
