"""Makes the git history of tally, a small interpreter that grows over more than a hundred commits.

Section 10.4.1 of the paper trains on public repositories of toy compilers and interpreters. This history stands in for one of
them where nothing can be downloaded: it is written for this project, step by step, in steps/*.steps (form: see stepfile.py).

    python data/interpreter/make_history.py [--seed 0] [--out data/interpreter.bundle]

The seed orders independent neighbouring steps, fills in small variations and sets the times between commits. Every draw is
SHA-256 of the seed and a name, so the commit ids depend on the seed and the steps alone, not on machine or Python version.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pygit2

from filetree import Tree, apply_step
from stepfile import Script, Step, StepError, fill, read_script

HERE = Path(__file__).resolve().parent
AUTHOR = ("Ada Example", "ada@example.org")
FIRST_TIME = 1_673_251_200  # 2023-01-09 08:00 UTC, in seconds
TIME_ZONE = 60  # minutes east of UTC
MAIN = "main"


def draw(seed: int, name: str, below: int) -> int:
    """An integer in [0, below) that depends on the seed and the name alone."""
    return int.from_bytes(sha256(f"{seed}:{name}".encode()).digest()[:8], "big") % below


def ordered(script: Script, seed: int) -> list[Step]:
    """The steps in written order, save that the members of a group are put in an order drawn from the seed."""
    steps = []
    for group, members in groupby(script.steps, key=lambda step: step.group):
        key = (lambda step: draw(seed, f"order {step.name}", 2**63)) if group else (lambda step: 0)
        steps += sorted(members, key=key)
    return steps


@dataclass
class Line:
    """A line of development: its last commit, its tree and the steps taken on it since the fork."""

    head: pygit2.Oid | None = None
    tree: Tree = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


class HistoryWriter:
    """Writes steps as commits into a bare repository."""

    def __init__(self, folder: Path, script: Script, seed: int) -> None:
        self.repository = pygit2.init_repository(str(folder), bare=True, initial_head=MAIN)
        self.seed = seed
        self.chosen = {
            name: options[draw(seed, f"choice {name}", len(options))] for name, options in script.choices.items()
        }
        self.lines = {MAIN: Line()}
        self.blobs: dict[str, pygit2.Oid] = {}
        self.time = FIRST_TIME

    def take(self, step: Step) -> None:
        """Apply the step to its line of development and commit the tree that comes out."""
        main = self.lines[MAIN]
        line = self.lines.setdefault(step.branch or MAIN, Line(main.head, main.tree))
        parents = [line.head] if line.head else []
        if step.merge:
            if step.merge not in self.lines:
                raise StepError(f"{step.place}: merge {step.merge}: no step went to such a branch")
            joined = self.lines.pop(step.merge)
            parents.append(joined.head)
            for other in joined.steps:
                line.tree = apply_step(other, line.tree, self.chosen)
        line.tree = apply_step(step, line.tree, self.chosen)
        line.steps.append(step)
        line.head = self._commit(step, line.tree, parents)

    def _commit(self, step: Step, tree: Tree, parents: list[pygit2.Oid]) -> pygit2.Oid:
        if not step.subjects:
            raise StepError(f"{step.place}: step {step.name} has no subject")
        subject = step.subjects[draw(self.seed, f"subject {step.name}", len(step.subjects))]
        body = "\n" + "".join(line + "\n" for line in step.body) if step.body else ""
        message = fill(f"{subject}\n{body}", self.chosen, step.place)
        self.time += 60 * (4 + draw(self.seed, f"time {step.name}", 200))
        author = pygit2.Signature(*AUTHOR, self.time, TIME_ZONE)
        return self.repository.create_commit(None, author, author, message, self._tree(tree), parents)

    def _tree(self, tree: Tree) -> pygit2.Oid:
        index = pygit2.Index()
        for path, file in tree.items():
            if file.text not in self.blobs:
                self.blobs[file.text] = self.repository.create_blob(file.text.encode())
            index.add(pygit2.IndexEntry(path, self.blobs[file.text], pygit2.enums.FileMode(file.mode)))
        return index.write_tree(self.repository)

    def finish(self) -> str:
        """Point the branch `main` at the last commit and return its id."""
        unmerged = set(self.lines) - {MAIN}
        if unmerged:
            raise StepError(f"side branches never merged: {sorted(unmerged)}; add a step with 'merge: NAME'")
        head = self.lines[MAIN].head
        self.repository.references.create(f"refs/heads/{MAIN}", head)
        return str(head)


def write_history(folder: Path, seed: int = 0, steps: Path = HERE / "steps") -> str:
    """Make a bare repository with the whole history in `folder`; returns the id of its last commit."""
    script = read_script(steps)
    writer = HistoryWriter(folder, script, seed)
    for step in ordered(script, seed):
        writer.take(step)
    return writer.finish()


def write_bundle(out: Path, seed: int = 0) -> str:
    """Write the history as a git bundle with the references HEAD and main; returns the id of its last commit."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    out = out.absolute()
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".history-") as folder:
        head = write_history(Path(folder) / "repository", seed)
        git = ["git", "--git-dir", f"{folder}/repository", "-c", "pack.threads=1"]
        for command in (
            ["repack", "-a", "-d", "-f", "-q", "--window=100", "--depth=50"],
            ["bundle", "create", "--quiet", f"{folder}/bundle", "HEAD", MAIN],
        ):
            subprocess.run([*git, *command], env=environment, check=True)
        os.replace(f"{folder}/bundle", out)
    return head


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the git history of a small interpreter.")
    parser.add_argument("--seed", type=int, default=0, help="orders steps and picks variations (default 0)")
    parser.add_argument("--out", type=Path, default=HERE.parent / "interpreter.bundle", help="the bundle to write")
    arguments = parser.parse_args()
    try:
        head = write_bundle(arguments.out, arguments.seed)
    except (StepError, OSError, subprocess.CalledProcessError) as error:
        print(f"make_history: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.out}: head {head}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
