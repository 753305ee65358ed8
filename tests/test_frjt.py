"""The jumps task (section 8.1.1): programs, interpreter, splits, printing, tokens, solvers, circuits and baselines."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fbam.tasks import circuits, frjt, frjt_baselines, frjt_print, solvers
from fbam.tasks.frjt import JumpsError, JumpsTask, Programs, run
from fbam.tasks.frjt_cells import describe
from fbam.tasks.frjt_tokens import JumpsTokenizer
from fbam.tasks.kernels import DRAWS

EXAMPLE = [[1, 0, 2, 1], [2, 2, 0, -1], [2, 3, 0, -1]]  # the program of the docstring of JumpsTask
TASKS = [JumpsTask(), JumpsTask(exits="single"), JumpsTask(registers=3, reach=(0.5, 0.5)), JumpsTask(registers_per_block=0.5)]
SEEDS = st.integers(0, 2**32)


def one(fields) -> Programs:
    return Programs(np.array([fields], np.int16), np.array([len(fields)]))


def draw(task, seed, depths=(1, 2, 3, 5, 8, 13, 21)) -> Programs:
    return task.draw(np.random.default_rng(seed), np.repeat(depths, 8))


def slow_run(fields) -> tuple[str, list[int]]:
    """The halting state and the blocks executed of one program, by the text of the paper."""
    registers, at, executed = {}, 0, []
    while True:
        negated, condition, if_true, if_false = (int(field) for field in fields[at])
        executed.append(at)
        if negated:
            registers[negated - 1] = not registers.get(negated - 1, False)
        value = registers.get(condition // 2, False)
        target = if_true if (not value if condition % 2 else value) else if_false
        if target == frjt.HALT_A:
            return "A", executed
        if target == frjt.HALT_B:
            return "B", executed
        at += target


def slow_draw(task, depth, draws) -> list[list[int]]:
    """One program from its uniform numbers, block by block."""
    registers, p, fields = int(task.registers_at(depth)), min(0.5, task.exit_share / depth), []
    for block in range(depth):
        u, left = [float(number) for number in draws[block]], depth - 1 - block
        targets = []
        for number in u[3:5]:
            jump, total = 1, 0.0
            for length, share in enumerate(task.reach, 1):
                total += share
                if number < total or length == len(task.reach):
                    jump = length
                    break
            targets.append(min(jump, left))
        if task.exits == "paired" or left == 0:
            if left == 0 or u[5] < p:
                targets = [-1, 0] if u[7] < 0.5 else [0, -1]
        else:
            for side in range(2):
                if u[5 + side] < p:
                    targets[side] = -1 if u[7 + side] < 0.5 else 0
        fields.append([1 + int(u[0] * registers), 2 * int(u[1] * registers) + (u[2] < 0.5), *targets])
    return fields


@pytest.mark.parametrize("task", TASKS, ids=str)
@settings(max_examples=20)
@given(seed=SEEDS)
def test_the_interpreter_equals_the_slow_reference(task, seed):
    programs = draw(task, seed)
    runs = run(programs)
    for fields, halt, executed in zip(programs.fields, runs.halts, runs.executed, strict=True):
        assert slow_run(fields) == ("AB"[halt], np.flatnonzero(executed).tolist())


@pytest.mark.parametrize("task", TASKS[:2], ids=str)
def test_the_generator_equals_the_slow_reference(task):
    depths = np.arange(1, 40)
    programs = task.draw(np.random.default_rng(5), depths)
    draws = np.random.default_rng(5).random((39, 39, DRAWS), dtype=np.float32)
    for fields, depth, numbers in zip(programs.fields.tolist(), depths, draws, strict=True):
        assert fields[:depth] == slow_draw(task, int(depth), numbers) and not np.any(fields[depth:])


def test_the_worked_example_of_the_docstring():
    rows = re.findall(r"\[(-?\d+), (-?\d+), (-?\d+), (-?\d+)\]", JumpsTask.__doc__)
    assert [[int(number) for number in row] for row in rows] == EXAMPLE
    runs = run(one(EXAMPLE))
    assert runs.executed.tolist() == [[True, False, True]] and runs.halts.tolist() == [1]
    assert runs.states.tolist() == [[[0, 0b00], [1, 0b01], [0, 0b01]]]


def test_printing_shows_each_block_once_and_marks_what_runs():
    assert frjt_print.text(one(EXAMPLE)).split("\n") == [
        "L1:", "    f0 = not f0", "    if f0 goto L3", "    else goto L2",
        "L2:", "    f1 = not f1", "    if f1 halt A", "    else halt B",
        "L3:", "    f1 = not f1", "    if not f1 halt A", "    else halt B"]
    page = frjt_print.html(one(EXAMPLE))
    colours = re.findall(r'background:(#\w+)[^>]*title="\w+">([^<]*)<', page)
    assert [frjt_print.SKIPPED] * 4 == [colour for colour, line in colours][4:8]
    assert {colour for colour, line in colours[:4] + colours[8:]} == {frjt_print.EXECUTED}
    assert page.endswith("<div>halts in B</div></pre>")


def printed(text) -> list[list[int]]:
    """The fields of a program, read from its text."""
    fields = []
    for number, block in enumerate(re.split(r"L\d+:\n", text)[1:], 1):
        negated = re.search(r"f(\d+) = not", block)
        inverted, register, yes, no = re.search(r"if (not )?f(\d+) (.*)\n    else (.*)", block).groups()
        targets = [{"halt A": 0, "halt B": -1}.get(place) if "halt" in place else int(place[6:]) - number for place in (yes, no)]
        fields.append([int(negated[1]) + 1 if negated else 0, 2 * int(register) + bool(inverted), *targets])
    return fields


@settings(max_examples=20)
@given(seed=SEEDS)
def test_the_printed_text_says_the_whole_program(seed):
    programs = draw(TASKS[1], seed)
    for index, depth in enumerate(programs.depths):
        assert printed(frjt_print.text(programs, index)) == programs.fields[index, :depth].tolist()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("labels", ["relative", "absolute"])
@settings(max_examples=20)
@given(seed=SEEDS)
def test_tokens_carry_the_whole_program(fused, labels, seed):
    programs = draw(TASKS[1], seed)
    tokenizer = JumpsTokenizer(2, 21 if labels == "absolute" else 4, fused, labels)
    tokens = tokenizer.encode(programs)
    decoded = tokenizer.decode(tokens)
    assert (decoded.fields == programs.fields).all() and (decoded.depths == programs.depths).all()
    assert tokens.min() >= 0 and (tokens.reshape(-1, tokens.shape[-1]).max(0) < tokenizer.vocabulary).all()
    assert tokens.shape[1:] == ((22, len(tokenizer.vocabulary)) if fused else (21 * len(tokenizer.sizes) + 1, 1))
    assert (tokens[np.arange(len(programs)), tokenizer.query(programs), 0] == 1).all()


def test_a_program_beyond_the_tokenizer_is_refused():
    with pytest.raises(JumpsError, match="exceeds this tokenizer"):
        JumpsTokenizer(1, 4).encode(one(EXAMPLE))
    with pytest.raises(JumpsError, match="labels"):
        JumpsTokenizer(2, 4, labels="named")


@pytest.mark.parametrize("change, message", [
    ({"exits": "double"}, "exits"), ({"reach": (0.5,)}, "reach"), ({"registers": 0}, "registers")])
def test_an_impossible_task_is_refused(change, message):
    with pytest.raises(JumpsError, match=message):
        JumpsTask(**change)


def test_programs_that_do_not_halt_are_refused():
    with pytest.raises(JumpsError, match="beyond the last block"):
        run(one([[1, 0, 1, 1]]))
    with pytest.raises(JumpsError, match="at least one block"):
        JumpsTask().draw(np.random.default_rng(0), [0])
    with pytest.raises(JumpsError, match="at least 2 blocks"):
        JumpsTask().sample(np.random.default_rng(0), [1], "test")


# ------------------------------------------------------------------ splits, statistics, shortcuts

@pytest.mark.parametrize("depth", [2, 3, 4, 16])
def test_no_two_splits_share_a_program(depth):
    rng, depths = np.random.default_rng(depth), np.full(3000, depth)
    seen = {split: JumpsTask().sample(rng, depths, split) for split in ("train", "validation", "test")}
    texts = {split: {fields.tobytes() for fields in programs.fields} for split, programs in seen.items()}
    assert not texts["train"] & texts["test"] and not texts["train"] & texts["validation"] and not texts["test"] & texts["validation"]
    keys = {split: programs.keys() for split, programs in seen.items()}
    assert all(len(texts[split]) == np.unique(keys[split]).size for split in texts), "the hash tells these programs apart"


def test_a_hash_does_not_depend_on_padding():
    alone, mixed = one(EXAMPLE), JumpsTask().draw(np.random.default_rng(0), [3, 9])
    mixed.fields[0, :3] = EXAMPLE
    assert mixed.keys()[0] == alone.keys()[0]


def test_statistics_of_a_known_sample():
    programs = Programs(np.array([EXAMPLE, EXAMPLE, [[1, 1, 1, 0], [1, 0, 0, -1], [1, 0, 0, -1]]], np.int16), np.array([3, 3, 3]))
    found = frjt.statistics(programs)
    assert (found.coverage, found.halting_B) == (5 / 9, 2 / 3)
    assert found.early_exits == pytest.approx(1 / 3) and found.duplicates == pytest.approx(1 / 3)
    assert found.equal_targets == 0
    assert frjt.statistics(Programs(np.array([EXAMPLE, [[1, 0, 1, 1], [1, 0, 0, -1], [0] * 4]], np.int16), np.array([3, 3]))).equal_targets == 0.5
    with pytest.raises(JumpsError, match="one depth"):
        frjt.statistics(JumpsTask().draw(np.random.default_rng(0), [2, 3]))


def test_coverage_and_balance_are_about_a_half():
    found = frjt.statistics(JumpsTask().draw(np.random.default_rng(0), np.full(20000, 16)))
    assert found.coverage == pytest.approx(0.5, abs=0.02)
    assert stats.binomtest(round(found.halting_B * found.n), found.n).pvalue > 0.001


def correct_of(name, task, depth, n=20000):
    rng = np.random.default_rng([depth, len(name)])
    train, test = task.draw(rng, np.full(n, depth)), task.draw(rng, np.full(n, depth))
    return round(frjt_baselines.accuracies(train, test)[name] * n)


@pytest.mark.parametrize("depth", [4, 16])
@pytest.mark.parametrize("name", ["majority", "bag of targets", "flow only", "last block"])
def test_paired_exits_leave_no_shortcut_in_the_jumps(name, depth):
    assert stats.binomtest(correct_of(name, JumpsTask(), depth), 20000).pvalue > 0.001


@pytest.mark.parametrize("depth", [4, 8, 16])
def test_single_exits_leave_the_floor_that_was_measured(depth):
    assert 0.64 < correct_of("flow only", JumpsTask(exits="single"), depth) / 20000 < 0.69
    assert correct_of("bag of targets", JumpsTask(exits="single"), depth) / 20000 > 0.6


def test_baselines_of_a_known_program():
    programs = one([[1, 1, 1, 0], [1, 0, 1, 2], [2, 3, 1, 1], [1, 0, -1, 0]])  # block 1 halts in A
    assert run(programs).halts.tolist() == [0]
    assert frjt_baselines.bag_of_targets(programs).tolist() == [-1]
    assert frjt_baselines.flow_only(programs).tolist() == [-0.5]
    assert frjt_baselines.straight_line(programs).tolist() == [1]  # f0 is negated three times
    assert frjt_baselines.windowed(programs, 1).tolist() == [1] and frjt_baselines.windowed(programs, 4).tolist() == [0]
    assert frjt_baselines.first_steps(programs, 1, majority=1).tolist() == [0]


# ------------------------------------------------------------------ exact solvers

@pytest.mark.parametrize("task", TASKS[:3], ids=str)
@settings(max_examples=20)
@given(seed=SEEDS)
def test_the_prefix_scan_agrees_with_the_interpreter(task, seed):
    programs = draw(task, seed)
    solved = solvers.prefix_scan(programs)
    assert (solved.halts == run(programs).halts).all()
    assert solved.rounds == 5  # ceil(log2 21)


@pytest.mark.parametrize("depth, rounds", [(1, 0), (2, 1), (8, 3), (9, 4), (32, 5), (64, 6)])
def test_rounds_grow_with_the_logarithm(depth, rounds):
    programs = JumpsTask().draw(np.random.default_rng(depth), np.full(500, depth))
    solved = solvers.prefix_scan(programs)
    assert solved.rounds == rounds and (solved.halts == run(programs).halts).all()


def test_two_registers_and_jumps_up_to_four_have_18_states():
    assert solvers.states_of(2, 4) == 18 == solvers.prefix_scan(draw(JumpsTask(), 0)).states


def test_written_states_are_those_of_the_interpreter():
    programs = JumpsTask().draw(np.random.default_rng(1), np.full(200, 12))
    states, runs = solvers.serial_states(programs, 2, 4), run(programs)
    skip, bits = runs.states[:, 1:, 0], runs.states[:, 1:, 1]  # before block 2 is after block 1
    halted = skip < 0
    assert (np.where(halted, 16 + runs.halts[:, None], 4 * skip + bits) == states[:, :-1]).all()
    assert (states[:, -1] == 16 + runs.halts).all()


def test_too_many_registers_for_a_table_are_refused():
    with pytest.raises(JumpsError, match="use the interpreter"):
        solvers.prefix_scan(one([[20, 38, 0, -1]]))


def test_the_worked_circuit():
    circuit = circuits.Circuit((True, True), (((0, False), (1, False)), ((2, True), (2, True))))
    assert circuit.value() is False and slow_run(circuits.program_of(circuit).fields[0])[0] == "A"


@settings(max_examples=50)
@given(seed=SEEDS, inputs=st.integers(1, 6), gates=st.integers(1, 30))
def test_jump_programs_evaluate_circuits(seed, inputs, gates):
    circuit = circuits.random_circuit(np.random.default_rng(seed), inputs, gates)
    assert bool(run(circuits.program_of(circuit)).halts[0]) == circuit.value()


def test_circuits_that_cannot_be_are_refused():
    with pytest.raises(JumpsError, match="earlier|before"):
        circuits.Circuit((True,), (((1, False), (0, False)),))
    with pytest.raises(JumpsError, match="at least one"):
        circuits.Circuit((), ())


def test_the_cell_describes_each_depth(tmp_path):
    config = {"registers": 2, "registers_per_block": 0.0, "exits": "paired", "depths": [4, 8], "data_depth": 3, "programs": 200, "seed": 0}
    (result, measured), (again, _) = describe(config, tmp_path, lambda share: None), describe(config, tmp_path, lambda share: None)
    assert result == again and [found["depth"] for found in result["depths"]] == [4, 8]
    assert all(found["agreement"] == 1 for found in result["depths"]) and measured["programs_per_cpu_second"] > 0


def test_the_data_set_of_the_paper_is_half_covered_and_balanced(tmp_path):
    config = {"registers": 2, "registers_per_block": 0.0, "exits": "single", "depths": [4], "data_depth": 32, "programs": 500, "seed": 0}
    found = describe(config, tmp_path, lambda share: None)[0]["data_set"]
    assert found["programs"] == 500
    assert found["coverage"] == pytest.approx(0.5, abs=0.03) and found["halting_B"] == pytest.approx(0.5, abs=0.02)
