"""The parts of a report in numbers, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from badacost import (
    CostBoostClassifier,
    MinimumCostClassifier,
)
from badacost.cost_report import parts
from badacost.cost_report.evidence import gather
from badacost.costs import labelled_costs
from badacost.metrics import average_cost
from badacost.tabular import CostSummary, TableClassifier
from tests.cost_report.samples import COSTS, booster, noisy
from tests.cost_report.test_evidence import wards


def test_asking_is_that_of_deciding_with_a_price() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    model = booster().fit(X, y)
    asking = parts.asking(gather(model, X_test, y_test, abstain=2.0))
    assert asking.price == 2.0
    assert asking.never == pytest.approx(average_cost(y_test, model.decide(X_test), COSTS))
    assert [at.price for at in asking.at_prices] == [0.5, 1.0, 2.0, 4.0, 8.0]
    for at in asking.at_prices:
        decided = model.decide(X_test, abstain=at.price)
        cost = average_cost(y_test, decided, COSTS, abstain=at.price)
        assert at.average_cost == pytest.approx(cost)
        assert at.share_asked == decided.mask.mean()
    assert parts.asking(gather(model, X_test, y_test)) is None


def test_curves_are_those_of_staged_decisions() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    model = booster().fit(X, y)
    curves = parts.cost_curves(gather(model, X_test, y_test, train=(X, y)))
    sets = {"these samples": (X_test, y_test), "training samples": (X, y)}
    assert curves.keys() == sets.keys()
    for name, (features, truth) in sets.items():
        expected = [average_cost(truth, a, COSTS) for a in model.staged_predict(features)]
        np.testing.assert_allclose(curves[name], expected)
    forest = MinimumCostClassifier(RandomForestClassifier(5, random_state=0), COSTS).fit(X, y)
    assert parts.cost_curves(gather(forest, X, y)) == {}
    amounts = np.ones((len(y), 3))
    assert parts.cost_curves(gather(model, X, y, sample_cost=amounts)) == {}


def test_sensitivity_counts_as_prices_are() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    found = parts.sensitivity(gather(model, X, y))
    decided = model.decide(X)
    counts = [[((y == i) & (decided == j)).sum() for j in range(3)] for i in range(3)]
    np.testing.assert_array_equal(found.counts, counts)
    assert parts.sensitivity(gather(model, X, y, sample_cost=np.ones((240, 3)))) is None


def test_reliability_is_that_of_sorted_samples() -> None:
    X, y = noisy()
    model = booster(decision="bayes").fit(X, y)
    found = parts.reliability(gather(model, X, y))
    beliefs = model.predict_proba(X)
    expected = (beliefs @ COSTS)[np.arange(240), model.predict(X)].mean()
    assert found.expected_cost == pytest.approx(expected)
    assert [group.n_samples for group in found.groups] == [24] * 10
    sure = np.argsort(beliefs.max(axis=1), kind="stable")[-24:]
    assert found.groups[-1].probability == pytest.approx(beliefs[sure].max(axis=1).mean())
    assert found.groups[-1].share_right == (beliefs[sure].argmax(axis=1) == y[sure]).mean()
    assert parts.reliability(gather(model, X[:39], y[:39])).groups == ()


def test_importances_are_sorted_and_named() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    found = parts.importances(gather(model, X, y, feature_names=list("abcd")))
    assert [share for _, share in found] == sorted(model.feature_importances_, reverse=True)
    assert found[0] == ("a", model.feature_importances_[0])
    assert {name for name, _ in parts.importances(gather(model, X, y))} == {
        f"feature {number}" for number in range(4)
    }
    forest = MinimumCostClassifier(RandomForestClassifier(5, random_state=0), COSTS).fit(X, y)
    assert len(parts.importances(gather(forest, X, y))) == 4
    frame = wards()
    table = TableClassifier(booster(None)).fit(frame, "grade")
    found = parts.importances(gather(table, frame, frame["grade"]))
    assert {name for name, _ in found} == {*"abcd", "ward"}, "columns, not features"
    inside = MinimumCostClassifier(GaussianNB(), COSTS)
    assert parts.importances(gather(inside.fit(X, y), X, y)) == ()


def test_figures_of_the_fit_count_under_the_same_costs_only() -> None:
    frame = wards()
    costs = labelled_costs(COSTS, ["bad", "mild", "worst"])
    model = TableClassifier(booster(None), cost_matrix=costs).fit(frame, "grade")
    assert parts.at_fit(gather(model, frame, frame["grade"])) is None
    measured = {"rivals": {"a": 2.0, "b": 1.0}, "rival_errors": {"a": 0.1, "b": 0.3}}
    model.held_out_ = CostSummary(
        1050, 1.5, 1575.0, 0.2, "mild", 3.0, 0.5, how="5-fold cross-validation", **measured
    )
    rivals = (parts.RivalAtFit("b", 1.0, False), parts.RivalAtFit("a", 2.0, True))
    found = parts.at_fit(gather(model, frame, frame["grade"]))
    assert found == parts.AtFit("1,050 rows, 5-fold cross-validation", 1.5, rivals)
    other = gather(model, frame, frame["grade"], costs=2 * COSTS)
    assert parts.at_fit(other) is None
    amounts = gather(model, frame, frame["grade"], sample_cost=np.ones((240, 3)))
    assert parts.at_fit(amounts) is None
    model.held_out_ = CostSummary(50, 1.5, 75.0, 0.2, "mild", 3.0, 0.5)
    assert parts.at_fit(gather(model, frame, frame["grade"])) is None, "nothing was compared"


def test_settings_are_texts() -> None:
    X, y = noisy()
    found = parts.settings(gather(booster(estimator=GaussianNB()).fit(X, y), X, y))
    assert found["estimator"] == "GaussianNB()"
    assert found["rounds kept"] == "8"
    assert not {"cost_matrix", "callbacks"} & found.keys()
    frame = wards()
    table = TableClassifier(CostBoostClassifier(n_estimators=3), decision="bayes")
    found = parts.settings(gather(table.fit(frame, "grade"), frame, frame["grade"]))
    assert found["decision"] == "'bayes'"
    assert found["n_estimators"] == "3"
    assert "estimator" not in found


def test_costs_of_the_fit_are_told_from_others() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    assert not parts.has_other_costs(gather(model, X, y))
    assert not parts.has_other_costs(gather(model, X, y, costs=COSTS + 100.0)), "being right costs"
    assert parts.has_other_costs(gather(model, X, y, costs=COSTS.T))
    assert not parts.has_other_costs(gather(GaussianNB().fit(X, y), X, y, costs=COSTS))
