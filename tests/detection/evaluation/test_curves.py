"""Curves: average precision against areas added up by hand, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.evaluation import PrecisionRecallCurve, RocCurve

outcomes = st.lists(st.booleans(), min_size=1, max_size=30)


def curve_of(hits, missed=0):
    return PrecisionRecallCurve.from_outcomes(
        hits, np.arange(len(hits), 0, -1), sum(hits) + missed or 1
    )


def slow_average_precision(hits, n_objects):
    """Each object is found at one rank, or never; it is worth the best precision from there on."""
    precision = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits))]
    return sum(max(precision[i:]) for i, hit in enumerate(hits) if hit) / n_objects


@given(outcomes, st.integers(0, 5))
def test_average_precision_is_the_mean_over_objects(hits, missed):
    curve = curve_of(hits, missed)
    expected = slow_average_precision(hits, sum(hits) + missed or 1)
    assert curve.average_precision() == pytest.approx(expected, abs=1e-12)
    assert 0.0 <= curve.average_precision() <= 1.0


@given(outcomes, st.integers(0, 5), st.sampled_from([2, 11, 101]))
def test_average_precision_at_points(hits, missed, points):
    n_objects = sum(hits) + missed or 1
    n_true = np.cumsum(hits)
    best = []
    for i in range(points):
        reached = n_true * (points - 1) >= i * n_objects  # whole numbers: nothing is rounded
        precision = n_true / np.arange(1, len(hits) + 1)
        best.append(precision[reached].max(initial=0.0))
    curve = curve_of(hits, missed)
    assert curve.average_precision(points=points) == pytest.approx(np.mean(best), abs=1e-12)


@given(outcomes, st.integers(0, 5))
def test_interpolated_precision_never_rises(hits, missed):
    curve = curve_of(hits, missed)
    assert (np.diff(curve.interpolated) <= 0.0).all()
    assert (curve.interpolated >= curve.precision).all()


def test_a_recall_of_three_tenths_reaches_the_step_of_three_tenths():
    assert curve_of([True] * 3, missed=7).average_precision(points=11) == pytest.approx(4 / 11)


def test_no_detections():
    curve = PrecisionRecallCurve.from_outcomes([], [], 3)
    assert curve.average_precision() == 0.0
    assert curve.average_precision(points=11) == 0.0


@pytest.mark.parametrize(
    ("recall", "precision", "scores", "message"),
    [
        ([0.5], [1.0, 1.0], [1.0], "same length"),
        ([0.5], [np.nan], [1.0], "without NaN"),
        (0.5, 1.0, 1.0, "lists"),
        ([1.5], [1.0], [1.0], "recall must lie between 0 and 1"),
        ([0.5], [-0.1], [1.0], "precision must lie between 0 and 1"),
        ([0.5, 0.4], [1.0, 1.0], [2.0, 1.0], "recall must not decrease"),
    ],
)
def test_what_is_no_curve(recall, precision, scores, message):
    with pytest.raises(ValueError, match=message):
        PrecisionRecallCurve(recall, precision, scores)


def test_points_are_checked():
    with pytest.raises(ValueError, match="points"):
        curve_of([True]).average_precision(points=1)


def test_rate_below_leaves_out_the_number_itself():
    curve = RocCurve([0, 3, 5], [0.1, 0.4, 0.6], [3.0, 2.0, 1.0])
    assert [curve.rate_below(n) for n in (0, 3, 3.5, 5, 100)] == [0.0, 0.1, 0.4, 0.4, 0.6]


def test_json():
    curve = RocCurve([0, 1], [0.0, 0.5], [np.inf, 2.0])
    assert json.loads(json.dumps(curve.to_dict(), allow_nan=False)) == {
        "false_positives": [0.0, 1.0],
        "true_positive_rate": [0.0, 0.5],
        "thresholds": [None, 2.0],
    }
    json.dumps(curve_of([True, False]).to_dict(), allow_nan=False)
