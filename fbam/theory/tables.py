"""From measured depths to the rows of the atlas: laws, verdicts, and beside them what paper and literature say (paper, section 2).

Lists and circuit classes are facts from the paper and the literature, not measurements. They answer different questions: the
paper's list is about what a layer can represent in general, circuit classes about the worst input at a stated precision, a
measured depth about one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fbam.sequence.families import FAMILIES
from fbam.theory.atlas import MODELS
from fbam.theory.laws import Law, fit_law

LISTED = frozenset(
    "transformer transformer_rotary linear_attention performer linformer longformer bigbird reformer s4d s5 h3 mamba mamba2 retnet gla deltanet "
    "hyena monarch tcn gated_cnn mingru minlstm rwkv4 mlstm".split()
)
"""Families that section 2 lists as not recurrence-complete (S4 and DSS share the file of S4D)."""
SOFTMAX = "TC0 with log precision (Merrill and Sabharwal 2023), AC0 with constant precision (Li et al. 2024)"
DIAGONAL = "TC0 with log precision (Merrill, Petty and Sabharwal 2024)"
AUTOMATA = "fixed precision: regular languages, so within NC1"
CIRCUITS: dict[str, str] = {
    **dict.fromkeys(["transformer", "transformer_rotary"], SOFTMAX),
    **dict.fromkeys(["s4d", "mamba"], DIAGONAL),
    **dict.fromkeys(["elman", "gru", "lstm", "slstm"], AUTOMATA),
    "dense_scan": "contains NC1-complete problems (Merrill, Petty and Sabharwal 2024)",
    "deltanet_negative": "parity with one layer, modular counting with two (Grazzi et al. 2025)",
    "deltaproduct": "word problems of permutation groups, with enough products a token (Siems et al. 2025)",
    "rwkv7": "all regular languages with four layers (Peng et al. 2025)",
    "looped": "with log n rounds: regular languages (Merrill and Sabharwal 2025)",
}
"""Bounds from the literature; all hold for the worst input and under the precision they name."""
ORDER = ("constant", "logarithmic", "n/chunk", "linear", "unclear")


def laws(form: dict[str, Any]) -> dict[tuple[str, str], Law]:
    """The law of each cost model and direction of one measured form."""
    return {
        (model, direction): fit_law(form["lengths"], values, form["chunk"])
        for model, directions in form["depths"].items()
        for direction, values in directions.items()
    }


def verdict(forms: Sequence[dict[str, Any]]) -> str:
    """What the forward laws of all forms say together, under both cost models.

    parallel: some form grows like log n at most; serial: every form grows like n, or like n over a fixed block; data-dependent:
    only an iteration grows more slowly, whose rounds depend on the values.
    """
    plain = [laws(form) for form in forms if form["form"] != "iterated"]
    best = [min((law[model.name, "forward"].name for law in plain), key=ORDER.index) for model in MODELS]
    if all(name in ("constant", "logarithmic") for name in best):
        return "parallel"
    iterated = [laws(form)[model.name, "forward"].name for form in forms if form["form"] == "iterated" for model in MODELS]
    return "data-dependent" if any(name != "linear" for name in iterated) else "serial"


def law_rows(family: str, forms: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a form, cost model and direction, with the fields of DepthRow."""
    rows = []
    for form in forms:
        for (model, direction), law in laws(form).items():
            rows.append({
                "family": family, "form": form["form"], "model": model, "direction": direction, "lengths": list(form["lengths"]),
                "depths": form["depths"][model][direction], "law": law.name, "offset": law.offset, "slope": law.slope, "chunk": law.chunk,
                "error": law.error, "text": str(law), "assumptions": form["assumptions"],
            })
    return rows


def smallest(forms: Sequence[dict[str, Any]], model: str, direction: str) -> str:
    """The law of the form that grows most slowly, in words; forms listed first win ties."""
    found = [laws(form)[model, direction] for form in forms]
    return str(min(found, key=lambda law: (ORDER.index(law.name), law.slope)))


def entry(family: str, forms: Sequence[dict[str, Any]], agree: bool) -> dict[str, Any]:
    """One family with the fields of AtlasRow."""
    about = FAMILIES[family]
    return {
        "family": family, "reference": about.REFERENCE, "update": about.UPDATE, "associative": about.ASSOCIATIVE, "listed": family in LISTED,
        "forms": [form["form"] for form in forms], "agree": agree, "unbounded": smallest(forms, "unbounded", "forward"),
        "fan_in_2": smallest(forms, "fan-in 2", "forward"), "backward_fan_in_2": smallest(forms, "fan-in 2", "backward"),
        "verdict": verdict(forms), "circuits": CIRCUITS.get(family, ""), "note": getattr(about, "NOTE", ""),
    }


def grows(rows: Sequence[dict[str, Any]], families: Sequence[str], forms: Sequence[str], model: str, laws_allowed: Sequence[str]) -> bool:
    """Whether every forward row of these families and forms has one of the laws; False when there is no such row."""
    found = [row["law"] for row in rows
             if row["family"] in families and row["form"] in forms and row["model"] == model and row["direction"] == "forward"]
    return bool(found) and all(law in laws_allowed for law in found)


def best_probes(results: Sequence[tuple[dict, dict]], threshold: float) -> list[dict[str, Any]]:
    """One row a family and task with the fields of ProbeRow: mean over seeds at the learning rate that is best at the trained length.

    :param results: (configuration, result) of each trained probe
    :param threshold: accuracy beyond the trained length from which a family is said to follow
    """
    groups: dict[tuple[str, str], dict[float, list[tuple[dict, dict]]]] = {}
    for config, result in results:
        groups.setdefault((config["family"], config["task"]), {}).setdefault(config["lr"], []).append((config, result))
    rows = []
    for (family, task), rates in groups.items():
        mean = lambda runs, key: sum(result[key] for _, result in runs) / len(runs)  # noqa: E731
        runs = max(rates.values(), key=lambda runs: mean(runs, "trained"))
        config, result = runs[0]
        rows.append({
            "family": family, "task": task, "steps": config["steps"], "learning_rates": sorted(rates), "seeds": [c["seed"] for c, _ in runs],
            "length": config["length"], "test_length": config["test_length"], "chance": result["chance"], "parameters": result["parameters"],
            "trained": mean(runs, "trained"), "extended": mean(runs, "extended"), "follows": mean(runs, "extended") >= threshold,
        })
    return rows
