"""Figures of the scaling study draw the numbers they are given, the same bytes each time."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from fbam.analysis import figures, scaling_figures

POINTS = [{"length": L, "loss": 2 * L**-0.5} for L in (1, 2, 4)]
EXPONENTS = [{"step": s, "alpha": a, "low": a - 0.1, "high": a + 9} for s, a in ((10, 0.1), (20, 0.2))]
RATIOS = [{"label": "a", "value": 0.5, "low": 0.4, "high": 0.6}, {"label": "b", "value": 1.2, "low": None, "high": None}]
CURVES = [{"length": L, "batch": 2, "seed": 0, "losses": [3.0, 2.0, 1.0 / L]} for L in (1, 2)]
TIMED = [{"length": L, "seconds": np.array([1.0, 2.0]), "losses": np.array([[2.0, 3.0], [1.0, 2.0]]) / L} for L in (2, 1)]


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    monkeypatch.setitem(figures.mpl.rcParams, "backend", "agg")
    with figures.mpl.rc_context():
        figures.use_style()
        yield
    plt.close("all")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (scaling_figures.laws, ({"ours": (POINTS, (2.0, 0.5)), "paper": (POINTS, (4.96, 0.318))},)),
        (scaling_figures.residuals, ({"ours": {1: [0.1, -0.1], 2: [0.0, 0.2]}},)),
        (scaling_figures.exponents, ({"ours": EXPONENTS}, {"equation 9": (0.3, 700)})),
        (scaling_figures.ratios, (RATIOS,)),
        (scaling_figures.kinds, ({"LSTM": ([1, 2], np.array([[2.0], [1.0]]))},)),
        (scaling_figures.profiles, ([{"label": "L = 4", "position": i, "loss": 1.0 / i} for i in (1, 2, 3)],)),
        (scaling_figures.against_seconds, (TIMED, [(1.5, 1.0)])),
        (scaling_figures.step_costs, ([{"L": L, "cpu_seconds_a_step": 0.01 * L} for L in (1, 2)], (0.0, 0.01))),
    ],
)
def test_the_same_rows_give_the_same_bytes(function, arguments):
    def draw():
        figure, axes = plt.subplots()
        function(axes, *arguments)
        return figures.svg(figure)

    assert draw() == draw()


def test_panels_are_one_a_task():
    curves, windows = {"edits": CURVES, "typing": CURVES}, {"edits": 2, "typing": 2}
    one = scaling_figures.curves_of_tasks(curves, windows, 1, {"edits": {"actions": 3.0}, "typing": {}})
    two = scaling_figures.labels_of_tasks(curves, windows, 1)
    assert [axes.get_title() for axes in one.axes] == [axes.get_title() for axes in two.axes] == ["edits", "typing"]
    assert one.axes[0].lines[0].get_ydata().tolist() == [2.5, 1.5]


def test_points_and_intervals_are_where_the_numbers_say():
    _, axes = plt.subplots()
    scaling_figures.ratios(axes, RATIOS)
    bar, point, lone, unit = axes.lines
    assert bar.get_xdata().tolist() == [0.4, 0.6] and point.get_xdata().tolist() == [0.5] and lone.get_xdata().tolist() == [1.2]
    _, axes = plt.subplots()
    scaling_figures.against_seconds(axes, TIMED)
    assert axes.lines[0].get_label() == "L = 1" and axes.lines[0].get_ydata().tolist() == [2.5, 1.5], "the mean over seeds"
