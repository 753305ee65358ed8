"""The rows of the results files: what each study reports, with units. One class a table."""

from __future__ import annotations

from fbam.experiments.records import Row


class CorpusRow(Row):
    """One compiled history. `files` counts paths and `source_bytes` distinct contents; `naive_bytes` is 5 bytes a cell."""

    screen: str  # what it is for: reading or training
    rows: int
    columns: int
    block_frames: int
    repository: str
    revision: str
    commits: int
    files: int
    actions: int
    frames: int
    compared: int  # files held against git, summed over the commits
    mismatches: int
    replayed: int  # stored frames decoded and found equal to the screen that the keys make again
    exclusions: dict[str, dict[str, int]]  # reason -> count and bytes of what was left out
    typed_characters: int
    pasted_characters: int
    pasted_share: float  # of the characters typed and pasted
    source_bytes: int
    changed_characters: int
    actions_per_changed_character: float
    naive_bytes: int
    stored_bytes: int
    stored_per_source_byte: float
    ratio: float


class CorpusTimingRow(Row):
    """What compiling one history for one screen cost, in processor seconds of one process and of the git that it asked."""

    screen: str
    repository: str
    cpu_seconds: float
    actions_per_cpu_second: float
    source_bytes_per_cpu_second: float


class TokenizerRow(Row):
    """One recording in tokens."""

    repository: str
    actions: int
    tokens: int
    actions_per_token: float


class RunRow(Row):
    """What names a training run: its data, what it is compared with, its model, L frames a window, B windows an update."""

    task: str
    control: str
    head: str
    main: str
    L: int
    batch: int
    seed: int


class LossRow(RunRow):
    """Mean training loss of the updates since the row before, up to `step`, in nats a label; `n` labels went into it."""

    step: int
    n: int
    loss: float


class EvaluationRow(RunRow):
    """One predictor on held-out windows: the trained model, or one that only counts on the same positions.

    Intervals are at 95 %, with windows as the independent unit.
    """

    steps: int
    length: int  # frames of a window evaluated, whatever L was trained
    windows: int
    n: int  # positions
    predictor: str  # model, unigram, bigram or copy (the action before once more)
    loss: float  # nats a position
    loss_low: float
    loss_high: float
    top1: float  # share of positions where the most likely action is the true one
    top1_low: float
    top1_high: float
    sustained: float  # right predictions in a row from the start of a window, at most its length
    sustained_low: float
    sustained_high: float


class PositionRow(RunRow):
    """A trained model at one position of the held-out windows, counted from 1: mean loss in nats and top-1 over `n` windows."""

    length: int
    position: int
    n: int
    loss: float
    top1: float


class TrainingTimingRow(Row):
    """What one run cost, in processor seconds of one process, checkpoints and evaluation not counted."""

    control: str
    L: int
    batch: int
    seed: int
    cpu_seconds_a_step: float
    frames_per_cpu_second: float


class LawRow(Row):
    """loss(L | s) = A L^-alpha read at one step; `low` and `high` bound alpha's 95 % interval, r2 is that of the line."""

    task: str
    control: str
    step: int
    A: float
    alpha: float
    low: float
    high: float
    r2: float


class FitRow(LawRow):
    """The law read at one fixed step, and what it was fitted to."""

    lengths: int
    seeds: int
    interval: str  # how the interval was made
    points: list[list[float]]  # [L, loss] of each run that was fitted


class FlopsRow(Row):
    """Forward FLOPs of one component, one multiply-add = 2."""

    component: str
    flops: float


class PartRow(Row):
    """One part of the model on one sequence: its parameters, and the forward FLOPs counted while it ran, a multiply-add = 2."""

    part: str
    inputs: str  # shape, without the batch
    outputs: str
    repeats: int  # modules in a row that are the same
    parameters: int
    flops: int


class TrafficRow(Row):
    """One step of data parallel training: bytes that one process hands to all-reduce, a function of the parameters alone."""

    L: int
    batch: int
    processes: int
    bytes_a_step: int


class TrafficTimingRow(Row):
    """What such a step took here, and the bandwidth a process would need for its traffic to take no longer than its arithmetic."""

    L: int
    batch: int
    frames: int  # of one process
    seconds_a_step: float
    bytes_a_second: float


class PassRow(Row):
    """The loss of one backward pass, in nats; the ways to the gradients must agree in it."""

    way: str
    L: int
    batch: int
    loss: float


class MemoryRow(Row):
    """What one backward pass needs: the highest resident set above the one before it, and processor seconds a pass."""

    way: str
    L: int
    batch: int
    peak_bytes: int
    kept_bytes: int  # of these, the L x B x D numbers that the host keeps by design; 0 where the way does not declare them
    cpu_seconds: float
    repeats: int  # passes that the time is the median of
