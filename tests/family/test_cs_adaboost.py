"""CS-AdaBoost: corollary 2 of the paper, its cosh equation, its loss and its posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import badacost
from badacost import BAdaCostClassifier, ModelFileError
from badacost.boosting.stagewise import Round
from badacost.costs import cost_star, minimum_cost_decision, zero_one_costs
from badacost.family import AdaBoostM1Classifier, CSAdaBoostClassifier, SAMMEClassifier
from badacost.io.model_file import read_model, write_model

COSTS = np.array([[0.0, 1], [5, 0]])
NOISY = make_classification(500, 6, n_informative=4, flip_y=0.2, class_sep=0.6, random_state=0)
CANCER = load_breast_cancer(return_X_y=True)
PAIRS = [(1.0, 1.0), (1.0, 0.2), (0.3, 0.9), (7.0, 20.0), (1e-3, 1e-2)]


def history(model, X, y, weight=None) -> list[Round]:
    """Fit, and return what callbacks are told."""
    rounds: list[Round] = []
    model.set_params(callbacks=[rounds.append]).fit(X, y, weight)
    return rounds


# Corollary 2.


@pytest.mark.parametrize("parameters", [
    {"max_depth": 1}, {"max_depth": 3}, {"learning_rate": 1.0, "max_depth": 1},
    {"learning_rate": 1.0, "max_depth": 3}, {"subsample": 0.5, "max_features": 2},
    {"estimator": DecisionTreeClassifier(max_depth=2, max_features=3)},
], ids="-".join)  # fmt: skip
@pytest.mark.parametrize(
    ("data", "costs"), [(NOISY, COSTS), (CANCER, COSTS.T), (NOISY, [[0, 0.3], [0.1, 0]])],
    ids=["noisy-5", "cancer-1/5", "noisy-1/3"],
)  # fmt: skip
def test_badacost_for_two_classes_is_cs_adaboost(data, costs, parameters) -> None:
    X, y = data
    parameters = {"n_estimators": 6, "random_state": 0, **parameters}
    model, booster = (
        CSAdaBoostClassifier(costs, **parameters),
        BAdaCostClassifier(costs, **parameters),
    )
    for one, other in zip(history(model, X, y), history(booster, X, y), strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(other.step, rel=1e-9)
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)
    np.testing.assert_allclose(model.cost_scores(X), booster.cost_scores(X), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), booster.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), booster.predict(X))


@pytest.mark.parametrize("scale", [0.02, 0.5, 3.0])
def test_another_scale_of_badacost_stretches_the_steps(scale) -> None:
    """Provided that learners do not see costs: these have no probabilities."""
    X, y = NOISY
    parameters = {"estimator": RidgeClassifier(), "n_estimators": 8, "learning_rate": 1.0}
    model = CSAdaBoostClassifier(COSTS, **parameters)
    booster = BAdaCostClassifier(COSTS, cost_scale=scale, **parameters)
    for one, other in zip(history(model, X, y), history(booster, X, y), strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(2 * scale * other.step, rel=1e-9)  # margins 1 and 2 scale
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)
    np.testing.assert_allclose(model.cost_scores(X), booster.cost_scores(X), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_steps_solve_the_cosh_equation(first, second, weighted) -> None:
    X, y = NOISY
    weight = np.random.default_rng(0).uniform(0.1, 2, len(y)) if weighted else np.ones(len(y))
    model = CSAdaBoostClassifier(
        [[0.0, first], [second, 0.0]], n_estimators=12, learning_rate=1.0, max_depth=2
    )
    weights = weight / weight.sum()
    for done in history(model, X, y, weight):
        wrong = done.predicted != y
        b, d = (weights[wrong & (y == label)].sum() for label in (0, 1))
        t_1, t_2 = (weights[y == label].sum() for label in (0, 1))

        def imbalance(beta: float, b=b, d=d, t_1=t_1, t_2=t_2) -> float:
            left = 2 * first * b * np.cosh(beta * first) + 2 * second * d * np.cosh(beta * second)
            right = t_1 * first * np.exp(-beta * first) + t_2 * second * np.exp(-beta * second)
            return left - right

        largest = max(first, second)  # the unit of our costs
        root = brentq(imbalance, 0, 100 / largest, xtol=1e-300, rtol=1e-14)
        assert done.step == pytest.approx(largest * root, rel=1e-9)
        weights = done.sample_weight


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_equal_costs_are_adaboost(rate) -> None:
    X, y = NOISY
    parameters = {"n_estimators": 15, "learning_rate": rate, "max_depth": 2}
    model, plain = CSAdaBoostClassifier(**parameters), AdaBoostM1Classifier(**parameters)
    for one, other in zip(history(model, X, y), history(plain, X, y), strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(other.step / 2, rel=1e-9)
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)
    np.testing.assert_allclose(model.cost_scores(X), plain.cost_scores(X), atol=1e-9)


# The loss.


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_exponential_loss_falls_every_round(first, second, rate) -> None:
    """exp(-C_1 F) on the first class and exp(C_2 F) on the second, from the learners alone."""
    X, y = NOISY
    costs = np.array([[0.0, first], [second, 0.0]])
    model = CSAdaBoostClassifier(costs, n_estimators=20, learning_rate=rate, max_depth=2)
    rounds = history(model, X, y)
    prices = costs.sum(axis=1) / costs.max()
    side = np.where(y == 0, 1.0, -1.0)
    function, losses = np.zeros(len(y)), [1.0]
    for done, scores in zip(rounds, model.staged_cost_scores(X), strict=True):
        function += done.step * np.where(done.predicted == 0, 1.0, -1.0)
        np.testing.assert_allclose(scores, np.outer(function, [-1, 1]) * prices, atol=1e-9)
        exponential = np.exp(-side * prices[y] * function)
        losses.append(exponential.mean())
        np.testing.assert_allclose(done.sample_weight, exponential / exponential.sum(), rtol=1e-9)
    assert (np.diff(losses) < 0).all()


def test_only_the_ratio_of_costs_counts() -> None:
    X, y = NOISY
    plain = CSAdaBoostClassifier(COSTS, n_estimators=10).fit(X, y)
    for factor in (2.0**-40, 1024.0, 1e-200, 1e200):
        scaled = CSAdaBoostClassifier(factor * COSTS, n_estimators=10).fit(X, y)
        np.testing.assert_array_equal(scaled.apply(X), plain.apply(X))
        np.testing.assert_allclose(scaled.cost_scores(X), plain.cost_scores(X), rtol=1e-9)
        np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
        np.testing.assert_allclose(scaled.train_score_, factor * plain.train_score_)


@pytest.mark.parametrize("costs", [[[0, 1e300], [1e-300, 0]], [[0, 1e-320], [1, 0]]])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e5])
def test_costs_at_the_ends_of_the_range(costs, unit) -> None:
    X, y = NOISY
    model = CSAdaBoostClassifier(costs, n_estimators=5).fit(X, y, np.full(len(y), unit))
    expensive = np.argmax(np.sum(costs, axis=1))
    np.testing.assert_array_equal(model.predict(X[y == expensive]), expensive)
    assert np.isfinite(model.cost_scores(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


# Decisions and probabilities.


@pytest.mark.parametrize("costs", [COSTS, COSTS.T])
def test_decisions_are_of_least_expected_cost(costs) -> None:
    X, y = NOISY
    model = CSAdaBoostClassifier(costs, n_estimators=10).fit(X, y)
    decisions = minimum_cost_decision(model.predict_proba(X), costs)
    np.testing.assert_array_equal(model.predict(X), decisions)


def test_a_expensive_class_is_missed_less() -> None:
    X, y = NOISY
    missed = [
        [((model.predict(X) != y) & (y == label)).sum() for label in (0, 1)]
        for model in (
            CSAdaBoostClassifier(c, n_estimators=20).fit(X, y) for c in (COSTS.T, None, COSTS)
        )
    ]
    assert missed[0][0] < missed[1][0] < missed[2][0]
    assert missed[0][1] > missed[1][1] > missed[2][1]


N_CELLS = 30
CELLS = np.column_stack([np.arange(N_CELLS) % 6, np.arange(N_CELLS) // 6]).astype(float)
TRUTH = np.random.default_rng(0).dirichlet([2.0, 2.0], size=N_CELLS)  # P(y | cell)


@pytest.mark.parametrize("costs", [COSTS, COSTS.T, [[0, 1], [20, 0]]], ids=["5", "1/5", "20"])
def test_posterior_of_a_population(costs) -> None:
    X, y = np.repeat(CELLS, 2, axis=0), np.tile([0, 1], N_CELLS)
    model = CSAdaBoostClassifier(costs, n_estimators=100, learning_rate=1.0, max_depth=10)
    model.fit(X, y, TRUTH.ravel())
    np.testing.assert_allclose(model.predict_proba(CELLS), TRUTH, atol=0.015)
    decisions = minimum_cost_decision(TRUTH, costs)
    clear = np.ptp(TRUTH @ costs, axis=1) > 0.1
    np.testing.assert_array_equal(model.predict(CELLS)[clear], decisions[clear])


def test_probabilities_converge_with_the_number_of_samples() -> None:
    errors = []
    for n in (200, 2_000, 20_000):
        rng = np.random.default_rng(1)
        cell = rng.integers(N_CELLS, size=n)
        y = (rng.random(n) > TRUTH[cell, 0]).astype(int)
        model = CSAdaBoostClassifier(COSTS, n_estimators=40, learning_rate=1.0, max_depth=10)
        model.fit(CELLS[cell], y)
        errors.append(np.abs(model.predict_proba(CELLS) - TRUTH).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]  # about the square root of 10 each time


def test_a_file_of_three_classes_is_refused(tmp_path) -> None:
    """Even one whose trees and costs agree."""
    X, y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
    path = tmp_path / "model.bin"
    costs = zero_one_costs(3)
    SAMMEClassifier(n_estimators=3).fit(X, y).save(path)
    model = read_model(path)
    arrays = {**model.arrays, "forest_table": cost_star(costs).T.copy()}
    write_model(path, "CSAdaBoostClassifier", model.header, arrays)
    with pytest.raises(ModelFileError, match="Only binary classification is supported"):
        badacost.load(path)
