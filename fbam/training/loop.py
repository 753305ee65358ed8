r"""Training of one model on recordings, resumable at any moment (paper, section 10.4).

One step draws B windows of L frames and minimises the cross entropy of their actions, in nats, divided by all B L
supervised actions of the batch:

$$\mathrm{loss} = -\frac{1}{B L} \sum_{b=1}^{B} \sum_{t=1}^{L} \ln p(a_{b,t} \mid x_{b,1}, \dots, x_{b,t})$$

Gradients come from backpropagation through all L positions, plain where it fits into memory, else streaming, which gives
the same gradients up to rounding. The result is a function of configuration and
recordings: the windows of step s are drawn from a generator seeded by (seed, s), initial weights from the seed, the
arithmetic runs on one thread with deterministic kernels, and the held-out windows depend on neither seed nor L.
"""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field
from safetensors.torch import save
from torch.nn import functional as F
from torch.optim import Optimizer

from fbam.experiments.files import write_bytes
from fbam.models.action_model import ActionModel, ModelConfig
from fbam.recording.format import Recording
from fbam.recording.tokens import ActionTokenizer
from fbam.training.checkpoint import History, load_checkpoint, save_checkpoint
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.evaluation import score, summary
from fbam.training.optim import optimisers
from fbam.training.streaming import chunks, streaming_backward
from fbam.training.windows import LazyBatch, Windows


class TrainingError(ValueError):
    """The configuration is not one of a training; the message names the key."""


class NonFiniteLossError(ArithmeticError):
    """The loss is no longer a number; the message names the step and the file with the batch."""


class CellConfig(TrainingConfig):
    """Configuration of one training; all keys are required, as JSON values."""

    ERROR = TrainingError
    TRAINING = "a training"

    recordings: list[str] = Field(min_length=1)
    tokenizer: str
    data: str  # the fingerprint of these files, so that a training is never taken for one on other data
    length: int = Field(ge=1)
    batch: int = Field(ge=1)
    steps: int = Field(ge=1)
    seed: int = Field(ge=0)
    width: int
    heads: int
    poolings: int
    head_blocks: int
    layers: int
    codes: int
    muon_lr: float = Field(ge=0)
    adamw_lr: float = Field(ge=0)
    adamw_betas: list[float] = Field(min_length=2, max_length=2)
    weight_decay: float = Field(ge=0)
    held_out: float = Field(gt=0, lt=1)
    eval_windows: int = Field(ge=1)
    eval_length: int = Field(ge=1)
    checkpoint_every: int = Field(ge=1)
    frame_chunk: int = Field(ge=0)  # frames of a window that the head recomputes at a time; 0 = plain autograd
    state_every: int = Field(ge=1)  # positions between two kept states of the main model
    micro_batch: int = Field(ge=0)  # windows worked on at a time by streaming; 0 = all

    def windows(self) -> tuple[Windows, Windows]:
        """Open the recordings and return the training part and the held-out part.

        :raises TrainingError: the files are not those that ``data`` names
        """
        if fingerprint(self.recordings, self.tokenizer) != self.data:
            raise TrainingError(f"data: the recordings or the tokenizer changed since {self.data} was taken; run again")
        recordings = [Recording(Path(path)) for path in self.recordings]
        tokenizer = ActionTokenizer.load(Path(self.tokenizer))
        border = 1 - self.held_out
        return Windows(recordings, tokenizer, 0.0, border), Windows(recordings, tokenizer, border, 1.0)

    def build(self, windows: Windows) -> tuple[ActionModel, list[Optimizer]]:
        """Return the untrained model for frames and vocabulary of these windows, and its optimisers."""
        shape = {name: getattr(self, name) for name in ("codes", "width", "heads", "poolings", "head_blocks", "layers")}
        model = ActionModel(ModelConfig(windows.rows, windows.cols, windows.vocab_size, **shape), self.seed)
        rates = {name: getattr(self, name) for name in ("muon_lr", "adamw_lr", "weight_decay")}
        return model, optimisers(model, model.output, adamw_betas=tuple(self.adamw_betas), **rates)


def fingerprint(recordings: Sequence[Path | str], tokenizer: Path | str) -> str:
    """16 hexadecimal digits over the bytes of the training data."""
    digest = hashlib.sha256()
    for path in (*recordings, tokenizer):
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def plain_backward(model: ActionModel, batch: LazyBatch) -> float:
    """Add the gradients of the mean cross entropy by plain autograd and return it, in nats."""
    whole = batch.whole()
    loss = F.cross_entropy(model(*whole.frames).flatten(0, 1), whole.target.flatten())
    loss.backward()
    return loss.item()


def backward(model: ActionModel, batch: LazyBatch, cell: CellConfig) -> float:
    """Add the gradients in the way that the configuration names and return the mean cross entropy, in nats."""
    if cell.frame_chunk == 0:
        return plain_backward(model, batch)
    size = batch.target.shape[0]
    parts = [batch.narrow(i, j) for i, j in chunks(0, size, cell.micro_batch or size)]
    sizes = {"frame_chunk": cell.frame_chunk, "state_every": cell.state_every}
    return sum(streaming_backward(model, part, **sizes, share=part.target.shape[0] / size) for part in parts)


def train_step(model: ActionModel, optimisers: Sequence[Optimizer], gradients: Callable[[], float]) -> float:
    """Take one step of all optimisers and return the loss before it, in nats; a non-finite loss changes no weight.

    :param gradients: adds the gradients of the loss to those of the model and returns the loss
    """
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss = gradients()
    if math.isfinite(loss):
        for optimiser in optimisers:
            optimiser.step()
    return loss


def _stop_on(loss: float, step: int, batch: LazyBatch, folder: Path) -> None:
    """Keep the batch of a loss that is not finite and raise NonFiniteLossError."""
    path = folder / f"nonfinite-step-{step}.safetensors"
    write_bytes(path, save({name: tensor for name, tensor in vars(batch.whole()).items()}))
    raise NonFiniteLossError(
        f"loss is {loss} at step {step}; its batch is kept in {path}; lower the learning rates or look at the batch"
    )


def train_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Train one model from its last checkpoint to the end and evaluate it on the held-out part.

    :param config: the keys of ``CellConfig``, JSON values
    :param folder: folder of this training, kept between calls; the checkpoint of the last step remains in it
    :param tick: called after each step with the share of the steps done
    :returns: the result, a function of the configuration and the recordings, and what was measured on this machine
    :raises TrainingError: a wrong configuration
    :raises NonFiniteLossError: the loss is no longer a number
    """
    cell, folder = CellConfig.parse(config), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with deterministic():
        train, held_out = cell.windows()
        model, both = cell.build(train)
        history = load_checkpoint(folder, config, model, both)
        while history.step < cell.steps:
            _advance(cell, folder, train, model, both, history)
            if history.step % cell.checkpoint_every == 0 or history.step == cell.steps:
                save_checkpoint(folder, config, model, both, history)
            tick(history.step / cell.steps)
        started = time.process_time()
        scores = score(model, held_out.spread(cell.eval_windows, cell.eval_length, cell.batch))
        evaluation_seconds = time.process_time() - started
    result = {
        "parameters": model.parameter_count,
        "vocab_size": train.vocab_size,
        "train_tokens": train.tokens,
        "held_out_tokens": held_out.tokens,
        "losses": history.losses,
        **summary(scores, train.counts()),
    }
    return result, _measured(cell, history, evaluation_seconds)


def _advance(
    cell: CellConfig, folder: Path, windows: Windows, model: ActionModel, both: list[Optimizer], history: History
) -> None:
    """Take the next step and append it to the history."""
    started, step = time.process_time(), history.step
    batch = windows.draw(np.random.default_rng([cell.seed, step]), cell.batch, cell.length)
    loss = train_step(model, both, lambda: backward(model, batch, cell))
    if not math.isfinite(loss):
        _stop_on(loss, step, batch, folder)
    history.losses.append(loss)
    history.cpu_seconds.append(time.process_time() - started)


def _measured(cell: CellConfig, history: History, evaluation_seconds: float) -> dict[str, float]:
    """Times of this machine, in processor seconds; steps that a crash threw away do not count."""
    median = statistics.median(history.cpu_seconds)
    return {
        "cpu_seconds": sum(history.cpu_seconds),
        "cpu_seconds_a_step": median,
        "frames_a_cpu_second": cell.batch * cell.length / median,
        "evaluation_cpu_seconds": evaluation_seconds,
    }
