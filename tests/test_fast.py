"""Compiled hands beside the reference: the same actions, the same cells, the same files, on any text and any screen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tape import Tape

from fbam.recording.cells import pack
from fbam.sessions import fast, kernels
from fbam.sessions.edits import Cut, Limits, Splice, plan
from fbam.sessions.fast import FastHands
from fbam.sessions.fast_panes import UNCHANGED, FastTree, cells, code_points
from fbam.sessions.files import FileSystem, FileSystemError
from fbam.sessions.glyphs import Strip
from fbam.sessions.hands import Hands
from fbam.sessions.screen import scroll, tree_row
from fbam.sessions.shell import command, in_quotes
from fbam.sessions.tree import tree

SIZES = [(3, 12), (4, 13), (12, 40), (24, 80), (48, 160)]
HARD = "ab} \t\r\x01\x7f\x1b\x85\ufeff\u4e2d\u0301\u200b\udcff\U0001f600\u00ad"
LINES = st.text(alphabet=HARD, max_size=30) | st.text(alphabet=st.characters(exclude_characters="\n"), max_size=8)
TEXTS = st.lists(LINES | st.sampled_from(["", "x" * 50, "\t" * 9, "\u4e2d" * 30]), max_size=14).map("\n".join)
LIMITS = st.sampled_from([Limits(), Limits(40, 1000, 10**6), Limits(10**6, 20, 10**6), Limits(1000, 1000, 60)])


def both(rows: int, cols: int, limits: Limits, work) -> list[tuple[Tape, Hands | FastHands]]:
    """Let both kinds of hands do the same work; compare all they record."""
    done = []
    for kind in (Hands, FastHands):
        tape = Tape(rows, cols)
        hands = kind(rows, cols, tape, limits)
        work(hands)
        hands.flush()
        done.append((tape, hands))
    (slow_tape, slow), (tape, quick) = done
    for number, (expected, action, frame, made) in enumerate(
        zip(slow_tape.actions, tape.actions, slow_tape.frames, tape.frames)
    ):
        assert (action, number) == (expected, number)
        assert (pack(frame) == pack(made)).all(), f"frame {number}, before {action!r}"
    assert slow_tape.actions == tape.actions and slow_tape.opened == tape.opened
    assert (slow.terminal.frame == quick.frame).all()
    assert (slow.actions, slow.typed, slow.pasted) == (quick.actions, quick.typed, quick.pasted)
    assert slow.files.files == quick.files.files and slow.files.log == quick.files.log
    return done


def rewrite(hands: Hands | FastHands, path: str, new: str) -> None:
    """Open a file and make its text ``new``."""
    hands.run(command("vi", [], [path]))
    file = hands.files.files.get(path)
    hands.edit(path, plan(file.text if file else "", new, hands.limits, hands.budget_end - hands.actions).edits)
    assert hands.files.files[path].text == new


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile the kernels, or load them, outside of any test's time."""
    both(12, 40, Limits(), lambda hands: rewrite(hands, "a", "b\n\n"))
    plan("a\nb", "c\nd\ne", Limits(), 99)


@given(st.sampled_from(SIZES), LIMITS, st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=40)
def test_any_text_becomes_any_other(size, limits, texts):
    def work(hands):
        for text in texts:
            rewrite(hands, "file", text)

    both(*size, limits, work)


@st.composite
def edits(draw: st.DrawFn, lines: list[str]):
    """Any edits that fit a text, in any order: cursors come from above, from below and along the line."""
    made = []
    for _ in range(draw(st.integers(1, 6))):
        line = draw(st.integers(0, len(lines) - 1))
        if draw(st.booleans()):
            column = draw(st.integers(0, len(lines[line])))
            removed = draw(st.integers(0, len(lines[line]) - column))
            text = draw(TEXTS.map(lambda text: text[:40]) | LINES)
            made.append(Splice(line, column, removed, text, draw(st.booleans())))
            lines[line : line + 1] = (lines[line][:column] + text + lines[line][column + removed :]).split("\n")
        else:
            count = draw(st.integers(1, len(lines) - line))
            made.append(Cut(line, count))
            lines[line : line + count] = []
            lines[:] = lines or [""]
    return made


@given(st.sampled_from(SIZES), TEXTS, st.data())
@settings(max_examples=40)
def test_any_edits_in_any_order(size, text, data):
    lines = text.split("\n")
    steps = data.draw(edits(lines))

    def work(hands):
        rewrite(hands, "file", text)
        hands.run("vi file")
        hands.edit("file", steps)

    done = both(*size, Limits(), work)
    assert done[0][1].files.files["file"].text == "\n".join(lines)


NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/e/a", "d/e/b", "sp ace", "-x", "\u4e2d\u6587" * 9, "tab\t", "a" * 70, "\udcff"])
COMMANDS = st.one_of(
    st.builds(lambda name, path: command(name, [], [path]), st.sampled_from(["rm", "touch", "nope", "chmod 755"]), NAMES),
    st.builds(lambda path: command("mkdir", ["-p"], [path]), NAMES),
    st.builds(lambda path: command("rm", ["-r"], [path]), NAMES),
    st.builds(lambda one, other: command("mv", [], [one, other]), NAMES, NAMES),
    st.builds(lambda text: command("vcs", ["commit", "-m", in_quotes(text)], []), st.text(alphabet=HARD + "\n\"'$", max_size=99)),
    st.sampled_from(["vcs status", "vcs add -A", "", "  "]),
)


PATHS = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "d/e/f/c", "e/a", "e/d/a", "z"]


@given(st.sampled_from(SIZES), LIMITS, st.lists(COMMANDS | st.tuples(NAMES, TEXTS), max_size=12))
@settings(max_examples=40)
def test_any_commands_between_edits(size, limits, work):
    def carry_out(hands):
        for step in work:
            if isinstance(step, str):
                hands.run(step)
            elif step[0] not in hands.files.directories and step[0].rpartition("/")[0] in hands.files.directories:
                rewrite(hands, *step)

    both(*size, limits, carry_out)


def test_long_files_scroll_both_ways_and_grow_every_array():
    lines = [f"{k} " + "\u4e2d\t" * (k % 40) + "x" * (3 * k % 200) for k in range(300)]
    other = [line.replace("x", "yy") if k % 7 else line[::-1] for k, line in enumerate(lines)]

    def work(hands):
        rewrite(hands, "file", "\n".join(lines[:20]))
        rewrite(hands, "file", "\n".join(lines))
        rewrite(hands, "file", "\n".join(other))
        rewrite(hands, "file", "\n".join(other[250:]))

    both(24, 80, Limits(10**6, 150, 10**6), work)


def test_chunks_of_any_size_say_the_same(monkeypatch):
    text = "\n".join(f"line {k}" for k in range(60))
    whole = both(12, 40, Limits(), lambda hands: rewrite(hands, "file", text))
    monkeypatch.setattr(fast, "CHUNK_ACTIONS", 7)
    monkeypatch.setattr(fast, "CHUNK_CHANGES", 1)
    parts = both(12, 40, Limits(), lambda hands: rewrite(hands, "file", text))
    assert parts[1][0].actions == whole[1][0].actions


def test_a_small_arena_grows(monkeypatch):
    def work(hands):
        if isinstance(hands, FastHands):
            hands._arena = np.zeros(80, np.uint32)
        rewrite(hands, "file", "\n".join("word " * k for k in range(30)))

    both(12, 40, Limits(), work)
    both(12, 40, Limits(file_characters=10), work)


def test_a_tree_longer_than_its_pane():
    def work(hands):
        for k in range(70):
            hands.run(f"touch {k:02}")
        hands.run("mkdir -p d/e")
        for path in ["60", "d/e/x", "10"]:
            rewrite(hands, path, "other")
            hands.run(f"rm {path}")

    both(24, 80, Limits(), work)


def test_long_lines_at_their_end():
    """Columns of one, two and three digits, windows that scroll sideways, characters that take several cells or none."""
    text = "\n".join(["word " * 60, "\t\u4e2d" * 30 + "x" * 130, "y" * 9 + "\x01" + "z" * 200, "", "a\u0301" * 40])

    def work(hands):
        for goal in [text, text.replace("word ", "words "), text + "\n" + text[::-1]]:
            rewrite(hands, "file", goal)

    both(24, 80, Limits(), work)


@given(
    st.lists(st.tuples(st.sampled_from(["touch", "mkdir", "rm", "mv"]), st.sampled_from(PATHS), st.sampled_from(PATHS)), max_size=30),
    st.integers(1, 9),
)
def test_the_window_of_the_tree_is_cut_from_the_whole(steps, height):
    files = FileSystem()
    window = FastTree(files, height, 30)
    for name, path, other in steps:
        try:
            match name:
                case "touch":
                    files.make_directories(path.rpartition("/")[0])
                    files.touch(path)
                case "mkdir":
                    files.make_directories(path)
                case "rm":
                    files.remove_tree(path)
                case "mv":
                    files.move(path, other)
        except FileSystemError:
            pass
        for shown in [path, other, None]:
            names = tree(files, shown)
            at = next((k for k, (one, _) in enumerate(names) if one == shown), -1)
            top = scroll(max(at, 0), height)
            row = window.look(shown)
            assert row == (at - top if at >= 0 else -1) or row == UNCHANGED
            expected = [pack_row(tree_row(*name, None, 30)[0], 30) for name in names[top : top + height]]
            assert window.cells.tolist() == expected
            assert files.below("") == sorted(files.below(""), key=lambda one: (one not in files.directories, one))


def pack_row(drawing: Strip, cols: int) -> list[int]:
    return [*cells(drawing).tolist(), *[32] * (cols - len(drawing.text))]


@given(st.text())
def test_code_points(text):
    assert code_points(text).tolist() == [ord(character) for character in text]
    assert code_points(text).flags.writeable


def test_names_of_keys_agree():
    assert len(fast.SPECIAL_KEYS) == -kernels.DELETE
    assert [bytes(row.tolist()).decode().rstrip() for row in kernels.MODES] == ["NORMAL", "INSERT", "COMMAND", "LITERAL", "SHELL"]
