"""The rows of the study of true depth: depth laws, the atlas, the probes, and the demonstrations (paper, sections 2, 3, 7, appendices A to C)."""

from __future__ import annotations

from fbam.experiments.records import Row


class DepthRow(Row):
    """The fitted law of one form of one family under one cost model in one direction: depth = offset + slope f(n)."""

    family: str
    form: str
    model: str  # cost model: unbounded or fan-in 2
    direction: str  # forward or backward, the latter alone and given the forward values
    lengths: list[int]
    depths: list[int]
    law: str  # constant, logarithmic, n/chunk, linear or unclear
    offset: float
    slope: float
    chunk: int
    error: float  # root mean square error over the mean depth
    text: str
    assumptions: list[str]


class AtlasRow(Row):
    """One family: what it is, what was measured, what it is said to be. Laws are those of the form with the smallest growth."""

    family: str
    reference: str
    update: str  # LaTeX
    associative: bool
    listed: bool  # among the families the paper calls not recurrence-complete
    forms: list[str]
    agree: bool  # all forms compute the same function
    unbounded: str
    fan_in_2: str
    backward_fan_in_2: str
    verdict: str  # parallel, serial or data-dependent
    circuits: str  # bound from the literature
    note: str


class ProbeRow(Row):
    """One family on one probe: accuracies at the trained length and beyond it, at the best learning rate by the trained length, mean over seeds."""

    family: str
    task: str
    steps: int
    learning_rates: list[float]
    seeds: list[int]
    length: int
    test_length: int
    chance: float
    parameters: int
    trained: float
    extended: float
    follows: bool


class ScanRow(Row):
    """A scan against the serial loop for one update: largest difference, and depths of the two programs over n positions."""

    update: str
    associative: bool
    n: int
    difference: float
    serial_depth: int
    scan_depth: int


class BackwardRow(Row):
    """The backward pass of one recurrence over n positions: depth as autograd runs it, depth as a scan over Jacobians, difference of gradients."""

    n: int
    model: str
    autograd_depth: int
    scan_depth: int
    difference: float


class NewtonRow(Row):
    """Newton's iteration on one nonlinear recurrence: rounds until nothing moves, beside the largest Lyapunov exponent of the sequence."""

    gain: float
    n: int
    lyapunov: float
    rounds: int
    difference: float  # largest difference from the serial loop
    depth: int  # fan-in 2, all rounds together
    serial_depth: int


class AggregationRow(Row):
    """One way to aggregate n inputs: depth under both cost models, and accuracy on words of S5, or on programs of the jumps task."""

    aggregation: str
    n: int
    unbounded: int
    fan_in_2: int
    word_accuracy: float


class VideoRow(Row):
    """Bytes a second of a stream of frames, and the memory that holding `seconds` of it takes against a state that streams."""

    stream: str
    bytes_a_frame: int
    frames_a_second: float
    bytes_a_second: float
    held_bytes: float
    state_bytes: int
