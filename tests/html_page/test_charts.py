"""Charts: ticks are round and around the data, points are where they belong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.html_page.charts import LineChart, line_chart, ticks


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_ticks_are_around_the_data(low, width) -> None:
    high = low + width
    places = ticks(low, high)
    assert 2 <= len(places) <= 8
    slack = 1e-6 * max(abs(low), abs(high), 1e-9)
    assert places[0] <= low + slack
    assert places[-1] >= high - slack
    if width > 1e-3:
        np.testing.assert_allclose(np.diff(places), places[1] - places[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.31, 1.0, [0.2, 0.4, 0.6, 0.8, 1.0]),
        (1, 14, [0.0, 5.0, 10.0, 15.0]),
        (-3, 120, [-50.0, 0.0, 50.0, 100.0, 150.0]),
    ],
)
def test_ticks_are_round(low, high, expected) -> None:
    assert ticks(low, high) == expected


def test_points_are_where_they_belong() -> None:
    chart = line_chart({"a": [(0, 0), (5, 10)]}, "x", "y", dots=[(5, 10)])
    assert chart.lines[0].points == f"{chart.left}.0,{chart.bottom}.0 {chart.right}.0,{chart.top}.0"
    assert chart.dots == ((chart.right, chart.top),)
    assert chart.x_ticks[0] == (chart.left, "0")
    assert chart.y_ticks[-1] == (chart.top, "10")
    assert [text for _, text in chart.y_ticks] == ["0", "2", "4", "6", "8", "10"]


def test_shares_and_large_numbers() -> None:
    shares = line_chart({"a": [(0.0, 0.5), (1.0, 1.0)]}, "x", "y", is_share=True)
    assert [text for _, text in shares.x_ticks][:2] == ["0%", "20%"]
    large = line_chart({"a": [(0, 0), (1, 4e6)]}, "x", "y")
    assert [text for _, text in large.y_ticks] == ["0", "1M", "2M", "3M", "4M"]


@pytest.mark.parametrize("n_points", [1, 2, 5000])
def test_long_lines_are_thinned(n_points) -> None:
    points = [(float(x), 2.0) for x in range(n_points)]
    chart = line_chart({"a": points}, "x", "y")
    drawn = chart.lines[0].points.split()
    assert len(drawn) == min(n_points, 400)
    last = float(drawn[-1].split(",")[0])
    assert LineChart.left <= last <= LineChart.right
