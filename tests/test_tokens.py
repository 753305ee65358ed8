"""The action tokenizer: greedy cuts against a slow reference, exact decoding of anything, a stable vocabulary."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbam.recording import trie
from fbam.recording.tokens import ACTION, END, PASTE, PIECE, RESERVED, ActionTokenizer, TokenError, is_paste

CONTROL = ["\r", "\t", "\x7f", "\x1b", "\x1b[A", "\x1b[5~", "\x1b[200~", "\x1b[201~"]
TEXT = st.text(st.one_of(st.sampled_from("abAB_ 1("), st.characters()))  # lone surrogates included
PASTES = TEXT.map(lambda text: f"\x1b[200~{text}\x1b[201~")
ACTIONS = st.lists(st.one_of(st.sampled_from([*"abcABC_ 1(", *CONTROL]), st.characters(), PASTES, TEXT), max_size=30)

SESSION = [
    *"def read_frame(self):", "\r", *"    return self.frame", "\x1b", *":w", "\r", "\x1b[A", "\x1b[D",
    *"def parseHTTPResponse(self, frame):", "\r", "\x1b[200~    return frame\x1b[201~", "\x7f", *"HTTP_frame",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> ActionTokenizer:
    return ActionTokenizer.train([SESSION], 200)


def reference_cut(tokenizer: ActionTokenizer, spellings: dict[int, list[str]], actions: list[str]) -> list[int]:
    """Try every token at every place and keep the longest; 0 in place of an action that no token matches."""
    tokens, at = [], 0
    while at < len(actions):
        fits = [(len(s), token) for token, s in spellings.items() if actions[at : at + len(s)] == s]
        length, token = max(fits, default=(1, 0))
        tokens.append(token)
        at += length
    return tokens


@given(st.lists(st.sampled_from([*SESSION, "frame", "\x1b[B"])), st.data())
def test_the_cut_is_the_longest_match(tokenizer: ActionTokenizer, actions: list[str], data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(actions)))
        actions[at:at] = data.draw(st.sampled_from(["frame", "frames", "HTTPframe", "re_frame"]))
    ids = range(len(RESERVED), tokenizer.vocab_size)
    spellings = {token: tokenizer.decode([token]) for token in ids}
    starts, tokens = tokenizer.encode(actions)
    # An action that is spelled out becomes several tokens with one start: count it once, as 0.
    spelled = {int(start) for start, token in zip(starts, tokens) if token < len(RESERVED)}
    cut = [0 if start in spelled else int(token) for start, token in zip(starts, tokens)]
    firsts = [token for i, token in enumerate(cut) if i == 0 or starts[i] != starts[i - 1]]
    assert firsts == reference_cut(tokenizer, spellings, actions)


@given(st.lists(st.sampled_from([*SESSION, "frame", "frames", "\x1b[B", "é"]), max_size=60), st.integers(1, 9))
def test_the_cut_does_not_depend_on_the_chunk(tokenizer: ActionTokenizer, actions: list[str], chunk: int) -> None:
    whole = tokenizer.encode(actions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "CHUNK", chunk)
        parts = tokenizer.encode(actions)
    assert [array.tolist() for array in whole] == [array.tolist() for array in parts]


@given(ACTIONS, ACTIONS, st.randoms())
def test_codes_and_their_table_give_the_same_tokens(seen: list[str], actions: list[str], random) -> None:
    tokenizer = ActionTokenizer.train([seen], 200)
    table = list({action for action in [*seen, *actions] if len(action) != 1})  # as a recording: more than is used, any order
    random.shuffle(table)
    codes = [ord(action) if len(action) == 1 else trie.SEQUENCES + table.index(action) for action in actions]
    starts, tokens = tokenizer.encode_codes(np.array(codes, dtype=np.int32), table)
    assert starts.tolist() == tokenizer.encode(actions)[0].tolist() and tokenizer.decode(tokens) == actions


def test_a_token_of_several_keys_skips_frames(tokenizer: ActionTokenizer) -> None:
    starts, tokens = tokenizer.encode([*"self", "\r", *"frame"])
    assert starts.tolist() == [0, 4, 5] and [tokenizer.token_text(token) for token in tokens] == ["self", "\r", "frame"]
    assert [array.tolist() for array in tokenizer.encode([])] == [[], []]


@given(ACTIONS, ACTIONS)
def test_decoding_is_exact(seen: list[str], actions: list[str]) -> None:
    tokenizer = ActionTokenizer.train([seen], 120)
    starts, tokens = tokenizer.encode(actions)
    assert tokenizer.decode(tokens) == actions
    assert tokenizer.decode(tokenizer.encode(seen)[1]) == seen
    assert starts.dtype == tokens.dtype == "int64" and starts.shape == tokens.shape
    assert ((tokens >= 0) & (tokens < tokenizer.vocab_size)).all()
    firsts = [i for i in range(len(starts)) if i == 0 or starts[i] != starts[i - 1]]
    for here, stop in zip(firsts, [*firsts[1:], len(starts)]):
        end = len(actions) if stop == len(starts) else starts[stop]
        assert starts[here] < end
        assert tokenizer.decode(tokens[here:stop]) == actions[starts[here] : end]


@given(ACTIONS)
def test_every_action_seen_is_one_token(seen: list[str]) -> None:
    tokenizer = ActionTokenizer.train([seen], 200)
    for action in seen:
        if not is_paste(action):
            assert len(tokenizer.encode([action])[1]) == 1


@given(ACTIONS.map(lambda actions: actions * 2))
def test_a_word_holds_typed_characters_only(seen: list[str]) -> None:
    tokenizer = ActionTokenizer.train([seen], 400)
    for token in range(len(RESERVED), tokenizer.vocab_size):
        spelling = tokenizer.decode([token])
        if len(spelling) > 1:
            assert not any(c in text for text in spelling for c in "\r\t\x7f\x1b\n")
            assert all(len(text) == 1 for text in spelling)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("parseHTTPResponse_v2", ["parse", "HTTP", "Response", "_", "v", "2"]),
        ("snake_case__x", ["snake", "_", "case", "__", "x"]),
        ("PascalCase camelCase", ["Pascal", "Case", " ", "camel", "Case"]),
        ("MAX_LEN = 10;", ["MAX", "_", "LEN", " ", "=", " ", "10", ";"]),
        ("if (größe != İx):", ["if", " ", "(", "größe", " ", "!=", " ", "İx", "):"]),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_pieces_follow_the_case(text: str, pieces: list[str]) -> None:
    assert PIECE.findall(text) == pieces


def test_the_most_popular_piece_wins() -> None:
    actions = [*"frame frame self self self xy xy "]
    base = len(RESERVED) + len(set(actions))
    words = [ActionTokenizer.train([actions], base + k) for k in range(5)]
    found = [[t.token_text(i) for i in range(base, t.vocab_size)] for t in words]
    assert found == [[], ["self"], ["self", "frame"], ["self", "frame", "xy"], ["self", "frame", "xy"]]


def test_a_piece_ends_with_the_sequence() -> None:
    tokenizer = ActionTokenizer.train([[*"ab"], [*"cd"], [*"ab", "\r", *"cd"]], 100)
    assert "abcd" not in {tokenizer.token_text(i) for i in range(tokenizer.vocab_size)}
    assert [tokenizer.token_text(t) for t in tokenizer.encode([*"abcd"])[1]] == ["ab", "cd"]


def test_a_worked_example(tokenizer: ActionTokenizer) -> None:
    actions = [*"frame", "\r", "é", "\x1b[200~self\x1b[201~", "\x1b[B"]
    starts, tokens = tokenizer.encode(actions)
    texts = [tokenizer.token_text(token) for token in tokens]
    code = ["<0>", "<0>", "<0>", "<0>", "<e>", "<9>"]
    arrow = ["<action>", "\x1b", *(f"<{digit}>" for digit in "00005b" "000042"), "<end>"]
    assert texts == ["frame", "\r", *code, "<paste>", "self", "<end>", *arrow]
    assert starts.tolist() == [0, 5, *[6] * 6, *[7] * 3, *[8] * len(arrow)]


def test_a_vocabulary_that_is_too_small() -> None:
    with pytest.raises(TokenError, match="20 is too small: 3 different actions and 19 reserved tokens need at least 22"):
        ActionTokenizer.train([["a", "b"], ["\r", "\x1b[200~pasted\x1b[201~"]], 20)
    assert ActionTokenizer.train([["a", "b"], ["\r"]], 22).vocab_size == 22


@given(st.lists(st.integers(-2, 60)))
def test_nonsense_is_refused_and_sense_is_kept(tokenizer: ActionTokenizer, tokens: list[int]) -> None:
    try:
        actions = tokenizer.decode(tokens)
    except TokenError:
        return
    assert tokenizer.decode(tokenizer.encode(actions)[1]) == actions


@pytest.mark.parametrize("tokens", [[END], [PASTE], [ACTION, PASTE, END, END], [0, 0], [1] * 6, [-1], [10**6]])
def test_broken_spellings(tokenizer: ActionTokenizer, tokens: list[int]) -> None:
    with pytest.raises(TokenError):
        tokenizer.decode(tokens)


def test_token_text_needs_a_token(tokenizer: ActionTokenizer) -> None:
    with pytest.raises(TokenError, match="token -1"):
        tokenizer.token_text(-1)


@given(ACTIONS)
def test_a_stored_vocabulary_is_the_same(tmp_path_factory: pytest.TempPathFactory, seen: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "vocabulary.json"
    tokenizer = ActionTokenizer.train([seen, seen], 200)
    tokenizer.save(path)
    loaded = ActionTokenizer.load(path)
    ids = range(tokenizer.vocab_size)
    assert loaded.vocab_size == tokenizer.vocab_size
    assert [loaded.token_text(i) for i in ids] == [tokenizer.token_text(i) for i in ids]
    assert (loaded.encode(seen)[1] == tokenizer.encode(seen)[1]).all()


TRAIN = """
import sys
from fbam.recording.tokens import ActionTokenizer
ActionTokenizer.train([[*"def self frame"], [*"frame self def ("], ["\\r", "\\x1b[A"]], 60).save(sys.argv[1])
"""


def test_training_does_not_depend_on_the_run(tmp_path: Path) -> None:
    files = []
    for seed in ("1", "2"):
        files.append(tmp_path / f"{seed}.json")
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", TRAIN, files[-1]], check=True, env=environment)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files


def test_files_that_are_no_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="absent.json: cannot be read"):
        ActionTokenizer.load(tmp_path / "absent.json")
    for k, content in enumerate([b"", b"[1]", b'{"single": ["a"]}', b"\xff\xfe", b'{"single": 3, "words": []}']):
        path = tmp_path / f"{k}.json"
        path.write_bytes(content)
        with pytest.raises(TokenError, match="not an action vocabulary"):
            ActionTokenizer.load(path)
