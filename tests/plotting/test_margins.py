"""Tests of the distributions of margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from badacost.plotting import MarginDisplay


def margin(scores, truth):
    """The margin of one sample, from its definition."""
    return min(score for k, score in enumerate(scores) if k != truth) - scores[truth]


def margins_of(costs, y, classes):
    index = {label: k for k, label in enumerate(classes)}
    return [margin(scores, index[label]) for scores, label in zip(costs, y, strict=True)]


def assert_distribution(line, margins):
    """The line is the fraction of margins at or below each value."""
    x, fraction = line.get_data()
    np.testing.assert_allclose(x[1:], np.sort(margins))
    np.testing.assert_allclose(fraction, np.arange(len(margins) + 1) / len(margins))


def test_margins_after_some_rounds(model, samples):
    X, y = samples
    display = MarginDisplay.from_estimator(model, X, y, rounds=(10, 1))
    stages = list(model.staged_cost_scores(X))
    assert display.rounds == [1, 10]
    for row, line, number in zip(display.margins, display.lines_, (1, 10), strict=True):
        expected = margins_of(stages[number - 1], y, model.classes_)
        np.testing.assert_allclose(row, expected)
        assert_distribution(line, expected)
        wrong = np.mean(np.array(expected) <= 0)
        assert line.get_label() == f"round {number} ({wrong:.1%})"


def test_rounds_by_default(model, samples):
    assert MarginDisplay.from_estimator(model, *samples).rounds == [1, 10, 12]
    assert MarginDisplay.from_estimator(model, *samples, per_class=True).rounds == [12]
    last = MarginDisplay.from_estimator(model, *samples).margins[-1]
    np.testing.assert_allclose(
        last, margins_of(model.cost_scores(samples[0]), samples[1], model.classes_)
    )


def test_positive_margins_are_right_decisions(model, samples):
    X, y = samples
    display = MarginDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.margins[-1] > 0, model.predict(X) == y)


def test_each_class_apart(model, samples):
    X, y = samples
    display = MarginDisplay.from_estimator(model, X, y, rounds=(2, 12), per_class=True)
    assert len(display.lines_) == 6
    lines = iter(display.lines_)
    for label in model.classes_:
        for row, number in zip(display.margins, (2, 12), strict=True):
            line = next(lines)
            assert line.get_label() == f"{label}, round {number}"
            assert_distribution(line, row[y == label])
    bar = display.figure_.axes[1]
    fractions = [np.mean(display.margins[1][y == label] <= 0) for label in model.classes_]
    assert [text.get_text() for text in bar.get_yticklabels()] == [
        f"{label} ({part:.1%})" for label, part in zip(model.classes_, fractions, strict=True)
    ]


def test_more_rounds_than_dashes(model, samples):
    display = MarginDisplay.from_estimator(model, *samples, rounds=range(1, 9), per_class=True)
    assert len(display.lines_) == 24


def test_a_class_without_samples():
    display = MarginDisplay.from_predictions(
        [[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]], [5, 7], classes=[5, 6, 7], per_class=True
    )
    np.testing.assert_array_equal(display.margins, [[1.0, -1.0]])
    assert len(display.lines_) == 2
    names = [text.get_text() for text in display.figure_.axes[1].get_yticklabels()]
    assert names == ["5 (0.0%)", "6 (no samples)", "7 (100.0%)"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_legend_covers_no_curve(sign):
    margins = sign * np.array([np.linspace(-1, 0, 50), np.r_[np.linspace(-1, 0, 49), 10.0]])
    display = MarginDisplay(margins, np.resize([0, 1], 50), rounds=[1, 2]).plot()
    display.figure_.draw_without_rendering()
    box = display.ax_.get_legend().get_window_extent()
    for line in display.lines_:
        assert not box.count_contains(display.ax_.transData.transform(line.get_xydata()))


def test_colours(model, samples):
    display = MarginDisplay.from_estimator(
        model, *samples, per_class=True, colors=["red", "blue", "black"]
    )
    assert [line.get_color() for line in display.lines_] == ["red", "blue", "black"]


@settings(max_examples=12)
@given(st.data())
def test_from_predictions(data):
    n_classes = data.draw(st.integers(2, 6))
    n_samples = data.draw(st.integers(1, 15))
    scores = data.draw(arrays(np.float64, (n_samples, n_classes), elements=st.floats(-1e6, 1e6)))
    y = data.draw(arrays(np.int64, n_samples, elements=st.integers(0, n_classes - 1)))
    kept = scores.copy()
    display = MarginDisplay.from_predictions(
        scores, y, classes=range(n_classes), ax=Figure().subplots()
    )
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_allclose(display.margins[0], margins_of(scores, y, range(n_classes)))
    assert_distribution(display.lines_[0], display.margins[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0, 1.0, 2.0]], [0]), "3 columns and 1 classes: give classes"),
        (([[0.0, 1.0], [1.0, 0.0]], [0]), "costs must have a column for each class"),
        (([[0.0, 1.0]], [0, 1]), r"must have [12] entries"),
        (([[0.0, np.inf]], [0, 1]), "costs contains infinity"),
        (([0.0, 1.0], [0, 1]), "Expected 2D array"),
    ],
)
def test_errors_of_predictions(arguments, message):
    with pytest.raises(ValueError, match=message):
        MarginDisplay.from_predictions(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margins": [[1.0]], "y": [0, 1]}, r"must have [12] entries"),
        ({"margins": [[1.0]], "y": [0], "classes": [1, 2]}, r"not among the classes \(0\)"),
        ({"margins": [[1.0], [2.0]], "y": [0]}, "rounds must number the rows of margins"),
        ({"margins": [[1.0], [2.0]], "y": [0], "rounds": [3, 3]}, "must number the rows"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        MarginDisplay(**arguments)


def test_errors(model, samples):
    X, y = samples
    with pytest.raises(ValueError, match=r"numbers from 1 to 12; got \[1, 13, 100\]"):
        MarginDisplay.from_estimator(model, X, y, rounds=(1, 13, 100))
    with pytest.raises(ValueError, match="rounds must be numbers from 1 to 12"):
        MarginDisplay.from_estimator(model, X, y, rounds=(0,))
    with pytest.raises(ValueError, match="rounds must be numbers from 1 to 12"):
        MarginDisplay.from_estimator(model, X, y, rounds=())
    with pytest.raises(ValueError, match=r"dog"):
        MarginDisplay.from_estimator(model, X[:1], ["dog"])
    plain = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="needs an estimator with staged_cost_scores: 'Logistic"):
        MarginDisplay.from_estimator(plain, X, y)
