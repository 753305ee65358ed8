"""Typing, edits and scrolling: three tasks that differ in what the screen hides (paper, appendix G).

=========  ==========================================  =====================================================================
task       what is typed                               hidden
=========  ==========================================  =====================================================================
typing     a paragraph of Latin words                  nothing: the next key depends on the frame alone
edits      words, each of which is then cut and        a letter between its deletion and its second typing
           typed again on the line below
scrolling  lines, of which the second half repeats     the line that is being repeated, from before it is typed again
           the first
=========  ==========================================  =====================================================================

Lines break where the longest word would no longer fit, whichever word comes, so that a break is never a surprise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fbam.sessions.actions import BACKSPACE, DOWN, END, ENTER, HOME, LEFT, RIGHT, UP, keystrokes
from fbam.sessions.keys import reach
from fbam.tasks.keyboard_task import LEAVING, PATH, Keyboard, KeyboardTask, Session, TaskError

WORDS = ("amor", "aqua", "bona", "caro", "dies", "ergo", "fama", "hora", "lex", "luna", "mare", "nox", "rex", "sol", "vita", "vox")
SHORTEST, LONGEST = min(map(len, WORDS)), max(map(len, WORDS))

_SHELL_AND_TEXT = {*f"vi {PATH}", ENTER, "i", *"".join(WORDS), " ", *LEAVING}


def _line(rng: np.random.Generator, width: int) -> str:
    """Words until the longest one would no longer fit."""
    line = str(rng.choice(WORDS))
    while len(line) + 1 + LONGEST <= width:
        line += " " + str(rng.choice(WORDS))
    return line


@dataclass(frozen=True)
class Typing(KeyboardTask):
    """A paragraph that fills the window, never deleted and never scrolled (appendix G): fully observable.

    The only chance is in which word comes next; the rest of a word, line breaks and the end follow from the frame.

    >>> Typing(3, 16).sample(np.random.default_rng(0)).text
    'sol mare\\nlex dies'
    """

    NAME: ClassVar[str] = "typing"
    LEAST: ClassVar[tuple[int, int]] = (3, 12)

    def sample(self, rng: np.random.Generator) -> Session:
        """Draw a session."""
        text = "\n".join(_line(rng, self.width) for _ in range(self.height))
        board = Keyboard(self.height)
        board.press("i", *keystrokes(text))
        return board.leave(given=len(board.actions))

    @classmethod
    def keys(cls) -> set[str]:
        """All actions that a session can contain."""
        return _SHELL_AND_TEXT


@dataclass(frozen=True)
class Edits(KeyboardTask):
    r"""A line of different words, of which, from the last to the first, each is cut and typed again at the end of the line below.

    Partly observable: a word is cut by Backspaces, d for its letters and b = 1 for the blank before it (b = 0 for the first word), then m
    keys move the cursor there, Enter or a blank included, and the word is typed. When letter k (from 1) is pressed, so many frames up
    to the present one have not shown it:

    $$2 k + b + m - 1$$

    that is 3 for the first letter of the first word that is cut. Nor does the frame alone say whether a word is being typed or cut. Once the
    first line is typed, all other keys follow by rule from what the screen has shown.

    >>> session = Edits().sample(np.random.default_rng(2))
    >>> "".join(session.actions[6:19]), session.text
    ('caro aqua nox', '\nnox aqua caro')
    >>> session.actions[19:27], session.hidden[24:27]
    (('\x7f', '\x7f', '\x7f', '\x7f', '\r', 'n', 'o', 'x'), (3, 5, 7))

    :ivar words: words of the line
    """

    words: int = 3

    NAME: ClassVar[str] = "edits"
    LEAST: ClassVar[tuple[int, int]] = (3, 16)

    def __post_init__(self) -> None:
        super().__post_init__()
        most = (self.width + 1) // (SHORTEST + 1)
        if not 1 <= self.words <= most:
            raise TaskError(f"edits with {self.words} words: 1 to {most} are sure to fit into {self.cols} columns")

    def sample(self, rng: np.random.Generator) -> Session:
        """Draw a session."""
        words = self._words(rng)
        board = Keyboard(self.height)
        board.press("i", *" ".join(words))
        given = len(board.actions)
        for word in reversed(words):
            self._move(board, word)
        return board.leave(given)

    def _words(self, rng: np.random.Generator) -> list[str]:
        while True:
            words = rng.choice(WORDS, self.words, replace=False).tolist()
            if len(" ".join(words)) <= self.width:
                return words

    def _move(self, board: Keyboard, word: str) -> None:
        """Cut the last word of the first line and type it behind the last one of the second."""
        editor = board.editor
        board.press(*reach(editor, 0, len(editor.lines[0])))
        blank = len(editor.lines[0]) > len(word)
        board.press(*[BACKSPACE] * (len(word) + blank))
        cut = len(board.actions)
        board.press(*([ENTER] if len(editor.lines) == 1 else [*reach(editor, 1, len(editor.lines[1])), " "]))
        moves = len(board.actions) - cut
        board.press(*word, hidden=[2 * k + blank + moves - 1 for k in range(1, len(word) + 1)])

    @classmethod
    def keys(cls) -> set[str]:
        """All actions that a session can contain."""
        return _SHELL_AND_TEXT | {BACKSPACE, UP, DOWN, LEFT, RIGHT, HOME, END}


@dataclass(frozen=True)
class Scrolling(KeyboardTask):
    """A file longer than the window: as many lines as it shows, then the same lines once more.

    Partly observable in the second half: the line that is being repeated has left the window, with the Enter before it or an earlier one,
    because the window moves by half its height or more. When its letter k (from 1) is pressed, at least k frames up to the present one
    have not shown it; ``Session.hidden`` has the number. Once the first half is typed, the second follows by rule.

    >>> Scrolling(3, 16).sample(np.random.default_rng(0)).text
    'sol mare\\nlex dies\\nsol mare\\nlex dies'
    """

    NAME: ClassVar[str] = "scrolling"
    LEAST: ClassVar[tuple[int, int]] = (3, 12)

    def sample(self, rng: np.random.Generator) -> Session:
        """Draw a session."""
        lines = [_line(rng, self.width) for _ in range(self.height)]
        board = Keyboard(self.height)
        board.press("i", *keystrokes("\n".join(lines)))
        given = len(board.actions)
        seen: dict[int, int] = {}
        for number, line in enumerate(lines):
            for key in (ENTER, *line):
                now, top = len(board.actions), board.editor.top
                seen |= dict.fromkeys(range(top, top + self.height), now)
                board.press(key, hidden=[0 if key == ENTER else now - seen[number]])
        return board.leave(given)

    @classmethod
    def keys(cls) -> set[str]:
        """All actions that a session can contain."""
        return _SHELL_AND_TEXT


TASKS: dict[str, type[KeyboardTask]] = {task.NAME: task for task in (Typing, Edits, Scrolling)}
