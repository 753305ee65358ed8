"""Appendices E to I: what the controls say, from loss rows and profiles by position.

Two runs are compared by the ratio of their losses at one step, paired by seed. A batch is past its critical size where a doubling
lowers the loss by little; a profile is flat where the loss at both ends of a window is near its mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fbam.analysis.losses import Losses
from fbam.analysis.scaling import CONFIDENCE, FitError
from fbam.analysis.scaling_tables import FIXED_BATCH, FIXED_LABELS, Reading

Pick = tuple[str, int]
"""Family and trained length."""
ONE_LABEL, ATTENTION, DOUBLED = "one label", "causal attention", "twice batch and rate"
BATCH, WIDTH, LAYERS = "batch ", "width ", "layers "  # and the number: families that differ from the one with the batch fixed by that alone


@dataclass(frozen=True)
class Ratio:
    """Loss of one run over that of another, the geometric mean over seeds in common; bounds (Student's t) need two seeds."""

    value: float
    low: float | None
    high: float | None
    seeds: int

    @property
    def below(self) -> bool:
        """Whether the first is lower: the whole interval below 1, or with one seed the value."""
        return (self.value if self.high is None else self.high) < 1

    def __str__(self) -> str:
        return f"{self.value:.3f}" + ("" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]")


@dataclass(frozen=True)
class BatchGain:
    """What the step from one batch to the next larger one saves: the share of the loss, a doubling."""

    smaller: int
    larger: int
    saves: float


def common_seeds(losses: Losses, first: str, second: str) -> list[int]:
    """Seeds of both families. Raises FitError when there is none."""
    common = sorted(set(losses.seeds(first)) & set(losses.seeds(second)))
    if not common:
        raise FitError(f"{first} and {second} have no seed in common")
    return common


def loss_ratio(losses: Losses, first: Pick, second: Pick, step: int, window: int) -> Ratio:
    """Loss of the runs `first` over that of the runs `second` at `step`, each a mean over `window` steps.

    Raises FitError when they have no seed in common.
    """
    common = common_seeds(losses, first[0], second[0])
    logs = np.array([[np.log(_loss(losses, pick, seed, step, window)) for seed in common] for pick in (first, second)])
    difference = logs[0] - logs[1]  # (seeds,)
    mean, low, high = float(difference.mean()), None, None
    if len(common) > 1:
        half = float(stats.sem(difference) * stats.t.ppf((1 + CONFIDENCE) / 2, len(common) - 1))
        low, high = float(np.exp(mean - half)), float(np.exp(mean + half))
    return Ratio(float(np.exp(mean)), low, high, len(common))


def compared(reading: Reading, task: str, first: Pick, second: Pick) -> Ratio:
    """`loss_ratio` at the last fixed step that both families reach."""
    return loss_ratio(reading.losses[task], first, second, reading.common(task, first[0], second[0]), reading.windows[task])


def mean_loss(losses: Losses, pick: Pick, seeds: Sequence[int], step: int, window: int) -> float:
    """Mean loss over some seeds at one step."""
    return float(np.mean([_loss(losses, pick, seed, step, window) for seed in seeds]))


def late_fall(losses: Losses, pick: Pick, seeds: Sequence[int], early: int, late: int, window: int) -> float:
    """Share by which the mean loss over some seeds still falls between two steps: what stagnation has little of."""
    before, after = (mean_loss(losses, pick, seeds, step, window) for step in (early, late))
    return 1 - after / before


def batch_gains(by_batch: Mapping[int, float]) -> list[BatchGain]:
    """From batch -> loss at one step and length, what each step to the next batch saves a doubling. Raises FitError below two."""
    batches = sorted(by_batch)
    if len(batches) < 2:
        raise FitError(f"gains need two batches or more, not {batches}")
    return [BatchGain(a, b, float(1 - (by_batch[b] / by_batch[a]) ** (1 / np.log2(b / a)))) for a, b in zip(batches, batches[1:])]


def bends(gains: Iterable[BatchGain]) -> bool:
    """Whether the last doubling saves less than half of what the first one saves."""
    gains = list(gains)
    return gains[-1].saves < gains[0].saves / 2


def off_the_mean(profile: Mapping) -> float:
    """How far the loss at the first or last positions is from the mean over all, as a share of it, at most (a `ProfileRow`)."""
    return max(abs(profile[end] / profile["loss"] - 1) for end in ("first", "last"))


def picks(losses: Losses) -> list[tuple[str, Pick, Pick]]:
    """(what is compared, numerator, denominator) of every comparison that the families at hand allow."""
    short, long = losses.lengths(FIXED_BATCH)[0], losses.lengths(FIXED_BATCH)[-1]
    found = [(f"L = {long} over {short}, fixed batch", (FIXED_BATCH, long), (FIXED_BATCH, short))]
    if FIXED_LABELS in losses.families:
        shortest, *_, longest = losses.lengths(FIXED_LABELS)
        found.append((f"L = {longest} over {shortest}, fixed batch x L", (FIXED_LABELS, longest), (FIXED_LABELS, shortest)))
    for family in losses.families:
        length = losses.lengths(family)[-1]
        if family == ONE_LABEL:
            found.append((f"L = {length} over {short}, one label a window", (family, length), (FIXED_BATCH, short)))
        elif family == ATTENTION:
            found += [(f"attention over LSTM, L = {n}", (family, n), (FIXED_BATCH, n)) for n in losses.lengths(family)]
        elif family == DOUBLED:
            found.append((f"batch and rate x 2, L = {length}, over L = {2 * length}", (family, length), (FIXED_BATCH, 2 * length)))
        elif family.startswith((BATCH, WIDTH, LAYERS)):
            found.append((f"{family}, L = {length}", (family, length), (FIXED_BATCH, length)))
    return found


def ratio_rows(reading: Reading) -> list[dict]:
    """One {task, label, value, low, high, seeds} a comparison, at the last fixed step that both families reach."""
    rows = []
    for task in reading.losses:
        for label, first, second in picks(reading.losses[task]):
            found = compared(reading, task, first, second)
            rows.append({"task": task, "label": f"{task}: {label}", **vars(found)})
    return rows


def fixed_labels_ratio(reading: Reading, task: str) -> Ratio:
    """Loss of the longest over the shortest length with batch x L fixed, at the last fixed step."""
    lengths = reading.losses[task].lengths(FIXED_LABELS)
    return compared(reading, task, (FIXED_LABELS, lengths[-1]), (FIXED_LABELS, lengths[0]))


def by_batch(reading: Reading, task: str) -> tuple[int, dict[int, float]]:
    """The length at which batches are compared, and batch -> loss at the last fixed step that all reach, first seed."""
    losses, window = reading.losses[task], reading.windows[task]
    families = [family for family in losses.families if family.startswith(BATCH)]
    step = reading.common(task, FIXED_BATCH, *families)
    length, seed = losses.lengths(families[0])[0], losses.seeds(families[0])[0]
    return length, {losses.batch(family, length): _loss(losses, (family, length), seed, step, window)
                    for family in (FIXED_BATCH, *families)}


def summary(reading: Reading, profiles: Iterable[Mapping], near: float) -> dict[str, float | bool]:
    """The verdicts of protocol.md; the first task is the main one, the last the fully observable one."""
    main, other = next(iter(reading.losses)), list(reading.losses)[-1]
    losses, window = reading.losses[main], reading.windows[main]
    middle, last = reading.steps[main][-2:]

    def ratio(first: Pick, second: Pick) -> Ratio:
        return compared(reading, main, first, second)

    fixed, law = {task: fixed_labels_ratio(reading, task) for task in (main, other)}, reading.fits[main, FIXED_LABELS, last]
    one = ratio((ONE_LABEL, losses.lengths(ONE_LABEL)[-1]), (FIXED_BATCH, losses.lengths(FIXED_BATCH)[0]))
    long = losses.lengths(ATTENTION)[-1]
    attention = ratio((ATTENTION, long), (FIXED_BATCH, long))
    seeds = common_seeds(losses, ATTENTION, FIXED_BATCH)
    falls = [late_fall(losses, (family, long), seeds, middle, last, window) for family in (ATTENTION, FIXED_BATCH)]
    doubled = losses.lengths(DOUBLED)[0]
    larger, (_, batches) = ratio((DOUBLED, doubled), (FIXED_BATCH, 2 * doubled)), by_batch(reading, main)
    gains = batch_gains(batches)
    trained = [row for row in profiles if row["task"] == other and row["part"] == "train"]
    off = max(off_the_mean(row) for row in trained)
    length_helps = law.low > 0 and fixed[main].below
    return {
        "length_helps_at_fixed_labels": length_helps,
        "fixed_labels_ratio": fixed[main].value, "fixed_labels_ratio_observable": fixed[other].value,
        "length_has_a_part": length_helps and one.below, "one_label_ratio": one.value,
        "attention_stagnates": attention.value > 1 and falls[0] < falls[1],
        "attention_ratio": attention.value, "attention_late_fall": falls[0], "lstm_late_fall": falls[1],
        "batch_bends": bends(gains), "first_doubling_saves": gains[0].saves, "last_doubling_saves": gains[-1].saves,
        "larger_batch_loses": larger.value > 1, "larger_batch_ratio": larger.value,
        "ends_near_the_mean": off <= near, "ends_off_the_mean": off,
        "validation_below_training": all(row["loss"] < row["training"] for row in trained),
        "validation_over_training": max(row["loss"] / row["training"] for row in trained),
    }


def answers(reading: Reading, found: Mapping[str, float | bool]) -> list[tuple[str, str, str]]:
    """(question, control, answer) for each title of the lost sections that a control of ours speaks to."""
    main = next(iter(reading.losses))
    losses = reading.losses[main]
    widths = [(family, losses.lengths(family)[0]) for family in losses.families if family.startswith(WIDTH)]
    gains = "; ".join(f"{family}: {compared(reading, main, (family, n), (FIXED_BATCH, n))}" for family, n in widths)
    short, long = losses.lengths(FIXED_BATCH)[0], losses.lengths(FIXED_BATCH)[-1]
    grown = compared(reading, main, (FIXED_BATCH, long), (FIXED_BATCH, short))
    fixed = fixed_labels_ratio(reading, main)
    cause = "labels and context" if found["length_has_a_part"] else "the larger number of labels explains it within these intervals"
    return [
        ("More tokens?", f"L = {long} over {short}: batch fixed, and batch x L fixed", f"{grown}; with as many labels {fixed}"),
        ("Parameter scaling?", f"width, at L = {widths[0][1]}" if widths else "width", gains),
        ("Vanilla Transformers?", f"causal attention over the LSTM as main model, L = {losses.lengths(ATTENTION)[-1]}",
         f"{found['attention_ratio']:.3f}"),
        ("Cause of the law?", "one label a window, and batch x L fixed", f"{found['one_label_ratio']:.3f}, {fixed}: {cause}"),
    ]


def _loss(losses: Losses, pick: Pick, seed: int, step: int, window: int) -> float:
    family, length = pick
    steps, smoothed = losses.smoothed(family, length, window)
    if step not in steps:
        raise FitError(f"{family} has no loss at step {step}")
    return float(smoothed[list(steps).index(step), losses.seeds(family).index(seed)])
