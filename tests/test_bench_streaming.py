"""The benchmark of streaming: what it measures on, and that a target is judged by its bound."""

from __future__ import annotations

import numpy as np
import pytest

from fbam.recording.format import Recording
from fbam.training import bench


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return bench.Material.write(tmp_path_factory.mktemp("bench"), pairs=900)


def test_the_typist_fills_a_window_that_scrolls(material):
    recording = Recording(material.recording)
    assert recording.n_frames == 900 and (recording.rows, recording.cols) == (bench.ROWS, bench.COLS)
    typed = "".join(recording.actions)
    last = recording.frames(899, 900)[0]["code"].ravel()
    shown = typed[(899 // 40 - 11) * 40 : 899]
    assert [chr(code) for code in last[: len(shown)]] == list(shown)
    assert material.windows().tokens < 900, "words are tokens, so frames are skipped between them"


def test_streaming_and_plain_autograd_of_the_rows_do_the_same(material):
    windows = material.windows()
    drawn, found = windows.draw(np.random.default_rng(0), 2, 4), []
    for head in ("attention", "conv"):
        model = bench.model_for(windows, head).double()
        for run in (lambda: bench.chunked_backward(model, drawn, 2), lambda: bench.streaming_backward(model, drawn, frame_chunk=2, state_every=16)):
            model.zero_grad()
            run()
            found.append([parameter.grad for parameter in model.parameters()])
        assert max(float((a - b).abs().max()) for a, b in zip(found[-2], found[-1])) < 1e-12


def test_times_are_taken_in_turns():
    order = []
    seconds = bench.in_turns([lambda: order.append("a"), lambda: (order.append("b"), [None for _ in range(300_000)])], rounds=4)
    assert order == ["a", "b"] * 4 and 0 <= seconds[0] < seconds[1]


def test_targets_are_judged_by_their_bounds(monkeypatch):
    monkeypatch.setattr(bench, "PAIRS", 400)
    monkeypatch.setattr(bench, "time_row", lambda windows, head, chunk: {"ratio": 1.5 if head == "conv" else 1.2})
    monkeypatch.setattr(bench, "step_row", lambda windows: {"loading_seconds": 1.0, "step_seconds": 20.0, "head_seconds": 19.0})
    rows = [("plain", 16, 600e6), ("plain", 256, 9e9), ("streaming", 16, 40e6), ("streaming", 1024, 55e6)]
    monkeypatch.setattr(bench, "memory_rows", lambda material, folder: [
        {"way": way, "L": length, "peak_bytes": peak, "declared_bytes": 5e6 if length == 1024 else 0} for way, length, peak in rows])
    found = bench.bench()
    assert [target["met"] for target in found["targets"]] == [False, True, True, True, True, True]
    assert [round(target["measured"], 2) for target in found["targets"]] == [1.5, 600, 1.25, 180, 0.05, 0.95]
    assert set(found) == {"targets", "time", "memory", "step"} and found["targets"][0]["bound"] == "<= 1.4"
