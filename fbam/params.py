"""The typed, validated view of params.yaml: what can be set, in which unit, within which bounds.

Every key of the file is declared here once. An unknown key, a wrong type or an impossible value is an error that
names the key and what would be right. Profiles are overlays: they may only set keys that exist.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fbam.experiments.files import read_yaml

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]


class ParamsError(ValueError):
    """One line that names the file, the key and the remedy."""


class Section(BaseModel):
    """A section of params.yaml: exactly its own keys, exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Repository(Section):
    """One history: a bundle, a path or a URL, and the branch, tag or commit to stop at."""

    source: Annotated[str, Field(min_length=1)]
    revision: str | None = None


class Screen(Section):
    """Size of the terminal in cells, and frames a block of the recording."""

    rows: Annotated[int, Field(ge=3, le=1000)]
    columns: Annotated[int, Field(ge=12, le=1000)]
    block_frames: Annotated[int, Field(ge=1, le=65536)]


class Corpus(Section):
    """Section 10.1: git history to recording."""

    repositories: Annotated[list[Repository], Field(min_length=1)]
    commits: Natural
    reading: Screen
    training: Screen
    paste_file_characters: Count
    paste_line_characters: Count
    paste_commit_actions: Count


class Tokenizer(Section):
    """Section 10.1: the action tokenizer."""

    vocabulary: Annotated[int, Field(ge=300, le=65536)]


class Data(Section):
    """Section 10.1: what is drawn of the recordings."""

    shown: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=12)]


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
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name} {getattr(self, name)} names a value twice")
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


class Params(Section):
    """The whole file; one section a stage."""

    corpus: Corpus
    tokenizer: Tokenizer
    data: Data
    memory: Memory
    training: Training
    scaling: Scaling
    flops: Flops

    @model_validator(mode="after")
    def _consistent(self) -> Params:
        late = [step for step in self.scaling.steps if step > self.training.steps]
        if late:
            raise ValueError(f"scaling.steps {late} lie beyond training.steps {self.training.steps}")
        every, window = self.training.report_every, self.scaling.window * self.training.steps
        uneven = [step for step in (*self.scaling.steps, window, self.training.steps) if step % every]
        if uneven:
            raise ValueError(f"training.report_every {every} must divide training.steps, every one of scaling.steps and the "
                             f"window of {window:g} steps, but not {uneven[0]:g}")
        screen = self.corpus.training
        for name, poolings in [("training", self.training.poolings), ("memory", self.memory.poolings)]:
            if screen.rows * screen.columns % 2**poolings:
                raise ValueError(f"{name}.poolings {poolings} cannot halve a frame of "
                                 f"{screen.rows} x {screen.columns} cells that often (corpus.training)")
        return self


def read_sections(path: Path) -> dict[str, Any]:
    """A YAML mapping of sections. Raises ParamsError with line and column where it is not one."""
    try:
        content = read_yaml(path)
    except FileNotFoundError as error:
        raise ParamsError(f"{path} is missing; restore it with `git checkout -- {path}`") from error
    except ValueError as error:
        raise ParamsError(str(error)) from error
    if not isinstance(content, dict):
        raise ParamsError(f"{path} must hold sections with keys, like the params.yaml of the repository")
    return content


def _explain(error: dict[str, Any]) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"unknown key {key}: remove it or correct its name"
    if error["type"] == "missing":
        return f"key {key} is missing: add it, with its value from the repository's params.yaml"
    message = error["msg"].removeprefix("Value error, ")
    if not isinstance(error["input"], (dict, BaseModel)):
        message += f", got {error['input']!r} ({type(error['input']).__name__})"
    return f"{key}: {message}" if key else message


def parse(content: dict[str, Any], name: str = "params.yaml") -> Params:
    """Validate a mapping. Raises ParamsError that names every key at fault, on one line."""
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise ParamsError(f"{name}: " + "; ".join(map(_explain, error.errors()))) from error


def load(path: Path = Path("params.yaml")) -> Params:
    """Read and validate params.yaml."""
    return parse(read_sections(path), str(path))


def overlay(base: dict[str, Any], changes: dict[str, Any], name: str) -> dict[str, Any]:
    """`base` with the sections and keys of a profile replaced. Raises ParamsError for a key that `base` lacks."""
    merged = {section: dict(keys) for section, keys in base.items()}
    for section, keys in changes.items():
        if section not in merged or not isinstance(keys, dict):
            raise ParamsError(f"{name}: unknown section {section}: the sections are {', '.join(merged)}")
        for key, value in keys.items():
            if key not in merged[section]:
                raise ParamsError(f"{name}: unknown key {section}.{key}: remove it or correct its name")
            merged[section][key] = value
    return merged


def check_tree(root: Path) -> None:
    """Validate params.yaml and every profile beside it. Raises ParamsError."""
    base = read_sections(root / "params.yaml")
    parse(base)
    for file in sorted((root / "profiles").glob("*.yaml")):
        name = f"profiles/{file.name}"
        parse(overlay(base, read_sections(file), name), name)
