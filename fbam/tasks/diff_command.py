"""``fbam diffbench``: export the cases of Diff-Inflate-Bench from any git history, and solve such cases (section 8.2.2).

    fbam diffbench https://github.com/tinygrad/tinygrad --out cases.jsonl
    fbam diffbench --solve cases.jsonl --model NAME --out outcomes.jsonl

A model is reached through OPENAI_BASE_URL and OPENAI_API_KEY; FBAM_MODEL and FBAM_JUDGE name the model and the judge where the
command line does not. Prompts and replies are kept beside the outcomes: after a fault the same command asks only what is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fbam.sessions.history import open_history
from fbam.tasks.diff_inflate import BenchmarkError, Case, chains, draw_cases, read_cases, write_cases
from fbam.tasks.git_diffs import CONTEXTS, DiffWriter
from fbam.tasks.solvers_diff import SOLVERS

if TYPE_CHECKING:
    from fbam.tasks.diff_outcomes import Outcome


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``diffbench`` to the command line."""
    parser = commands.add_parser("diffbench", help="files to be told from their diffs: export cases of a history, or solve them")
    parser.add_argument("sources", nargs="*", metavar="SRC", help="git repository to draw cases from: path, address or bundle file")
    parser.add_argument("--solve", type=Path, metavar="FILE", help="solve the cases of this file instead")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file of JSON lines for the cases, or the outcomes")
    parser.add_argument("--context", type=int, nargs="+", default=CONTEXTS, metavar="C", help="lines of context (default 3 1 0)")
    drawing = parser.add_argument_group("drawing cases")
    drawing.add_argument("--revision", metavar="REV", help="branch, tag or commit to stop at (default: HEAD)")
    drawing.add_argument("--diffs", type=int, nargs="+", default=(1, 2, 4, 8, 16, 32), metavar="N", help="diffs a case")
    drawing.add_argument("--cases", type=int, default=48, help="cases for each N (default 48, as in the paper)")
    drawing.add_argument("--suffix", nargs="+", default=(".py",), help="ends of file names (default .py)")
    drawing.add_argument("--largest-bytes", type=int, default=65_536, help="files that were ever larger are left out (default 65536)")
    drawing.add_argument("--seed", type=int, default=0)
    solving = parser.add_argument_group("solving cases")
    solving.add_argument("--solver", choices=SOLVERS, help="a solver that is a program")
    solving.add_argument("--model", default=os.environ.get("FBAM_MODEL"), help="a language model (default: $FBAM_MODEL)")
    solving.add_argument("--judge", default=os.environ.get("FBAM_JUDGE"), help="a model as a further judge (default: $FBAM_JUDGE)")
    solving.add_argument("--timeout", type=float, default=120.0, help="seconds until the server counts as slow")
    solving.add_argument("--workers", type=int, default=4, help="requests under way at once")
    solving.add_argument("--options", type=_object, default={}, metavar="JSON", help='fields of the request: {"reasoning_effort": "low"}')
    parser.set_defaults(run=run)


def _object(text: str) -> dict:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text} is no JSON object")
    return value


def run(options: argparse.Namespace) -> None:
    """Run the command.

    :raises BenchmarkError: arguments that do not fit together, or a history that has no case
    :raises ModelError: there is no key for the model
    """
    if bool(options.sources) == bool(options.solve):
        raise BenchmarkError("give either histories to draw cases from, or --solve and a file of cases")
    if min([*options.context, 0]) < 0 or min([*options.diffs, options.cases, options.workers]) < 1:
        raise BenchmarkError("--context must not be negative; --diffs, --cases and --workers must be at least 1")
    (_solve if options.solve else _export)(options)


def _export(options: argparse.Namespace) -> None:
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="fbam-") as workspace:
        writer = DiffWriter(Path(workspace, "scratch"))
        for number, source in enumerate(options.sources):
            folder = Path(workspace, str(number))
            folder.mkdir()
            history = open_history(source, options.revision, folder)
            found = chains(history, options.suffix)
            for n in options.diffs:
                drawn = draw_cases(history, found, n, options.cases, options.context, options.largest_bytes, options.seed, writer)
                print(f"{history.name}: {n} diffs, {len(drawn)} cases of {len({case.path for case in drawn})} files")
                cases += drawn
    if not cases:
        raise BenchmarkError(f"no file that ends in {', '.join(options.suffix)} has that many states; try other --suffix or --diffs")
    write_cases(options.out, cases)


def _solve(options: argparse.Namespace) -> None:
    from fbam.tasks import diff_outcomes  # slow to import, as are those below, and no other command needs them

    cases = list(read_cases(options.solve))
    if options.solver:
        pairs = [(case, context) for case in cases for context in options.context if context in case.diffs]
        outcomes = [diff_outcomes.by_program(case, context, options.solver) for case, context in pairs]
    elif options.model:
        outcomes = _ask(options, cases)
    else:
        raise BenchmarkError("name a model with --model or FBAM_MODEL, or a program with --solver")
    diff_outcomes.write_outcomes(options.out, outcomes)
    print(_table(outcomes))


def _ask(options: argparse.Namespace, cases: Sequence[Case]) -> list[Outcome]:
    from fbam.tasks.hosted import ChatModel
    from fbam.tasks.model_solver import run_model

    folder = options.out.with_name(options.out.name + ".replies")
    model = ChatModel(options.model, folder, options.timeout, options=options.options)
    judge = ChatModel(options.judge, folder, options.timeout) if options.judge else None
    return list(run_model(cases, options.context, model, judge, options.workers))


def _table(outcomes: Sequence[Outcome]) -> str:
    from tabulate import tabulate

    from fbam.experiments.diff_rows import diff_rows, share
    from fbam.tasks.diff_outcomes import record

    rows = [[row.history, f"U{row.context}", row.n_diffs, row.cases, share(row)] for row in diff_rows(map(record, outcomes))]
    table = tabulate(rows, ["history", "context", "diffs", "answered", "accuracy"])
    faults = Counter(outcome.status for outcome in outcomes if outcome.verdicts is None)
    missing = ", ".join(f"{count} {status}" for status, count in sorted(faults.items()))
    return table + (f"\nnot counted: {missing}; the same command asks again where a server failed" if missing else "")
