"""Section 10.4 and appendix G: models on typing tasks, and what they do at the keyboard."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Section, check_distinct
from fbam.schema.model import Trained


class TypingTask(Section):
    """One task of typed sessions, and the updates of its model."""

    name: Literal["typing", "edits", "scrolling"]
    steps: Count


class Rollout(Trained):
    """Section 10.4: training on typing tasks, held-out accuracy, roll-out."""

    rows: Annotated[int, Field(ge=3, le=23)]
    columns: Annotated[int, Field(ge=20, le=79)]
    sessions: Annotated[int, Field(ge=10)]
    data_seed: Natural
    tasks: Annotated[list[TypingTask], Field(min_length=1)]
    length: Count
    batch: Count
    seeds: Annotated[list[Natural], Field(min_length=1)]
    eval_windows: Annotated[int, Field(ge=2)]
    eval_length: Count
    rollouts: Count

    @model_validator(mode="after")
    def _consistent(self) -> Rollout:
        check_distinct("seeds", self.seeds)
        check_distinct("tasks", [task.name for task in self.tasks])
        if round(self.held_out * self.sessions) < 2:
            raise ValueError(f"held_out {self.held_out} of {self.sessions} sessions must be at least 2 sessions")
        return self
