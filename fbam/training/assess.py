"""Cells of the grid that evaluate a trained model on the held-out part of its recordings (paper, section 10.4.1, appendix H).

They stand apart from training: another window length or measure is another cell here and no new training.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from fbam.training.checkpoint import load_model, training_config
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.evaluation import score, summary
from fbam.training.loop import CellConfig
from fbam.training.windows import WindowError

BATCH = 8
"""Windows read at a time."""


class AssessmentError(ValueError):
    """The configuration is not one of an evaluation; the message names the key."""


class EvaluationConfig(TrainingConfig):
    """Configuration of one evaluation; all keys are required, as JSON values."""

    ERROR = AssessmentError
    TRAINING = "an evaluation"

    model: str  # folder of the training; for a grid its name has the hash of configuration, code and versions in it
    windows: int = Field(ge=2)  # held-out windows wanted; fewer are taken where there are fewer
    length: int = Field(ge=1)  # frames a window, whatever length the model was trained on


def evaluate_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Evaluate one model at one length.

    :param config: the keys of ``EvaluationConfig``, JSON values
    :returns: what ``evaluation.summary`` returns, and processor seconds
    :raises WindowError: the held-out part has fewer than two such windows
    """
    wanted, started = EvaluationConfig.parse(config), time.process_time()
    with deterministic():
        model, _ = load_model(Path(wanted.model))
        cell = CellConfig.parse(training_config(Path(wanted.model)))
        train, held_out = cell.windows()
        scores = score(model.to(cell.device), held_out.spread(wanted.windows, wanted.length, BATCH))
        if scores.loss.shape[0] < 2:
            raise WindowError(f"the held-out part has one window of {wanted.length} tokens and an interval needs two; "
                              "lower training.eval_lengths or raise training.held_out")
        result = summary(scores, train.counts())
    return result, {"cpu_seconds": time.process_time() - started}
