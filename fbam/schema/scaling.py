"""Section 10.5 and appendices D to J: the sweeps over the trained length, and the FLOP estimate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Rate, Repository, Section, Share, check_distinct
from fbam.schema.model import Trained

Text = Annotated[str, Field(min_length=1)]
Kind = Literal["lstm", "attention", "flattened"]
Head = Literal["attention", "conv"]
Labels = Literal["all", "one"]


class SweepTask(Section):
    """Recordings that runs are trained on: sessions of a generated task, or what stage corpus compiled (`compiled`, 0 sessions)."""

    name: Literal["typing", "edits", "scrolling", "compiled"]
    sessions: Natural
    steps: Count
    read_at: Annotated[list[Count], Field(min_length=3, max_length=3)]

    @model_validator(mode="after")
    def _consistent(self) -> SweepTask:
        if self.read_at != sorted(set(self.read_at)) or self.read_at[-1] > self.steps:
            raise ValueError(f"read_at {self.read_at} of {self.name} must rise and end at steps {self.steps} or before")
        if (self.name == "compiled") != (self.sessions == 0):
            raise ValueError(f"sessions of {self.name} must be {'0' if self.name == 'compiled' else '1 or more'}")
        return self


class Sweep(Section):
    """A family of runs on one task: its lengths and seeds, and what differs from the settings they all share.

    `an_update` is the number of labels an update, from which the batch follows; `steps` ends the runs before those of their task;
    all other changes are settings by name. With `each`, there is one family for each of `values` of that setting, and its name ends with it.
    """

    task: Text
    control: Text
    lengths: Annotated[list[Count], Field(min_length=1)]
    seeds: Annotated[list[Natural], Field(min_length=1)]
    batch: Count | None = None
    an_update: Count | None = None
    steps: Count | None = None
    width: Count | None = None
    layers: Count | None = None
    main: Kind | None = None
    frame_head: Head | None = None
    labels: Labels | None = None
    muon_lr: Rate | None = None
    frame_chunk: Natural | None = None
    each: Literal["batch", "width", "layers", "muon_lr"] | None = None
    values: Annotated[list[Annotated[int | float, Field(gt=0)]], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Sweep:
        if (self.each is None) != (self.values is None) or (self.each and getattr(self, self.each) is not None):
            raise ValueError(f"{self.control}: `each` names a setting that is not set besides, and `values` its values")
        check_distinct("values", self.values or [])
        for name in ("lengths", "seeds"):
            check_distinct(name, getattr(self, name))
        if self.an_update and (self.batch or any(self.an_update % length for length in self.lengths)):
            raise ValueError(f"an_update {self.an_update} of {self.control} must be a multiple of every length, and batch be left out")
        return self


class SweepSettings(Trained):
    """What all runs share unless their sweep says otherwise: batch, model, optimisers, split, checkpoints, backward pass."""

    batch: Count
    labels: Labels
    reduction: Literal["lstm", "mean", "last"]
    main: Kind


class Frame(Section):
    """Cells of the generated tasks' frames."""

    rows: Annotated[int, Field(ge=3)]
    columns: Annotated[int, Field(ge=12)]


class Profile(Section):
    """Evaluation by position (appendix H): of which trained lengths, on how many windows of how many frames."""

    lengths: Annotated[list[Count], Field(min_length=1)]
    windows: Annotated[int, Field(ge=2)]
    frames: Annotated[int, Field(ge=8)]


class Messages(Section):
    """Whether a commit's message conditions its edits: history, frame, windows and trainings; all else is as in the sweeps."""

    history: Repository
    commits: Natural
    frame: Frame
    vocabulary: Annotated[int, Field(ge=300, le=65536)]
    message_frames: Count
    length: Count
    batch: Count
    steps: Count
    seeds: Annotated[list[Natural], Field(min_length=2)]
    windows: Count

    @model_validator(mode="after")
    def _consistent(self) -> Messages:
        check_distinct("seeds", self.seeds)
        return self


class Scaling(Section):
    """Section 10.5 and appendices E to I: tasks, sweeps, shared settings, commit messages, and how the law is read."""

    tasks: Annotated[list[SweepTask], Field(min_length=1)]
    sweeps: Annotated[list[Sweep], Field(min_length=1)]
    frame: Frame
    settings: SweepSettings
    profile: Profile
    messages: Messages
    report_every: Count
    window: Share
    resamples: Annotated[int, Field(ge=100)]
    seed: Natural

    @model_validator(mode="after")
    def _consistent(self) -> Scaling:
        names = [task.name for task in self.tasks]
        check_distinct("tasks", names)
        unknown = sorted({sweep.task for sweep in self.sweeps} - set(names))
        if unknown:
            raise ValueError(f"sweeps name the tasks {unknown}, which are not among tasks {names}")
        check_distinct("sweeps", [(sweep.task, sweep.control) for sweep in self.sweeps])
        steps = {task.name: task for task in self.tasks}
        for sweep in self.sweeps:
            if sweep.steps and sweep.steps not in steps[sweep.task].read_at:
                raise ValueError(f"steps {sweep.steps} of {sweep.control} must be one of read_at {steps[sweep.task].read_at}, where it is compared")
        for task in self.tasks:
            uneven = [step for step in (*task.read_at, task.steps, self.window * task.steps) if step % self.report_every]
            if uneven:
                raise ValueError(f"report_every {self.report_every} must divide steps, read_at and the window of {task.name}, "
                                 f"but not {uneven[0]:g}")
        return self


class Ablations(Section):
    """Appendices E to I: how the verdicts are taken; the runs are those of section scaling."""

    near: Share


class Walltime(Section):
    """Appendix D: the matrix product that the rate of a training is held against."""

    product_size: Count
    product_repeats: Count


class Flops(Section):
    """Appendix J: the hyperparameters of the FLOP estimate."""

    batch: Count
    width: Count
    cells: Count
    poolings: Natural
    head_blocks: Natural
    length: Count
    layers: Count
    codes: Annotated[int, Field(ge=2)]
    vocabulary: Annotated[int, Field(ge=2)]
    state_every: Count
    rate: Rate
