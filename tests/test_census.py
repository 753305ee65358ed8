"""Parameters and FLOPs of the parts, against the formulas of appendix J, torch's own counter and the whole model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fbam.analysis import flops
from fbam.models.action_model import FRAME_HEADS, MAIN_MODELS, ActionModel, ModelConfig
from fbam.models.census import census, part_of
from fbam.models.frame_head import REDUCTIONS

CONFIG = ModelConfig(rows=4, cols=12, vocab_size=11, codes=64, width=8, heads=2, poolings=2, head_blocks=3, layers=2)


@pytest.mark.parametrize("head", FRAME_HEADS)
@pytest.mark.parametrize("main", MAIN_MODELS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_parts_are_the_whole(head, main, reduction):
    model = ActionModel(replace(CONFIG, frame_head=head, main=main, reduction=reduction))
    parts = census(model, 5)
    assert sum(part.parameters for part in parts) == model.parameter_count
    assert parts[0].inputs == (48,) and parts[0].outputs == ((48, 8) if head == "attention" else (4, 12, 8))
    assert next(part for part in parts if part.name == "output").outputs == (5, 11)


def test_the_paper_head_and_main_model_cost_what_appendix_j_says():
    shape = flops.Shape(B=1, D=8, N_f=48, P=2, L_t=3, T_s=5, L_s=2)
    for main, expected in [("lstm", flops.main_lstm(shape)), ("attention", flops.main_attention(shape))]:
        parts = census(ActionModel(replace(CONFIG, main=main)), 5)
        assert sum(part.flops for part in parts if part.name.startswith("head")) == flops.head_sequence(shape)
        assert sum(part.flops for part in parts if part.name.startswith("main")) == expected


@pytest.mark.parametrize("head", FRAME_HEADS)
def test_the_heads_count_is_torchs_where_torch_counts(head):
    """torch's counter knows no LSTM and no fused attention, so here the reduction is a mean and attention is matrix products."""
    model = ActionModel(replace(CONFIG, frame_head=head, reduction="mean"))
    blank = torch.zeros(1, 5, 48, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model.encode(blank, blank, blank, blank)
    assert sum(part.flops for part in census(model, 5) if part.name.startswith("head")) == counter.get_total_flops()


def test_shapes_run_through():
    parts = {part.name: part for part in census(ActionModel(CONFIG), 5)}
    assert [parts[name].inputs for name in ("head, stage 1", "head, stage 2", "head, blocks", "head, reduction")] == [
        (48, 8), (24, 8), (12, 8), (12, 8)]
    conv = {part.name: part for part in census(ActionModel(replace(CONFIG, frame_head="conv")), 5)}
    assert conv["head, stage 2"].inputs == (2, 6, 8) and conv["head, reduction"].inputs == (3, 8)
    assert parts["head, blocks"].repeats == 3 and parts["main, mixer"].repeats == 2


def test_a_module_without_a_part_is_an_error():
    with pytest.raises(ValueError, match="name it in PARTS"):
        part_of("bonus.weight")
