"""A shell prompt over the in-memory file system, and the grammar of its commands (paper, section 10.1).

A command line is words separated by spaces. A word is made of bare characters, of pieces in single quotes, and of
pieces in double quotes in which a backslash protects ``"``, ``\\``, ``$`` and the backtick; outside quotes a backslash
protects any character; before a new line it joins the lines. An open quote continues on the next line, as in any POSIX
shell. For every text

    split(quote(text)) = [text].
"""

import getopt
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fbam.sessions.actions import BACKSPACE, ENTER, ESCAPE, KILL_BEFORE, LITERAL, is_text, pasted
from fbam.sessions.editor import Editor
from fbam.sessions.files import FileSystem, FileSystemError

SCROLLBACK = 200
"""Finished lines that the shell keeps for the screen."""

_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_PROTECTED = re.compile(r'["\\$`]')


def quote(text: str) -> str:
    """``text`` as one word of a command line: bare where that is safe, in double quotes otherwise."""
    return text if _BARE.fullmatch(text) else in_quotes(text)


def in_quotes(text: str) -> str:
    """``text`` as one word in double quotes."""
    return '"' + _PROTECTED.sub(lambda match: "\\" + match[0], text) + '"'


def command(name: str, options: Sequence[str], operands: Sequence[str]) -> str:
    """A command line of options as they are and operands to be quoted; ``--`` comes before operands with a dash."""
    dashes = ["--"] if any(operand.startswith("-") for operand in operands) else []
    return " ".join([name, *options, *dashes, *map(quote, operands)])


def split(line: str) -> list[str] | None:
    """The words of a command line, None while a quote or a final backslash is open."""
    words: list[str] = []
    word: list[str] | None = None
    open_quote = ""
    characters = iter(line)
    for character in characters:
        if not open_quote and character in " \n":
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if character == "\\" and open_quote != "'":
            following = next(characters, None)
            if following is None:
                return None
            if following == "\n":
                continue
            keep = open_quote and not _PROTECTED.fullmatch(following)
            word += ("\\", following) if keep else (following,)
        elif character == open_quote:
            open_quote = ""
        elif not open_quote and character in "\"'":
            open_quote = character
        else:
            word.append(character)
    if open_quote:
        return None
    return words if word is None else [*words, "".join(word)]


class Line(NamedTuple):
    """A line of the shell's screen: ``$ `` or ``> `` before what was typed, nothing before an answer."""

    prompt: str
    text: str


class Shell:
    """The prompt; while ``editor`` is not None the keys go to the opened file.

    :ivar files: the file system
    :ivar output: finished lines, the last ``SCROLLBACK`` of them, as they stand on the screen
    :ivar input: the command line typed so far; with an open quote it contains new lines
    """

    def __init__(self, files: FileSystem, height: int) -> None:
        self.files, self.height = files, height
        self.editor: Editor | None = None
        self.output: deque[Line] = deque(maxlen=SCROLLBACK)
        self.input = ""
        self.literal = False

    def press(self, action: str) -> None:
        """Take one action."""
        if self.editor is not None:
            self.editor.press(action)
            if self.editor.closed:
                self.editor = None
        elif self.literal:
            self.literal = False
            if len(action) == 1:
                self.input += action
        elif action == ENTER:
            self._enter()
        elif is_text(action):
            self.input += action
        elif action == BACKSPACE:
            self.input = self.input[:-1]
        elif action in (KILL_BEFORE, ESCAPE):
            self.input = ""
        elif action == LITERAL:
            self.literal = True
        elif (text := pasted(action)) is not None:
            self.input += text

    def prompted(self) -> list[Line]:
        """The lines of the command typed so far, each behind its prompt."""
        first, *more = self.input.split("\n")
        return [Line("$ ", first), *(Line("> ", line) for line in more)]

    def _enter(self) -> None:
        words = split(self.input)
        if words is None:
            self.input += "\n"
            return
        self.output.extend(self.prompted())
        self.input = ""
        if not words:
            return
        try:
            self._run(words)
        except (FileSystemError, getopt.GetoptError) as error:
            self._answer(f"{words[0]}: {error}")

    def _answer(self, text: str) -> None:
        self.output.extend(Line("", line) for line in text.split("\n"))

    def _run(self, words: list[str]) -> None:
        name, *arguments = words
        if name not in _COMMANDS:
            raise FileSystemError("command not found")
        short_options, operands, action = _COMMANDS[name]
        options, rest = getopt.getopt(arguments, short_options)
        if len(rest) != operands:
            raise FileSystemError(f"takes {operands} operands, not {len(rest)}")
        action(self, dict(options), rest)

    def _commit(self, options: dict[str, str], operands: list[str]) -> None:
        subcommand, option, message = operands
        if (subcommand, option) != ("commit", "-m"):
            raise FileSystemError('usage: vcs commit -m "message"')
        self.files.log.append(message)
        self._answer(f"[{len(self.files.log)}] " + message.split("\n", 1)[0])

    def _chmod(self, options: dict[str, str], operands: list[str]) -> None:
        if not re.fullmatch("[0-7]{3}", operands[0]):
            raise FileSystemError(f"{operands[0]}: not a mode of three octal digits")
        self.files.chmod(int(operands[0], 8), operands[1])

    def _remove(self, options: dict[str, str], operands: list[str]) -> None:
        (self.files.remove_tree if "-r" in options else self.files.remove)(operands[0])

    def _link(self, options: dict[str, str], operands: list[str]) -> None:
        if "-s" not in options:
            raise FileSystemError("only symbolic links, with -s")
        self.files.link(*operands)

    def _edit(self, options: dict[str, str], operands: list[str]) -> None:
        self.editor = Editor(self.files, operands[0], self.height)


_Command = Callable[[Shell, dict[str, str], list[str]], None]
_COMMANDS: dict[str, tuple[str, int, _Command]] = {
    # name: (options in getopt's notation, number of operands, what it does)
    "chmod": ("", 2, Shell._chmod),
    "ln": ("s", 2, Shell._link),
    "mkdir": ("p", 1, lambda shell, options, operands: shell.files.make_directories(*operands)),
    "mv": ("", 2, lambda shell, options, operands: shell.files.move(*operands)),
    "rm": ("r", 1, Shell._remove),
    "touch": ("", 1, lambda shell, options, operands: shell.files.touch(*operands)),
    "vcs": ("", 3, Shell._commit),
    "vi": ("", 1, Shell._edit),
}
