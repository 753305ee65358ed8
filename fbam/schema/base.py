"""Kinds of values, and what every section of params.yaml has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A section of params.yaml: exactly its own keys, exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def check_distinct(name: str, values: list) -> None:
    """Raise ValueError when a list names a value twice."""
    if len(set(values)) != len(values):
        raise ValueError(f"{name} {values} names a value twice")


class Repository(Section):
    """One history: a bundle, a path or a URL, and the branch, tag or commit to stop at."""

    source: Annotated[str, Field(min_length=1)]
    revision: str | None = None


class Screen(Section):
    """Size of the terminal in cells, and frames a block of the recording."""

    rows: Annotated[int, Field(ge=3, le=1000)]
    columns: Annotated[int, Field(ge=12, le=1000)]
    block_frames: Annotated[int, Field(ge=1, le=65536)]
