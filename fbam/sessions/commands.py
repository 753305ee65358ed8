"""``fbam compile`` and ``fbam verify``: git histories in, recordings out, and recordings checked (paper, section 10.1).

    fbam compile https://github.com/rui314/chibicc --out recordings
    fbam compile one.bundle two/ --out recordings --scheduler tcp://10.0.0.1:8786 --json
    fbam verify recordings --all
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from fbam.experiments.progress import Progress
from fbam.recording.format import Recording, RecordingError
from fbam.sessions.corpus import CorpusError, Outcome, check_names, run_jobs
from fbam.sessions.edits import Limits
from fbam.sessions.jobs import Job, Target
from fbam.sessions.report import timed, total
from fbam.sessions.typist import Message
from fbam.sessions.verify import VerificationError, check_blocks, replay

ROWS, COLS, BLOCK_FRAMES = 48, 160, 1024
"""The paper's frame, and the frames a block of the file."""

SAMPLE = 5_000
"""Pairs that ``fbam verify`` presses again in each file unless it is to press all: one or two seconds in plain Python."""


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``compile`` and ``verify`` to the command line."""
    compiler = commands.add_parser("compile", help="turn git histories into recordings, verified against git")
    compiler.add_argument("sources", nargs="+", metavar="SRC", help="git repository: path, address or bundle file")
    compiler.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the recordings")
    compiler.add_argument("--revision", metavar="REV", help="branch, tag or commit to stop at (default: HEAD)")
    compiler.add_argument("--rows", type=int, default=ROWS, help=f"rows of a frame (default {ROWS}, as in the paper)")
    compiler.add_argument("--cols", type=int, default=COLS, help=f"columns of a frame (default {COLS}, as in the paper)")
    compiler.add_argument("--block-frames", type=_positive, default=BLOCK_FRAMES, metavar="N", help=f"frames a block (default {BLOCK_FRAMES})")
    compiler.add_argument("--limit-commits", type=_natural, default=0, metavar="N", help="only the first N commits; 0 for all")
    compiler.add_argument("--message", choices=get_args(Message), default="first", help="where a commit's message is typed (default first)")
    compiler.add_argument("--scheduler", metavar="ADDRESS", help="a dask scheduler; without it the processes of this machine")
    compiler.add_argument("--json", action="store_true", help="print the report as JSON")
    compiler.set_defaults(run=_compile)

    verifier = commands.add_parser("verify", help="check the sums of recordings, press their actions again, compare every frame")
    verifier.add_argument("places", nargs="+", type=Path, metavar="DIR|FILE", help="recordings, or folders of them")
    verifier.add_argument("--all", action="store_true", help=f"press all actions, not only the first {SAMPLE} or so of each file")
    verifier.set_defaults(run=_verify)


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _compile(options: argparse.Namespace) -> int:
    jobs = [_job(options, name, source) for name, source in zip(check_names(options.sources), options.sources)]
    outcomes: list[Outcome] = []
    for outcome in run_jobs(jobs, _bar, scheduler=options.scheduler):
        outcomes.append(outcome)
        if outcome.error:
            print(_failure(outcome), file=sys.stderr)
        elif not options.json:
            print(_summary(outcome))
    if options.json:
        print(json.dumps(_report(sorted(outcomes, key=lambda outcome: jobs.index(outcome.job))), indent=1))
    return _exit_code([outcome.error for outcome in outcomes if outcome.error])


def _job(options: argparse.Namespace, name: str, source: str) -> Job:
    out = options.out.resolve()
    target = Target(out / f"{name}.fbam", out / f"{name}.json", options.rows, options.cols, options.block_frames)
    local = str(Path(source).absolute()) if Path(source).exists() else source
    return Job(local, options.revision, (target,), Limits(), options.limit_commits, options.message)


def _bar(label: str, total: int) -> Callable[..., None]:
    return Progress(label, total) if sys.stderr.isatty() else lambda done, of=0: None


def _failure(outcome: Outcome) -> str:
    return f"fbam: {one_line(outcome.error)}"


def one_line(error: BaseException | None) -> str:
    """An error's message on one line, in characters that every terminal takes."""
    return str(error).encode("utf-8", "backslashreplace").decode().replace("\n", " ") or repr(error)


def _exit_code(errors: Sequence[BaseException]) -> int:
    """1 where something was lost, 2 where a history could not be used, 0 without errors."""
    return 1 if any(isinstance(error, VerificationError) for error in errors) else 2 if errors else 0


def _report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Totals, a row a repository, and what failed."""
    results = [result for outcome in outcomes for result in outcome.done]
    rows = [result.row for result in results]
    summed = total(rows)
    seconds = sum(result.timing["cpu_seconds"] for result in results)
    return {
        **summed,
        **(timed(summed, seconds) if results else {}),
        "rows": [result.row | result.timing for result in results],
        "failures": [{"source": o.job.source, "error": one_line(o.error)} for o in outcomes if o.error],
    }


def _summary(outcome: Outcome) -> str:
    row, timing, reused = outcome.done[0]
    left_out = ", ".join(f"{number['count']} {reason}" for reason, number in row["exclusions"].items()) or "nothing"
    return (
        f"{row['repository']}: {row['commits']} commits, {row['files']} files, {row['actions']} actions, "
        f"{row['stored_bytes']} bytes ({row['ratio']:.0f}x), {row['mismatches']} mismatches, "
        f"{row['pasted_share']:.1%} pasted, left out: {left_out}"
        + (" (was there)" if reused else f"; {timing['actions_per_cpu_second']:.0f} actions a CPU second")
    )


def _verify(options: argparse.Namespace) -> int:
    errors: list[Exception] = []
    for path in _recordings(options.places):
        try:
            print(f"{path}: {_checked(path, None if options.all else SAMPLE)}", flush=True)
        except (RecordingError, VerificationError) as error:
            where = "" if str(path) in str(error) else f"{path}: "
            print(f"fbam: {where}{one_line(error)}", file=sys.stderr)
            errors.append(error)
    return _exit_code(errors)


def _recordings(places: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for place in places:
        below = sorted(place.rglob("*.fbam")) if place.is_dir() else [place]
        if not below:
            raise CorpusError(f"{place}: no recording (*.fbam) in this folder")
        found += below
    return found


def _checked(path: Path, limit: int | None) -> str:
    recording = Recording(path)
    check_blocks(recording, _bar(f"{path.name}, sums", recording.n_frames))
    pressed = replay(recording, limit, _bar(f"{path.name}, keys", min(limit or recording.n_frames, recording.n_frames)))
    frames = f"{pressed} of {recording.n_frames}" if pressed < recording.n_frames else f"all {pressed}"
    return f"whole; {frames} frames are what their actions show"
