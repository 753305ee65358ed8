"""The studies as cells, their rows and tests, the command line and the figures."""

import argparse
import json

import matplotlib.pyplot as plt
import pytest
from chatserver import serving
from conftest import ROOT

from fbam.analysis import diff_figures
from fbam.experiments import diff_rows
from fbam.experiments.statistics import proportion
from fbam.tasks import diff_command, diff_study
from fbam.tasks.diff_inflate import BenchmarkError, read_cases
from fbam.tasks.diff_outcomes import read_outcomes

SETTINGS = {"suffixes": [".py"], "diffs": [1, 2, 4], "contexts": [3, 1, 0], "cases": 6, "largest_bytes": 65536, "seed": 0}
AGENT = {"suffixes": [".py"], "streams": 6, "turns": 5, "chances": [0.0, 0.3], "contexts": [3], "print_every": [0, 2], "seed": 0}


@pytest.fixture(scope="module")
def bundle() -> str:
    return str(ROOT / "data/interpreter.bundle")


@pytest.fixture(scope="module")
def study(bundle, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("cell")
    (config,) = diff_study.configs([{"source": bundle, "revision": None}], folder, SETTINGS)
    result, _ = diff_study.benchmark_cell(config, folder, lambda share: None)
    assert len(list(read_cases(folder / "cases.jsonl"))) == 18
    return result | {"config": config, "folder": folder}


def test_a_cell_is_a_function_of_its_configuration(study, tmp_path):
    again, _ = diff_study.benchmark_cell(study["config"], tmp_path, lambda share: None)
    assert json.dumps(again) == json.dumps({key: study[key] for key in again})
    assert len(study["config"]["head"]) == 40 and len(study["outcomes"]) == 18 * 3 * 5


def test_rows_count_what_the_outcomes_say(study):
    rows = diff_rows.diff_rows(study["outcomes"])
    assert len(rows) == 5 * 3 * 3
    for row in rows:
        group = [o for o in study["outcomes"] if (o["solver"], o["context"], o["n_diffs"]) == (row.solver, row.context, row.n_diffs)]
        assert (row.cases, row.correct) == (6, sum(diff_rows.equivalent(o) for o in group))
        assert (row.low, row.high) == (proportion(row.correct, 6).low, proportion(row.correct, 6).high)
        assert row.files == len({o["path"] for o in group}) and row.faults == {}
        if row.solver in ("exact", "composed"):
            assert row.same_bytes == 1 and row.line_distance == 0
    strata = diff_rows.stratum_rows(study["outcomes"])
    for solver in ("exact", "latest diff"):
        for name in ("size", "overlap"):
            assert sum(r.cases for r in strata if r.solver == solver and r.context == 0 and r.stratum.startswith(name)) == 12


def test_examples_show_the_first_failure(study):
    for example in study["examples"]:
        assert any(wanted != given for _, wanted, given in example["rows"])
        worse = [o["n_diffs"] for o in study["outcomes"] if o["solver"] == "latest diff" and o["context"] == example["context"]
                 and not diff_rows.equivalent(o)]  # fmt: skip
        assert example["n_diffs"] == min(worse)
    assert {example["context"] for example in study["examples"]} >= {0}


def test_side_by_side_pairs_lines():
    assert diff_study.side_by_side("a\nb\nc\n", "a\nx\ny\nc") == [[1, "a\n", "a\n"], [2, "b\n", "x\n"], [3, "c\n", "y\n"], [4, None, "c"]]
    assert diff_study.side_by_side("a\n" * 50 + "b\n", "a\n" * 50)[-1] == [51, "b\n", None]


def test_an_oracle_that_errs_stops_the_study(study, tmp_path, monkeypatch):
    monkeypatch.setitem(diff_study.SOLVERS, "exact", lambda patches, context: ["wrong\n"])
    with pytest.raises(BenchmarkError, match="does not give git's blob"):
        diff_study.benchmark_cell(study["config"] | {"diffs": [1], "cases": 1}, tmp_path, lambda share: None)


def test_two_histories_of_one_name_are_refused(bundle, tmp_path):
    with pytest.raises(BenchmarkError, match="same name"):
        diff_study.configs([{"source": bundle, "revision": None}] * 2, tmp_path, SETTINGS)


def test_the_agent_cell_counts_streams(bundle, tmp_path):
    config = AGENT | {"source": bundle, "revision": None}
    result, _ = diff_study.agent_cell(config, tmp_path, lambda share: None)
    assert diff_study.agent_cell(config, tmp_path, lambda share: None)[0] == result
    rows = diff_rows.agent_rows(result["rows"], 5)
    assert len(rows) == 2 * 4 * 2 and all((row.streams, row.n_diffs) == (6, 5) for row in rows)
    assert {row.accuracy for row in rows if row.observer == "serial"} == {1.0}
    with pytest.raises(BenchmarkError, match="no file of 30 to 200 lines"):
        diff_study.agent_cell(config | {"suffixes": [".none"]}, tmp_path, lambda share: None)


# ---------------------------------------------------------------- the tests of the claims on made-up outcomes


def outcomes(right: dict[tuple[int, int], int], history="h", n=40) -> list[dict]:
    """`right` cases of n for each (context, N), always the first ones."""
    return [
        {"case": f"{n_diffs}-{i}", "history": history, "path": f"{i % 4}.py", "n_diffs": n_diffs, "context": context, "size": 0, "overlap": 2,
         "solver": "latest diff", "status": "answered", "verdicts": {"bytes": False, "tree": i < count, "lines": True, "distance": 3}}
        for (context, n_diffs), count in right.items() for i in range(n)
    ]  # fmt: skip


def test_a_fall_needs_intervals_apart_and_no_rise():
    def falls(*counts):
        rows = diff_rows.diff_rows(outcomes({(3, 2**k): count for k, count in enumerate(counts)}))
        return diff_rows.falls(rows, "latest diff", 3)

    assert falls(40, 30, 5) and not falls(40, 40, 40) and not falls(40, 38, 36) and not falls(40, 0, 20) and not falls(0, 20, 40)
    both = diff_rows.diff_rows(outcomes({(3, 1): 40, (3, 2): 0}) + outcomes({(3, 1): 40, (3, 2): 40}, "other"))
    assert not diff_rows.falls(both, "latest diff", 3) and not diff_rows.falls([], "latest diff", 3)


def test_contexts_are_compared_case_by_case():
    found = outcomes({(3, 2): 30, (1, 2): 20, (0, 2): 5, (3, 1): 0, (1, 1): 40})  # one diff is a copy and does not count
    assert diff_rows.better_with(found, "latest diff", 3, 1)[:2] == (10, 0)
    assert diff_rows.better_with(found, "latest diff", 3, 1)[2] == pytest.approx(0.5**10)
    assert diff_rows.better_with(found, "latest diff", 0, 1)[2] > 0.99
    assert diff_rows.context_order(found, "latest diff", [0, 3, 1])
    assert not diff_rows.context_order(outcomes({(3, 2): 20, (1, 2): 20}), "latest diff", [3, 1])
    assert diff_rows.pooled(found, "latest diff", 3).value == 0.75


def test_one_history_falls_faster_than_another():
    rows = diff_rows.diff_rows(outcomes({(3, 2): 40, (3, 8): 5}) + outcomes({(3, 2): 40, (3, 8): 35}, "other") + outcomes({(3, 2): 1}, "third"))
    assert diff_rows.falls_faster(rows, "latest diff", 3, "h") == {"other": True, "third": False}


# ---------------------------------------------------------------- command line


def command(*words: str) -> None:
    parser = argparse.ArgumentParser()
    diff_command.add_command(parser.add_subparsers())
    options = parser.parse_args(["diffbench", *words])
    options.run(options)


def test_cases_go_out_and_are_solved(bundle, tmp_path, capsys):
    command(bundle, "--out", str(tmp_path / "cases.jsonl"), "--diffs", "1", "3", "--cases", "4", "--context", "3", "0")
    assert "interpreter: 3 diffs, 4 cases of 4 files" in capsys.readouterr().out
    command("--solve", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "o.jsonl"), "--solver", "exact")
    found = read_outcomes(tmp_path / "o.jsonl")
    assert len(found) == 16 and all(o.verdicts.bytes for o in found)
    assert "interpreter" in capsys.readouterr().out


def test_a_model_is_named_by_the_environment(bundle, tmp_path, capsys, monkeypatch):
    command(bundle, "--out", str(tmp_path / "cases.jsonl"), "--diffs", "1", "--cases", "3", "--context", "3")
    words = ["--solve", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "o.jsonl"), "--workers", "1"]
    with pytest.raises(BenchmarkError, match="FBAM_MODEL"):
        command(*words)
    with serving(lambda prompt: "<file>\nwrong</file>") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("FBAM_MODEL", "tiny")
        server.faults = [401]
        command(*words, "--options", '{"temperature": 0}')
        assert "not counted: 1 refused" in capsys.readouterr().out
        command(*words, "--options", '{"temperature": 0}')
        assert "not counted" not in capsys.readouterr().out and len(server.prompts) == 4
    assert len(list((tmp_path / "o.jsonl.replies").iterdir())) == 3


@pytest.mark.parametrize(("words", "message"), [
    ([], "either histories"),
    (["x", "--solve", "y"], "either histories"),
    (["x", "--diffs", "0"], "at least 1"),
    (["x", "--context", "-1"], "must not be negative"),
])  # fmt: skip
def test_arguments_that_do_not_fit(tmp_path, words, message):
    with pytest.raises(BenchmarkError, match=message):
        command(*words, "--out", str(tmp_path / "out"))


def test_a_history_without_cases_is_named(bundle, tmp_path):
    with pytest.raises(BenchmarkError, match="no file that ends in .none"):
        command(bundle, "--suffix", ".none", "--out", str(tmp_path / "out"))


# ---------------------------------------------------------------- figures


def test_figures_draw_every_curve(study):
    rows = [row.model_dump() for row in diff_rows.diff_rows(study["outcomes"])]
    figure = diff_figures.accuracy_panels(rows, "interpreter")
    assert len(figure.axes) == 3 and all(len(axes.containers) == 5 for axes in figure.axes)
    agent = [{"observer": o, "p": p, "print_every": e, "accuracy": 0.5, "low": 0.4, "high": 0.6} for o in "ab" for p in (0, 0.5) for e in (0, 8)]
    assert [len(axes.containers) for axes in diff_figures.effect_panels(agent).axes] == [2, 2]
    plt.close("all")


def test_examples_are_escaped_and_tinted():
    rows = [[1, "a < b\n", "a < b\n"], [2, "c\n", None], [3, None, "bad \udcff\n"]]
    text = diff_figures.examples_html([{"path": "<x>.py", "n_diffs": 2, "context": 1, "rows": rows}])
    assert "&lt;x&gt;.py" in text and "a &lt; b" in text and text.count("background:#d7f0dd") == 1 and "bad ?" in text
    assert "never fails" in diff_figures.examples_html([])
