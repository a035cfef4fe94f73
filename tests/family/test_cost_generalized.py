"""Cost-Generalized AdaBoost: AdaBoost from weights in proportion to the costs, no more."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from badacost.boosting.stagewise import Round
from badacost.costs import minimum_cost_decision
from badacost.family import AdaBoostM1Classifier, CostGeneralizedAdaBoostClassifier

COSTS = np.array([[0.0, 1], [5, 0]])
X, Y = make_classification(600, 6, n_informative=4, flip_y=0.2, class_sep=0.6, random_state=0)


def history(model, weight=None) -> list[Round]:
    """Fit, and return what callbacks are told."""
    rounds: list[Round] = []
    model.set_params(callbacks=[rounds.append]).fit(X, Y, weight)
    return rounds


@pytest.mark.parametrize("parameters", [
    {}, {"learning_rate": 1.0, "max_depth": 1}, {"learning_rate": 1.0, "max_depth": 3},
    {"subsample": 0.5, "max_features": 2}, {"binning": "uniform", "max_bins": 20},
    {"estimator": GaussianNB(), "learning_rate": 0.5},
], ids=lambda parameters: "-".join(parameters) or "default")  # fmt: skip
@pytest.mark.parametrize(
    ("costs", "weighted"), [(COSTS, False), (COSTS.T, True), ([[0, 0.3], [0.1, 0]], True)],
    ids=["5", "1/5-weighted", "1/3-weighted"],
)  # fmt: skip
def test_it_is_adaboost_weighted_by_price(costs, weighted, parameters) -> None:
    prices = np.sum(costs, axis=1)[Y]
    weight = np.random.default_rng(0).uniform(0.1, 2, len(Y)) if weighted else None
    # Quantile bins would follow the weights given by the user, but not the prices.
    parameters = {"n_estimators": 6, "random_state": 0, "binning": "exact", **parameters}
    model = CostGeneralizedAdaBoostClassifier(costs, **parameters)
    plain = AdaBoostM1Classifier(**parameters)
    theirs = history(plain, prices if weight is None else prices * weight)
    for one, other in zip(history(model, weight), theirs, strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(other.step, rel=1e-9)
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)
    np.testing.assert_allclose(model.cost_scores(X), plain.cost_scores(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("costs", [None, [[0, 7], [7, 0]]])
def test_equal_costs_are_adaboost(costs) -> None:
    model = CostGeneralizedAdaBoostClassifier(costs, n_estimators=10).fit(X, Y)
    plain = AdaBoostM1Classifier(n_estimators=10).fit(X, Y)
    np.testing.assert_array_equal(model.apply(X), plain.apply(X))
    np.testing.assert_array_equal(model.cost_scores(X), plain.cost_scores(X))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-12)


def test_costs_bound_the_training_cost() -> None:
    """The bound of AdaBoost, for errors weighted by price: the product of 2 sqrt(e (1 - e))."""
    model = CostGeneralizedAdaBoostClassifier(COSTS, n_estimators=40, learning_rate=1.0)
    prices = COSTS.sum(axis=1)[Y]
    weights, bound = prices / prices.sum(), 1.0
    for done, predicted in zip(history(model), model.staged_predict(X), strict=True):
        error = weights[done.predicted != Y].sum()
        bound *= 2 * np.sqrt(error * (1 - error))
        assert prices[predicted != Y].sum() / prices.sum() <= bound
        weights = done.sample_weight
    assert bound < 0.5


def test_scores_of_the_rounds_are_costs() -> None:
    """Not errors: here the class differs from AdaBoost with weights."""
    model = CostGeneralizedAdaBoostClassifier(COSTS, n_estimators=6).fit(X, Y)
    costs = [COSTS[Y, predicted].mean() for predicted in model.staged_predict(X)]
    np.testing.assert_allclose(model.train_score_, costs)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_units_do_not_matter(unit) -> None:
    plain = CostGeneralizedAdaBoostClassifier(COSTS, n_estimators=5).fit(X, Y)
    costly = CostGeneralizedAdaBoostClassifier(unit / 8 * COSTS, n_estimators=5).fit(X, Y)
    heavy = CostGeneralizedAdaBoostClassifier(COSTS, n_estimators=5)
    heavy.fit(X, Y, np.full(len(Y), unit))
    for other in (costly, heavy):
        np.testing.assert_array_equal(other.apply(X), plain.apply(X))
        np.testing.assert_allclose(other.cost_scores(X), plain.cost_scores(X), rtol=1e-9)
        np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("costs", [[[0, 1e300], [1e-300, 0]], [[0, 1e-320], [1, 0]]])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e7])
def test_costs_at_the_ends_of_the_range(costs, unit) -> None:
    model = CostGeneralizedAdaBoostClassifier(costs, n_estimators=5)
    model.fit(X, Y, np.full(len(Y), unit))
    expensive = np.argmax(np.sum(costs, axis=1))
    np.testing.assert_array_equal(model.predict(X[expensive == Y]), expensive)
    assert np.isfinite(model.cost_scores(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


# Decisions and probabilities.


@pytest.mark.parametrize("costs", [COSTS, COSTS.T])
def test_decisions_are_of_least_expected_cost(costs) -> None:
    model = CostGeneralizedAdaBoostClassifier(costs, n_estimators=10).fit(X, Y)
    decisions = minimum_cost_decision(model.predict_proba(X), costs)
    np.testing.assert_array_equal(model.predict(X), decisions)


N_CELLS = 30
CELLS = np.column_stack([np.arange(N_CELLS) % 6, np.arange(N_CELLS) // 6]).astype(float)
TRUTH = np.random.default_rng(0).dirichlet([2.0, 2.0], size=N_CELLS)  # P(y | cell)


@pytest.mark.parametrize("costs", [COSTS, COSTS.T, [[0, 1], [20, 0]]], ids=["5", "1/5", "20"])
def test_posterior_of_a_population(costs) -> None:
    cells, y = np.repeat(CELLS, 2, axis=0), np.tile([0, 1], N_CELLS)
    parameters = {"n_estimators": 100, "learning_rate": 1.0, "max_depth": 10}
    model = CostGeneralizedAdaBoostClassifier(costs, **parameters).fit(cells, y, TRUTH.ravel())
    np.testing.assert_allclose(model.predict_proba(CELLS), TRUTH, atol=0.015)
    decisions = minimum_cost_decision(TRUTH, costs)
    clear = np.ptp(TRUTH @ costs, axis=1) > 0.1
    np.testing.assert_array_equal(model.predict(CELLS)[clear], decisions[clear])


def test_probabilities_converge_with_the_number_of_samples() -> None:
    parameters = {"n_estimators": 40, "learning_rate": 1.0, "max_depth": 10}
    errors = []
    for n in (200, 2_000, 20_000):
        rng = np.random.default_rng(1)
        cell = rng.integers(N_CELLS, size=n)
        y = (rng.random(n) > TRUTH[cell, 0]).astype(int)
        model = CostGeneralizedAdaBoostClassifier(COSTS, **parameters).fit(CELLS[cell], y)
        errors.append(np.abs(model.predict_proba(CELLS) - TRUTH).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]  # about the square root of 10 each time
