"""Outputs of exported models: calibrations, orders of classes, classes of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from badacost import (
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
)
from badacost.export import to_onnx
from badacost.export.graph import Graph, Tensor
from badacost.export.outputs import label_values
from tests.export.sessions import assert_same_results, hard_rows, run

SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
RNG = np.random.default_rng(0)
Y = np.arange(500) % 3
X = RNG.normal(size=(500, 4)) + RNG.normal(size=(3, 4))[Y]
POINTS, GROUPS = np.arange(12.0)[:, np.newaxis], np.arange(12) // 4
COSTS = np.array([[0.0, 1, 5], [2, 0.5, 1], [9, 4, 0]])  # correct decisions have costs, too


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", ["none", "temperature", "sigmoid", "isotonic"])
def test_calibrations(calibration, n_classes) -> None:
    chosen = n_classes > Y
    booster = SAMMEClassifier(**SMALL)
    costs = COSTS[:n_classes, :n_classes]
    model = MinimumCostClassifier(booster, costs, calibration=calibration, cv=3)
    model.fit(X[chosen], Y[chosen])
    rows = hard_rows(model.estimator_.forest_, X)
    assert_same_results(model, run(to_onnx(model), rows), rows)


@pytest.mark.parametrize("names", [["b", "a", "c"], [3, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibrations_of_named_classes(calibration, n_classes, names) -> None:
    chosen = n_classes > Y
    booster = SAMMEClassifier(**SMALL)
    model = MinimumCostClassifier(booster, calibration=calibration, cv=3)
    model.fit(X[chosen], np.array(names)[Y[chosen]])
    rows = hard_rows(model.estimator_.forest_, X)
    assert_same_results(model, run(to_onnx(model), rows), rows)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_votes_become_probabilities(calibration, n_classes) -> None:
    chosen = n_classes > Y
    booster = AdaC2M1Classifier(COSTS[:n_classes, :n_classes], **SMALL | {"max_depth": 5})
    model = MinimumCostClassifier(booster, calibration=calibration, cv=3)
    model.fit(X[chosen], Y[chosen])
    rows = hard_rows(model.estimator_.forest_, X)
    assert_same_results(model, run(to_onnx(model), rows), rows)


def test_a_calibration_to_a_constant() -> None:
    """One threshold, of samples that the classifier cannot tell apart."""
    same = np.zeros((40, 1))
    model = MinimumCostClassifier(CostSensitiveTreeClassifier(), calibration="isotonic", cv=2).fit(
        same, np.arange(40) % 2
    )
    assert len(model.calibrator_.calibrated_classifiers_[0].calibrators[0].X_thresholds_) == 1
    assert_same_results(model, run(to_onnx(model), same), same)


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_frozen_classifiers_and_orders_of_classes(calibration) -> None:
    labels = pd.Categorical.from_codes(Y, ["low", "mid", "high"], ordered=True)
    names = np.asarray(labels)
    frozen = FrozenEstimator(SAMMEClassifier(**SMALL).fit(X, names))
    costs = pd.DataFrame(COSTS, index=names[:3], columns=names[:3])
    model = MinimumCostClassifier(frozen, costs, calibration=calibration).fit(X, labels)
    assert model.classes_.tolist() == ["low", "mid", "high"]
    assert model.estimator_.classes_.tolist() == ["high", "low", "mid"]
    got = run(to_onnx(model), X)
    assert_same_results(model, got, X)


@pytest.mark.parametrize("input_type", ["double", "float"])
@pytest.mark.parametrize("calibration", ["none", "temperature", "sigmoid"])
def test_classifiers_of_scikit_learn(calibration, input_type) -> None:
    model = MinimumCostClassifier(LogisticRegression(), COSTS, calibration=calibration).fit(X, Y)
    dtype = np.float64 if input_type == "double" else np.float32
    got = run(to_onnx(model, input_type=input_type, abstain=0.5), X.astype(dtype))
    assert [*got] == ["label", "probabilities", "expected_costs", "asked"]
    shares = model.predict_proba(X.astype(dtype))
    np.testing.assert_allclose(got["probabilities"], shares, atol=1e-6)
    costs = model.predict_costs(X)
    clear = np.diff(np.partition(costs, 1, axis=1)[:, :2], axis=1)[:, 0] > 1e-5
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(got["label"][clear], model.predict(X)[clear])
    asked = costs.min(axis=1) >= 0.5
    assert (got["asked"] == asked).mean() > 0.99


def test_a_classifier_without_probabilities_is_refused() -> None:
    model = MinimumCostClassifier(LinearSVC(), calibration="sigmoid").fit(X, Y)
    with pytest.raises(TypeError, match="LinearSVC cannot be exported, since it has no"):
        to_onnx(model)


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_probabilities_of_separations_for_any_scores(n_classes) -> None:
    """Far beyond what boosting reaches, ties among them."""
    rng = np.random.default_rng(n_classes)
    scores = rng.normal(size=(400, n_classes)) * np.logspace(-3, 4, 400)[:, np.newaxis]
    scores[::7] = 0.0
    model = PIBoostClassifier()
    model.classes_ = np.arange(n_classes)
    graph = Graph("", 5)
    scores_in_graph: Any = Tensor(graph, "scores")
    result: Any = model._posterior(scores_in_graph)
    expected = model._posterior(scores)
    exported = graph.to_model("g", {"scores": scores[:0]}, {result.name: expected[:0]})
    got = run(exported, {"scores": scores})[result.name]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_decisions_by_probabilities_need_no_costs() -> None:
    model = CostBoostClassifier(n_estimators=3, n_folds=2, random_state=0).fit(X, Y)
    assert_same_results(model, run(to_onnx(model), X), X)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["a", "bc", "dé"], object),
        (np.array(["a", "bc", "x"], dtype=object), object),
        ([3, -1, 2**40], np.int64),
        (np.array([1, 2, 255], np.uint8), np.int64),
        ([0.0, 1.0, 2.0], np.float64),
    ],
)
def test_labels_are_the_classes(classes, dtype) -> None:
    y = np.asarray(classes)[GROUPS]
    model = BAdaCostClassifier(n_estimators=3).fit(POINTS, y)
    got = run(to_onnx(model), POINTS)
    assert got["label"].dtype == dtype
    assert got["label"].tolist() == model.predict(POINTS).tolist() == y.tolist()


def test_booleans() -> None:
    model = BAdaCostClassifier(n_estimators=3).fit(POINTS, GROUPS == 1)
    got = run(to_onnx(model), POINTS)
    assert got["label"].dtype == np.bool_
    assert got["label"].tolist() == (GROUPS == 1).tolist()


@pytest.mark.parametrize(
    "classes", [np.array([1, "a"], dtype=object), np.array([2**63], np.uint64), np.array([1j, 2])]
)
def test_classes_without_a_type_are_refused(classes) -> None:
    with pytest.raises(TypeError, match="have no type in ONNX: make all of them texts"):
        label_values(classes)
