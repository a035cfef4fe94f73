"""Tests of the confusion matrix in money."""

from __future__ import annotations

import itertools
import string

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from badacost._utils.numbers import short_number
from badacost.metrics import average_cost
from badacost.plotting import CostConfusionDisplay

TRUE = ["ant", "ant", "ant", "bee", "bee", "cat", "cat", "cat", "cat"]
PREDICTED = ["ant", "bee", "cat", "ant", "ant", "bee", "bee", "bee", "cat"]
COUNTS = np.array([[1, 1, 1], [2, 0, 0], [0, 3, 1]])  # counted by hand


def random_decisions(n_classes, n_samples=400):
    rng = np.random.default_rng(n_classes)
    truth = rng.integers(n_classes, size=n_samples)
    wrong = rng.random(n_samples) < 0.4
    guess = np.where(wrong, rng.integers(n_classes, size=n_samples), truth)
    costs = rng.integers(1, 900, size=(n_classes, n_classes)).astype(float)
    np.fill_diagonal(costs, 0.0)
    return truth, guess, costs


def overlapping(boxes):
    """Pairs of boxes that cover each other by more than a pixel."""
    return [
        (a, b)
        for a, b in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]


def test_numbers_behind_the_artists(costs):
    display = CostConfusionDisplay.from_predictions(TRUE, PREDICTED, costs)
    money = COUNTS * costs
    np.testing.assert_array_equal(display.costs, money)
    np.testing.assert_array_equal(display.counts, COUNTS)
    np.testing.assert_allclose(display.im_.get_array(), money / money.sum())
    for i, j in np.ndindex(3, 3):
        full = COUNTS[i, j] > 0
        assert display.text_[i, j].get_text() == (f"{money[i, j]:g}" if full else "")
        assert display.count_text_[i, j].get_text() == (f"{COUNTS[i, j]}" if full else "")
        assert display.text_[i, j].get_fontsize() > display.count_text_[i, j].get_fontsize()
    assert display.ax_.get_title() == f"Average cost per decision: {money.sum() / 9:.3g}"
    for labels in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["ant", "bee", "cat"]
    assert display.ax_.get_ylabel() == "true class"


def test_a_column_for_those_that_are_asked(costs):
    answers = [*PREDICTED[:-2], "ask a person", "ask a person"]
    display = CostConfusionDisplay.from_predictions(TRUE, answers, costs, abstain=4)
    assert display.costs.shape == display.counts.shape == display.text_.shape == (3, 4)
    np.testing.assert_array_equal(display.counts[:, 3], [0, 0, 2])
    np.testing.assert_array_equal(display.costs[:, 3], [0, 0, 8])
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == ["ant", "bee", "cat", "ask a person"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["ant", "bee", "cat"]
    amounts = np.arange(1.0, 28.0).reshape(9, 3)
    display = CostConfusionDisplay.from_predictions(TRUE, PREDICTED, sample_cost=amounts)
    assert display.costs[0, 2] == amounts[2, 2]
    assert display.costs.trace() == 0


def test_text_stands_out_from_its_cell(costs):
    display = CostConfusionDisplay.from_predictions(TRUE, PREDICTED, costs)
    costliest = np.unravel_index(display.costs.argmax(), (3, 3))
    assert display.text_[costliest].get_color() == "white"
    assert display.text_[0, 0].get_color() == "black"


def test_from_estimator_takes_its_costs_or_others(model, samples, costs):
    X, y = samples
    counts = confusion_matrix(y, model.predict(X))
    own = CostConfusionDisplay.from_estimator(model, X, y)
    np.testing.assert_allclose(own.costs, counts * costs)
    other = CostConfusionDisplay.from_estimator(model, X, y, cost_matrix=costs.T)
    np.testing.assert_allclose(other.costs, counts * costs.T)
    assert own.display_labels == ["ant", "bee", "cat"]
    names = CostConfusionDisplay.from_estimator(model, X, y, display_labels=["A", "B", "C"])
    assert names.ax_.get_xticklabels()[0].get_text() == "A"


def test_any_classifier_with_costs_in_a_frame(samples, costs):
    X, y = samples
    plain = LogisticRegression().fit(X, y)
    order = ["cat", "ant", "bee"]
    frame = pd.DataFrame(costs, index=["ant", "bee", "cat"], columns=["ant", "bee", "cat"])
    frame = frame.loc[order, order]
    display = CostConfusionDisplay.from_estimator(plain, X, y, cost_matrix=frame)
    expected = confusion_matrix(y, plain.predict(X)) * costs
    np.testing.assert_allclose(display.costs, expected)
    shuffled = CostConfusionDisplay.from_predictions(y, plain.predict(X), frame)
    assert shuffled.display_labels == order
    np.testing.assert_allclose(shuffled.costs, expected[np.ix_([2, 0, 1], [2, 0, 1])])
    mapping = frame.T.to_dict()  # {truth: {prediction: cost}}
    again = CostConfusionDisplay.from_predictions(y, plain.predict(X), mapping)
    np.testing.assert_allclose(again.costs, shuffled.costs)


def test_weights(costs):
    weight = np.arange(1.0, 10.0)
    display = CostConfusionDisplay.from_predictions(TRUE, PREDICTED, costs, sample_weight=weight)
    expected = confusion_matrix(TRUE, PREDICTED, sample_weight=weight)
    np.testing.assert_allclose(display.counts, expected)
    np.testing.assert_allclose(display.costs, expected * costs)
    average = (expected * costs).sum() / weight.sum()
    assert display.ax_.get_title().endswith(short_number(average))


def test_decisions_that_cost_nothing(costs):
    display = CostConfusionDisplay.from_predictions(TRUE, TRUE, costs)
    assert not display.im_.get_array().any()
    assert display.ax_.get_title() == "Average cost per decision: 0"
    display.figure_.draw_without_rendering()


@pytest.mark.parametrize("n_classes", [2, 3, 10, 26])
def test_nothing_overlaps(n_classes):
    truth, guess, costs = random_decisions(n_classes)
    names = [f"class {letter}" for letter in string.ascii_lowercase[:n_classes]]
    display = CostConfusionDisplay.from_predictions(truth, guess, costs, display_labels=names)
    display.figure_.draw_without_rendering()
    labels = display.ax_.get_xticklabels()
    rotated = labels[0].get_rotation() == 90
    assert rotated == (n_classes > 3)
    assert not overlapping([label.get_window_extent() for label in labels])
    assert not overlapping([label.get_window_extent() for label in display.ax_.get_yticklabels()])
    assert display.text_ is not None
    for i, j in np.argwhere(display.counts > 0):
        boxes = [text[i, j].get_window_extent() for text in (display.text_, display.count_text_)]
        assert not overlapping(boxes)
        (left, bottom), (right, top) = display.ax_.transData.transform(
            [(j - 0.5, i + 0.5), (j + 0.5, i - 0.5)]
        )
        assert all(left <= box.x0 and box.x1 <= right for box in boxes)
        assert all(bottom <= box.y0 + 1 and box.y1 - 1 <= top for box in boxes)


def test_numbers_are_left_out_where_they_cannot_be_read():
    truth, guess, costs = random_decisions(26)
    _, axes = plt.subplots(1, 2, figsize=(8, 4))
    small = CostConfusionDisplay.from_predictions(truth, guess, costs, ax=axes[0])
    assert small.text_ is None
    assert small.count_text_ is None
    assert not small.ax_.texts
    asked = CostConfusionDisplay.from_predictions(
        truth, guess, costs, ax=axes[1], include_values=True
    )
    assert asked.text_.shape == (26, 26)
    few = CostConfusionDisplay.from_predictions([0, 1], [1, 1], costs[:2, :2])
    assert few.text_ is not None
    without = few.plot(include_values=False)
    assert without.text_ is None


def test_colorbar_and_colours(costs):
    display = CostConfusionDisplay.from_predictions(TRUE, PREDICTED, costs, colorbar=False)
    assert display.figure_.axes == [display.ax_]
    display.plot(cmap="Blues")
    assert display.im_.get_cmap().name == "Blues"
    assert [ax.get_ylabel() for ax in display.figure_.axes[1:]] == ["fraction of the total cost"]


@settings(max_examples=6)
@given(st.data())
def test_sums_are_those_of_the_metrics(data):
    n_classes = data.draw(st.integers(2, 6))
    label = st.integers(0, n_classes - 1)
    pairs = data.draw(st.lists(st.tuples(label, label), min_size=1, max_size=30))
    cost = st.floats(0.01, 1e6)
    costs = np.array(
        data.draw(
            st.lists(
                st.lists(cost, min_size=n_classes, max_size=n_classes),
                min_size=n_classes,
                max_size=n_classes,
            )
        )
    )
    np.fill_diagonal(costs, 0.0)
    truth, guess = np.array(pairs).T
    display = CostConfusionDisplay.from_predictions(
        truth, guess, costs, labels=range(n_classes), ax=Figure().subplots()
    )
    assert display.counts.sum() == len(pairs)
    average = average_cost(truth, guess, costs, labels=range(n_classes))
    assert display.costs.sum() / len(pairs) == pytest.approx(average)
    fractions = display.im_.get_array()
    assert fractions.sum() == pytest.approx(1.0 if average else 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1, 2]], [[1, 1, 1]]), r"shape \(K, K\) or \(K, K \+ 1\); got \(1, 3\)"),
        (([[0, 1], [1, 0]], [[1]]), r"got \(2, 2\) and \(1, 1\)"),
        (([[0, -1], [1, 0]], np.ones((2, 2))), "Negative values in data passed to costs"),
        (([[0, np.nan], [1, 0]], np.ones((2, 2))), "costs contains NaN"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        CostConfusionDisplay(*arguments)


def test_errors(model, samples, costs):
    X, y = samples
    with pytest.raises(ValueError, match="display_labels must have 3 entries; got 1"):
        CostConfusionDisplay.from_estimator(model, X, y, display_labels=["a"])
    with pytest.raises(ValueError, match=r"have classes \['dog'\]"):
        CostConfusionDisplay.from_estimator(model, X[:1], ["dog"])
    with pytest.raises(ValueError, match="pass labels="):
        CostConfusionDisplay.from_predictions(["ant"], ["bee"], costs)
    plain = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="without cost_matrix needs an estimator with cost_matrix_"):
        CostConfusionDisplay.from_estimator(plain, X, y)
    with pytest.raises(TypeError, match="needs an estimator with predict"):
        CostConfusionDisplay.from_estimator(object(), X, y)
