"""Sections 10.2 to 10.4: model, backward pass, training."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fbam.schema.base import Count, Natural, Rate, Section, Share, check_distinct


class Shape(Section):
    """Sizes of an action model."""

    width: Count
    heads: Count
    poolings: Natural
    head_blocks: Natural
    layers: Count
    codes: Annotated[int, Field(ge=2)]

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        return self


class Trained(Shape):
    """What every training of an action model needs: its sizes and frame head, its optimisers, and how its gradients are computed."""

    frame_head: Literal["attention", "conv"]
    muon_lr: Rate
    adamw_lr: Rate
    adamw_betas: Annotated[list[Share], Field(min_length=2, max_length=2)]
    weight_decay: Annotated[float, Field(ge=0)]
    schedule: Literal["constant", "cosine"]
    warm_up: Natural
    held_out: Share
    checkpoint_every: Count
    frame_chunk: Natural
    state_every: Count
    micro_batch: Natural
    device: Literal["cpu", "cuda"]


class Model(Shape):
    """Section 10.2: what the page on the model draws, counts and sends."""

    gradient_chunks: Annotated[list[Annotated[list[Count], Field(min_length=3, max_length=3)]], Field(min_length=1)]
    traffic_lengths: Annotated[list[Count], Field(min_length=2)]
    traffic_batch: Count
    traffic_steps: Count
    processes: Annotated[int, Field(ge=2)]
    rate: Rate

    @model_validator(mode="after")
    def _consistent(self) -> Model:
        if self.traffic_batch < self.processes:
            raise ValueError(f"traffic_batch {self.traffic_batch} must be at least processes {self.processes}")
        return self


class Training(Trained):
    """Sections 10.2 to 10.4: model, optimiser and grid."""

    lengths: Annotated[list[Count], Field(min_length=1)]
    batch: Count
    labels: Natural
    steps: Count
    seeds: Annotated[list[Natural], Field(min_length=1)]
    reduction: Literal["lstm", "mean", "last"]
    main: Literal["lstm", "attention"]
    eval_windows: Annotated[int, Field(ge=2)]
    eval_lengths: Annotated[list[Count], Field(min_length=1)]
    report_every: Count

    @model_validator(mode="after")
    def _consistent(self) -> Training:
        for name in ("lengths", "seeds", "eval_lengths"):
            check_distinct(name, getattr(self, name))
        if self.main == "attention" and self.frame_chunk:
            raise ValueError(f"main attention cannot be streamed: set frame_chunk {self.frame_chunk} to 0")
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
