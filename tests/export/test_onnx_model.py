"""`to_onnx`: every classifier of the family decides in onnxruntime as it does here."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from lightgbm import LGBMClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from badacost import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CostGeneralizedAdaBoostClassifier,
    CostSensitiveTreeClassifier,
    CSAdaBoostClassifier,
    ImportedForestClassifier,
    LpCSBClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
    classifiers,
)
from badacost import family as relatives
from badacost.detection.models import synthetic_cars
from badacost.export import to_onnx
from badacost.tabular import TableClassifier
from tests.export.sessions import assert_same_results, hard_rows, run

SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
FEW_FOLDS: dict[str, Any] = {"n_estimators": 4, "n_folds": 2, "random_state": 0}


def make_data(n_classes: int, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples with missing values, their classes, and asymmetric costs."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, 6)) + 2.0 * rng.normal(size=(n_classes, 6))[y]
    X[rng.random(X.shape) < 0.05] = np.nan
    costs = rng.integers(1, 20, (n_classes, n_classes)) * (1.0 - np.eye(n_classes))
    return X, y, costs


def lightgbm() -> LGBMClassifier:
    return LGBMClassifier(n_estimators=4, learning_rate=0.5, num_leaves=6, verbose=-1, n_jobs=1)


def family(costs: np.ndarray) -> dict[str, Any]:
    """A small model of every kind."""
    several = {
        "AdaBoostM1": AdaBoostM1Classifier(**SMALL | {"max_depth": 6}),
        "AdaC2M1": AdaC2M1Classifier(costs, **SMALL | {"max_depth": 6}),
        "BAdaCost": BAdaCostClassifier(costs, **SMALL),
        "BAdaCost, bayes": BAdaCostClassifier(costs, decision="bayes", **SMALL),
        "BAdaCost, leaves": BAdaCostClassifier(costs, **SMALL | {"max_leaf_nodes": 7}),
        "CostBoost": CostBoostClassifier(costs, **FEW_FOLDS),
        "CostBoost, best": CostBoostClassifier(costs, tree="best", **FEW_FOLDS),
        "CostSensitiveTree": CostSensitiveTreeClassifier(costs, max_depth=5),
        "ImportedForest": ImportedForestClassifier(lightgbm(), costs),
        "LpCSB": LpCSBClassifier(costs, **SMALL),
        "MinimumCost": MinimumCostClassifier(SAMMEClassifier(**SMALL), costs),
        "PIBoost": PIBoostClassifier(**SMALL),
        "SAMME": SAMMEClassifier(**SMALL),
        "WangMultiBoost": WangMultiBoostClassifier(costs, n_pool=20, **SMALL),
    }
    if len(costs) < 6:
        several["PIBoost, pairs"] = PIBoostClassifier(subsets=len(costs) // 2, **SMALL)
    binary = {
        "CSAdaBoost": CSAdaBoostClassifier(costs, **SMALL),
        "CostGeneralized": CostGeneralizedAdaBoostClassifier(costs, **SMALL),
    }
    return several | (binary if len(costs) == 2 else {})


TASKS = {n_classes: make_data(n_classes) for n_classes in (2, 3, 20)}
# Types of input and versions of the operators: every kind of model meets every pair of them.
OPTIONS = {2: [("double", 5), ("float", 3)], 3: [("double", 3), ("float", 5)]}
OPTIONS[20] = OPTIONS[2]
CASES = [
    (n_classes, name, *options)
    for n_classes in TASKS
    for name in family(TASKS[n_classes][2])
    for options in OPTIONS[n_classes]
]


@cache
def fitted(n_classes: int, name: str) -> Any:
    X, y, costs = TASKS[n_classes]
    return family(costs)[name].fit(X, y)


def forest_of(model: Any) -> Any:
    return getattr(model, "estimator_", model).forest_


def test_the_whole_family_is_here() -> None:
    kinds = {type(model).__name__ for model in family(TASKS[2][2]).values()}
    assert kinds == {*classifiers.__all__, *relatives.__all__}


@pytest.mark.parametrize(("n_classes", "name", "input_type", "ml_opset"), CASES)
def test_same_decisions(n_classes, name, input_type, ml_opset) -> None:
    """On many rows with values on thresholds, a unit in the last place beside them, and NaN."""
    X, *_ = TASKS[n_classes]
    model = fitted(n_classes, name)
    dtype = np.float64 if input_type == "double" else np.float32
    rows = hard_rows(forest_of(model), X, dtype)
    assert np.isnan(rows).any()
    exported = to_onnx(model, input_type=input_type, ml_opset=ml_opset)
    got = run(exported, rows)
    assert got["label"].dtype == np.int64
    assert len(np.unique(got["label"])) > 1
    assert_same_results(model, got, rows)


def test_more_trees_than_an_operator_has() -> None:
    X, y, costs = TASKS[3]
    model = BAdaCostClassifier(costs, n_estimators=300, max_depth=1, learning_rate=0.02).fit(X, y)
    assert model.n_estimators_ == 300
    rows = hard_rows(model.forest_, X)
    exported = to_onnx(model)
    assert sum(node.op_type == "TreeEnsemble" for node in exported.graph.node) > 1
    assert_same_results(model, run(exported, rows), rows)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_any_number_of_rows_and_threads_gives_the_same_bits(n_threads) -> None:
    X, y, costs = TASKS[3]
    model = BAdaCostClassifier(costs, n_estimators=60, max_depth=3).fit(X, y)
    exported = to_onnx(model)
    for n_rows in (0, 1, 2, 37, len(X)):
        got = run(exported, X[:n_rows], n_threads)
        assert got["label"].shape == (n_rows,)
        if n_rows:
            np.testing.assert_array_equal(got["scores"], model.cost_scores(X[:n_rows]))


@pytest.mark.parametrize("n_classes", [4, 7])
def test_equal_costs_are_decided_alike(n_classes) -> None:
    """Pairs of classes have the same samples: their expected costs are equal, the first wins."""
    rng = np.random.default_rng(0)
    group = np.arange(300) % ((n_classes + 1) // 2)
    X = np.repeat(rng.normal(size=(300, 3)) + 2.0 * group[:, np.newaxis], 2, axis=0)
    y = 2 * np.repeat(group, 2) + np.tile([0, 1], 300)
    X, y = X[y < n_classes], y[y < n_classes]
    model = CostBoostClassifier(n_estimators=9, n_folds=1, early_stopping=False).fit(X, y)
    rows = hard_rows(model.forest_, X)
    costs = np.sort(model.predict_costs(rows), axis=1)
    assert (costs[:, 0] == costs[:, 1]).mean() > 0.5
    assert_same_results(model, run(to_onnx(model), rows), rows)


def test_the_same_model_is_the_same_file() -> None:
    X, y, costs = TASKS[3]
    files = [
        to_onnx(BAdaCostClassifier(costs, **SMALL).fit(X, y)).SerializeToString(deterministic=True)
        for _ in range(2)
    ]
    assert files[0] == files[1]


def test_costs_change_the_decisions() -> None:
    """A transposed matrix would not."""
    X, y, costs = TASKS[3]
    models = [CostBoostClassifier(m, members="trees", **FEW_FOLDS) for m in (costs, costs.T)]
    one, other = (run(to_onnx(model.fit(X, y)), X)["label"] for model in models)
    assert (one != other).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda costs: CostBoostClassifier(costs, **FEW_FOLDS),
        lambda costs: MinimumCostClassifier(SAMMEClassifier(**SMALL), costs),
    ],
)
def test_a_price_of_being_right_is_charged(make) -> None:
    X, y, costs = TASKS[3]
    model = make(costs + np.diag([5.0, 0.0, 1.0])).fit(X, y)
    assert_same_results(model, run(to_onnx(model), X), X)


def test_abstention() -> None:
    X, y, costs = TASKS[3]
    model = BAdaCostClassifier(costs, **SMALL).fit(X, y)
    price = float(np.median(model.predict_costs(X).min(axis=1)))
    decisions = model.decide(X, abstain=price)
    got = run(to_onnx(model, abstain=price), X)
    np.testing.assert_array_equal(got["asked"], decisions.mask)
    assert 0 < got["asked"].sum() < len(X)
    np.testing.assert_array_equal(got["label"], model.decide(X))
    assert not run(to_onnx(model, abstain=np.inf), X)["asked"].any()


def test_facts_about_the_model() -> None:
    X, y, _ = TASKS[3]
    model = BAdaCostClassifier(**SMALL).fit(X, np.array(["ab", "c", "ü"])[y])
    exported = to_onnx(model)
    facts = {item.key: json.loads(item.value) for item in exported.metadata_props}
    assert facts == {"classes": ["ab", "c", "ü"], "columns": [f"x{j}" for j in range(6)]}
    assert exported.producer_name == "badacost"
    assert onnx.load_from_string(exported.SerializeToString()) == exported


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (BAdaCostClassifier(), NotFittedError, "not fitted"),
        (MinimumCostClassifier(SAMMEClassifier()), NotFittedError, "not fitted"),
        (TableClassifier(), NotFittedError, "not fitted"),
        (LogisticRegression(), TypeError, "give a fitted classifier of badacost"),
        (make_pipeline(LogisticRegression()), TypeError, "register_converters"),
        (None, TypeError, "NoneType cannot be exported"),
    ],
)
def test_what_has_no_counterpart_is_refused(model, error, message) -> None:
    with pytest.raises(error, match=message):
        to_onnx(model)


def test_a_detector_is_refused() -> None:
    with pytest.raises(TypeError, match="a Detector cannot be exported"):
        to_onnx(synthetic_cars())


def test_other_weak_learners_are_refused() -> None:
    X, y, costs = TASKS[3]
    weak = DecisionTreeClassifier(max_depth=2)
    model = SAMMEClassifier(estimator=weak, n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="of DecisionTreeClassifier cannot be exported: fit it"):
        to_onnx(model)
    with pytest.raises(TypeError, match="of DecisionTreeClassifier cannot be exported: fit it"):
        to_onnx(MinimumCostClassifier(SAMMEClassifier(estimator=weak), costs).fit(X, y))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"input_type": "half"}, ValueError, "input_type must be one of 'double', 'float'"),
        ({"ml_opset": 4}, ValueError, "ml_opset must be 5 or 3; got 4"),
        ({"ml_opset": [5]}, ValueError, r"ml_opset must be 5 or 3; got \[5\]"),
        ({"abstain": "much"}, TypeError, "abstain is .* give the cost"),
        ({"abstain": -1.0}, ValueError, "abstain .* 0 or more"),
        ({"abstain": 1.0}, ValueError, "has no probabilities"),
    ],
)
def test_mistakes(options, error, message) -> None:
    X, y, costs = TASKS[3]
    model = AdaC2M1Classifier(costs, **SMALL).fit(X, y)
    with pytest.raises(error, match=message):
        to_onnx(model, **options)


def test_too_large_a_model_is_refused(monkeypatch) -> None:
    X, y, costs = TASKS[3]
    monkeypatch.setattr("badacost.export.onnx_model._MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="larger than 2 GiB"):
        to_onnx(BAdaCostClassifier(costs, **SMALL).fit(X, y))
