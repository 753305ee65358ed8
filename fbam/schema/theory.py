"""Sections 2, 3, 7 and appendices A to C: true depth, probes and demonstrations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Rate, Section, Share


Lengths = Annotated[list[Count], Field(min_length=4)]


def _spread(lengths: list[int], name: str) -> None:
    """Raise ValueError unless a law can be read off these lengths."""
    if len(set(lengths)) < 4 or max(lengths) < 8 * min(lengths):
        raise ValueError(f"{name} {lengths} must hold at least 4 distinct lengths, the largest at least 8 times the smallest")


class Depth(Section):
    """Section 2: true depth of every family, and the probes."""

    width: Count
    short: Lengths
    long: Lengths
    families: list[str]
    model_width: Count
    model_poolings: Natural
    model_cells: Count
    model_full_cells: Count
    probe_families: Annotated[list[str], Field(min_length=1)]
    probe_width: Count
    probe_layers: Count
    probe_steps: Count
    probe_batch: Count
    probe_learning_rates: Annotated[list[Rate], Field(min_length=1)]
    probe_length: Count
    probe_test_length: Count
    probe_threshold: Share
    seeds: Annotated[list[Natural], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Depth:
        _spread(self.short, "short")
        _spread(self.long, "long")
        for name in ("model_cells", "model_full_cells"):
            if getattr(self, name) % 2**self.model_poolings:
                raise ValueError(f"{name} {getattr(self, name)} cannot be halved model_poolings = {self.model_poolings} times")
        if self.probe_test_length <= self.probe_length:
            raise ValueError(f"probe_test_length {self.probe_test_length} must be longer than probe_length {self.probe_length}")
        return self


class Theory(Section):
    """Appendices A to C, sections 3 and 7: the demonstrations."""

    scan_length: Annotated[int, Field(ge=2)]
    reverse_lengths: Lengths
    reverse_width: Count
    newton_gains: Annotated[list[Rate], Field(min_length=1)]
    newton_lengths: Annotated[list[Count], Field(min_length=1)]
    newton_width: Count
    aggregation_lengths: Annotated[list[Count], Field(min_length=1)]
    words: Count
    video_frames_a_second: Rate
    keys_a_second: Rate
    held_seconds: Rate
    seed: Natural

    @model_validator(mode="after")
    def _consistent(self) -> Theory:
        _spread(self.reverse_lengths, "reverse_lengths")
        return self
