"""Actions: one key or one terminal control sequence each, as ``str`` (paper, section 10.1)."""

ENTER, TAB, BACKSPACE, ESCAPE = "\r", "\t", "\x7f", "\x1b"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, PAGE_UP, PAGE_DOWN, DELETE = "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[3~"
KILL_BEFORE = "\x15"
"""Control-U: delete everything between the start of the line and the cursor."""
LITERAL = "\x16"
"""Control-V: the next character is text, whatever key it would be."""
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"


def keystrokes(text: str) -> list[str]:
    """The keys that type ``text``: a new line is Enter, control characters other than tab follow Control-V."""
    if text.isprintable():
        return list(text)
    keys: list[str] = []
    for character in text:
        if character == "\n":
            keys.append(ENTER)
        elif is_text(character):
            keys.append(character)
        else:
            keys += (LITERAL, character)
    return keys


def paste(text: str) -> str:
    """The one action of a bracketed paste."""
    return PASTE_START + text + PASTE_END


def pasted(action: str) -> str | None:
    """The text of a bracketed paste, None for every other action."""
    if not action.startswith(PASTE_START):
        return None
    return action[len(PASTE_START) :].removesuffix(PASTE_END)


def is_text(action: str) -> bool:
    """Whether an action is one character that a key press inserts: everything but control characters, and tab."""
    return len(action) == 1 and (action >= " " and action != BACKSPACE or action == TAB)
