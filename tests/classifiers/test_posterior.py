"""A synthetic problem with a known P(y|x): probabilities, and what each decision rule costs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from badacost import BAdaCostClassifier
from badacost.costs import minimum_cost_decision, stationary_distribution

FloatArray = NDArray[np.float64]

COSTS = np.array([[0.0, 1, 2, 10], [8, 0, 1, 1], [1, 6, 0, 1], [1, 1, 3, 0]])
N_CELLS = 30
CELLS = np.column_stack([np.arange(N_CELLS) % 6, np.arange(N_CELLS) // 6]).astype(float)
TRUTH = np.random.default_rng(0).dirichlet(np.full(4, 2.0), size=N_CELLS)  # P(y | cell)


def expected_cost(predicted: NDArray[np.integer], truth: FloatArray = TRUTH) -> float:
    """Exact cost of a label for every cell, all cells being equally likely."""
    return float((truth * COSTS[:, predicted].T).sum(axis=1).mean())


def sample(n: int, seed: int) -> tuple[FloatArray, NDArray[np.integer], NDArray[np.integer]]:
    """Cells and labels, and how often each pair was drawn."""
    drawn = np.random.default_rng(seed).multinomial(n, TRUTH.ravel() / N_CELLS)
    return np.repeat(CELLS, 4, axis=0), np.tile(np.arange(4), N_CELLS), drawn


def booster(**parameters) -> BAdaCostClassifier:
    """Small costs, so that the costs of a tree, exp(D) - 1, are near the gradient D of the loss."""
    defaults = {"n_estimators": 100, "learning_rate": 1.0, "max_depth": 10, "cost_scale": 0.05}
    return BAdaCostClassifier(COSTS, **{**defaults, **parameters})


@pytest.mark.parametrize("scale", [0.05, "auto"])
def test_probabilities_converge_with_the_number_of_samples(scale) -> None:
    errors = []
    for n in (300, 3_000, 30_000):
        model = booster(cost_scale=scale).fit(*sample(n, seed=1))
        errors.append(np.abs(model.predict_proba(CELLS) - TRUTH).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]  # about the square root of 10 each time
    assert errors[2] < 0.02


@pytest.mark.parametrize("scale", [0.05, "auto"])
def test_bayes_rule_reaches_the_least_cost_where_margin_does_not(scale) -> None:
    best = expected_cost(minimum_cost_decision(TRUTH, COSTS))
    limit_of_margin = expected_cost((TRUTH / stationary_distribution(COSTS)).argmax(axis=1))
    assert limit_of_margin > 1.2 * best  # what the rule of the paper costs on infinite data

    model = booster(decision="bayes", cost_scale=scale).fit(*sample(30_000, seed=2))
    assert expected_cost(model.predict(CELLS)) < 1.02 * best
    model.set_params(decision="margin")
    assert expected_cost(model.predict(CELLS)) > 1.2 * best
    # Where the two disagree is known from P alone, but for cells near a tie.
    disagree = minimum_cost_decision(TRUTH, COSTS) != (
        TRUTH / stationary_distribution(COSTS)
    ).argmax(axis=1)
    found = model.predict(CELLS) != model.set_params(decision="bayes").predict(CELLS)
    assert disagree.sum() >= 5
    assert (disagree == found).mean() > 0.8


@pytest.mark.parametrize(
    "parameters",
    [
        {"cost_scale": 0.05, "n_estimators": 150},
        {"cost_scale": "auto", "n_estimators": 150},
        {"cost_scale": "auto", "n_estimators": 300, "learning_rate": 0.3},
        {"cost_scale": "reference", "n_refinements": 3, "learning_rate": 0.3, "n_estimators": 200},
    ],
    ids=["small costs", "default", "slow", "refined"],
)
def test_posterior_of_a_population(parameters) -> None:
    """Weights P(y|x) in the place of samples leave no noise: the closed form is the limit."""
    X, y = np.repeat(CELLS, 4, axis=0), np.tile(np.arange(4), N_CELLS)
    model = booster(decision="bayes", **parameters).fit(X, y, TRUTH.ravel())
    assert np.abs(model.predict_proba(CELLS) - TRUTH).mean() < 0.01
    best = expected_cost(minimum_cost_decision(TRUTH, COSTS))
    assert expected_cost(model.predict(CELLS)) < 1.002 * best


def test_two_classes_have_one_rule() -> None:
    """For K = 2 the rule of the paper is the rule of least expected cost."""
    costs = np.array([[0.0, 1], [7, 0]])
    truth = np.linspace(0.02, 0.98, N_CELLS)
    X, y = np.repeat(CELLS, 2, axis=0), np.tile([0, 1], N_CELLS)
    weight = np.column_stack([1 - truth, truth]).ravel()
    model = BAdaCostClassifier(
        costs, n_estimators=300, learning_rate=0.3, max_depth=6, cost_scale=0.1
    ).fit(X, y, weight)
    margin = model.predict(CELLS)
    np.testing.assert_array_equal(margin, model.set_params(decision="bayes").predict(CELLS))
    clear = np.abs(truth - 1 / 8) > 0.02  # the threshold of costs 1 and 7
    np.testing.assert_array_equal(margin[clear], (truth > 1 / 8)[clear])
