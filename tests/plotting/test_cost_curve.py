"""Tests of the curves of average cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost.costs import labelled_costs
from badacost.plotting import CostCurveDisplay


def drawn(display):
    """The curves by name, as they are on the axes."""
    for line in display.lines_:
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(line.get_ydata()) + 1))
    return {line.get_label(): line.get_ydata() for line in display.lines_}


def staged_costs(model, X, y, costs, weight=None):
    """Average costs after each round, computed sample by sample."""
    index = {label: k for k, label in enumerate(model.classes_)}
    return [
        np.average(
            [costs[index[t], index[p]] for t, p in zip(y, stage, strict=True)], weights=weight
        )
        for stage in model.staged_predict(X)
    ]


def test_scores_of_training(model):
    display = CostCurveDisplay.from_estimator(model)
    curves = drawn(display)
    assert [*curves] == ["train", "validation"]
    np.testing.assert_array_equal(curves["train"], model.train_score_)
    np.testing.assert_array_equal(curves["validation"], model.validation_score_)
    best = model.validation_score_.argmin()
    assert display.best_.get_xdata() == [best + 1]
    assert display.best_.get_ydata() == [model.validation_score_[best]]
    assert display.stop_ is None
    assert display.ax_.get_ylabel() == "average cost per decision"
    assert display.ax_.get_xlabel() == "number of trees"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["train", "validation", display.best_.get_label()]


def test_training_alone_and_the_loss(samples):
    model = BAdaCostClassifier(n_estimators=3, max_depth=1, scoring="loss").fit(*samples)
    display = CostCurveDisplay.from_estimator(model)
    assert [*drawn(display)] == ["train"]
    assert display.ax_.get_ylabel() == "loss"
    on_samples = CostCurveDisplay.from_estimator(model, *samples)
    assert on_samples.ax_.get_ylabel() == "average cost per decision"


def test_costs_of_samples(model, samples, costs):
    X, y = samples
    display = CostCurveDisplay.from_estimator(model, X, y)
    np.testing.assert_allclose(drawn(display)["given samples"], staged_costs(model, X, y, costs))


def test_several_sets_with_weights_and_other_costs(model, samples, costs):
    X, y = samples
    weight = np.linspace(0.1, 2.0, 120)
    sets = {"train": (X[:120], y[:120], weight), "test": (X[120:], y[120:])}
    display = CostCurveDisplay.from_estimator(
        model, sets=sets, cost_matrix=costs.T, best_of="train"
    )
    curves = drawn(display)
    train = staged_costs(model, X[:120], y[:120], costs.T, weight)
    np.testing.assert_allclose(curves["train"], train)
    np.testing.assert_allclose(curves["test"], staged_costs(model, X[120:], y[120:], costs.T))
    assert display.best_.get_xdata() == [np.argmin(train) + 1]
    assert len({line.get_linestyle() for line in display.lines_}) == 2


def test_estimators_of_others(samples, costs):
    X, y = samples
    weak = DecisionTreeClassifier(max_depth=1)
    model = AdaBoostClassifier(weak, n_estimators=5, random_state=0).fit(X, y)
    display = CostCurveDisplay.from_estimator(model, X, y, cost_matrix=costs)
    np.testing.assert_allclose(drawn(display)["given samples"], staged_costs(model, X, y, costs))


@pytest.mark.parametrize("n_estimators", [60, 3])
def test_where_early_stopping_stopped(samples, costs, n_estimators):
    # With 60 rounds there is a reason to stop; with 3 the last ones may only be dropped.
    X, y = samples
    model = BAdaCostClassifier(
        labelled_costs(costs, ["ant", "bee", "cat"]),
        n_estimators=n_estimators,
        early_stopping=True,
        n_iter_no_change=5,
        random_state=0,
    ).fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    display = CostCurveDisplay.from_estimator(model)
    assert model.n_estimators_ < n_estimators
    assert model.stop_reason_ == ("early stopping" if n_estimators == 60 else None)
    assert display.stop_.get_xdata() == [model.n_estimators_] * 2
    assert display.stop_.get_label() == "last round kept: early stopping"


def test_a_learner_without_mistakes_is_a_reason_to_stop():
    model = BAdaCostClassifier(n_estimators=5).fit([[0.0], [1.0]], ["a", "b"])
    display = CostCurveDisplay.from_estimator(model)
    assert display.stop_.get_label() == "last round kept: perfect"


@settings(max_examples=12)
@given(st.data())
def test_from_predictions(data):
    n_samples = data.draw(st.integers(1, 10))
    labels = st.lists(st.sampled_from("abc"), min_size=n_samples, max_size=n_samples)
    truth = data.draw(labels)
    stages = data.draw(st.lists(labels, min_size=1, max_size=5))
    costs = {
        t: {p: data.draw(st.floats(0.5, 100.0)) for p in "abc" if p != t} | {t: 0.0} for t in "abc"
    }
    display = CostCurveDisplay.from_predictions(
        truth, iter(stages), costs, name="mine", ax=Figure().subplots()
    )
    expected = [
        sum(costs[t][p] for t, p in zip(truth, stage, strict=True)) / n_samples for stage in stages
    ]
    np.testing.assert_allclose(drawn(display)["mine"], expected)
    best = display.best_.get_xdata()[0] - 1
    assert expected[best] == pytest.approx(min(expected))


def test_classes_of_predictions_are_those_of_the_metrics(costs):
    """An ordered categorical sets the order of an array, with classes that do not occur."""
    truth = pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)
    stages = [["high", "low"], ["low", "mid"]]
    display = CostCurveDisplay.from_predictions(truth, stages, costs)
    np.testing.assert_array_equal(display.curves["given samples"], [(7 + 11) / 2, 5 / 2])
    with pytest.raises(ValueError, match=r"3 columns .* 2 classes: pass labels="):
        CostCurveDisplay.from_predictions(["low", "high"], stages[:1], costs)


def test_best_round_is_the_first_of_equals():
    display = CostCurveDisplay({"a": [3.0, 1.0, 2.0, 1.0]}).plot()
    assert display.best_.get_xdata() == [2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"curves": {}}, "at least one curve"),
        ({"curves": {"a": [[1.0]]}}, "curve 'a' must be a sequence"),
        ({"curves": {"a": [np.nan]}}, "curve 'a' contains NaN"),
        ({"curves": {"a": []}}, "minimum of 1 is required"),
        ({"curves": {"a": [1.0]}, "best_of": "b"}, r"best_of must be one of \['a'\]"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        CostCurveDisplay(**arguments)


def test_errors(model, samples, costs):
    X, y = samples
    for wrong in ({"X": X}, {"y": y}, {"X": X, "y": y, "sets": {"a": (X, y)}}):
        with pytest.raises(ValueError, match="give X and y together, or sets, or neither"):
            CostCurveDisplay.from_estimator(model, **wrong)
    with pytest.raises(ValueError, match=r"set 'a' must be \(X, y\)"):
        CostCurveDisplay.from_estimator(model, sets={"a": (X,)})
    with pytest.raises(ValueError, match="dog"):
        CostCurveDisplay.from_estimator(model, X, np.where(y == "cat", "dog", y))
    with pytest.raises(ValueError, match="predictions must have 3 entries"):
        CostCurveDisplay.from_estimator(model, X, y[:3])
    plain = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="needs an estimator with staged_predict: 'Logistic"):
        CostCurveDisplay.from_estimator(plain, X, y, cost_matrix=costs)
    gradient = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="without X and y needs an estimator with cost_matrix_"):
        CostCurveDisplay.from_estimator(gradient)
    with pytest.raises(TypeError, match="without cost_matrix needs an estimator with cost_matrix_"):
        CostCurveDisplay.from_estimator(gradient, X, y)
