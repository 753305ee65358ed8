"""Sequences of arbitrary actions for the tests of editor, shell and screen."""

from hypothesis import strategies as st

from fbam.sessions import actions as key
from fbam.sessions.actions import paste

MOVES = [key.UP, key.DOWN, key.LEFT, key.RIGHT, key.HOME, key.END, key.PAGE_UP, key.PAGE_DOWN]

ANY_KEYS = st.lists(
    st.one_of(
        st.sampled_from([*":i0123,dwq!\r\x1b\x7f\x15\x16\x03\n", *MOVES, key.DELETE, "\x1bOP", "", "two"]),
        st.characters(),
        st.text(max_size=5).map(paste),
    ),
    max_size=60,
)
"""Keys with a meaning somewhere, keys without any, text, pastes."""
