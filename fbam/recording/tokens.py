r"""The action tokenizer (paper, section 10.1: greedy, case-aware sub-words).

One token stands for one action or for several typed one after the other, so a token skips the frames between them. A
word of the vocabulary is a piece of typed text: a run of lower-case letters with or without a capital, of capitals,
digits, spaces, underscores or punctuation. So ``parseHTTPResponse_v2`` is made of parse, HTTP, Response, _, v and 2.
The most popular pieces become words, others are built from smaller ones. A text is cut greedily: at each place the
longest word of a trie (``trie.py``). Words hold printable characters only and so never cross a control sequence, Enter,
Tab or Esc.

Decoding is exact for every list of actions, seen in training or not. The first ids are reserved for it:

==========================  ==========================================================================================
six hex digit tokens        the code point of a character that is not in the vocabulary
PASTE, text tokens, END     a paste: the text between ``ESC[200~`` and ``ESC[201~``
ACTION, text tokens, END    any other action of several characters that is not in the vocabulary
==========================  ==========================================================================================

The paper's vocabulary has 20,000 tokens; how it spells what it has not seen, it does not say.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from fbam.recording import exact_json
from fbam.recording.trie import SEQUENCES, Trie

PASTE_START, PASTE_STOP = "\x1b[200~", "\x1b[201~"

HEX = "0123456789abcdef"
CODE_DIGITS = 6
"""Hex digits of the largest code point, 10ffff."""

PASTE, ACTION, END = 16, 17, 18
"""Reserved ids after the 16 hex digits."""

RESERVED = (*(f"<{digit}>" for digit in HEX), "<paste>", "<action>", "<end>")

PIECE = re.compile(
    r"[A-Z]+(?![^\W\d_A-Z])"  # capitals, without the one that begins a word: HTTP in HTTPResponse
    r"|[A-Z]?[^\W\d_A-Z]+"  # a word; letters without ASCII case count as lower
    r"|\d+|_+| +|[^\w\s]+"
)


class TokenError(ValueError):
    """A vocabulary that is too small or cannot be read, or tokens that spell no actions."""


def is_typed_character(action: str) -> bool:
    """Whether an action types one character that shows: no key like Enter, Tab or Esc, no sequence."""
    return len(action) == 1 and (" " <= action < "\x7f" or action >= "\xa0")


def is_paste(action: str) -> bool:
    """Whether an action is a bracketed paste."""
    whole = len(action) >= len(PASTE_START) + len(PASTE_STOP)
    return whole and action.startswith(PASTE_START) and action.endswith(PASTE_STOP)


def typed_text(actions: Iterable[str]) -> str:
    """Join the typed characters; every other action becomes a line feed, which no piece contains."""
    return "".join(action if is_typed_character(action) else "\n" for action in actions)


class ActionTokenizer:
    """Turns actions into tokens and back.

    :param single: actions that are one token each: characters, keys and control sequences
    :param words: pieces of text of two characters and more, most popular first

    The ids are: ``RESERVED``, then ``single``, then ``words``.
    """

    def __init__(self, single: Sequence[str], words: Sequence[str]) -> None:
        self._single, self._words = list(single), list(words)
        self._spelling = [*([text] for text in self._single), *(list(word) for word in self._words)]
        self._trie = Trie(self._spelling, first=len(RESERVED))

    @property
    def vocab_size(self) -> int:
        """Number of tokens; ids are 0 to ``vocab_size`` - 1."""
        return len(RESERVED) + len(self._spelling)

    def token_text(self, token: int) -> str:
        """Return what a token types, or the name of a reserved one in angle brackets."""
        if not 0 <= token < self.vocab_size:
            raise TokenError(f"token {token}: this vocabulary has {self.vocab_size}, counted from 0")
        return RESERVED[token] if token < len(RESERVED) else "".join(self._spelling[token - len(RESERVED)])

    @classmethod
    def train(cls, sequences: Iterable[Sequence[str]], vocab_size: int) -> Self:
        """Choose a vocabulary.

        Every action seen is in it, pastes aside, which are spelled out. The rest goes to pieces seen twice or more, by
        the number of times they were typed; equal ones in order of code points. With too few pieces the vocabulary
        stays smaller.

        :param sequences: the actions of each recording
        :param vocab_size: largest number of tokens, reserved ones included; the paper uses 20,000
        :raises TokenError: the actions seen and the reserved tokens alone are more
        """
        single: set[str] = set()
        pieces: Counter[str] = Counter()
        for actions in sequences:
            single.update(action for action in set(actions) if not is_paste(action))
            pieces.update(PIECE.findall(typed_text(actions)))
        room = vocab_size - len(RESERVED) - len(single)
        if room < 0:
            base = f"{len(single)} different actions and {len(RESERVED)} reserved tokens"
            raise TokenError(f"a vocabulary of {vocab_size} is too small: {base} need at least {vocab_size - room}")
        popular = sorted((-n, piece) for piece, n in pieces.items() if n > 1 and len(piece) > 1)
        return cls(sorted(single), [piece for _, piece in popular[:room]])

    def encode(self, actions: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Cut actions into tokens.

        :param actions: actions of one recording, or a part of it
        :returns: (T,) index of the first action of each token, which is the frame it is to be predicted from, never
            falling and the same for all tokens of one spelled-out action; (T,) token ids
        """
        table: dict[str, int] = {}
        codes = [ord(a) if len(a) == 1 else SEQUENCES + table.setdefault(a, len(table)) for a in actions]
        return self.encode_codes(np.array(codes, dtype=np.int32), list(table))

    def encode_codes(
        self, codes: npt.NDArray[np.int32], table: Sequence[str]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """``encode`` of actions as a recording stores them, several million a second.

        :param codes: (n,) code point of each action of one character, 0x110000 + k for the k-th of ``table``
        :param table: the other actions
        """
        starts, tokens = self._trie.cut(codes, table)  # (c,), (c,) -1 for an action that no token stands for
        unknown = np.flatnonzero(tokens < 0)
        if not len(unknown):
            return starts, tokens
        actions = [chr(code) if code < SEQUENCES else table[code - SEQUENCES] for code in codes[starts[unknown]].tolist()]
        spelled = {action: self._spell(action) for action in set(actions)}
        lengths = np.ones(len(tokens), dtype=np.int64)
        lengths[unknown] = [len(spelled[action]) for action in actions]
        starts, tokens, places = np.repeat(starts, lengths), np.repeat(tokens, lengths), np.cumsum(lengths) - lengths
        for place, action in zip(places[unknown].tolist(), actions):
            tokens[place : place + len(spelled[action])] = spelled[action]
        return starts, tokens

    def _spell(self, action: str) -> list[int]:
        """Return the tokens of one action that is not in the vocabulary."""
        if len(action) == 1:
            return [HEX.index(digit) for digit in f"{ord(action):0{CODE_DIGITS}x}"]
        if is_paste(action):
            return [PASTE, *self._text_tokens(action[len(PASTE_START) : -len(PASTE_STOP)]), END]
        return [ACTION, *self._text_tokens(action), END]

    def _text_tokens(self, text: str) -> list[int]:
        return self.encode(text)[1].tolist()

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.integer]) -> list[str]:
        """Return the actions that tokens stand for: ``decode(encode(actions)[1]) == actions``.

        :raises TokenError: an id out of range, or a spelling that is not complete
        """
        actions: list[str] = []
        group: int | None = None  # PASTE or ACTION while one is being spelled, from actions[start] on
        start = at = 0
        tokens = [int(token) for token in tokens]
        while at < len(tokens):
            token, at = tokens[at], at + 1
            if token in (PASTE, ACTION) and group is None:
                group, start = token, len(actions)
            elif token == END and group is not None:
                text = "".join(actions[start:])
                actions[start:] = [PASTE_START + text + PASTE_STOP if group == PASTE else text]
                group = None
            elif 0 <= token < len(HEX):
                actions.append(self._character(tokens[at - 1 : at - 1 + CODE_DIGITS]))
                at += CODE_DIGITS - 1
            elif len(RESERVED) <= token < self.vocab_size:
                actions += self._spelling[token - len(RESERVED)]
            else:
                raise TokenError(f"token {token} at place {at - 1} has no meaning there")
        if group is not None:
            raise TokenError("the tokens stop inside a paste or an action spelled out")
        return actions

    @staticmethod
    def _character(digits: list[int]) -> str:
        if len(digits) < CODE_DIGITS or not all(0 <= digit < len(HEX) for digit in digits):
            raise TokenError(f"hex digit tokens {digits}: a character takes {CODE_DIGITS} of them")
        code = int("".join(HEX[digit] for digit in digits), 16)
        if code > 0x10FFFF:
            raise TokenError(f"hex digit tokens {digits}: there is no such character")
        return chr(code)

    def save(self, path: Path | str) -> None:
        """Write the vocabulary as JSON."""
        path = Path(path)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(exact_json.dumps({"single": self._single, "words": self._words}))
        os.replace(part, path)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what ``save`` wrote.

        :raises TokenError: the file is absent or not a vocabulary
        """
        try:
            stored = exact_json.loads(Path(path).read_bytes())
            return cls(stored["single"], stored["words"])
        except OSError as error:
            raise TokenError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise TokenError(f"{path}: not an action vocabulary: train it again") from None
