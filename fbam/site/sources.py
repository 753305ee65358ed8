"""What the site is made of: the executed notebooks that dvc.yaml lists for it, and the ledger of claims.

The deps of stage `site` in dvc.yaml are the list of pages, so a notebook left behind by an earlier version of the
pipeline never becomes a page. Pages and claims stand in the paper's order: numbered sections, then appendices A to J, then
what belongs to no section.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from pydantic import BaseModel, ConfigDict, ValidationError

from fbam.analysis.claims import Judged
from fbam.experiments.files import read_json, read_yaml
from fbam.paths import maker_of

LEDGERS = ("build/results/claims.json", "build/timings/claims.json")  # the second holds the claims that rest on times


class SiteError(ValueError):
    """One line that names the input that is missing or wrong, and the remedy."""


class _Metadata(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    stage: str
    section: str
    title: str
    measured: bool


@dataclass(frozen=True)
class Page:
    """One executed notebook and its place in the site; `measured` pages hold times and differ from run to run."""

    stem: str
    section: str
    title: str
    measured: bool
    notebook: nbformat.NotebookNode


def section_head(section: str) -> str:
    """The section that a place in the paper belongs to: 8.1.1 for "8.1.1, Table 2", J for "App. J", else nothing."""
    found = re.search(r"\d+(\.\d+)*|\b[A-J]\b", section)
    return found[0] if found else ""


def section_key(section: str) -> tuple[int, tuple[int, ...], str]:
    """Sorts sections as the paper does.

    >>> sorted(["J", "10.5", "claims", "8.1.1, Table 2", "App. B", "8.1", "10.10"], key=section_key)
    ['8.1', '8.1.1, Table 2', '10.5', '10.10', 'App. B', 'J', 'claims']
    """
    head = section_head(section)
    if head[:1].isdigit():
        return 0, tuple(int(part) for part in head.split(".")), ""
    return (1, (), head) if head else (2, (), "")


def section_label(section: str) -> str:
    """Section 10.5 for "10.5", Appendix J for "App. J", and nothing for what belongs to no section of the paper."""
    head = section_head(section)
    return f"Section {head}" if head[:1].isdigit() else f"Appendix {head}" if head else ""


def _read(path: str, root: Path) -> Any:
    if not (root / path).is_file():
        stage = maker_of(path, root)
        raise SiteError(f"{path} is missing; " + (f"`dvc repro {stage}` makes it" if stage else "no stage of dvc.yaml makes it"))
    try:
        return read_json(root / path)
    except ValueError as error:
        raise SiteError(str(error)) from error


def _first_problem(error: ValidationError) -> str:
    """The first finding of pydantic on one line: field, then what is wrong with it."""
    finding = error.errors()[0]
    return f"{'.'.join(map(str, finding['loc']))}: {finding['msg']}"


def _read_page(path: str, root: Path) -> Page:
    _read(path, root)
    try:
        notebook = nbformat.read(root / path, as_version=4)
        nbformat.validate(notebook)
    except (nbformat.ValidationError, nbformat.NBFormatError, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise SiteError(f"{path} is not a notebook ({reason}); delete it and run `dvc repro` again") from error
    try:
        meta = _Metadata.model_validate(notebook.metadata.get("fbam", {}))
    except ValidationError as error:
        raise SiteError(f"{path}: metadata.fbam, {_first_problem(error)}; put it right in notebooks/{Path(path).name}") from error
    return Page(Path(path).stem, meta.section, meta.title, meta.measured, notebook)


def read_pages(root: Path) -> list[Page]:
    """The notebooks that stage `site` depends on, in the paper's order; equal sections keep the order of dvc.yaml.

    Raises SiteError naming the file, and the stage that makes it, for a notebook that is missing or malformed.
    """
    try:
        deps = read_yaml(root / "dvc.yaml")["stages"]["site"]["deps"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SiteError(f"no stage site with deps in {root / 'dvc.yaml'} ({error}); run this in the root of a checkout") from error
    pages = [_read_page(path, root) for path in deps if re.fullmatch(r"build/notebooks/[^/]+\.ipynb", path)]
    return sorted(pages, key=lambda page: section_key(page.section))


def _read_ledger(path: str, root: Path) -> tuple[list[Judged], dict[str, str]]:
    stored = _read(path, root)
    try:
        rows, provenance = stored["rows"], stored["provenance"][0]
        if not isinstance(rows, list) or not isinstance(provenance, dict):
            raise TypeError("rows must be a list, provenance a list of one mapping")
    except (KeyError, IndexError, TypeError) as error:
        raise SiteError(f"{path} is not a ledger of claims ({error!r}); run `dvc repro {maker_of(path, root)}` again") from error
    claims = []
    for number, row in enumerate(rows):
        try:
            claims.append(Judged.model_validate(row))
        except ValidationError as error:
            name = row.get("id", number) if isinstance(row, dict) else number
            raise SiteError(f"{path}, row {name}: {_first_problem(error)}") from error
    return claims, provenance


def read_claims(root: Path, stems: set[str]) -> tuple[list[Judged], dict[str, str]]:
    """All claims in the paper's order, and the provenance of the run that judged them.

    Raises SiteError for a malformed ledger, a claim that stands twice, or one whose notebook is not among `stems`.
    """
    (claims, provenance), (timed, _) = (_read_ledger(path, root) for path in LEDGERS)
    seen: set[str] = set()
    for claim in claims + timed:
        if claim.id in seen:
            raise SiteError(f"claim {claim.id} stands twice in {' and '.join(LEDGERS)}; mend data/claims.yaml")
        if claim.notebook and claim.notebook not in stems:
            raise SiteError(f"claim {claim.id} rests on notebook {claim.notebook}, which is no page of the site; "
                            "mend data/claims.yaml or add the notebook to the deps of stage site in dvc.yaml")
        seen.add(claim.id)
    return sorted(claims + timed, key=lambda claim: section_key(claim.section)), provenance
