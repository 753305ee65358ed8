"""The published results: results/ in git, changed only by `make publish`, held against a run by `make compare`.

Publishing copies build/results/ and build/timings/ whole, and only if they belong to what git holds: nothing that
matters is uncommitted, and dvc finds every stage up to date. The results are then stamped with that commit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fbam.analysis import figures
from fbam.experiments.files import read_json, write_json, write_text
from fbam.experiments.records import commit
from fbam.paths import project_root

PARTS = ("results", "timings")  # folders of build/; timings are shown but never compared
ROUNDING = 1e-9  # relative; sums in another order may differ by this much and mean nothing


class PublishError(RuntimeError):
    """One line that says why nothing was published or compared, and the remedy."""


def _dvc_status(root: Path) -> dict:
    command = [sys.executable, "-m", "dvc", "status", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise PublishError(f"dvc status failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def scaling_picture(rows: list[dict]) -> str:
    """Loss against length at the first task's last fixed step, each family beside the other, as SVG for the README."""
    rows = [row for row in rows if row["task"] == rows[0]["task"]]
    last = max(row["step"] for row in rows)
    rows = [row for row in rows if row["step"] == last]
    points = {row["control"]: [{"length": length, "loss": loss} for length, loss in row["points"]] for row in rows}
    figures.use_style()
    return figures.svg(figures.scaling_panels(points, {row["control"]: (row["A"], row["alpha"]) for row in rows}, last))


def publish(root: Path) -> list[Path]:
    """Replace results/ by this run's results; returns the files written.

    Raises PublishError when the run is not the whole default profile of a clean commit.
    """
    head = commit(root)
    if head == "unknown":
        raise PublishError("this is no git checkout, so a result could not name its commit; publish from a clone")
    if head.endswith("+"):
        raise PublishError("code, parameters or data differ from the last commit; commit them, run `make`, publish then")
    stale = _dvc_status(root)
    if stale:
        raise PublishError(f"stages are not up to date: {', '.join(stale)}; run `make` first")
    target = root / "results"
    with tempfile.TemporaryDirectory(dir=root) as folder:
        fresh = Path(folder) / "results"
        for part in PARTS:
            for file in sorted((root / "build" / part).glob("*.json")):
                content = read_json(file)
                content["provenance"][0]["commit"] = head
                write_json(fresh / ("timings" if part == "timings" else "") / file.name, content)
        write_text(fresh / "scaling.svg", scaling_picture(read_json(fresh / "scaling_fits.json")["rows"]))
        if (target / "README.md").exists():
            shutil.copy2(target / "README.md", fresh / "README.md")
        if target.exists():
            target.rename(Path(folder) / "old")
        fresh.rename(target)
    return sorted([*target.rglob("*.json"), *target.glob("*.svg")])


@dataclass(frozen=True)
class Difference:
    """One value that is not what was published; `size` is relative for two numbers, else None."""

    place: str
    published: object
    here: object
    size: float | None

    def __str__(self) -> str:
        size = "" if self.size is None else f" ({self.size:.2g} relative)"
        return f"{self.place}: published {self.published!r}, here {self.here!r}{size}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def differences(published: object, here: object, place: str = "") -> Iterator[Difference]:
    """Walk two results side by side; numbers that differ by no more than rounding are equal."""
    if isinstance(published, dict) and isinstance(here, dict):
        for key in sorted(published.keys() | here.keys()):
            yield from differences(published.get(key), here.get(key), f"{place}.{key}" if place else key)
    elif isinstance(published, list) and isinstance(here, list) and len(published) == len(here):
        for number, (one, other) in enumerate(zip(published, here)):
            yield from differences(one, other, f"{place}[{number}]")
    elif _is_number(published) and _is_number(here):
        size = abs(here - published) / max(abs(published), abs(here), 1e-300)
        if size > ROUNDING:
            yield Difference(place, published, here, size)
    elif published != here:
        yield Difference(place, published, here, None)


def compare(root: Path) -> dict[str, list[Difference]]:
    """File -> what differs in summary and rows, for every published results file. Raises PublishError if there is none."""
    files = sorted((root / "results").glob("*.json"))
    if not files:
        raise PublishError("results/ holds nothing yet: run `make publish` first")
    found = {}
    for file in files:
        here = root / "build" / "results" / file.name
        if not here.exists():
            raise PublishError(f"{here.relative_to(root)} is missing: run `make` first")
        published, ours = read_json(file), read_json(here)
        found[file.name] = [d for part in ("summary", "rows") for d in differences(published[part], ours[part], part)]
    return found


def changed_verdicts(root: Path) -> list[str]:
    """Claims whose verdict is not the published one."""
    rows = [{row["id"]: row["verdict"] for row in read_json(folder / "claims.json")["rows"]}
            for folder in (root / "results", root / "build" / "results")]
    return [f"{name}: published {verdict}, here {rows[1].get(name)}" for name, verdict in rows[0].items()
            if rows[1].get(name) != verdict]


def _report(root: Path) -> int:
    total = 0
    for name, found in compare(root).items():
        total += len(found)
        print(f"{name}: " + ("equal" if not found else f"{len(found)} values differ, the first of them"))
        for difference in found[:3]:
            print(f"  {difference}")
    verdicts = changed_verdicts(root)
    for line in verdicts:
        print(f"verdict of {line}")
    print(f"{total} values and {len(verdicts)} verdicts differ from the published results")
    return 1 if total or verdicts else 0


def main(arguments: list[str] | None = None) -> int:
    """`python -m fbam.publish [compare]`; 0 when published or equal, 1 when something differs, 2 on an error."""
    arguments = sys.argv[1:] if arguments is None else arguments
    root = project_root()
    try:
        if arguments == ["compare"]:
            return _report(root)
        for file in publish(root):
            print(f"published {file.relative_to(root)}")
        return 0
    except (PublishError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
