"""Questions of lost sections: a Transformer on flattened frames, the capacity of the main model, and the message of a commit.

Each has rows and named values for the ledger; the tests stand in protocol.md. Two models are compared at equal steps or at equal FLOPs,
which are counted and not timed, each at the best of as many learning rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np
from scipy import stats

from fbam.analysis.ablations import LAYERS, mean_loss
from fbam.analysis.scaling import CONFIDENCE, FitError, fit_power_law
from fbam.analysis.scaling_tables import FIXED_BATCH, Reading
from fbam.experiments.scaling_rows import ALL, FOLLOWING, CapacityRow, MatchedRow, MessageRatioRow

RATE, FLATTENED = "rate ", "flattened, rate "  # and Muon's learning rate: families of the LSTM and of the Transformer on flattened frames


def matched_rows(reading: Reading, task: str, steps: Iterable[Mapping]) -> list[MatchedRow]:
    """One row at equal steps, and one at equal FLOPs for each length that the LSTM was trained on at every rate.

    At equal FLOPs the LSTM ends with its last step and the Transformer at the first row of losses that has cost as much or more; where the
    Transformer has no such row, it ends with its last and the LSTM before it has cost more.

    steps: rows of `StepRow`, among them one of a flattened family and one of the LSTM at each length. Raises FitError when one side has
    ended before the first row of the other.
    """
    losses, every = reading.losses[task], reading.losses[task].every
    flat = [family for family in losses.families if family.startswith(FLATTENED)]
    others = [FIXED_BATCH, *(family for family in losses.families if family.startswith(RATE))]
    (length,), lengths = losses.lengths(flat[0]), losses.lengths(others[-1])
    flops = {(row["control"] in flat, row["L"]): row["flops"] for row in steps if row["task"] == task and row["control"] in (*flat, FIXED_BATCH)}
    last, end = min(losses.last[family] for family in others), min(losses.last[family] for family in flat)
    points = [("steps", length, min(end, last), min(end, last))]
    for L in lengths:
        ratio = flops[True, length] / flops[False, L]
        flat_step = every * int(np.ceil(last / ratio / every))
        points.append(("FLOPs", L, *((flat_step, last) if flat_step <= end else (end, every * int(end * ratio / every)))))
    found = []
    for matched, L, flat_step, step in points:
        first, second = _best(reading, task, flat, length, flat_step), _best(reading, task, others, L, step)
        found.append(MatchedRow(
            task=task, matched=matched, rates=len(flat), flattened_L=length, flattened_family=first[1], flattened_steps=flat_step,
            flattened_flops=flat_step * flops[True, length], flattened_loss=first[0], L=L, family=second[1], steps=step,
            flops=step * flops[False, L], loss=second[0], ratio=first[0] / second[0]))
    return found


def _best(reading: Reading, task: str, families: Sequence[str], length: int, step: int) -> tuple[float, str]:
    """The lowest mean loss over the seeds that all have, and its family, at one length and step; a loss is that of one row."""
    losses = reading.losses[task]
    if step < losses.every:
        raise FitError(f"{families[0]} has no loss at step {step}: one side of the comparison costs too little; train it for more steps")
    seeds = sorted(set.intersection(*(set(losses.seeds(family)) for family in families)))
    return min((mean_loss(losses, (family, length), seeds, step, losses.every), family) for family in families)


def capacity_rows(reading: Reading, task: str) -> list[CapacityRow]:
    """One row a run: the exponent of every number of layers at the lengths and the last fixed step that all have.

    With one seed of the main family the bounds are those of its line, by Student's t on the residuals. Raises FitError when no
    number of layers was trained.
    """
    losses = reading.losses[task]
    families = [family for family in losses.families if family.startswith(LAYERS)]
    if not families:
        raise FitError(f"capacity needs a family named `{LAYERS}N` on {task}")
    step, lengths = reading.common(task, FIXED_BATCH, *families), losses.lengths(families[0])
    alphas = {family: _alphas(reading, task, family, step, lengths) for family in (FIXED_BATCH, *families)}
    main = alphas[FIXED_BATCH]
    if len(main) > 1:
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(main) - 1) * main.std(ddof=1) * np.sqrt(1 + 1 / len(main)))
        low, high = float(main.mean()) - half, float(main.mean()) + half
    else:
        law = fit_power_law(*reading.at(task, FIXED_BATCH, step))
        low, high = law.low, law.high
    return [CapacityRow(task=task, control=family, step=step, lengths=lengths, seed=seed, alpha=float(alpha), low=low, high=high)
            for family, found in alphas.items() for seed, alpha in zip(losses.seeds(family), found, strict=True)]


def _alphas(reading: Reading, task: str, family: str, step: int, lengths: Sequence[int]) -> np.ndarray:
    """The exponent of each seed, (seeds,), from the straight line through the logarithms at `lengths`."""
    at, values = reading.at(task, family, step)
    kept = [at.index(length) for length in lengths]
    return -np.polyfit(np.log(lengths), np.log(values[kept]), 1)[0]


def ratio_rows(rows: Sequence[Mapping]) -> Iterator[MessageRatioRow]:
    """Own message over another one and over none, for each kind of windows. rows: those of `MessageRow`."""
    for at in dict.fromkeys(row["at"] for row in rows):
        mine = [row for row in rows if row["at"] == at]
        seeds, commits = sorted({row["seed"] for row in mine}), sorted({row["commit"] for row in mine})
        cells = {(row["seed"], row["commit"]): row for row in mine}
        windows = np.array([cells[seeds[0], commit]["windows"] for commit in commits])
        losses = {name: np.array([[cells[seed, commit][name] for commit in commits] for seed in seeds]) for name in ("own", "other", "none")}
        for against in ("other", "none"):
            logs = np.log(losses["own"].mean(axis=0) / losses[against].mean(axis=0))  # (commits,)
            mean, half = float(logs.mean()), float(stats.sem(logs) * stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1))
            below = int((losses["own"] @ windows < losses[against] @ windows).sum())
            yield MessageRatioRow(at=at, against=against, commits=len(commits), seeds=len(seeds), value=float(np.exp(mean)),
                                  low=float(np.exp(mean - half)), high=float(np.exp(mean + half)), seeds_below=below)


def summary(matched: Iterable[MatchedRow], capacity: Iterable[CapacityRow], ratios: Iterable[MessageRatioRow]) -> dict[str, float | bool]:
    """The verdicts of protocol.md and the numbers beside them."""
    steps, *flops = matched
    mine = {(row.at, row.against): row for row in ratios}
    other, none = mine[ALL, "other"], mine[ALL, "none"]
    layers = [row for row in capacity if row.control != FIXED_BATCH]
    first, by_layers = layers[0], {row.control: [other.alpha for other in layers if other.control == row.control] for row in layers}
    alphas = {control: fmean(found) for control, found in by_layers.items()}
    values: dict[str, float | bool] = {
        "flattened_loses": all(row.ratio > 1 for row in flops),
        "flattened_ratio_same_length": min(row.ratio for row in flops if row.L == steps.L),
        "flattened_ratio_longest": flops[-1].ratio, "flattened_ratio_steps": steps.ratio,
        "flattened_flops_a_step": steps.flattened_flops / steps.flops,
        "capacity_shifts": any(not first.low <= value <= first.high for value in alphas.values()),
        "capacity_low": first.low, "capacity_high": first.high,
        "message_conditions": all(row.high < 1 and row.seeds_below == row.seeds for row in (other, none)),
    }
    values |= {f"alpha_{control.replace(' ', '_')}": value for control, value in alphas.items()}
    for name, row in (("other", other), ("none", none)):
        values |= {f"message_over_{name}": row.value, f"message_over_{name}_low": row.low, f"message_over_{name}_high": row.high}
    return values | {"message_over_none_following": mine[FOLLOWING, "none"].value}


def sentences(found: Mapping[str, float | bool]) -> list[tuple[str, str, str]]:
    """(question, control, answer), a sentence each, from what `summary` found."""
    flat = (f"at as many FLOPs it has {found['flattened_ratio_same_length']:.2f} times the LSTM's loss at its own L and "
            f"{found['flattened_ratio_longest']:.2f} at the longest; at as many steps, each {found['flattened_flops_a_step']:.0f} times as dear, "
            f"{found['flattened_ratio_steps']:.2f}")
    alphas = ", ".join(f"{name.removeprefix('alpha_layers_')} layers {value:.3f}" for name, value in found.items() if name.startswith("alpha_layers_"))
    inside = "one lies outside" if found["capacity_shifts"] else "no shift beyond that of a seed"
    message = "it lowers the loss on them" if found["message_conditions"] else "no gain from it"
    return [
        ("Vanilla Transformers, without a frame head?", "causal attention on flattened frames", flat),
        ("Does capacity shift the exponent?", "layers of the main model, 2 in the main family",
         f"{alphas}; another seed would lie in {found['capacity_low']:.3f} to {found['capacity_high']:.3f}: {inside}"),
        ("Does the message condition its edits?", "the same edits after their own message, another one, none",
         f"own over another {_interval(found, 'message_over_other')}, over none {_interval(found, 'message_over_none')}: {message}"),
    ]


def _interval(found: Mapping[str, float | bool], name: str) -> str:
    return f"{found[name]:.3f} [{found[f'{name}_low']:.3f}, {found[f'{name}_high']:.3f}]"
