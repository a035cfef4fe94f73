"""Trees on rows of numbers, symmetric trees and categories, against plain numpy.

The last test is a booster with vector leaves in a few lines: the engine knows nothing of it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.special import softmax

from badacost import SAMMEClassifier
from badacost._utils.parallel import Threads
from badacost.boosting.stagewise import Stage, join_stages
from badacost.tree import grower as grower_module
from badacost.tree import histogram_kernels as kernels
from badacost.tree import threaded_growth
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Forest
from badacost.tree.grower import Gain, Growth, Summands, TreeGrower

L2, MIN_HESSIAN = 1.0, 0.5
GAIN = Gain.of_gradients(3, L2, MIN_HESSIAN)


def label_sums(labels: np.ndarray, weights: np.ndarray, n_labels: int) -> Summands:
    return Summands.of_labels(labels, weights, n_labels, float(weights.sum()))


def binned(X: np.ndarray, categorical: tuple[int, ...] = ()) -> BinnedData:
    known = [np.unique(X[:, feature]) for feature in categorical]
    categories = {
        f: values[~np.isnan(values)] for f, values in zip(categorical, known, strict=True)
    }
    mapper = BinMapper.fit(X, categories=categories)
    return BinnedData(mapper, mapper.transform(X))


def make_rows(seed: int, n: int, n_features: int, n_values: int, missing: bool):
    """Values with ties, and rows of gradients with a hessian in the last column."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, n_features)).astype(float)
    values = rng.normal(size=(n, 3)) + X[:, :1] * rng.normal(size=3) / n_values
    values[:, -1] = rng.uniform(0.1, 1.0, n)
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X, Summands.of_rows(values)


def score(values: np.ndarray) -> float:
    sums = values.sum(axis=0)
    return float((sums[:-1] ** 2).sum() / (sums[-1] + L2)) if len(values) else 0.0


def all_tests(X: np.ndarray, data: BinnedData):
    """All tests of a node: feature, threshold, side of missing values, and who goes left."""
    for feature, edges in enumerate(data.mapper.edges):
        column = X[:, feature]
        missing = np.isnan(column)
        for missing_left in (False, True)[: 1 + missing.any()]:
            for threshold in [*edges, np.inf]:
                left = (column < threshold) | (missing & missing_left)
                if left.any() and not left.all():
                    yield feature, threshold, missing_left, left


def gain_of(values: np.ndarray, left: np.ndarray) -> float:
    if min(values[left, -1].sum(), values[~left, -1].sum()) < MIN_HESSIAN:
        return 0.0
    return score(values[left]) + score(values[~left]) - score(values)


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.sampled_from([5, 40, 300]),
    st.integers(1, 3),
    st.sampled_from([2, 6, 50]),
    st.booleans(),
)
def test_splits_of_rows_are_the_best(seed, n, n_features, n_values, missing) -> None:
    X, rows = make_rows(seed, n, n_features, n_values, missing)
    data = binned(X)
    grown = TreeGrower(data, Growth(max_depth=3)).grow(rows, GAIN)
    tree, values = grown.tree, rows.values.astype(float)
    pending = [(0, np.arange(n), 0)]
    while pending:
        node, members, depth = pending.pop()
        np.testing.assert_allclose(grown.sums[node], values[members].sum(axis=0), atol=1e-9)
        gains = [gain_of(values[members], left) for *_, left in all_tests(X[members], data)]
        best = max(gains, default=0.0)
        if tree.left[node] == node:
            assert depth == 3 or best <= 1e-9 * max(1.0, values[members, -1].sum())
            assert (grown.leaves[members] == node).all()
            continue
        column = X[members, tree.feature[node]]
        left = column < tree.threshold[node]
        left[np.isnan(column)] = tree.missing_left[node]
        mass = values[members, -1].sum()
        assert gain_of(values[members], left) == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert tree.gain[node] * mass == pytest.approx(best, rel=1e-5)
        pending += [(tree.left[node], members[left], depth + 1)]
        pending += [(tree.left[node] + 1, members[~left], depth + 1)]


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.sampled_from([5, 60, 700]),
    st.integers(1, 3),
    st.sampled_from([2, 6, 50]),
    st.booleans(),
)
def test_symmetric_trees_have_the_best_test_for_each_level(
    seed, n, n_features, n_values, missing
) -> None:
    X, rows = make_rows(seed, n, n_features, n_values, missing)
    data = binned(X)
    grown = TreeGrower(data, Growth(max_depth=3, order="symmetric")).grow(rows, GAIN)
    tree, values = grown.tree, rows.values.astype(float)
    node_of = np.zeros(n, int)
    depth = int(np.log2(len(tree.left) + 1)) - 1
    assert len(tree.left) == 2 ** (depth + 1) - 1
    for level in range(depth + 1):
        first = 2**level - 1
        groups = [np.flatnonzero(node_of == first + i) for i in range(2**level)]

        def joint(left: np.ndarray, groups=groups) -> float:
            return sum(gain_of(values[g], left[g]) for g in groups if 0 < left[g].sum() < len(g))

        best = max((joint(left) for *_, left in all_tests(X, data)), default=0.0)
        if level == depth:
            assert depth == 3 or best <= 1e-9 * values[:, -1].sum()
            np.testing.assert_array_equal(grown.leaves, node_of)
            break
        nodes = np.arange(first, 2 * first + 1)
        assert len(set(tree.feature[nodes])) == len(set(tree.threshold[nodes])) == 1
        column = X[:, tree.feature[first]]
        goes_left = column < tree.threshold[first]
        for node, group in zip(nodes, groups, strict=True):
            empty = np.isnan(column[group])
            goes_left[group[empty]] = tree.missing_left[node]
        assert joint(goes_left) == pytest.approx(best, rel=1e-9, abs=1e-9)
        node_of = 2 * node_of + 1 + ~goes_left
    forest = Forest.from_trees([tree], [1.0], grown.sums, n_features)
    assert forest.kernel_forest.symmetric.all()
    np.testing.assert_array_equal(forest.apply(X)[:, 0], grown.leaves)


@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
@pytest.mark.parametrize("kind", ["rows", "labels"])
def test_threads_blocks_and_the_order_of_samples_do_not_matter(monkeypatch, order, kind) -> None:
    """All sums are exact: rows may be divided and arranged in any way."""
    monkeypatch.setattr(grower_module, "THREADS_FROM", 2)
    monkeypatch.setattr(threaded_growth, "_GRAIN", 1)
    monkeypatch.setattr(threaded_growth, "_MIN_BLOCK", 50)
    n = 3000
    X, rows = make_rows(1, n, 7, 400, missing=True)
    rng = np.random.default_rng(0)
    growth = Growth(max_depth=6, max_leaf_nodes=20 if order == "best" else None, order=order)
    y, weights = rng.integers(0, 4, n), 10.0 ** rng.uniform(-20, 0, n)
    trees = []
    for n_jobs in (1, 2, 3, 4):
        for arrangement in (np.arange(n), rng.permutation(n)):
            if kind == "rows":
                sums, gain = Summands.of_rounded(rows.values[arrangement]), GAIN
            else:
                sums = label_sums(y[arrangement], weights[arrangement], 4)
                gain = Gain.gini(np.array([1.0, 2.0, 0.5, 1.0]))
            threads = Threads(n_jobs)
            grower = TreeGrower(binned(X[arrangement]), growth, threads)
            grown = grower.grow(sums, gain)
            leaves = np.empty(n, int)
            leaves[arrangement] = grown.leaves
            trees.append((grown, leaves))
    expected, expected_leaves = trees[0]
    for grown, leaves in trees[1:]:
        np.testing.assert_array_equal(grown.sums, expected.sums)
        np.testing.assert_array_equal(leaves, expected_leaves)
        np.testing.assert_array_equal(grown.tree.threshold, expected.tree.threshold)
        np.testing.assert_array_equal(grown.tree.feature, expected.tree.feature)
        np.testing.assert_array_equal(grown.tree.gain, expected.tree.gain)


@njit
def fill_block(row, samples, start, end, n_columns, cells):
    words = np.empty(0, np.int64)
    kernels.fill_block(
        row.reshape(1, -1), samples, np.zeros(1, np.int64), 0, 1, start, end, n_columns,
        cells.reshape(1, -1), 0, words,
    )  # fmt: skip


def renumbered(samples):
    return samples._replace(order=np.arange(len(samples.order), dtype=np.uint32))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from(["rows", "labels"]))
def test_histograms_of_blocks_add_up_to_that_of_all_rows(seed, n_blocks, kind) -> None:
    """To the last bit, however rows are divided: weights span hundreds of binary orders."""
    rng = np.random.default_rng(seed)
    n, C = 500, 3
    codes = rng.integers(0, 9, n).astype(np.uint8)
    if kind == "rows":
        sums = Summands.of_rows(rng.normal(size=(n, C)) * 10.0 ** rng.uniform(-6, 0, (n, 1)))
    else:
        sums = label_sums(rng.integers(0, C, n), 2.0 ** rng.uniform(-100, 0, n), C)
    whole = np.zeros(9 * C)
    samples, _ = sums.select(None)
    fill_block(codes[samples.order], renumbered(samples), 0, len(samples.order), C, whole)
    limits = np.sort(rng.integers(0, n + 1, n_blocks))
    parts = []
    for first, last in zip([0, *limits], [*limits, n], strict=True):
        parts.append(np.zeros(9 * C))
        rows = np.arange(first, last)
        block, _ = sums.select(rows)
        fill_block(codes[block.order], renumbered(block), 0, len(block.order), C, parts[-1])
    np.testing.assert_array_equal(np.sum(rng.permutation(parts), axis=0), whole)


# What a review found


def test_symmetric_trees_need_bytes() -> None:
    X = np.random.default_rng(0).normal(size=(600, 2))
    mapper = BinMapper.fit(X, method="exact")
    data = BinnedData(mapper, mapper.transform(X))
    with pytest.raises(ValueError, match="at most 256 bins"):
        TreeGrower(data, Growth(max_depth=2, order="symmetric"))


@pytest.mark.parametrize("n", [200, 4000])
def test_values_that_are_missing_in_other_rows_only(n) -> None:
    """Bins were chosen without missing values; a tree is grown on rows that have some."""
    X, rows = make_rows(0, n, 3, 40, missing=False)
    mapper = BinMapper.fit(X)
    X[::2, 0] = np.nan
    data = BinnedData(mapper, mapper.transform(X))
    grown = TreeGrower(data, Growth(max_depth=4)).grow(rows, GAIN)
    forest = Forest.from_trees([grown.tree], [1.0], grown.sums, 3)
    np.testing.assert_array_equal(forest.apply(X)[:, 0], grown.leaves)


def test_more_categories_than_a_set_can_hold() -> None:
    with pytest.raises(ValueError, match="can have 255 categories, not 256"):
        binned(np.arange(256.0)[:, None], categorical=(0,))


@pytest.mark.parametrize(
    ("growth", "n_leaves"),
    [
        (Growth(max_depth=0), 1),
        (Growth(max_depth=3, max_leaf_nodes=2), 8),
        (Growth(max_depth=3, max_leaf_nodes=5, order="symmetric"), 4),
        (Growth(max_depth=np.int32(3), max_leaf_nodes=np.int64(5), order="best"), 5),
    ],
)
def test_limits_are_those_of_the_order(growth, n_leaves) -> None:
    X, rows = make_rows(3, 400, 4, 300, missing=False)
    grower = TreeGrower(binned(X), growth)
    tree = grower.grow(rows, GAIN).tree
    assert np.count_nonzero(tree.is_leaf) == n_leaves
    grower.grow(rows, GAIN)
    assert len(grower._stores) <= 1


def test_trees_with_categories_need_their_bins() -> None:
    X, y = categorical_problem(3)
    data = binned(X, categorical=(0,))
    sums = label_sums(y, np.ones(len(y)), 2)
    tree = TreeGrower(data, Growth(max_depth=2)).grow(sums, Gain.gini(np.ones(2))).tree
    with pytest.raises(ValueError, match="need the bins"):
        Forest.from_trees([tree], [1.0], np.eye(8), 2)
    forest = Forest.from_trees([tree], [1.0], np.eye(8), 2, data.mapper)
    with pytest.raises(ValueError, match="no positions"):
        forest.trees()[0].descend(data)


def test_no_more_digits_than_sums_can_hold() -> None:
    values = np.array([[1.0, 3e-9], [-1.0 / 3.0, 2.0], [1e-30, 0.0]])
    rows = Summands.of_rows(values)
    np.testing.assert_allclose(rows.values, values, atol=2.0**-24)
    quantum = 2.0 ** (np.frexp(np.abs(values).max(axis=0))[1] - 24)
    np.testing.assert_array_equal(rows.values % quantum, 0.0)


# Categories


def categorical_problem(seed: int, n: int = 400, n_categories: int = 7):
    """Classes that depend on the parity of a category, whose order says nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n_categories, n) * 10.0, rng.normal(size=n)])
    y = ((X[:, 0] / 10) % 2).astype(int)
    y = np.where(rng.uniform(size=n) < 0.1, 1 - y, y)
    return X, y


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [60, 2000])
def test_the_best_set_of_categories_for_two_classes(seed, n) -> None:
    X, y = categorical_problem(seed, n)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    data = binned(X, categorical=(0,))
    sums = label_sums(y, weights, 2)
    tree = TreeGrower(data, Growth(max_depth=1)).grow(sums, Gain.gini(np.ones(2))).tree
    known = data.mapper.categories[0]
    w = sums.values[:, 0].astype(float)

    def purity(chosen: np.ndarray) -> float:
        counts = np.bincount(y[chosen], w[chosen], 2)
        return float((counts**2).sum() / counts.sum())

    best = max(
        purity(inside) + purity(~inside)
        for size in range(1, len(known))
        for part in combinations(known, size)
        for inside in [np.isin(X[:, 0], part)]
    )
    gained = best - purity(np.ones(n, bool))
    assert tree.gain[0] * w.sum() == pytest.approx(gained, rel=1e-5)
    assert tree.category_set[0] == 0


@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
def test_categories_at_prediction(order) -> None:
    """Bins and values lead to the same leaves; unknown categories go the way of missing ones."""
    X, y = categorical_problem(3, 900, 11)
    X[::13, 0] = np.nan
    data = binned(X, categorical=(0,))
    growth = Growth(max_depth=4, max_leaf_nodes=12 if order == "best" else None, order=order)
    sums, gain = label_sums(y, np.ones(900), 2), Gain.gini(np.ones(2))
    if order == "symmetric":
        sums = Summands.of_rows(np.column_stack([y - 0.5, np.ones(900)]))
        gain = Gain.of_gradients(2, L2, MIN_HESSIAN)
    grown = TreeGrower(data, growth).grow(sums, gain)
    forest = Forest.from_trees([grown.tree], [1.0], grown.sums, 2, data.mapper)
    np.testing.assert_array_equal(forest.apply(X)[:, 0], grown.leaves)
    np.testing.assert_array_equal(grown.tree.descend(data), grown.leaves)
    some = grown.tree.descend(data, np.array([7, 3]))
    np.testing.assert_array_equal(some[[7, 3]], grown.leaves[[7, 3]])
    unknown, missing = X[:50].copy(), X[:50].copy()
    unknown[:, 0], missing[:, 0] = 12345.0, np.nan
    np.testing.assert_array_equal(forest.apply(unknown), forest.apply(missing))
    again = Forest.from_trees(forest.trees(), [1.0], grown.sums, 2, data.mapper)
    np.testing.assert_array_equal(again.accumulate(X), forest.accumulate(X))


def test_unknown_categories_share_the_way_of_missing_ones() -> None:
    rng = np.random.default_rng(0)
    column = np.concatenate([np.repeat(np.arange(255.0), 3), 1000.0 + np.arange(40.0)])
    mapper = BinMapper.fit(rng.permutation(column)[:, None], categories={0: np.arange(255.0)})
    assert mapper.categories[0].tolist() == list(range(255))
    assert mapper.has_missing[0]
    codes = mapper.transform(np.array([[3.0], [1005.0], [np.nan], [7777.0]]))[0]
    assert codes.tolist() == [3, 255, 255, 255]
    assert not BinMapper.fit(column[:765, None], categories={0: np.arange(255.0)}).has_missing[0]


# The seam: a booster that the engine knows nothing of


def boosted_softmax(X, y, X_test, order: str, n_rounds: int) -> np.ndarray:
    """One vector-leaf tree a round on a sketch of the gradients; labels for the test samples."""
    n_classes, rng = int(y.max()) + 1, np.random.default_rng(0)
    data = binned(X)
    limits = {"max_depth": 7} if order == "symmetric" else {"max_leaf_nodes": 63}
    grower = TreeGrower(data, Growth(order=order, min_samples_leaf=2, **limits))
    scores, onehot, stages = np.zeros((len(y), n_classes)), np.eye(n_classes)[y], []
    for _ in range(n_rounds):
        shares = softmax(scores, axis=1)
        gradients, hessians = shares - onehot, shares * (1.0 - shares)
        sketch = gradients @ rng.normal(size=(n_classes, 2))
        rows = Summands.of_rows(np.column_stack([sketch, hessians.sum(axis=1)]))
        grown = grower.grow(rows, Gain.of_gradients(3, 1.0, 1e-3))
        n_nodes = len(grown.tree.left)
        g, h = (
            np.column_stack([np.bincount(grown.leaves, column, n_nodes) for column in part.T])
            for part in (gradients, hessians)
        )
        values = np.clip(-0.3 * g / (h + 1.0), -4.0, 4.0)
        stages.append(Stage([grown.tree], [1.0], [grown.leaves], values))
        stages[-1].add_to(scores)
    return join_stages(stages, X.shape[1]).accumulate(X_test).argmax(axis=1)


@pytest.mark.parametrize("order", ["best", "symmetric"])
def test_vector_leaves_beat_samme_on_many_classes(order) -> None:
    """Twenty-six classes of two clusters each: a few thousand samples of all of them."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(26, 2, 16))
    y = rng.integers(26, size=8000)
    X = centres[y, rng.integers(2, size=8000)] + 1.2 * rng.normal(size=(8000, 16))
    train, test = slice(0, 4000), slice(4000, 8000)
    samme = SAMMEClassifier(max_depth=8, n_estimators=60, learning_rate=0.5)
    theirs = samme.fit(X[train], y[train]).score(X[test], y[test])
    ours = boosted_softmax(X[train], y[train], X[test], order, 60)
    assert np.mean(ours == y[test]) > theirs > 0.8
