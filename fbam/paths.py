"""Where the project's files are, from whichever folder a notebook or command was started."""

from __future__ import annotations

from pathlib import Path

from fbam.experiments.files import read_yaml


def project_root() -> Path:
    """The nearest folder upwards with a dvc.yaml, else the checkout this package was installed from.

    A notebook opened in JupyterLab starts in notebooks/, the pipeline starts in the root; both find the same files.
    """
    here = Path.cwd().resolve()
    checkout = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, checkout):
        if (folder / "dvc.yaml").is_file() and (folder / "params.yaml").is_file():
            return folder
    raise FileNotFoundError(f"no dvc.yaml in {here} or above it, nor in {checkout}; run inside a checkout of the project")


def maker_of(path: str, root: Path) -> str | None:
    """The stage of dvc.yaml that has `path` (relative to `root`), or a folder above it, among its outs."""
    stages = read_yaml(root / "dvc.yaml")["stages"]
    for name, stage in stages.items():
        for out in [*stage.get("outs", []), *stage.get("metrics", [])]:
            if path == out or path.startswith(out.rstrip("/") + "/"):
                return name
    return None


def need(path: str) -> Path:
    """An input of a notebook, as an absolute path; if it is missing, the error names the stage that makes it."""
    root = project_root()
    if (root / path).exists():
        return root / path
    stage = maker_of(path, root)
    remedy = f"run `dvc repro {stage}` first" if stage else "it is part of the repository: restore it with git"
    raise FileNotFoundError(f"{path} is missing: {remedy}")
