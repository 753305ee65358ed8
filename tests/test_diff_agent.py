"""The coding-agent task: effects are functions of the file, the oracle follows them, whoever ignores them falls behind."""

import pytest

from fbam.tasks.agent_stream import OBSERVERS, observe, stream
from fbam.tasks.effects import EFFECTS, GENERATED, generate, reformat, rename
from fbam.tasks.git_diffs import DiffWriter
from fbam.tasks.patches import split_lines

SOURCE = "".join(f"def name_{i}(value):\n    total = value + {i}\n    return total\n\n\n" for i in range(12))
CONTEXTS = (3, 1, 0)


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> DiffWriter:
    return DiffWriter(tmp_path_factory.mktemp("scratch"))


def accuracy(writer, observer, p, every=0, turns=8, context=3, streams=12) -> float:
    right = 0
    for seed in range(streams):
        events = stream(SOURCE, turns, p, CONTEXTS, (0, seed), writer)
        right += observe(observer, events, context, every) == events[-1].state
    return right / streams


def test_effects():
    assert reformat(["a=1  \n", "f(x=1)\n", "\n", " \n", "b == c"]) == ["a = 1\n", "f(x = 1)\n", "\n", "b == c\n"]
    assert rename(["count = item\n", "return count\n", "count_new\n"]) == ["count_new = item\n", "return count_new\n", "count_new\n"]
    assert rename(["bbb aaa\n"]) == ["bbb aaa_new\n"] and rename(["if x\n"]) == ["if x\n"]
    once = generate(["def f():\n", "class C:\n", "    def g(self):\n", "x"])
    assert once == ["def f():\n", "class C:\n", "    def g(self):\n", "x\n", GENERATED, "# 1 f\n", "# 2 C\n", "# 3 g\n"]
    assert generate(once) == once and generate(once[1:])[-2:] == ["# 1 C\n", "# 2 g\n"]


def test_effects_depend_on_what_came_before():
    lines = split_lines("def xxx(yyy):\n    return yyy\n")
    assert generate(rename(lines)) != rename(generate(lines))  # the generated list counts among the names
    assert rename(rename(lines)) != rename(lines)
    assert generate(["def xxx_new(yyy): pass\n"]) != generate(["def xxx(yyy): pass\n"])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("every", [0, 3])
def test_the_oracle_is_always_right(writer, context, every):
    assert accuracy(writer, "serial", 0.5, every, context=context) == 1.0


def test_without_effects_patches_are_enough(writer):
    assert accuracy(writer, "patches alone", 0.0) == 1.0


def test_hidden_effects_hide_the_state(writer):
    for observer in set(OBSERVERS) - {"serial"}:
        low, high = accuracy(writer, observer, 0.8), accuracy(writer, observer, 0.0)
        assert low < 0.3 < high


def test_printing_the_file_side_steps_what_came_before(writer):
    assert accuracy(writer, "patches alone", 0.3, every=7) > accuracy(writer, "patches alone", 0.3)
    events = stream(SOURCE, 5, 1.0, CONTEXTS, (0, 0), writer)
    assert observe("serial", events, 3, 1) == events[-1].state  # printed after every turn but the last


def test_streams_are_deterministic_and_chances_nest(writer):
    one = stream(SOURCE, 10, 0.2, CONTEXTS, (0, 1), writer)
    assert one == stream(SOURCE, 10, 0.2, CONTEXTS, (0, 1), writer) != stream(SOURCE, 10, 0.2, CONTEXTS, (0, 2), writer)
    more = stream(SOURCE, 10, 0.6, CONTEXTS, (0, 1), writer)
    for few, many in zip(one, more):
        assert few.command in ("test", many.command)
    assert {event.command for event in stream(SOURCE, 40, 1.0, CONTEXTS, (0, 1), writer)} == set(EFFECTS) - {"test"}
    assert {event.command for event in stream(SOURCE, 10, 0.0, CONTEXTS, (0, 1), writer)} == {"test"}


def test_files_without_a_last_line_feed_and_of_one_line(writer):
    for text in ("x = 1", "a\nb"):
        events = stream(text, 12, 0.5, CONTEXTS, (0, 0), writer)
        for context in CONTEXTS:
            assert observe("serial", events, context, 0) == events[-1].state
            assert all(isinstance(observe(observer, events, context, 5), str) for observer in OBSERVERS)
