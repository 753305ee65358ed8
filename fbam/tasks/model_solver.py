"""Language models as solvers and as judges of Diff-Inflate-Bench (paper, section 8.2.2)."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from fbam.tasks.diff_inflate import Case
from fbam.tasks.diff_outcomes import ANSWERED, Outcome, outcome
from fbam.tasks.hosted import ChatModel
from fbam.tasks.prompts import judge_prompt, read_file, read_verdict, solve_prompt


def by_model(case: Case, context: int, model: ChatModel) -> Outcome:
    """What a language model makes of a case."""
    reply = model.ask(solve_prompt(case.diffs[context]))
    text = read_file(reply.text) if reply.status == ANSWERED else reply.text
    status = "nonsense" if text is None else reply.status
    return outcome(case, context, model.name, status, reply.text if text is None else text, reply.request)


def judged_by_model(found: Outcome, target: str, model: ChatModel) -> Outcome:
    """The same outcome with the verdict of a language model; equal files need no asking."""
    if found.verdicts is None or found.verdicts.bytes:
        return replace(found, model_verdict=True, judge_status=ANSWERED) if found.verdicts else found
    reply = model.ask(judge_prompt(target, found.text))
    verdict = read_verdict(reply.text) if reply.status == ANSWERED else None
    status = "nonsense" if verdict is None and reply.status == ANSWERED else reply.status
    return replace(found, model_verdict=verdict, judge_status=status)


def run_model(
    cases: Iterable[Case], contexts: Iterable[int], model: ChatModel, judge_model: ChatModel | None, workers: int
) -> Iterator[Outcome]:
    """Ask a model about every case in every context, ``workers`` at a time; outcomes come in the order of the cases."""

    def one(pair: tuple[Case, int]) -> Outcome:
        found = by_model(*pair, model)
        return judged_by_model(found, pair[0].target, judge_model) if judge_model else found

    contexts = list(contexts)
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, [(case, context) for case in cases for context in contexts if context in case.diffs])
