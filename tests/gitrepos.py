"""Builds real git repositories for tests: commits as given, byte by byte, through `git fast-import`."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REGULAR, EXECUTABLE, SYMLINK, SUBMODULE = 0o100644, 0o100755, 0o120000, 0o160000

Content = bytes | tuple[int, bytes]
"""The bytes of a regular file, or a git mode and bytes; of a submodule the commit id in hexadecimal."""

_ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_PERSON = "Test <test@example.org> 1700000000 +0000"


@dataclass(frozen=True)
class Snapshot:
    """A commit: all its files by path (str, with surrogate escapes), its message, and the commits it merges."""

    files: dict[str, Content]
    message: str = "change"
    merges: tuple["Snapshot", ...] = ()


def git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    """Run git in ``folder`` and return what it prints."""
    done = subprocess.run(["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def make_repository(folder: Path, snapshots: Sequence[Snapshot]) -> Path:
    """Create a bare repository of which ``main`` has these commits as first parents, oldest first."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    stream: list[bytes] = []
    parent: int | None = None
    for snapshot in snapshots:
        others = [_emit(stream, side, "side", parent, []) for side in snapshot.merges]
        parent = _emit(stream, snapshot, "main", parent, others)
    git(folder, "fast-import", "--quiet", "--force", data=b"".join(stream))
    return folder


def _emit(stream: list[bytes], snapshot: Snapshot, branch: str, parent: int | None, others: list[int]) -> int:
    mark = 1 + sum(line.startswith(b"commit") for line in stream)
    message = snapshot.message.encode("utf-8", "surrogateescape")
    stream.append(f"commit refs/heads/{branch}\nmark :{mark}\ncommitter {_PERSON}\n".encode())
    stream.append(b"data %d\n%s\n" % (len(message), message))
    if parent is not None:
        stream.append(f"from :{parent}\n".encode())
    stream += [f"merge :{other}\n".encode() for other in others]
    stream.append(b"deleteall\n")
    for path, content in snapshot.files.items():
        mode, data = content if isinstance(content, tuple) else (REGULAR, content)
        name = "".join(f"\\{byte:03o}" for byte in path.encode("utf-8", "surrogateescape"))
        if mode == SUBMODULE:
            stream.append(b'M %o %s "%s"\n' % (mode, data, name.encode()))
        else:
            stream.append(b'M %o inline "%s"\ndata %d\n%s\n' % (mode, name.encode(), len(data), data))
    return mark
