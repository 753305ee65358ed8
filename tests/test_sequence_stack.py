"""The stack that the diagnostics share: seeds, parameter counts, a training step of each family, state passing."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fbam.models.sequence_stack import PLAIN, WITHOUT_MLP, SequenceStack
from fbam.sequence.families import FAMILIES, build, forms_of
from fbam.sequence.heads import SequenceError

SIZES = (7, 5, 3)
every_family = pytest.mark.parametrize("family", FAMILIES)


def fields(batch: int = 4, length: int = 9) -> torch.Tensor:
    """Random fields, (B, T, F) int64."""
    generator = torch.Generator().manual_seed(2)
    return torch.stack([torch.randint(size, (batch, length), generator=generator) for size in SIZES], dim=-1)


@every_family
def test_each_family_trains(family: str):
    stack = SequenceStack(family, 16, 2, SIZES, 3, seed=1)
    optimizer = torch.optim.AdamW(stack.parameters(), lr=3e-3)
    losses = []
    for _ in range(8):
        logits = stack(fields())
        assert logits.shape == (4, 9, 3)
        loss = F.cross_entropy(logits.flatten(0, 1), fields()[..., 2].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@every_family
def test_weights_follow_from_the_seed_and_leave_the_generator_alone(family: str):
    state = torch.get_rng_state()
    first, same, other = (SequenceStack(family, 16, 1, SIZES, 3, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


@every_family
def test_parameter_count_is_the_sum_of_the_parts(family: str):
    width, layers = 16, 2
    stack = SequenceStack(family, width, layers, SIZES, 3, max_length=50)
    layer = sum(p.numel() for p in build(family, width).parameters())
    block = width + layer + (0 if family in WITHOUT_MLP else 8 * width**2 + width)
    positions = 50 * width if family == "transformer" else 0
    assert stack.parameter_count == sum(SIZES) * width + positions + layers * block + width + 3 * width + 3


@pytest.mark.parametrize("family", [name for name, cls in FAMILIES.items() if "recurrent" in forms_of(cls)])
def test_steps_and_halves_equal_one_pass(family: str):
    stack, x = SequenceStack(family, 16, 2, SIZES, 3).double(), fields()
    whole, state = stack(x), stack.initial_state(4)
    first, state = stack.advance(x[:, :4], state)
    torch.testing.assert_close(first, whole[:, :4])
    for t in range(4, 9):
        logits, state = stack.step(x[:, t], state)
        torch.testing.assert_close(logits, whole[:, t])
    assert state[0] == 9


@pytest.mark.parametrize("family", sorted(PLAIN))
def test_a_single_recurrent_layer_stands_plain(family: str):
    stack, x = SequenceStack(family, 16, 1, SIZES, 3), fields()
    expected = stack.output(stack.norm(stack.blocks[0].layer(stack.embed(x))[0]))
    assert torch.equal(stack(x), expected)
    assert stack.blocks[0].norm is None


def test_inputs_are_tokens_fields_or_a_module():
    embed = SequenceStack("gru", 8, 1, SIZES, 2).embed
    x = fields()
    torch.testing.assert_close(embed(x), sum(embed.fields[i].weight[x[..., i]] for i in range(3)))
    assert SequenceStack("gru", 8, 1, 7, 2)(x[..., 0]).shape == (4, 9, 2)
    first, same = (SequenceStack("gru", 8, 1, nn.Linear(5, 8), 2, seed=9) for _ in range(2))
    assert torch.equal(first.embed.weight, same.embed.weight)
    assert first(torch.randn(4, 9, 5)).shape == (4, 9, 2)


def test_learned_positions_tell_equal_inputs_apart_and_end_with_a_clear_error():
    same = torch.zeros(1, 6, 3, dtype=torch.int64)
    logits = SequenceStack("transformer", 16, 1, SIZES, 2)(same)
    assert not torch.allclose(logits[0, 1], logits[0, 5])
    with pytest.raises(SequenceError, match="max_length 6"):
        SequenceStack("transformer", 16, 1, SIZES, 2, max_length=5)(same)


@pytest.mark.parametrize(("arguments", "named"), [(("gru", 8, 0), "layers is 0"), (("transformer", 10, 1), "width 10"), (("lsmt", 8, 1), "lsmt")])
def test_impossible_stacks_are_refused_by_name(arguments: tuple, named: str):
    with pytest.raises(SequenceError, match=named):
        SequenceStack(*arguments, SIZES, 2)
