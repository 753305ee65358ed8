"""Typing tasks: worked examples, what is hidden against a slow look at every frame, recordings that their keys make again."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbam.recording.format import Recording
from fbam.recording.tokens import RESERVED
from fbam.sessions.screen import Terminal
from fbam.sessions.verify import replay
from fbam.tasks import typing_task
from fbam.tasks.keyboard_task import LEAVING, TaskError, beginning
from fbam.tasks.typing_task import TASKS, WORDS, Edits, Scrolling, Typing

ALL = pytest.mark.parametrize("kind", TASKS.values(), ids=TASKS)


def screens(task, session) -> list[list[str]]:
    """The rows of text shown when each key is pressed, without line numbers and the bar."""
    terminal, shown = Terminal(task.rows, task.cols), []
    for action in session.actions:
        shown.append(["".join(map(chr, row["code"].tolist())) for row in terminal.frame[:-1]])
        terminal.press(action)
    assert terminal.shell.editor is None
    return shown


def letters_of(shown: list[str], line: int) -> str | None:
    """What the screen shows of a line of the file, by its number at the left; None where it shows none of it."""
    for row in shown:
        if row[:3].strip() == str(line + 1):
            return row[3:].rstrip()
    return None


def test_the_worked_examples_are_what_they_say():
    assert doctest.testmod(typing_task).attempted >= 5
    assert doctest.testmod(typing_task).failed == 0


@ALL
def test_a_session_is_pressed_on_the_real_editor(kind):
    task = kind()
    for session in task.sessions(3, 20):
        terminal = Terminal(task.rows, task.cols)
        for action in session.actions[: -len(LEAVING)]:
            terminal.press(action)
        assert "\n".join(terminal.shell.editor.lines) == session.text
        assert terminal.shell.editor.height == task.height
        assert set(session.actions) <= kind.keys() and len(session.hidden) == len(session.actions)
        assert set(session.text.split()) <= set(WORDS)
        assert 0 < beginning(session) <= session.given <= len(session.actions) - len(LEAVING)


@ALL
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(3, 8), cols=st.integers(20, 40))
def test_lines_are_seen_whole(kind, seed, rows, cols):
    """Nothing scrolls sideways: what is in the window of the file is what the screen shows, at every key."""
    task = kind(rows, cols)
    session = task.sample(np.random.default_rng(seed))
    terminal = Terminal(rows, cols)
    for action in session.actions:
        terminal.press(action)
        if editor := terminal.shell.editor:
            shown = ["".join(map(chr, row["code"][3:].tolist())).rstrip() for row in terminal.frame[:-1]]
            window = [line.rstrip() for line in editor.lines[editor.top : editor.top + task.height]]
            assert shown[: len(window)] == window


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(3, 6), cols=st.integers(20, 40))
def test_edits_hide_as_many_frames_as_they_say(seed, rows, cols):
    """Slow reference: for each letter typed again, look back for the last frame whose first line still has it."""
    task = Edits(rows, cols)
    session = task.sample(np.random.default_rng(seed))
    shown = screens(task, session)
    words = session.text.strip().split(" ")
    assert len(words) == len(set(words)) == 3
    first_line = " ".join(reversed(words))
    assert "".join(session.actions[6 : session.given]) == first_line
    starts = {word: first_line.index(word) for word in words}
    expected = [0] * len(session.actions)
    for t in range(session.given, len(session.actions) - len(LEAVING)):
        if session.actions[t].isalpha():
            below = letters_of(shown[t + 1], 1).split()
            column = starts[words[len(below) - 1]] + len(below[-1]) - 1  # where the letter just typed stood in the first line
            expected[t] = next(t - s for s in range(t, 0, -1) if len(letters_of(shown[s], 0) or "") > column)
    assert list(session.hidden) == expected
    assert [session.actions[t] for t in session.recalled] == [word[0] for word in words]
    assert min(session.hidden[t] for t in session.recalled) >= 3


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(3, 7), cols=st.integers(12, 40))
def test_scrolling_hides_as_many_frames_as_it_says(seed, rows, cols):
    """Slow reference: look back for the last frame that shows the line being repeated, by its number at the left."""
    task = Scrolling(rows, cols)
    session = task.sample(np.random.default_rng(seed))
    shown = screens(task, session)
    lines = session.text.split("\n")
    half = len(lines) // 2
    assert lines[:half] == lines[half:] and half == task.height
    line = half - 1
    for t in range(session.given, len(session.actions) - len(LEAVING)):
        if session.actions[t] == "\r":
            line += 1
            assert session.hidden[t] == 0
        else:
            last = next(s for s in range(t, 0, -1) if letters_of(shown[s], line - half) is not None)
            assert session.hidden[t] == t - last
    assert len(session.recalled) == half and not any(session.hidden[: session.given])


@ALL
def test_the_shell_before_a_session_is_that_of_a_recording(kind):
    task = kind()
    long, short = Terminal(task.rows, task.cols), Terminal(task.rows, task.cols)
    for session in task.sessions(0, task.height):
        for action in session.actions:
            long.press(action)
    for action in task.earlier:
        short.press(action)
    assert short.frame.tobytes() == long.frame.tobytes() != Terminal(task.rows, task.cols).frame.tobytes()


def test_typing_hides_nothing():
    assert not any(any(session.hidden) for session in Typing().sessions(0, 20))


@ALL
def test_a_recording_is_made_again_by_its_keys(kind, tmp_path):
    task = kind(4, 20)
    sessions = task.write_recording(tmp_path / "a.fbam", 5, 12)
    task.write_recording(tmp_path / "b.fbam", 5, 12)
    assert (tmp_path / "a.fbam").read_bytes() == (tmp_path / "b.fbam").read_bytes()
    recording = Recording(tmp_path / "a.fbam")
    assert recording.actions == [action for session in sessions for action in session.actions]
    assert replay(recording) == recording.n_frames
    assert [commit.message for commit in recording.commits] == [session.text for session in sessions]
    assert [commit.stop - commit.start for commit in recording.commits] == [len(session.actions) for session in sessions]


@ALL
def test_texts_differ_and_do_not_depend_on_how_many_are_drawn(kind):
    few, many = kind().sessions(1, 30), kind().sessions(1, 60)
    assert many[:30] == few and len({session.text for session in many}) == 60
    assert kind().sessions(2, 30) != few


@ALL
def test_the_vocabulary_has_a_token_for_each_key(kind):
    tokenizer = kind.tokenizer()
    assert tokenizer.vocab_size == len(RESERVED) + len(kind.keys()) < 100
    session = kind().sessions(0, 1)[0]
    starts, tokens = tokenizer.encode(session.actions)
    assert starts.tolist() == list(range(len(session.actions))) and tokens.min() >= len(RESERVED)


@pytest.mark.parametrize("kind, size, named", [
    (Typing, (2, 20), "3 to 23 rows"), (Typing, (4, 11), "12 to 79 columns"), (Scrolling, (24, 80), "not 24 x 80"), (Edits, (4, 15), "16 to 79"),
])  # fmt: skip
def test_a_frame_that_does_not_fit_is_refused(kind, size, named):
    with pytest.raises(TaskError, match=named):
        kind(*size)


def test_what_cannot_be_set_is_refused():
    with pytest.raises(TaskError, match="1 to 4 are sure to fit into 20 columns"):
        Edits(4, 20, words=5)
    with pytest.raises(TaskError, match="ask for fewer"):
        Edits(3, 16, words=1).sessions(0, len(WORDS) + 1)
