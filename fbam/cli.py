"""The command line: ``fbam compile``, ``verify``, ``play``, ``cast``, ``frame`` (paper, section 10.1), ``rollout`` (10.4),
``diffbench`` (8.2), and ``bench``, the measured targets.

Bad input ends with one line on standard error and exit code 2, a verification that fails with exit code 1.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from fbam.recording.format import RecordingError
from fbam.rollout_command import add_command as add_rollout
from fbam.sessions import commands, viewing
from fbam.sessions.commands import one_line
from fbam.sessions.corpus import CorpusError
from fbam.sessions.history import HistoryError
from fbam.sessions.screen import ScreenError
from fbam.sessions.verify import VerificationError
from fbam.tasks.diff_command import add_command as add_diffbench
from fbam.tasks.diff_inflate import BenchmarkError
from fbam.tasks.patches import PatchError

BENCHES = {"data": "fbam.sessions.bench", "streaming": "fbam.training.bench"}
"""Module of each part of ``fbam bench``, loaded when it is run. It has ``bench(options) -> dict`` of JSON values, in which
"targets" lists {"name", "measured", "bound", "met"}, the bound as text such as ">= 12"."""

BAD_INPUT = (BenchmarkError, CorpusError, HistoryError, PatchError, RecordingError, ScreenError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :param arguments: the words after ``fbam``; None for those of the process
    :returns: exit code
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except VerificationError as error:
        return _fail(error, 1)
    except BAD_INPUT as error:
        return _fail(error, 2)


def _fail(error: Exception, code: int) -> int:
    print(f"fbam: {one_line(error)}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fbam", description="Frame-based action models: recordings of git histories.")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_commands(added)
    viewing.add_commands(added)
    add_rollout(added)
    add_diffbench(added)
    bench = added.add_parser("bench", help="measure the targets: ratios of one run, with the absolute figures beside them")
    bench.add_argument("--only", nargs="+", choices=sorted(BENCHES), default=sorted(BENCHES), help="parts (default all)")
    bench.add_argument("--source", metavar="SRC", help="git repository for the part data (default: the bundle of this project)")
    bench.add_argument("--limit-commits", type=int, default=0, metavar="N", help="only its first N commits; 0 for all")
    bench.add_argument("--json", action="store_true", help="print the report as JSON")
    bench.set_defaults(run=_bench)
    return parser


def _bench(options: argparse.Namespace) -> int:
    """Exit code 1 if a target is missed."""
    report: dict[str, Any] = {name: importlib.import_module(BENCHES[name]).bench(options) for name in options.only}
    targets = [target for part in report.values() for target in part["targets"]]
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        rows = [[t["name"], t["measured"], t["bound"], "met" if t["met"] else "missed"] for t in targets]
        print(tabulate(rows, ["target", "measured", "bound", ""], floatfmt=".4g"))
    return 0 if all(target["met"] for target in targets) else 1
