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
