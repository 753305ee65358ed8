"""What a language model is asked in Diff-Inflate-Bench, and how its reply is read (paper, section 8.2.2).

The paper's prompts are not given; these say the same: rebuild the file from its diffs, and judge two files by what they do.
"""

import re
from collections.abc import Sequence

SOLVE = """\
Below are {count} git diffs of one file, the oldest first. The first one creates the file, each other one changes it further.
Write the file as it stands after the last diff. Do not explain anything and do not write anything else.

Put the whole file between the marks <file> and </file>: a line with <file>, then the file, then </file>. If the last line of the
file has no line feed, put </file> right behind it.

{diffs}"""

JUDGE = """\
Below are two versions of one file. Do they do the same? Formatting, comments and other differences of style do not count, nor does
the order of function declarations; everything that changes what the program does counts.
Answer with one word, EQUIVALENT or DIFFERENT.

<first>
{target}
</first>
<second>
{candidate}
</second>"""

ANSWER = re.compile(r"<file>\n?(.*)</file>", re.DOTALL)
VERDICT = re.compile(r"\b(EQUIVALENT|DIFFERENT)\b")


def solve_prompt(diffs: Sequence[str]) -> str:
    """Ask for the file that these diffs make."""
    return SOLVE.format(count=len(diffs), diffs="\n".join(diffs))


def read_file(reply: str) -> str | None:
    """The file in a reply, None if its marks are missing."""
    match = ANSWER.search(reply)
    return match and match.group(1)


def judge_prompt(target: str, candidate: str) -> str:
    """Ask whether two files do the same."""
    return JUDGE.format(target=target, candidate=candidate)


def read_verdict(reply: str) -> bool | None:
    """The verdict in a reply, None unless it names exactly one of the two words."""
    words = set(VERDICT.findall(reply.upper()))
    return "EQUIVALENT" in words if len(words) == 1 else None
