"""Boosters of detection forests: against the classifier, a naive real AdaBoost, and log-odds."""

from __future__ import annotations

import numpy as np
import pytest

from badacost import BAdaCostClassifier
from badacost._utils.parallel import Threads
from badacost.costs import circular_view_costs, scale_costs, zero_one_costs
from badacost.detection.training import boosters
from badacost.detection.training.boosters import Booster
from badacost.loss import cost_margins
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.grower import Growth
from tests.forests import assert_same_forest
from tests.sharded import divided

N_FEATURES, N_CLASSES = 12, 4
COSTS = circular_view_costs(N_CLASSES - 1, alpha=1, beta=3, gamma=3)
GROWTH = Growth(max_depth=3, min_samples_split=4, n_drawn=5)


@pytest.fixture(scope="module")
def threads() -> Threads:
    return Threads()


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((240, N_FEATURES)).astype(np.float32)


@pytest.fixture(scope="module")
def y(X) -> np.ndarray:
    noisy = X[:, :N_CLASSES] + 0.5 * np.random.default_rng(1).standard_normal((240, N_CLASSES))
    return noisy.argmax(axis=1).astype(np.uint8)


@pytest.fixture(scope="module")
def data(X, threads) -> BinnedData:
    mapper = BinMapper.fit(X, max_bins=64, threads=threads)
    return BinnedData(mapper, mapper.transform(X, threads))


def cost_booster(data, y, threads, costs=COSTS, **options) -> Booster:
    settings = {"growth": GROWTH, "learning_rate": 0.3, "seed": 7} | options
    return boosters.cost_booster(data, y, costs, threads=threads, **settings)


def real_booster(data, y, threads, **options) -> Booster:
    settings = {"growth": GROWTH, "seed": 7} | options
    return boosters.real_booster(data, (y == 1).astype(np.uint8), threads=threads, **settings)


def object_booster(data, y, threads, **options) -> Booster:
    settings = {"growth": GROWTH, "learning_rate": 0.3, "odds": 3.0, "seed": 7} | options
    return boosters.object_booster(data, (y == 1).astype(np.uint8), threads=threads, **settings)


def naive_leaf(tree: Tree, sample: np.ndarray) -> int:
    node = 0
    while not np.isnan(tree.threshold[node]):
        right = sample[tree.feature[node]] >= tree.threshold[node]
        node = int(tree.left[node]) + int(right)
    return node


class TestCostBooster:
    @pytest.mark.parametrize("costs", [COSTS, zero_one_costs(N_CLASSES)], ids=["costs", "0|1"])
    def test_equals_the_classifier(self, data, X, y, threads, costs) -> None:
        model = BAdaCostClassifier(
            costs, cost_scale="reference", n_estimators=12, learning_rate=0.3, max_depth=3,
            min_samples_split=4, max_features=5, max_bins=64, random_state=7,
        ).fit(X, y)  # fmt: skip
        booster = cost_booster(data, y, threads, costs, seed=model._seed)
        while booster.n_trees < 12 and booster.grow():
            pass
        forest = booster.forest()
        assert forest.n_trees == 12
        np.testing.assert_array_equal(forest.feature, model.forest_.feature)
        np.testing.assert_array_equal(forest.threshold, model.forest_.threshold)
        np.testing.assert_array_equal(forest.value, model.forest_.value)
        np.testing.assert_array_equal(forest.tree_weights, model.estimator_weights_)

    def test_scores_are_how_much_cheaper_a_view_is_than_the_background(
        self, data, X, y, threads
    ) -> None:
        booster = cost_booster(data, y, threads)
        for _ in range(6):
            booster.grow()
        forest = booster.forest()
        scores = forest.accumulate(X)
        margins = cost_margins(scale_costs(COSTS, "reference"))
        votes = np.zeros((len(X), N_CLASSES))
        for tree, step in zip(forest.trees(), forest.tree_weights, strict=True):
            labels = [tree.value[naive_leaf(tree, sample)] for sample in X]
            votes += step * margins[:, labels].T
        np.testing.assert_allclose(scores, votes[:, :1] - votes[:, 1:], atol=1e-12)
        np.testing.assert_allclose(
            scores.max(axis=1), votes[:, 0] - votes[:, 1:].min(axis=1), atol=1e-12
        )
        assert ((scores.max(axis=1) > 0.0) == (votes.argmin(axis=1) > 0)).all()

    def test_stops_at_a_perfect_tree(self, data, X, threads) -> None:
        y = (X[:, 0] > 0.0).astype(np.uint8) * 2
        growth = Growth(max_depth=1, min_samples_split=2, n_drawn=None)
        mapper = BinMapper.fit(X, method="exact", threads=threads)
        mapped = BinnedData(mapper, mapper.transform(X, threads))
        booster = cost_booster(mapped, y, threads, growth=growth)
        assert not booster.grow()
        assert booster.n_trees == 1


class TestRealBooster:
    def test_equals_a_naive_real_adaboost(self, data, X, y, threads) -> None:
        booster = real_booster(data, y, threads)
        sign = np.where(y == 1, 1.0, -1.0)
        weights = np.where(y == 1, 0.5 / (y == 1).sum(), 0.5 / (y != 1).sum())
        np.testing.assert_allclose(np.exp(booster.state), weights)
        scores = np.zeros(len(X))
        losses = [1.0]
        for number in range(10):
            assert booster.grow()
            tree = booster.forest().trees()[number]
            leaves = np.array([naive_leaf(tree, sample) for sample in X])
            table = booster.forest().table[:, 0]
            for leaf in np.unique(leaves):
                inside = leaves == leaf
                odds = [max(weights[inside & (sign == s)].sum(), 1e-300) for s in (1, -1)]
                expected = np.clip(0.5 * np.log(odds[0] / odds[1]), -4.0, 4.0)
                assert table[tree.value[leaf]] == pytest.approx(expected, rel=1e-5, abs=1e-6)
            answers = table[tree.value[leaves]]
            scores += answers
            weights = weights * np.exp(-sign * answers)
            np.testing.assert_allclose(np.exp(booster.state), weights, rtol=1e-9)
            losses.append(weights.sum())
        assert (np.diff(losses) < 0.0).all()
        np.testing.assert_allclose(booster.forest().accumulate(X)[:, 0], scores, atol=1e-12)

    def test_stops_when_windows_are_separated(self, data, X, threads) -> None:
        y = (X[:, 0] > 0.0).astype(np.uint8)
        mapper = BinMapper.fit(X, method="exact", threads=threads)
        mapped = BinnedData(mapper, mapper.transform(X, threads))
        growth = Growth(max_depth=1, min_samples_split=2, n_drawn=None)
        booster = real_booster(mapped, y, threads, growth=growth)
        while booster.n_trees < 1000 and booster.grow():
            pass
        assert booster.n_trees == 24  # exp(-4 * 24) < 1e-40
        assert (np.abs(booster.forest().table) <= 4.0).all()


class TestObjectBooster:
    def test_scores_are_log_odds(self, data, X, y, threads) -> None:
        # Trees that may not split know the odds of all windows only.
        growth = Growth(max_depth=1, min_samples_split=10**6, n_drawn=None)
        for odds in (1.0, 4.0, 0.25):
            booster = object_booster(data, y, threads, growth=growth, odds=odds)
            booster.grow()
            scores = booster.forest().accumulate(X)
            np.testing.assert_allclose(scores, np.log(odds), atol=0.02)  # the prior is smoothed

    def test_the_forest_has_the_scores_that_boosting_has(self, data, X, y, threads) -> None:
        booster = object_booster(data, y, threads)
        for _ in range(6):
            booster.grow()
        scores = booster.forest().accumulate(X)
        assert scores.shape == (len(X), 1)
        state = booster.state.reshape(len(X), -1)
        ours = state[:, 1] - state[:, 0]
        assert np.corrcoef(np.abs(ours), np.abs(scores[:, 0]))[0, 1] > 0.999

    def test_loss_falls_and_objects_are_found(self, data, X, y, threads) -> None:
        booster = object_booster(data, y, threads, odds=1.0)
        sign = np.where(y == 1, 1.0, -1.0)
        weight = np.where(y == 1, (y != 1).sum() / (y == 1).sum(), 1.0)
        losses = [np.log(2.0)]
        for _ in range(10):
            booster.grow()
            margins = sign * booster.forest().accumulate(X)[:, 0]
            losses.append(np.average(np.logaddexp(0.0, -margins), weights=weight))
        assert (np.diff(losses) < 0.0).all()
        assert (margins > 0.0).mean() > 0.8

    def test_more_odds_find_more_objects(self, data, X, y, threads) -> None:
        shares = []
        for odds in (0.2, 1.0, 20.0):
            booster = object_booster(data, y, threads, odds=odds)
            for _ in range(6):
                booster.grow()
            scores = booster.forest().accumulate(X)[:, 0]
            shares.append(((scores > 0.0)[y == 1].mean(), (scores > 0.0)[y != 1].mean()))
        found, wrong = zip(*shares, strict=True)
        assert found[0] < found[1] < found[2]
        assert wrong[0] < wrong[1] < wrong[2]


@pytest.mark.parametrize("make", [cost_booster, real_booster, object_booster])
class TestAll:
    @pytest.mark.parametrize("n_before", [1, 4])
    def test_resumed_boosters_grow_the_same_trees(self, make, data, y, threads, n_before) -> None:
        whole, first = make(data, y, threads), make(data, y, threads)
        for _ in range(8):
            whole.grow()
        for _ in range(n_before):
            first.grow()
        state = first.forest(), first.state.copy()
        for _ in range(2):  # a state may be used more than once
            resumed = make(data, y, threads, resumed=state)
            assert resumed.n_trees == n_before
            while resumed.n_trees < 8:
                resumed.grow()
            assert_same_forest(whole.forest(), resumed.forest())
            np.testing.assert_array_equal(whole.state, resumed.state)

    def test_the_number_of_threads_does_not_matter(self, make, data, y, threads) -> None:
        two = Threads(2)
        pair = make(data, y, threads), make(data, y, two)
        for booster in pair:
            for _ in range(4):
                booster.grow()
        assert_same_forest(*(booster.forest() for booster in pair))

    def test_seeds_matter(self, make, data, y, threads) -> None:
        first, second = make(data, y, threads, seed=1), make(data, y, threads, seed=2)
        first.grow()
        second.grow()
        assert first.forest().feature.tolist() != second.forest().feature.tolist()

    def test_steps_are_part_of_the_forest(self, make, data, X, y, threads) -> None:
        booster = make(data, y, threads)
        for _ in range(3):
            booster.grow()
        forest = booster.forest()
        assert forest.n_trees == booster.n_trees == 3
        parts = [forest.accumulate(X, first_tree=k) for k in range(3)]
        assert np.abs(parts[0] - parts[1]).max() > 0.0


@pytest.mark.parametrize("make", [cost_booster, real_booster])
class TestReweighting:
    def test_windows_whose_weight_vanished_are_still_judged(
        self, make, data, X, y, threads
    ) -> None:
        booster = make(data, y, threads)
        booster.grow()
        log_weights = booster.state.copy()
        log_weights[::3] -= 300.0  # below what single precision can tell from zero
        resumed = make(data, y, threads, resumed=(booster.forest(), log_weights))
        assert resumed.grow()
        forest = resumed.forest()
        scores = forest.accumulate(X, first_tree=1)
        changes = resumed.state - log_weights
        tree = forest.trees()[1]
        leaves = [naive_leaf(tree, sample) for sample in X]
        if make is real_booster:
            np.testing.assert_allclose(changes, np.where(y == 1, -1, 1) * scores[:, 0], atol=1e-9)
        else:
            margins = cost_margins(scale_costs(COSTS, "reference"))
            steps = forest.tree_weights[1] * margins[y, tree.value[leaves]]
            np.testing.assert_allclose(changes, steps, atol=1e-9)


@pytest.mark.parametrize("make", [cost_booster, object_booster])
def test_windows_in_parts(make, data, y, threads) -> None:
    """The same trees wherever the windows are, also when boosting goes on later."""
    whole, parted = (make(data, y, threads, **more) for more in ({}, {"place": divided([90, 100])}))
    for _ in range(4):
        whole.grow()
        parted.grow()
    np.testing.assert_array_equal(whole.state, parted.state)
    resumed = make(
        data, y, threads, place=divided([7]), resumed=(parted.forest(), parted.state.copy())
    )
    for booster in (whole, resumed):
        booster.grow()
    assert_same_forest(whole.forest(), resumed.forest())
