"""Sections 4 to 6 and 8: the jumps task, criticality, the maze, Diff-Inflate-Bench."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Probability, Rate, Repository, Section, Share, check_distinct


class JumpsModel(Section):
    """One model of a jumps study: family, layers, updates and tokens an update."""

    family: Annotated[str, Field(min_length=1)]
    layers: Count
    steps: Count
    tokens: Count


class JumpsStudy(Section):
    """One variant of the jumps task, its curriculum and the models trained on it; defaults as in fbam/training/jumps_study.py."""

    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    max_depth: Annotated[int, Field(ge=2)]
    exits: Literal["paired", "single"] = "paired"
    registers_per_block: Annotated[float, Field(ge=0)] = 0.0
    curriculum: Literal["adaptive", "time", "mix"] = "adaptive"
    programs: Natural = 0
    initial_noise: Annotated[float, Field(ge=0)] = 0.0
    scratchpad: bool = False
    seeds: Annotated[list[Natural], Field(min_length=1)]
    models: Annotated[list[JumpsModel], Field(min_length=1)]


class JumpsLearning(Section):
    """The grid of learning rates and the optimiser's other settings, the same for every family."""

    rates: Annotated[list[Rate], Field(min_length=1)]
    trial_steps: Count
    trial_tokens: Count
    trial_depths: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]
    weight_decay: Annotated[float, Field(ge=0)]
    grad_clip: Annotated[float, Field(ge=0)]
    warm_up: Natural


class JumpsCurriculum(Section):
    """When the adaptive curriculum goes deeper, and the share of its programs in which jumps of every length are equally likely."""

    advance_at: Annotated[float, Field(gt=0, le=1)]
    check_every: Count
    check_programs: Count
    even_jumps: Probability


class JumpsTesting(Section):
    """Depths and numbers of programs that models are tested on, and how often during training."""

    depths: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2)]
    programs: Count
    curve_every: Count


class JumpsData(Section):
    """The data set whose statistics are compared with the paper's."""

    programs: Count
    depth: Count


class Frjt(Section):
    """Section 8.1.1: the forward-referencing jumps task."""

    registers: Count
    width: Count
    learning: JumpsLearning
    adaptive: JumpsCurriculum
    testing: JumpsTesting
    data: JumpsData
    studies: Annotated[list[JumpsStudy], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Frjt:
        names = [study.name for study in self.studies]
        if len(set(names)) != len(names):
            raise ValueError(f"studies {names} name a study twice")
        if self.testing.curve_every % self.adaptive.check_every:
            raise ValueError(f"testing.curve_every {self.testing.curve_every} must be a multiple of adaptive.check_every "
                             f"{self.adaptive.check_every}")
        return self


class Criticality(Section):
    """Section 5: the depth at which accuracy fails, against layers."""

    threshold: Share
    resamples: Annotated[int, Field(ge=100)]
    seed: Natural


class WalkModel(Section):
    """A family of the maze study, its layers and its updates."""

    family: Annotated[str, Field(min_length=1)]
    layers: Count
    steps: Count


class Maze(Section):
    """Sections 6 and 8.1.2 to 8.1.4: tracking a position in a maze."""

    size: Annotated[int, Field(ge=2, le=128)]
    opened: Annotated[float, Field(ge=0, le=1)]
    maze_seed: Natural
    moves: Annotated[int, Field(ge=4)]
    withheld: Natural
    longer: Annotated[int, Field(ge=2)]
    probabilities: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=2)]
    tokens: Literal[1, 2]
    head: Literal["regression", "classification"]
    width: Count
    models: Annotated[list[WalkModel], Field(min_length=3)]
    controls: Annotated[list[str], Field(min_length=2)]
    sweep_layers: Annotated[list[Count], Field(min_length=2)]
    matched_steps: Count
    unwithheld_factor: Rate
    initial_noise: Annotated[float, Field(ge=0)]
    rates: Annotated[list[Rate], Field(min_length=1)]
    selection: Annotated[float, Field(gt=0, le=1)]
    seeds: Annotated[list[Natural], Field(min_length=1)]
    batch: Count
    evaluate_every: Count
    validation_walks: Count
    test_walks: Count

    @model_validator(mode="after")
    def _consistent(self) -> Maze:
        families = [model.family for model in self.models]
        for name, values in (("seeds", self.seeds), ("rates", self.rates), ("probabilities", self.probabilities), ("models", families)):
            check_distinct(name, values)
        if missing := {"lstm", "transformer", "sum"} - set(families):
            raise ValueError(f"models lacks {', '.join(sorted(missing))}, which the verdicts compare")
        if "sum" in self.controls or not {"lstm", "transformer"} <= set(self.controls) <= set(families):
            raise ValueError(f"controls {self.controls} must hold lstm and transformer, and of the other models any but sum")
        if self.withheld > self.moves or 0.0 not in self.probabilities:
            raise ValueError(f"withheld {self.withheld} must be at most moves {self.moves}, and probabilities must hold 0.0")
        if self.test_walks < self.longer:
            raise ValueError(f"test_walks {self.test_walks} must be at least longer {self.longer}, so that one longer walk is left")
        return self


class DiffInflate(Section):
    """Section 8.2: Diff-Inflate-Bench and the coding-agent task."""

    histories: Annotated[list[Repository], Field(min_length=1)]
    suffixes: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    diffs: Annotated[list[Count], Field(min_length=2)]
    cases: Count
    largest_bytes: Count
    outcomes: list[str]
    chances: Annotated[list[Probability], Field(min_length=1)]
    turns: Annotated[int, Field(ge=2)]
    streams: Count
    print_every: Annotated[list[Natural], Field(min_length=1)]
    seed: Natural

    @model_validator(mode="after")
    def _distinct(self) -> DiffInflate:
        for name in ("diffs", "chances", "print_every"):
            check_distinct(name, getattr(self, name))
        return self
