"""One solver on one case: the answer, what the judges say of it, or why there is none (paper, section 8.2.2).

Only answered cases count, right or wrong; a fault of a model's server is an outcome of its own and enters no accuracy.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from fbam.experiments.files import write_text
from fbam.tasks.diff_inflate import Case, BenchmarkError
from fbam.tasks.judges import Verdicts, judge
from fbam.tasks.solvers_diff import solve

ANSWERED = "answered"
"""Status of a case that counts."""


@dataclass(frozen=True)
class Outcome:
    """A row of the benchmark before it is averaged.

    :ivar size: class of the target's size, 0 to 2; ``overlap``: class of overlap, 0 to 2 (see ``diff_inflate``)
    :ivar status: "answered", or the fault (see ``hosted.Reply``)
    :ivar text: the answer; with a fault what is known of it
    :ivar verdicts: of the judges that are programs, None with a fault
    :ivar model_verdict: of a language model as judge, None where none was asked or ``judge_status`` names a fault
    :ivar request: file with prompt and reply, empty for solvers that are no models
    """

    case: str
    history: str
    path: str
    n_diffs: int
    context: int
    size: int
    overlap: int
    solver: str
    status: str
    text: str
    verdicts: Verdicts | None
    model_verdict: bool | None = None
    judge_status: str = ""
    request: str = ""


def outcome(case: Case, context: int, solver: str, status: str, text: str, request: str = "") -> Outcome:
    """Judge an answer by program, or write down a fault."""
    verdicts = judge(text, case.target) if status == ANSWERED else None
    size, overlap = case.stratum
    return Outcome(case.id, case.history, case.path, case.n_diffs, context, size, overlap, solver, status, text, verdicts, request=request)


def by_program(case: Case, context: int, solver: str) -> Outcome:
    """What one of the built-in solvers makes of a case."""
    return outcome(case, context, solver, ANSWERED, solve(solver, case.diffs[context], context))


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """One outcome a line of JSON in ASCII."""
    write_text(path, "".join(json.dumps(record(found)) + "\n" for found in outcomes))


def record(found: Outcome) -> dict:
    """An outcome as JSON values."""
    return asdict(found) | {"verdicts": found.verdicts._asdict() if found.verdicts else None}


def read_outcomes(path: Path) -> list[Outcome]:
    """Read what ``write_outcomes`` wrote.

    :raises BenchmarkError: a line is no outcome
    """
    outcomes = []
    for number, line in enumerate(path.read_text("ascii").splitlines(), start=1):
        try:
            stored = json.loads(line)
            verdicts = stored.pop("verdicts")
            outcomes.append(Outcome(verdicts=Verdicts(**verdicts) if verdicts else None, **stored))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BenchmarkError(f"{path} line {number} is no outcome ({error}); run the solver again") from error
    return outcomes
