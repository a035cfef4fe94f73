"""Published results and closed forms that the library has to reproduce."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost.costs import zero_one_costs
from badacost.loss import confusion_weights
from tests.golden.runs import read_run

GOLDEN = Path(__file__).parent / "golden"
RUNS = [
    (data, f"cost{cost}_K{k}__{tree}__D{depth}__S{shrinkage}")
    for data, k, depth in [("cancer", 2, 1), ("iris", 3, 1), ("gauss4", 4, 2), ("digits", 10, 3)]
    for cost in ["01", "asym", "det"]
    for tree in ["q", "x"]
    for shrinkage in ["0.1", "1"]
]


@pytest.mark.parametrize(("data", "name"), RUNS)
def test_published_training_run(data: str, name: str) -> None:
    """The authors' own classifier: labels of every round equal, steps and weights to 1e-9."""
    run = read_run(GOLDEN / f"training_{data}.npz", name)
    _, tree, depth, shrinkage = name.split("__")
    rounds = []
    model = BAdaCostClassifier(
        run.costs,
        n_estimators=len(run.beta),
        learning_rate=float(shrinkage[1:]),
        max_depth=int(depth[1:]) + 1,
        min_samples_split=11 if tree == "q" else 2,
        binning="uniform" if tree == "q" else "exact",
        cost_scale="reference",
        callbacks=[rounds.append],
    ).fit(run.X, run.y)

    weak = np.array([done.predicted for done in rounds]) + 1
    weights = np.array([done.sample_weight for done in rounds])
    np.testing.assert_array_equal(weak, run.weak_pred)
    np.testing.assert_array_equal(list(model.staged_predict(run.X)), run.strong_pred)
    np.testing.assert_allclose(model.estimator_weights_, run.beta, rtol=1e-9)
    np.testing.assert_allclose(run.weights[-1], run.last_weights, rtol=1e-12)
    np.testing.assert_allclose(weights, run.weights, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(model.cost_scores(run.X), run.scores[-1], atol=1e-8)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_corollary_1_is_samme(load) -> None:
    """With equal costs of 1/(K(K-1)), BAdaCost on scikit-learn's trees is its AdaBoost."""
    X, y = load(return_X_y=True)
    n_classes = len(np.unique(y))
    tree = DecisionTreeClassifier(max_depth=2)
    rounds = []
    ours = BAdaCostClassifier(
        zero_one_costs(n_classes) / (n_classes * (n_classes - 1)),
        estimator=tree,
        n_estimators=25,
        learning_rate=1.0,
        cost_scale=None,
        callbacks=[rounds.append],
        random_state=0,
    ).fit(X, y)
    # Seeds differ from round to round in both: replay our trees through the published formulas.
    weights = np.full(len(y), 1.0 / len(y))
    votes = np.zeros((len(y), n_classes))
    for done, predicted in zip(rounds, ours.staged_predict(X), strict=True):
        wrong = done.predicted != y
        error = weights[wrong].sum()
        alpha = np.log((1.0 - error) / error) + np.log(n_classes - 1.0)
        assert done.step == pytest.approx((n_classes - 1) ** 2 / n_classes * alpha, rel=1e-10)
        weights = weights * np.exp(alpha * wrong)
        weights /= weights.sum()
        np.testing.assert_allclose(done.sample_weight, weights, rtol=1e-9)
        votes[np.arange(len(y)), done.predicted] += alpha
        np.testing.assert_array_equal(predicted, votes.argmax(axis=1))


def test_corollary_1_against_scikit_learn() -> None:
    """The same stumps in both programs: same errors, same votes, same labels in every round."""
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).uniform(0, 1e-3, X.shape)  # no ties for the seed to break
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    theirs = AdaBoostClassifier(stump, n_estimators=12, learning_rate=1.0, random_state=0).fit(X, y)
    ours = BAdaCostClassifier(
        zero_one_costs(3) / 6,
        estimator=stump,
        n_estimators=12,
        learning_rate=1.0,
        cost_scale=None,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(
        ours.estimator_weights_, 4 / 3 * theirs.estimator_weights_, rtol=1e-9
    )
    for mine, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_built_in_tree_agrees_with_scikit_learn_without_costs() -> None:
    """With 0|1 costs and exact bins the built-in tree is CART: same SAMME, round by round."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0).astype(int) + (X[:, 1] > 0.5)
    theirs = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=10, learning_rate=1.0, random_state=0
    ).fit(X, y)
    ours = BAdaCostClassifier(
        zero_one_costs(3) / 6,
        n_estimators=10,
        learning_rate=1.0,
        max_depth=2,
        binning="exact",
        cost_scale=None,
    ).fit(X, y)
    np.testing.assert_allclose(
        ours.estimator_weights_, 4 / 3 * theirs.estimator_weights_, rtol=1e-6
    )
    for mine, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (1.0, 0.2), (0.3, 0.9)])
def test_corollary_2_is_cs_adaboost(first: float, second: float) -> None:
    """With two classes every step solves the cosh equation of CS-AdaBoost."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=400) > 0).astype(int)
    rounds = []
    BAdaCostClassifier(
        [[0.0, first], [second, 0.0]],
        n_estimators=15,
        learning_rate=1.0,
        max_depth=2,
        cost_scale=None,
        callbacks=[rounds.append],
    ).fit(X, y)
    weights = np.full(len(y), 1.0 / len(y))
    for done in rounds:
        sums = confusion_weights(y, done.predicted, weights, 2)
        b, d = sums[0, 1], sums[1, 0]
        totals = sums.sum(axis=1)

        def imbalance(step: float, b=b, d=d, totals=totals) -> float:
            left = 2 * first * b * np.cosh(step * first) + 2 * second * d * np.cosh(step * second)
            right = totals[0] * first * np.exp(-step * first)
            return left - right - totals[1] * second * np.exp(-step * second)

        # The paper's margin of two classes is half of ours, so its step is twice as long.
        assert 2 * done.step == pytest.approx(brentq(imbalance, 0, 100, xtol=1e-14), rel=1e-9)
        weights = done.sample_weight
