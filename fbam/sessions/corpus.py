"""Section 10.1: compile every history that the parameters name, one recording each.

The recordings of a run are published together: a history that cannot be compiled stops the run with one clear line, and
what was there before stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from fbam.recording.format import Recording
from fbam.sessions.compile import Limits, compile_history
from fbam.sessions.history import HistoryError, open_history
from fbam.sessions.verify import replay


def located(source: str, root: Path) -> str:
    """A URL or absolute path as it is; a relative path seen from the project root, wherever the process runs."""
    return source if "://" in source or Path(source).is_absolute() else str(root / source)


def compile_corpus(
    repositories: list[dict],
    screens: dict[str, dict],
    root: Path,
    *,
    limits: Limits,
    commit_limit: int,
    progress: Callable[[str, int], Callable[[int, int], None]],
) -> list[dict]:
    """Compile each {source, revision} once for each named screen {rows, columns, block_frames}.

    The recordings are `root`/build/recordings/<screen>/<name>.fbam. Returns one {"row": report, "timing": processor and
    wall seconds of compiling} a recording; `replayed` counts its frames, each decoded and compared with the screen that the
    keys make again. `progress` makes a progress bar from a label and a total of commits. Raises HistoryError for
    a source that cannot be used and for two sources of one name.
    """
    histories = [open_history(located(repository["source"], root), repository["revision"], root / "build" / "clones")
                 for repository in repositories]
    names = [history.name for history in histories]
    if len(set(names)) < len(names):
        raise HistoryError(f"corpus.repositories: two sources have the same name in {', '.join(names)}; rename one")
    reports = []
    for history in histories:
        for screen, size in screens.items():
            wall, cpu = time.perf_counter(), time.process_time()
            path = root / "build" / "recordings" / screen / f"{history.name}.fbam"
            report = compile_history(
                history, path, rows=size["rows"], cols=size["columns"],
                block_frames=size["block_frames"], limits=limits, commit_limit=commit_limit,
                on_progress=progress(f"{history.name}, {screen}", 1),
            )
            timing = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
            replayed = replay(Recording(path))
            reports.append({"row": {"screen": screen, **size, **report, "replayed": replayed}, "timing": timing})
    return reports
