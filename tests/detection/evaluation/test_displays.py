"""Displays of precision-recall and ROC curves."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from badacost.detection.evaluation import (
    PrecisionRecallCurve,
    PrecisionRecallDisplay,
    RocCurve,
    RocDisplay,
)

CURVE = PrecisionRecallCurve([0.5, 1.0], [1.0, 0.5], [2.0, 1.0])
ROC = RocCurve([0.0, 2.0, 9.0], [0.0, 0.5, 0.9], [np.inf, 2.0, 1.0])


def test_precision_recall():
    ax = Figure().subplots()
    display = PrecisionRecallDisplay({"first": CURVE, "second": CURVE}).plot(ax=ax)
    assert display.ax_ is ax
    assert [line.get_label() for line in display.lines_] == ["first, AP 0.750", "second, AP 0.750"]
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), CURVE.recall)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), CURVE.precision)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("recall", "precision")
    assert display.lines_[0].get_color() != display.lines_[1].get_color()


def test_roc():
    display = RocDisplay({"mine": ROC}, false_positives=5).plot()
    assert display.lines_[0].get_label() == "mine, 0.500 below 5 false positives"
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), ROC.false_positives)
    assert display.ax_.get_xlim() == (0.0, 9.0)


def test_curves_without_points():
    empty = PrecisionRecallCurve([], [], [])
    assert PrecisionRecallDisplay({"none": empty}).plot().lines_[0].get_label() == "none, AP 0.000"
    RocDisplay({"none": RocCurve([], [], [])}).plot()


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        PrecisionRecallDisplay({})
    with pytest.raises(TypeError, match="must be a RocCurve"):
        RocDisplay({"mine": CURVE})
    with pytest.raises(TypeError, match="ax must be matplotlib axes"):
        PrecisionRecallDisplay({"mine": CURVE}).plot(ax=3)
