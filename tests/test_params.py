"""params.yaml is validated whole; each fault names its key and the remedy."""

from __future__ import annotations

import copy
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fbam import params


@pytest.fixture(scope="module")
def content() -> dict:
    from conftest import ROOT

    return params.read_sections(ROOT / "params.yaml")


def test_the_shipped_file_and_profiles_are_valid(root):
    params.check_tree(root)


def changed(content: dict, section: str, key: str, value) -> dict:
    content = copy.deepcopy(content)
    content[section][key] = value
    return content


@pytest.mark.parametrize(
    ("section", "key", "value", "said"),
    [
        ("flops", "bathc", 3, "unknown key flops.bathc"),
        ("flops", "batch", "many", "flops.batch: .*valid integer, got 'many'"),
        ("flops", "batch", 0, "flops.batch: .*greater than or equal to 1, got 0"),
        ("flops", "batch", True, "flops.batch: .*got True"),
        ("training", "lengths", [], "training.lengths"),
        ("training", "lengths", [1, 1], "names a value twice"),
        ("training", "heads", 5, "multiple of heads"),
        ("training", "labels", 65, "multiple of every length"),
        ("training", "adamw_lr", float("nan"), "training.adamw_lr"),
        ("corpus", "training", {"rows": 1, "columns": 24, "block_frames": 1}, "corpus.training.rows"),
        ("training", "poolings", 9, "cannot halve a frame of 4 x 24"),
        ("corpus", "repositories", [{"sauce": "x"}], "corpus.repositories.0.source is missing"),
        ("training", "report_every", 7, "must divide training.steps"),
        ("scaling", "tasks", [{"name": "edits", "sessions": 9, "steps": 30, "read_at": [10, 20, 40]}], "must rise and end at steps 30"),
        ("rollout", "held_out", 0.0001, "must be at least 2 sessions"),
    ],
)
def test_faults_name_their_key(content, section, key, value, said):
    with pytest.raises(params.ParamsError, match=said) as caught:
        params.parse(changed(content, section, key, value))
    assert "\n" not in str(caught.value)


def test_a_missing_key_and_a_missing_section_are_named(content):
    less = copy.deepcopy(content)
    del less["flops"]["rate"], less["scaling"]
    with pytest.raises(params.ParamsError, match="scaling is missing.*flops.rate is missing"):
        params.parse(less)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
def test_no_value_of_a_section_crashes_the_reader(content, value):
    with pytest.raises(params.ParamsError):
        params.parse({**content, "flops": value})


def test_exponents_are_numbers_as_in_dvc(tmp_path):
    file = tmp_path / "params.yaml"
    file.write_text("a: {rate: 1e-3}\n")
    assert params.read_sections(file) == {"a": {"rate": 0.001}}


@pytest.mark.parametrize("text", ["a: [1, 2", "- 1\n", "", "a: {b: 1}\n\tc: 2\n"])
def test_malformed_files_are_named(tmp_path, text):
    file = tmp_path / "params.yaml"
    file.write_text(text)
    with pytest.raises(params.ParamsError, match="params.yaml"):
        params.read_sections(file)


def test_an_overlay_may_only_set_what_exists(content):
    assert params.overlay(content, {"flops": {"batch": 7}}, "p")["flops"]["batch"] == 7
    assert content["flops"]["batch"] == 512
    for wrong in ({"flop": {"batch": 7}}, {"flops": {"bach": 7}}, {"flops": 7}):
        with pytest.raises(params.ParamsError, match="^p: unknown"):
            params.overlay(content, wrong, "p")


def test_the_shipped_file_survives_a_rewrite_by_dvc(root):
    """`dvc exp run -S` loads and dumps the file; only the value it sets may change."""
    text, written = (root / "params.yaml").read_text("utf-8"), io.StringIO()
    YAML().dump(YAML().load(text), written)
    assert written.getvalue() == text
