"""Typed rows with provenance: the only way a number leaves a stage.

A stage writes build/results/<stage>.json with a `summary` (named scalars, what `dvc metrics show` prints), `rows` (one
typed row a run) and a `provenance`. Everything in it is a function of parameters and code; times and memory go to
build/timings/<stage>.json of the same form. A missing or non-finite value is an error, never a zero.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fbam.experiments.files import read_json, write_json
from fbam.experiments.source import source_hash

VERSIONS = ("numpy", "scipy", "torch")
COMMITTED = ("fbam", "notebooks", "data", "params.yaml", "dvc.yaml", "protocol.md")


class Row(BaseModel):
    """Base of all rows: no unknown field, no coercion, no NaN, no infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


@cache
def processor() -> str:
    """Model name of the processor, as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def commit(root: Path) -> str:
    """Commit of the checkout at `root`, with `+` where files that matter differ from it; `unknown` without git.

    A profile runs in a copy without git and is told its commit by the environment variable FBAM_COMMIT.
    """
    if os.environ.get("FBAM_COMMIT"):
        return os.environ["FBAM_COMMIT"]
    git = ["git", "-C", str(root)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "--", *COMMITTED], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed.stdout.strip() else "")


def provenance(notebook: str, root: Path) -> dict[str, str]:
    """What a reader needs to trust or repeat a result: profile, commit, hash of the code, versions, processor.

    `notebook` is relative to `root`. The pipeline names the profile in the environment variable FBAM_PROFILE.
    """
    return {
        "profile": os.environ.get("FBAM_PROFILE", "default"),
        "commit": commit(root),
        "source": source_hash(root / notebook, root),
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONS},
        "processor": processor(),
    }


def _scalar(name: str, value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)) or value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"summary value {name} is {value!r}; it must be a finite number, a truth value or a text")
    return value


def write_results(path: Path, summary: dict[str, Any], rows: Sequence[Row], provenance: dict[str, str]) -> None:
    """Write one results file whole. Raises ValueError for a summary value that is missing or not finite."""
    checked = {name: _scalar(name, value) for name, value in summary.items()}
    listed = [row.model_dump(mode="json") for row in rows]
    write_json(Path(path), {"summary": checked, "rows": listed, "provenance": [provenance]})


def read_results(path: Path) -> dict[str, Any]:
    """One results file as {"summary": …, "rows": …, "provenance": {…}}."""
    stored = read_json(path)
    return stored | {"provenance": stored["provenance"][0]}
