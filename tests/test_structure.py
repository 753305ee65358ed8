"""The house rules: what may import what, what dvc.yaml must declare, how notebooks are stored, what README promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path

import nbformat
import papermill
import pytest
from conftest import ROOT
from ruamel.yaml import YAML

from fbam import canonical, params
from fbam.experiments.source import code_of, direct_imports, transitive_imports

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MODULES = sorted((ROOT / "fbam").rglob("*.py"))
COMPUTE = ("sessions", "recording", "training", "models", "sequence", "tasks", "theory")
# package -> packages of ours that it must never load, directly or through others
FORBIDDEN = {
    "sessions": ("tasks", "theory", "models", "training", "analysis", "site"),
    "recording": ("sessions", "tasks", "theory", "models", "training", "analysis", "site"),
    "tasks": ("sequence", "models", "training", "theory", "analysis", "site"),
    "models": ("recording", "sessions", "tasks", "theory", "training", "analysis", "experiments", "site"),
    "sequence": ("recording", "sessions", "tasks", "theory", "training", "analysis", "experiments", "models", "site"),
    "theory": ("recording", "sessions", "tasks", "training", "analysis", "site"),
    "training": ("sessions", "theory", "analysis", "site"),
    "analysis": ("sessions", "tasks", "theory", "models", "training", "sequence", "site"),
    "experiments": ("sessions", "recording", "tasks", "theory", "models", "training", "analysis", "sequence", "site"),
    "site": ("sessions", "recording", "tasks", "theory", "models", "training", "sequence"),
}


def read_yaml(name: str) -> dict:
    return YAML(typ="safe", pure=True).load((ROOT / name).read_text("utf-8"))


STAGES = read_yaml("dvc.yaml")["stages"]
NOTEBOOK_STAGES = {name: stage for name, stage in STAGES.items() if "fbam.notebook" in stage["cmd"]}


@lru_cache(maxsize=None)
def imports_of(file: Path) -> frozenset[Path]:
    return frozenset(direct_imports(code_of(file), ROOT))


def loads(file: Path) -> set[Path]:
    """What `transitive_imports` gives, each module read once for all tests."""
    seen, waiting = set(), set(imports_of(file))
    while waiting:
        seen.add(module := waiting.pop())
        waiting |= imports_of(module) - seen
    return seen - {file}


def test_what_a_module_loads_is_what_the_grid_counts():
    module = ROOT / "fbam/training/study.py"
    assert loads(module) == transitive_imports(module, ROOT) and len(loads(module)) > 20


def relative(files) -> set[str]:
    return {file.relative_to(ROOT).as_posix() for file in files}


def package_of(name: str) -> str:
    parts = Path(name).parts
    return parts[1] if len(parts) > 2 else ""


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.relative_to(ROOT).as_posix())
def test_import_rules(module):
    package = package_of(module.relative_to(ROOT).as_posix())
    loaded = {package_of(name) for name in relative(loads(module))}
    assert not loaded & set(FORBIDDEN.get(package, ()))
    if package in ("sessions", "recording"):
        text = "\n".join(code_of(file) for file in loads(module) | {module})
        imports = {alias.name.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
        froms = {(node.module or "").split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
        assert "torch" not in imports | froms


def test_no_circles():
    TopologicalSorter({module: imports_of(module) for module in MODULES}).prepare()  # raises CycleError


def test_packages_hold_no_code_of_their_own():
    for file in (ROOT / "fbam").rglob("__init__.py"):
        body = ast.parse(file.read_text("utf-8")).body
        if file.parent.name == "theory":  # the one name offered to other projects: from fbam.theory import true_depth
            assert ast.unparse(body.pop()) == "from fbam.theory.depth import true_depth as true_depth"
        assert len(body) == 1, f"{file}: a docstring only, or it becomes a hidden dependency"


def covered(name: str, deps: list[str]) -> bool:
    return any(name == dep or name.startswith(dep + "/") for dep in deps)


@pytest.mark.parametrize("name", NOTEBOOK_STAGES)
def test_deps_name_every_module_a_notebook_loads(name):
    stage = NOTEBOOK_STAGES[name]
    notebook = stage["cmd"].split()[-1]
    assert stage["cmd"] == f"exec python -m fbam.notebook {notebook}" and notebook in stage["deps"]
    assert f"build/notebooks/{Path(notebook).name}" in stage["outs"]
    loaded = relative(loads(ROOT / notebook))
    missing = sorted(file for file in loaded if not covered(file, stage["deps"]))
    assert not missing, f"stage {name} loads {missing} but does not declare it"
    idle = [dep for dep in stage["deps"] if dep.startswith("fbam") and not any(covered(file, [dep]) for file in loaded)]
    assert not idle, f"stage {name} declares {idle} but does not load it"


@pytest.mark.parametrize("name", NOTEBOOK_STAGES)
def test_a_changed_figure_trains_nothing_anew(name):
    """A stage that draws what it computes does the computing in cells of the grid, whose identity has no figure in it."""
    deps = NOTEBOOK_STAGES[name]["deps"]
    computes = any(dep.startswith(f"fbam/{package}") for dep in deps for package in ("training", "tasks", "theory"))
    if computes and any(dep.startswith("fbam/analysis") for dep in deps):
        assert "run_grid(" in code_of(ROOT / NOTEBOOK_STAGES[name]["cmd"].split()[-1])


def test_the_site_stage_declares_what_it_loads():
    loaded = relative(transitive_imports(ROOT / "fbam/site/__main__.py", ROOT)) | {"fbam/site/__main__.py"}
    assert not [file for file in loaded if not covered(file, STAGES["site"]["deps"])]
    pages = [dep for dep in STAGES["site"]["deps"] if dep.startswith("build/notebooks/")]
    assert sorted(pages) == sorted(f"build/notebooks/{file.name}" for file in NOTEBOOKS)


def test_every_out_is_cached_and_under_build():
    for stage in STAGES.values():
        for out in [*stage.get("outs", []), *stage.get("metrics", [])]:
            assert isinstance(out, str) and out.startswith("build/"), "no cache: false, no persist: true"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.name)
def test_notebooks_are_stored_canonical(notebook):
    text = notebook.read_text("utf-8")
    assert text == canonical.text(canonical.stored(nbformat.reads(text, as_version=4))), f"run python -m fbam.canonical {notebook}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.name)
def test_parameter_cells_hold_the_default_profile(notebook):
    stage = nbformat.read(notebook, as_version=4)["metadata"]["fbam"]["stage"]
    assert STAGES[stage]["cmd"].endswith(f"notebooks/{notebook.name}")
    declared = STAGES[stage].get("params", [])
    section = params.read_sections(ROOT / "params.yaml").get(stage, {})
    assert declared == ([stage] if section else [])
    cell = papermill.inspect_notebook(str(notebook))
    assert {name: ast.literal_eval(entry["default"]) for name, entry in cell.items()} == section


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.name)
def test_notebooks_read_well(notebook):
    cells = nbformat.read(notebook, as_version=4)["cells"]
    assert 8 <= len(cells) <= 24
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"].startswith("# ")
    assert cells[-1]["cell_type"] == "markdown" and cells[-1]["source"].startswith("## What this does not show")
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["source"].count("\n") < 30
            for node in ast.walk(ast.parse(code_of_cell(cell["source"]))):
                if isinstance(node, ast.FunctionDef):
                    assert node.end_lineno - node.lineno < 5, "a longer function belongs in the package"


def code_of_cell(source: str) -> str:
    return "\n".join(line for line in source.split("\n") if not line.startswith(("%", "!")))


def test_environment_and_pyproject_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    conda = read_yaml("environment.yml")["dependencies"]
    assert conda[-1] == {"pip": ["-e .[test]"]} and set(conda[1:-1]) == {"pip", "git"}, "pyproject.toml holds the one list"
    assert conda[0].removeprefix("python=") == project["requires-python"].removeprefix(">=")
    assert [line for line in project["dependencies"] if line.startswith("torch")] == ["torch==2.13.0"]


def test_every_import_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = project["dependencies"] + project["optional-dependencies"]["test"]
    declared = {re.split(r"[<>=\[]", line)[0].lower().replace("-", "_").replace(".", "_") for line in listed}
    modules = {"bs4": "beautifulsoup4", "ipython": "ipykernel", "ruamel": "ruamel_yaml", "matplotlib_inline": "ipykernel", "cycler": "matplotlib",
               "markupsafe": "jinja2"}
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else [])
            for name in names:
                top = name.split(".")[0].lower()
                if top != "fbam" and top not in {m.lower() for m in sys.stdlib_module_names}:
                    assert modules.get(top, top) in declared, f"{module}: {name} is not in pyproject.toml"


def test_readme_keeps_its_promises():
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count("\n") <= 150
    for path in re.findall(r"`((?:fbam|notebooks|data|tests|profiles|results|bench|\.ci|\.dvc)/[\w./*-]*|[\w.-]+\.(?:yaml|yml|toml|md|cff))`", text):
        assert list(ROOT.glob(path.rstrip("/"))) or path.startswith("build/"), f"README names {path}, which does not exist"
    targets = set(re.findall(r"^([a-z]+(?: [a-z]+)*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    targets = {name for group in targets for name in group.split()}
    for target in re.findall(r"`make ([a-z]+)`", text):
        assert target in targets, f"README names `make {target}`"
    for stage in re.findall(r"`dvc repro ([a-z_]+)`", text):
        assert stage in STAGES
    for command in re.findall(r"python -m (fbam[\w.]*)", text):
        assert (ROOT / (command.replace(".", "/") + ".py")).exists() or (ROOT / command.replace(".", "/") / "__main__.py").exists()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a download without git has no list of tracked files")
def test_nothing_large_is_tracked():
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    large = [name for name in tracked if name and (ROOT / name).is_file() and (ROOT / name).stat().st_size > 1_000_000]
    assert [name for name in large if not name.endswith(".bundle")] == []
