"""Classifiers of this library in pipelines that skl2onnx converts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import skl2onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost import (
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
)
from badacost.export import register_converters
from badacost.tabular import TableClassifier
from tests.export.sessions import run

SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
COSTS = np.array([[0.0, 1, 5], [2, 0, 1], [9, 4, 0]])
RNG = np.random.default_rng(0)
Y = np.arange(500) % 3
X = RNG.normal(size=(500, 4)) + RNG.normal(size=(3, 4))[Y]


@pytest.fixture(autouse=True)
def registered() -> None:
    register_converters()
    register_converters()  # once more does no harm


@pytest.mark.parametrize(
    "model",
    [
        BAdaCostClassifier(COSTS, **SMALL),
        AdaC2M1Classifier(COSTS, **SMALL | {"max_depth": 6}),
        CostBoostClassifier(COSTS, n_estimators=4, n_folds=2, random_state=0),
        PIBoostClassifier(**SMALL),
        MinimumCostClassifier(SAMMEClassifier(**SMALL), COSTS, calibration="temperature"),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("options", [None, {"zipmap": False}])
def test_a_pipeline_with_a_scaler(model, options) -> None:
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    if options is not None:
        options = {type(model): options}
    exported = skl2onnx.to_onnx(pipeline, X[:1], options=options)
    got = run(exported, X)
    np.testing.assert_array_equal(got["label"], pipeline.predict(X))
    if hasattr(model, "predict_proba"):
        shares = pipeline.predict_proba(X)
        np.testing.assert_allclose(got["probabilities"], shares, rtol=0, atol=1e-12)


def test_missing_values_and_texts_as_classes() -> None:
    gaps = X.copy()
    gaps[::5, 1] = np.nan
    labels = np.array(["a", "b", "c"])[Y]
    model = make_pipeline(StandardScaler(), BAdaCostClassifier(**SMALL)).fit(gaps, labels)
    got = run(skl2onnx.to_onnx(model, gaps[:1]), gaps)
    np.testing.assert_array_equal(got["label"], model.predict(gaps))


def test_single_precision_columns() -> None:
    """Each column is an input of its own, which skl2onnx joins."""
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c", "d"])
    model = make_pipeline(SimpleImputer(), BAdaCostClassifier(COSTS, **SMALL)).fit(frame, Y)
    got = run(
        skl2onnx.to_onnx(model, frame[:1]), {name: frame[[name]].to_numpy() for name in frame}
    )
    np.testing.assert_array_equal(got["label"], model.predict(frame))


def test_a_pipeline_inside() -> None:
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = MinimumCostClassifier(inner, COSTS).fit(X, Y)
    got = run(skl2onnx.to_onnx(model, X[:1]), X)
    np.testing.assert_allclose(got["probabilities"], model.predict_proba(X), atol=1e-6)


def test_abstention_is_an_option() -> None:
    model = CostBoostClassifier(COSTS, n_estimators=4, n_folds=2, random_state=0).fit(X, Y)
    exported = skl2onnx.to_onnx(model, X[:1], options={id(model): {"abstain": 0.8}})
    got = run(exported, X)
    np.testing.assert_array_equal(got["asked"], model.predict_costs(X).min(axis=1) >= 0.8)
    assert 0 < got["asked"].sum() < len(X)


@pytest.mark.parametrize(("dtype", "n_classes"), [(np.float64, 2), (np.float32, 3)])
@pytest.mark.parametrize(
    "make",
    [
        lambda costs: VotingClassifier(
            [("cheap", BAdaCostClassifier(costs, **SMALL)), ("plain", SAMMEClassifier(**SMALL))],
            voting="soft",
            flatten_transform=False,
        ),
        lambda costs: StackingClassifier(
            [("cheap", BAdaCostClassifier(costs, **SMALL)), ("plain", LogisticRegression())], cv=2
        ),
        lambda costs: CalibratedClassifierCV(BAdaCostClassifier(costs, **SMALL), cv=2),
        lambda costs: CalibratedClassifierCV(
            CostSensitiveTreeClassifier(costs, max_depth=3), cv=2, method="isotonic"
        ),
        lambda costs: BaggingClassifier(BAdaCostClassifier(costs, **SMALL), 3, random_state=0),
    ],
    ids=["voting", "stacking", "calibrated", "isotonic", "bagging"],
)
def test_parts_of_other_estimators(make, dtype, n_classes) -> None:
    """Of probabilities, or of the decision function where scikit-learn prefers it."""
    samples, labels = X.astype(dtype), np.array([4, 7, 9])[np.minimum(Y, n_classes - 1)]
    model = make(COSTS[:n_classes, :n_classes]).fit(samples, labels)
    exported = skl2onnx.to_onnx(model, samples[:1], options={"zipmap": False})
    got, expected = run(exported, samples), model.predict_proba(samples)
    np.testing.assert_allclose(got["probabilities"], expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(got["label"], model.predict(samples))


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", BAdaCostClassifier(COSTS, **SMALL))], flatten_transform=False),
        StackingClassifier(
            [("a", BAdaCostClassifier(COSTS, **SMALL))], cv=2, stack_method="predict"
        ),
        OneVsRestClassifier(BAdaCostClassifier(**SMALL)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_parts_whose_decisions_are_combined_are_refused(model) -> None:
    model.fit(X, Y)
    with pytest.raises(TypeError, match=r"where scikit-learn combines decisions\. Use a Voting"):
        skl2onnx.to_onnx(model, X[:1])


def test_tables_are_refused() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = MinimumCostClassifier(TableClassifier(SAMMEClassifier(**SMALL)), COSTS).fit(frame, Y)
    with pytest.raises(TypeError, match="TableClassifier cannot be converted by skl2onnx"):
        skl2onnx.to_onnx(model, X[:1])


def test_text_categories_are_refused() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(np.array(["a", "b", "c"])[Y]), "x": X[:, 0]})
    model = BAdaCostClassifier(COSTS, **SMALL).fit(frame, Y)
    with pytest.raises(TypeError, match=r"text categories .* cannot be converted .* use to_onnx"):
        skl2onnx.to_onnx(model, X[:1, :2])
