"""A training of a second or two, for the tests of what trains and of what reads a trained model."""

from __future__ import annotations

from pathlib import Path

from fbam.training.loop import fingerprint
from typist import record, tokenizer


def training_config(folder: Path) -> dict:
    """Write two tiny recordings and their tokenizer into `folder` and return the configuration of a training on them."""
    paths = [record(folder / f"{seed}.fbam", seed) for seed in (1, 2)]
    tokenizer(folder / "tokenizer.json", paths)
    return {
        "recordings": [str(path) for path in paths],
        "tokenizer": str(folder / "tokenizer.json"),
        "data": fingerprint(paths, folder / "tokenizer.json"),
        "length": 3,
        "batch": 4,
        "steps": 30,
        "seed": 5,
        "width": 16,
        "heads": 1,
        "poolings": 1,
        "head_blocks": 1,
        "layers": 2,
        "codes": 128,
        "frame_head": "attention",
        "reduction": "lstm",
        "main": "lstm",
        "muon_lr": 3e-3,
        "adamw_lr": 3e-4,
        "adamw_betas": [0.9, 0.95],
        "weight_decay": 0.01,
        "schedule": "constant",
        "warm_up": 0,
        "held_out": 0.2,
        "checkpoint_every": 4,
        "frame_chunk": 0,
        "state_every": 2,
        "micro_batch": 0,
        "device": "cpu",
    }
