"""The typed, validated view of params.yaml: what can be set, in which unit, within which bounds.

Every key of the file is declared once, in fbam/schema. An unknown key, a wrong type or an impossible value is an error that
names the key and what would be right. Profiles are overlays: they may only set keys that exist.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from fbam.experiments.files import read_yaml
from fbam.schema.base import Section
from fbam.schema.data import Corpus, Data, Rate, Tokenizer
from fbam.schema.diagnostics import Criticality, DiffInflate, Frjt, Maze
from fbam.schema.model import Memory, Model, Training
from fbam.schema.rollout import Rollout
from fbam.schema.scaling import Ablations, Flops, Scaling, Walltime
from fbam.schema.theory import Depth, Theory


class ParamsError(ValueError):
    """One line that names the file, the key and the remedy."""


class Params(Section):
    """The whole file; one section a stage."""

    depth: Depth
    theory: Theory
    frjt: Frjt
    criticality: Criticality
    maze: Maze
    diff_inflate: DiffInflate
    corpus: Corpus
    rate: Rate
    tokenizer: Tokenizer
    data: Data
    model: Model
    memory: Memory
    training: Training
    rollout: Rollout
    scaling: Scaling
    walltime: Walltime
    ablations: Ablations
    flops: Flops

    @model_validator(mode="after")
    def _consistent(self) -> Params:
        every = self.training.report_every
        if self.training.steps % every:
            raise ValueError(f"training.report_every {every} must divide training.steps {self.training.steps}")
        screen = self.corpus.training
        halved = {name: section.poolings for name, section in [("model", self.model), ("memory", self.memory), ("training", self.training)]
                  if getattr(section, "frame_head", "attention") == "attention"}
        for name, poolings in halved.items():
            if screen.rows * screen.columns % 2**poolings:
                raise ValueError(f"{name}.poolings {poolings} cannot halve a frame of "
                                 f"{screen.rows} x {screen.columns} cells that often (corpus.training)")
        sweep, settings = self.scaling.frame, self.scaling.settings
        if settings.frame_head == "attention" and sweep.rows * sweep.columns % 2**settings.poolings:
            raise ValueError(f"scaling.settings.poolings {settings.poolings} cannot halve a frame of {sweep.rows} x {sweep.columns} "
                             "cells that often")
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
