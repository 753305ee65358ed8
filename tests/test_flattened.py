"""The Transformer on flattened frames: what it may see, that it equals a plain loop over its tokens, and that it trains like any other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fbam.training import sweep_study
from fbam.training.flattened import FlattenedShape, FlattenedTransformer, WithActions
from fbam.training.loop import TrainingError
from fbam.training.step_flops import step_cell
from fbam.training.sweep import SweepConfig, sweep_cell
from fbam.training.windows import open_windows
from test_sweep import SETTINGS, quiet
from typist import record, tokenizer

SHAPE = FlattenedShape(cells=6, vocab_size=7, codes=11, width=8, heads=2, layers=2, length=4)


def window(batch: int = 2, length: int = 3) -> list[torch.Tensor]:
    """Code, fg, bg, style, (B, L, N_f), and actions, (B, L)."""
    generator = torch.Generator().manual_seed(0)
    sizes = (20, 256, 256, 8)
    frames = [torch.randint(size, (batch, length, SHAPE.cells), generator=generator) for size in sizes]
    return [*frames, torch.randint(SHAPE.vocab_size, (batch, length), generator=generator)]


def by_loop(model: FlattenedTransformer, window: list[torch.Tensor], b: int, t: int) -> torch.Tensor:
    """Logits of one window at one frame, from the list of tokens up to the last cell of that frame, attended to one by one."""
    *channels, action = window
    tokens = []
    for frame in range(t + 1):
        for cell in range(SHAPE.cells):
            values = [int(channel[b, frame, cell]) for channel in channels]
            values[0] = min(values[0], SHAPE.codes - 1)
            tokens.append(sum(field.weight[v] for field, v in zip(model.cell.fields, values, strict=True))
                          + model.place.weight[cell] + model.number.weight[frame])
        if frame < t:
            tokens.append(model.action.weight[action[b, frame]] + model.number.weight[frame])
    x = torch.stack(tokens)  # (T, D)
    for layer in model.layers:
        x = x + attended(layer.mixer, layer.mixer_norm(x))
        x = x + layer.mlp(layer.mlp_norm(x))
    return model.output(model.norm(x[-1]))


def attended(mixer, x: torch.Tensor) -> torch.Tensor:
    """Causal attention, (T, D) to (T, D), a position and a head at a time."""
    q, k, v = mixer.query_key_value(x).chunk(3, dim=-1)
    size, rows = mixer.head_size, []
    for t in range(len(x)):
        heads = []
        for h in range(mixer.heads):
            part = slice(h * size, (h + 1) * size)
            weights = torch.softmax(k[: t + 1, part] @ q[t, part] / size**0.5, dim=0)
            heads.append(weights @ v[: t + 1, part])
        rows.append(mixer.outer(torch.cat(heads)))
    return torch.stack(rows)


@torch.no_grad()
def test_it_equals_a_loop_over_its_tokens():
    model, given = FlattenedTransformer(SHAPE, seed=3), window()
    logits = model(*given)
    assert logits.shape == (2, 3, SHAPE.vocab_size)
    for b in range(2):
        for t in range(3):
            assert torch.allclose(logits[b, t], by_loop(model, given, b, t), atol=1e-5)


@torch.no_grad()
def test_an_action_is_predicted_from_what_was_before_it():
    model, given = FlattenedTransformer(SHAPE, seed=3), window()
    before = model(*given)
    for channel in range(5):
        changed = [part.clone() for part in given]
        changed[channel][:, 1] = (changed[channel][:, 1] + 1) % 5
        moved = (model(*changed) != before).any(dim=-1).any(dim=0).tolist()
        assert moved == ([False, True, True] if channel < 4 else [False, False, True]), "the action itself counts only after its frame"


def test_weights_are_a_function_of_shape_and_seed():
    one, same, other = (FlattenedTransformer(SHAPE, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one) and not torch.equal(one["place.weight"], other["place.weight"])


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("flattened")
    path = record(folder / "1.fbam", 1)
    tokenizer(folder / "tokenizer.json", [path])
    sweep = {"task": "t", "control": "flattened, rate 0.01", "lengths": [2], "seeds": [0], "main": "flattened", "steps": 3}
    (run,) = sweep_study.plan([sweep], {"t": sweep_study.data_of([path], folder / "tokenizer.json")}, {"t": 9}, SETTINGS)
    return run.config


def test_windows_are_those_of_the_others_with_the_actions(run):
    windows, _ = open_windows(run["recordings"], run["tokenizer"], 0.3)
    plain, acted = (source.draw(np.random.default_rng(5), 3, 2) for source in (windows, WithActions(windows)))
    assert torch.equal(plain.target, acted.target) and (plain.numbers == acted.numbers).all()
    for batch in (acted, acted.narrow(0, 3), acted.on("cpu")):
        assert len(batch.whole().frames) == 5 and torch.equal(batch.whole().frames[4], plain.target)
    assert WithActions(windows).tokens == windows.tokens


def test_it_trains_like_any_other_run_and_goes_on_where_it_stopped(run, tmp_path):
    whole, _ = sweep_cell(run, tmp_path / "whole", quiet)
    assert len(whole["losses"]) == 3 == run["steps"]

    class Stop(Exception):
        pass

    def stop(share: float) -> None:
        if share > 0.6:
            raise Stop

    with pytest.raises(Stop):
        sweep_cell(run, tmp_path / "parts", stop)
    assert sweep_cell(run, tmp_path / "parts", quiet)[0]["losses"] == whole["losses"]
    assert step_cell(run, tmp_path, quiet)[0]["flops"] > step_cell(run | {"main": "lstm"}, tmp_path, quiet)[0]["flops"]


def test_it_neither_streams_nor_spares_labels(run):
    for change in ({"frame_chunk": 1}, {"labels": "one"}):
        with pytest.raises(TrainingError, match="main: flattened needs"):
            SweepConfig.parse(run | change)
