"""What decisions on a table cost, against sums by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from badacost import AdaC2M1Classifier, BAdaCostClassifier
from badacost.tabular import TableClassifier, evaluate_table

GRADES = ["low", "middle", "high"]
COSTS = {
    "low": {"middle": 1, "high": 2},
    "middle": {"low": 7, "high": 3},
    "high": {"low": 4, "middle": 5},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    x = rng.normal(size=90)
    grade = np.array(GRADES)[np.digitize(x + rng.normal(0, 0.5, 90), [-0.5, 0.5])]
    return pd.DataFrame({"x": x, "grade": pd.Categorical(grade, GRADES, ordered=True)})


@pytest.fixture(scope="module")
def model(frame) -> TableClassifier:
    booster = BAdaCostClassifier(n_estimators=4, max_depth=2)
    return TableClassifier(booster, cost_matrix=COSTS).fit(frame, "grade")


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_by_hand(model, frame, weighted) -> None:
    weights = np.arange(90) % 3 if weighted else np.ones(90)
    found = evaluate_table(model, frame, sample_weight=weights)
    assert found.names == GRADES  # the order of the column
    counts, costs = np.zeros((3, 3)), np.zeros((3, 3))
    for truth, answer, weight in zip(frame["grade"], model.predict(frame), weights, strict=True):
        cell = GRADES.index(truth), GRADES.index(answer)
        counts[cell] += weight
        costs[cell] += weight * COSTS[truth].get(answer, 0)
    np.testing.assert_allclose(found.counts, counts)
    np.testing.assert_allclose(found.costs, costs)
    assert found.summary.total_cost == pytest.approx(costs.sum())
    assert list(found.summary.rivals) == ["the most likely class of the same model"]


def test_other_costs(model, frame) -> None:
    ones = evaluate_table(model, frame, costs=1 - np.eye(3))
    assert ones.summary.average_cost == ones.summary.error_rate
    renamed = frame.rename(columns={"grade": "truth"})
    assert evaluate_table(model, renamed, "truth").summary == evaluate_table(model, frame).summary


def test_json_holds_it(model, frame) -> None:
    figures = json.loads(json.dumps(evaluate_table(model, frame).to_dict()))
    assert figures["classes"] == GRADES
    assert sum(figures["cost_of_class"].values()) == pytest.approx(figures["total_cost"])


def test_what_cannot_be_evaluated(model, frame) -> None:
    with pytest.raises(ValueError, match="no column 'truth'"):
        evaluate_table(model, frame, "truth")
    with pytest.raises(ValueError, match="which the model does not know"):
        evaluate_table(model, frame.assign(grade="huge"))
    bare = AdaC2M1Classifier(n_estimators=2).fit(frame[["x"]], frame["grade"])
    with pytest.raises(ValueError, match="give target"):
        evaluate_table(TableClassifier.of_fitted(bare), frame)
