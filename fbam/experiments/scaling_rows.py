"""The rows of the scaling study (paper, section 10.5, appendices D to J), beside `LossRow`, `FitRow` and `PositionRow`."""

from __future__ import annotations

from fbam.experiments.records import Row
from fbam.experiments.rows import LawRow, RunRow


class ExponentRow(LawRow):
    """The law read at one step."""

    largest_residual: float  # of a length's mean, in log loss


class FormRow(Row):
    """One form of the loss against L at one step: its fit, and how it predicts lengths left out (root mean square in log loss).

    `wins` is the share of resamples over seeds in which it predicts best; null with one seed. The bounds of the floor E are null
    where the form has none, or there are no more runs than constants.
    """

    task: str
    control: str
    step: int
    form: str
    constants: int
    E: float
    E_low: float | None
    E_high: float | None
    A: float
    rate: float
    held_out: float
    wins: float | None


class LocalRow(Row):
    """The exponent between two neighbouring lengths at one step; the bounds are null with one seed."""

    task: str
    control: str
    step: int
    shorter: int
    longer: int
    alpha: float
    low: float | None
    high: float | None


class RatioRow(Row):
    """Two losses at the last fixed step, one over the other; the bounds of the 95 % interval are null with one seed."""

    comparison: str
    value: float
    low: float | None
    high: float | None


class ProfileRow(RunRow):
    """A trained model on `n` windows of `length` positions of one part: nats an action over all, the first four and the last four.

    Bounds are those of Student's 95 % interval over windows. `training` is the run's last training loss.
    """

    part: str
    length: int
    n: int
    training: float
    loss: float
    loss_low: float
    loss_high: float
    first: float
    first_low: float
    first_high: float
    last: float
    last_low: float
    last_high: float


class SweepTimingRow(RunRow):
    """What one run cost, in processor seconds of one process; `cpu_seconds_a_step` is the median."""

    parameters: int
    cpu_seconds: float
    cpu_seconds_a_step: float
    frames_per_cpu_second: float


class StepRow(RunRow):
    """FLOPs of one training step of a run, forward and backward, counted on the real modules."""

    flops: int


class CrossingRow(Row):
    """From which processor second on the longer of two lengths has the lower loss; null = not before `horizon`.

    `low` and `high` bound the 95 % interval over seeds and are null too with one seed. `law` is the crossing that the fitted law
    implies, `gain` the loss of the longer one over that of the shorter one at the horizon.
    """

    task: str
    control: str
    shorter: int
    longer: int
    seeds: int
    seconds: float | None
    low: float | None
    high: float | None
    law: float | None
    horizon: float
    gain: float


class RateRow(Row):
    """FLOPs of a step and how fast they were done, beside the rate of a large matrix product on the same thread."""

    task: str
    control: str
    L: int
    batch: int
    flops_a_step: int
    cpu_seconds_a_step: float
    flops_per_second: float
    share_of_peak: float


class MatchedRow(Row):
    """The flattened Transformer beside the model with an LSTM: each at the best of as many rates, after so many steps and FLOPs.

    `matched` is what both have equal: `steps`, or `FLOPs` (the Transformer's rounded up to a whole row of losses). `ratio` is the
    Transformer's loss over the other one's.
    """

    task: str
    matched: str
    rates: int
    flattened_L: int
    flattened_family: str
    flattened_steps: int
    flattened_flops: int
    flattened_loss: float
    L: int
    family: str
    steps: int
    flops: int
    loss: float
    ratio: float


class CapacityRow(Row):
    """The exponent between the lengths of a family at one step, run by run: one of another number of layers, or of the main family.

    `low` and `high` bound where one more seed of the main family would lie, with 95 %, by Student's t over its seeds.
    """

    task: str
    control: str
    step: int
    lengths: list[int]
    seed: int
    alpha: float
    low: float
    high: float


ALL, FOLLOWING = "all", "directly after the message"
"""Which windows of a commit: `at` of the rows on messages."""


class MessageRow(Row):
    """One model on edits of one held-out commit, in nats an action: after their own message, another commit's, and none.

    `at` says which `windows` (`ALL`, `FOLLOWING`). Commits are counted from 0, in order.
    """

    at: str
    seed: int
    commit: int
    windows: int
    own: float
    other: float
    none: float


class MessageRatioRow(Row):
    """Loss with the own message over that with another one or none: the geometric mean, with its 95 % interval over commits."""

    at: str
    against: str
    commits: int
    seeds: int
    value: float
    low: float
    high: float
    seeds_below: int  # models in which the ratio of the mean losses is below 1
