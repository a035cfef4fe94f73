"""Tests of the bars of feature importances and of contributions to a decision."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost.explain import explain_decision
from badacost.plotting import DecisionExplanationDisplay, FeatureImportancesDisplay


def drawn(display):
    """Names and widths from top to bottom, as they are on the axes."""
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    centres = [bar.get_y() + bar.get_height() / 2 for bar in display.bars_]
    np.testing.assert_allclose(centres, display.ax_.get_yticks())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    return list(zip(names, [bar.get_width() for bar in display.bars_], strict=True))


def test_largest_on_top_with_the_names_of_the_model(model, samples):
    X, y = samples
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    named = BAdaCostClassifier(n_estimators=12, max_depth=2).fit(frame, y)
    display = FeatureImportancesDisplay.from_estimator(named)
    expected = sorted(zip("abcde", named.feature_importances_, strict=True), key=lambda x: -x[1])
    assert drawn(display) == expected
    plain = FeatureImportancesDisplay.from_estimator(model)
    assert {name for name, _ in drawn(plain)} == {f"feature {i}" for i in range(5)}


def test_other_estimators(samples):
    forest = RandomForestClassifier(5, random_state=0).fit(*samples)
    display = FeatureImportancesDisplay.from_estimator(forest, feature_names=list("vwxyz"))
    best = "vwxyz"[forest.feature_importances_.argmax()]
    assert drawn(display)[0] == (best, forest.feature_importances_.max())


@settings(max_examples=15)
@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)),
    st.integers(1, 45) | st.none(),
)
def test_the_largest_are_kept_in_order(importances, max_features):
    ax = Figure().subplots()
    display = FeatureImportancesDisplay(importances).plot(max_features=max_features, ax=ax)
    widths = [width for _, width in drawn(display)]
    assert widths == sorted(importances, reverse=True)[:max_features]
    assert all(importances[int(name.split()[1])] == width for name, width in drawn(display))
    hidden = len(importances) - len(widths)
    assert ax.get_title() == (
        f"The {len(widths)} largest of {len(importances)} importances" if hidden else ""
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"importances": [[0.1, 0.9]]}, "importances must be a sequence"),
        ({"importances": [0.1, np.nan]}, "importances contains NaN"),
        (
            {"importances": [0.1, 0.9], "feature_names": ["a"]},
            "feature_names must have 2 entries; got 1",
        ),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeatureImportancesDisplay(**arguments)


def test_max_features_is_checked():
    with pytest.raises(ValueError, match="max_features must be an integer at least 1 or None"):
        FeatureImportancesDisplay([1.0]).plot(max_features=0)


def test_estimators_without_importances(samples):
    with pytest.raises(TypeError, match="needs an estimator with feature_importances_: 'Logistic"):
        FeatureImportancesDisplay.from_estimator(LogisticRegression().fit(*samples))
    weak = DecisionTreeClassifier(max_depth=1)
    boosted = BAdaCostClassifier(estimator=weak, n_estimators=2).fit(*samples)
    with pytest.raises(TypeError, match="feature_importances_ needs the built-in tree"):
        FeatureImportancesDisplay.from_estimator(boosted)


@pytest.fixture
def explanation(model, samples):
    return explain_decision(model, samples[0][0], "ant", "cat")


def test_bars_are_the_rows_then_base_and_total(explanation):
    display = DecisionExplanationDisplay(explanation).plot(max_features=3)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    rows = explanation.rows(3)
    assert names == [*(name for name, _ in rows), "baseline", "difference"]
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
    assert display.ax_.get_xlabel() == "expected cost of 'cat' minus that of 'ant'"
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


def test_max_features_of_an_explanation_is_checked(explanation):
    with pytest.raises(ValueError, match="max_features must be an integer at least 1 or None"):
        explanation.plot(max_features=0)
