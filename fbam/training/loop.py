r"""Training of one model on recordings, resumable at any moment (paper, section 10.4).

One step draws B windows of L frames and minimises the cross entropy of their actions, in nats, divided by all B L
supervised actions of the batch:

$$\mathrm{loss} = -\frac{1}{B L} \sum_{b=1}^{B} \sum_{t=1}^{L} \ln p(a_{b,t} \mid x_{b,1}, \dots, x_{b,t})$$

Gradients come from backpropagation through all L positions, plain where it fits into memory, else streaming, which gives
the same gradients up to rounding. The result is a function of configuration and
recordings: the windows of step s are drawn from a generator seeded by (seed, s), initial weights from the seed, the
arithmetic runs on one thread with deterministic kernels. Nothing is evaluated here (``assess.py``), so that other windows or measures
of the evaluation train nothing anew.
"""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F
from torch.optim import Optimizer

from fbam.experiments.files import write_bytes
from fbam.models.action_model import POSITIONS, ActionModel, ModelConfig
from fbam.training.checkpoint import TOKENIZER, History, load_checkpoint, save_checkpoint
from fbam.training.config import TrainingConfig
from fbam.training.determinism import deterministic
from fbam.training.optim import optimisers
from fbam.training.parallel import ALONE, Processes
from fbam.training.streaming import chunks, streaming_backward
from fbam.training.supervised import rate_factor
from fbam.training.windows import LazyBatch, Windows, open_windows


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
    frame_head: str
    reduction: str
    main: str
    muon_lr: float = Field(ge=0)
    adamw_lr: float = Field(ge=0)
    adamw_betas: list[float] = Field(min_length=2, max_length=2)
    weight_decay: float = Field(ge=0)
    schedule: Literal["constant", "cosine"]  # of both rates, after the warm-up
    warm_up: int = Field(ge=0)  # steps over which the rates rise
    held_out: float = Field(gt=0, lt=1)
    checkpoint_every: int = Field(ge=1)
    frame_chunk: int = Field(ge=0)  # frames of a window that the head recomputes at a time; 0 = plain autograd
    state_every: int = Field(ge=1)  # positions between two kept states of the main model
    micro_batch: int = Field(ge=0)  # windows worked on at a time by streaming; 0 = all
    device: Literal["cpu", "cuda"]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.main == "attention" and (self.frame_chunk or self.length > POSITIONS):
            raise ValueError(f"main: attention needs frame_chunk 0 (it cannot be streamed) and a length of at most {POSITIONS}")
        return self

    def check_data(self) -> None:
        """Raise TrainingError if the files are not those that ``data`` names."""
        if fingerprint(self.recordings, self.tokenizer) != self.data:
            raise TrainingError(f"data: the recordings or the tokenizer changed since {self.data} was taken; run again")

    def windows(self) -> tuple[Windows, Windows]:
        """Open the recordings and return the training part and the held-out part.

        :raises TrainingError: the files are not those that ``data`` names
        """
        self.check_data()
        return open_windows(self.recordings, self.tokenizer, self.held_out)

    def build(self, windows: Windows) -> tuple[ActionModel, list[Optimizer]]:
        """Return the untrained model for frames and vocabulary of these windows, and its optimisers."""
        names = ("codes", "width", "heads", "poolings", "head_blocks", "layers", "frame_head", "reduction", "main")
        shape = {name: getattr(self, name) for name in names}
        model = ActionModel(ModelConfig(windows.rows, windows.cols, windows.vocab_size, **shape), self.seed).to(self.device)
        return model, self.optimisers(model)

    def optimisers(self, model: nn.Module) -> list[Optimizer]:
        """The optimisers of a model whose last layer is ``output``."""
        rates = {name: getattr(self, name) for name in ("muon_lr", "adamw_lr", "weight_decay")}
        return optimisers(model, model.output, adamw_betas=tuple(self.adamw_betas), **rates)


def fingerprint(recordings: Sequence[Path | str], tokenizer: Path | str) -> str:
    """16 hexadecimal digits over the bytes of the training data."""
    digest = hashlib.sha256()
    for path in (*recordings, tokenizer):
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def plain_backward(model: ActionModel, batch: LazyBatch, share: float = 1.0) -> float:
    """Add the gradients of ``share`` times the mean cross entropy by plain autograd and return it, in nats."""
    whole = batch.whole()
    loss = F.cross_entropy(model(*whole.frames).flatten(0, 1), whole.target.flatten()) * share
    loss.backward()
    return loss.item()


def backward(model: ActionModel, batch: LazyBatch, cell: CellConfig, share: float = 1.0) -> float:
    """Add the gradients in the way that the configuration names and return ``share`` times the mean cross entropy, in nats."""
    if cell.frame_chunk == 0:
        return plain_backward(model, batch, share)
    size = batch.target.shape[0]
    parts = [batch.narrow(i, j) for i, j in chunks(0, size, cell.micro_batch or size)]
    sizes = {"frame_chunk": cell.frame_chunk, "state_every": cell.state_every}
    return sum(streaming_backward(model, part, **sizes, share=share * part.target.shape[0] / size) for part in parts)


def train_step(
    model: ActionModel, optimisers: Sequence[Optimizer], gradients: Callable[[], float], group: Processes = ALONE
) -> float:
    """Take one step of all optimisers and return the loss before it, in nats; a non-finite loss changes no weight.

    :param gradients: adds the gradients of this process's part of the loss to those of the model and returns that part
    :param group: the processes whose parts are added up
    """
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss = group.add_up(model, gradients())
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


def train_cell(
    config: dict, folder: Path, tick: Callable[[float], None], group: Processes = ALONE, kind: type[CellConfig] = CellConfig
) -> tuple[dict, dict]:
    """Train one model from its last checkpoint to the end.

    :param config: the keys of ``CellConfig``, JSON values
    :param folder: folder of this training, kept between calls; the checkpoint of the last step and the tokenizer remain in it
    :param tick: called after each step with the share of the steps done
    :param group: the processes that train together; the first one writes
    :param kind: class of the configuration, which may draw other windows
    :returns: the result, a function of the configuration and the recordings, and what was measured on this machine
    :raises TrainingError: a wrong configuration
    :raises NonFiniteLossError: the loss is no longer a number
    """
    cell, folder = kind.parse(config), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with deterministic():
        train, held_out = cell.windows()
        model, both = cell.build(train)
        history = load_checkpoint(folder, config, model, both)
        group.agree(started := history.step)
        if group.rank == 0:
            write_bytes(folder / TOKENIZER, Path(cell.tokenizer).read_bytes())
        while history.step < cell.steps:
            _advance(cell, folder, train, model, both, history, group)
            if group.rank == 0 and (history.step % cell.checkpoint_every == 0 or history.step == cell.steps):
                save_checkpoint(folder, config, model, both, history)
            tick(history.step / cell.steps)
    result = {
        "parameters": model.parameter_count,
        "vocab_size": train.vocab_size,
        "train_tokens": train.tokens,
        "held_out_tokens": held_out.tokens,
        "losses": history.losses,
    }
    sent = group.reduced_bytes // max(1, history.step - started)
    return result, _measured(cell, history) | {"processes": group.size, "reduced_bytes_a_step": sent}


def _advance(
    cell: CellConfig, folder: Path, windows: Windows, model: ActionModel, both: list[Optimizer], history: History, group: Processes
) -> None:
    """Take the next step and append it to the history."""
    started, step = time.process_time(), history.step
    batch = windows.draw(np.random.default_rng([cell.seed, step]), cell.batch, cell.length)
    factor = rate_factor(step, cell.steps, cell.schedule, cell.warm_up)
    for optimiser, rate in zip(both, (cell.muon_lr, cell.adamw_lr), strict=True):
        optimiser.param_groups[0]["lr"] = factor * rate
    part = group.share(batch).on(cell.device)
    loss = train_step(model, both, lambda: backward(model, part, cell, part.target.shape[0] / cell.batch), group)
    if not math.isfinite(loss):
        _stop_on(loss, step, batch, folder)
    history.losses.append(loss)
    history.cpu_seconds.append(time.process_time() - started)


def _measured(cell: CellConfig, history: History) -> dict[str, float]:
    """Times of this machine, in processor seconds; steps that a crash threw away do not count."""
    median = statistics.median(history.cpu_seconds)
    return {
        "cpu_seconds": sum(history.cpu_seconds),
        "cpu_seconds_a_step": median,
        "frames_a_cpu_second": cell.batch * cell.length / median,
    }
