"""The rows of the page on the rate of the data engine."""

from __future__ import annotations

from fbam.experiments.records import Row


class TargetRow(Row):
    """One measured figure beside its target: rates in processor seconds, ratios, shares; `measured` 1 or 0 for yes or no."""

    name: str
    measured: float
    bound: str
    met: bool
