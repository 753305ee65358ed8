"""The atlas: measured laws of known families, verdicts, the paper's model, and the probes."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
import torch

import fbam.theory.probes as probes
from fbam.experiments.depth_rows import AtlasRow, DepthRow, ProbeRow
from fbam.sequence.families import FAMILIES
from fbam.theory import atlas, tables
from fbam.theory.depth import true_depth

CONFIG = {"width": 8, "short": [4, 8, 16, 32], "long": [32, 64, 128, 256], "seed": 0}


def measured(family):
    return atlas.measure_family({"family": family, **CONFIG}, None, lambda share: None)[0]


@pytest.mark.parametrize("family, form, unbounded, fan_in_2, verdict", [
    ("transformer", "parallel", "constant", "logarithmic", "parallel"),
    ("mingru", "parallel", "logarithmic", "logarithmic", "parallel"),
    ("lstm", "recurrent", "linear", "linear", "serial"),
    ("block_recurrent", "serial", "n/chunk", "n/chunk", "serial"),
    ("newton_elman", "serial", "linear", "linear", "data-dependent"),
])
def test_laws_and_verdicts(family, form, unbounded, fan_in_2, verdict):
    found = measured(family)
    laws = tables.laws(next(f for f in found["forms"] if f["form"] == form))
    assert (laws["unbounded", "forward"].name, laws["fan-in 2", "forward"].name) == (unbounded, fan_in_2)
    assert tables.verdict(found["forms"]) == verdict and found["agree"]
    assert all(law.error < 0.05 for law in laws.values())
    rows = [DepthRow(**row) for row in tables.law_rows(family, found["forms"])]
    assert len(rows) == 4 * len(found["forms"])
    assert AtlasRow(**tables.entry(family, found["forms"], found["agree"])).listed == (family in ("transformer", "mingru"))


def test_chunks_are_counted_in_chunks():
    chunked = next(form for form in measured("linear_attention")["forms"] if form["form"] == "chunked")
    assert tables.laws(chunked)["unbounded", "forward"].name == "n/chunk"


def test_families_of_the_papers_list_exist():
    assert tables.LISTED | set(tables.CIRCUITS) <= set(FAMILIES)


def test_the_papers_model_and_its_frame_head():
    config = {"width": 4, "poolings": 2, "cells": 8, "short": [4, 8, 16, 32], "steps": [4, 8, 16, 32], "full_cells": 256, "seed": 0}
    found, _ = atlas.measure_action_model(config, None, lambda share: None)
    whole, head = (tables.laws(form) for form in found["forms"])
    assert {law.name for laws in (whole, head) for law in laws.values()} == {"linear"}
    assert whole["unbounded", "forward"].slope == 18  # two LSTM layers of nine levels a step
    assert found["full_steps"] == 64 and head["unbounded", "forward"](64) == found["full"]["unbounded"]


def test_frames_are_parallel():
    model = atlas.tiny_model(cells=8, poolings=1, width=4)
    depth = lambda frames: true_depth(lambda code: model.head(code, code, code, code), torch.zeros(frames, 8, dtype=torch.int64), backward=False).depth
    assert depth(1) == depth(50)


def test_probe_docstring():
    found = doctest.testmod(probes)
    assert found.attempted >= 2 and found.failed == 0


def test_automata_by_hand():
    words = np.array([[2, 0, 3, 1, 0, 2, 1]])  # write 0, ignore, write 1, ignore, ignore, write 0, ignore
    assert probes.TASKS["flip-flop"].answers(words).tolist() == [[0, 0, 1, 1, 1, 0, 0]]
    # exchange the places 0 and 1; move on by one
    assert probes.TASKS["S5"].answers(np.array([[0, 1, 0, 1, 1, 1]])).tolist() == [[1, 2, 2, 3, 4, 0]]


def test_the_generators_make_all_of_s5():
    exchange, cycle = (tuple(column) for column in np.array(probes.TASKS["S5"].table).T)
    group, waiting = {tuple(range(5))}, [tuple(range(5))]
    while waiting:
        element = waiting.pop()
        for generator in (exchange, cycle):
            product = tuple(generator[place] for place in element)
            if product not in group:
                group.add(product)
                waiting.append(product)
    assert len(group) == math.factorial(5)


def test_a_probe_is_learned_and_repeats_bit_by_bit():
    config = {"family": "lstm", "task": "parity", "width": 16, "layers": 1, "steps": 120, "batch": 32, "lr": 0.02, "seed": 0,
              "length": 6, "test_length": 24}
    first, again = (probes.train_probe(config, None, lambda share: None)[0] for _ in range(2))
    assert first == again and first["trained"] > 0.9 and first["chance"] == 0.5
    with pytest.raises(probes.ProbeError, match="no probe 'sorting'"):
        probes.train_probe(config | {"task": "sorting"}, None, lambda share: None)


def test_the_best_rate_is_chosen_by_the_trained_length():
    def run(lr, seed, trained, extended):
        config = {"family": "gru", "task": "S5", "lr": lr, "seed": seed, "steps": 1, "length": 4, "test_length": 16}
        return config, {"trained": trained, "extended": extended, "chance": 0.2, "parameters": 9}

    runs = [run(0.1, 0, 0.9, 0.5), run(0.1, 1, 0.9, 0.7), run(0.2, 0, 0.8, 1.0), run(0.2, 1, 0.8, 1.0)]
    (row,) = tables.best_probes(runs, 0.95)
    row = ProbeRow(**row)
    assert (row.trained, row.extended, row.follows, row.learning_rates, row.seeds) == (0.9, 0.6, False, [0.1, 0.2], [0, 1])
