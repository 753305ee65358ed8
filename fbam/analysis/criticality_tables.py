"""Tables of the criticality study as HTML, from its rows and readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fbam.analysis.criticality import Reading
from fbam.analysis.frjt import Row
from fbam.analysis.frjt_figures import name_of
from fbam.analysis.frjt_tables import html


def failures(rows: Iterable[Row]) -> str:
    """Failing depth of each model with its interval."""
    bounds = {"reached": "", "above": "at least ", "below": "at most "}
    lines = [[name_of(row["model"]), row["layers"], row["runs"], f"{bounds[row['bound']]}{row['depth']:.2f}", f"[{row['low']:.2f}, {row['high']:.2f}]"]
             for row in rows]
    return html(lines, ["model", "layers", "runs", "failing depth", "95 % interval"])


def growths(readings: Mapping[str, Reading]) -> str:
    """Exponent of the failing depth in the layers, or why there is none."""
    lines = []
    for model, reading in readings.items():
        growth = reading.growth
        found = f"{growth.exponent:.2f} [{growth.low:.2f}, {growth.high:.2f}]" if growth else reading.why
        lines.append([name_of(model), reading.points, found, "yes" if reading.seen else "no"])
    return html(lines, ["model", "points", "exponent of L, or why there is none", "growth seen"])


def laws(rows: Iterable[Row]) -> str:
    """Constant and error of each law of each model."""
    lines = [[name_of(row["model"]), row["law"], row["constant"], f"[{row['low']:.2f}, {row['high']:.2f}]", row["squared_log_error"]]
             for row in rows]
    return html(lines, ["model", "failing depth =", "constant", "95 % interval", "squared log error"])
