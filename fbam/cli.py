"""The command line: ``fbam compile``, ``fbam verify``, ``fbam frame`` (paper, section 10.1), ``fbam diffbench`` (8.2).

Bad input ends with one line on standard error and exit code 2, a verification that fails with exit code 1.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fbam.recording.format import Recording, RecordingError
from fbam.sessions.ansi import to_ansi
from fbam.sessions.compile import compile_history
from fbam.sessions.edits import Limits
from fbam.sessions.history import HistoryError, open_history
from fbam.sessions.screen import ScreenError
from fbam.sessions.verify import VerificationError, replay
from fbam.tasks.diff_command import add_command as add_diffbench
from fbam.tasks.diff_inflate import BenchmarkError
from fbam.tasks.patches import PatchError


BLOCK_FRAMES = 128
"""Frames a block of the files written here."""


class UsageError(ValueError):
    """Arguments that do not fit together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :param arguments: the words after ``fbam``; None for those of the process
    :returns: exit code
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except VerificationError as error:
        return _fail(error, 1)
    except (BenchmarkError, HistoryError, PatchError, RecordingError, ScreenError, UsageError, OSError) as error:
        return _fail(error, 2)
    return 0


def _fail(error: Exception, code: int) -> int:
    message = str(error).encode("utf-8", "backslashreplace").decode().replace("\n", " ")
    print(f"fbam: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fbam", description="Frame-based action models: recordings of git histories.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    compiler = commands.add_parser("compile", help="turn git histories into recordings, verified against git")
    compiler.add_argument("sources", nargs="+", metavar="SRC", help="git repository: path, address or bundle file")
    compiler.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the recordings")
    compiler.add_argument("--revision", metavar="REV", help="branch, tag or commit to stop at (default: HEAD)")
    compiler.add_argument("--rows", type=int, default=12, help="rows of a frame (default 12; paper 48)")
    compiler.add_argument("--cols", type=int, default=40, help="columns of a frame (default 40; paper 160)")
    compiler.add_argument("--limit-commits", type=_natural, default=0, metavar="N", help="only the first N commits; 0 for all")
    compiler.add_argument("--json", action="store_true", help="print the report as JSON")
    compiler.set_defaults(run=_compile)

    verifier = commands.add_parser("verify", help="press the actions of recordings again and compare every frame")
    verifier.add_argument("files", nargs="+", type=Path, metavar="FILE")
    verifier.set_defaults(run=_verify)

    viewer = commands.add_parser("frame", help="print one frame of a recording and the action pressed on it")
    viewer.add_argument("file", type=Path, metavar="FILE")
    viewer.add_argument("number", type=_natural, metavar="N", help="frame, from 0")
    viewer.set_defaults(run=_frame)
    add_diffbench(commands)
    return parser


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number


def _compile(options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fbam-") as workspace:
        for number, source in enumerate(options.sources):
            folder = Path(workspace, str(number))
            folder.mkdir()
            history = open_history(source, options.revision, folder)
            if history.name in [row["repository"] for row in rows]:
                raise UsageError(f"two sources are called {history.name!r}: compile them into different folders")
            row = compile_history(
                history,
                options.out / f"{history.name}.fbam",
                rows=options.rows,
                cols=options.cols,
                block_frames=BLOCK_FRAMES,
                limits=Limits(),
                commit_limit=options.limit_commits,
                on_progress=_progress if sys.stderr.isatty() else None,
            )
            rows.append(row)
            if not options.json:
                print(_summary(row))
    if options.json:
        print(json.dumps(rows, indent=1))


def _summary(row: dict[str, Any]) -> str:
    left_out = ", ".join(f"{number['count']} {reason}" for reason, number in row["exclusions"].items()) or "nothing"
    return (
        f"{row['repository']}: {row['commits']} commits, {row['files']} files, {row['actions']} actions, "
        f"{row['stored_bytes']} bytes ({row['ratio']:.0f}x), {row['mismatches']} mismatches, "
        f"{row['pasted_share']:.1%} pasted, left out: {left_out}"
    )


def _progress(done: int, total: int) -> None:
    print(f"\r{done} of {total} commits", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _verify(options: argparse.Namespace) -> None:
    for path in options.files:
        try:
            pairs = replay(Recording(path))
        except VerificationError as error:
            raise VerificationError(f"{path}: {error}") from error
        print(f"{path}: {pairs} frames are what their actions show")


def _frame(options: argparse.Namespace) -> None:
    recording = Recording(options.file)
    if options.number >= recording.n_frames:
        raise UsageError(f"{options.file} has frames 0 to {recording.n_frames - 1}, not {options.number}")
    print(to_ansi(recording.frames(options.number, options.number + 1)[0]))
    print(f"frame {options.number} of {recording.n_frames}, next action {ascii(recording.actions[options.number])}")
