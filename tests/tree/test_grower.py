"""The grower against a search of all splits in plain numpy, and its paths against each other.

Data sets are bins made by hand: code ``c`` stands for the value ``c``, the code ``n_bins`` for a
missing value, and the threshold after bin ``s`` is ``s + 0.5``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.boosting.reweighting import SplitCosts, TreeLearner, cheapest_labels
from badacost.costs import zero_one_costs
from badacost.tree import grower as grower_module
from badacost.tree import threaded_growth
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Forest, Tree
from badacost.tree.grower import Gain, Growth, Summands, TreeGrower
from badacost.tree.split_kernels import N_JOBS

LEAST_GAIN = 1e-10
CLOSE = 1e-9  # gains nearer than this may be ordered either way


def label_sums(labels: np.ndarray, weights: np.ndarray, n_labels: int) -> Summands:
    return Summands.of_labels(labels, weights, n_labels, float(weights.sum()))


@dataclass(frozen=True)
class Shape(Growth):
    """Limits of a tree for classes, and what its splits improve."""

    criterion: str = "gini"

    @property
    def growth(self) -> Growth:
        limits = {item.name: getattr(self, item.name) for item in fields(Growth)}
        if self.max_leaf_nodes is not None:
            limits["order"] = "best"
        return Growth(**limits)


@dataclass(frozen=True)
class Grown:
    """A tree with labels, class weights of its nodes, and the leaves of the samples it saw."""

    tree: Tree
    class_weights: np.ndarray
    samples: np.ndarray
    leaves: np.ndarray


@dataclass(frozen=True)
class Problem:
    codes: np.ndarray  # (n_features, n_samples)
    n_bins: np.ndarray
    has_missing: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    costs: np.ndarray

    @property
    def data(self) -> BinnedData:
        edges = [np.arange(n - 1) + 0.5 for n in self.n_bins]
        n_codes = int((self.n_bins + self.has_missing).max())
        bins = self.codes.astype(np.min_scalar_type(n_codes - 1))
        return BinnedData(BinMapper(edges, self.has_missing), np.ascontiguousarray(bins))

    def rounded(self, criterion: str = "gini") -> np.ndarray:
        """The weights as trees see them, factors of the entropy divided out."""
        split = SplitCosts.of(self.costs, criterion)
        values = split.summands(self.y, self.weights).values[:, 0].astype(float)
        return values if criterion == "gini" else values / split.factors[self.y]

    @property
    def X(self) -> np.ndarray:
        missing = self.codes == self.n_bins[:, None]
        return np.where(missing & self.has_missing[:, None], np.nan, self.codes).T

    def grow(
        self, shape: Shape | None = None, n_jobs: int = 1, rows: np.ndarray | None = None, seed=0
    ) -> Grown:
        shape = shape or Shape()
        n_classes = len(self.costs)
        threads = Threads(n_jobs)
        grower = TreeGrower(self.data, shape.growth, threads)
        learner = TreeLearner(grower, self.y, n_classes, shape.criterion)
        tree, class_weights, leaves = learner.grow(self.weights, self.costs, rows, seed)
        shares = class_weights / class_weights.sum(axis=1, keepdims=True)
        used = np.arange(len(self.y)) if rows is None else rows
        used = used[self.rounded(shape.criterion)[used] > 0]
        tree = replace(tree, value=cheapest_labels(shares, self.costs))
        return Grown(tree, class_weights, used, leaves[used])

    def stretched(self, factor: int) -> Problem:
        """The same data with codes so far apart that they need several bytes."""
        n_bins = (self.n_bins - 1) * factor + 300
        missing = self.codes == self.n_bins[:, None]
        return replace(
            self, codes=np.where(missing, n_bins[:, None], self.codes * factor), n_bins=n_bins
        )


def make_problem(
    seed: int,
    n_samples: int,
    n_codes: int,
    *,
    n_features: int = 3,
    n_classes: int = 3,
    weights: str = "random",
    costs: str = "random",
    missing: bool = False,
) -> Problem:
    """Noisy data with ties: repeated rows, a constant feature, a copy of another feature."""
    rng = np.random.default_rng(seed)
    skew = rng.choice([1.0, 1.0, 0.1, 8.0])  # bins that are nearly empty at one of the ends
    codes = (n_codes * rng.uniform(size=(n_features, n_samples)) ** skew).astype(int)
    signal = codes[0] * n_classes // n_codes
    y = np.where(rng.uniform(size=n_samples) < 0.6, signal, rng.integers(0, n_classes, n_samples))
    if seed % 3 == 1:
        codes[-1] = rng.integers(0, n_codes)
    if seed % 3 == 2:
        codes[-1] = codes[0]
    if seed % 2:
        again = rng.integers(0, n_samples, n_samples // 3)
        codes[:, : len(again)] = codes[:, again]
    n_bins = np.full(n_features, n_codes)
    has_missing = np.zeros(n_features, bool)
    if missing:
        has_missing[: max(1, n_features - 1)] = True
        gone = (rng.uniform(size=codes.shape) < 0.25) & has_missing[:, None]
        gone[0] |= (y == n_classes - 1) & (rng.uniform(size=n_samples) < 0.7)
        codes[gone] = n_codes
    w = {
        "equal": np.ones(n_samples),
        "random": rng.uniform(0.1, 1.0, n_samples),
        "extreme": 10.0 ** rng.uniform(-12, 0, n_samples),
    }[weights]
    matrix = zero_one_costs(n_classes)
    if costs == "random":
        matrix = matrix * 10.0 ** rng.uniform(-1, 1, matrix.shape)
    return Problem(codes, n_bins, has_missing, y, w / w.sum(), matrix)


class BruteForce:
    """Every split of a node, by the formulas of the specification (section 2.1)."""

    def __init__(self, problem: Problem, criterion: str):
        self.problem, self.criterion = problem, criterion
        self.K = len(problem.costs)
        self.factors = self.K * problem.costs.sum(axis=1) / problem.costs.sum()
        self.w = problem.rounded(criterion)
        if criterion == "entropy":
            self.w = self.w * self.factors[problem.y]

    def impurity(self, members: np.ndarray) -> float:
        sums = np.bincount(self.problem.y[members], self.w[members], self.K)
        shares = sums / sums.sum()
        if self.criterion == "gini":
            return 1.0 - ((self.factors * shares) ** 2).sum()
        return -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum()

    def gain(self, members: np.ndarray, left: np.ndarray) -> float:
        w = self.w[members]
        share = w[left].sum() / w.sum()
        if min(share, 1 - share) < 1e-13:  # impurities of such children are noise
            return 0.0
        children = share * self.impurity(members[left])
        children += w[~left].sum() / w.sum() * self.impurity(members[~left])
        return self.impurity(members) - children

    def left(self, members, feature, position, missing_left) -> np.ndarray:
        column = self.problem.codes[feature, members]
        missing = self.problem.has_missing[feature] & (column == self.problem.n_bins[feature])
        return (~missing & (column <= position)) | (missing & missing_left)

    def candidates(self, members: np.ndarray, min_leaf: int):
        """All splits of a node, ties in the order in which they are to be preferred."""
        problem = self.problem
        for feature, row in enumerate(problem.codes):
            present = np.unique(row[members])
            missing = problem.has_missing[feature] and present[-1] == problem.n_bins[feature]
            if missing:
                present = present[:-1]
            for missing_left in (False, True)[: 1 + missing]:
                for position in present if missing and not missing_left else present[:-1]:
                    left = self.left(members, feature, position, missing_left)
                    if min(left.sum(), (~left).sum()) >= min_leaf:
                        test = (feature, int(position), missing_left)
                        yield self.gain(members, left), test, left


def check_against_brute_force(problem: Problem, shape: Shape, grown: Grown) -> int:
    """Check every node of a tree; return how many splits had no rival that is as good.

    Such a split must be the one of the brute force. If two different partitions are as good as
    each other, either will do; of tests that make the same partition, the first has to be taken,
    unless rounding can tell them apart.
    """
    brute = BruteForce(problem, shape.criterion)
    tree = grown.tree
    plain = problem.rounded(shape.criterion)
    used = np.flatnonzero(plain > 0)
    expected_values = np.full(len(problem.y), -1)
    pending = [(0, used, 0)]
    n_visited = n_clear = 0
    # Sums of such weights are exact: a partition and its mirror image score the same, bit by bit.
    sums_are_exact = shape.criterion == "gini" and np.ptp(np.log2(plain[used])) < 20
    while pending:
        node, members, depth = pending.pop(0)
        n_visited += 1
        sums = np.bincount(problem.y[members], plain[members], brute.K)
        assert tree.count[node] == len(members)
        np.testing.assert_allclose(grown.class_weights[node], sums, rtol=1e-6)
        expected_costs = (sums / sums.sum() @ problem.costs).astype(np.float32)
        assert expected_costs[tree.value[node]] <= expected_costs.min() * (1 + 1e-6)
        found = list(brute.candidates(members, shape.min_samples_leaf))
        best = max((gain for gain, _, _ in found), default=-np.inf)
        allowed = len(members) >= shape.min_samples_split and np.count_nonzero(sums) > 1
        allowed &= shape.max_depth is None or depth < shape.max_depth
        if tree.left[node] == node:
            assert not allowed or best < LEAST_GAIN + 1e-12
            expected_values[members] = tree.value[node]
            continue
        assert allowed
        feature, threshold = int(tree.feature[node]), tree.threshold[node]
        if np.isinf(threshold):
            threshold = problem.n_bins[feature] - 0.5
        test = (feature, int(threshold), bool(tree.missing_left[node]))
        left = brute.left(members, *test)
        gain = brute.gain(members, left)
        assert gain > max(best - CLOSE, LEAST_GAIN - 1e-12)
        assert tree.gain[node] == pytest.approx(gain, rel=1e-5, abs=1e-11)
        assert min(left.sum(), (~left).sum()) >= shape.min_samples_leaf
        codes = problem.codes[feature, members]
        if not (problem.has_missing[feature] and (codes == problem.n_bins[feature]).any()):
            assert test[2] == (left.sum() >= (~left).sum())
            test = (*test[:2], False)
        rivals = [(test, part) for gain, test, part in found if gain > best - CLOSE]
        if all(np.array_equal(part ^ part[0], left ^ left[0]) for _, part in rivals):
            n_clear += 1
            tests = [test for test, _ in rivals]
            assert test == tests[0] if sums_are_exact else test in tests
        pending.append((tree.left[node], members[left], depth + 1))
        pending.append((tree.left[node] + 1, members[~left], depth + 1))
    assert n_visited == len(tree.feature)
    np.testing.assert_array_equal(np.sort(grown.samples), used)
    np.testing.assert_array_equal(grown.tree.value[grown.leaves], expected_values[grown.samples])
    forest = Forest.from_trees([tree], np.ones(1), np.eye(brute.K), len(problem.codes))
    np.testing.assert_array_equal(
        forest.accumulate(problem.X[used]), np.eye(brute.K)[expected_values[used]]
    )
    return n_clear


def assert_same_trees(one: Tree, two: Tree) -> None:
    for item in fields(Tree):
        np.testing.assert_array_equal(getattr(one, item.name), getattr(two, item.name), item.name)


def n_leaves(tree: Tree) -> int:
    return np.count_nonzero(np.isnan(tree.threshold))


shapes = st.builds(
    Shape,
    max_depth=st.sampled_from([None, None, 1, 2, 4]),
    min_samples_split=st.sampled_from([2, 2, 5, 11]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 5, 40]),
    criterion=st.sampled_from(["gini", "gini", "entropy"]),
)


FEW_CLASSES = st.integers(2, 6)


def problems(n_samples, n_codes, n_classes=FEW_CLASSES):
    return st.builds(
        make_problem,
        seed=st.integers(0, 10_000),
        n_samples=n_samples,
        n_codes=n_codes,
        n_features=st.integers(1, 5),
        n_classes=n_classes,
        weights=st.sampled_from(["equal", "random", "extreme"]),
        costs=st.sampled_from(["01", "random"]),
        missing=st.booleans(),
    )


few_samples = problems(st.integers(2, 30), st.sampled_from([2, 5, 40, 200]))
many_classes = problems(st.integers(30, 150), st.sampled_from([30, 60]), st.just(90))  # sorted
many_samples = problems(st.integers(40, 120), st.integers(2, 8))
most_samples = problems(st.integers(256, 600), st.integers(2, 60))  # histograms, then few bins


@settings(max_examples=150)
@given(st.one_of(few_samples, many_classes), shapes)
def test_small_nodes_against_brute_force(problem, shape) -> None:
    check_against_brute_force(problem, shape, problem.grow(shape))


@settings(max_examples=100)
@given(st.one_of(many_samples, most_samples), shapes)
def test_large_nodes_against_brute_force(problem, shape) -> None:
    if len(problem.y) > 200:
        shape = replace(shape, max_depth=min(shape.max_depth or 2, 2))
    check_against_brute_force(problem, shape, problem.grow(shape))


@settings(max_examples=60)
@given(st.one_of(few_samples, many_samples), shapes, st.sampled_from([7, 101, 10_007]))
def test_more_than_256_bins_against_brute_force(problem, shape, factor) -> None:
    problem = problem.stretched(factor)
    if factor == 10_007:  # bins of four bytes: one kernel to compile is enough
        shape = replace(shape, criterion="gini")
    check_against_brute_force(problem, shape, problem.grow(shape))


@pytest.mark.parametrize(
    ("n_codes", "criterion"),
    [
        (4, "gini"),
        (4, "entropy"),
        (250, "gini"),
        (250, "entropy"),
        (400, "entropy"),
        (70_000, "gini"),
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_deep_trees_against_brute_force(n_codes, missing, criterion) -> None:
    """Hundreds of nodes, nearly all of whose splits have no rival."""
    problem = make_problem(6, 250, n_codes, n_features=2, missing=missing)
    shape = Shape(criterion=criterion)
    grown = problem.grow(shape)
    n_inner = len(grown.tree.feature) - n_leaves(grown.tree)
    assert n_inner > (10 if n_codes == 4 else 60)
    assert check_against_brute_force(problem, shape, grown) > 0.5 * n_inner


@settings(max_examples=100)
@given(
    st.one_of(most_samples, many_classes),
    shapes,
    st.sampled_from([1, 40, 300, 10_007]),
)
def test_sorting_and_histograms_agree(problem, shape, factor) -> None:
    """The samples of many classes are sorted, but not by stretched codes; sums are the same."""
    dense, sparse = problem.grow(shape), problem.stretched(factor).grow(shape)
    inner = ~np.isnan(dense.tree.threshold)
    with_value = inner & (dense.tree.threshold != np.inf)
    positions = np.full(inner.shape, np.nan)
    # A test that sets missing values apart may come after the last bin, which has no edge.
    positions[inner] = problem.n_bins[dense.tree.feature[inner]] - 1
    positions[with_value] = dense.tree.threshold[with_value] - 0.5
    moved = sparse.tree.threshold - 0.5
    np.testing.assert_array_equal(moved, positions * factor)
    same = replace(sparse.tree, threshold=dense.tree.threshold, position=dense.tree.position)
    assert_same_trees(dense.tree, same)
    np.testing.assert_array_equal(dense.class_weights, sparse.class_weights)
    np.testing.assert_array_equal(dense.samples, sparse.samples)
    np.testing.assert_array_equal(dense.leaves, sparse.leaves)


@settings(max_examples=60)
@given(st.one_of(few_samples, most_samples), shapes, st.integers(1, 5), st.booleans())
def test_threads_do_not_matter(problem, shape, n_drawn, mixed) -> None:
    if mixed:  # whether a thread sorts or fills histograms depends on its features
        stretched = problem.stretched(101)
        codes, n_bins = problem.codes.copy(), problem.n_bins.copy()
        codes[0], n_bins[0] = stretched.codes[0], stretched.n_bins[0]
        problem = replace(problem, codes=codes, n_bins=n_bins)
    shape = replace(shape, n_drawn=n_drawn)
    one, two, three = (problem.grow(shape, n_jobs, seed=3) for n_jobs in (1, 2, 3))
    for other in (two, three):
        assert_same_trees(one.tree, other.tree)
        np.testing.assert_array_equal(one.class_weights, other.class_weights)
        np.testing.assert_array_equal(one.leaves, other.leaves)


def mirrored_problem(seed: int, weights: list[float]) -> Problem:
    """Every sample once more on the other side: each split has a twin of equal gain."""
    rng = np.random.default_rng(seed)
    n, n_classes, n_codes = rng.integers(20, 80), rng.integers(2, 6), rng.integers(3, 9)
    y, codes = rng.integers(0, n_classes, n), rng.integers(0, n_codes, (4, n))
    codes, y = np.hstack([codes, n_codes - 1 - codes]), np.tile(y, 2)
    w = np.tile(rng.choice(weights, n), 2)
    n_bins = np.array([n_codes + 300, n_codes, n_codes, n_codes])
    costs = zero_one_costs(n_classes)
    return Problem(codes, n_bins, np.zeros(4, bool), y, w / w.sum(), costs)


@pytest.mark.parametrize("weights", [[1.0], [1e-3, 1.0], [1e-9, 1e-6, 1.0]])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_twins_of_equal_gain_do_not_depend_on_threads(criterion, weights) -> None:
    """Only the first feature has many bins: the way of the others must not depend on its thread."""
    shape = Shape(criterion=criterion)
    for seed in range(40):
        problem = mirrored_problem(seed, weights)
        assert_same_trees(problem.grow(shape).tree, problem.grow(shape, n_jobs=2).tree)


def simple(columns, y, *, n_bins=None, missing=False, costs=None, weights=None) -> Problem:
    """A problem from rows of values, None being a missing value."""
    n_bins = n_bins or [max(v for v in column if v is not None) + 1 for column in columns]
    codes = [
        [n if v is None else v for v in column] for n, column in zip(n_bins, columns, strict=True)
    ]
    y = np.array(y)
    has_missing = np.array([missing or None in column for column in columns])
    w = np.full(len(y), 1 / len(y)) if weights is None else np.array(weights)
    costs = zero_one_costs(y.max() + 1) if costs is None else np.array(costs, float)
    return Problem(np.array(codes), np.array(n_bins), has_missing, y, w, costs)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(
    ("columns", "y", "feature", "threshold"),
    [
        ([[0, 1, 2, 3], [0, 1, 2, 3]], [0, 0, 1, 1], 0, 1.5),
        ([[3, 2, 1, 0], [0, 1, 2, 3]], [0, 0, 1, 1], 0, 1.5),
        ([[0, 0, 0, 0], [0, 1, 2, 3]], [0, 0, 1, 1], 1, 1.5),
        ([[0, 1, 2, 3, 4, 5]], [0, 1, 1, 1, 1, 0], 0, 0.5),
        ([[0, 1, 2, 3, 4, 5]], [0, 1, 2, 2, 1, 0], 0, 0.5),
        ([[5, 9, 9, 9]], [0, 1, 1, 1], 0, 5.5),
        ([[0, 1, 0, 1], [0, 0, 1, 1]], [0, 1, 1, 1], 0, 0.5),
    ],
)
@pytest.mark.parametrize("repeats", [1, 100])
def test_ties_go_to_the_lowest_feature_then_threshold(
    columns, y, feature, threshold, criterion, repeats
) -> None:
    problem = simple(np.tile(columns, repeats).tolist(), y * repeats)
    tree = problem.grow(Shape(criterion=criterion, max_depth=1)).tree
    assert (tree.feature[0], tree.threshold[0]) == (feature, threshold)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_a_mirrored_feature_is_a_tie(criterion) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = rng.integers(5, 40)
        x, y = rng.permutation(n), rng.integers(0, 4, n)
        problem = simple([x.tolist(), (n - 1 - x).tolist()], y, costs=zero_one_costs(4))
        assert problem.grow(Shape(criterion=criterion, max_depth=1)).tree.feature[0] == 0


def test_a_gain_of_nothing_is_no_split() -> None:
    """Exclusive or: no single test helps."""
    problem = simple([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0])
    grown = problem.grow()
    assert grown.tree.left.tolist() == [0]
    assert grown.tree.missing_left.tolist() == [True]
    assert np.isnan(grown.tree.threshold).all()
    assert grown.tree.value[grown.leaves].tolist() == [0] * 4


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], 0),
        ([[0, 1, 1], [1, 0, 1], [9, 9, 0]], 2),
        ([[0, 1, 9], [9, 0, 9], [9, 1, 0]], 1),
        ([[0, 2, 2], [2, 0, 2], [2, 2, 0]], 0),
    ],
)
def test_labels_of_least_cost(costs, expected) -> None:
    problem = simple([[0] * 6], [0, 0, 0, 1, 1, 2], costs=costs)
    assert problem.grow().tree.value.tolist() == [expected]


def test_labels_of_equal_cost_are_the_lowest() -> None:
    """Rounding in double precision must not choose among equal sums."""
    counts = np.random.default_rng(0).integers(1, 6, (500, 5)).astype(float)
    counts[:, [1, 4]] = 6.0
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(cheapest_labels(shares, zero_one_costs(5)), 1)


def test_rows_of_the_costs_steer_the_splits() -> None:
    """Feature 0 sets class 0 apart, feature 1 class 2: the expensive class is split off first."""
    columns, y = [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]], [0, 0, 1, 1, 2, 2]
    for expensive, feature in [(0, 0), (2, 1)]:
        costs = zero_one_costs(3)
        costs[expensive] *= 5.0
        tree = simple(columns, y, costs=costs).grow(Shape(max_depth=1)).tree
        assert tree.feature[0] == feature


# Missing values


@pytest.mark.parametrize("repeats", [1, 100])
@pytest.mark.parametrize("stretch", [None, 101])
@pytest.mark.parametrize(
    ("column", "y", "threshold", "missing_left"),
    [
        ([0, 1, 2, 3, None], [0, 0, 1, 1, 1], 1.5, False),
        ([0, 1, 2, 3, None], [0, 0, 1, 1, 0], 1.5, True),
        ([0, 1, 2, 3, None], [0, 0, 0, 0, 1], np.inf, False),
        ([0, 0, None, None], [0, 0, 1, 1], np.inf, False),
    ],
)
def test_missing_values_take_the_better_side(
    column, y, threshold, missing_left, stretch, repeats
) -> None:
    problem = simple([column * repeats], y * repeats)
    if stretch:
        problem = problem.stretched(stretch)
        threshold = 3 * stretch + 0.5 if threshold == np.inf else 1 * stretch + 0.5
        threshold = 0.5 if column[1] == 0 else threshold
    grown = problem.grow()
    assert grown.tree.threshold[0] == threshold
    assert grown.tree.missing_left[0] == missing_left
    assert n_leaves(grown.tree) == 2
    np.testing.assert_array_equal(grown.tree.value[grown.leaves], problem.y[grown.samples])


@pytest.mark.parametrize(
    ("y", "goes_left"), [([0, 0, 0, 1], True), ([0, 1, 1, 1], False), ([0, 0, 1, 1], True)]
)
def test_values_missing_at_prediction_only_go_to_the_larger_child(y, goes_left) -> None:
    problem = simple([[0, 1, 2, 3]], y)
    tree = problem.grow().tree
    assert tree.missing_left[0] == goes_left
    forest = Forest.from_trees([tree], np.ones(1), np.eye(2), 1)
    expected = np.eye(2)[0 if goes_left else 1]
    np.testing.assert_array_equal(forest.accumulate(np.array([[np.nan]]))[0], expected)


def test_a_node_of_missing_values_only() -> None:
    problem = simple([[None] * 4, [0, 1, 2, 3]], [0, 0, 1, 1], n_bins=[5, 4])
    tree = problem.grow().tree
    assert (tree.feature[0], tree.threshold[0]) == (1, 1.5)
    alone = simple([[None] * 4], [0, 0, 1, 1], n_bins=[5])
    assert n_leaves(alone.grow().tree) == 1


# Limits


@pytest.mark.parametrize("n_codes", [4, 400])
@pytest.mark.parametrize("n_samples", [30, 900])
@pytest.mark.parametrize(
    ("rare", "missing_too"), [(0, False), (3, False), (None, False), (0, True), (3, True)]
)
def test_a_rare_class_alone_is_too_few(rare, missing_too, n_samples, n_codes) -> None:
    """Three samples of class 1 at one end or missing, or five with two missing ones."""
    few = [rare] * 3 + [None] * (2 * missing_too)
    column = few + [1, 1, 2, 2] * (n_samples // 4)
    y = [1] * len(few) + [0] * (len(column) - len(few))
    problem = simple([column], y, n_bins=[n_codes], missing=True)
    for min_leaf in range(1, 8):
        shape = Shape(min_samples_leaf=min_leaf)
        grown = problem.grow(shape)
        check_against_brute_force(problem, shape, grown)
        pure = min_leaf <= len(few)
        assert (n_leaves(grown.tree) == 2 and grown.tree.count[1:].min() == len(few)) == pure


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_codes", [5, 200, 400])
def test_fewest_samples_and_most_levels(n_codes, missing) -> None:
    problem = make_problem(11, 400, n_codes, missing=missing, weights="extreme")
    for shape in (
        Shape(min_samples_leaf=7),
        Shape(min_samples_leaf=30, min_samples_split=90),
        Shape(min_samples_split=50),
        Shape(max_depth=3),
        Shape(min_samples_leaf=201),
    ):
        tree = problem.grow(shape).tree
        leaf = np.isnan(tree.threshold)
        assert tree.count[leaf].min() >= shape.min_samples_leaf
        assert tree.count[~leaf].min(initial=400) >= shape.min_samples_split
        forest = Forest.from_trees([tree], np.ones(1), np.eye(3), 3)
        assert shape.max_depth is None or forest.depths[0] == shape.max_depth
        assert (len(leaf) == 1) == (shape.min_samples_leaf == 201)
        # What prediction does with the training set is what the grower counted.
        counts = np.bincount(forest.apply(problem.X)[:, 0], minlength=len(leaf))
        np.testing.assert_array_equal(counts[leaf], tree.count[leaf])


def leaf_sets(problem: Problem, tree: Tree) -> set[tuple[int, ...]]:
    """The partition of the samples that a tree makes."""
    forest = Forest.from_trees([tree], np.ones(1), np.eye(len(problem.costs)), len(problem.codes))
    leaves = forest.apply(problem.X)[:, 0]
    return {tuple(np.flatnonzero(leaves == leaf)) for leaf in np.unique(leaves)}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_codes", [5, 300])
def test_leaves_are_grown_most_profitable_first(seed, n_codes) -> None:
    problem = make_problem(seed, 400, n_codes, missing=seed % 2 == 0, n_classes=4)
    full = problem.grow(Shape(max_depth=6)).tree
    most = n_leaves(full)
    profit = full.gain.astype(float) * full.weight
    depth6 = problem.grow(Shape(max_depth=6, max_leaf_nodes=10**6)).tree
    assert leaf_sets(problem, depth6) == leaf_sets(problem, full)
    assert n_leaves(depth6) == most
    # Replay on the unlimited tree: open the most profitable node that has been reached.
    reached, opened = {0}, []
    while inner := [node for node in reached if full.left[node] != node]:
        node = max(inner, key=lambda node: profit[node])
        opened.append(node)
        reached = (reached - {node}) | {full.left[node], full.left[node] + 1}
    for limit in (2, 3, 5, 9, most - 1, most, most + 1):
        tree = problem.grow(Shape(max_depth=6, max_leaf_nodes=limit)).tree
        assert n_leaves(tree) == min(limit, most)
        expected = np.sort(full.gain[opened[: limit - 1]])
        np.testing.assert_allclose(np.sort(tree.gain[tree.gain > 0]), expected, rtol=1e-6)


def ordered_features(n_features: int) -> Problem:
    """Binary features of which each is a better copy of the label than the next."""
    n = 4 * n_features
    y = np.arange(n) % 2
    codes = np.tile(y, (n_features, 1))
    for feature in range(n_features):
        codes[feature, 2 : 2 + feature] ^= 1
    n_bins = np.full(n_features, 2)
    return Problem(
        codes, n_bins, np.zeros(n_features, bool), y, np.full(n, 1 / n), zero_one_costs(2)
    )


@pytest.mark.parametrize("best_last", [False, True])
@pytest.mark.parametrize(("n_features", "n_drawn"), [(8, 1), (8, 3), (8, 7), (5, 2)])
def test_drawn_features_are_a_uniform_sample(n_features, n_drawn, best_last) -> None:
    """The best of the drawn features is taken: the lowest of a draw without replacement."""
    problem = ordered_features(n_features)
    if best_last:
        problem = replace(problem, codes=problem.codes[::-1])
    grower = TreeGrower(problem.data, Growth(max_depth=1, n_drawn=n_drawn))
    sums, gain = label_sums(problem.y, problem.weights, 2), Gain.gini(np.ones(2))
    n_trees = 800
    best = [grower.grow(sums, gain, seed=seed).tree.feature[0] for seed in range(n_trees)]
    found = np.bincount(best, minlength=n_features)[:: -1 if best_last else 1]
    chances = np.array([comb(n_features - 1 - f, n_drawn - 1) for f in range(n_features)])
    expected = n_trees * chances / comb(n_features, n_drawn)
    assert not found[chances == 0].any()
    possible = chances > 0
    chi2 = ((found - expected)[possible] ** 2 / expected[possible]).sum()
    assert chi2 < 30  # up to 7 degrees of freedom: p = 1e-4


@pytest.mark.parametrize("max_leaf_nodes", [None, 20])
def test_drawing_follows_the_seed(max_leaf_nodes) -> None:
    problem = make_problem(3, 200, 50, n_features=9)
    shape = Shape(n_drawn=3, max_leaf_nodes=max_leaf_nodes)
    one, again, other = (problem.grow(shape, seed=seed).tree for seed in (1, 1, 2))
    assert_same_trees(one, again)
    assert one.feature.tolist() != other.feature.tolist()
    assert len(set(one.feature[~np.isnan(one.threshold)])) > 3  # drawn anew at each node
    for n_jobs in (2, 3):
        assert_same_trees(one, problem.grow(shape, n_jobs, seed=1).tree)


@pytest.mark.parametrize("max_leaf_nodes", [None, 40])
def test_nodes_of_a_level_may_share_a_draw(max_leaf_nodes) -> None:
    problem = make_problem(3, 400, 60, n_features=30)
    shape = Shape(max_depth=6, n_drawn=2, draw_per="level", max_leaf_nodes=max_leaf_nodes)
    tree = problem.grow(shape, seed=1).tree
    inner = np.flatnonzero(~np.isnan(tree.threshold))
    depth = np.zeros(len(tree.left), int)
    for node in inner:
        depth[tree.left[node] : tree.left[node] + 2] = depth[node] + 1
    used = [set(tree.feature[inner[depth[inner] == level]]) for level in range(6)]
    assert max(map(len, used)) == 2
    assert len(set.union(*used)) > 4  # drawn anew at each level
    for n_jobs in (2, 3):
        assert_same_trees(tree, problem.grow(shape, n_jobs, seed=1).tree)


@pytest.mark.parametrize("n_drawn", [3, 4, 100])
def test_drawing_all_features_is_no_drawing(n_drawn) -> None:
    problem = make_problem(4, 100, 20)
    drawn = problem.grow(Shape(n_drawn=n_drawn), seed=5).tree
    assert_same_trees(drawn, problem.grow().tree)


# Which samples


def test_children_stand_in_pairs_breadth_first() -> None:
    tree = make_problem(8, 300, 100).grow().tree
    inner = np.flatnonzero(~np.isnan(tree.threshold))
    np.testing.assert_array_equal(tree.left[inner], 1 + 2 * np.arange(len(inner)))
    np.testing.assert_array_equal(
        tree.count[inner], tree.count[tree.left[inner]] + tree.count[tree.left[inner] + 1]
    )


@settings(max_examples=40)
@given(st.one_of(few_samples, most_samples), shapes, st.integers(0, 1000))
def test_a_subset_of_the_samples(problem, shape, seed) -> None:
    """By `rows`, by weights of zero, or by weights too small for single precision."""
    n = len(problem.y)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False))
    part = replace(
        problem, codes=problem.codes[:, rows], y=problem.y[rows], weights=problem.weights[rows]
    )
    expected = part.grow(shape)
    left_out = np.setdiff1d(np.arange(n), rows)
    for nothing in (0.0, 1e-50):
        weights = problem.weights.copy()
        weights[left_out] = nothing
        for found in (
            problem.grow(shape, rows=rows),
            replace(problem, weights=weights).grow(shape),
            replace(problem, weights=weights).grow(shape, rows=np.arange(n)),
        ):
            assert_same_trees(found.tree, expected.tree)
            np.testing.assert_array_equal(found.samples, rows[expected.samples])
            np.testing.assert_array_equal(
                found.tree.value[found.leaves], expected.tree.value[expected.leaves]
            )


def test_growing_again_starts_afresh() -> None:
    """A grower is shared by all rounds of boosting, and by threads."""
    problem, other = make_problem(9, 600, 10), make_problem(10, 600, 10)
    grower, gain = TreeGrower(problem.data, Growth()), Gain.gini(np.ones(3))
    sums = label_sums(problem.y, problem.weights, 3)
    first = grower.grow(sums, gain)
    grower.grow(label_sums(other.y, other.weights, 3), gain, rows=np.arange(50))
    threads = Threads(4)
    tasks = [(sums,), (label_sums(other.y, other.weights, 3),)] * 30
    grown = threads.run(lambda sums: grower.grow(sums, gain), tasks)
    for again in grown[::2]:
        assert_same_trees(first.tree, again.tree)
        np.testing.assert_array_equal(first.leaves, again.leaves)


def test_scaled_costs_and_weights_change_nothing() -> None:
    problem = make_problem(12, 200, 30)
    scaled = replace(problem, costs=1024.0 * problem.costs, weights=problem.weights / 4.0)
    one, two = problem.grow().tree, scaled.grow().tree
    np.testing.assert_array_equal(one.feature, two.feature)
    np.testing.assert_array_equal(one.threshold, two.threshold)
    np.testing.assert_array_equal(one.value, two.value)
    np.testing.assert_allclose(one.gain, two.gain, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 255, 256, 300])
def test_many_classes(n_classes) -> None:
    y = np.tile(np.arange(n_classes), 2)
    problem = simple([y.tolist()], y)
    grown = problem.grow()
    assert n_leaves(grown.tree) == n_classes
    np.testing.assert_array_equal(grown.tree.value[grown.leaves], y[grown.samples])


@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
def test_rows_in_any_order_are_left_alone(dtype) -> None:
    problem = make_problem(seed=3, n_samples=400, n_codes=20)
    order = np.random.default_rng(0).permutation(400).astype(dtype)
    given = order.copy()
    grown, expected = problem.grow(rows=order), problem.grow()
    np.testing.assert_array_equal(order, given)
    for column in fields(Tree):
        np.testing.assert_array_equal(
            getattr(grown.tree, column.name), getattr(expected.tree, column.name)
        )
    values = np.empty(400, int)
    values[grown.samples] = grown.tree.value[grown.leaves]
    again = np.empty(400, int)
    again[expected.samples] = expected.tree.value[expected.leaves]
    np.testing.assert_array_equal(values, again)


def test_no_search_beyond_the_last_leaf(monkeypatch) -> None:
    """With two leaves allowed, the children of the root are not looked at."""
    monkeypatch.setattr(grower_module, "THREADS_FROM", 2)
    monkeypatch.setattr(threaded_growth, "_GRAIN", 1)
    monkeypatch.setattr(threaded_growth, "_MIN_BLOCK", 50)
    searched: list[int] = []
    search = threaded_growth.search_in_threads

    def watch(data, samples, gain, limits, tree, *arguments) -> int:
        searched.extend(tree.jobs[: tree.state[N_JOBS]].tolist())
        return search(data, samples, gain, limits, tree, *arguments)

    monkeypatch.setattr(grower_module, "search_in_threads", watch)
    make_problem(seed=3, n_samples=400, n_codes=20).grow(Shape(max_leaf_nodes=2), n_jobs=2)
    assert searched == [0]
