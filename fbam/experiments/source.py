"""Which files of the package a piece of code runs on, and their hash.

The grid names its cells by this hash, results carry it as provenance, and a test compares it with the deps in dvc.yaml.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "fbam"


def _module_file(root: Path, dotted: str) -> Path | None:
    base = root.joinpath(*dotted.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imported_names(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def direct_imports(code: str, root: Path) -> set[Path]:
    """Files of the package under `root` that this Python text imports by itself, anywhere in it."""
    found = set()
    for name in _imported_names(code):
        file = _module_file(root, name) if name.split(".")[0] == PACKAGE else None
        # a package whose __init__ only holds a docstring is a folder, not code
        if file and not (file.name == "__init__.py" and len(ast.parse(file.read_text("utf-8")).body) <= 1):
            found.add(file)
    return found


def code_of(path: Path) -> str:
    """Python text of a module, or of a notebook's code cells without line magics."""
    text = Path(path).read_text("utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).split("\n")
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))


def transitive_imports(path: Path, root: Path) -> set[Path]:
    """All files of the package that running `path` (module or notebook) can load, itself not counted."""
    seen: set[Path] = set()
    waiting = direct_imports(code_of(path), root)
    while waiting:
        file = waiting.pop()
        seen.add(file)
        waiting |= direct_imports(code_of(file), root) - seen
    return seen - {Path(path)}


def hash_files(files: Iterable[Path], root: Path) -> str:
    """16 hexadecimal digits over names and contents."""
    digest = hashlib.sha256()
    for file in sorted(set(files)):
        content = code_of(file).encode("utf-8")
        digest.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def source_hash(path: Path, root: Path) -> str:
    """Hash of a module or notebook together with everything of the package that it imports."""
    path = Path(path).resolve()
    return hash_files(transitive_imports(path, root) | {path}, root)
