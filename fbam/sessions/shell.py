"""A shell prompt over the in-memory file system, and the grammar of its commands (paper, section 10.1).

A command line is words separated by spaces. A word is made of bare characters, of pieces in single quotes, and of
pieces in double quotes in which a backslash protects ``"``, ``\\``, ``$`` and the backtick; outside quotes a backslash
protects any character; before a new line it joins the lines. An open quote continues on the next line, as in any POSIX
shell. For every text

    split(quote(text)) = [text].

``vi`` opens a file in the editor, which takes all keys until it is left. ``vcs`` only plays version control: ``commit -m``
writes a message into the log, ``add -A`` remembers all files as they are, and ``status`` lists what differs from there.

Where the prompt would leave its pane, the oldest lines go until half of the pane is free: the text stands still in
between, and a screen that moves by half its height at a time changes several times fewer cells than one that moves by
a line at every command.
"""

import getopt
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fbam.sessions.actions import BACKSPACE, ENTER, ESCAPE, KILL_BEFORE, LITERAL, is_text, pasted
from fbam.sessions.editor import Editor
from fbam.sessions.files import FileSystem, FileSystemError
from fbam.sessions.glyphs import Strip, join, plain, strip, wrap

PROMPT_COLOUR = "\2"
"""ANSI palette index: a green prompt."""

_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_MARKS = re.compile(r"""["'\\\n]""")
_PROTECTED = re.compile(r'["\\$`]')
_ESCAPED = re.compile(r'\\(["\\$`\n])')
_PIECE = re.compile(r"""[ \n]+|[^ \n"'\\]+|'[^']*'|"[^"\\]*(?:\\.[^"\\]*)*"|\\.""", re.DOTALL)


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
    if not _MARKS.search(line):
        return [word for word in line.split(" ") if word]
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(line):
        match = _PIECE.match(line, at)
        if match is None:
            return None
        at, piece = match.end(), match[0]
        if piece[0] not in " \n":
            word = (word or "") + _unquoted(piece) if piece != "\\\n" else word
        elif word is not None:
            words.append(word)
            word = None
    return words if word is None else [*words, word]


def _unquoted(piece: str) -> str:
    """What a piece of a word stands for."""
    if piece[0] == "'":
        return piece[1:-1]
    if piece[0] == '"':
        return _ESCAPED.sub(lambda match: match[1].replace("\n", ""), piece[1:-1])
    return piece[1:] if piece[0] == "\\" else piece


class Line(NamedTuple):
    """A line of the shell's screen: ``$ `` or ``> `` before what was typed, nothing before an answer."""

    prompt: str
    text: str


def prompted(typed: str) -> list[Line]:
    """The lines of a command, each behind its prompt."""
    first, *more = typed.split("\n")
    return [Line("$ ", first), *(Line("> ", line) for line in more)]


class Shell:
    """The prompt; while ``editor`` is not None the keys go to the opened file.

    :ivar files: the file system
    :ivar shown: the editor opened last, left or not
    :ivar output: the finished lines that are still on the screen
    :ivar input: the command line typed so far; with an open quote it contains new lines
    """

    def __init__(self, files: FileSystem, height: int, rows: int = 24, cols: int = 80) -> None:
        """Start with an empty prompt.

        :param height: rows of the editor's window
        :param rows: rows of the shell's own pane
        :param cols: columns of the shell's own pane
        """
        self.files, self.height, self.rows, self.cols = files, height, rows, cols
        self.editor: Editor | None = None
        self.shown: Editor | None = None
        self.output: list[Line] = []
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
        return prompted(self.input)

    def _enter(self) -> None:
        words = split(self.input)
        if words is None:
            self.input += "\n"
            return
        typed, self.input = self.input, ""
        try:
            answers = self._run(words) if words else []
        except (FileSystemError, getopt.GetoptError) as error:
            answers = f"{words[0]}: {error}".split("\n")
        self._finish(typed, answers)

    def _finish(self, typed: str, answers: list[str]) -> None:
        """Add a command and its answers; older lines go, where it is needed, until half of the pane is free."""
        lines = [*prompted(typed), *(Line("", answer) for answer in answers)]
        heights = [len(wrap(drawn(line), self.cols)) for line in self.output + lines]
        taken, gone = sum(heights) + 1, 0
        if taken > self.rows:
            while gone < len(self.output) and taken > self.rows // 2:
                taken, gone = taken - heights[gone], gone + 1
        self.output = self.output[gone:] + lines

    def _run(self, words: list[str]) -> list[str]:
        """Carry out a command and return what it answers."""
        name, *arguments = words
        if name not in _COMMANDS:
            raise FileSystemError("command not found")
        short_options, operands, action = _COMMANDS[name]
        options, rest = getopt.getopt(arguments, short_options)
        if operands not in (ANY, len(rest)):
            raise FileSystemError(f"takes {operands} operands, not {len(rest)}")
        return action(self, dict(options), rest) or []

    def _control_versions(self, options: dict[str, str], operands: list[str]) -> list[str]:
        match operands:
            case ["commit", "-m", message]:
                self.files.log.append(message)
                return [f"[{len(self.files.log)}] " + message.split("\n", 1)[0]]
            case ["add", "-A"]:
                self.files.add()
                return []
            case ["status"]:
                return "\n".join(self.files.status() or ["nothing changed"]).split("\n")
        raise FileSystemError('usage: vcs status | add -A | commit -m "message"')

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
        self.editor = self.shown = self.open(operands[0])

    def open(self, path: str) -> Editor:
        """The editor for a file.

        :raises FileSystemError: ``path`` is a directory
        """
        return Editor(self.files, path, self.height)


def drawn(line: Line) -> Strip:
    """A line of the shell without a limit of width."""
    return join(plain(line.prompt, PROMPT_COLOUR), strip(line.text))


ANY = -1
"""Number of operands of a command that looks at them itself."""
_Command = Callable[[Shell, dict[str, str], list[str]], list[str] | None]
_COMMANDS: dict[str, tuple[str, int, _Command]] = {
    # name: (options in getopt's notation, number of operands, what it does)
    "chmod": ("", 2, Shell._chmod),
    "ln": ("s", 2, Shell._link),
    "mkdir": ("p", 1, lambda shell, options, operands: shell.files.make_directories(*operands)),
    "mv": ("", 2, lambda shell, options, operands: shell.files.move(*operands)),
    "rm": ("r", 1, Shell._remove),
    "touch": ("", 1, lambda shell, options, operands: shell.files.touch(*operands)),
    "vcs": ("", ANY, Shell._control_versions),
    "vi": ("", 1, Shell._edit),
}
