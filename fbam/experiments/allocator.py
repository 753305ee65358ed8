"""Freed memory that stays with the process, for work that asks for the same large blocks again and again.

glibc maps blocks above a threshold of at most 32 MiB from the system and unmaps them when freed, so each step of a training would have
the pages of its large activations filled with zeros anew, which can take longer than the step itself (``man mallopt``).
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Numbers of mallopt's parameters in malloc.h."""


def keep_freed_memory() -> None:
    """Have the C library keep what is freed, from now on; without effect where it is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)  # no block is mapped by itself
        mallopt(M_TRIM_THRESHOLD, -1)  # the heap is never cut
