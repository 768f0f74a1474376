import math

import pytest

pytest.importorskip("matplotlib", reason='needs the extra "bench"')

import matplotlib
from matplotlib.figure import Figure

from bench import plotting


def test_a_drawing_has_the_style_of_all_and_leaves_no_style_behind() -> None:
    before = matplotlib.rcParams["axes.grid"]
    with plotting.drawing((2, 1)):
        assert matplotlib.rcParams["axes.grid"] is True
    assert matplotlib.rcParams["axes.grid"] == before


def test_a_value_that_is_not_known_is_a_gap() -> None:
    first, second = plotting.floats([1.5, None])
    assert first == 1.5
    assert math.isnan(second)


def test_intervals_are_drawn_at_their_middles() -> None:
    assert plotting.middles({"t_s": [0.0, 2.0], "bin_s": 2.0}) == [1.0, 3.0]


@pytest.mark.parametrize(
    ("drawn", "scale"),
    [([1.0, 19.0], "linear"), ([1.0, 21.0], "log"), ([math.nan], "linear"), ([0.0, math.nan, 5.0], "linear")],
)
def test_an_axis_is_logarithmic_where_small_figures_would_drown(drawn: list[float], scale: str) -> None:
    axes = Figure().subplots()
    plotting.scale(axes, drawn)
    assert axes.get_yscale() == scale


def test_a_plot_without_names_has_no_legend() -> None:
    axes = Figure().subplots()
    plotting.legend(axes)
    assert axes.get_legend() is None
    axes.plot([1, 2], label="answered")
    plotting.legend(axes)
    assert axes.get_legend() is not None
