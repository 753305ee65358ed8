"""Language models behind a real HTTP server that fails in every way: faults are named, never counted, and asked again."""

import json
import re

import pytest
from chatserver import serving

from fbam.experiments.diff_rows import diff_rows
from fbam.tasks.diff_inflate import Case, BenchmarkError, blob_id
from fbam.tasks.diff_outcomes import outcome, read_outcomes, record, write_outcomes
from fbam.tasks.hosted import ChatModel, ModelError
from fbam.tasks.model_solver import by_model, judged_by_model, run_model
from fbam.tasks.prompts import read_file, read_verdict, solve_prompt
from fbam.tasks.solvers_diff import EXACT, solve

TARGETS = ["a = 1\n", "b = 2", "def f():\n    return 1\n", "bad = '\udcff'\n"]


def case(number: int, target: str) -> Case:
    lines = target.splitlines(keepends=True)
    body = "".join(f"+{line}" for line in lines) + ("" if target.endswith("\n") else "\n\\ No newline at end of file\n")
    diff = f"diff --git a/f.py b/f.py\n@@ -0,0 +1,{len(lines)} @@\n{body}"
    return Case(f"case{number}", "made", "f.py", "0" * 40, 0, {3: [diff], 0: [diff]}, target, blob_id(target), 0.0)


CASES = [case(number, target) for number, target in enumerate(TARGETS)]


def apply_prompt(prompt: str) -> str:
    """A perfect model: applies the diffs it is shown; as a judge it compares bytes."""
    if versions := re.search(r"<first>\n(.*)\n</first>\n<second>\n(.*)\n</second>", prompt, re.DOTALL):
        return "EQUIVALENT" if versions[1].split() == versions[2].split() else "These are DIFFERENT."
    return f"<file>\n{solve(EXACT, [prompt[prompt.index('diff --git') :]], 3)}</file>"


@pytest.fixture
def server(monkeypatch):
    with serving(apply_prompt) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.address)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        yield running


def model(tmp_path, **changes) -> ChatModel:
    return ChatModel("tiny", tmp_path / "replies", **{"timeout": 5.0, "retries": 2} | changes)


def test_a_model_that_applies_diffs_is_right(server, tmp_path):
    found = [by_model(c, 3, model(tmp_path)) for c in CASES[:3]]
    assert [o.text for o in found] == TARGETS[:3] and all(o.verdicts.bytes for o in found)
    kept = json.loads((tmp_path / "replies" / found[0].request).read_text())
    assert kept["request"]["messages"][0]["content"] == solve_prompt(CASES[0].diffs[3]) and kept["reply"]["status"] == "answered"
    assert server.keys[0] == "Bearer secret" and "secret" not in json.dumps(kept)


@pytest.mark.parametrize("faults", [[429], [500, 503], [429, 500]])
def test_the_client_tries_again(server, tmp_path, faults):
    server.faults = list(faults)
    assert by_model(CASES[0], 3, model(tmp_path)).verdicts.bytes
    assert len(server.prompts) == len(faults) + 1


@pytest.mark.parametrize(("faults", "status", "detail"), [
    ([429, 429, 429], "limited", "fault 429"),
    ([500, 500, 500], "refused", "fault 500"),
    ([401], "refused", "fault 401"),
    (["broken"], "nonsense", "no completion"),
    (["page"], "nonsense", "no completion: <html>"),
    (["list"], "nonsense", "no completion"),
    (["no choice"], "nonsense", "no completion"),
    (["no message"], "nonsense", "no completion"),
    (["no text"], "nonsense", "a completion without text"),
    (["cut"], "cut", "<file>"),
])  # fmt: skip
def test_faults_are_named_and_not_judged(server, tmp_path, faults, status, detail):
    server.faults = list(faults)
    found = by_model(CASES[0], 3, model(tmp_path))
    assert found.status == status and detail in found.text and found.verdicts is None
    kept = list((tmp_path / "replies").glob("*.json"))
    assert len(kept) == (status == "cut")  # everything else is asked again


def test_a_slow_server_and_an_absent_one(server, tmp_path, monkeypatch):
    server.faults = ["slow"]
    assert by_model(CASES[0], 3, model(tmp_path, timeout=0.2, retries=0)).status == "slow"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    found = by_model(CASES[0], 3, model(tmp_path, retries=0))
    assert found.status == "absent" and "no connection to http://127.0.0.1:9/v1" in found.text


def test_a_reply_without_the_marks_is_nonsense(server, tmp_path):
    server.answer = lambda prompt: "I am sorry"
    found = by_model(CASES[0], 3, model(tmp_path))
    assert (found.status, found.text, found.verdicts) == ("nonsense", "I am sorry", None)


def test_bytes_that_are_not_utf8_are_never_sent(server, tmp_path):
    assert by_model(CASES[3], 3, model(tmp_path)).status == "unsuitable" and server.prompts == []


def test_a_run_resumes_with_what_is_missing(server, tmp_path):
    server.faults = [401]
    first = list(run_model(CASES, [3, 0, 9], model(tmp_path), None, 1))
    assert [o.status for o in first] == ["refused", *["answered"] * 5, "unsuitable", "unsuitable"]
    asked = len(server.prompts)
    again = list(run_model(CASES, [3, 0, 9], model(tmp_path), None, 4))
    assert [o.status for o in again] == [*["answered"] * 6, "unsuitable", "unsuitable"]
    assert len(server.prompts) - asked <= 1  # both contexts of the first case show the same diff


def test_another_request_is_another_reply(server, tmp_path):
    model(tmp_path).ask("diff --git")
    model(tmp_path, options={"temperature": 0}).ask("diff --git")
    model(tmp_path).ask("diff --git")
    assert len(server.prompts) == 2 and len(list((tmp_path / "replies").glob("*.json"))) == 2


def test_faults_enter_no_accuracy(server, tmp_path):
    server.faults = [401, "no choice"]
    found = [record(o) for o in run_model(CASES, [3], model(tmp_path), None, 1)]
    (row,) = diff_rows(found)
    assert (row.cases, row.correct, row.faults) == (1, 1, {"nonsense": 1, "refused": 1, "unsuitable": 1})


def test_a_model_as_judge(server, tmp_path):
    judge = model(tmp_path)
    wrong = judged_by_model(outcome(CASES[2], 3, "x", "answered", "def f():\n    return 2\n"), TARGETS[2], judge)
    styled = judged_by_model(outcome(CASES[2], 3, "x", "answered", "def f(): return 1\n"), TARGETS[2], judge)
    asked = len(server.prompts)
    same = judged_by_model(outcome(CASES[2], 3, "x", "answered", TARGETS[2]), TARGETS[2], judge)
    assert (wrong.model_verdict, styled.model_verdict, same.model_verdict) == (False, True, True) and len(server.prompts) == asked
    server.answer = lambda prompt: "EQUIVALENT or DIFFERENT, who knows"
    vague = judged_by_model(outcome(CASES[0], 3, "x", "answered", "a=2\n"), TARGETS[0], judge)
    assert (vague.model_verdict, vague.judge_status) == (None, "nonsense")
    fault = outcome(CASES[0], 3, "x", "slow", "no reply")
    assert judged_by_model(fault, TARGETS[0], judge) == fault


def test_without_a_key_there_is_no_model(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        model(tmp_path)


def test_outcomes_survive_the_file(server, tmp_path):
    server.faults = [401]
    found = list(run_model(CASES, [3], model(tmp_path), model(tmp_path), 1))
    write_outcomes(tmp_path / "o.jsonl", found)
    assert read_outcomes(tmp_path / "o.jsonl") == found
    (tmp_path / "o.jsonl").write_text('{"case": 1}\n')
    with pytest.raises(BenchmarkError, match="line 1 is no outcome"):
        read_outcomes(tmp_path / "o.jsonl")


def test_files_and_verdicts_are_read_from_replies():
    assert read_file("Sure:\n<file>\na\n</file>\nDone.") == "a\n"
    assert read_file("<file>\n\na</file>") == "\na" and read_file("<file></file>") == "" and read_file("a\n") is None
    assert read_verdict("Equivalent.") is True and read_verdict("they are DIFFERENT") is False
    assert read_verdict("equivalently") is None and read_verdict("") is None
