"""Tests of the bars of contributions to a decision."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from badacost.explain import explain_decision
from badacost.plotting import DecisionExplanationDisplay


@pytest.fixture
def explanation(model, samples):
    return explain_decision(model, samples[0][0], "ant", "cat")


def test_bars_are_the_rows_then_base_and_total(explanation):
    display = DecisionExplanationDisplay(explanation).plot(max_features=3)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    rows = explanation.rows(3)
    assert names == [*(name for name, _ in rows), "nothing known yet", "difference"]
    assert names[3] == "2 other features"
    widths = [bar.get_width() for bar in display.bars_]
    amounts = [*(amount for _, amount in rows), explanation.base, explanation.total]
    np.testing.assert_allclose(widths, amounts)
    assert sum(widths[:-1]) == pytest.approx(widths[-1])
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    colours = {bar.get_facecolor() for bar in display.bars_[:4] if bar.get_width() >= 0}
    others = {bar.get_facecolor() for bar in display.bars_[:4] if bar.get_width() < 0}
    assert not colours & others


def test_words(explanation):
    display = explanation.plot()
    assert display.ax_.get_title() == f"Why {explanation.headline}"
    assert display.ax_.get_xlabel() == "expected cost of 'cat' less that of 'ant'"
    assert len(display.bars_) == 7
    numbers = [text.get_text() for text in display.ax_.texts]
    assert all(number[0] in "+-" for number in numbers)


def test_given_axes_and_long_names(model, samples):
    explanation = explain_decision(model, samples[0][0])
    explanation.feature_names[0] = "x" * 100
    ax = Figure().subplots()
    display = explanation.plot(ax=ax)
    assert display.ax_ is ax
    assert max(len(label.get_text()) for label in ax.get_yticklabels()) == 40


def test_max_features_is_checked(explanation):
    with pytest.raises(ValueError, match="max_features must be an integer at least 1 or None"):
        explanation.plot(max_features=0)
