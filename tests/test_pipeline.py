"""The whole pipeline for real: the smoke profile from scratch, twice, then what a user does next."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from ruamel.yaml import YAML

from fbam import params, pipeline, publish
from fbam.experiments.files import read_json, read_yaml
from fbam.experiments.source import direct_imports
from fbam.sessions.report import processor_seconds

# For one parameter of each section: the stages whose result can change with it.
AFFECTED = {
    "depth": {"depth", "claims", "site"},
    "theory": {"theory", "claims", "site"},
    "frjt": {"frjt", "criticality", "claims", "site"},
    "criticality": {"criticality", "claims", "site"},
    "maze": {"maze", "claims", "site"},
    "diff_inflate": {"diff_inflate", "claims", "site"},
    "corpus": {"theory", "corpus", "tokenizer", "data", "model", "memory", "training", "rollout", "scaling", "walltime", "ablations",
               "claims", "site"},
    "rate": {"rate", "claims", "site"},
    "tokenizer": {"tokenizer", "model", "memory", "training", "rollout", "scaling", "walltime", "ablations", "claims", "site"},
    "data": {"data", "site"},
    "model": {"model", "claims", "site"},
    "memory": {"memory", "claims", "site"},
    "training": {"training", "rollout", "claims", "site"},
    "rollout": {"rollout", "site"},
    "scaling": {"scaling", "walltime", "ablations", "claims", "site"},
    "walltime": {"walltime", "claims", "site"},
    "ablations": {"ablations", "claims", "site"},
    "flops": {"flops", "claims", "site"},
}


def downstream(section: str, stages: dict) -> set[str]:
    """Stages that must re-run after a change in `section`, computed from the outs and deps of dvc.yaml."""
    waiting, found = {name for name, stage in stages.items() if section in stage.get("params", [])}, set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        outs = [*stages[name].get("outs", []), *stages[name].get("metrics", [])]
        waiting |= {other for other, stage in stages.items() for dep in stage.get("deps", [])
                    for out in outs if dep == out or dep.startswith(out + "/") or out.startswith(dep + "/")} - found
    return found


@pytest.mark.parametrize("section", AFFECTED)
def test_the_graph_re_runs_what_a_parameter_affects_and_nothing_else(section):
    assert downstream(section, read_yaml(ROOT / "dvc.yaml")["stages"]) == AFFECTED[section]


def test_every_section_is_covered():
    assert set(AFFECTED) == set(params.read_sections(ROOT / "params.yaml"))


class Tree:
    """A copy of the checkout in which commands run as a user would run them."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in pipeline.tracked_files(ROOT):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        pipeline.carry_kernels(ROOT, folder)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("FBAM_", "DVC_", "PYTHON"))}
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment["FBAM_COMMIT"] = "0" * 40

    def start(self, *command: str, cwd: str = ".") -> subprocess.Popen:
        command = [sys.executable if word == "python" else word for word in command]
        return subprocess.Popen(command, cwd=self.folder / cwd, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *command: str, cwd: str = ".") -> tuple[int, str]:
        process = self.start(*command, cwd=cwd)
        output, _ = process.communicate(timeout=600)
        return process.returncode, output

    def git(self, *arguments: str) -> None:
        command = ["git", "-C", str(self.folder), "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def set(self, **sections: dict) -> None:
        file = self.folder / "params.yaml"
        merged = params.overlay(params.read_sections(file), sections, "test")
        with file.open("w", encoding="utf-8") as out:
            YAML().dump(merged, out)


COMPILE = """
import sys
from fbam.cli import main
from fbam.tasks.frjt_cells import describe
main(["compile", "data/interpreter.bundle", "--limit-commits", "2", "--out", sys.argv[1]])
main(["verify", sys.argv[1]])
task = {"exits": "paired", "registers": 2, "registers_per_block": 0.0, "depths": [2], "data_depth": 4, "programs": 20, "seed": 0}
describe(task, None, lambda share: None)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory) -> None:
    """Nearly all kernels compiled beside their sources, once, so that each copy of the tree need not compile them."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", COMPILE, str(tmp_path_factory.mktemp("recordings"))], cwd=ROOT, env=environment, check=True)


@pytest.fixture(scope="module")
def runs(kernels, tmp_path_factory) -> tuple[Tree, Tree]:
    """Two smoke runs from scratch: `fbam.pipeline smoke` in a download without git, `dvc repro` in a git checkout."""
    download = Tree(tmp_path_factory.mktemp("download"))
    checkout = Tree(tmp_path_factory.mktemp("checkout"))
    checkout.set(**params.read_sections(ROOT / "profiles" / "smoke.yaml"))
    checkout.git("init", "-q")
    checkout.git("add", "-A")
    checkout.git("commit", "-qm", "smoke")
    checkout.environment["FBAM_PROFILE"] = "smoke"
    processes = [download.start("python", "-m", "fbam.pipeline", "smoke"), checkout.start("dvc", "repro")]
    outputs = [process.communicate(timeout=1800)[0] for process in processes]
    for process, output in zip(processes, outputs):
        assert process.returncode == 0, output
    page = re.search(r"The companion \(smoke profile\): (.*)", outputs[0])
    assert page and Path(page[1]).is_file()
    return download, checkout


def produced(root: Path) -> dict[str, bytes]:
    """Results and executed notebooks, but for those that say they are measured."""
    files = {}
    for file in sorted([*(root / "build/results").glob("*.json"), *(root / "build/notebooks").glob("*.ipynb")]):
        content = file.read_bytes()
        if file.suffix == ".ipynb" and json.loads(content)["metadata"]["fbam"]["measured"]:
            continue
        files[file.name] = content
    return files


def test_two_runs_from_scratch_give_the_same_bytes(runs):
    download, checkout = runs
    first, second = produced(download.folder / "build/run/smoke"), produced(checkout.folder)
    assert first.keys() == second.keys() and len(first) >= 11
    for name in first:
        assert first[name] == second[name], f"{name} differs between two runs"


def test_executed_notebooks_are_clean(runs):
    for file in (runs[1].folder / "build/notebooks").glob("*.ipynb"):
        text = file.read_text("utf-8")
        assert str(runs[1].folder) not in text and not re.search(r" at 0x[0-9a-f]{6,}", text)
        outputs = [output for cell in json.loads(text)["cells"] for output in cell.get("outputs", [])]
        assert not [output for output in outputs if output.get("name") == "stderr" or output["output_type"] == "error"]


def test_results_are_whole(runs):
    names = {file.stem for file in (runs[1].folder / "build/results").glob("*.json")}
    for name in names:
        content = read_json(runs[1].folder / f"build/results/{name}.json")
        assert content["rows"] and set(content["provenance"][0]) >= {"commit", "source", "processor", "torch", "profile"}
    corpus = read_json(runs[1].folder / "build/results/corpus.json")
    assert corpus["summary"]["mismatches"] == 0 and corpus["summary"]["actions"] > 1000
    ledger = read_json(runs[1].folder / "build/results/claims.json")["rows"]
    assert {row["verdict"] for row in ledger} >= {"holds in shape", "not run"}


def test_every_page_opens_in_a_browser_with_its_figures_and_formulas(runs, visit):
    site = runs[1].folder / "build/site"
    seen = {"svg.formula": 0, "figure img": 0, "pre[role=img]": 0, ".verdict": 0}
    pages = sorted(site.glob("*.html"))
    assert len(pages) == 1 + len(list((ROOT / "notebooks").glob("*.ipynb")))
    for page in pages:
        tab = visit(page.as_uri())
        assert all(url.startswith(("file://", "data:")) for url in tab.requested) and tab.complaints == []
        assert tab.locator("h1").is_visible()
        assert tab.locator(".warning").count() == (page.stem == "index"), "the front page of a smoke run warns of itself"
        assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        for selector in seen:
            boxes = tab.evaluate("selector => [...document.querySelectorAll(selector)].map(e => e.getBoundingClientRect().width)", selector)
            assert all(width > 3 for width in boxes), f"{selector} on {page.name} cannot be seen"
            seen[selector] += len(boxes)
    assert seen["svg.formula"] >= 8 and seen["figure img"] >= 5 and seen["pre[role=img]"] >= 4 and seen[".verdict"] >= 60


def test_nothing_changed_means_nothing_runs(runs):
    begun = processor_seconds()
    status, output = runs[1].run("dvc", "repro")
    assert status == 0 and "Running stage" not in output and "up to date" in output
    assert processor_seconds() - begun < 15  # not on the wall: tests share the machine


def ran(output: str) -> set[str]:
    return set(re.findall(r"Running stage '(\w+)'", output))


def assert_restored(tree: Tree, before: dict[str, bytes]) -> None:
    """With the old parameters nothing runs: what they gave comes back from the cache."""
    status, output = tree.run("dvc", "repro")
    assert status == 0 and ran(output) == set() and "cached" in output, output
    assert produced(tree.folder) == before


def test_a_changed_parameter_re_runs_its_stages_and_back_restores(runs):
    tree = runs[1]
    before = produced(tree.folder)
    old = params.read_sections(tree.folder / "params.yaml")["data"]["shown"]
    tree.set(data={"shown": [0.25]})
    status, output = tree.run("dvc", "repro")
    assert status == 0 and ran(output) == AFFECTED["data"], output
    tree.set(data={"shown": old})
    assert_restored(tree, before)


def test_notebooks_run_alone_under_plain_papermill(runs, tmp_path):
    tree = runs[1]
    before = produced(tree.folder)
    for name, stage in (("E_ablations", "ablations"), ("J_flops", "flops")):
        section = params.read_sections(tree.folder / "params.yaml")[stage]
        settings = [word for key, value in section.items() for word in ("-y", json.dumps({key: value}))]
        status, output = tree.run("python", "-m", "papermill", f"{name}.ipynb", str(tmp_path / "out.ipynb"), *settings, cwd="notebooks")
        assert status == 0, output
    assert {name: json.loads(text)["summary"] for name, text in produced(tree.folder).items() if name.endswith(".json")} == {
        name: json.loads(text)["summary"] for name, text in before.items() if name.endswith(".json")}


def test_a_missing_input_names_the_stage_that_makes_it(tmp_path):
    tree = Tree(tmp_path / "tree")
    status, output = tree.run("python", "-m", "papermill", "E_ablations.ipynb", str(tmp_path / "out.ipynb"), cwd="notebooks")
    assert status != 0 and "build/results/scaling.json is missing: run `dvc repro scaling` first" in output


def test_metrics_and_experiments(runs):
    tree = runs[1]
    before = produced(tree.folder)
    status, output = tree.run("dvc", "metrics", "show")
    assert status == 0 and "summary.paper_head" in output and "provenance" not in output
    status, output = tree.run("dvc", "exp", "run", "-S", "flops.batch=128")
    assert status == 0 and ran(output) == AFFECTED["flops"], output
    assert read_json(tree.folder / "build/results/flops.json")["summary"]["head"] == pytest.approx(267877110251520 / 4)
    tree.git("checkout", "-q", "params.yaml")
    assert_restored(tree, before)


def test_publish_then_compare_shows_no_difference(runs):
    tree = runs[1]
    tree.environment.pop("FBAM_COMMIT")
    with pytest.raises(publish.PublishError, match="no git checkout"):
        publish.publish(runs[0].folder)
    tree.set(flops={"layers": 3})
    status, output = tree.run("python", "-m", "fbam.publish")
    assert status == 2 and "commit them" in output
    tree.set(flops={"layers": 2})
    tree.git("checkout", "-q", "params.yaml")
    assert tree.run("python", "-m", "fbam.publish")[0] == 0
    status, output = tree.run("python", "-m", "fbam.publish", "compare")
    assert status == 0 and "0 values and 0 verdicts differ" in output, output
    published = tree.folder / "results" / "flops.json"
    content = read_json(published)
    assert len(content["provenance"][0]["commit"]) == 40
    content["summary"]["head"] *= 2
    published.write_text(json.dumps(content))
    status, output = tree.run("python", "-m", "fbam.publish", "compare")
    assert status == 1 and "summary.head: published 5.3" in output.replace("53575422050304", "5.3"), output
    tree.environment["FBAM_COMMIT"] = "0" * 40


def test_bad_input_is_one_line_and_leaves_the_results(runs):
    tree = runs[1]
    before = produced(tree.folder)
    home = params.read_sections(tree.folder / "params.yaml")["corpus"]["repositories"]
    tree.set(corpus={"repositories": [{"source": "nowhere/at-all", "revision": None}]})
    status, output = tree.run("dvc", "repro")
    assert status != 0 and "nowhere/at-all" in output and "Traceback" not in output, output
    assert produced(tree.folder) == before
    tree.set(corpus={"repositories": home})
    notebook = tree.folder / "notebooks/J_flops.ipynb"
    notebook.rename(notebook.with_suffix(".away"))
    status, output = tree.run("python", "-m", "fbam.pipeline")
    notebook.with_suffix(".away").rename(notebook)
    assert status == 2 and output == ("error: notebooks/J_flops.ipynb is missing, stage flops needs it; "
                                      "restore it with `git checkout -- notebooks/J_flops.ipynb`\n")
    assert produced(tree.folder) == before


def test_faults_stop_before_anything_is_removed(runs):
    tree = runs[1]
    before = produced(tree.folder)
    file = tree.folder / "params.yaml"
    text = file.read_text()
    file.write_text(text + "speed:\n  limit: 3\n")
    status, output = tree.run("python", "-m", "fbam.pipeline", cwd="notebooks")
    file.write_text(text)
    assert status == 2 and output == "error: params.yaml: unknown key speed: remove it or correct its name\n"
    status, output = tree.run("python", "-m", "fbam.pipeline", "huge")
    assert status == 2 and output.startswith("error: profile huge is unknown") and "smoke" in output
    assert produced(tree.folder) == before


def test_a_profile_runs_in_a_copy_that_follows_the_tree(tmp_path):
    tree = Tree(tmp_path)
    copy = pipeline.lay_out(tmp_path, "smoke")
    assert params.load(copy / "params.yaml").training.steps < params.load(tmp_path / "params.yaml").training.steps
    (tmp_path / "data" / "new.txt").write_text("new")
    (tmp_path / "protocol.md").unlink()
    kept = copy / "build" / "kept.txt"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("kept")
    pipeline.lay_out(tree.folder, "smoke")
    assert (copy / "data" / "new.txt").exists() and not (copy / "protocol.md").exists() and kept.exists()


def test_no_kernel_calls_one_of_another_module():
    """Numba notices a change in a kernel's own file alone."""
    texts = {file: file.read_text() for file in (ROOT / "fbam").rglob("*.py")}
    compiled = {file for file, text in texts.items() if re.search(r"^(from|import) numba\b", text, re.MULTILINE)}
    assert len(compiled) >= 4 and not [file for file in compiled if direct_imports(texts[file], ROOT) & compiled]


USE = """
import numpy as np
from fbam.tasks import kernels
given = kernels._bits(np.array([1], np.int16))
print(given, sum(kernels._bits.stats.cache_hits.values()), sum(kernels._bits.stats.cache_misses.values()))
"""


def test_a_copy_of_the_tree_uses_the_kernels_of_its_own_sources_alone(tmp_path):
    tree = Tree(tmp_path / "tree")
    source = tree.folder / "fbam/tasks/kernels.py"

    def use(cwd: str | Path) -> tuple[int, ...]:
        """What a kernel gives, how often it was found compiled, and how often it was compiled."""
        status, output = tree.run("python", "-c", USE, cwd=cwd)
        assert status == 0, output
        return tuple(map(int, output.split()))

    assert use(".") == (1, 0, 1)
    copy = pipeline.lay_out(tree.folder, "smoke")
    assert use(copy) == (1, 1, 0)
    assert pipeline.lay_out(tree.folder, "smoke") == copy and use(copy) == (1, 1, 0)

    times, text = source.stat(), source.read_text()
    source.write_text(text.replace("int(flags[r]) << r", "int(flags[r]) << 3"))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source.stat().st_size == times.st_size, "size and time are those of the older file"
    pipeline.lay_out(tree.folder, "smoke")
    assert not list((copy / "fbam/tasks/__pycache__").glob("kernels.*.nb?"))
    assert use(copy) == (8, 0, 1)
