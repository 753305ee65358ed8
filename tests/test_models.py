"""The layers against the equations written out, the model against what the paper says of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from fbam.models.action_model import ActionModel, ModelConfig, ModelConfigError
from fbam.models.frame_head import Attention, AttentionHead, pool
from fbam.sequence.lstm import LSTM

CONFIG = ModelConfig(
    rows=2, cols=8, vocab_size=11, codes=64, width=12, heads=2, poolings=2, head_blocks=1, layers=2
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def window(batch: int = 3, length: int = 5, config: ModelConfig = CONFIG) -> list[torch.Tensor]:
    """Random frames: code, fg, bg, style, (B, L, N_f) each."""
    shape = (batch, length, config.cells)
    return [torch.randint(high, shape) for high in (config.codes, 16, 16, 8)]


def test_lstm_forward_is_its_equation_step_by_step():
    layer, x = LSTM(5, 7), torch.randn(3, 6, 5)
    state = (torch.randn(3, 7), torch.randn(3, 7))
    fast, (h, c) = layer(x, state)
    slow, now = [], state
    for t in range(6):
        y, now = layer.step(x[:, t], now)
        slow.append(y)
    torch.testing.assert_close(fast, torch.stack(slow, dim=1))
    torch.testing.assert_close((h, c), now)


def test_lstm_goes_on_from_the_state_it_returned():
    layer, x = LSTM(5, 7), torch.randn(3, 6, 5)
    whole, _ = layer(x)
    first, state = layer(x[:, :2])
    rest, _ = layer(x[:, 2:], state)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), whole)
    assert LSTM.ASSOCIATIVE is False


def test_attention_is_a_softmax_over_all_positions_of_the_frame():
    layer, x = Attention(12, heads=3), torch.randn(2, 5, 12)
    q, k, v = layer.query_key_value(x).split(12, dim=-1)
    heads = []
    for i in range(3):
        part = slice(4 * i, 4 * i + 4)
        weights = torch.softmax(q[..., part] @ k[..., part].transpose(1, 2) / 2, dim=-1)  # (n, T, T)
        heads.append(weights @ v[..., part])
    torch.testing.assert_close(layer(x), layer.outer(torch.cat(heads, dim=-1)))


def test_pooling_averages_neighbours():
    x = torch.arange(8.0).view(1, 4, 2)
    assert pool(x).tolist() == [[[1.0, 2.0], [5.0, 6.0]]]


def test_head_halves_the_sequence_at_each_stage():
    head = AttentionHead(cells=16, codes=64, width=12, heads=2, poolings=2, blocks=1)
    lengths = []
    for part in [*head.stages, *head.blocks, head.reduction]:
        part.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
    out = head(*(channel[0] for channel in window()))
    assert lengths == [16, 8, 4, 4]
    assert out.shape == (5, 12)


@pytest.mark.parametrize("channel", range(4))
@pytest.mark.parametrize("cell", [0, 7, 15])
def test_every_channel_of_every_cell_matters(channel: int, cell: int):
    head = ActionModel(CONFIG).head
    frames = [part[0] for part in window()]
    before = head(*frames)
    frames[channel][:, cell] = (frames[channel][:, cell] + 1) % 8
    assert (head(*frames) != before).any(dim=1).all()


def test_a_cell_is_the_sum_of_its_five_embeddings():
    head = ActionModel(CONFIG).head
    code, fg, bg, style = (part[0] for part in window())
    embedded = head.embed(code, fg, bg, style)  # (n, N_f, D)
    for n, cell in [(0, 0), (2, 7), (4, 15)]:
        expected = (
            head.code.weight[code[n, cell]] + head.fg.weight[fg[n, cell]] + head.bg.weight[bg[n, cell]]
            + head.style.weight[style[n, cell]] + head.position.weight[cell]
        )
        torch.testing.assert_close(embedded[n, cell], expected)


def test_rare_code_points_share_the_last_entry():
    head = ActionModel(CONFIG).head
    rest = [torch.zeros(1, 16, dtype=torch.int64)] * 3
    last, beyond, before = (head(torch.full((1, 16), code), *rest) for code in (63, 0x1F600, 62))
    assert torch.equal(last, beyond) and not torch.equal(last, before)


def test_a_future_frame_does_not_move_earlier_logits():
    model, frames = ActionModel(CONFIG), window()
    before = model(*frames)
    for t in range(5):
        changed = [part.clone() for part in frames]
        changed[0][:, t] = (changed[0][:, t] + 1) % CONFIG.codes
        after = model(*changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert (after[:, t:] != before[:, t:]).any(dim=-1).all()


def test_windows_of_a_batch_do_not_touch_each_other():
    model, frames = ActionModel(CONFIG), window()
    alone = torch.cat([model(*(part[b : b + 1] for part in frames)) for b in range(3)])
    torch.testing.assert_close(model(*frames), alone)


def test_a_model_starts_near_the_entropy_of_the_vocabulary():
    logits = ActionModel(CONFIG)(*window(batch=50))
    loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(11, (250,)))
    assert loss.item() == pytest.approx(math.log(11), abs=0.3)


def test_weights_follow_from_the_seed_and_leave_the_generator_alone():
    state = torch.get_rng_state()
    first, same, other = (ActionModel(CONFIG, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["head.code.weight"], other["head.code.weight"])
    assert not torch.equal(first["layers.0.mixer.cell.weight_hh_l0"], other["layers.0.mixer.cell.weight_hh_l0"])


def test_parameter_count_is_what_the_architecture_says():
    d, v, n, p, lt, ls = 12, 11, 16, 2, 1, 2
    block = 12 * d**2 + 2 * d
    lstm = 8 * d**2 + 8 * d
    head = (64 + n + 256 + 256 + 8) * d + (p + lt) * block + d + lstm
    main = ls * (lstm + 8 * d**2 + 2 * d) + d + v * d + v
    assert ActionModel(CONFIG).parameter_count == head + main


@pytest.mark.parametrize(
    ("change", "named"),
    [({"poolings": 5}, "poolings"), ({"heads": 5}, "heads"), ({"width": 0}, "width"), ({"poolings": -1}, "poolings")],
)
def test_impossible_shapes_are_refused_by_name(change: dict, named: str):
    with pytest.raises(ModelConfigError, match=named):
        replace(CONFIG, **change)


def test_a_head_without_pooling_or_blocks_is_only_the_reduction():
    model = ActionModel(replace(CONFIG, poolings=0, head_blocks=0))
    assert model(*window()).shape == (3, 5, 11)
