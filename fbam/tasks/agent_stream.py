"""The coding-agent task: a file is to be known from diffs, though commands run between them change it unseen (section 8.2.1).

    S_0 = empty,  S_t = sideeffect_t(apply(S_{t-1}, delta_t)),  t = 1, …, n   (equation 7)

After each diff the agent runs a command. With probability p it is one with a side effect; its name is seen, its effect is not. The
next diff is made against the true state, so its context lines show some of what happened. As a switch, the agent prints the whole
file now and then, which side-steps the tracking: what lies before the last print need not be known any more.

Edits are drawn at random: one to three stretches of up to three lines are replaced by lines of the same file, carelessly spaced. The
same seed draws the same chances for every p, so the commands with an effect at a small p are among those at a larger one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fbam.sessions.files import REGULAR, encode
from fbam.tasks.effects import EFFECTS, NO_EFFECT
from fbam.tasks.git_diffs import DiffWriter, State
from fbam.tasks.patches import Lines, apply, apply_what_fits, parse, split_lines
from fbam.tasks.solvers_diff import APPROXIMATION, solve

PATH = "module.py"
STRETCHES, LINES = 3, 3
"""Most stretches of one edit, and most lines of a stretch, old and new."""


@dataclass(frozen=True)
class Event:
    """One turn: the diff by lines of context, the command run after it, and the file as that left it, which is hidden."""

    diffs: dict[int, str]
    command: str
    state: str


def stream(text: str, turns: int, p: float, contexts: Sequence[int], seed: Sequence[int], writer: DiffWriter) -> list[Event]:
    """Let an agent create the file ``text`` and edit it, n = ``turns`` diffs in all.

    :param p: probability that the command after a diff has a side effect
    """
    rng = np.random.default_rng(list(seed))
    pool = split_lines(text)
    commands = [name for name in EFFECTS if name != NO_EFFECT]
    events: list[Event] = []
    before, edited = None, pool
    for _ in range(turns):
        chance, command = rng.random(), commands[rng.integers(len(commands))]
        new = State(PATH, REGULAR, encode("".join(edited)))
        diffs = {context: writer.diff(before, new, context) for context in contexts}
        command = command if chance < p else NO_EFFECT
        lines = EFFECTS[command](edited)
        events.append(Event(diffs, command, "".join(lines)))
        before = State(PATH, REGULAR, encode(events[-1].state))
        edited = _edit(lines, pool, rng)
    return events


def _edit(lines: Lines, pool: Lines, rng: np.random.Generator) -> Lines:
    """Replace some stretches of the file; the draws do not depend on its length."""
    edited = list(lines)
    for _ in range(1 + rng.integers(STRETCHES)):
        place, old, new = rng.random(), rng.integers(LINES + 1), rng.integers(LINES + 1)
        drawn = [line for i in rng.integers(len(pool), size=new) for line in _careless(pool[i], rng)]
        start = int(place * (len(edited) + 1))
        edited[start : start + old] = drawn
    changed = split_lines("".join(edited))  # a last line without line feed joins what comes after it
    return changed if changed != lines else [*lines, pool[0]]


def _careless(line: str, rng: np.random.Generator) -> Lines:
    """A line as typed in a hurry: as it should be, or no space around =, or space at its end, or a blank line after it."""
    bare = line.rstrip("\n")
    ways = [[f"{bare}\n"], [bare.replace(" = ", "=") + "\n"], [f"{bare} \n"], [f"{bare}\n", "\n"]]
    return ways[rng.integers(len(ways))]


# ---------------------------------------------------------------- what an observer makes of a stream

Observer = Callable[[Sequence[Event], int, str | None], str]


def serial(events: Sequence[Event], context: int, printed: str | None) -> str:
    """Apply each diff and do to the result what the command does: the oracle."""
    lines = split_lines(printed or "")
    for event in events:
        lines = EFFECTS[event.command](apply(lines, parse(event.diffs[context]), unidiff_zero=context == 0))
    return "".join(lines)


def patches_alone(events: Sequence[Event], context: int, printed: str | None) -> str:
    """Apply each diff as far as it fits and know of no effects."""
    lines = split_lines(printed or "")
    for event in events:
        lines, _ = apply_what_fits(lines, parse(event.diffs[context]), unidiff_zero=context == 0)
    return "".join(lines)


def latest_diff(events: Sequence[Event], context: int, printed: str | None) -> str:
    """The parallel approximation of section 8.2.2, which takes what the latest diff shows."""
    diffs = [event.diffs[context] for event in events]
    return solve(APPROXIMATION, diffs if printed is None else [_creation(printed), *diffs], context)


def effects_last(events: Sequence[Event], context: int, printed: str | None) -> str:
    """The parallel approximation, then all effects once, in their order, on its result."""
    lines = split_lines(latest_diff(events, context, printed))
    for event in events:
        lines = EFFECTS[event.command](lines)
    return "".join(lines)


def _creation(text: str) -> str:
    """A print of the file as the diff that would create it."""
    lines = split_lines(text)
    body = "".join(f"+{line}" if line.endswith("\n") else f"+{line}\n\\ No newline at end of file\n" for line in lines)
    return f"@@ -0,0 +1,{len(lines)} @@\n{body}" if lines else ""


OBSERVERS: dict[str, Observer] = {
    "serial": serial,
    "patches alone": patches_alone,
    APPROXIMATION: latest_diff,
    "latest diff, effects last": effects_last,
}


def observe(name: str, events: Sequence[Event], context: int, print_every: int) -> str:
    """The file that an observer believes in at the end.

    :param print_every: the agent prints the file after every so many turns, never after the last; 0 for never
    """
    last = (len(events) - 1) // print_every * print_every if print_every else 0
    return OBSERVERS[name](events[last:], context, events[last - 1].state if last else None)
