"""Weak learners: the built-in tree and any classifier of scikit-learn in its place."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier, CostSensitiveTreeClassifier
from badacost._utils.parallel import Threads
from badacost.boosting.reweighting import CostedClassifier, EstimatorLearner, TreeLearner
from badacost.classifiers.training_data import SampleSet
from badacost.costs import labelled_costs, zero_one_costs
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import Growth, TreeGrower

X, Y = load_iris(return_X_y=True)
COSTS = zero_one_costs(3)
WEIGHTS = np.full(150, 1 / 150)


def tree_learner(criterion="gini", **growth) -> TreeLearner:
    mapper = BinMapper.fit(X)
    data = BinnedData(mapper, mapper.transform(X))
    return TreeLearner(TreeGrower(data, Growth(**growth)), Y, 3, criterion)


class Recorder(ClassifierMixin, BaseEstimator):
    """A constant classifier that remembers what it was fitted to."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Unweighted(Recorder):
    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_tree_labels_all_samples_whatever_rows_it_saw(criterion) -> None:
    learner = tree_learner(criterion, max_depth=3)
    for rows in (None, np.arange(0, 150, 3)):
        tree, labels = learner.fit(WEIGHTS, COSTS, rows, seed=0)
        np.testing.assert_array_equal(labels, SampleSet(X).rows(tree, Threads()))
        assert (labels == Y).mean() > 0.9
        assert tree.count[0] == (150 if rows is None else 50)


def test_tree_follows_weights_and_costs() -> None:
    learner = tree_learner(max_depth=1)
    for favourite in range(3):
        weights = np.where(favourite == Y, 1.0, 1e-3)
        _, labels = learner.fit(weights / weights.sum(), COSTS, None, seed=0)
        assert (labels[favourite == Y] == favourite).all()
        costs = COSTS * np.where(np.arange(3) == favourite, 1000, 1)[:, None]
        _, labels = learner.fit(WEIGHTS, costs, None, seed=0)
        assert (labels[favourite == Y] == favourite).all()


@pytest.mark.parametrize(
    ("criterion", "growth"),
    [
        ("gini", {}),
        ("entropy", {"n_drawn": 3}),
        ("entropy", {"max_leaf_nodes": 9, "order": "best"}),
    ],
)
def test_trees_grown_by_four_threads_at_once(growth, criterion) -> None:
    """One grower serves them all: each tree is the one that it would be alone."""
    rng = np.random.default_rng(0)
    data, y = rng.normal(size=(2000, 12)), rng.integers(3, size=2000)
    data[rng.random(data.shape) < 0.05] = np.nan
    mapper = BinMapper.fit(data, max_bins=64)
    binned = BinnedData(mapper, mapper.transform(data))
    tasks = [
        (rng.exponential(size=2000), np.sort(rng.choice(2000, size, replace=False)), seed)
        for seed, size in enumerate([2000, 1500, 900] * 8)
    ]
    with ThreadPoolExecutor(4) as callers:
        for threads in (Threads(), Threads(2)):
            learner = TreeLearner(
                TreeGrower(binned, Growth(max_depth=6, **growth), threads), y, 3, criterion
            )

            def grow(weights, rows, seed, learner=learner):
                tree, sums, leaves = learner.grow(weights / weights.sum(), COSTS, rows, seed)
                return [*vars(tree).values(), sums, leaves]

            alone = [grow(*task) for task in tasks]
            together = list(callers.map(lambda task, grow=grow: grow(*task), tasks))
            for one, other in zip(alone, together, strict=True):
                for mine, theirs in zip(one, other, strict=True):
                    np.testing.assert_array_equal(mine, theirs)


def test_labels_of_least_expected_cost() -> None:
    """Probabilities become labels by cost; K columns even if the classifier misses a class."""
    seen = np.flatnonzero(Y != 1)
    model = GaussianNB().fit(X[seen], Y[seen])
    plain, careful = COSTS, COSTS * np.array([[1], [1], [1e9]])
    np.testing.assert_array_equal(CostedClassifier(model, plain).labels(X), model.predict(X))
    changed = CostedClassifier(model, careful).labels(X)
    assert (changed == 2).sum() >= (model.predict(X) == 2).sum()
    assert changed.dtype == np.int32


def test_without_probabilities_labels_are_the_classifiers_own() -> None:
    model = LinearSVC().fit(X, Y)
    np.testing.assert_array_equal(CostedClassifier(model, COSTS).labels(X), model.predict(X))


def test_weights_reach_the_estimator_with_a_mean_of_one() -> None:
    weights = np.arange(1.0, 151.0)
    costed, labels = EstimatorLearner(Recorder(), X, Y).fit(weights, COSTS, None, seed=1)
    np.testing.assert_allclose(costed.estimator.weight_, weights / weights.mean())
    np.testing.assert_array_equal(labels, 0)
    rows = np.arange(20, 40)
    costed, _ = EstimatorLearner(Recorder(), X, Y).fit(weights, COSTS, rows, seed=1)
    np.testing.assert_array_equal(costed.estimator.X_, X[rows])
    assert costed.estimator.weight_.mean() == pytest.approx(1)


def test_resampling_where_weights_are_not_taken() -> None:
    weights = np.where(Y == 2, 1.0, 0.0)
    weights[0] = 1.0
    costed, _ = EstimatorLearner(Unweighted(), X, Y).fit(weights / weights.sum(), COSTS, None, 1)
    drawn = costed.estimator
    assert len(drawn.X_) == 150
    assert (drawn.y_ == 2).mean() > 0.9
    rows = np.flatnonzero(Y == 1)
    costed, _ = EstimatorLearner(Unweighted(), X, Y).fit(np.ones(150), COSTS, rows, 1)
    np.testing.assert_array_equal(costed.estimator.y_, 1)


def test_random_states_are_set_even_inside_a_pipeline() -> None:
    estimator = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1, max_depth=2))
    learner = EstimatorLearner(estimator, X, Y)
    for seed in (0, 2**40 + 3):
        costed, _ = learner.fit(WEIGHTS, COSTS, None, seed)
        assert costed.estimator[-1].random_state == seed % 2**31
    scores = [
        BAdaCostClassifier(estimator=estimator, n_estimators=4, random_state=0)
        .fit(X, Y)
        .cost_scores(X)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*scores)
    assert estimator[-1].random_state is None


ESTIMATORS = [
    DecisionTreeClassifier(max_depth=2),
    CostSensitiveTreeClassifier(max_depth=2),
    GaussianNB(),
    LogisticRegression(max_iter=1000),
    LinearSVC(),  # no predict_proba
    KNeighborsClassifier(),  # no sample_weight
    make_pipeline(StandardScaler(), LogisticRegression()),  # no sample_weight, one level deeper
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("decision", ["margin", "bayes"])
def test_boosted_estimators(estimator, decision) -> None:
    names = np.array(["ape", "bat", "cat"])[Y]
    model = BAdaCostClassifier(
        labelled_costs([[0, 1, 1], [1, 0, 2], [1, 4, 0]], ["ape", "bat", "cat"]),
        estimator=estimator,
        n_estimators=5,
        decision=decision,
        random_state=0,
    ).fit(X, names)
    assert model.score(X, names) > 0.85
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert len(model.estimators_) == model.n_estimators_ == len(model.train_score_)
    assert all(type(weak) is type(estimator) for weak in model.estimators_)
    *_, last = model.staged_cost_scores(X)
    np.testing.assert_array_equal(last, model.cost_scores(X))
    assert not hasattr(model, "forest_")
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match="apply needs the built-in tree"):
        model.apply(X)


def test_costs_reach_boosted_estimators() -> None:
    data, y = make_classification(
        400, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=0
    )
    counts = []
    for price in (1, 20):
        costs = COSTS.copy()
        costs[1] *= price
        model = BAdaCostClassifier(costs, estimator=GaussianNB(), n_estimators=10).fit(data, y)
        counts.append((model.predict(data) == 1).sum())
    assert counts[1] > counts[0] + 50


@pytest.mark.parametrize("wrong", ["tree", 3, LinearRegression(), StandardScaler()])
def test_not_a_classifier(wrong) -> None:
    with pytest.raises(TypeError, match="estimator must be a classifier"):
        BAdaCostClassifier(estimator=wrong).fit(X, Y)


def test_a_class_in_the_place_of_an_estimator() -> None:
    with pytest.raises(TypeError, match=r"estimator must be a classifier, .* got .*D"):
        BAdaCostClassifier(estimator=DecisionTreeClassifier).fit(X, Y)


def test_labels_for_other_estimators_are_not_bytes() -> None:
    """In which -1, with which some of them mark all other classes, would be 255."""
    seen = []

    class Watched(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(y.dtype)
            return super().fit(X, y, sample_weight)

    BAdaCostClassifier(estimator=Watched(), n_estimators=2).fit(X, Y)
    assert set(seen) == {np.dtype(np.int64)}


def test_refit_with_another_kind_of_learner() -> None:
    model = BAdaCostClassifier(n_estimators=3, max_depth=1).fit(X, Y)
    model.set_params(estimator=GaussianNB()).fit(X, Y)
    assert hasattr(model, "estimators_")
    assert not hasattr(model, "forest_")
    model.set_params(estimator=None).fit(X, Y)
    assert hasattr(model, "forest_")
    assert not hasattr(model, "estimators_")


class Wrong(ClassifierMixin, BaseEstimator):
    """An estimator whose predictions are not of its samples and classes."""

    def __init__(self, wrong=None):
        self.wrong = wrong

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.wrong(np.zeros(len(X), np.int64))


@pytest.mark.parametrize(
    "wrong",
    [lambda labels: labels[:-5], lambda labels: labels - 9, lambda labels: labels + 99,
     lambda labels: labels[:, None]],
    ids=["too few", "negative", "too large", "a column"],
)  # fmt: skip
def test_estimators_that_predict_what_cannot_be(wrong) -> None:
    model = BAdaCostClassifier(estimator=Wrong(wrong), n_estimators=3)
    with pytest.raises(ValueError, match=r"Wrong predicts .* give another estimator"):
        model.fit(np.arange(60.0)[:, None], np.arange(60) % 3)
