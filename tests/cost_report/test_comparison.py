"""Ways to decide and their intervals: those of drawing again; rivals know no costs in training."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from badacost import CostBoostClassifier, MinimumCostClassifier, SAMMEClassifier
from badacost.cost_report.comparison import (
    N_RESAMPLES,
    Way,
    compare,
    own_ways,
    trained_without_costs,
)
from badacost.cost_report.evidence import Evidence, gather
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import Prices
from badacost.metrics import average_cost
from tests.cost_report.samples import COSTS, booster, noisy


def evidence_of(truth: np.ndarray, answers: np.ndarray) -> Evidence:
    return Evidence(None, None, None, truth, answers, Prices(COSTS), None, None, None)


def test_intervals_are_those_of_drawing_samples_again() -> None:
    rng = np.random.default_rng(5)
    truth, model, other = rng.integers(3, size=(3, 150))
    evidence = evidence_of(truth, model)
    ways = [Way("the model", model, "model"), Way("other", other)]
    compared = compare(evidence, ways, 0)
    paid = np.stack([COSTS[truth, model], COSTS[truth, other]], axis=1)
    np.testing.assert_allclose([way.average_cost for way in compared], paid.mean(axis=0))
    drawn = paid[rng.integers(150, size=(2 * N_RESAMPLES, 150))].mean(axis=1)
    spread = drawn.std(axis=0)
    expected = np.percentile(drawn, [2.5, 97.5], axis=0).T
    intervals = np.array([way.interval for way in compared])
    assert (np.abs(intervals - expected) < 0.25 * spread[:, None]).all()
    saved = np.percentile(drawn[:, 1] - drawn[:, 0], [2.5, 97.5])
    np.testing.assert_allclose(compared[1].saved_interval, saved, atol=0.35 * spread.max())
    assert compared[1].saved == pytest.approx(paid[:, 1].mean() - paid[:, 0].mean())
    assert compared[1].error_rate == (other != truth).mean()
    assert compare(evidence, ways, 0) == compared
    assert compare(evidence, ways, 1) != compared


def test_a_clear_difference_excludes_zero() -> None:
    truth = np.arange(90) % 3
    ways = [Way("the model", truth, "model"), Way("wrong", (truth + 1) % 3), Way("same", truth)]
    own, wrong, same = compare(evidence_of(truth, truth), ways, 0)
    assert own.average_cost == same.average_cost == 0
    assert wrong.is_clear
    assert wrong.saved == pytest.approx((1 + 30 + 7) / 3)
    assert not same.is_clear
    assert same.saved_interval == (0.0, 0.0)


def test_own_ways() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    evidence = gather(model, X, y)
    ways = {way.kind: way for way in own_ways(evidence)}
    assert [*ways] == ["model", "most likely", "minimum expected", "constant"]
    beliefs = model.predict_proba(X)
    np.testing.assert_array_equal(ways["model"].answers, model.predict(X))
    np.testing.assert_array_equal(ways["most likely"].answers, beliefs.argmax(axis=1))
    least = minimum_cost_decision(beliefs, COSTS)
    np.testing.assert_array_equal(ways["minimum expected"].answers, least)
    constants = [average_cost(y, np.full_like(y, k), COSTS) for k in range(3)]
    assert set(ways["constant"].answers) == {int(np.argmin(constants))}
    by_cost = gather(booster(decision="bayes").fit(X, y), X, y)
    kinds = [way.kind for way in own_ways(by_cost)]
    assert kinds == ["model", "most likely", "constant"], "that is the model itself"


def test_nothing_is_trained_without_training_samples() -> None:
    X, y = noisy()
    assert trained_without_costs(gather(booster().fit(X, y), X, y), 0, None) == []


def test_rivals_do_not_depend_on_costs_in_training() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    evidence = gather(booster(max_depth=7).fit(X, y), X_test, y_test, train=(X, y))
    blind, sighted, forest = trained_without_costs(evidence, 0, None)
    assert {way.kind for way in (blind, sighted, forest)} == {"trained without costs"}
    assert "trees of depth 1: of 1, 2, 4, 7 the cheapest in 3-fold" in blind.remark
    rival = SAMMEClassifier(n_estimators=8, max_depth=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(blind.answers, rival.predict(X_test))
    least = minimum_cost_decision(rival.predict_proba(X_test), COSTS)
    np.testing.assert_array_equal(sighted.answers, least)
    trees = RandomForestClassifier(200, random_state=0).fit(X, y)
    least = minimum_cost_decision(trees.predict_proba(X_test), COSTS)
    np.testing.assert_array_equal(forest.answers, least)


def test_remarks_of_rivals() -> None:
    X, y = noisy()

    def remark(model) -> str:
        return trained_without_costs(gather(model.fit(X, y), X, y, train=(X, y)), 0, None)[0].remark

    assert "of 1, 2, 4, any the" in remark(booster(max_depth=None, max_leaf_nodes=4))
    assert remark(booster(estimator=GaussianNB())) == "SAMME has the settings of the model."
    costboost = CostBoostClassifier(COSTS, n_estimators=5, random_state=0)
    assert remark(costboost).startswith("SAMME has default settings, but trees of depth")


def test_training_without_a_class() -> None:
    X, y = noisy()
    some = y < 2
    evidence = gather(booster().fit(X, y), X, y, train=(X[some], y[some]))
    ways = trained_without_costs(evidence, 0, None)
    assert all({*way.answers} <= {0, 1} for way in ways)
    rival = MinimumCostClassifier(RandomForestClassifier(200, random_state=0), COSTS[:2, :2])
    np.testing.assert_array_equal(ways[-1].answers, rival.fit(X[some], y[some]).predict(X))


def test_rivals_decide_by_the_prices_of_samples() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    amounts = np.random.default_rng(0).uniform(1, 50, (len(y_test), 3))
    evidence = gather(booster().fit(X, y), X_test, y_test, sample_cost=amounts, train=(X, y))
    forest = trained_without_costs(evidence, 0, None)[-1]
    trees = RandomForestClassifier(200, random_state=0).fit(X, y)
    wrong = 1.0 - trees.predict_proba(X_test)
    np.testing.assert_array_equal(forest.answers, (wrong * amounts).argmin(axis=1))
