"""Plain progress lines with the time left, for notebooks and terminals alike.

A line begins with `progress`, so the notebook runner can show it live and leave it out of the executed notebook,
whose bytes must not depend on the clock.
"""

from __future__ import annotations

import sys
import time

PREFIX = "progress "
LINES = 20  # at most about this many lines for one bar
QUIET_SECONDS = 2.0  # and never more often than this


def clock(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss from an hour on."""
    minutes, rest = divmod(int(round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress:
    """Report `done` of `total` units of work to standard error.

    The time left assumes that the rest costs as much a unit as what this process has done so far: work that was
    already there when the bar began is named by `start` and does not count as speed.
    """

    def __init__(self, label: str, total: float, start: float = 0.0):
        self.label, self.total, self.start = label, total, start
        self._begun = time.monotonic()
        self._said_at = self._begun
        self._said = start / total if total else 1.0

    def __call__(self, done: float, total: float | None = None) -> None:
        """Set the work done so far; `total` replaces the total where it became known late."""
        if total is not None:
            self.total = total
        share = min(1.0, done / self.total) if self.total else 1.0
        now = time.monotonic()
        finished = share >= 1.0 and self._said < 1.0
        due = share - self._said >= 1 / LINES and now - self._said_at >= QUIET_SECONDS
        if finished or due:
            self._said, self._said_at = share, now
            print(PREFIX + self.line(done, now - self._begun), file=sys.stderr, flush=True)

    def line(self, done: float, gone: float) -> str:
        """The text of one line after `gone` seconds."""
        share = min(1.0, done / self.total) if self.total else 1.0
        text = f"{self.label} {100 * share:3.0f} % · {clock(gone)} gone"
        if share >= 1.0:
            return text
        if done <= self.start:
            return text + " · time left not known yet"
        return text + f" · {clock(gone * (self.total - done) / (done - self.start))} left"
