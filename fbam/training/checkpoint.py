"""A checkpoint: one file with all that a training needs to go on as if it had never stopped (paper, section 10.4).

The file is in the safetensors format: weights, the state of each optimiser and the losses so far as tensors, the
configuration and the step as JSON in its header. It is written whole and then renamed, so a crash leaves the checkpoint
before or the new one. No generator state is needed, because the windows of a step follow from the seed and the step. The
tokenizer lies beside it, so that ``load_model`` needs nothing but the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from fbam.experiments.files import canonical_json, write_bytes
from fbam.models.action_model import ActionModel, ModelConfig
from fbam.recording.tokens import ActionTokenizer

NAME = "checkpoint.safetensors"
TOKENIZER = "tokenizer.json"


class CheckpointError(ValueError):
    """The checkpoint in a folder cannot be used; the message names the folder and the remedy."""


@dataclass
class History:
    """What a training has gone through, one entry a step: the loss in nats and the processor seconds."""

    losses: list[float]
    cpu_seconds: list[float]

    @property
    def step(self) -> int:
        """Number of steps done."""
        return len(self.losses)


def _pack(optimisers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """Name every tensor of the optimisers' state: optimiser, parameter, quantity."""
    return {
        f"optimiser.{i}.{number}.{name}": value
        for i, optimiser in enumerate(optimisers)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }


def _unpack(optimisers: Sequence[Optimizer], tensors: dict[str, Tensor]) -> None:
    """Put the tensors that ``_pack`` named back into the optimisers."""
    states: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimisers]
    for key, value in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimiser":
            i, number, name = rest.split(".")
            states[int(i)].setdefault(int(number), {})[name] = value
    for optimiser, state in zip(optimisers, states):
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def save_checkpoint(
    folder: Path, config: dict, model: ActionModel, optimisers: Sequence[Optimizer], history: History
) -> None:
    """Replace the checkpoint of ``folder`` in one rename.

    :param folder: folder of this training
    :param config: configuration of this training, JSON values
    :param model: the model
    :param optimisers: its optimisers
    :param history: losses and times of all steps so far
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()} | _pack(optimisers)
    tensors["history.losses"] = torch.tensor(history.losses, dtype=torch.float64)
    tensors["history.cpu_seconds"] = torch.tensor(history.cpu_seconds, dtype=torch.float64)
    header = {"config": canonical_json(config), "model": canonical_json(asdict(model.config)), "step": str(history.step)}
    write_bytes(folder / NAME, save(tensors, header))


def load_checkpoint(folder: Path, config: dict, model: ActionModel, optimisers: Sequence[Optimizer]) -> History:
    """Bring model and optimisers to where the checkpoint of ``folder`` stands; without one, leave them as they are.

    :param folder: folder of this training
    :param config: configuration of this training, which must be that of the checkpoint
    :param model: the model, changed in place
    :param optimisers: its optimisers, changed in place
    :returns: losses and times of the steps done
    :raises CheckpointError: damaged file, or a checkpoint of another configuration
    """
    for leftover in folder.glob(f".{NAME}.*"):  # of a write that was killed
        leftover.unlink()
    if not (folder / NAME).exists():
        return History([], [])
    tensors, header = _read(folder / NAME)
    if header["config"] != json.loads(canonical_json(config)):
        raise CheckpointError(f"{folder / NAME} belongs to another configuration; give each configuration its own folder")
    _weights(model, tensors)
    _unpack(optimisers, tensors)
    return History(tensors["history.losses"].tolist(), tensors["history.cpu_seconds"].tolist())


def load_model(folder: Path) -> tuple[ActionModel, ActionTokenizer]:
    """Return the model of a training's last checkpoint, in evaluation mode on the processor, and its tokenizer.

    To drive an editor frame by frame, carry the state on (code, fg, bg, style are (B, 1, N_f) int64)::

        model, tokenizer = load_model(folder)
        states = model.initial_state(1)
        x, states = model.advance(model.encode(code, fg, bg, style), states)  # (1, 1, D)
        logits = model.output(x)[0, -1]  # (V,)

    Rows and columns of its frames are ``model.config.rows`` and ``model.config.cols``.

    :param folder: folder of the training, as given to ``train_cell``; for a grid cell ``cell_folder(train_cell, config, root)``
    :raises CheckpointError: no checkpoint in it, or a damaged one
    """
    folder = Path(folder)
    if not (folder / NAME).exists():
        raise CheckpointError(f"{folder} has no {NAME}; train the model first")
    tensors, header = _read(folder / NAME)
    model = ActionModel(ModelConfig(**header["model"]))
    _weights(model, tensors)
    return model.eval(), ActionTokenizer.load(folder / TOKENIZER)


def training_config(folder: Path) -> dict:
    """Return the configuration of the training that a folder holds. Raises CheckpointError as ``load_model`` does."""
    return _read(Path(folder) / NAME)[1]["config"]


def _weights(model: ActionModel, tensors: dict[str, Tensor]) -> None:
    prefix = "model."
    model.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})


def _read(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Return the tensors of one checkpoint, and configuration and shape of the model from its header."""
    try:
        with safe_open(path, framework="pt") as file:
            header = {name: json.loads(file.metadata()[name]) for name in ("config", "model")}
            return {name: file.get_tensor(name) for name in file.keys()}, header
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); delete it to train from the start") from error
