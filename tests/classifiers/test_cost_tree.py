"""The tree as an estimator: scikit-learn's tree without costs, and what costs change."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from badacost.classifiers.cost_tree import CostSensitiveTreeClassifier
from badacost.costs import zero_one_costs


def overlapping(seed: int = 0, n: int = 600, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 4)) + 0.8 * np.eye(max(4, n_classes))[y][:, :4], y


def random_costs(seed: int, n_classes: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return zero_one_costs(n_classes) * rng.uniform(0.2, 5.0, (n_classes, n_classes))


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("max_depth", [1, 2, 3, 5, 8, None])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_scikit_learn_without_costs(n_classes, max_depth, criterion) -> None:
    """Random weights leave no ties, neither of splits nor of labels."""
    rng = np.random.default_rng(n_classes)
    X, y = overlapping(n_classes, 300, n_classes)
    X, weight = X.astype(np.float32), rng.uniform(0.5, 1.5, 300)
    shape = {"max_depth": max_depth, "criterion": criterion}
    theirs = DecisionTreeClassifier(**shape, random_state=0).fit(X, y, weight)
    ours = CostSensitiveTreeClassifier(**shape, binning="exact").fit(X, y, weight)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    # Rounding of weights makes scikit-learn split pure nodes too.
    assert ours.get_n_leaves() <= theirs.get_n_leaves()


@pytest.mark.parametrize(
    "limits", [{"max_depth": 2}, {"max_leaf_nodes": 7}, {"min_samples_leaf": 15}]
)
def test_scikit_learn_with_limits(limits) -> None:
    X, y = overlapping(5, 400)
    X = X.astype(np.float32)
    theirs = DecisionTreeClassifier(**limits, random_state=0).fit(X, y)
    ours = CostSensitiveTreeClassifier(**limits, binning="exact").fit(X, y)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert ours.get_depth() == theirs.get_depth()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        ours.feature_importances_, theirs.feature_importances_, rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_an_unlimited_tree_learns_its_training_set(load, missing) -> None:
    X, y = load(return_X_y=True)
    if missing:
        X[np.random.default_rng(0).uniform(size=X.shape) < 0.1] = np.nan
    tree = CostSensitiveTreeClassifier(binning="exact").fit(X, y)
    assert tree.score(X, y) == 1.0


@pytest.mark.parametrize("expensive", [0, 1, 2])
@pytest.mark.parametrize("max_depth", [1, 3, 6])
def test_a_costlier_class_is_predicted_more_often(expensive, max_depth) -> None:
    X, y = overlapping()
    shares = []
    for price in (0.2, 1.0, 5.0, 1000.0):
        costs = zero_one_costs(3)
        costs[expensive] *= price
        tree = CostSensitiveTreeClassifier(costs, max_depth=max_depth).fit(X, y)
        shares.append(np.mean(tree.predict(X) == expensive))
    assert shares == sorted(shares)
    assert shares[0] < shares[2]
    assert shares[3] > 0.7


@pytest.mark.parametrize("feared", [0, 1, 2])
def test_a_expensive_prediction_is_made_less_often(feared) -> None:
    X, y = overlapping()
    costs = zero_one_costs(3)
    plain = CostSensitiveTreeClassifier(costs, max_depth=3).fit(X, y).predict(X)
    costs[:, feared] *= 10.0
    careful = CostSensitiveTreeClassifier(costs, max_depth=3).fit(X, y).predict(X)
    assert np.mean(careful == feared) < 0.5 * np.mean(plain == feared)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_rows_are_the_truth(criterion) -> None:
    """Missing class 0 is expensive in one matrix, crying class 0 in its transpose."""
    X, y = overlapping(n_classes=2)
    costs = np.array([[0.0, 8.0], [1.0, 0.0]])
    one, two = (
        CostSensitiveTreeClassifier(C, max_depth=3, criterion=criterion).fit(X, y).predict(X)
        for C in (costs, costs.T)
    )
    assert np.mean(one == 0) > 0.7
    assert np.mean(two == 0) < 0.3
    paid = [costs[y, labels].mean() for labels in (one, two)]
    assert paid[0] < paid[1]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_decisions_are_those_of_least_expected_cost(n_classes, missing) -> None:
    X, y = overlapping(1, n_classes=n_classes)
    if missing:
        X[np.random.default_rng(0).uniform(size=X.shape) < 0.2] = np.nan
    tree = CostSensitiveTreeClassifier(random_costs(0, n_classes), max_depth=4).fit(X, y)
    shares = tree.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.min() >= 0.0
    expected = tree.classes_[(shares @ tree.cost_matrix_).argmin(axis=1)]
    np.testing.assert_array_equal(tree.predict(X), expected)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_probabilities_are_plain_shares_of_the_leaf(criterion) -> None:
    """Costs steer the splits; they do not bend the shares."""
    X, y = overlapping(2)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    costs = random_costs(1, 3)
    tree = CostSensitiveTreeClassifier(costs, max_depth=3, criterion=criterion).fit(X, y, weight)
    leaves = tree.apply(X)
    assert len(np.unique(leaves)) == tree.get_n_leaves() == 8
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        sums = np.bincount(y[inside], weight[inside], 3)
        expected = np.broadcast_to(sums / sums.sum(), (inside.sum(), 3))
        np.testing.assert_allclose(tree.predict_proba(X[inside]), expected, rtol=1e-5)


def test_weights_are_repeated_samples() -> None:
    X, y = overlapping(3, 200)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"cost_matrix": random_costs(2, 3), "max_depth": 5}
    weighted = CostSensitiveTreeClassifier(**options).fit(X, y, weight)
    repeated = CostSensitiveTreeClassifier(**options).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_array_equal(weighted.forest_.threshold, repeated.forest_.threshold)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)


def test_samples_of_no_weight_are_not_looked_at() -> None:
    X, y = overlapping(4, 200)
    weight = np.ones(200)
    weight[150:] = 0.0
    X[150:] *= 1e6
    one = CostSensitiveTreeClassifier(max_depth=4, binning="uniform").fit(X, y, weight)
    two = CostSensitiveTreeClassifier(max_depth=4, binning="uniform").fit(X[:150], y[:150])
    np.testing.assert_array_equal(one.forest_.threshold, two.forest_.threshold)
    np.testing.assert_array_equal(one.forest_.count, two.forest_.count)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30])
def test_the_scale_of_weights_and_costs_does_not_matter(scale) -> None:
    X, y = overlapping(6)
    weight = np.random.default_rng(1).uniform(0.5, 1.0, len(y))
    costs = random_costs(3, 3)
    plain = CostSensitiveTreeClassifier(costs, max_depth=4).fit(X, y, weight)
    scaled = CostSensitiveTreeClassifier(scale * costs, max_depth=4).fit(X, y, weight / scale)
    np.testing.assert_allclose(plain.predict_proba(X), scaled.predict_proba(X), rtol=1e-5)
    np.testing.assert_array_equal(plain.predict(X), scaled.predict(X))


def test_labels_of_any_kind() -> None:
    X, y = overlapping(7)
    names = np.array(["small", "large", "medium"])  # their order is not that of the numbers
    costs = {"small": {"large": 3, "medium": 1}, "large": {"small": 9, "medium": 1}}
    costs["medium"] = {"small": 1, "large": 1}
    tree = CostSensitiveTreeClassifier(costs, max_depth=3).fit(X, names[y])
    assert tree.classes_.tolist() == ["large", "medium", "small"]
    assert tree.cost_matrix_.tolist() == [[0, 1, 9], [1, 0, 1], [3, 1, 0]]
    order = np.array([2, 0, 1])
    numbers = CostSensitiveTreeClassifier(tree.cost_matrix_, max_depth=3).fit(X, order[y])
    np.testing.assert_array_equal(tree.predict(X), tree.classes_[numbers.predict(X)])


def test_data_frames_give_names() -> None:
    X, y = overlapping(8)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    tree = CostSensitiveTreeClassifier(max_depth=3).fit(frame, y)
    assert tree.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert tree.n_features_in_ == 4
    plain = CostSensitiveTreeClassifier(max_depth=3).fit(X, y)
    np.testing.assert_array_equal(tree.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        tree.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_kinds_of_arrays(dtype, order) -> None:
    X, y = overlapping(9)
    X = np.round(10 * X)
    plain = CostSensitiveTreeClassifier(max_depth=4).fit(X, y)
    other = np.asarray(X, dtype=dtype, order=order)
    tree = CostSensitiveTreeClassifier(max_depth=4).fit(other, y)
    np.testing.assert_array_equal(tree.predict_proba(other), plain.predict_proba(X))
    np.testing.assert_array_equal(tree.forest_.threshold, plain.forest_.threshold)


def test_pickles_and_clones() -> None:
    X, y = overlapping(10)
    tree = CostSensitiveTreeClassifier(random_costs(4, 3), max_features=2, random_state=3).fit(X, y)
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    fresh = clone(tree).fit(X, y)
    np.testing.assert_array_equal(fresh.predict_proba(X), tree.predict_proba(X))


@pytest.mark.parametrize("max_features", [None, 2, 0.5, "sqrt", "log2"])
@pytest.mark.parametrize("binning", ["quantile", "uniform", "exact"])
def test_threads_do_not_matter(max_features, binning) -> None:
    X, y = overlapping(11, 300)
    X[::7, 1] = np.nan
    trees = [
        CostSensitiveTreeClassifier(
            random_costs(5, 3), max_features=max_features, binning=binning, n_jobs=n, random_state=1
        ).fit(X, y)
        for n in (None, 2, 3, -1)
    ]
    for other in trees[1:]:
        np.testing.assert_array_equal(other.forest_.threshold, trees[0].forest_.threshold)
        np.testing.assert_array_equal(other.predict_proba(X), trees[0].predict_proba(X))


def test_the_seed_decides_which_features_are_drawn() -> None:
    X, y = overlapping(12)
    features = [
        CostSensitiveTreeClassifier(max_features=1, random_state=seed).fit(X, y).forest_.feature[:9]
        for seed in (0, 0, 1)
    ]
    assert features[0].tolist() == features[1].tolist() != features[2].tolist()


def test_missing_values_can_be_the_signal() -> None:
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    X[y == 1, 2] = np.nan
    tree = CostSensitiveTreeClassifier(max_depth=1).fit(X, y)
    assert tree.score(X, y) == 1.0
    assert tree.feature_importances_.tolist() == [0.0, 0.0, 1.0]


def test_constant_features_give_the_prior() -> None:
    X, y = np.ones((10, 2)), np.array([0] * 6 + [1] * 4)
    tree = CostSensitiveTreeClassifier().fit(X, y)
    assert tree.get_n_leaves() == 1
    assert tree.get_depth() == 0
    np.testing.assert_allclose(tree.predict_proba(X), np.tile([0.6, 0.4], (10, 1)))
    assert tree.feature_importances_.tolist() == [0.0, 0.0]
    assert CostSensitiveTreeClassifier([[0, 1], [2, 0]]).fit(X, y).predict(X).tolist() == [1] * 10


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"max_depth": 0}, ValueError, "max_depth must be an integer at least 1 or None"),
        ({"max_depth": 2.0}, TypeError, "max_depth"),
        ({"max_leaf_nodes": 1}, ValueError, "max_leaf_nodes"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf"),
        ({"criterion": "loss"}, ValueError, "criterion must be one of 'gini', 'entropy'"),
        ({"binning": "equal"}, ValueError, "binning"),
        ({"max_bins": 257}, ValueError, "max_bins"),
        ({"max_bins": 1}, ValueError, "max_bins"),
        ({"max_features": 0}, ValueError, "max_features"),
        ({"max_features": 1.5}, ValueError, "max_features"),
        ({"max_features": "all"}, ValueError, "max_features"),
        ({"n_jobs": "two"}, TypeError, "n_jobs"),
        ({"cost_matrix": zero_one_costs(2)}, ValueError, "3 classes"),
    ],
)
def test_parameters_are_checked(parameters, kind, message) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(kind, match=message):
        CostSensitiveTreeClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "get_depth"])
def test_a_tree_must_be_fitted(method) -> None:
    arguments = [] if method == "get_depth" else [np.zeros((1, 2))]
    with pytest.raises(NotFittedError):
        getattr(CostSensitiveTreeClassifier(), method)(*arguments)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_are_refused(bad) -> None:
    X, y = load_iris(return_X_y=True)
    tree = CostSensitiveTreeClassifier().fit(X, y)
    X[3, 2] = bad
    with pytest.raises(ValueError, match="infinity"):
        tree.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        CostSensitiveTreeClassifier().fit(X, y)
