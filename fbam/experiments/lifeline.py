"""A process that ends with the one that started it.

After kill -9 of dvc the notebook's kernel and its workers would go on, and the next run would start a second trainer
beside the first. On Linux the kernel of the operating system is asked to end the child with its parent; elsewhere the
lock on each cell remains the only guard.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask to be killed when the parent dies, and go at once if it is dead already."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
