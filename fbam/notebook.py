"""The runner every stage calls: `python -m fbam.notebook notebooks/<name>.ipynb`, from the project root.

It holds dvc.yaml to its word: the stage's declared parameters, the notebook's `parameters` cell and params.yaml must
agree before anything is computed. It executes the notebook with papermill, one thread a job, shows its progress live
and stores an executed copy whose bytes depend on inputs alone. If the notebook fails, it is kept and named, and the
stage's earlier outputs are put back from dvc's cache.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from fbam import params
from fbam.experiments.files import write_text
from fbam.experiments.lifeline import die_with_parent
from fbam.experiments.progress import PREFIX

EXECUTED = Path("build/notebooks")
FAILED = Path("build/failed")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "JUPYTER_PREFER_ENV_PATH": "1",  # a python3 kernel of the user must not stand in for this environment's
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
LIFELINE = "from fbam.experiments.lifeline import die_with_parent; die_with_parent()"


class StageError(RuntimeError):
    """One line that names what is wrong with a stage and the remedy."""


def stage_of(notebook: dict, path: Path) -> str:
    """The stage a notebook belongs to: its own metadata, which must agree with dvc's word when dvc runs it."""
    named = notebook["metadata"].get("fbam", {}).get("stage")
    running = os.environ.get("DVC_STAGE", named)
    if not named or named != running:
        raise StageError(f"{path}: its metadata names stage {named}, dvc.yaml runs it as {running}; make them agree")
    return named


def declared_params(stage: str) -> dict:
    """Names and values that dvc.yaml declares for `stage`, read through dvc. A stage has no section but its own."""
    from dvc.api import params_show  # slow to import, so only where it is used

    declared = params_show(stages=[stage])
    foreign = sorted(set(declared) - {stage})
    if foreign:
        raise StageError(f"stage {stage} declares parameters of other sections ({', '.join(foreign)}); a stage reads only its own")
    return declared.get(stage, {})


def check_contract(stage: str, declared: dict, cell: dict, path: Path) -> None:
    """Raise StageError unless the parameters cell names exactly what dvc.yaml declares."""
    unknown, missing = sorted(set(cell) - set(declared)), sorted(set(declared) - set(cell))
    if unknown:
        raise StageError(f"{path}: its parameters cell sets {', '.join(unknown)}, which stage {stage} does not declare; "
                         f"add it to section {stage} of params.yaml or remove it from the cell")
    if missing:
        raise StageError(f"{path}: stage {stage} declares {', '.join(missing)}, which its parameters cell lacks; add it there")


class _Live(logging.Handler):
    """Shows the notebook's own output, and nothing of papermill's."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().rstrip()
        if text.startswith(PREFIX):
            print(text, file=sys.stderr, flush=True)


def _execute(path: Path, values: dict, output: Path) -> None:
    import papermill

    logger = logging.getLogger("papermill")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.handlers = [_Live()]
    papermill.execute_notebook(
        str(path), str(output), parameters=values, progress_bar=False, log_output=True,
        extra_arguments=["--log-level=ERROR", f"--IPKernelApp.exec_lines={LIFELINE}"],
    )


def restore_outputs(stage: str) -> None:
    """Put a stage's outputs of the last good run back from dvc's cache; dvc removed them before it called us."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo() as repo:
            for out in repo.stage.load_one(name=stage).outs:
                if out.hash_info and not out.exists:
                    out.checkout(force=True, allow_missing=True)
    except (DvcException, OSError) as error:
        print(f"note: earlier outputs of {stage} were not put back ({error}); `dvc checkout` may do it", file=sys.stderr)


def run(path: Path) -> Path:
    """Check, execute and store one notebook; returns the executed copy's path.

    Raises ParamsError or StageError with a one-line message for anything a user can mend.
    """
    params.load()
    sys.modules.setdefault("rfc3987_syntax", None)  # a grammar of IRIs, which no notebook has: 3 of the 4 s of nbformat's import
    import nbformat
    import papermill  # both slow to import, so only once the parameters are valid

    from fbam import canonical

    if not path.is_file():
        raise StageError(f"{path} is missing; restore it with `git checkout -- {path}`")
    stage = stage_of(nbformat.read(path, as_version=4), path)
    values = declared_params(stage)
    check_contract(stage, values, papermill.inspect_notebook(str(path)), path)

    output, failed = EXECUTED / path.name, FAILED / path.name
    failed.parent.mkdir(parents=True, exist_ok=True)
    try:
        _execute(path, values, failed)
    except papermill.PapermillExecutionError as error:
        raise StageError(f"{path} failed in cell {error.exec_count}: {error.ename}: {error.evalue.splitlines()[0] if error.evalue else ''} "
                         f"(read {failed}, where it stopped)") from error
    write_text(output, canonical.text(canonical.executed(nbformat.read(failed, as_version=4))))
    failed.unlink()
    return output


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 on success, 1 with one line on standard error otherwise."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print("usage: python -m fbam.notebook notebooks/<name>.ipynb", file=sys.stderr)
        return 2
    die_with_parent()
    os.environ.update(ENVIRONMENT)
    os.environ["PYTHONPATH"] = os.getcwd()
    os.environ["IPYTHONDIR"] = str(Path("build/ipython").resolve())
    try:
        print(f"{run(Path(arguments[0]))} written")
        return 0
    except (StageError, params.ParamsError) as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; run the same command again, finished work is kept", file=sys.stderr)
    if os.environ.get("DVC_STAGE"):
        restore_outputs(os.environ["DVC_STAGE"])
    return 1


if __name__ == "__main__":
    sys.exit(main())
