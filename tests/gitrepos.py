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


def write_tree(repository: Path, entries: Sequence[tuple[str, str, str, bytes]]) -> str:
    """Store a tree as it is given, (mode, kind, object id, name) an entry, without any of git's checks; return its id."""
    raw = b"".join(mode.lstrip("0").encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, _, oid, name in entries)
    return git(repository, "hash-object", "-t", "tree", "--literally", "-w", "--stdin", data=raw).strip()


def write_commit(repository: Path, tree: str, *parents: str) -> str:
    """Store a commit of a tree as ``main`` and return its id."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {_PERSON}", f"committer {_PERSON}", "", "change"]
    data = "\n".join(lines).encode()
    commit = git(repository, "hash-object", "-t", "commit", "--literally", "-w", "--stdin", data=data).strip()
    git(repository, "update-ref", "refs/heads/main", commit)
    return commit


def damage(repository: Path, oid: str) -> None:
    """Overwrite the middle of a loose object."""
    file = repository / "objects" / oid[:2] / oid[2:]
    data = bytearray(file.read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    file.chmod(0o644)
    file.write_bytes(data)


CODE = "\n".join(f"def function_{k}(first, second):\n\treturn first + {k} * second\n" for k in range(12)).encode()
LINK = (SUBMODULE, b"1" * 40)

CONTENTS: dict[str, Content] = {
    "no new line at the end": b"last line",
    "src/main.py": CODE,
    "crlf": b"one\r\ntwo\r\n",
    "mixed line ends": b"one\r\ntwo\nthree\rfour\r\r\n\n",
    "byte order mark": b"\xef\xbb\xbfwith a mark\n",
    "bytes": b"caf\xe9 \xff\xfe not UTF-8\n\x80 \xed\xa0\x80",
    "controls": b"\x01\x1b[200~\x1b[201~\x16\x7f\x08\x0c\x0b\x1c\n",
    "tabs": b"\ta\n \tb\n\t\tc\t\n",
    "wide": "\u4e2d\u6587\u5b57 \uff21\n\ud55c\uad6d\uc5b4\n".encode(),
    "zero width": "e\u0301 \u200b\u200d \ufeff\u2060\n\u0301alone\n".encode(),
    "astral": "\U0001f600 \U0001f469\u200d\U0001f4bb \U00020000\U0010ffff\n".encode(),
    "separators": "a\u2028b\u2029c\u0085d\u00a0e\n".encode(),
    "long lines": b"\n".join(b"x " * (n // 2) for n in (1_100, 12_000, 110_000)),
    "more than a megabyte": b"".join(b"line %d of many\n" % k for k in range(60_000)),
    "empty": b"",
    "only line ends": b"\n\n\n",
    "with/a folder/in it": b"content\n",
    'quotes "it\'s" $x `y` \\': b"content\n",
    "-r": b"a name like an option\n",
    "new\nline\tand tab": b"x",
    "latin\udce9": b"y",
    "\u4e2d\u6587/\U0001f600": b"z\n",
    "a/" + "long name " * 20: b"path of more than 60 characters\n",
    "run.sh": (EXECUTABLE, b"#!/bin/sh\n"),
    "link": (SYMLINK, b"src/main.py"),
    "link to nowhere": (SYMLINK, b"-no where\n\xff"),
    "module": LINK,
    "binary": b"\x89PNG\0\n" * 9,
}  # fmt: skip
"""What real histories contain, each kind once."""


def awkward_history() -> list[Snapshot]:
    """Commits with every kind of content and of change that is easy to get wrong."""
    many = {f"many/{k % 40}/{k}": b"%d\n" % (k % 7) for k in range(1_000)}
    base: dict[str, Content] = {"a": CODE, "b": CODE.replace(b"first", b"other"), "d/e/f": b"1\n", "x": b"file\n", "k": b"kept\n"}
    crossed = base | {"a": base["b"], "b": CODE + b"# moved\n"}
    kinds = {"a/in": CODE, "d": b"was a folder\n", "x": (SYMLINK, b"k"), "k": (EXECUTABLE, b"kept\n"), "m": b"text\n", "s": b"a file\n"}
    swapped = {"a": CODE, "d/e/f": b"1\n", "x": b"no link\n", "k": b"kept\n", "m": b"now\0binary", "s": LINK}
    side, other = Snapshot({**swapped, "side": b"s\n"}, "side"), Snapshot({**swapped, "other": b"o\n"}, "other")
    octopus = {**swapped, "side": b"s\n", "other": b"o\n"}
    return [
        Snapshot(CONTENTS, "every kind of content\n\nbody \udcff \U0001f600 $x `y` \"z\"\n"),
        Snapshot({**CONTENTS, "run.sh": b"#!/bin/sh\n", "src/main.py": (EXECUTABLE, CODE)}, "chmod only"),
        Snapshot({**CONTENTS, "run.sh": b"#!/bin/sh\n", "src/main.py": (EXECUTABLE, CODE)}, "nothing changed"),
        Snapshot(base, "all folders deleted"),
        Snapshot(crossed, "two files change names, one is edited too"),
        Snapshot(kinds, "file to folder, folder to file, file to link"),
        Snapshot(swapped, "and back, text to binary, file to submodule"),
        Snapshot(octopus, "octopus", (side, other)),
        Snapshot({**octopus, "k": b"in no parent\n"}, "evil merge", (Snapshot({**octopus, "k": b"theirs\n"}, "theirs"),)),
        Snapshot(many, "a thousand files"),
        Snapshot({path.replace("many", "moved"): data for path, data in many.items()}, ""),
        Snapshot({}, "nothing left\n\n\n"),
    ]
