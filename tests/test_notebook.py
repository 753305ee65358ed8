"""The runner: contract of parameters, canonical output, failures that name their place and lose nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

from fbam import canonical
from fbam.notebook import StageError, check_contract, stage_of

CELL = (
    "batch = 512\nwidth = 768\ncells = 7680\npoolings = 2\nhead_blocks = 3\nlength = 1024\nlayers = 2\n"
    "codes = 128\nvocabulary = 20000\nstate_every = 32\nrate = 4.0e14"
)
BODY = """
import sys, time
from pathlib import Path
from fbam.experiments.progress import Progress
bar = Progress("toy", 2)
bar(1); print("one"); sys.stdout.flush(); time.sleep(0.3); print("two"); bar(2)
print("a word", file=sys.stderr)
written = Path("build/out.txt").write_text(str(batch))
"""
STAGE = """
stages:
  flops:
    cmd: exec python -m fbam.notebook notebooks/toy.ipynb
    deps: [notebooks/toy.ipynb]
    params: [flops]
    outs: [build/notebooks/toy.ipynb, build/out.txt]
"""


class Project:
    """A small project with one notebook stage, run by dvc as a user would."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("fbam", ".dvc", "profiles"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("cache", "tmp", "config.local", "__pycache__"))
        for name in ("params.yaml", ".dvcignore"):
            shutil.copy(ROOT / name, folder / name)
        (folder / "dvc.yaml").write_text(STAGE)
        (folder / ".dvc" / "config.local").write_text("[core]\n    no_scm = true\n")
        self.notebook()

    def notebook(self, cell: str = CELL, body: str = BODY, stage: str = "flops") -> None:
        notebook = nbformat.v4.new_notebook(metadata={"fbam": {"stage": stage}})
        parameters = nbformat.v4.new_code_cell(cell, metadata={"tags": ["parameters"]})
        notebook.cells = [parameters, nbformat.v4.new_code_cell(body)]
        (self.folder / "notebooks").mkdir(exist_ok=True)
        (self.folder / "notebooks" / "toy.ipynb").write_text(canonical.text(canonical.stored(notebook)))

    def params(self, old: str, new: str) -> None:
        file = self.folder / "params.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def start(self) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", "dvc", "repro"], cwd=self.folder, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def repro(self) -> tuple[int, str]:
        process = self.start()
        out, err = process.communicate(timeout=120)
        return process.returncode, out + err

    @property
    def executed(self) -> Path:
        return self.folder / "build/notebooks/toy.ipynb"


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


def test_a_run_is_live_canonical_and_repeatable(project):
    status, said = project.repro()
    assert status == 0, said
    assert "progress toy 100 %" in said, "progress was not shown live"
    first = project.executed.read_bytes()
    outputs = json.loads(first)["cells"][-1]["outputs"]
    assert [(o["name"], "".join(o["text"])) for o in outputs] == [("stdout", "one\ntwo\n"), ("stderr", "a word\n")]
    assert b"progress" not in first.replace(b"experiments.progress", b"") and b"papermill" not in first
    assert str(project.folder).encode() not in first

    shutil.rmtree(project.folder / "build")
    (project.folder / "dvc.lock").unlink()
    shutil.rmtree(project.folder / ".dvc" / "tmp")
    shutil.rmtree(project.folder / ".dvc" / "cache")
    assert project.repro()[0] == 0
    assert project.executed.read_bytes() == first


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"a": 1, "b": 2, "speed": 3}, "parameters cell sets speed, which stage flops does not declare; add it to section flops"),
        ({"a": 1}, "stage flops declares b, which its parameters cell lacks; add it there"),
    ],
)
def test_the_parameters_cell_is_held_to_dvc_yaml(cell, said):
    with pytest.raises(StageError, match=said):
        check_contract("flops", {"a": 1, "b": 2}, cell, Path("notebooks/toy.ipynb"))


def test_a_notebook_belongs_to_one_stage(monkeypatch):
    monkeypatch.setenv("DVC_STAGE", "flops")
    with pytest.raises(StageError, match="metadata names stage data, dvc.yaml runs it as flops"):
        stage_of({"metadata": {"fbam": {"stage": "data"}}}, Path("toy.ipynb"))


def test_faults_are_one_line_and_lose_nothing(project):
    assert project.repro()[0] == 0
    before = {name: (project.folder / name).read_bytes() for name in ("build/out.txt", "build/notebooks/toy.ipynb")}
    faults = [
        (lambda: project.params("layers: 2\n  # Embedded code points (paper", "layers: two\n  # Embedded code points (paper"),
         "error: params.yaml: flops.layers: Input should be a valid integer, got 'two' (str)"),
        (lambda: project.params("layers: two", "layers: 2"), None),
        (lambda: project.notebook(body="x = 1\nraise KeyError('lost')"),
         "toy.ipynb failed in cell 3: KeyError: 'lost' (read build/failed/toy.ipynb"),
    ]
    for change, said in faults:
        change()
        if said is None:
            continue
        status, output = project.repro()
        assert status != 0 and said in output and "Traceback" not in output, output
        assert {name: (project.folder / name).read_bytes() for name in before} == before


def _alive(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder.resolve():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent-death signal exists on Linux only")
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])  # dash stays alive beside its last command, bash does not
def test_kill_of_dvc_ends_runner_and_kernel(project, shell, monkeypatch):
    monkeypatch.setenv("SHELL", shell)
    started = project.folder / "started"
    project.notebook(body=f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(60)")
    process = project.start()
    deadline = time.monotonic() + 90
    while not started.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    assert len(_alive(project.folder)) >= 3  # dvc, runner, kernel
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    deadline = time.monotonic() + 5
    while _alive(project.folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _alive(project.folder) == []


def test_stored_form_is_stable_and_bare():
    notebook = nbformat.v4.new_notebook(metadata={"fbam": {"stage": "x"}, "language_info": {"name": "python"}})
    cell = nbformat.v4.new_code_cell("\n1 + 1\n", execution_count=3, metadata={"tags": ["t"], "collapsed": True})
    cell.outputs = [nbformat.v4.new_output("stream", text="2")]
    notebook.cells = [cell]
    text = canonical.text(canonical.stored(notebook))
    again = canonical.text(canonical.stored(nbformat.reads(text, as_version=4)))
    assert text == again
    assert json.loads(text)["cells"] == [{"cell_type": "code", "execution_count": None, "id": "cell-0",
                                          "metadata": {"tags": ["t"]}, "outputs": [], "source": ["1 + 1"]}]
