"""Reports hold plain numbers: those of the metrics, for any classifier, in the order of classes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost import (
    AdaC2M1Classifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
)
from badacost.cost_report import CostReport
from badacost.metrics import average_cost, cost_confusion_matrix, total_cost
from badacost.tabular import TableClassifier
from tests.cost_report.samples import COSTS, ONE_WAY, booster, noisy


def test_figures_are_those_of_the_metrics() -> None:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    model = booster().fit(X, y)
    steps: list[tuple[int, int]] = []
    report = CostReport.from_estimator(
        model, X_test, y_test, train=(X, y), progress=lambda *step: steps.append(step)
    )
    assert steps == [(done, len(steps)) for done in range(1, len(steps) + 1)]
    answers = model.predict(X_test)
    assert report.model == "the model (BAdaCost, margin rule)"
    assert report.n_samples == 240
    assert report.n_costly == (COSTS[y_test, answers] > 0).sum()
    assert report.average_cost == pytest.approx(average_cost(y_test, answers, COSTS))
    assert report.total_cost == pytest.approx(total_cost(y_test, answers, COSTS))
    np.testing.assert_array_equal(report.costs, COSTS)
    np.testing.assert_allclose(report.charged, cost_confusion_matrix(y_test, answers, COSTS))
    counts = [[((y_test == i) & (answers == j)).sum() for j in range(3)] for i in range(3)]
    np.testing.assert_array_equal(report.counts, counts)
    constant = min(average_cost(y_test, np.full_like(y_test, k), COSTS) for k in range(3))
    assert report.constant.average_cost == pytest.approx(constant)
    likeliest = model.predict_proba(X_test).argmax(axis=1)
    (same,) = (way for way in report.ways if way.kind == "most likely")
    assert same.average_cost == pytest.approx(average_cost(y_test, likeliest, COSTS))
    assert same not in report.rivals
    assert len(report.rivals) == 4
    rates = [rival.average_cost for rival in report.rivals]
    assert rates == sorted(rates)


MODELS = {
    "no costs of its own": (GaussianNB(), COSTS, {"curves", "importances"}),
    "minimum cost": (
        MinimumCostClassifier(RandomForestClassifier(10, random_state=0), COSTS), None, {"curves"},
    ),
    "tree": (CostSensitiveTreeClassifier(COSTS, max_depth=2), None, {"curves"}),
    "PIBoost": (PIBoostClassifier(n_estimators=3), COSTS, set()),
    "CostBoost": (CostBoostClassifier(COSTS, n_estimators=3), None, set()),
    "no probabilities": (
        AdaC2M1Classifier(COSTS, n_estimators=3), COSTS, {"reliability", "sensitivity"},
    ),
    "one-way costs": (booster(ONE_WAY), None, {"reliability", "sensitivity"}),
    "pipeline": (make_pipeline(StandardScaler(), booster()), None, set()),
    "other weak learners": (booster(estimator=GaussianNB()), None, {"importances"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_any_classifier(name) -> None:
    model, costs, missing = MODELS[name]
    model = clone(model).fit(*noisy())
    X, y = noisy(seed=2)
    report = CostReport.from_estimator(model, X, y, costs=costs)
    prices = ONE_WAY if name == "one-way costs" else COSTS
    assert report.average_cost == pytest.approx(average_cost(y, model.predict(X), prices))
    parts = ("curves", "importances", "reliability", "sensitivity")
    assert {part for part in parts if not getattr(report, part)} == missing
    assert report.to_html().count("<h2>") == 10 - len(missing - {"sensitivity"})
    json.dumps(report.to_dict(), allow_nan=False)


def test_prices_of_samples() -> None:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    amounts = np.random.default_rng(0).uniform(1, 50, (len(y_test), 3))
    model = booster().fit(X, y)
    report = CostReport.from_estimator(model, X_test, y_test, sample_cost=amounts, abstain=5)
    decided = model.decide(X_test, sample_cost=amounts)
    cost = average_cost(y_test, decided, sample_cost=amounts)
    assert report.average_cost == pytest.approx(cost)
    constant = min(average_cost(y_test, np.full(240, k), sample_cost=amounts) for k in range(3))
    assert report.constant.average_cost == pytest.approx(constant)
    assert report.has_own_prices
    assert "Every sample has prices of its own" in report.to_html()


def test_classes_keep_their_order() -> None:
    X, y = noisy()
    order = ["mild", "medium", "bad"]  # neither sorted nor by cost
    grades = pd.Categorical(np.array(order)[y], categories=order, ordered=True)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(grade=grades)
    costs = {"mild": {"medium": 1, "bad": 4}, "medium": {"mild": 2, "bad": 30},
             "bad": {"mild": 7, "medium": 5}}  # fmt: skip
    model = TableClassifier(booster(None), cost_matrix=costs).fit(frame, "grade")
    assert model.classes_.tolist() == order
    report = CostReport.from_estimator(model, frame, frame["grade"])
    assert report.labels == tuple(order)
    np.testing.assert_array_equal(report.costs, COSTS)
    np.testing.assert_array_equal(report.counts.sum(axis=1), np.bincount(y))


def test_to_dict_is_what_json_holds() -> None:
    X, y = noisy()
    options: dict[str, Any] = {"train": (X, y), "abstain": 2.0}
    report = CostReport.from_estimator(booster().fit(X, y), X, y, **options)
    figures = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert figures == report.to_dict(), "lists, not tuples or arrays"
    assert figures.keys() == {
        "average_cost", "total_cost", "model", "labels", "n_samples", "n_costly", "costs",
        "counts", "charged", "ways", "at_fit", "out_of_fold_cost", "known_rows", "has_own_prices",
        "has_other_costs", "asking", "curves", "sensitivity", "reliability", "importances",
        "settings",
    }  # fmt: skip
    assert figures["costs"] == COSTS.tolist()
    assert figures["ways"][0].keys() == {
        "name", "kind", "average_cost", "interval", "error_rate", "saved", "saved_interval",
    }  # fmt: skip
    assert figures["sensitivity"]["doubled"]["changed"][0][0] == 0
    assert len(figures["asking"]["at_prices"]) == 5


def test_rows_of_the_training_are_noticed() -> None:
    (X, y), other = noisy(), noisy(seed=1)
    model = booster().fit(X, y)
    report = CostReport.from_estimator(model, X, y, train=(X, y))
    said = "the model was fitted to 240 of these 240 rows: on rows that it knows, decisions look "
    assert report.known_rows == f"{said}cheap."
    assert CostReport.from_estimator(model, *other, train=(X, y)).known_rows is None
    table = pd.DataFrame(X, columns=list("abcd"))
    fitted = TableClassifier(booster()).fit(table, y)
    known = CostReport.from_estimator(fitted, table, y).known_rows
    assert "rows, too: if they are these, use others" in known
    assert CostReport.from_estimator(fitted, table[1:], y[1:]).known_rows is None


def test_perfect_decisions() -> None:
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, y]
    report = CostReport.from_estimator(booster().fit(X, y), X, y)
    assert report.total_cost == report.n_costly == 0
    assert "No decision cost anything." in report.to_html()


def test_same_page_again(tmp_path) -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    pages = []
    for _ in range(2):
        CostReport.from_estimator(model, X, y, random_state=3).save(tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]
    assert repr(CostReport.from_estimator(model, X, y)).startswith("<CostReport of 240 decisions")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"title": 3}, TypeError, "title must be a str; got int"),
        ({"currency": "a" * 13}, ValueError, "at most 12 letters"),
    ],
)
def test_mistakes_leave_the_old_page(tmp_path, options, error, message) -> None:
    X, y = noisy()
    path = tmp_path / "page.html"
    path.write_text("old")
    report = CostReport.from_estimator(booster().fit(X, y), X, y)
    with pytest.raises(error, match=message):
        report.save(path, **options)
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]
