"""Forests against a descent in plain Python, and the checks that keep kernels inside arrays."""

from __future__ import annotations

import pickle
from dataclasses import MISSING, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.tree import forest_kernels
from badacost.tree.binning import BinMapper
from badacost.tree.forest import Forest, Tree
from tests.forests import assert_same_forest

N_FEATURES = 4
NODE_ARRAYS = [item.name for item in fields(Tree) if item.default is MISSING]
FOREST_ARRAYS = [*NODE_ARRAYS, "offsets", "tree_weights", "table"]
VALUES = np.array([-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])


def random_tree(rng: np.random.Generator, n_splits: int, n_rows: int) -> Tree:
    """A tree in which random leaves were split, with few thresholds so that values meet them."""
    left = [0]
    for _ in range(n_splits):
        leaves = [node for node, child in enumerate(left) if child == node]
        left[rng.choice(leaves)] = len(left)
        left += [len(left), len(left) + 1]
    n_nodes = len(left)
    leaf = np.array(left) == np.arange(n_nodes)
    threshold = rng.choice(np.append(VALUES[1:-1], np.float64(np.float32(0.1))), n_nodes)
    return Tree(
        feature=np.where(leaf, 0, rng.integers(0, N_FEATURES, n_nodes)).astype(np.int32),
        threshold=np.where(leaf, np.nan, threshold),
        left=np.array(left, dtype=np.int32),
        missing_left=leaf | (rng.uniform(size=n_nodes) < 0.5),
        value=rng.integers(0, n_rows, n_nodes).astype(np.int32),
        gain=np.where(leaf, 0.0, rng.uniform(0.1, 1.0, n_nodes)).astype(np.float32),
        count=rng.integers(1, 50, n_nodes).astype(np.int32),
        weight=rng.uniform(0.1, 1.0, n_nodes).astype(np.float32),
    )


def random_forest(seed: int, n_trees: int = 5, n_outputs: int = 3, most_splits: int = 12) -> Forest:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(6, n_outputs))
    trees = [random_tree(rng, rng.integers(0, most_splits + 1), 6) for _ in range(n_trees)]
    return Forest.from_trees(trees, rng.uniform(0.1, 2.0, n_trees), table, N_FEATURES)


def random_samples(seed: int, n: int, dtype=np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.concatenate([VALUES, rng.normal(size=5), [0.1]])
    return rng.choice(values, (n, N_FEATURES)).astype(dtype)


def slow_child(forest: Forest, tree: Tree, node: int, x: np.ndarray) -> int:
    """The child that a sample goes to."""
    feature, value = tree.feature[node], float(x[tree.feature[node]])
    tests_set = tree.category_set is not None and tree.category_set[node] >= 0
    place = []
    if tests_set:
        known = forest.categories[slice(*forest.category_offsets[[feature, feature + 1]])]
        place = np.flatnonzero(known == value).tolist()
    if np.isnan(value) or (tests_set and not place):
        right = not tree.missing_left[node]
    elif tests_set:
        word, bit = divmod(place[0], 32)
        right = bool(int(tree.sets[tree.category_set[node], word]) >> bit & 1)
    else:
        right = value >= tree.threshold[node]
    return int(tree.left[node]) + int(right)


def slow_leaf(forest: Forest, tree: Tree, x: np.ndarray) -> int:
    """The leaf of a sample."""
    node = 0
    while not np.isnan(tree.threshold[node]):
        node = slow_child(forest, tree, node, x)
    return node


def slow_leaves(forest: Forest, X: np.ndarray) -> np.ndarray:
    found = [[slow_leaf(forest, tree, x) for tree in forest.trees()] for x in X]
    return np.array(found, dtype=np.int32).reshape(len(X), forest.n_trees)


def slow_scores(forest: Forest, X: np.ndarray) -> np.ndarray:
    scores = np.zeros((len(X), forest.table.shape[1]))
    for tree, weight in zip(forest.trees(), forest.tree_weights, strict=True):
        for row, x in zip(scores, X, strict=True):
            row += weight * forest.table[tree.value[slow_leaf(forest, tree, x)]]
    return scores


@settings(max_examples=80)
@given(
    st.integers(0, 10_000),
    st.integers(0, 6),
    st.integers(1, 4),
    st.integers(0, 20),
    st.sampled_from([np.float32, np.float64]),
)
def test_descent_against_plain_python(seed, n_trees, n_outputs, most_splits, dtype) -> None:
    forest = random_forest(seed, max(n_trees, 1), n_outputs, most_splits).first(n_trees)
    X = random_samples(seed + 1, 30, dtype)
    np.testing.assert_array_equal(forest.apply(X), slow_leaves(forest, X))
    np.testing.assert_allclose(forest.accumulate(X), slow_scores(forest, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_order_does_not_matter(dtype) -> None:
    forest, X = random_forest(0), random_samples(1, 700, dtype)  # more rows than a block
    wide = np.full((1400, 3 * N_FEATURES), 7.0, dtype)
    wide[::2, ::3] = X
    backwards = np.ascontiguousarray(X[::-1])[::-1]
    scores, leaves = forest.accumulate(X), forest.apply(X)
    np.testing.assert_array_equal(leaves, slow_leaves(forest, X))
    for other in (np.asfortranarray(X), wide[::2, ::3], backwards):
        assert not other.flags.c_contiguous
        np.testing.assert_array_equal(forest.accumulate(other), scores)
        np.testing.assert_array_equal(forest.apply(other), leaves)


def test_layout_and_type_need_no_further_compilation(tmp_path) -> None:
    """Neither of the samples nor of the arrays of a forest, as files and memory maps give them."""
    forest, X = random_forest(0), random_samples(1, 700).astype(np.float32).astype(np.float64)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((1400, 3 * N_FEATURES))
    wide[::2, ::3] = X
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    samples = [frozen, np.asfortranarray(X), wide[::2, ::3], X[::-1][::-1], mapped]
    samples += [part.astype(np.float32) for part in samples] + [X.astype(np.float16), X[:0]]
    kernels = forest_kernels.accumulate, forest_kernels.leaves
    scores, leaves = forest.accumulate(X), forest.apply(X)
    known = [len(kernel.signatures) for kernel in kernels]
    parts = {name: np.asarray(getattr(forest, name)).copy() for name in FOREST_ARRAYS}
    for part in parts.values():
        part.flags.writeable = False
    for one in (forest, replace(forest, **parts), pickle.loads(pickle.dumps(forest))):
        for other in samples:
            if other.dtype == np.float16:
                one.accumulate(other)
                continue
            np.testing.assert_array_equal(one.accumulate(other), scores[: len(other)])
            np.testing.assert_array_equal(one.apply(other), leaves[: len(other)])
    threads = Threads(2)
    np.testing.assert_array_equal(forest.accumulate(frozen, threads=threads), scores)
    np.testing.assert_array_equal(forest.apply(frozen, threads), leaves)
    assert [len(kernel.signatures) for kernel in kernels] == known


@pytest.mark.parametrize("shape", [(5, 3), (5, 5), (0, 3), (5,), (5, 4, 1)])
def test_samples_of_another_width(shape) -> None:
    forest = random_forest(0)
    with pytest.raises(ValueError, match="X must have 4 columns; got shape"):
        forest.apply(np.zeros(shape))
    with pytest.raises(ValueError, match="X must have 4 columns; got shape"):
        forest.accumulate(np.zeros(shape))


def test_scores_of_another_shape_and_trees_that_are_not_there() -> None:
    forest, X = random_forest(0), random_samples(1, 5)
    for shape in ((4, 3), (5, 2), (5,)):
        with pytest.raises(ValueError, match=r"scores must have shape \(5, 3\)"):
            forest.accumulate(X, np.zeros(shape))
    for first, last in ((-1, 2), (3, 2), (0, 6)):
        with pytest.raises(ValueError, match="are not among 5 trees"):
            forest.accumulate(X, first_tree=first, last_tree=last)


# One test for each level.


def symmetric_tree(rng: np.random.Generator, depth: int) -> Tree:
    """A complete tree, level by level, with one test in each."""
    n_nodes = 2 ** (depth + 1) - 1
    level = np.log2(np.arange(n_nodes) + 1).astype(int)
    inner = level < depth
    plain = random_tree(rng, n_nodes // 2, 6)
    threshold = rng.choice(VALUES[1:-1], depth + 1)[level]
    return replace(
        plain,
        feature=np.where(inner, rng.integers(N_FEATURES, size=depth + 1)[level], 0).astype("i4"),
        threshold=np.where(inner, threshold, np.nan),
        left=np.where(inner, 2 * np.arange(n_nodes) + 1, np.arange(n_nodes)).astype("i4"),
        missing_left=~inner | (rng.uniform(size=n_nodes) < 0.5),
    )


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("depth", range(7))
def test_symmetric_trees(depth, missing) -> None:
    rng = np.random.default_rng(depth)
    trees = [symmetric_tree(rng, depth) for _ in range(5)]
    # The same but for one test, or for the order of the children.
    inner = np.flatnonzero(~trees[0].is_leaf)
    for name, other in (("threshold", 0.25), ("feature", None)):
        for node in inner:
            array = getattr(trees[0], name).copy()
            array[node] = (array[node] + 1) % N_FEATURES if other is None else other
            trees.append(replace(trees[0], **{name: array}))
    if depth > 1:
        left = trees[0].left.copy()
        left[1], left[2] = left[2], left[1]
        trees.append(replace(trees[0], left=left))
    forest = Forest.from_trees(trees, np.ones(len(trees)), rng.normal(size=(6, 2)), N_FEATURES)
    X = random_samples(depth, 150)
    if not missing:
        X = X[~np.isnan(X).any(axis=1)]
    np.testing.assert_array_equal(forest.apply(X), slow_leaves(forest, X))
    np.testing.assert_allclose(forest.accumulate(X), slow_scores(forest, X), rtol=1e-12, atol=1e-12)


# Categories.

KNOWN = [np.empty(0), np.array([-2.0, 0.0, 0.5, 3.0]), np.empty(0), np.arange(-100.0, 156.0)]


def with_categories(seed: int, n_trees: int = 5) -> Forest:
    """A forest that tests sets of categories wherever a feature has some."""
    rng, forest = np.random.default_rng(seed), random_forest(seed, n_trees)
    limits = np.cumsum([0, *map(len, KNOWN)])
    tested = ~forest.is_leaf & (np.diff(limits)[forest.feature] > 0)
    sets = rng.integers(2**32, size=(np.count_nonzero(tested) + 1, 8), dtype=np.uint32)
    return replace(
        forest,
        category_set=np.where(tested, np.cumsum(tested) - 1, -1).astype(np.int32),
        sets=sets,
        categories=np.concatenate(KNOWN),
        category_offsets=limits,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_against_plain_python(dtype) -> None:
    for seed in range(20):
        forest, X = with_categories(seed), random_samples(seed, 40, dtype)
        X[::2, 3] = np.random.default_rng(seed).integers(-110, 170, 20)
        before = X.copy()
        np.testing.assert_array_equal(forest.apply(X), slow_leaves(forest, X))
        np.testing.assert_allclose(
            forest.accumulate(X), slow_scores(forest, X), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_array_equal(X, before)
        part, again = forest.first(2), pickle.loads(pickle.dumps(forest))
        np.testing.assert_array_equal(part.apply(X), forest.apply(X)[:, :2])
        np.testing.assert_array_equal(again.apply(X), forest.apply(X))
        threads = Threads(2)
        np.testing.assert_array_equal(forest.apply(X, threads), forest.apply(X))


def test_trees_with_categories_make_the_forest_again() -> None:
    forest, X = with_categories(3), random_samples(4, 60)
    known = {feature: part for feature, part in enumerate(KNOWN) if len(part)}
    mapper = BinMapper([np.empty(0)] * 4, np.zeros(4, bool), known)
    trees, weights = forest.trees(), forest.tree_weights
    again = Forest.from_trees(trees, weights, forest.table, N_FEATURES, mapper)
    assert_same_forest(replace(forest, sets=forest.sets[:-1]), again)  # less one that no node has
    np.testing.assert_array_equal(again.accumulate(X), forest.accumulate(X))


def changed_categories(name: str, place, value) -> dict[str, np.ndarray]:
    array = getattr(with_categories(0), name).copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"category_set": None}, "describe categories"),
        ({"sets": None}, "describe categories"),
        ({"categories": None}, "describe categories"),
        ({"category_offsets": None}, "describe categories"),
        ({"category_set": with_categories(0).category_set[:-1]}, "a number per node"),
        ({"sets": with_categories(0).sets[:, :7]}, "must have 8 words"),
        ({"sets": with_categories(0).sets[:1]}, "a set of categories that is not there"),
        (changed_categories("category_set", 0, -2), "a set of categories that is not there"),
        (changed_categories("category_set", 0, 2**31 - 1), "a set of categories that is not"),
        ({"category_offsets": np.array([0, 0, 4, 4])}, "do not cover its features"),
        (changed_categories("category_offsets", 4, 300), "do not cover its features"),
        (changed_categories("category_offsets", 0, 1), "do not cover its features"),
        (changed_categories("category_offsets", 2, 0), "does not test what its feature"),
        (changed_categories("category_offsets", 1, 300), "too many categories"),
        (changed_categories("category_offsets", 2, -(2**63)), "too many categories"),
        (changed_categories("categories", 0, 0.0), "not increasing"),
        (changed_categories("categories", 0, np.nan), "not increasing"),
        (changed_categories("categories", -1, np.inf), "not increasing"),
        (changed_categories("category_set", slice(None), -1), "does not test what its feature"),
        (changed_categories("category_set", slice(None), 0), "does not test what its feature"),
    ],
)
def test_damaged_categories_are_refused(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        replace(with_categories(0), **changes)


# Values and thresholds.


def test_single_precision_values_meet_double_precision_thresholds() -> None:
    """0.1 in single precision is above 0.1 in double, and equal to itself."""
    tree = random_tree(np.random.default_rng(0), 1, 2)
    for threshold, expected in [(0.1, 2), (float(np.float32(0.1)), 2), (0.1000001, 1)]:
        one = replace(tree, threshold=np.array([threshold, np.nan, np.nan]))
        forest = Forest.from_trees([one], np.ones(1), np.eye(2), N_FEATURES)
        X = np.full((1, N_FEATURES), 0.1, np.float32)
        assert forest.apply(X).tolist() == [[expected]]


@pytest.mark.parametrize("n_rows", [0, 1, 2, 255, 256, 257, 1000])
def test_threads_do_not_matter(n_rows) -> None:
    forest, X = random_forest(2, n_trees=4), random_samples(3, n_rows)
    scores, leaves = forest.accumulate(X), forest.apply(X)
    assert scores.shape == (n_rows, 3)
    assert leaves.shape == (n_rows, 4)
    assert leaves.dtype == np.int32
    for n_jobs in (2, 3):
        threads = Threads(n_jobs)
        np.testing.assert_array_equal(forest.accumulate(X, threads=threads), scores)
        np.testing.assert_array_equal(forest.apply(X, threads), leaves)


def test_scores_are_added_in_place_tree_by_tree() -> None:
    forest, X = random_forest(4, n_trees=6), random_samples(5, 50)
    scores = np.ones((50, 3))
    assert forest.accumulate(X, scores, last_tree=2) is scores
    np.testing.assert_allclose(scores, 1.0 + slow_scores(forest.first(2), X), rtol=1e-12)
    forest.accumulate(X, scores, first_tree=2, last_tree=5)
    forest.accumulate(X, scores, first_tree=5)
    np.testing.assert_allclose(scores, 1.0 + slow_scores(forest, X), rtol=1e-12)
    before = scores.copy()
    forest.accumulate(X, scores, first_tree=3, last_tree=3)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("n_trees", [1, 2, 5])
def test_trees_make_the_forest_again(n_trees) -> None:
    forest = random_forest(6, n_trees)
    again = Forest.from_trees(forest.trees(), forest.tree_weights, forest.table, N_FEATURES)
    assert_same_forest(again, forest)
    assert len(forest.trees()) == forest.n_trees == n_trees


@pytest.mark.parametrize("n_trees", range(6))
def test_first_trees(n_trees) -> None:
    forest, X = random_forest(7), random_samples(8, 40)
    part = forest.first(n_trees)
    assert part.n_trees == len(part.depths) == n_trees
    np.testing.assert_array_equal(part.accumulate(X), forest.accumulate(X, last_tree=n_trees))
    np.testing.assert_array_equal(part.apply(X), forest.apply(X)[:, :n_trees])
    np.testing.assert_array_equal(part.depths, forest.depths[:n_trees])


def test_pickling() -> None:
    forest, X = random_forest(9), random_samples(10, 40)
    fresh = pickle.dumps(forest)
    scores = forest.accumulate(X)
    assert pickle.dumps(forest) == fresh  # nothing that is derived
    again = pickle.loads(fresh)
    assert_same_forest(again, forest)
    np.testing.assert_array_equal(again.accumulate(X), scores)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(0, 40))
def test_depths_are_the_longest_ways_down(seed, most_splits) -> None:
    forest = random_forest(seed, 3, 1, most_splits)
    for tree, depth in zip(forest.trees(), forest.depths, strict=True):
        level = np.zeros(len(tree.left), int)
        for node, child in enumerate(tree.left):
            if child != node:
                level[[child, child + 1]] = level[node] + 1
        assert depth == level.max()


def chain(n_splits: int) -> Forest:
    """A tree that grows on its right side only: the deepest of its size."""
    n_nodes = 2 * n_splits + 1
    number = np.arange(n_nodes)
    inner = (number % 2 == 0) & (number < n_nodes - 1)
    return Forest(
        feature=np.zeros(n_nodes, np.int32),
        threshold=np.where(inner, number / 2, np.nan),
        left=np.where(inner, number + 1, number).astype(np.int32),
        missing_left=np.ones(n_nodes, bool),
        value=np.zeros(n_nodes, np.int32),
        gain=np.zeros(n_nodes, np.float32),
        count=np.ones(n_nodes, np.int32),
        weight=np.ones(n_nodes, np.float32),
        offsets=np.array([0, n_nodes]),
        tree_weights=np.ones(1),
        table=np.ones((1, 1)),
        n_features=1,
    )


@pytest.mark.parametrize("n_splits", [0, 1, 2, 1000, 50_000])
def test_a_chain_is_as_deep_as_it_has_splits(n_splits) -> None:
    forest = chain(n_splits)
    assert forest.depths.tolist() == [n_splits]
    assert forest.apply(np.array([[np.inf], [-1.0]])).tolist() == [
        [2 * n_splits],
        [min(1, n_splits)],
    ]


def test_feature_importances() -> None:
    forest = random_forest(11)
    expected = np.zeros(N_FEATURES)
    for tree, factor in zip(forest.trees(), forest.tree_weights, strict=True):
        for node in np.flatnonzero(~np.isnan(tree.threshold)):
            expected[tree.feature[node]] += factor * float(tree.gain[node]) * tree.weight[node]
    found = forest.feature_importances()
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6)
    counts = np.bincount(forest.feature[~forest.is_leaf], minlength=N_FEATURES)
    assert forest.feature_importances("count").tolist() == (counts / counts.sum()).tolist()
    stump = chain(0)
    assert stump.feature_importances().tolist() == [0.0]
    assert stump.feature_importances("count").tolist() == [0.0]
    with pytest.raises(ValueError, match="kind must be one of 'gain', 'count'; got 'cover'"):
        forest.feature_importances("cover")


# Two trees: a root with two leaves, then a root, a leaf and a root with two leaves.
SOUND = Forest(
    feature=np.array([1, 0, 0, 2, 0, 1, 0, 0], np.int32),
    threshold=np.array([0.5, np.nan, np.nan, 1.5, np.nan, 2.5, np.nan, np.nan]),
    left=np.array([1, 1, 2, 1, 1, 3, 3, 4], np.int32),
    missing_left=np.array([False, True, True, False, True, True, True, True]),
    value=np.array([0, 1, 0, 0, 1, 0, 0, 1], np.int32),
    gain=np.zeros(8, np.float32),
    count=np.ones(8, np.int32),
    weight=np.ones(8, np.float32),
    offsets=np.array([0, 3, 8]),
    tree_weights=np.ones(2),
    table=np.eye(2),
    n_features=3,
)


def changed(name: str, place, value) -> dict[str, np.ndarray]:
    array = getattr(SOUND, name).copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({name: getattr(SOUND, name)[:-1]}, "same length") for name in NODE_ARRAYS),
        ({"offsets": np.array([0, 8])}, "same length"),
        ({"tree_weights": np.ones(3)}, "same length"),
        (changed("offsets", 0, 1), "cover its nodes"),
        (changed("offsets", 0, -1), "cover its nodes"),
        (changed("offsets", 2, 7), "cover its nodes"),
        (changed("offsets", 2, 9), "cover its nodes"),
        (changed("offsets", 1, 0), "cover its nodes"),
        (changed("offsets", 1, 8), "cover its nodes"),
        (changed("offsets", 1, 9), "cover its nodes"),
        (changed("offsets", 1, np.iinfo(np.int64).min), "cover its nodes"),
        (changed("offsets", 1, 2), "own left child"),
        (changed("offsets", 1, 4), "own left child"),
        (changed("feature", 0, -1), r"feature outside of 0\.\.2"),
        (changed("feature", 3, 3), r"feature outside of 0\.\.2"),
        (changed("feature", 1, 3), r"feature outside of 0\.\.2"),
        ({"n_features": 2}, r"feature outside of 0\.\.1"),
        (changed("value", 1, -1), r"row outside of 0\.\.1"),
        (changed("value", 7, 2), r"row outside of 0\.\.1"),
        (changed("value", 0, 2), r"row outside of 0\.\.1"),
        ({"table": np.zeros((0, 2))}, "row outside"),
        (changed("table", (0, 0), np.nan), "not finite"),
        (changed("table", (1, 0), np.inf), "not finite"),
        (changed("tree_weights", 1, np.nan), "not finite"),
        (changed("gain", 0, np.inf), "not finite"),
        (changed("weight", 0, np.nan), "not finite"),
        (changed("left", 1, 2), "own left child"),
        (changed("left", 7, 0), "own left child"),
        (changed("threshold", 0, np.nan), "own left child"),
        (changed("missing_left", 2, False), "own left child"),
        (changed("left", 0, 0), "child before it or outside"),
        (changed("left", 0, 2), "child before it or outside"),
        (changed("left", 0, -1), "child before it or outside"),
        (changed("left", 5, 4), "child before it or outside"),
        (changed("left", 5, 1), "child before it or outside"),
        (changed("left", 3, np.iinfo(np.int32).max), "child before it or outside"),
        (changed("threshold", 7, 1.0), "child before it or outside"),
        (changed("left", 3, 3), "exactly one parent"),
        (changed("left", 3, 2), "exactly one parent"),
    ],
)
def test_damaged_forests_are_refused(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SOUND, **changes)


def test_the_forest_of_these_checks_is_sound() -> None:
    assert SOUND.depths.tolist() == [1, 2]
    X = np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 3.0], [0.0, np.nan, np.nan]])
    assert SOUND.apply(X).tolist() == [[1, 1], [2, 4], [2, 3]]


@settings(max_examples=200)
@given(
    st.sampled_from(["feature", "left", "value", "offsets"]),
    st.integers(0, 7),
    st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31)]),
)
def test_any_index_is_safe_or_refused(name, place, value) -> None:
    """Whatever passes the checks can be walked in plain Python, where indices are checked."""
    try:
        forest = replace(SOUND, **changed(name, place % len(getattr(SOUND, name)), value))
    except ValueError:
        return
    X = np.random.default_rng(0).uniform(-1, 4, (20, 3))
    np.testing.assert_array_equal(forest.apply(X), slow_leaves(forest, X))
    np.testing.assert_allclose(forest.accumulate(X), slow_scores(forest, X))
