"""The two forms of a notebook: stored (no outputs) and executed (outputs that depend on inputs alone).

`python -m fbam.canonical notebooks/*.ipynb` brings notebooks edited in JupyterLab back to the stored form; a test
holds every notebook of the repository to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from fbam.experiments.files import write_text
from fbam.experiments.progress import PREFIX

KEPT_METADATA = ("fbam", "kernelspec")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def stored(notebook: NotebookNode) -> NotebookNode:
    """No outputs, no counts, ids by position, no metadata but tags and what the project itself reads."""
    notebook["metadata"] = {key: notebook["metadata"][key] for key in KEPT_METADATA if key in notebook["metadata"]}
    notebook["metadata"]["kernelspec"] = KERNEL
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {"tags": cell["metadata"]["tags"]} if cell["metadata"].get("tags") else {}
        cell["source"] = cell["source"].strip("\n")
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return notebook


def _merge_streams(outputs: list) -> list:
    """Without progress lines, and with neighbouring pieces of one stream joined: how they split is chance."""
    kept: list = []
    for output in outputs:
        if output["output_type"] == "stream":
            lines = output["text"].splitlines(keepends=True)
            output["text"] = "".join(line for line in lines if not (output["name"] == "stderr" and line.startswith(PREFIX)))
            if not output["text"]:
                continue
            if kept and kept[-1]["output_type"] == "stream" and kept[-1]["name"] == output["name"]:
                kept[-1]["text"] += output["text"]
                continue
        kept.append(output)
    return kept


def executed(notebook: NotebookNode) -> NotebookNode:
    """Without what differs between two equal runs: clocks, durations, random ids, splitting of streams."""
    notebook["metadata"].pop("papermill", None)
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
        if cell["cell_type"] == "code":
            cell["outputs"] = _merge_streams(cell["outputs"])
    return notebook


def text(notebook: NotebookNode) -> str:
    """The bytes of a notebook file, as text."""
    return nbformat.writes(notebook) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the named notebooks in the stored form."""
    for name in sys.argv[1:] if arguments is None else arguments:
        path = Path(name)
        wanted = text(stored(nbformat.read(path, as_version=4)))
        if path.read_text("utf-8") != wanted:
            write_text(path, wanted)
            print(f"{path} rewritten in the stored form")
    return 0


if __name__ == "__main__":
    sys.exit(main())
