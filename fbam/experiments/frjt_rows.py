"""The rows of the jumps study (paper, section 8.1.1) and of the criticality study (section 5)."""

from __future__ import annotations

from fbam.experiments.records import Row


class FrjtTaskRow(Row):
    """One variant of the task at one depth, over `n` programs drawn; shares. The solver's columns are 0 where it does not apply."""

    task: str
    depth: int
    n: int
    coverage: float  # of the blocks, those that run
    halting_B: float
    early_exits: float  # programs that halt before their last block
    equal_targets: float  # of the blocks that run and do not exit, those with one target: their test decides nothing
    duplicates: float  # programs that stand in the sample already
    solver_states: int
    solver_rounds: int
    solver_agreement: float  # test programs on which the prefix scan and the interpreter agree


class FrjtBaselineRow(Row):
    """Accuracy of one predictor without a model on `n` test programs of one depth."""

    task: str
    depth: int
    n: int
    predictor: str
    accuracy: float


class FrjtRow(Row):
    """One trained model at one tested depth. `n` programs a split; the interval is Wilson's for the test programs alone.

    Programs of the three splits never overlap. With a fixed set the training programs are those it learnt from, else a fresh sample.
    """

    study: str
    model: str
    layers: int
    width: int
    parameters: int
    task: str
    curriculum: str
    max_depth: int
    depth: int
    seed: int
    steps: int
    lr: float
    n: int
    train_accuracy: float
    validation_accuracy: float
    test_accuracy: float
    test_low: float
    test_high: float
    deepest: int  # depth that the curriculum reached


class FrjtCurveRow(Row):
    """A training at one step, training and validation programs as means over the depths of the curve, `n` each; losses in nats."""

    study: str
    model: str
    layers: int
    task: str
    curriculum: str
    max_depth: int
    seed: int
    lr: float
    step: int
    deepest: int
    train_loss: float
    train_accuracy: float
    n: int
    validation_loss: float
    validation_accuracy: float
    by_depth: list[list[float]]  # [depth, validation accuracy, validation loss]


class FrjtTimingRow(Row):
    """What a training cost in processor seconds of one process, evaluation not counted."""

    study: str
    model: str
    layers: int
    task: str
    max_depth: int
    seed: int
    lr: float
    steps: int
    cpu_seconds: float
    cpu_seconds_a_step: float


class FrjtSpeedRow(Row):
    """Programs drawn and run a processor second by the generator and the interpreter, at depth 16."""

    task: str
    programs_per_cpu_second: float


class FailureRow(Row):
    """Depth at which the mean test accuracy of one model falls below `threshold`, with a 95 % interval.

    `bound` is "reached" where the fall lies between two tested depths, "above" where accuracy holds at the deepest tested program and
    "below" where the shallowest is missed already; then `depth` is that tested depth.
    """

    study: str
    model: str
    layers: int
    task: str
    threshold: float
    runs: int
    depth: float
    low: float
    high: float
    bound: str


class LawRow(Row):
    """How failing depth depends on the layers L: `constant` of depth = constant L, constant 2^L or constant, and its squared log error."""

    model: str
    law: str
    constant: float
    low: float
    high: float
    squared_log_error: float
    points: int
