"""Section 10.1: corpus, tokenizer and what is drawn of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fbam.schema.base import Count, Natural, Repository, Screen, Section


class Corpus(Section):
    """Section 10.1: git history to recording."""

    repositories: Annotated[list[Repository], Field(min_length=1)]
    commits: Natural
    message: Literal["first", "last", "none"]
    scheduler: Annotated[str, Field(min_length=1)] | None
    reading: Screen
    training: Screen
    paste_file_characters: Count
    paste_line_characters: Count
    paste_commit_actions: Count


class Tokenizer(Section):
    """Section 10.1: the action tokenizer."""

    vocabulary: Annotated[int, Field(ge=300, le=65536)]


class Rate(Section):
    """Section 10.1: what is compiled to measure the rate."""

    history: Repository
    commits: Natural


class Data(Section):
    """Section 10.1: what is drawn of the recordings."""

    history: Repository
    commit: Count
    newest: Annotated[int, Field(ge=1, le=200)]
    shown: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=12)]
    played: Annotated[int, Field(ge=1, le=5000)]
    compared: Count
    block_frames: Annotated[list[Count], Field(min_length=1)]
