"""Sections 10.2 to 10.5 and appendix J: backward pass, training, scaling, FLOPs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Rate, Section, Share, check_distinct


class Training(Section):
    """Sections 10.2 to 10.4: model, optimiser and grid."""

    lengths: Annotated[list[Count], Field(min_length=1)]
    batch: Count
    labels: Natural
    steps: Count
    seeds: Annotated[list[Natural], Field(min_length=1)]
    width: Count
    heads: Count
    poolings: Natural
    head_blocks: Natural
    layers: Count
    codes: Annotated[int, Field(ge=2)]
    muon_lr: Rate
    adamw_lr: Rate
    adamw_betas: Annotated[list[Share], Field(min_length=2, max_length=2)]
    weight_decay: Annotated[float, Field(ge=0)]
    held_out: Share
    eval_windows: Count
    eval_length: Count
    checkpoint_every: Count
    frame_chunk: Natural
    state_every: Count
    micro_batch: Natural
    report_every: Count

    @model_validator(mode="after")
    def _consistent(self) -> Training:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        for name in ("lengths", "seeds"):
            check_distinct(name, getattr(self, name))
        uneven = [length for length in self.lengths if self.labels % length]
        if uneven:
            raise ValueError(f"labels {self.labels} must be a multiple of every length (or 0), but {uneven} do not divide it")
        return self


class Memory(Section):
    """Section 10.3: the memory and time of one backward pass."""

    streaming_lengths: Annotated[list[Count], Field(min_length=2)]
    checkpointed_lengths: Annotated[list[Count], Field(min_length=1)]
    plain_lengths: Annotated[list[Count], Field(min_length=1)]
    batch: Count
    width: Count
    poolings: Natural
    head_blocks: Natural
    layers: Count
    codes: Annotated[int, Field(ge=2)]
    frame_chunk: Count
    state_every: Count
    passes: Count

    @model_validator(mode="after")
    def _consistent(self) -> Memory:
        if not set(self.plain_lengths) & set(self.streaming_lengths):
            raise ValueError("plain_lengths and streaming_lengths must share a length, at which their times are compared")
        return self


class Scaling(Section):
    """Section 10.5: where and how the law is read."""

    steps: Annotated[list[Count], Field(min_length=3, max_length=3)]
    window: Share
    resamples: Annotated[int, Field(ge=100)]
    seed: Natural


class Flops(Section):
    """Appendix J: the hyperparameters of the FLOP estimate."""

    batch: Count
    width: Count
    cells: Count
    poolings: Natural
    head_blocks: Natural
    length: Count
    layers: Count
    rate: Rate
