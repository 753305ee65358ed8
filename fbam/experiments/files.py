"""Files that are whole or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` so that a reader, or a crash, sees the old file or the new one and nothing between."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode("utf-8"))


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no NaN or infinity, the same text for the same value everywhere."""
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def write_json(path: Path, value: dict) -> None:
    """A JSON object with a line for each element of its lists, order of keys kept.

    NaN and infinity are an error, because a missing value is not a number.
    """
    def line(part: object) -> str:
        return json.dumps(part, allow_nan=False, ensure_ascii=False)

    def block(part: object) -> str:
        return "[\n  " + ",\n  ".join(map(line, part)) + "\n ]" if isinstance(part, list) and part else line(part)

    write_text(path, "{\n " + ",\n ".join(f"{line(key)}: {block(part)}" for key, part in value.items()) + "\n}\n")


def read_json(path: Path) -> object:
    """Parse one file; a malformed one is named."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON ({error}); delete it and run `dvc repro` again") from error


def read_yaml(path: Path) -> object:
    """Parse one file as YAML 1.2, as dvc does (1e-3 is a number). Raises ValueError with file, line and column."""
    try:
        return YAML(typ="safe", pure=True).load(Path(path).read_text("utf-8"))
    except (YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{path}{place} is not valid YAML: {getattr(error, 'problem', None) or error}") from error
