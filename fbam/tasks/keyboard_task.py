"""Editing tasks as recordings: sessions at the real editor, written like any other recording (paper, appendix G, section 10.1).

A task draws sessions. A session is the list of keys that opens a file in the editor, works in it and leaves it unsaved, so that the
next one finds it empty again:

    vi a Enter, i, ..., Escape, :q! Enter

The frames come from the terminal that the keys are pressed on, so nothing in a recording is drawn by hand. For keys that type again
what has left the screen a session says for how many frames it has been gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fbam.recording.format import RecordingWriter
from fbam.recording.tokens import ActionTokenizer
from fbam.sessions.actions import ENTER, ESCAPE
from fbam.sessions.editor import Editor
from fbam.sessions.files import FileSystem
from fbam.sessions.screen import Terminal

PATH = "a"
"""The file that every session edits."""
LEAVING = (ESCAPE, *":q!", ENTER)
"""The keys that end a session."""
MAX_ROWS, MAX_COLS = 23, 79
"""Larger frames show more than one pane."""
GUTTER = 3
"""Cells of the line number and the blank behind it, for files of up to 99 lines."""
BLOCK_FRAMES = 128
"""Frames a block of the recordings."""


class TaskError(ValueError):
    """A task that cannot be set as asked; the message names the value and the remedy."""


@dataclass(frozen=True)
class Session:
    """What a session presses and what it leaves.

    :ivar actions: all keys, from the shell's prompt to the shell's prompt
    :ivar hidden: for each key the frames for which what it types had been gone from the screen; 0 where nothing is typed again that
        has been gone
    :ivar text: the text in the editor before it is left
    :ivar given: keys after which the rest follows by rule, none left to chance
    """

    actions: tuple[str, ...]
    hidden: tuple[int, ...]
    text: str
    given: int

    @property
    def recalled(self) -> list[int]:
        """Places of the keys that begin a run of such keys: nothing typed again is to be seen when they are pressed."""
        return [t for t, gone in enumerate(self.hidden) if gone and not self.hidden[t - 1]]


def beginning(session: Session) -> int:
    """Keys that a model is shown before a roll-out: up to where the rest follows by rule, of a session left to chance the first half."""
    typed = len(session.actions) - len(LEAVING)
    return session.given if session.given < typed else typed // 2


class Keyboard:
    """An opened file, and the keys pressed on it so far.

    :param height: rows of text in the window
    """

    def __init__(self, height: int) -> None:
        self.editor = Editor(FileSystem(), PATH, height)
        self.actions = [*f"vi {PATH}", ENTER]
        self.hidden = [0] * len(self.actions)

    def press(self, *keys: str, hidden: Sequence[int] = ()) -> None:
        """Press keys; ``hidden`` has one number a key, or is left out where nothing hidden is typed."""
        for key in keys:
            self.editor.press(key)
        self.actions += keys
        self.hidden += hidden or [0] * len(keys)

    def leave(self, given: int) -> Session:
        """Close the editor without saving."""
        text = "\n".join(self.editor.lines)
        self.press(*LEAVING)
        return Session(tuple(self.actions), tuple(self.hidden), text, given)


@dataclass(frozen=True)
class KeyboardTask(ABC):
    """A kind of session in a frame of R x C cells, one pane above the bar.

    :raises TaskError: the frame is too small or too large
    """

    rows: int = 4
    cols: int = 20

    NAME: ClassVar[str]
    LEAST: ClassVar[tuple[int, int]]
    """Smallest frame, rows and columns."""

    def __post_init__(self) -> None:
        rows, cols = self.LEAST
        if not (rows <= self.rows <= MAX_ROWS and cols <= self.cols <= MAX_COLS):
            sizes = f"{rows} to {MAX_ROWS} rows and {cols} to {MAX_COLS} columns"
            raise TaskError(f"the task {self.NAME} needs {sizes}, not {self.rows} x {self.cols}")

    @property
    def height(self) -> int:
        """Rows of text that the window shows."""
        return self.rows - 1

    @property
    def width(self) -> int:
        """Longest line that is seen whole with the cursor behind it."""
        return self.cols - GUTTER - 1

    @property
    def earlier(self) -> list[str]:
        """Keys of empty sessions, as many as the window has rows, after which the shell looks as it does within a recording."""
        return [*f"vi {PATH}", ENTER, *LEAVING] * self.height

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Session:
        """Draw a session."""

    @classmethod
    @abstractmethod
    def keys(cls) -> set[str]:
        """All actions that a session can contain."""

    def sessions(self, seed: int, count: int) -> list[Session]:
        """Draw sessions of different texts; the first ones are the same however many are drawn.

        :raises TaskError: there are not so many texts
        """
        rng = np.random.default_rng(seed)
        found: dict[str, Session] = {}
        for _ in range(10 * count):
            session = self.sample(rng)
            found.setdefault(session.text, session)
            if len(found) == count:
                return list(found.values())
        raise TaskError(f"{count} sessions of the task {self.NAME} with different texts were not found: ask for fewer")

    def write_recording(self, path: Path | str, seed: int, count: int) -> list[Session]:
        """Press the sessions of ``seed`` on a terminal, one after the other, and record them.

        Each is marked as a commit with its text as the message, so that a share of the commits is a share of the texts and no text is in
        two shares.
        """
        sessions = self.sessions(seed, count)
        terminal = Terminal(self.rows, self.cols)
        header = {"source": self.NAME, "revision": str(seed), "task": asdict(self), "message": "none"}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with RecordingWriter(path, self.rows, self.cols, block_frames=BLOCK_FRAMES, header=header) as writer:
            for number, session in enumerate(sessions):
                for action in session.actions:
                    writer.append(terminal.frame, action)
                    terminal.press(action)
                writer.mark_commit(f"{self.NAME}-{number:05d}", session.text)
        return sessions

    @classmethod
    def tokenizer(cls) -> ActionTokenizer:
        """One token an action, so that every key is predicted."""
        return ActionTokenizer(sorted(cls.keys()), [])
