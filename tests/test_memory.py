"""Three ways to the gradients: the same loss, measured in processes of their own."""

from __future__ import annotations

import pytest

from fbam.training.loop import fingerprint
from fbam.training.memory import WAYS, compare_gradients, measure_apart, turns_cell
from typist import record, tokenizer


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("memory")
    paths = [record(folder / "a.fbam", 1)]
    tokenizer(folder / "tokenizer.json", paths)
    return {"recordings": [str(paths[0])], "tokenizer": str(folder / "tokenizer.json"), "data": fingerprint(paths, folder / "tokenizer.json"),
            "batch": 4, "width": 32, "poolings": 1, "head_blocks": 1, "layers": 2, "codes": 64, "frame_head": "attention", "frame_chunk": 1, "state_every": 4}


def test_gradients_of_the_ways_are_compared(config):
    found = compare_gradients(config, 5, 2, 3)
    assert 0 < found["difference"] < 1e-12 < found["largest"]


def test_ways_agree_in_the_loss_and_streaming_needs_least(config, tmp_path):
    measured = {way: measure_apart(config | {"way": way, "length": 24}, tmp_path, lambda share: None) for way in WAYS}
    losses = [result["loss"] for result, _ in measured.values()]
    assert max(losses) - min(losses) < 1e-5
    assert measured["streaming"][1]["peak_bytes"] < measured["plain"][1]["peak_bytes"]


def test_times_of_the_ways_are_taken_at_one_length(config, tmp_path):
    result, measured = turns_cell(config | {"length": 6, "ways": list(WAYS), "rounds": 2}, tmp_path, lambda share: None)
    assert result == {} and measured["cpu_seconds"].keys() == set(WAYS)
    assert all(seconds > 0 for seconds in measured["cpu_seconds"].values()) and 0 < measured["loading_seconds"] < min(measured["cpu_seconds"].values())


def test_a_failed_measurement_says_which_and_why(config, tmp_path):
    broken = config | {"way": "plain", "length": 10**6}
    with pytest.raises(RuntimeError, match=r"a pass at L = 1000000 \(plain\) failed: .*no window of 1000000 tokens"):
        measure_apart(broken, tmp_path, lambda share: None)
