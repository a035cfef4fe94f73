"""AdaBoost.M1: the published schedule, its limit of one half, and AdaBoost for two classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from badacost.boosting.reweighting import CostBlindRule
from badacost.boosting.stagewise import Round
from badacost.family import AdaBoostM1Classifier, SAMMEClassifier

CANCER = load_breast_cancer(return_X_y=True)


def history(model, X, y, weight=None) -> list[Round]:
    """Fit, and return what callbacks are told."""
    rounds: list[Round] = []
    model.set_params(callbacks=[rounds.append]).fit(X, y, weight)
    return rounds


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    ("load", "depth"), [(load_breast_cancer, 1), (load_iris, 1), (load_wine, 2), (load_digits, 4)]
)
def test_published_algorithm(load, depth, weighted) -> None:
    """Freund and Schapire: beta = e/(1-e), weights times beta where right, votes log(1/beta)."""
    X, y = load(return_X_y=True)
    k = len(np.unique(y))
    given = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = AdaBoostM1Classifier(n_estimators=12, learning_rate=1.0, max_depth=depth)
    rounds = history(model, X, y, given if weighted else None)
    weights = given / given.sum()
    votes = np.zeros((len(y), k))
    for done, predicted in zip(rounds, model.staged_predict(X), strict=True):
        right = done.predicted == y
        error = weights[~right].sum()
        beta = error / (1.0 - error)
        assert done.step == pytest.approx(np.log(1 / beta), rel=1e-9)
        weights = weights * np.where(right, beta, 1.0)
        weights /= weights.sum()
        np.testing.assert_allclose(done.sample_weight, weights, rtol=1e-9)
        votes[np.arange(len(y)), done.predicted] += np.log(1 / beta)
        np.testing.assert_array_equal(predicted, votes.argmax(axis=1))
    scores = votes.sum(axis=1, keepdims=True) / 2 - votes
    np.testing.assert_allclose(model.cost_scores(X), scores, atol=1e-9)


def test_learning_rate_shrinks_votes_and_weights() -> None:
    rounds = history(AdaBoostM1Classifier(n_estimators=8, learning_rate=0.2), *CANCER)
    weights = np.full(len(CANCER[1]), 1 / len(CANCER[1]))
    for done in rounds:
        wrong = done.predicted != CANCER[1]
        odds = (1 - weights[wrong].sum()) / weights[wrong].sum()
        assert done.step == pytest.approx(0.2 * np.log(odds), rel=1e-9)
        weights = weights * odds ** (0.2 * wrong)
        weights /= weights.sum()
        np.testing.assert_allclose(done.sample_weight, weights, rtol=1e-9)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_two_classes_are_samme(rate, depth) -> None:
    """The same scores; steps twice as long, for margins half as long."""
    X, y = CANCER
    parameters = {"n_estimators": 15, "learning_rate": rate, "max_depth": depth}
    model, samme = AdaBoostM1Classifier(**parameters), SAMMEClassifier(**parameters)
    for one, other in zip(history(model, X, y), history(samme, X, y), strict=True):
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.step == pytest.approx(2 * other.step, rel=1e-9)
        np.testing.assert_allclose(one.sample_weight, other.sample_weight, rtol=1e-9)
    np.testing.assert_allclose(model.cost_scores(X), samme.cost_scores(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), samme.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_scikit_learn_with_its_own_stumps(rate) -> None:
    X, y = CANCER
    X = X * np.random.default_rng(0).uniform(1, 1.001, X.shape)  # no ties for a seed to break
    stump = DecisionTreeClassifier(max_depth=1)
    parameters = {"n_estimators": 15, "learning_rate": rate, "random_state": 0}
    theirs = AdaBoostClassifier(stump, **parameters).fit(X, y)
    ours = AdaBoostM1Classifier(estimator=stump, **parameters).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-9)
    np.testing.assert_array_equal(list(ours.staged_predict(X)), list(theirs.staged_predict(X)))


def test_scikit_learn_with_the_built_in_stump() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=300) > 0).astype(int)
    parameters = {"n_estimators": 15, "learning_rate": 1.0}
    stump = DecisionTreeClassifier(max_depth=1)
    theirs = AdaBoostClassifier(stump, random_state=0, **parameters).fit(X, y)
    ours = AdaBoostM1Classifier(max_depth=1, binning="exact", **parameters).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-6)
    np.testing.assert_array_equal(list(ours.staged_predict(X)), list(theirs.staged_predict(X)))


# Right on more than half.


def test_a_first_learner_wrong_on_more_than_half_decides_alone() -> None:
    X, y = load_digits(return_X_y=True)
    model = AdaBoostM1Classifier(max_depth=1)
    with pytest.warns(ConvergenceWarning, match="The first weak learner"):
        rounds = history(model, X, y)
    assert (rounds[0].predicted != y).mean() > 0.5  # though far better than chance
    assert model.stop_reason_ == "useless"
    np.testing.assert_array_equal(model.predict(X), rounds[0].predicted)


def test_a_later_learner_wrong_on_more_than_half_ends_the_fit() -> None:
    """Where `SAMMEClassifier` goes on."""
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
    parameters = {"n_estimators": 40, "learning_rate": 1.0, "max_depth": 2, "binning": "exact"}
    model = AdaBoostM1Classifier(**parameters)
    rounds = history(model, X, y)
    assert model.stop_reason_ == "useless"
    assert 1 < len(rounds) == model.n_estimators_ < 40
    weights = rounds[-1].sample_weight
    following = DecisionTreeClassifier(max_depth=2).fit(X, y, weights)
    assert weights[following.predict(X) != y].sum() >= 0.5
    assert SAMMEClassifier(**parameters).fit(X, y).n_estimators_ == 40


@pytest.mark.parametrize(
    ("sums", "odds"),
    [
        ([[0.3, 0.1], [0.2, 0.4]], 7 / 3),
        ([[3.0, 1.0], [2.0, 4.0]], 7 / 3),
        ([[0.1, 0.4], [0.4, 0.1]], 1 / 4),
        ([[0.5, 0], [0, 0.5]], 1e10),
        ([[0, 0.5], [0.5, 0]], 1e-10),
        ([[0.5, 1e-15], [0, 0.5]], 1e15),
        ([[1.0, 1e-300], [0, 1.0]], 2e300),
        ([[0.2, 0, 0.1], [0.1, 0.2, 0], [0, 0, 0.4]], 4),
    ],
)
def test_steps(sums, odds) -> None:
    rule = CostBlindRule(0.5 - np.eye(len(sums)))
    assert rule.step(np.array(sums)) == pytest.approx(np.log(odds), rel=1e-9)


# Probabilities.


def test_posterior_of_a_population_of_two_classes() -> None:
    cells = np.arange(30.0)[:, np.newaxis]
    truth = np.random.default_rng(0).dirichlet([2.0, 2.0], size=30)
    X, y = np.repeat(cells, 2, axis=0), np.tile([0, 1], 30)
    model = AdaBoostM1Classifier(n_estimators=100, learning_rate=1.0, max_depth=10)
    model.fit(X, y, truth.ravel())
    np.testing.assert_allclose(model.predict_proba(cells), truth, atol=0.01)


def test_more_classes_have_the_softmax_of_the_votes() -> None:
    X, y = load_wine(return_X_y=True)
    model = AdaBoostM1Classifier(n_estimators=5, max_depth=2).fit(X, y)
    odds = np.exp(-model.cost_scores(X))
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))
