"""The regret picture: a legend in the order of the curves, and bounds that do not flatten them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot

from accrual.engine.result import Result, _short


@pytest.fixture(autouse=True)
def _close():
    """Close what a test has shown."""
    yield
    pyplot.close("all")


@pytest.fixture
def result() -> Result:
    rounds = np.array([50, 100])
    ends = np.array([[900.0, 1100.0], [2900.0, 3100.0], [1900.0, 2100.0]])  # policies x runs
    regret = np.stack([ends / 2, ends], axis=2)
    return Result(("low", "high", "middle"), rounds, regret, np.zeros((3, 2, 1), np.int64), range(2))


def legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_legend_names_the_highest_curve_first(result):
    assert legend(result.plot()) == ["high   3k", "middle   2k", "low   1k"]


def test_a_bound_nearby_is_drawn_and_one_far_above_is_only_named(result):
    ax = result.plot(bounds={"near": [3000, 4000], "far": [3000, 1e6]})
    assert legend(ax)[-2:] == ["near   4k", "far   1M, above"]
    assert ax.get_ylim() == (0, pytest.approx(1.05 * 4000))
    near, far = ax.get_lines()[-2:]
    assert near.get_ydata().tolist() == [3000, 4000]
    assert np.isnan(far.get_ydata()).all()
    assert near.get_linestyle() == "--"


def test_bands_are_two_standard_errors(result):
    band = result.plot().collections[0].get_paths()[0].vertices  # of the highest curve
    at_end = band[band[:, 0] == 100, 1]
    assert (at_end.min(), at_end.max()) == (pytest.approx(2800), pytest.approx(3200))  # s.e. is 100


def test_no_regret_and_one_run_can_be_drawn():
    one = Result(("a",), np.array([1, 2]), np.zeros((1, 1, 2)), np.zeros((1, 1, 1), np.int64), range(1))
    assert one.plot().get_ylim() == (0, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (2.5, "2.5"), (999.6, "1k"), (463_777, "464k"), (999_600, "1M"), (1_908_764, "1.91M")],
)
def test_short_figures(value, text):
    assert _short(value) == text
