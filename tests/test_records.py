"""Results files: typed, whole, free of NaN, with provenance; intervals that mean what they say."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fbam.experiments import files, records, source, statistics
from fbam.experiments.rows import FlopsRow

json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                           lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_json_is_read_as_it_was_written(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "x.json"
    files.write_json(path, value)
    assert files.read_json(path) == value == json.loads(path.read_text("utf-8"))


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"a": float("nan")})
    assert files.read_json(path) == {"a": 1} and [p.name for p in tmp_path.iterdir()] == ["x.json"]
    path.write_text("{")
    with pytest.raises(ValueError, match="x.json is not valid JSON"):
        files.read_json(path)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), [1]])
def test_a_summary_holds_finite_scalars_only(tmp_path, value):
    with pytest.raises(ValueError, match="summary value x"):
        records.write_results(tmp_path / "s.json", {"x": value}, [], {})
    assert not (tmp_path / "s.json").exists()


def test_rows_are_strict(tmp_path):
    for wrong in ({"component": "a"}, {"component": "a", "flops": "3"}, {"component": "a", "flops": float("nan")},
                  {"component": "a", "flops": 1.0, "x": 1}):
        with pytest.raises(ValidationError):
            FlopsRow(**wrong)
    records.write_results(tmp_path / "s.json", {"x": 1}, [FlopsRow(component="a", flops=2.0)], {"commit": "c"})
    assert records.read_results(tmp_path / "s.json") == {
        "summary": {"x": 1}, "rows": [{"component": "a", "flops": 2.0}], "provenance": {"commit": "c"}}


def test_provenance_names_commit_and_changes(tmp_path, monkeypatch):
    monkeypatch.delenv("FBAM_COMMIT", raising=False)
    assert records.commit(tmp_path / "nowhere") == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "params.yaml").write_text("a: 1\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    records.commit.cache_clear()
    clean = records.commit(tmp_path)
    assert len(clean) == 40
    (tmp_path / "params.yaml").write_text("a: 2\n")
    records.commit.cache_clear()
    assert records.commit(tmp_path) == clean + "+"
    monkeypatch.setenv("FBAM_COMMIT", "told")
    records.commit.cache_clear()
    assert records.commit(tmp_path) == "told"
    records.commit.cache_clear()


def test_the_source_hash_follows_imports(tmp_path):
    package = tmp_path / "fbam" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "fbam" / "__init__.py").write_text('"""Words."""\n')
    (package / "__init__.py").write_text('"""Words."""\n')
    (package / "a.py").write_text("def f():\n    from fbam.inner import b\n    return b\n")
    (package / "b.py").write_text("import numpy\nfrom fbam.inner.c import x\n")
    (package / "c.py").write_text("x = 1\n")
    (package / "d.py").write_text("x = 1\n")
    found = source.transitive_imports(package / "a.py", tmp_path)
    assert {file.name for file in found} == {"b.py", "c.py"}
    before = source.source_hash(package / "a.py", tmp_path)
    (package / "d.py").write_text("x = 2\n")
    assert source.source_hash(package / "a.py", tmp_path) == before
    (package / "c.py").write_text("x = 2\n")
    assert source.source_hash(package / "a.py", tmp_path) != before


def test_a_notebook_counts_by_its_code(tmp_path):
    notebook = tmp_path / "n.ipynb"
    cells = [{"cell_type": "markdown", "source": ["import fbam.inner.d"]},
             {"cell_type": "code", "source": ["%matplotlib inline\n", "import fbam.experiments.files"]}]
    notebook.write_text(json.dumps({"cells": cells}))
    assert source.code_of(notebook) == "import fbam.experiments.files"


def test_intervals_cover_at_the_nominal_rate():
    rng = np.random.default_rng(0)
    covered = [statistics.mean(rng.normal(2, 3, size=5)) for _ in range(2000)]
    assert 0.93 < np.mean([i.low <= 2 <= i.high for i in covered]) < 0.97
    shares = [statistics.proportion(int(k), 60) for k in rng.binomial(60, 0.9, size=2000)]
    assert 0.92 < np.mean([i.low <= 0.9 <= i.high for i in shares]) < 0.98


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_an_interval_is_refused_rather_than_invented(values):
    with pytest.raises(ValueError, match="at least two finite values"):
        statistics.mean(values)
    with pytest.raises(ValueError, match="3 successes of 2"):
        statistics.proportion(3, 2)
