"""The maze, its walks, its solvers and its pictures."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.analysis import figures, maze_figures
from fbam.tasks import maze, maze_solvers

LEFT, RIGHT, UP, DOWN = range(4)
WORLD = maze.build_maze(32, 0.25, 0)
FEW_EXAMPLES = settings(max_examples=40)


def passages_of(world: maze.Maze) -> set[frozenset[tuple[int, int]]]:
    """The open walls as pairs of coordinates, read off one direction of each pair alone."""
    found = set()
    for cell in range(world.cells):
        for move in (RIGHT, DOWN):
            if (to := int(world.step[move, cell])) != cell:
                found.add(frozenset([divmod(cell, world.size), divmod(to, world.size)]))
    return found


def slow_walk(world: maze.Maze, intents) -> list[int]:
    """The reference: coordinates, one move after the other, a look into a set of passages each."""
    passages, here, cells = passages_of(world), divmod(world.start, world.size), []
    for intent in intents:
        row, column = {LEFT: (0, -1), RIGHT: (0, 1), UP: (-1, 0), DOWN: (1, 0)}[int(intent)]
        there = (here[0] + row, here[1] + column)
        if frozenset([here, there]) in passages:
            here = there
        cells.append(here[0] * world.size + here[1])
    return cells


mazes = st.builds(maze.build_maze, st.integers(2, 9), st.floats(0, 1), st.integers(0, 2**31))
walk_intents = st.lists(st.integers(0, 3), min_size=1, max_size=70).map(lambda moves: np.array(moves, dtype=np.int8))


def test_the_example_of_the_docstring():
    world = maze.maze_of(2, np.array([[0, 1], [0, 2], [2, 3]]))
    assert world.start == 3 and world.passages == 3
    walks = maze.show(world, np.array([[LEFT, LEFT, UP]], dtype=np.int8), np.array([[False, False, True]]))
    assert maze.transcript(walks, 0) == ["LEFT, LEFT", "LEFT, UNCHANGED", "UP, WITHHELD"]
    assert walks.cells.tolist() == [[2, 2, 0]]
    assert all(line in maze.__doc__ for line in maze.transcript(walks, 0))


@pytest.mark.parametrize("opened", [0.0, 0.25, 1.0])
def test_every_cell_can_be_reached_and_the_number_of_passages_is_exact(opened):
    world = maze.build_maze(12, opened, 3)
    others = 2 * 12 * 11 - 143
    assert world.passages == 143 + round(opened * others) == len(passages_of(world))
    for move in range(4):  # what leads there leads back
        moved = np.flatnonzero(world.step[move] != np.arange(144))
        assert (world.step[move ^ 1, world.step[move, moved]] == moved).all()
    reached, border = {0}, {0}
    while border:
        border = {int(to) for cell in border for to in world.step[:, cell]} - reached
        reached |= border
    assert len(reached) == 144


def test_a_maze_is_a_function_of_its_seed():
    assert (maze.build_maze(32, 0.25, 0).step == WORLD.step).all()
    assert (maze.build_maze(32, 0.25, 1).step != WORLD.step).any()


@FEW_EXAMPLES
@given(mazes, walk_intents)
def test_walks_and_solvers_equal_the_slow_reference(world, intents):
    expected = slow_walk(world, intents)
    assert maze.walk(world, intents[None])[0].tolist() == expected
    assert maze_solvers.track(world, intents).tolist() == expected
    cells, rounds = maze_solvers.scan(world, intents)
    assert cells.tolist() == expected and rounds == math.ceil(math.log2(len(intents)))


def test_the_scan_needs_ten_rounds_for_a_thousand_moves_of_the_large_maze():
    intents = np.random.default_rng(1).integers(0, 4, 1000, dtype=np.int8)
    cells, rounds = maze_solvers.scan(WORLD, intents)
    assert rounds == 10 and (cells == maze_solvers.track(WORLD, intents)).all()


def test_ends_left_is_counted_over_all_starts():
    world, intents = maze.build_maze(5, 0.2, 0), np.random.default_rng(0).integers(0, 4, 60, dtype=np.int8)
    here, expected = set(range(25)), []
    for intent in intents:
        here = {int(world.step[intent, cell]) for cell in here}
        expected.append(len(here))
    assert maze_solvers.ends_left(world, intents).tolist() == expected


@FEW_EXAMPLES
@given(st.integers(0, 30), st.integers(0, 2**31))
def test_exactly_so_many_results_are_withheld(count, seed):
    walks = maze.sample(WORLD, np.random.default_rng(seed), 20, 30, count, "train")
    assert ((walks.results == maze.WITHHELD).sum(axis=1) == count).all()
    assert (walks.withheld_so_far[:, -1] == count).all()


def test_every_move_is_equally_likely_to_be_withheld():
    hidden = maze.sample_withheld(np.random.default_rng(0), 20_000, 10, 3)
    assert np.abs(hidden.mean(axis=0) - 0.3).max() < 0.015
    together = (hidden[:, 0] & hidden[:, 1]).mean()
    assert abs(together - 3 * 2 / (10 * 9)) < 0.01


def test_probabilities_are_drawn_once_a_walk():
    shares = maze.sample_withheld(np.random.default_rng(0), 4000, 100, [0.0, 0.5]).mean(axis=1)
    assert abs((shares == 0).mean() - 0.5) < 0.03
    assert (np.abs(shares[shares > 0] - 0.5) < 0.25).all()


def test_results_are_true_where_they_are_shown():
    walks = maze.sample(WORLD, np.random.default_rng(5), 200, 40, [0.3], "validation")
    for intents, results, cells in zip(walks.intents[:40], walks.results, walks.cells):
        before = [WORLD.start, *cells[:-1].tolist()]
        for intent, result, here, there in zip(intents, results, before, cells):
            assert there == WORLD.step[intent, here]
            assert result == maze.WITHHELD or (result == maze.UNCHANGED) == (there == here)


@FEW_EXAMPLES
@given(mazes, walk_intents, st.integers(0, 2**31))
def test_the_position_is_not_in_the_input(world, intents, seed):
    """Walks with the same intents and shown results have the same input, wherever the agent is."""
    walks = maze.show(world, intents[None], np.random.default_rng(seed).random((1, len(intents))) < 0.5)
    elsewhere = replace(walks, cells=np.random.default_rng(seed).integers(0, world.cells, walks.cells.shape).astype(np.int16))
    assert (maze.one_token(walks) == maze.one_token(elsewhere)).all() and (maze.two_tokens(walks) == maze.two_tokens(elsewhere)).all()
    hidden = np.ones((1, len(intents)), dtype=bool)
    one, other = (maze.show(w, intents[None], hidden) for w in (world, maze.maze_of(2, np.array([[0, 1]]))))
    assert (maze.one_token(one) == maze.one_token(other)).all() and (maze.two_tokens(one) == maze.two_tokens(other)).all()


def test_tokens_hold_intent_and_result_and_nothing_else():
    walks = maze.sample(WORLD, np.random.default_rng(2), 50, 20, 5, "train")
    one, two = maze.one_token(walks), maze.two_tokens(walks)
    assert one.shape == (50, 20) and two.shape == (50, 40)
    assert (one % 4 == walks.intents).all() and (one // 4 == walks.results).all()
    assert (two[:, ::2] == walks.intents).all()
    shown = {(intent, result): token for intent in range(4) for result, token in enumerate([4 + intent, 8, 9])}
    expected = [[shown[pair] for pair in zip(*both)] for both in zip(walks.intents.tolist(), walks.results.tolist())]
    assert two[:, 1::2].tolist() == expected
    assert one.max() < maze.ONE_TOKEN_SYMBOLS and two.max() < maze.TWO_TOKEN_SYMBOLS


def test_no_sequence_of_intents_is_in_two_parts():
    """At 6 moves there are 4096 sequences, so parts that merely drew at random would share most of theirs."""
    drawn = {part: {row.tobytes() for row in maze.sample_intents(np.random.default_rng(7), 3000, 6, part)} for part in maze.PARTS}
    assert not drawn["train"] & drawn["test"] and not drawn["train"] & drawn["validation"] and not drawn["test"] & drawn["validation"]
    assert len(drawn["train"]) > 1800 and len(drawn["test"]) > 150


def test_parts_are_sixteenths_and_depend_on_the_intents_alone():
    intents = np.random.default_rng(0).integers(0, 4, (16_000, 40), dtype=np.int8)
    place = maze.part_of(intents)
    assert (maze.part_of(intents[::-1].copy()) == place[::-1]).all()
    assert np.bincount(place.astype(int), minlength=16).min() > 800
    assert place[:4].tolist() == maze.part_of(intents[:4]).tolist()


def test_coordinates_count_from_the_start():
    walks = maze.sample(WORLD, np.random.default_rng(0), 10, 40, 0, "train")
    place = maze.coordinates(walks.cells, WORLD)
    assert ((place + 16) @ [32, 1] == walks.cells).all()
    moved = np.diff(np.concatenate([np.zeros((10, 1, 2), dtype=int), place], axis=1), axis=1)
    assert (moved == maze.DELTAS[walks.intents] * (walks.results == maze.MOVED)[..., None]).all()


def test_the_sum_is_exact_where_nothing_is_withheld_and_the_naive_are_not_elsewhere():
    rng = np.random.default_rng(3)
    shown, hidden = (maze.sample(WORLD, rng, 300, 40, count, "test") for count in (0, 8))
    for predictor in (maze_solvers.assume_moved, maze_solvers.assume_stayed, maze_solvers.last_known):
        assert (predictor(shown, WORLD) == shown.cells).all()
        right = predictor(hidden, WORLD) == hidden.cells
        assert right[hidden.withheld_so_far == 0].all() and 0 < right[:, -1].mean() < 0.3


def test_last_known_stays_where_the_first_result_was_withheld():
    walks = maze.sample(WORLD, np.random.default_rng(3), 100, 40, 8, "test")
    for cells, known, depth in zip(walks.cells, maze_solvers.last_known(walks, WORLD), walks.withheld_so_far):
        first = int((depth == 0).sum())
        assert (known[first:] == (cells[first - 1] if first else WORLD.start)).all()


def test_majority_is_the_most_frequent_cell_of_the_training_walks():
    train, test = (maze.sample(WORLD, np.random.default_rng(1), 200, 5, 0, part) for part in ("train", "test"))
    found = maze_solvers.majority(train, 200, WORLD)
    for t in range(5):
        values, counts = np.unique(train.cells[:, t], return_counts=True)
        assert counts[values == found[0, t]] == counts.max() and (found[:, t] == found[0, t]).all()
    assert set(maze_solvers.baselines(train, test, WORLD)) == {"majority", "withheld = moved", "withheld = stayed", "last known position"}


def test_statistics_are_shares():
    walks = maze.sample(WORLD, np.random.default_rng(1), 500, 40, 8, "train")
    found = maze.statistics(WORLD, walks)
    assert found["withheld"] == pytest.approx(0.2) and found["passages"] == WORLD.passages
    assert abs(found["unchanged"] - found["withheld_unchanged"]) < 0.05


@pytest.mark.parametrize(("call", "named"), [
    (lambda rng: maze.build_maze(1, 0.2, 0), "size 1"),
    (lambda rng: maze.build_maze(8, 1.5, 0), "opened 1.5"),
    (lambda rng: maze.maze_of(3, np.array([[0, 4]])), "cells 0 and 4"),
    (lambda rng: maze.sample(WORLD, rng, 5, 8, 9, "train"), "withheld 9"),
    (lambda rng: maze.sample(WORLD, rng, 5, 8, [1.5], "train"), "withheld"),
    (lambda rng: maze.sample(WORLD, rng, 5, 8, [], "train"), "withheld"),
    (lambda rng: maze.sample(WORLD, rng, 5, 8, 2, "dev"), "'dev'"),
])  # fmt: skip
def test_wrong_arguments_are_named(call, named):
    with pytest.raises(maze.MazeError, match=named.replace(".", r"\.")):
        call(np.random.default_rng(0))


def test_the_walls_of_a_picture_are_those_of_the_maze():
    world = maze.maze_of(2, np.array([[0, 1], [0, 2], [2, 3]]))
    walls = maze_figures.wall_segments(world.step, 2)
    assert sorted(walls) == sorted([((0, 0), (2, 0)), ((0, 0), (0, 2)), ((2, 0), (2, 1)), ((2, 1), (2, 2)), ((0, 2), (1, 2)), ((1, 2), (2, 2)),
                                    ((1, 0 + 1), (2, 1))])
    assert len(maze_figures.wall_segments(WORLD.step, 32)) == 2 * 32 * 31 - WORLD.passages + 2 + 64


def test_a_picture_is_well_formed_and_marks_each_withheld_move():
    walks = maze.sample(WORLD, np.random.default_rng(1), 1, 40, 8, "test")
    figure, axes = plt.subplots()
    maze_figures.draw_maze(axes, WORLD.step, 32)
    maze_figures.draw_walk(axes, 32, WORLD.start, walks.cells[0], walks.results[0])
    maze_figures.zoom(axes, 32, WORLD.start, walks.cells[0])
    (marks,) = [line for line in axes.lines if line.get_label() == "result withheld"]
    cells = walks.cells[0][walks.results[0] == maze.WITHHELD]
    assert [(int(y) * 32 + int(x)) for x, y in marks.get_xydata()] == cells.tolist()
    picture = figures.svg(figure)
    plt.close(figure)
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_curves_are_means_over_seeds_and_leave_out_what_rests_on_few_moves():
    rows = [{"model": "lstm", "seed": s, "x": [1, 2], "y": [0.5 + s / 10, 0.9], "n": [100, 99]} for s in (0, 1)]
    assert maze_figures.seed_means(rows) == {1: pytest.approx(0.55)}
    figure, axes = plt.subplots()
    maze_figures.lines(axes, rows, lambda row: row["model"], seeds=True, scale=lambda row: 2)
    maze_figures.paper_points(axes, [{"label": "paper", "accuracy": 0.99}])
    assert axes.lines[2].get_xydata().tolist() == [[0.5, pytest.approx(0.55)]]
    maze_figures.model_dots(axes, [{"model": "sum", "task": "b", "test_accuracy": 0.5}], ["a", "b"])
    plt.close(figure)
