"""Programs to read: as text with labels, and as HTML with executed lines green and skipped lines red, as in figure 1 of the paper."""

from __future__ import annotations

from html import escape

from fbam.tasks.frjt import HALT_A, HALT_B, Programs, run

EXECUTED, SKIPPED = "#e2f4e4", "#fbe3e1"


def _place(target: int, block: int) -> str:
    return {HALT_A: "halt A", HALT_B: "halt B"}.get(target) or f"goto L{block + target}"


def listing(programs: Programs, index: int = 0) -> list[list[str]]:
    """The lines of each block of one program, its label first; labels count from 1."""
    blocks = []
    for block, (negated, condition, if_true, if_false) in enumerate(programs.fields[index, : programs.depths[index]].tolist(), 1):
        test = ("not " if condition % 2 else "") + f"f{condition // 2}"
        lines = [f"L{block}:"]
        if negated:
            lines.append(f"    f{negated - 1} = not f{negated - 1}")
        lines += [f"    if {test} {_place(if_true, block)}", f"    else {_place(if_false, block)}"]
        blocks.append(lines)
    return blocks


def text(programs: Programs, index: int = 0) -> str:
    """One program as text."""
    return "\n".join(line for block in listing(programs, index) for line in block)


def html(programs: Programs, index: int = 0) -> str:
    """One program as HTML, executed blocks green and skipped blocks red, and the state it halts in."""
    runs = run(programs[index : index + 1])
    lines = []
    for block, executed in zip(listing(programs, index), runs.executed[0], strict=False):
        style = f"background:{EXECUTED if executed else SKIPPED};color:#111;padding:0 .6em"
        title = "executed" if executed else "skipped"
        lines += [f'<div style="{style}" title="{title}">{escape(line)}</div>' for line in block]
    halt = f"<div>halts in {'AB'[runs.halts[0]]}</div>"
    return f'<pre style="display:inline-block;line-height:1.35">{"".join(lines)}{halt}</pre>'
