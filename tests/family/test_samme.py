"""SAMME: corollary 1 of the paper, the published formulas, and scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost.boosting.stagewise import Round
from badacost.costs import zero_one_costs
from badacost.family import AdaBoostM1Classifier, SAMMEClassifier
from badacost.loss import cost_margins, optimal_step

LOADERS = [load_breast_cancer, load_iris, load_wine, load_digits]  # K = 2, 3, 3, 10


def history(model, X, y, weight=None) -> list[Round]:
    """Fit, and return what callbacks are told."""
    rounds: list[Round] = []
    model.set_params(callbacks=[rounds.append]).fit(X, y, weight)
    return rounds


def badacost(n_classes: int, **parameters) -> BAdaCostClassifier:
    """BAdaCost with the costs of corollary 1."""
    costs = zero_one_costs(n_classes) / (n_classes * (n_classes - 1))
    return BAdaCostClassifier(costs, cost_scale=None, **parameters)


def assert_same_rounds(ours: list[Round], theirs: list[Round]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(other.step, rel=1e-9)
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)


# Corollary 1.


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("load", LOADERS)
def test_badacost_with_equal_costs_is_samme(load, rate, depth) -> None:
    X, y = load(return_X_y=True)
    parameters = {"n_estimators": 12, "learning_rate": rate, "max_depth": depth}
    samme, booster = SAMMEClassifier(**parameters), badacost(len(np.unique(y)), **parameters)
    assert_same_rounds(history(samme, X, y), history(booster, X, y))
    np.testing.assert_allclose(samme.cost_scores(X), booster.cost_scores(X), atol=1e-9)
    np.testing.assert_allclose(samme.predict_proba(X), booster.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(samme.predict(X), booster.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("faint", [1e-6, 1e-13, 1e-40])
def test_badacost_is_samme_for_the_faintest_mistakes(faint, n_classes) -> None:
    """Only the lack of any mistake is replaced by a trace of one."""
    X = np.arange(30.0)[:, np.newaxis]
    y = np.repeat(np.arange(n_classes), 30 // n_classes)
    y[3] = 1  # among zeros
    weight = np.where(np.arange(30) == 3, faint, 1.0)
    parameters = {"n_estimators": 6, "learning_rate": 1.0, "max_depth": n_classes - 1}
    ours = history(SAMMEClassifier(**parameters), X, y, weight)
    assert_same_rounds(ours, history(badacost(n_classes, **parameters), X, y, weight))
    assert ours[0].step > np.log(1 / faint) / 2


def test_badacost_is_samme_for_a_perfect_learner() -> None:
    X, y = np.arange(6.0)[:, np.newaxis], np.repeat([0, 1, 2], 2)
    samme, booster = SAMMEClassifier(), badacost(3)
    assert_same_rounds(history(samme, X, y), history(booster, X, y))
    assert samme.stop_reason_ == booster.stop_reason_ == "perfect"


@given(
    st.integers(2, 6).flatmap(
        lambda k: arrays(np.float64, (k, k), elements=st.just(0.0) | st.floats(1e-250, 1.0))
    )
)
def test_step_in_closed_form_is_the_root_that_badacost_finds(sums) -> None:
    if not sums.any():
        sums[0, 0] = 1.0
    k = len(sums)
    model = SAMMEClassifier()
    model.classes_ = np.arange(k)
    rule = model._rule()
    np.testing.assert_allclose(rule.margins, cost_margins(zero_one_costs(k) / (k * (k - 1))))
    step = optimal_step(sums, rule.margins)
    assert rule.step(sums) == pytest.approx(step, rel=1e-9, abs=1e-9)


# The original.


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("load", LOADERS)
def test_published_algorithm(load, rate) -> None:
    """Zhu et al.: alpha = log((1-e)/e) + log(K-1), weights times exp(alpha) where wrong."""
    X, y = load(return_X_y=True)
    k = len(np.unique(y))
    model = SAMMEClassifier(n_estimators=12, learning_rate=rate, max_depth=2)
    rounds = history(model, X, y)
    weights = np.full(len(y), 1.0 / len(y))
    votes = np.zeros((len(y), k))
    for done, predicted in zip(rounds, model.staged_predict(X), strict=True):
        wrong = done.predicted != y
        error = weights[wrong].sum()
        alpha = rate * (np.log((1.0 - error) / error) + np.log(k - 1.0))
        assert done.step == pytest.approx((k - 1) ** 2 / k * alpha, rel=1e-9)
        weights = weights * np.exp(alpha * wrong)
        weights /= weights.sum()
        np.testing.assert_allclose(done.sample_weight, weights, rtol=1e-9)
        votes[np.arange(len(y)), done.predicted] += alpha
        np.testing.assert_array_equal(predicted, votes.argmax(axis=1))


@pytest.mark.parametrize("load", LOADERS[:3])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_scikit_learn_with_its_own_stumps(load, rate) -> None:
    X, y = load(return_X_y=True)
    X = X * np.random.default_rng(0).uniform(1, 1.001, X.shape)  # no ties for a seed to break
    k = len(np.unique(y))
    stump = DecisionTreeClassifier(max_depth=1)
    parameters = {"n_estimators": 12, "learning_rate": rate, "random_state": 0}
    theirs = AdaBoostClassifier(stump, **parameters).fit(X, y)
    ours = SAMMEClassifier(estimator=stump, **parameters).fit(X, y)
    np.testing.assert_allclose(
        ours.estimator_weights_, (k - 1) ** 2 / k * theirs.estimator_weights_, rtol=1e-9
    )
    np.testing.assert_array_equal(list(ours.staged_predict(X)), list(theirs.staged_predict(X)))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("depth", [1, 2])
def test_scikit_learn_with_the_built_in_tree(k, depth) -> None:
    rng = np.random.default_rng(k)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0) + (X[:, 1] > 0.5) * (k - 2)
    parameters = {"n_estimators": 10, "learning_rate": 1.0}
    tree = DecisionTreeClassifier(max_depth=depth)
    theirs = AdaBoostClassifier(tree, random_state=0, **parameters).fit(X, y)
    ours = SAMMEClassifier(max_depth=depth, binning="exact", **parameters).fit(X, y)
    np.testing.assert_allclose(
        ours.estimator_weights_, (k - 1) ** 2 / k * theirs.estimator_weights_, rtol=1e-6
    )
    np.testing.assert_array_equal(list(ours.staged_predict(X)), list(theirs.staged_predict(X)))


def test_learners_may_be_wrong_on_more_than_half() -> None:
    """Better than chance is enough, where AdaBoost.M1 would have to give up."""
    X, y = load_digits(return_X_y=True)
    rounds = history(SAMMEClassifier(n_estimators=5, max_depth=1), X, y)
    assert (rounds[0].predicted != y).mean() > 0.5
    assert len(rounds) == 5
    alone = AdaBoostM1Classifier(n_estimators=5, max_depth=1)
    with pytest.warns(UserWarning, match="The first weak learner"):
        alone.fit(X, y)
    assert alone.stop_reason_ == "useless"


# Probabilities.

N_CELLS = 30
CELLS = np.column_stack([np.arange(N_CELLS) % 6, np.arange(N_CELLS) // 6]).astype(float)


@pytest.mark.parametrize("k", [2, 4])
def test_posterior_of_a_population(k) -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(k, 2.0), size=N_CELLS)
    X, y = np.repeat(CELLS, k, axis=0), np.tile(np.arange(k), N_CELLS)
    model = SAMMEClassifier(n_estimators=100, learning_rate=1.0, max_depth=10)
    model.fit(X, y, truth.ravel())
    np.testing.assert_allclose(model.predict_proba(CELLS), truth, atol=0.015)


def test_probabilities_converge_with_the_number_of_samples() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(4, 2.0), size=N_CELLS)
    errors = []
    for n in (200, 2_000, 20_000):
        rng = np.random.default_rng(1)
        cell = rng.integers(N_CELLS, size=n)
        y = (rng.random(n)[:, None] > truth[cell].cumsum(axis=1)[:, :-1]).sum(axis=1)
        model = SAMMEClassifier(n_estimators=60, learning_rate=1.0, max_depth=10)
        model.fit(CELLS[cell], y)
        errors.append(np.abs(model.predict_proba(CELLS) - truth).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]  # about the square root of 10 each time
