"""The trainings and rows of the question whether a commit's message conditions its edits (`messages`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fbam.experiments.grid import Outcome, cell_folders
from fbam.experiments.scaling_rows import ALL, FOLLOWING, MessageRow
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.messages import READINGS, message_cell
from fbam.training.sweep_study import data_of


def configs(recordings: Sequence[Path], tokenizer: Path, messages: Mapping[str, Any], settings: Mapping[str, Any]) -> list[dict]:
    """One configuration of `message_cell` a seed; the tokenizer is trained on the first recording and written.

    :param recordings: the one with messages and the one without
    :param messages: section `scaling.messages`
    :param settings: what all runs of the sweeps share; what does not fit these trainings is replaced
    """
    ActionTokenizer.train([Recording(recordings[0]).actions], messages["vocabulary"]).save(tokenizer)
    shared = {name: value for name, value in settings.items() if name != "labels"} | {"main": "lstm", "frame_chunk": 0}
    own = {name: messages[name] for name in ("message_frames", "length", "batch", "steps")}
    return [{**shared, **data_of(recordings, tokenizer), **own, "seed": seed} for seed in messages["seeds"]]


def reading_configs(trained: Sequence[dict], windows: int, root: Path) -> list[dict]:
    """One configuration of `reading_cell` a training; `root` is the folder of the grid that trains."""
    return [{"model": str(folder), "windows": windows} for folder in cell_folders(message_cell, trained, root)]


def rows(trained: Sequence[dict], evaluations: Sequence[Outcome]) -> Iterator[MessageRow]:
    """One row a seed, held-out commit and kind of windows."""
    for config, evaluation in zip(trained, evaluations, strict=True):
        found = evaluation.result
        commits, follows = np.array(found["commits"]), np.array(found["follows"])
        for at, wanted in ((ALL, np.ones(len(commits), dtype=bool)), (FOLLOWING, follows)):
            for commit in np.unique(commits[wanted]).tolist():
                mine = wanted & (commits == commit)
                losses = {name: float(np.array(found[name])[mine].mean()) for name in READINGS}
                yield MessageRow(at=at, seed=config["seed"], commit=commit, windows=int(mine.sum()), **losses)
