"""Groups in the transition monoid of the jumps task, against the monoid itself written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fbam.tasks import monoid


def whole_monoid(maps):
    found = {tuple(range(maps.shape[1]))}
    waiting = list(found)
    while waiting:
        word = waiting.pop()
        for block in maps.tolist():
            longer = tuple(block[state] for state in word)
            if longer not in found:
                found.add(longer)
                waiting.append(longer)
    return found


@pytest.mark.parametrize("registers, reach", [(1, 2), (1, 3), (2, 1)])
def test_groups_are_those_of_the_monoid_written_out(registers, reach):
    maps = monoid.block_maps(registers, reach)
    words = whole_monoid(maps)
    largest = 1
    for members in combinations(range(maps.shape[1]), monoid.FIVE):
        largest = max(largest, len({image for word in words if sorted(image := tuple(word[i] for i in members)) == list(members)}))
    assert monoid.groups(registers, reach).order == largest


def test_one_offset_is_solvable_and_two_are_not():
    assert monoid.groups(2, 1).solvable and not monoid.groups(2, 2).solvable
    assert monoid.groups(2, 2).order == 120


def test_generated_groups_have_their_orders():
    turn, exchange, three = (1, 2, 3, 4, 0), (1, 0, 2, 3, 4), (1, 2, 0, 3, 4)
    assert [len(monoid.generated(g)) for g in ([], [turn], [turn, exchange], [turn, three])] == [1, 5, 120, 60]


def test_maps_are_those_of_single_blocks():
    maps = monoid.block_maps(2, 4)
    assert maps.shape[1] == 16 and np.array_equal(maps[:, 4:], np.broadcast_to(np.arange(12), (len(maps), 12)))  # one block skipped
