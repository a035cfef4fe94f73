"""Shapley values of forests against their definition, and against another implementation."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost import BAdaCostClassifier
from badacost._utils.parallel import Threads
from badacost.tree.forest import Forest, Tree
from tests.tree.test_forest import (
    N_FEATURES,
    chain,
    random_forest,
    random_samples,
    random_tree,
    slow_child,
    symmetric_tree,
    with_categories,
)


def cover(tree: Tree, node: int) -> tuple[float, float]:
    """Shares of the left and the right child in the training samples of a node."""
    left, right = tree.count[tree.left[node] : tree.left[node] + 2].astype(float)
    return (left / (left + right), right / (left + right)) if left + right else (0.5, 0.5)


def expected(forest: Forest, tree: Tree, x: np.ndarray, known: set[int], node: int = 0):
    """Scores of a tree for a sample of which some features are known: by recursion."""
    if tree.left[node] == node:
        return forest.table[tree.value[node]]
    children = [int(tree.left[node]), int(tree.left[node]) + 1]
    if tree.feature[node] in known:
        return expected(forest, tree, x, known, slow_child(forest, tree, node, x))
    shares = cover(tree, node)
    return sum(
        share * expected(forest, tree, x, known, child)
        for share, child in zip(shares, children, strict=True)
    )


def game(forest: Forest, x: np.ndarray, known: tuple[int, ...]) -> np.ndarray:
    total = np.zeros(forest.table.shape[1])
    for tree, weight in zip(forest.trees(), forest.tree_weights, strict=True):
        total += weight * expected(forest, tree, x, set(known))
    return total


def slow_contributions(forest: Forest, x: np.ndarray) -> np.ndarray:
    """The definition: means over all subsets of other features."""
    n = forest.n_features
    subsets = [subset for size in range(n + 1) for subset in combinations(range(n), size)]
    scores = {subset: game(forest, x, subset) for subset in subsets}
    values = np.zeros((n, forest.table.shape[1]))
    for subset, score in scores.items():
        for feature in set(range(n)) - set(subset):
            more = scores[tuple(sorted((*subset, feature)))]
            values[feature] += (more - score) / (n * comb(n - 1, len(subset)))
    return values


def check(forest: Forest, X: np.ndarray) -> None:
    values, base = forest.contributions(X), forest.expected_scores
    assert values.shape == (len(X), forest.n_features, forest.table.shape[1])
    np.testing.assert_allclose(base, game(forest, X[0], ()), atol=1e-12)
    for row, x in zip(values, X, strict=True):
        np.testing.assert_allclose(row, slow_contributions(forest, x), atol=1e-12)
    np.testing.assert_allclose(base + values.sum(axis=1), forest.accumulate(X), atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 4), st.integers(0, 15))
def test_the_definition(seed, n_trees, n_outputs, most_splits) -> None:
    check(random_forest(seed, n_trees, n_outputs, most_splits), random_samples(seed, 3))


@pytest.mark.parametrize("seed", range(5))
def test_the_definition_with_categories(seed) -> None:
    X = random_samples(seed, 5)
    X[::2, 3] = np.random.default_rng(seed).integers(-110, 170, 3)
    check(with_categories(seed, 2), X)


@pytest.mark.parametrize("depth", range(5))
def test_the_definition_for_symmetric_trees(depth) -> None:
    rng = np.random.default_rng(depth)
    trees = [symmetric_tree(rng, depth) for _ in range(2)]
    check(
        Forest.from_trees(trees, [0.5, 2.0], rng.normal(size=(6, 2)), N_FEATURES),
        random_samples(depth, 4),
    )


@pytest.mark.parametrize("seed", range(5))
def test_nodes_without_samples(seed) -> None:
    """Halves where both sides have none; a single zero means never."""
    rng = np.random.default_rng(seed)
    forest = random_forest(seed, 2)
    nothing = rng.uniform(size=len(forest.count)) < 0.5
    check(replace(forest, count=np.where(nothing, 0, forest.count)), random_samples(seed, 4))


def test_weights_do_not_matter() -> None:
    forest, X = random_forest(3, 2), random_samples(3, 4)
    other = replace(forest, weight=np.zeros_like(forest.weight))
    np.testing.assert_array_equal(other.contributions(X), forest.contributions(X))
    np.testing.assert_array_equal(other.expected_scores, forest.expected_scores)


def test_a_deep_tree_of_one_feature_and_one_without_splits() -> None:
    forest = chain(300)
    values = forest.contributions(np.array([[np.inf], [-1.0], [17.5]]))
    scores = forest.accumulate(np.array([[np.inf], [-1.0], [17.5]]))
    np.testing.assert_allclose(values[:, 0], scores - forest.expected_scores, atol=1e-12)
    assert not chain(0).contributions(np.zeros((2, 1))).any()
    assert not forest.first(0).contributions(np.zeros((2, 1))).any()


def test_trees_too_deep_to_be_explained_are_refused() -> None:
    with pytest.raises(ValueError, match="of depth 513 is too deep to be explained: fit trees"):
        chain(513).contributions(np.zeros((1, 1)))


def test_many_features_on_a_path() -> None:
    """Twenty of them, where sums with changing signs would have lost their digits."""
    rng, n = np.random.default_rng(0), 20
    tree = random_tree(rng, n, 6)
    spine = np.arange(0, 2 * n, 2)  # a leaf to the left of each, the next to the right
    left = np.arange(2 * n + 1, dtype=np.int32)
    left[spine] += 1
    feature = np.zeros(2 * n + 1, np.int32)
    feature[spine] = np.arange(n)
    threshold = np.full(2 * n + 1, np.nan)
    threshold[spine] = 0.0
    tree = replace(
        tree, left=left, feature=feature, threshold=threshold, missing_left=np.isnan(threshold)
    )
    forest = Forest.from_trees([tree], [1.0], rng.normal(size=(6, 2)), n)
    X = rng.normal(size=(50, n))
    values = forest.contributions(X)
    np.testing.assert_allclose(
        forest.expected_scores + values.sum(axis=1), forest.accumulate(X), atol=1e-13
    )


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_blocks_and_types_do_not_matter(n_rows, dtype) -> None:
    forest, X = random_forest(7), random_samples(8, n_rows, dtype)
    values = forest.contributions(X)
    single = np.concatenate([forest.contributions(X[[i]]) for i in range(n_rows)])
    np.testing.assert_array_equal(values, single)
    threads = Threads(2)
    np.testing.assert_array_equal(values, forest.contributions(X, threads))
    np.testing.assert_array_equal(values, forest.contributions(np.asfortranarray(X)))


def as_dictionary(forest: Forest, output: int) -> dict:
    """One output in the form that shap takes; it goes left where x <= threshold."""
    trees = []
    for tree, weight in zip(forest.trees(), forest.tree_weights, strict=True):
        leaf = tree.is_leaf
        right = np.where(leaf, -1, tree.left + 1)
        left = np.where(leaf, -1, tree.left)
        trees.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(tree.missing_left, left, right),
                "features": np.where(leaf, -2, tree.feature),
                "thresholds": np.where(leaf, 0.0, np.nextafter(tree.threshold, -np.inf)),
                "values": (weight * forest.table[tree.value, output])[:, np.newaxis],
                "node_sample_weight": tree.count.astype(float),
            }
        )
    return {"trees": trees}


def test_against_shap() -> None:
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(3, size=300)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    costs = [[0, 1, 7], [2, 0, 3], [11, 5, 0]]
    forest = BAdaCostClassifier(costs, n_estimators=10, max_depth=5).fit(X, y).forest_
    values = forest.contributions(X)
    for output in range(3):
        theirs = shap.TreeExplainer(
            as_dictionary(forest, output), feature_perturbation="tree_path_dependent"
        )
        assert np.squeeze(theirs.expected_value) == pytest.approx(forest.expected_scores[output])
        np.testing.assert_allclose(
            values[:, :, output], np.squeeze(theirs.shap_values(X)), rtol=1e-6, atol=1e-6
        )
