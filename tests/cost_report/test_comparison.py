"""Ways to decide and their intervals: those of drawing again; rivals know no costs in training."""

from __future__ import annotations

import numpy as np
import pytest

from badacost import CostBoostClassifier
from badacost.cost_report.comparison import (
    N_RESAMPLES,
    Way,
    compare,
    own_ways,
    trained_without_costs,
)
from badacost.cost_report.evidence import Evidence, gather
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import DecisionCosts
from badacost.metrics import average_cost
from tests.cost_report.samples import COSTS, booster, noisy


def evidence_of(truth: np.ndarray, answers: np.ndarray) -> Evidence:
    return Evidence(None, None, None, truth, answers, DecisionCosts(COSTS), None, None, None)


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


def test_rivals_do_not_know_the_costs_in_training() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    model = booster().fit(X, y)
    found = {}
    for name, costs in {"as they are": COSTS, "swapped": COSTS.T}.items():
        evidence = gather(model, X_test, y_test, costs=costs, train=(X, y))
        found[name] = {way.name: way for way in trained_without_costs(evidence, 0, None)}
    assert found["as they are"].keys() == {
        f"{rival}, {rule}"
        for rival in ("boosting without costs", "CostBoost")
        for rule in ("most likely class", "minimum expected cost")
    }
    for name, way in found["as they are"].items():
        assert way.kind == "trained without costs"
        is_same = np.array_equal(way.answers, found["swapped"][name].answers)
        assert is_same == name.endswith("most likely class")
    rival = CostBoostClassifier(random_state=0).fit(X, y)
    least = minimum_cost_decision(rival.predict_proba(X_test), COSTS)
    way = found["as they are"]["CostBoost, minimum expected cost"]
    np.testing.assert_array_equal(way.answers, least)


def test_training_without_a_class() -> None:
    X, y = noisy()
    some = y > 0
    evidence = gather(booster().fit(X, y), X, y, train=(X[some], y[some]))
    for way in trained_without_costs(evidence, 0, None):
        assert {*way.answers} <= ({1, 2} if way.name.endswith("class") else {0, 1, 2})


def test_rivals_decide_by_the_prices_of_samples() -> None:
    (X, y), (X_test, y_test) = noisy(), noisy(seed=1)
    amounts = np.random.default_rng(0).uniform(1, 50, (len(y_test), 3))
    evidence = gather(booster().fit(X, y), X_test, y_test, sample_cost=amounts, train=(X, y))
    ways = {way.name: way for way in trained_without_costs(evidence, 0, None)}
    rival = CostBoostClassifier(random_state=0).fit(X, y)
    wrong = 1.0 - rival.predict_proba(X_test)
    np.testing.assert_array_equal(
        ways["CostBoost, minimum expected cost"].answers, (wrong * amounts).argmin(axis=1)
    )
