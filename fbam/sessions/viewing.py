"""``fbam play``, ``fbam cast``, ``fbam frame``: what a person looks at a recording with.

    fbam play build/recordings/reading/interpreter.fbam --at 40000 --speed 2
    fbam cast interpreter.fbam --out interpreter.cast
    fbam cast session.cast --out session.fbam
    fbam frame interpreter.fbam 40000 --out frame.svg
"""

import argparse
from pathlib import Path

from fbam.experiments.files import write_text
from fbam.recording.format import Recording, RecordingError
from fbam.sessions.ansi import to_ansi
from fbam.sessions.cast import RATE, read_cast, write_cast
from fbam.sessions.play import play
from fbam.sessions.svg import to_svg

RECORDING, CAST, PICTURE = ".fbam", ".cast", ".svg"


class ViewError(RecordingError):
    """What was asked for cannot be shown: no such frame, or a file name that does not say what it is to be."""


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``play``, ``cast`` and ``frame`` to the command line."""
    player = commands.add_parser("play", help="play a recording in the terminal (q, space, arrows)")
    player.add_argument("file", type=Path, metavar="FILE")
    player.add_argument("--at", type=int, default=0, metavar="N", help="frame to start at, from 0")
    player.add_argument("--speed", type=float, default=1.0, metavar="S", help=f"times {RATE:g} actions a second (default 1)")
    player.set_defaults(run=_play)

    caster = commands.add_parser("cast", help="turn a recording into an asciinema cast, or a cast into a recording")
    caster.add_argument("file", type=Path, metavar="FILE", help=f"recording ({RECORDING}) or cast ({CAST}, versions 2 and 3)")
    caster.add_argument("--out", type=Path, required=True, metavar="FILE", help=f"{CAST} for a cast, {RECORDING} for a recording")
    caster.add_argument("--rate", type=float, default=RATE, help=f"actions a second of the cast (default {RATE:g})")
    caster.set_defaults(run=_cast)

    viewer = commands.add_parser("frame", help="show one frame of a recording, or draw it")
    viewer.add_argument("file", type=Path, metavar="FILE")
    viewer.add_argument("number", type=int, metavar="N", help="frame, from 0")
    viewer.add_argument("--out", type=Path, metavar="FILE", help=f"picture ({PICTURE}); without it the frame is printed")
    viewer.set_defaults(run=_frame)


def _play(options: argparse.Namespace) -> None:
    play(Recording(options.file), options.at, options.speed)


def _cast(options: argparse.Namespace) -> None:
    if (options.file.suffix, options.out.suffix) == (CAST, RECORDING):
        header = read_cast(options.file, options.out)
        made = Recording(options.out)
        what = "keys" if header.typed else "screens, no keys"
        print(f"{options.out}: {made.n_frames} {what}, {made.rows} x {made.cols}, {options.out.stat().st_size} bytes")
    elif (options.file.suffix, options.out.suffix) == (RECORDING, CAST):
        recording = Recording(options.file)
        write_cast(recording, options.out, options.rate)
        print(f"{options.out}: {recording.n_frames} frames, {options.out.stat().st_size} bytes")
    else:
        names = f"{options.file.name} to {options.out.name}"
        raise ViewError(f"{names}: the names must end in {RECORDING} and {CAST}, or in {CAST} and {RECORDING}")


def _frame(options: argparse.Namespace) -> None:
    recording, t = Recording(options.file), options.number
    if not 0 <= t < recording.n_frames:
        raise ViewError(f"{options.file} has frames 0 to {recording.n_frames - 1}, not {t}")
    if options.out and options.out.suffix != PICTURE:
        raise ViewError(f"{options.out}: pictures are {PICTURE} files: let the name end so")
    frame, line = recording.frames(t, t + 1)[0], f"frame {t} of {recording.n_frames}, next action {ascii(recording.actions[t])}"
    if options.out:
        write_text(options.out, to_svg(frame, line))
    else:
        print(to_ansi(frame))
    print(line)
