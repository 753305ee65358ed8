"""Run the pipeline: the default profile in place, any other profile in a copy under build/run/.

`python -m fbam.pipeline [PROFILE] [DVC ARGUMENTS]` validates params.yaml and all profiles before dvc removes
anything, then calls `dvc repro`. A profile is an overlay on params.yaml; its run never touches the user's tree, and it
shares the cache. A tree without git (a zip download) is told to dvc as such.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

from fbam import params
from fbam.experiments.files import read_yaml
from fbam.experiments.records import commit
from fbam.paths import project_root

NOT_COPIED = {".git", ".venv", "build", "dvc.lock", "__pycache__", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"}
KEPT = {"build", "dvc.lock", ".dvc"}
KERNELS = (".nbc", ".nbi")  # machine code of numba's cache, and what names it


class MissingInput(FileNotFoundError):
    """One line that names a file of the repository which is not there."""


def _dvc(root: Path, *arguments: str, environment: dict[str, str] | None = None) -> int:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(command, cwd=root, env={**os.environ, "PATH": path, **(environment or {})}).returncode


def tell_dvc_about_git(root: Path) -> None:
    """dvc stops where there is no git; say so in its local configuration, and take it back when git is there."""
    local = root / ".dvc" / "config.local"
    said = local.exists() and "no_scm" in local.read_text("utf-8")
    if not (root / ".git").exists() and not said:
        _dvc(root, "config", "--local", "core.no_scm", "true")
    elif (root / ".git").exists() and said:
        _dvc(root, "config", "--local", "--unset", "core.no_scm")


def tracked_files(root: Path) -> list[Path]:
    """Files of the checkout, new ones included, ignored ones not; without git all files but what runs leave behind."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode("utf-8", "surrogateescape")
        names = [Path(name) for name in listed.split("\0") if name and (root / name).is_file()]
    else:
        names = [file.relative_to(root) for file in root.rglob("*") if file.is_file()]
    return [name for name in names if not NOT_COPIED & set(name.parts) and name.parts[:2] not in
            [(".dvc", "tmp"), (".dvc", "cache"), (".dvc", "config.local")]]


def _copy(source: Path, target: Path) -> None:
    if target.exists() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _source(kernel: Path) -> Path:
    """The module that a file of numba's cache was compiled from: `__pycache__/<module>.<function>-<line>...` beside it."""
    return kernel.parents[1] / f"{kernel.name.split('.')[0]}.py"


def _index(kernel: Path) -> Path:
    """`<function>.nbi` of that file itself or of `<function>.<number>.nbc`."""
    return kernel if kernel.suffix == ".nbi" else kernel.with_suffix("").with_suffix(".nbi")


def is_fresh(file: Path) -> bool:
    """Whether the file belongs to numba's cache and was written after the last change of its module."""
    return file.suffix in KERNELS and _source(file).is_file() and file.stat().st_mtime_ns >= _source(file).stat().st_ctime_ns


def carry_kernels(root: Path, copy: Path) -> None:
    """Take numba's compiled kernels along, so that a copy of the tree does not compile for half a minute again.

    A stale kernel cannot pass. Numba's index names the state of the module it was compiled from (its hash; before numba
    0.68 its time and size), numba's version and the processor, and is used for no other. Besides, only a fresh kernel is
    carried, only beside a module of the same bytes, and only where the copy has no index yet; no kernel calls one of
    another module.
    """
    compiled = [file for file in (root / "fbam").glob("**/__pycache__/*.nb?")
                if is_fresh(file) and not (copy / _index(file).relative_to(root)).exists()]
    for file in sorted(compiled, key=lambda file: file.suffix):  # the code before the indices that name it
        source, target = copy / _source(file).relative_to(root), copy / file.relative_to(root)
        if source.is_file() and source.read_bytes() == _source(file).read_bytes():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, target)  # written now: fresh in the copy, too


def lay_out(root: Path, profile: str) -> Path:
    """Copy the tree to build/run/<profile> with the overlay applied; files that left the tree leave the copy too."""
    overlay_file = root / "profiles" / f"{profile}.yaml"
    if not overlay_file.is_file():
        known = ", ".join(sorted(file.stem for file in (root / "profiles").glob("*.yaml")))
        raise params.ParamsError(f"profile {profile} is unknown: {overlay_file} does not exist; the profiles are {known}")
    copy = root / "build" / "run" / profile
    names = tracked_files(root)
    for name in names:
        if name != Path("params.yaml"):
            _copy(root / name, copy / name)
    expected = set(names)
    for file in [file for file in copy.rglob("*") if file.is_file()]:
        name = file.relative_to(copy)
        if name not in expected and name.parts[0] not in KEPT and not is_fresh(file):
            file.unlink()
    carry_kernels(root, copy)
    merged = params.overlay(params.read_sections(root / "params.yaml"), params.read_sections(overlay_file), str(overlay_file))
    params.parse(merged, str(overlay_file))
    with (copy / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(merged, file)
    cache = root / ".dvc" / "cache"
    (copy / ".dvc" / "config.local").write_text(f"[core]\n    no_scm = true\n[cache]\n    dir = {cache}\n", "utf-8")
    return copy


def check_inputs(root: Path) -> None:
    """Raise MissingInput for a file that a stage needs and no stage makes, before dvc removes the stage's outputs."""
    for stage, entry in read_yaml(root / "dvc.yaml")["stages"].items():
        for dep in entry.get("deps", []):
            if not dep.startswith("build/") and not (root / dep).exists():
                raise MissingInput(f"{dep} is missing, stage {stage} needs it; restore it with `git checkout -- {dep}`")


def run(root: Path, profile: str, arguments: list[str]) -> int:
    """`dvc repro` of one profile; prints the page to open. Returns dvc's exit status."""
    params.check_tree(root)
    check_inputs(root)
    tell_dvc_about_git(root)
    place = root if profile == "default" else lay_out(root, profile)
    status = _dvc(place, "repro", *arguments, environment={"FBAM_PROFILE": profile, "FBAM_COMMIT": commit(root)})
    if status == 0:
        print(f"\nThe companion ({profile} profile): {place / 'build' / 'site' / 'index.html'}")
    return status


def main(arguments: list[str] | None = None) -> int:
    """Command line. A first word that is no option names the profile; the rest goes to `dvc repro`."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    profile = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "default"
    try:
        return run(project_root(), profile, arguments)
    except (params.ParamsError, MissingInput) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; run the same command again, finished work is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
