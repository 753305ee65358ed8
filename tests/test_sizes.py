"""Sizes of one recording in several encodings: what is counted, and that it is the size of real files."""

from __future__ import annotations

import numpy as np

from fbam.recording.cells import blank
from fbam.recording.format import Recording, RecordingWriter
from fbam.recording.paper_codec import encode
from fbam.recording.sizes import encoded_sizes


def write(path, frames, actions, block_frames):
    with RecordingWriter(path, *frames.shape[1:], block_frames=block_frames, header={}) as writer:
        for frame, action in zip(frames, actions, strict=True):
            writer.append(frame, action)
    return path


def test_sizes_are_those_of_files_written_with_that_block(tmp_path):
    frames = np.stack([blank(4, 20)] * 300)
    frames["code"][:, 1, :] = np.random.default_rng(1).integers(33, 127, (300, 20))
    actions = [chr(97 + k % 7) for k in range(300)]
    recording = Recording(write(tmp_path / "a.fbam", frames, actions, 50))
    sizes = encoded_sizes(recording, 290, [10, 100])
    assert sizes["naive cells"] == 290 * 4 * 20 * 5
    assert sizes["the paper's runs"] == len(encode(frames[:290])) > sizes["the paper's runs, then zstd"] > 0
    for block in (10, 100):
        again = write(tmp_path / f"{block}.fbam", frames[:290], actions[:290], block)
        assert sizes[f"ours, blocks of {block} frames"] == again.stat().st_size
    assert sizes["naive cells"] > sizes["ours, blocks of 10 frames"] > sizes["ours, blocks of 100 frames"] > sizes["ours, actions alone"]
    assert encoded_sizes(recording, 290, [10, 100]) == sizes
