"""Editor, shell and keys: plans driven through the editor, a flat-text model beside it, quoting beside a real shell."""

import posixpath
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyboards import ANY_KEYS, MOVES

from fbam.sessions import actions as key
from fbam.sessions.actions import keystrokes, paste, pasted
from fbam.sessions.editor import COMMAND, INSERT, NORMAL, Editor
from fbam.sessions.edits import Limits, plan
from fbam.sessions.files import File, FileSystem, FileSystemError, decode, encode
from fbam.sessions.keys import edit_keys, leave_keys, reach
from fbam.sessions.shell import Shell, command, in_quotes, quote, split

NEVER = 10**9
CHARACTERS = "ab} \t\r\x01\x7f\x1b\x85\ufeff\u4e2d\u0301\udcff\U0001f600"
TEXTS = st.lists(st.text(alphabet=CHARACTERS, max_size=12), max_size=12).map("\n".join)


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Compile what plans need, or load it, outside of any test's time."""
    plan("a\nb", "c\nd\ne", Limits(), 99)


def opened(text: str = "", height: int = 5) -> Editor:
    files = FileSystem()
    files.write("file", text)
    return Editor(files, "file", height)


def press(target: Editor | Shell, *keys: str) -> None:
    for one in keys:
        target.press(one)


def text_of(editor: Editor) -> str:
    return "\n".join(editor.lines)


# --- plans through the editor ---


def drive(old: str, new: str, limits: Limits, height: int, keys_left: int = NEVER) -> list[str]:
    """Turn ``old`` into ``new`` with keys alone; return the keys."""
    editor = opened(old, height)
    pressed: list[str] = []
    for edit in plan(old, new, limits, keys_left).edits:
        keys = edit_keys(editor, edit)
        press(editor, *keys)
        pressed += keys
    keys = leave_keys(editor)
    press(editor, *keys)
    assert editor.closed and not editor.message
    assert editor.files.files["file"].text == new
    return pressed + keys


@given(TEXTS, TEXTS, st.integers(2, 9), st.builds(Limits, st.integers(0, 99), st.integers(0, 12)), st.integers(0, 300))
@example("", "\n", 2, Limits(), NEVER)
def test_any_text_becomes_any_other_through_the_keys_alone(old, new, height, limits, keys_left):
    drive(old, new, limits, height, keys_left)


@given(st.lists(TEXTS, min_size=2, max_size=4))
def test_keys_are_at_most_typing_everything_anew(texts):
    for old, new in zip(texts, texts[1:]):
        anew = len(keystrokes(new)) + len(":1,99d\r") + len("i\x1b:wq\r")
        assert len(drive(old, new, Limits(), 5)) <= anew + 8 * new.count("\n") + 8


def test_keys_a_changed_character():
    lines = [f"    value[{k}] = function(first, second, {k});" for k in range(1000)]
    old = "\n".join(lines)

    def keys(*changes: tuple[int, str, str]) -> int:
        new = lines.copy()
        for line, before, after in changes:
            new[line] = new[line].replace(before, after)
        return len(drive(old, "\n".join(new), Limits(), 11)) - len("\x1b:wq\r")

    assert keys((0, "value", "alue")) <= len("i") + 4 + 1
    assert keys((500, "value", "values")) <= len(":501\ri") + 9 + 1
    assert keys((2, "second", "third")) <= 3 + 17 + 11  # two lines down, along the line, the word
    assert keys((500, ");", ")")) <= len(":501\ri") + 2
    assert keys((500, ";", ""), (501, ";", ""), (502, ";", "")) <= len(":501\ri") + 2 + 2 * 2
    assert keys((30, ";", ""), (44, ";", "")) <= len(":31\ri") + 2 + len("\x1b:45\ri") + 2


def test_lines_are_cut_by_number_and_empty_ones_with_one_key():
    assert drive("a\nb\nc\nd\n", "a\nd\n", Limits(), 9) == ["i", key.RIGHT, *[key.DELETE] * 4, key.ESCAPE, *":wq\r"]
    assert drive("a\nlong line\nlonger line\nd", "a\nd", Limits(), 9) == [*":2,3d\r", *":wq\r"]
    assert drive("a\n\nb", "a\nb", Limits(), 9) == ["i", key.RIGHT, key.DELETE, key.ESCAPE, *":wq\r"]


@given(TEXTS, st.integers(2, 6), st.data())
def test_every_place_is_reached_no_slower_than_with_arrows_or_by_number(text, height, data):
    editor = opened(text, height)
    for _ in range(4):
        line = data.draw(st.integers(0, len(editor.lines) - 1))
        column = data.draw(st.integers(0, len(editor.lines[line])))
        mode_keys = [key.ESCAPE] if editor.mode == INSERT else []
        along = min(column, 1 + len(editor.lines[line]) - column)
        by_number = len(mode_keys) + len(f":{line + 1}\ri") + along
        with_arrows = abs(line - editor.line) + 1 + column + (editor.mode == NORMAL)
        keys = reach(editor, line, column)
        press(editor, *keys)
        assert (editor.line, editor.column, editor.mode) == (line, column, INSERT)
        assert len(keys) <= min(by_number, with_arrows)


# --- the editor by itself ---


class FlatModel:
    """INSERT mode on one flat text with an offset: what the keys mean, without lines."""

    def __init__(self, text: str, offset: int) -> None:
        self.text, self.offset = text, offset

    def press(self, action: str) -> None:
        before, after = self.text[: self.offset], self.text[self.offset :]
        start = before.rfind("\n") + 1
        stop = len(before) + (after + "\n").find("\n")
        if action == key.LEFT:
            self.offset = max(start, self.offset - 1)
        elif action == key.RIGHT:
            self.offset = min(stop, self.offset + 1)
        elif action == key.HOME:
            self.offset = start
        elif action == key.END:
            self.offset = stop
        elif action == key.BACKSPACE:
            self.text, self.offset = before[:-1] + after, max(0, self.offset - 1)
        elif action == key.DELETE:
            self.text = before + after[1:]
        elif action == key.KILL_BEFORE:
            self.text, self.offset = before[:start] + after, start
        else:
            typed = "\n" if action == key.ENTER else action if pasted(action) is None else pasted(action)
            self.text, self.offset = before + typed + after, self.offset + len(typed)


@given(
    st.text(alphabet="ab\n", max_size=12),
    st.lists(st.sampled_from([*"xy\t", "\r", "\x7f", "\x15", *MOVES[2:6], key.DELETE, paste("p\nq"), paste("")]), max_size=40),
)
def test_insert_mode_is_a_flat_text_with_an_offset(text, keys):
    editor, model = opened(text), FlatModel(text, 0)
    press(editor, "i")
    for one in keys:
        editor.press(one)
        model.press(one)
        offset = sum(len(line) + 1 for line in editor.lines[: editor.line]) + editor.column
        assert (text_of(editor), offset) == (model.text, model.offset)
        assert editor.top <= editor.line < editor.top + editor.height


@given(st.text(alphabet=CHARACTERS + "\n\x00", max_size=30))
def test_text_is_typed_exactly(text):
    editor = opened()
    press(editor, "i", *keystrokes(text))
    assert text_of(editor) == text
    editor = opened()
    press(editor, paste(text))
    assert text_of(editor) == text


@given(st.text(alphabet="ab\n", max_size=30), ANY_KEYS)
def test_every_action_is_taken_in_every_state(text, keys):
    editor = opened(text)
    for one in keys:
        editor.press(one)
        assert editor.lines and not any("\n" in line for line in editor.lines)
        assert 0 <= editor.line < len(editor.lines) and 0 <= editor.column <= len(editor.lines[editor.line])
        assert editor.top <= editor.line < editor.top + editor.height
        if editor.closed:
            break


def test_commands():
    editor = opened("a\nb\nc\nd")
    press(editor, *":3\r")
    assert (editor.line, editor.column, editor.mode) == (2, 0, NORMAL)
    press(editor, *":99\r")
    assert editor.line == 3
    press(editor, *":2,3d\r")
    assert (text_of(editor), editor.line) == ("a\nd", 1)
    press(editor, *":2d\r")
    assert (text_of(editor), editor.line) == ("a", 0)
    press(editor, *":1d\r")
    assert text_of(editor) == ""
    press(editor, *":w\r")
    assert editor.files.files["file"].text == "" and not editor.closed
    press(editor, *":q\r")
    assert editor.closed


@pytest.mark.parametrize("typed", [":5d\r", ":0d\r", ":3,2d\r", ":x\r", ":-1\r", ":\r"])
def test_a_wrong_command_is_answered_and_changes_nothing(typed):
    editor = opened("a\nb\nc")
    press(editor, *typed)
    assert editor.message and text_of(editor) == "a\nb\nc" and editor.mode == NORMAL
    press(editor, key.DOWN)
    assert editor.message == ""


def test_the_command_line_is_edited_and_left():
    editor = opened("a\nb\nc")
    press(editor, *":29", key.BACKSPACE)
    assert (editor.mode, editor.command) == (COMMAND, "2")
    press(editor, key.ENTER)
    assert editor.line == 1
    press(editor, ":", "3", key.ESCAPE)
    assert (editor.mode, editor.line) == (NORMAL, 1)
    press(editor, ":", "3", key.BACKSPACE, key.BACKSPACE)
    assert editor.mode == NORMAL


def test_unsaved_changes_are_kept_until_they_are_discarded():
    editor = opened("a")
    press(editor, *"ib\x1b:q\r")
    assert not editor.closed and "not saved" in editor.message
    press(editor, *":q!\r")
    assert editor.closed and editor.files.files["file"].text == "a"


def test_saving_into_a_missing_directory_is_refused():
    editor = Editor(FileSystem(), "no/file", 5)
    press(editor, *"ix\x1b:wq\r")
    assert not editor.closed and editor.message == "no/file: no such directory"


def test_a_cursor_that_leaves_the_window_stands_in_its_middle():
    editor = opened("\n".join(map(str, range(100))), height=10)
    press(editor, *[key.DOWN] * 9)
    assert editor.top == 0
    press(editor, key.DOWN)
    assert (editor.line, editor.top) == (10, 5)
    press(editor, *":50\r")
    assert editor.top == 44
    press(editor, *[key.UP] * 5)
    assert (editor.line, editor.top) == (44, 44)
    press(editor, key.UP)
    assert (editor.line, editor.top) == (43, 38)
    press(editor, key.PAGE_DOWN)
    assert (editor.line, editor.top) == (52, 47)


# --- shell ---


def ready(**files: str) -> Shell:
    shell = Shell(FileSystem(), height=5)
    for path, text in files.items():
        shell.files.write(path, text)
    return shell


def enter(shell: Shell, line: str) -> str:
    """Type a command and return the answer."""
    before = len(shell.output)
    press(shell, *keystrokes(line), key.ENTER)
    return "\n".join(line.text for line in list(shell.output)[before:] if not line.prompt)


@given(st.lists(st.text(), max_size=4), st.sampled_from([" ", "  ", " \n "]))
def test_quoted_words_are_split_again(words, between):
    assert split(between.join(map(quote, words))) == words
    assert split(between.join(map(in_quotes, words))) == words


@given(st.text(alphabet="ab \"'\\$`!\n\t-~*", max_size=20))
def test_a_command_line_can_be_typed(text):
    shell = ready()
    assert enter(shell, command("vcs", ["commit", "-m", in_quotes(text)], [])).startswith("[1] ")
    assert shell.files.log == [text]


HARD_WORDS = ["", "plain", "two words", 'say "x"', "it's", "a\\b", "$HOME", "`id`", "a\nb", "tab\there", "*", "~", "#", "\u4e2d", "-n"]


def test_quoting_means_the_same_to_a_real_shell():
    line = "printf '%s\\0' " + " ".join(map(quote, HARD_WORDS))
    printed = subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout.decode()
    assert printed.split("\0")[:-1] == HARD_WORDS


@pytest.mark.parametrize(
    "line", ["a'b c'd", 'x"y z"', r"a\ b", r'"\a\"\\"', "'\\'", r"\"", "a\\\nb", '"a\\\nb"', "''", "a  b", r"\\"]
)
def test_splitting_means_the_same_to_a_real_shell(line):
    printed = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout.decode()
    assert split(line) == printed.split("\0")[:-1]


@pytest.mark.parametrize("line", ['"a', "'a", "a\\", 'a "b\nc'])
def test_an_open_quote_continues_on_the_next_line(line):
    assert split(line) is None
    shell = ready()
    press(shell, *keystrokes(line), key.ENTER)
    assert shell.input == line + "\n" and shell.prompted()[-1] == ("> ", "")


def test_commands_of_the_shell():
    shell = ready(a="text")
    for line in ["mkdir -p x/y", "mv a x/y/b", "touch empty", "chmod 755 empty", 'ln -s x/y/b "the link"', "touch -- -p"]:
        assert enter(shell, line) == ""
    assert shell.files.files == {
        "x/y/b": File(0o100644, "text"), "empty": File(0o100755, ""), "the link": File(0o120000, "x/y/b"),
        "-p": File(0o100644, ""),
    }  # fmt: skip
    assert enter(shell, 'vcs commit -m "subject\n\nbody"') == "[1] subject"
    for line in ["rm -- -p", "rm -r x", "rm empty", "touch empty", ""]:
        assert enter(shell, line) == ""
    assert shell.files.files == {"the link": File(0o120000, "x/y/b"), "empty": File(0o100644, "")}
    assert shell.files.directories == {""}
    press(shell, *"vi empty\r")
    assert shell.editor is not None
    press(shell, *"inew\x1b:wq\r")
    assert shell.editor is None and shell.files.files["empty"].text == "new"


def test_version_control_lists_what_differs_from_what_was_added():
    shell = ready(a="text", b="text", c="text")
    assert enter(shell, "vcs status") == "A a\nA b\nA c"
    for line in ["vcs add -A", "touch d", "rm a", "chmod 755 b"]:
        assert enter(shell, line) == ""
    assert enter(shell, "vcs status") == "D a\nM b\nA d"
    assert enter(shell, "vcs add -A") == ""
    assert enter(shell, "vcs status") == "nothing changed"
    assert shell.files.log == []


def test_finished_lines_go_until_half_of_the_pane_is_free():
    shell = Shell(FileSystem(), height=5, rows=8, cols=20)
    for k in range(7):
        enter(shell, f"touch {k}")
    assert [line.text for line in shell.output] == [f"touch {k}" for k in range(7)]
    enter(shell, "touch 7")
    assert [line.text for line in shell.output] == ["touch 5", "touch 6", "touch 7"]
    enter(shell, "vcs commit -m '" + "long " * 40 + "'")
    assert [line.prompt for line in shell.output] == ["$ ", ""]  # the last command stays, however long


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


@given(st.lists(st.tuples(st.sampled_from(["mkdir -p", "touch", "rm", "rm -r", "mv"]), NAMES, NAMES), max_size=20))
def test_the_listing_of_a_directory_is_what_is_in_it(commands):
    shell = ready()
    for name, first, second in commands:
        enter(shell, f"{name} {first}" + f" {second}" * (name == "mv"))
        files = shell.files
        for directory in files.directories:
            paths = [path for path in files.files.keys() | files.directories - {""} if posixpath.dirname(path) == directory]
            assert files.below(directory) == sorted(paths, key=lambda path: (path in files.files, path))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("nope", "nope: command not found"),
        ("rm gone", "rm: gone: no such file"),
        ("rm -x a", "rm: option -x not recognized"),
        ("rm", "rm: takes 1 operands, not 0"),
        ("rm d", "rm: d: is a directory"),
        ("vi d", "vi: d: is a directory"),
        ("mkdir -p a/b", "mkdir: a: not a directory"),
        ("touch no/file", "touch: no/file: no such directory"),
        ("mv a no/file", "mv: no/file: no such directory"),
        ("mv a d", "mv: d: is a directory"),
        ("ln -s x a", "ln: a: file exists"),
        ("ln x y", "ln: only symbolic links, with -s"),
        ("chmod +x a", "chmod: +x: not a mode of three octal digits"),
        ("chmod 755 l", "chmod: l: is a symbolic link"),
        ("vcs push -m x", 'vcs: usage: vcs status | add -A | commit -m "message"'),
        ("vcs", 'vcs: usage: vcs status | add -A | commit -m "message"'),
        ("'two\nlines'", "two\nlines: command not found"),
    ],
)
def test_a_refused_command_is_answered_and_changes_nothing(line, answer):
    shell = ready(a="text", l="")
    shell.files.files["l"] = File(0o120000, "a")
    shell.files.make_directories("d/e")
    before = dict(shell.files.files), set(shell.files.directories)
    assert enter(shell, line) == answer
    assert (shell.files.files, shell.files.directories) == before


def test_the_command_line_of_the_shell_is_edited():
    shell = ready()
    press(shell, *"abd", key.BACKSPACE, "c", key.UP, paste("d\x1b"), "\x16", "\x03")
    assert shell.input == "abcd\x1b\x03"
    press(shell, key.KILL_BEFORE)
    assert shell.input == ""


@given(ANY_KEYS)
def test_the_shell_takes_every_action(keys):
    shell = ready(a="text")
    press(shell, *keys)


# --- files ---


@given(st.binary())
def test_bytes_are_text_and_bytes_again(data):
    assert encode(decode(data)) == data


def test_files_hash_like_git():
    assert File(0o100644, "").oid == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert File(0o100644, "hello\n").oid == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_moving_a_file_onto_itself_keeps_it():
    files = FileSystem()
    files.write("a", "text")
    files.move("a", "a")
    assert files.files == {"a": File(0o100644, "text")}
    with pytest.raises(FileSystemError, match="no such file"):
        files.remove_tree("gone")
