"""The two programs for a finite automaton: equal to the interpreter of the jumps task, and as deep as they should be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fbam.tasks.frjt import JumpsTask, run
from fbam.tasks.solvers import maps_of
from fbam.theory import automata


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_both_give_the_interpreters_answer(n):
    programs = JumpsTask().draw(np.random.default_rng(n), [n] * 50)
    maps, states = maps_of(programs)
    for way in automata.WAYS.values():
        answers = way(torch.from_numpy(maps.astype(np.int64))).numpy() - (states - 2)
        assert np.array_equal(answers, run(programs).halts)


def test_depths_are_a_selection_a_step_and_a_selection_a_round():
    maps = torch.randint(16, (1, 32, 16))
    loop, tree = (automata.depths(way, maps) for way in automata.WAYS)
    assert loop == {"unbounded": 2 * 31, "fan-in 2": 5 * 31}  # one of 16: compare, then 4 levels of joining
    assert tree == {"unbounded": 2 * 5, "fan-in 2": 5 * 5}
