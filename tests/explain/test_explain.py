"""Explanations: they add up to what the model says, and keep to the meaning of the costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification

import badacost
from badacost.costs import labelled_costs
from badacost.explain import (
    DecisionExplanation,
    explain_decision,
    explain_scores,
    feature_importances,
)
from badacost.tabular import TableClassifier

COSTS = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 3.0], [11.0, 5.0, 0.0]])  # C[truth, prediction]
CLASSES = np.array(["ant", "bee", "cat"])
LABELLED = labelled_costs(COSTS, CLASSES)
WITH_COSTS = (
    "BAdaCostClassifier",
    "CostBoostClassifier",
    "CostSensitiveTreeClassifier",
    "LpCSBClassifier",
)
WITH_PROBABILITIES = (
    "BAdaCostClassifier",
    "CostBoostClassifier",
    "SAMMEClassifier",
    "PIBoostClassifier",
    "CostSensitiveTreeClassifier",
)
X, NUMBERS = make_classification(
    200, 5, n_informative=3, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0
)
X[::9, 2] = np.nan
Y = CLASSES[NUMBERS]


def fitted(name: str = "BAdaCostClassifier", **options):
    if name != "CostSensitiveTreeClassifier":
        options.setdefault("n_estimators", 8)
    if name in WITH_COSTS:
        options.setdefault("cost_matrix", LABELLED)
    options.setdefault("max_depth", 3)
    return getattr(badacost, name)(random_state=0, **options).fit(X, Y)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.mark.parametrize(
    "name",
    [*WITH_PROBABILITIES, "AdaC2M1Classifier", "LpCSBClassifier", "WangMultiBoostClassifier"],
)
def test_contributions_sum_to_the_scores(name) -> None:
    model = fitted(name)
    explanation = explain_scores(model, X)
    scores = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(scores, model.forest_.accumulate(X), atol=1e-10)
    assert explanation.values.shape == (200, 5, 3)
    assert explanation.classes == CLASSES.tolist()
    np.testing.assert_array_equal(explanation.data, X)


def test_names_and_threads(model) -> None:
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    named = fitted(n_jobs=2)
    assert explain_scores(named, X).feature_names == [f"feature {i}" for i in range(5)]
    np.testing.assert_array_equal(explain_scores(named, X).values, explain_scores(model, X).values)
    named = badacost.BAdaCostClassifier(LABELLED, n_estimators=2).fit(frame, Y)
    assert explain_scores(named, frame).feature_names == list("vwxyz")


def test_importances(model) -> None:
    explanation = explain_scores(model, X)
    fractions = explanation.importances()
    assert fractions.sum() == pytest.approx(1.0)
    mean = np.abs(explanation.values).mean(axis=0)
    assert fractions.argmax() == mean.sum(axis=1).argmax()
    np.testing.assert_array_equal(feature_importances(model), model.feature_importances_)
    counts = feature_importances(model, "count")
    assert counts.sum() == pytest.approx(1.0)
    assert not np.allclose(counts, model.feature_importances_)
    silent = replace(explanation, values=np.zeros_like(explanation.values))
    assert not silent.importances().any()


def expected_difference(model, x, decision, against, costs) -> float:
    """What `against` costs more than `decision`, from the probabilities of the model."""
    expected = model.predict_proba(x)[0] @ costs
    labels = CLASSES.tolist()
    return expected[labels.index(against)] - expected[labels.index(decision)]


@pytest.mark.parametrize("name", WITH_PROBABILITIES)
@pytest.mark.parametrize("row", [0, 1, 9])
def test_contributions_sum_to_the_difference_in_expected_cost(name, row) -> None:
    model, x = fitted(name), X[[row]]
    explanation = explain_decision(model, x, "bee", "cat", COSTS)
    np.testing.assert_allclose(explanation.probabilities, model.predict_proba(x)[0], atol=1e-12)
    difference = expected_difference(model, x, "bee", "cat", COSTS)
    assert explanation.total == pytest.approx(difference, abs=1e-12)
    assert abs(explanation.error) < 1e-9
    parts = explanation.base + explanation.contributions.sum()
    assert parts == pytest.approx(explanation.total, abs=1e-9)


def test_the_other_direction_has_the_other_sign(model) -> None:
    one, other = (explain_decision(model, X[3], *pair) for pair in [("ant", "cat"), ("cat", "ant")])
    np.testing.assert_allclose(one.contributions, -other.contributions, atol=1e-12)
    assert one.total == -other.total
    assert one.headline != other.headline


def test_transposed_costs_are_other_costs(model) -> None:
    one, other = (explain_decision(model, X[3], "ant", "cat", c) for c in (COSTS, COSTS.T))
    assert abs(one.total - other.total) > 0.1
    assert one.total == pytest.approx(expected_difference(model, X[[3]], "ant", "cat", COSTS))


def test_labelled_costs(model) -> None:
    labelled = pd.DataFrame(COSTS, CLASSES, CLASSES).loc[:, ["cat", "ant", "bee"]]
    one, other = (explain_decision(model, X[3], costs=costs) for costs in (COSTS, labelled))
    np.testing.assert_array_equal(one.contributions, other.contributions)


def test_a_function_of_one_score_is_divided_like_the_scores() -> None:
    """With two classes the path is a line of one logit, and so parts are as those of the logit."""
    two = NUMBERS > 0
    model = badacost.BAdaCostClassifier([[0, 1], [5, 0]], n_estimators=6).fit(X, two)
    explanation, scores = explain_decision(model, X[0]), explain_scores(model, X[:1])
    logit = scores.values[0] @ [1.0, -1.0]
    fractions = logit / logit.sum()
    gain = explanation.total - explanation.base
    np.testing.assert_allclose(explanation.contributions, fractions * gain, atol=1e-10)


def test_strong_scores() -> None:
    """Probabilities that change within a thousandth of the way are integrated all the same."""
    strong = fitted(n_estimators=60, learning_rate=1.0, cost_scale=3.0)
    scores = explain_scores(strong, X[:40])
    reach = np.ptp(scores.values.sum(axis=1), axis=1)
    row = int(reach.argmax())
    assert reach[row] > 100
    explanation = explain_decision(strong, X[row], "ant", "cat")
    assert abs(explanation.error) < 1e-8


def test_the_cheapest_decisions_are_compared_by_default(model) -> None:
    for x in X[:10]:
        explanation = explain_decision(model, x)
        ranked = np.argsort(explanation.expected_costs)
        assert [explanation.decision, explanation.against] == CLASSES[ranked[:2]].tolist()
        last = CLASSES[ranked[2]]
        assert explain_decision(model, x, against=last).decision == CLASSES[ranked[0]]


def test_tables() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], 200),
            "size": X[:, 0],
            "empty": X[:, 2],
        }
    )
    table.loc[3, "colour"] = None
    inner = badacost.BAdaCostClassifier(LABELLED, n_estimators=8)
    model = TableClassifier(inner).fit(table, Y)
    scores = explain_scores(model, table)
    assert scores.values.shape == (200, 3, 3)
    assert scores.feature_names == ["colour", "size", "empty"]
    total = scores.base_values + scores.values.sum(axis=1)
    features = model.encoder_.transform(table)
    np.testing.assert_allclose(total, model.estimator_.forest_.accumulate(features), atol=1e-10)
    np.testing.assert_allclose(feature_importances(model), model.feature_importances_)
    explanation = explain_decision(model, table[:1])
    assert f"colour = {table['colour'][0]}" in explanation.to_text()
    np.testing.assert_allclose(explanation.probabilities, model.predict_proba(table[:1])[0])
    assert "colour = missing" in explain_decision(model, table[3:4]).to_text()


def test_one_sample_in_any_form(model) -> None:
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    named = badacost.BAdaCostClassifier(LABELLED, n_estimators=8, max_depth=3).fit(frame, Y)
    expected = explain_decision(model, X[5]).contributions
    forms = [
        (model, X[5:6]),
        (model, X[5].tolist()),
        (named, frame.iloc[5]),
        (named, frame.iloc[[5]]),
    ]
    for owner, x in forms:
        np.testing.assert_array_equal(explain_decision(owner, x).contributions, expected)


def simple(contributions, **changes) -> DecisionExplanation:
    n = len(contributions)
    values = {
        "decision": "ant",
        "against": "bee",
        "contributions": np.array(contributions, dtype=float),
        "base": 1.0,
        "total": 1.0 + float(np.sum(contributions)),
        "expected_costs": np.array([0.5, 3.0]),
        "probabilities": np.array([0.9, 0.1]),
        "base_probabilities": np.array([0.5, 0.5]),
        "data": np.arange(n) + 0.5,
        "feature_names": [f"f{i}" for i in range(n)],
        "classes": ["ant", "bee"],
    }
    return DecisionExplanation(**{**values, **changes})


def test_text() -> None:
    explanation = simple([0.5, -12.0, 2.0], data=np.array([1.5, np.nan, 52000.0]))
    assert explanation.to_text(max_features=2).splitlines() == [
        "'ant' is more expensive than 'bee' here: 0.5 expected, against 3.",
        "In favor of 'ant' (+) or of 'bee' (-):",
        "  f1 = missing     -12.00",
        "  f2 = 52000        +2.00",
        "  1 other feature   +0.50",
        "  baseline          +1.00",
        "  difference        -8.50",
        "P('ant') = 0.9, P('bee') = 0.1.",
    ]
    assert repr(explanation) == explanation.to_text()
    assert simple([0.0], base=0.0, total=0.0).headline == "'ant' is as expensive as 'bee' here"


@settings(max_examples=50)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=15), st.integers(1, 20) | st.none())
def test_rows_sum_to_the_contributions(contributions, max_features) -> None:
    explanation = simple(contributions)
    amounts = [amount for _, amount in explanation.rows(max_features)]
    assert np.sum(amounts) == pytest.approx(np.sum(contributions), rel=1e-9, abs=1e-3)
    shown = np.abs(amounts[:max_features])
    assert (np.diff(shown) <= 0).all()
    assert explanation.to_text(max_features)


@settings(max_examples=15)
@given(
    st.integers(0, 199),
    st.permutations(CLASSES.tolist()),
    st.lists(st.floats(0.01, 1e6), min_size=6, max_size=6),
)
def test_any_costs(model, row, labels, prices) -> None:
    costs = np.zeros((3, 3))
    costs[~np.eye(3, dtype=bool)] = prices
    explanation = explain_decision(model, X[row], *labels[:2], costs)
    difference = expected_difference(model, X[[row]], *labels[:2], costs)
    assert explanation.total == pytest.approx(difference, abs=1e-9 * max(prices))
    assert abs(explanation.error) < 1e-9 * max(prices)


@pytest.mark.parametrize("polars", [False, True])
def test_categories_are_shown_as_given(polars) -> None:
    colours = pd.Categorical(["blue", "red", "green", "red"] * 10)
    frame: Any = pd.DataFrame({"colour": colours, "size": np.arange(40.0)})
    if polars:
        frame = pl.DataFrame(
            {"colour": pl.Series(list(colours), dtype=pl.Categorical), "size": frame["size"]}
        )
    model = badacost.BAdaCostClassifier([[0, 1], [5, 0]], n_estimators=3).fit(
        frame, colours == "blue"
    )
    explanation = explain_decision(model, frame[:1])
    assert explanation.rows()[0][0] == "colour = blue"
    assert explain_scores(model, frame[:3]).data.tolist() == [
        ["blue", 0.0],
        ["red", 1.0],
        ["green", 2.0],
    ]
