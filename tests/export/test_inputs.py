"""Inputs of exported models: categories that are numbers, texts, and whole tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    ImportedForestClassifier,
    MinimumCostClassifier,
    SAMMEClassifier,
)
from badacost.export import to_onnx
from badacost.export.inputs import column_names
from badacost.tabular import TableClassifier
from tests.export.sessions import assert_same_results, run
from tests.tabular.patients import COSTS as RISK_COSTS
from tests.tabular.patients import patients, small_model

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 7, 0]])
SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
TOWNS = ["Ayr", "Bath", "Cork", "Deal", "Ely", "Fife", "Goole"]
N_ROWS = 10_000


def make_matrix(seed: int, n: int, n_codes: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Columns of categories, of fractions, too, and one of numbers."""
    rng = np.random.default_rng(seed)
    code, half = rng.integers(n_codes, size=n), 0.5 * rng.integers(4, size=n)
    size = rng.normal(size=n)
    y = 1 * (code % 3 == 0) + ((half != 1.0) & (size > 0))
    X = np.column_stack([code, size, half]).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ml_opset", [5, 3])
@pytest.mark.parametrize(
    "make",
    [
        lambda: BAdaCostClassifier(COSTS, categorical_features=[0, 2], **SMALL),
        lambda: CostBoostClassifier(
            COSTS, categorical_features=[0, 2], n_estimators=4, n_folds=2, random_state=0
        ),
        lambda: CostSensitiveTreeClassifier(COSTS, categorical_features=[0, 2]),
        lambda: ImportedForestClassifier(
            LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
            COSTS,
            categorical_features=[0, 2],
        ),
    ],
)
def test_categories_that_are_numbers(make, ml_opset, dtype) -> None:
    model = make().fit(*make_matrix(0, 800))
    X, _ = make_matrix(1, N_ROWS, n_codes=33)  # three of them are not known
    X[:4, 2] = [1.25, -0.5, 1e30, np.nextafter(1.0, 2.0)]
    X = X.astype(dtype)
    exported = to_onnx(
        model, input_type="double" if dtype is np.float64 else "float", ml_opset=ml_opset
    )
    assert (model.forest_.category_set >= 0).any()
    assert_same_results(model, run(exported, X), X)


def test_many_categories() -> None:
    """More than 255, of which the most frequent ones are known."""
    rng = np.random.default_rng(0)
    code = rng.geometric(0.01, 5000)
    X, y = code[:, np.newaxis].astype(float), code * 7919 % 3
    model = BAdaCostClassifier(COSTS, categorical_features=[0], **SMALL).fit(X, y)
    assert len(model.categories_[0]) == 255
    for ml_opset in (5, 3):
        assert_same_results(model, run(to_onnx(model, ml_opset=ml_opset), X), X)


def make_frame(seed: int, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Towns, some of them missing, a number, and grades that are numbers."""
    rng = np.random.default_rng(seed)
    town, grade = rng.choice(TOWNS, n), rng.integers(9, size=n)
    frame = pd.DataFrame({"town": town, "size": rng.normal(size=n), "grade": grade})
    y = 1 * np.isin(town, ["Bath", "Deal"]) + (np.isin(grade, [1, 4, 7]) & (frame["size"] > 0))
    frame.loc[rng.random(n) < 0.1, "town"] = None
    return frame.astype({"town": "category", "grade": "category"}), np.asarray(y)


def as_columns(frame: pd.DataFrame, texts: list[str]) -> dict[str, np.ndarray]:
    """A frame as the inputs of an exported model; a missing text is an empty one."""
    return {
        name: frame[[name]].astype(object).fillna("").to_numpy()
        if name in texts
        else frame[[name]].astype(float).to_numpy()
        for name in frame
    }


@pytest.mark.parametrize("ml_opset", [5, 3])
def test_categories_that_are_texts(ml_opset) -> None:
    model = BAdaCostClassifier(COSTS, **SMALL).fit(*make_frame(0, 500))
    frame, _ = make_frame(1, N_ROWS)
    frame["town"] = frame["town"].cat.add_categories(["Hove"])
    frame.loc[:99, "town"] = "Hove"
    frame.loc[50:60, "size"] = np.nan
    exported = to_onnx(model, ml_opset=ml_opset)
    assert [value.name for value in exported.graph.input] == ["town", "size", "grade"]
    assert_same_results(model, run(exported, as_columns(frame, ["town"])), frame)


def test_numbers_among_texts() -> None:
    """A number and its text are the same category."""
    rng = np.random.default_rng(0)
    cells = rng.choice(np.array([1, 2.5, 3.0, "x", "3 a"], dtype=object), 300)
    y = np.array([{1: 0, 2.5: 1, 3.0: 2, "x": 0, "3 a": 1}[cell] for cell in cells])
    X = np.column_stack([cells, rng.normal(size=300)])
    model = BAdaCostClassifier(COSTS, categorical_features=[0], **SMALL).fit(X, y)
    texts = np.array([str(cell).removesuffix(".0") for cell in cells], dtype=object)
    inputs = {"x0": texts[:, np.newaxis], "x1": X[:, 1:].astype(float)}
    assert_same_results(model, run(to_onnx(model), inputs), X)


def test_categories_that_are_written_alike_are_refused() -> None:
    rng = np.random.default_rng(0)
    cells = rng.choice(np.array([1, "1", "x"], dtype=object), 300)
    kinds = pd.Categorical(cells, categories=[1, "1", "x"])
    model = BAdaCostClassifier(COSTS, **SMALL).fit(pd.DataFrame({"kind": kinds}), kinds.codes)
    with pytest.raises(ValueError, match=r"1 and '1' are .* 'kind': .* different tex"):
        to_onnx(model)


@pytest.mark.parametrize("with_texts", [False, True])
def test_categories_between_numbers_of_single_precision(with_texts) -> None:
    """They are rounded as the inputs are, so that 0.1 stays a category."""
    rng = np.random.default_rng(0)
    code = rng.integers(6, size=600)
    frame = pd.DataFrame({"share": pd.Categorical(0.1 * code), "size": rng.normal(size=600)})
    inputs: Any = frame.astype(np.float32).to_numpy()
    if with_texts:
        frame["town"] = pd.Categorical(rng.choice(TOWNS, 600))
        inputs = {name: frame[[name]].astype(np.float32).to_numpy() for name in ("share", "size")}
        inputs["town"] = frame[["town"]].astype(object).to_numpy()
    frame["size"] = frame["size"].astype(np.float32)
    model = BAdaCostClassifier(COSTS, **SMALL).fit(frame, code * 5 % 3)
    assert_same_results(model, run(to_onnx(model, input_type="float"), inputs), frame)


def test_categories_that_are_one_number_in_single_precision_are_refused() -> None:
    X, y = make_matrix(0, 300)
    X[:, 2] = 1.0 + 2.0**-40 * X[:, 2]
    model = BAdaCostClassifier(COSTS, categorical_features=[2], **SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"equal in single precision: .* input_type=\"double\""):
        to_onnx(model, input_type="float")
    assert_same_results(model, run(to_onnx(model), X), X)


def test_columns_without_a_name() -> None:
    frame, y = make_frame(0, 300)
    frame = frame.rename(columns={"town": "", "size": "x0", "grade": "x1"})
    model = BAdaCostClassifier(COSTS, **SMALL).fit(frame, y)
    exported = to_onnx(model)
    assert [value.name for value in exported.graph.input] == ["x0_", "x0", "x1"]
    inputs = as_columns(frame, [""])
    inputs["x0_"] = inputs.pop("")
    assert_same_results(model, run(exported, inputs), frame)


def test_many_columns_without_a_name() -> None:
    """Their names are looked up, not searched for one by one."""
    X = np.zeros((6, 10_000))
    X[3:, 7] = 1.0
    model = BAdaCostClassifier(n_estimators=1, max_depth=1).fit(X, [0, 0, 0, 1, 1, 1])
    assert column_names(model)[9_999] == "x9999"


def test_without_a_known_category() -> None:
    """A column of categories that was empty in the training says nothing later."""
    X, y = make_matrix(0, 200)
    X[:, 2] = np.nan
    model = BAdaCostClassifier(COSTS, categorical_features=[2], **SMALL).fit(X, y)
    X[:, 2] = 1.0
    assert_same_results(model, run(to_onnx(model), X), X)


def table_inputs(frame: pd.DataFrame, model: TableClassifier) -> dict[str, np.ndarray]:
    """The columns of a table as its exported model takes them."""
    frame = frame[[*model.feature_names_in_]]
    days = (frame["seen"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return as_columns(frame.assign(seen=days), ["ward", "street"])


@pytest.mark.parametrize("decision", ["own", "bayes"])
def test_tables(decision) -> None:
    model = small_model(decision=decision).fit(patients(), "risk")
    new = patients(N_ROWS, seed=1)
    new["ward"] = new["ward"].where(new.index % 9 > 0, "east")  # not known
    exported = to_onnx(model)
    assert [value.name for value in exported.graph.input] == model.feature_names_in_.tolist()
    got = run(exported, table_inputs(new, model))
    np.testing.assert_array_equal(got["label"], model.predict(new))
    np.testing.assert_allclose(got["probabilities"], model.predict_proba(new), atol=1e-12)
    np.testing.assert_allclose(got["expected_costs"], model.predict_costs(new), atol=1e-12)
    np.testing.assert_array_equal(
        got["scores"], model.estimator_.cost_scores(model.encoder_.transform(new))
    )


def test_costs_on_top_of_a_table() -> None:
    frame = patients().drop(columns="risk")
    inner = TableClassifier(SAMMEClassifier(**SMALL))
    labels = patients()["risk"].to_numpy(object)
    model = MinimumCostClassifier(inner, RISK_COSTS).fit(frame, labels)
    got = run(to_onnx(model), table_inputs(frame, model.estimator_))
    np.testing.assert_array_equal(got["label"], model.predict(frame))


def test_columns_with_the_names_of_outputs() -> None:
    frame, y = make_frame(0, 300)
    frame = frame.rename(columns={"town": "label", "size": "scores", "grade": "badacost/Where_1"})
    model = BAdaCostClassifier(COSTS, **SMALL).fit(frame, y)
    exported = to_onnx(model)
    assert not any(node.output[0].startswith("badacost/") for node in exported.graph.node)
    got = run(exported, as_columns(frame, ["label"]))
    np.testing.assert_array_equal(got["label_"], model.predict(frame))
    np.testing.assert_array_equal(got["scores_"], model.cost_scores(frame))


def test_tables_of_other_classifiers_are_refused() -> None:
    frame = patients().dropna()[["age", "smokes", "risk"]]
    model = TableClassifier(LogisticRegression(max_iter=1000)).fit(frame, "risk")
    wrapped = MinimumCostClassifier(FrozenEstimator(model)).fit(
        frame[["age", "smokes"]], frame["risk"]
    )
    for refused in (model, wrapped):
        with pytest.raises(TypeError, match="TableClassifier cannot be converted by skl2onnx"):
            to_onnx(refused)
