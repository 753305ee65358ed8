"""Section 10.1: corpus, tokenizer and what is drawn of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fbam.schema.base import Count, Natural, Repository, Screen, Section


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
