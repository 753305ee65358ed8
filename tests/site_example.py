"""A small project for the tests of the site: notebooks that are really executed, a ledger, a dvc.yaml."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from fbam.analysis.claims import Judged, Verdict
from fbam.experiments.files import write_text
from fbam.experiments.records import Row, write_results

PROVENANCE = {"profile": "default", "commit": "0123456789abcdef0123456789abcdef01234567+", "source": "ab" * 32,
              "python": "3.11.9", "numpy": "2.1.0", "scipy": "1.14.0", "torch": "2.13.0", "processor": "Example CPU @ 2.00GHz"}

CORPUS = [
    new_markdown_cell(
        "# The data: from git history to recording\n\nA frame holds $R \\times C$ cells; a recording of $n$ frames stores "
        "blocks of `block_frames` frames, so `echo $HOME and $PATH` stays code. Money is written \\$5.\n\n"
        "Each commit is replayed key by key on an editor. After it the in-memory file system must equal git's tree, "
        "blob by blob, and the recording is published only then ([scaling](10_5_scaling.ipynb)).\n\n"
        "| letter | meaning | paper |\n|---|---|---|\n| $N_f$ | cells a frame | 7680 |\n| $V$ | vocabulary | 20,000 |"),
    new_code_cell("frames = 12\ncolumns = 40", metadata={"tags": ["parameters"]}),
    new_code_cell("frames = 48\ncolumns = 160", metadata={"tags": ["injected-parameters"]}),
    new_markdown_cell("## What was compiled"),
    new_code_cell(
        "from IPython.display import HTML\n"
        "from tabulate import tabulate\n\n"
        "rows = [['interpreter', 41, 18234, 0, 297.4], ['compiler', 7, 905, 0, None]]\n"
        "HTML(tabulate(rows, ['repository', 'commits', 'actions', 'mismatches', 'ratio'], tablefmt='html', missingval='—'))"),
    new_code_cell("import sys\nprint(f'{frames * columns:,} cells a frame')\nprint('slow disk: 12 % of the time', file=sys.stderr)"),
]

SCALING = [
    new_markdown_cell(
        "# Scaling trends\n\nThe paper fits, at each step $s$, a power law over the trained length $L$:\n\n"
        "$$\\mathrm{loss}(L\\mid s)\\approx A(s)\\,L^{-\\alpha(s)}$$\n\n"
        "A doubling of $L$ therefore removes the share $1-2^{-\\alpha}$ of the loss. Losses are means over "
        "$w=\\tfrac{1}{10}$ of the steps, and $R^2$ is that of the line in logarithms."),
    new_markdown_cell("## The fit of $\\alpha(s)$"),
    new_code_cell(
        "%config InlineBackend.figure_formats = ['svg']\n"
        "import matplotlib.pyplot as plt\nimport numpy as np\n\n"
        "plt.rcParams['svg.hashsalt'] = 'fbam'\n"
        "L = np.array([1, 2, 4, 8])\n"
        "figure, axes = plt.subplots(figsize=(6.4, 3.4))\n"
        "for step, alpha in ((100, 0.05), (300, 0.12)):  # two steps\n"
        "    axes.loglog(L, 3.1 * L**-alpha, 'o-', label=f'step {step}')\n"
        "axes.set(xlabel='trained length L', ylabel='loss, nats')\n"
        "axes.legend()\nplt.show()",
        metadata={"alt": "Two lines that fall with L, the later one faster", "caption": "Loss against trained length."}),
    new_code_cell(
        "%config InlineBackend.figure_formats = ['png']\n"
        "figure, axes = plt.subplots(figsize=(3, 2))\naxes.plot([1, 2], [2, 1])\nplt.show()"),
    new_markdown_cell("### By induction\n\n\\begin{align} \\alpha(s) &= \\alpha_\\infty\\left(1 - e^{-s/\\tau}\\right) \\\\ "
                      "\\tau &= \\frac{1}{n}\\sum_{i=1}^{n} \\tau_i \\end{align}"),
    new_code_cell("def doubling(alpha: float) -> float:\n    \"\"\"Share of the loss that a doubling of L removes.\"\"\"\n"
                  "    return 1 - 2**-alpha\n\n\ndoubling(0.318)"),
]

FLOPS = [
    new_markdown_cell(
        "Forward FLOPs of the frame head for one frame:\n\n"
        "$$\nB D N_f^2\\left[\\tfrac{16}{3}(1-4^{-P})+4L_t4^{-P}\\right] + B D^2 N_f\\left[48 + (24 L_t - 32)\\,2^{-P}\\right]\n$$\n\n"
        "The same, as a sum over stages:\n\n"
        "$$\\begin{aligned} F &= \\sum_{p=0}^{P-1} \\frac{4 B D N_f^2}{4^{p}} \\\\ &= \\frac{16}{3}\\,B D N_f^2\\,(1-4^{-P}) "
        "\\end{aligned}$$"),
    new_code_cell("wide = 'frame_head_flops = batch * width * cells**2 * (16 / 3 * (1 - 4**-poolings) + 4 * head_blocks * 4**-poolings) "
                  "+ batch * width**2 * cells * 48'\nprint(wide)"),
    new_markdown_cell("## Every setting"),
    new_code_cell(
        "from IPython.display import HTML\nfrom tabulate import tabulate\n\n"
        "HTML(tabulate([[f'setting {i}', *(10.0**(i + j) for j in range(16))] for i in range(3)],\n"
        "              ['name', *(f'column {j}' for j in range(16))], tablefmt='html'))"),
    new_code_cell("{'batch': 512}['width']", metadata={"tags": ["raises-exception"]}),
]

NOTEBOOKS = {  # name: (stage, section, title, measured, cells)
    "J_flops": ("flops", "J", "Model FLOP estimation", False, FLOPS),
    "10_5_scaling": ("scaling", "10.5", "Scaling trends", False, SCALING),
    "10_1_corpus": ("corpus", "10.1", "The data", True, CORPUS),
    "ledger": ("claims", "claims", "All claims", False, [new_markdown_cell("Every verdict is computed.")]),
    "10_1_data": ("data", "10.1", "What recordings look like", False, [new_markdown_cell("# Frames\n\nNothing is judged here.")]),
}


def claim(id: str, section: str, verdict: Verdict = "holds", **fields) -> Judged:
    """A row as the claims stage writes it, with the remaining fields filled in."""
    rest = {"statement": f"Statement of {id}", "paper": ".318", "ours": "0.29", "source": "paper", "notebook": None, "note": "",
            "measured": False, "values": {}}
    return Judged(id=id, section=section, verdict=verdict, **(rest | fields))


CLAIMS = [
    claim("scale.4000", "10.5", "holds in shape", statement="The loss falls with L as a power law; exponent at the last step",
          paper="alpha .318, A 4.96", ours="alpha: 0.29, A: 4.1", notebook="10_5_scaling", note="measured at reduced scale"),
    claim("scale.doubling", "10.5", "differs", statement="Loss reduction a doubling of L at the plateau", paper="19 to 20 %",
          ours="0.0843", notebook="10_5_scaling", note="The models are smaller by four orders of magnitude; the share grows with the step."),
    claim("frjt.transformer", "8.1.1", "not run", statement="A Transformer at depth 8", paper="about .68", ours=None,
          source="secondary", note="needs the FRJT study"),
    claim("flops.head", "J", statement="Forward FLOPs of the frame head for one frame a sequence", paper="2.679e14", ours="2.679e+14",
          notebook="J_flops", values={"value": 2.679e14}),
    claim("video", "7", statement="Full HD, 8-bit RGB, 60 fps: bytes a second", paper="373,248,000", ours="373248000"),
    claim("nofreelunch.fwd", "2, App. A", "argued", statement="A parallelisable forward pass excludes recurrence-completeness",
          paper="proof", ours=None, source="inferred", note="THEORY <2> & proof."),
    claim("data.exact", "10.1", statement="After every commit the in-memory file system equals git’s", paper="0 mismatches",
          ours="0", notebook="10_1_corpus"),
]
TIMED = [claim("data.rate", "10.1", "differs", statement="Actions compiled a second", paper="up to 200,000", ours="8123",
               notebook="10_1_corpus", note="Python instead of C++.", measured=True)]


def write_ledgers(root: Path, claims: Sequence[Row] = CLAIMS, timed: Sequence[Row] = TIMED) -> None:
    """Both ledgers, by the writer that the claims stage uses."""
    write_results(root / "build/results/claims.json", {}, claims, PROVENANCE)
    write_results(root / "build/timings/claims.json", {}, timed, PROVENANCE)


def write_notebook(root: Path, name: str, stage: str, section: str, title: str, measured: bool, cells: list) -> Path:
    """Store a notebook under build/notebooks, as it is."""
    notebook = new_notebook(cells=[cell.copy() for cell in cells])
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        "fbam": {"stage": stage, "section": section, "title": title, "measured": measured}})
    path = root / f"build/notebooks/{name}.ipynb"
    write_text(path, nbformat.writes(notebook))
    return path


def execute(notebooks: dict[str, tuple], folder: Path) -> dict[str, tuple]:
    """The notebooks with their code cells run, one after the other, in one kernel of this environment."""
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    copies = {name: (*parts[:-1], [cell.copy() for cell in parts[-1]]) for name, parts in notebooks.items()}
    together = new_notebook(cells=[cell for parts in copies.values() for cell in parts[-1]])
    NotebookClient(together, timeout=60, kernel_name="python3", record_timing=False).execute(cwd=str(folder))
    return copies


def write_project(root: Path, executed: bool = True) -> Path:
    """The whole example below `root`: its notebooks (run, unless told otherwise), ledgers and dvc.yaml."""
    for name, parts in (execute(NOTEBOOKS, root) if executed else NOTEBOOKS).items():
        write_notebook(root, name, *parts)
    write_notebook(root, "stale", "stale", "1", "Left behind", False, [new_markdown_cell("old")])
    stages = {stage: {"cmd": "true", "outs": [f"build/notebooks/{name}.ipynb"]} for name, (stage, *_) in NOTEBOOKS.items()}
    stages["claims"] |= {"metrics": ["build/results/claims.json"]}
    stages["claims"]["outs"].append("build/timings/claims.json")
    stages["site"] = {"cmd": "python -m fbam.site", "outs": ["build/site"],
                      "deps": [*(f"build/notebooks/{name}.ipynb" for name in NOTEBOOKS), "fbam/site"]}
    write_text(root / "dvc.yaml", yaml.safe_dump({"stages": stages}, sort_keys=False))
    write_ledgers(root)
    return root


@cache
def executed_project(folder: Path) -> Path:
    """The executed example as folder/site-example, made once however many test files ask for it."""
    (folder / "site-example").mkdir()
    return write_project(folder / "site-example")
