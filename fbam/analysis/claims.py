"""The claims ledger: what the paper says, what we measured, and the verdict that follows.

`data/claims.yaml` holds one row a claim. A row that we measure names its values (`ours: flops.paper_head` is the summary value
paper_head of stage flops) and a test; the verdict is computed here and never typed:

    holds           the test passes, at the paper's scale or on a statement that has no scale
    holds in shape  the test passes, but at reduced scale, by arithmetic on the paper's own numbers, or against a value that is not
                    the paper's text (a press summary, or our reading of a lost passage)
    differs         the test fails; shown with the reason, or with the sentence that none is known yet
    argued          a proof or a definition, and the demonstration beside it succeeds
    not run         nothing measures it yet, or its stage has no result; shown with what it needs

A stage result that lacks a value named here is an error, never a zero.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, ValidationError, model_validator

from fbam.experiments.files import read_yaml
from fbam.experiments.records import Row, read_results

Verdict: TypeAlias = Literal["holds", "holds in shape", "differs", "not run", "argued"]
Source: TypeAlias = Literal["paper", "secondary", "inferred"]
Number: TypeAlias = float | bool
Stages: TypeAlias = Mapping[str, Mapping[str, Any]]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Reference = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[A-Za-z][A-Za-z0-9_]*$")]

ONLY_VALUE = "value"  # the name of a single value, as in `ours: flops.paper_head`
UNKNOWN_REASON = "reason not found yet"
SOURCE_CAPS = {
    "secondary": "the value compared with is from a press summary, not from the paper",
    "inferred": "the paper's text is lost or silent here, the statement is our reading",
}
SCALE_CAPS = {
    "reduced": "measured at reduced scale",
    "arithmetic": "recomputed from the paper's own numbers, nothing trained",
}


class ClaimsError(ValueError):
    """The ledger is not valid, or a stage result does not hold what the ledger names."""


class Within(Row):
    """Ours lies within a relative `tolerance` of the paper's number of the same name."""

    kind: Literal["within"]
    tolerance: float = Field(gt=0, lt=1)

    def passes(self, ours: float, paper: float | None) -> bool:
        return paper is not None and abs(ours - paper) <= self.tolerance * abs(paper)


class AtMost(Row):
    """Ours is `bound` or less."""

    kind: Literal["at_most"]
    bound: float

    def passes(self, ours: float, paper: float | None) -> bool:
        return ours <= self.bound


class AtLeast(Row):
    """Ours is `bound` or more."""

    kind: Literal["at_least"]
    bound: float

    def passes(self, ours: float, paper: float | None) -> bool:
        return ours >= self.bound


class IsTrue(Row):
    """Ours is a statement that the stage found true, by a test written down before the run."""

    kind: Literal["true"]

    def passes(self, ours: bool, paper: float | None) -> bool:
        return ours


class Argued(Row):
    """The claim is a proof or a definition; ours says whether its demonstration succeeded."""

    kind: Literal["argued"]

    def passes(self, ours: bool, paper: float | None) -> bool:
        return ours


class Value(Row):
    """What the paper gives: a short text, and each number in it under a name (a lone number is called `value`)."""

    text: Text
    numbers: dict[str, float] = {}


class Claim(Row):
    """One row of the ledger.

    `beside` names numbers that are shown with ours and not tested; `needs` says what is missing as long as `ours` names
    nothing; `remark` is shown with every verdict.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(\.[A-Za-z0-9]+)*$")]
    section: Text
    statement: Text
    value: Value
    source: Source
    notebook: Text | None = None
    ours: Reference | dict[str, Reference] | None = None
    beside: dict[str, Reference] = {}
    test: Annotated[Within | AtMost | AtLeast | IsTrue | Argued, Field(discriminator="kind")] | None = None
    scale: Literal["free", "reduced", "arithmetic"] | None = None
    at_paper_scale: Reference | None = None
    needs: Text | None = None
    reason: Text | None = None
    remark: Text | None = None
    measured: bool = False

    @property
    def references(self) -> dict[str, str]:
        """Name -> `stage.key` of each value that the claim reads; empty where nothing measures it yet."""
        if isinstance(self.ours, str):
            return {ONLY_VALUE: self.ours}
        return dict(self.ours or {})

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.references:
            if self.needs is None or self.scale or self.at_paper_scale or self.beside or not isinstance(self.test, Argued | None):
                raise ValueError("without `ours` a claim has `needs`, no scale, nothing `beside`, and no test but `argued`")
            return self
        if self.needs or not (self.notebook and self.test and self.scale):
            raise ValueError("with `ours` a claim has `notebook`, `test` and `scale`, and no `needs`")
        if self.at_paper_scale and self.scale != "reduced":
            raise ValueError("`at_paper_scale` lifts the limit of scale `reduced`; no other scale has it")
        if isinstance(self.test, Within) and (unknown := self.references.keys() - self.value.numbers.keys()):
            raise ValueError(f"the paper's numbers have no {', '.join(sorted(unknown))}")
        return self


class Judged(Row):
    """One line of the claim table. `values` are the numbers behind the text `ours`; a claim that was not run has neither."""

    id: str
    section: str
    statement: str
    paper: str
    ours: str | None
    verdict: Verdict
    source: Source
    notebook: str | None
    note: str
    measured: bool
    values: dict[str, Number]


def load_claims(path: Path) -> list[Claim]:
    """Read and check the ledger. Raises ClaimsError naming the row and what is wrong with it."""
    try:
        entries = read_yaml(path)
    except ValueError as error:
        raise ClaimsError(str(error)) from error
    if not isinstance(entries, list):
        raise ClaimsError(f"{path.name} must be a list of claims")
    claims = [_parse(path.name, position, entry) for position, entry in enumerate(entries, start=1)]
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise ClaimsError(f"{path.name}: claim {claim.id} stands there twice")
        seen.add(claim.id)
    return claims


def read_stages(folder: Path, claims: Iterable[Claim]) -> dict[str, dict[str, Any]]:
    """`<folder>/<stage>.json` of each stage that the claims name; a stage without a file is left out."""
    stages = {reference.split(".")[0] for claim in claims for reference in claim.references.values()}
    files = {stage: folder / f"{stage}.json" for stage in sorted(stages)}
    return {stage: read_results(file) for stage, file in files.items() if file.exists()}


def evaluate(claims: Iterable[Claim], results: Stages, timings: Stages) -> list[Judged]:
    """The claim table, in the order of the ledger.

    results and timings: stage -> its parsed JSON with a flat `summary`; claims that rest on times or memory read timings, all
    others results. Raises ClaimsError when a stage is there but a named value is missing or of the wrong kind.
    """
    return [_row(claim, timings if claim.measured else results) for claim in claims]


def _parse(file: str, position: int, entry: object) -> Claim:
    name = entry.get("id", f"number {position}") if isinstance(entry, dict) else f"number {position}"
    try:
        return Claim.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ClaimsError(f"{file}: claim {name}: {place + ': ' if place else ''}{first['msg']}") from error


def _row(claim: Claim, stages: Stages) -> Judged:
    needed = [*claim.references.values(), *claim.beside.values(), *([claim.at_paper_scale] if claim.at_paper_scale else [])]
    missing = sorted({stage for stage, _ in map(_split, needed) if stage not in stages})
    if missing or not claim.references:
        needs = claim.needs or f"a result of stage {' and '.join(missing)}"
        return _fill(claim, "not run", {}, f"needs {needs}")
    truth = isinstance(claim.test, IsTrue | Argued)
    values = {name: _read(claim.id, reference, stages, truth) for name, reference in claim.references.items()}
    verdict, why = _judge(claim, values, stages)
    beside = {name: _read(claim.id, reference, stages, truth=False) for name, reference in claim.beside.items()}
    return _fill(claim, verdict, values | beside, why)


def _judge(claim: Claim, values: dict[str, Number], stages: Stages) -> tuple[Verdict, str]:
    assert claim.test is not None  # a claim with references has a test: see Claim
    if not all(claim.test.passes(value, claim.value.numbers.get(name)) for name, value in values.items()):
        return "differs", claim.reason or UNKNOWN_REASON
    if isinstance(claim.test, Argued):
        return "argued", ""
    limits = [SOURCE_CAPS.get(claim.source), SCALE_CAPS.get(claim.scale or "")]
    if claim.at_paper_scale and _read(claim.id, claim.at_paper_scale, stages, truth=True):
        limits.pop()
    limits = [limit for limit in limits if limit]
    return ("holds in shape" if limits else "holds"), "; ".join(limits)


def _read(claim_id: str, reference: str, stages: Stages, truth: bool) -> Number:
    stage, key = _split(reference)
    summary = stages[stage].get("summary", {})
    if key not in summary:
        raise ClaimsError(f"claim {claim_id}: the result of stage {stage} has no summary value {key}")
    value = summary[key]
    if isinstance(value, bool) != truth or not isinstance(value, int | float) or not math.isfinite(value):
        kind = "true or false" if truth else "a finite number"
        raise ClaimsError(f"claim {claim_id}: summary value {key} of stage {stage} must be {kind}, not {value!r}")
    return value


def _split(reference: str) -> tuple[str, str]:
    stage, key = reference.split(".")
    return stage, key


def _fill(claim: Claim, verdict: Verdict, values: dict[str, Number], why: str) -> Judged:
    return Judged(
        id=claim.id,
        section=claim.section,
        statement=claim.statement,
        paper=claim.value.text,
        ours=", ".join(_show(name, value) for name, value in values.items()) or None,
        verdict=verdict,
        source=claim.source,
        notebook=claim.notebook,
        note="; ".join(part for part in (why, claim.remark) if part),
        measured=claim.measured,
        values=values,
    )


def _show(name: str, value: Number) -> str:
    if isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = f"{value:,}" if isinstance(value, int) and abs(value) < 10**10 else f"{value:.4g}"
    return text if name == ONLY_VALUE else f"{name}: {text}"
