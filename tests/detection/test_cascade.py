"""Sliding windows against a plain loop over windows and trees, and what no kernel may be given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.detection.cascade import Cascade, CompleteTrees, Scanner
from badacost.tree.forest import Forest, Tree

# Few values, which meet thresholds; 0.1 is not the same in single and double precision.
VALUES = np.array([-1.0, 0.0, 0.1, 0.5, 1.0])
CELL = 2


def random_tree(rng: np.random.Generator, n_features: int, n_rows: int, most_levels: int) -> Tree:
    """A tree whose leaves were split at random, some of them down to the last level."""
    left, level = [0], [0]
    for _ in range(rng.integers(0, 12)):
        leaves = [i for i, child in enumerate(left) if child == i and level[i] < most_levels]
        if not leaves:
            break
        node = rng.choice(leaves)
        left[node] = len(left)
        level += [level[node] + 1] * 2
        left += [len(left), len(left) + 1]
    n_nodes = len(left)
    leaf = np.array(left) == np.arange(n_nodes)
    nothing = np.zeros(n_nodes, np.float32)
    return Tree(
        feature=np.where(leaf, 0, rng.integers(0, n_features, n_nodes)).astype(np.int32),
        threshold=np.where(leaf, np.nan, rng.choice(VALUES, n_nodes)),
        left=np.array(left, np.int32),
        missing_left=np.ones(n_nodes, bool),
        value=rng.integers(0, n_rows, n_nodes).astype(np.int32),
        gain=nothing,
        count=nothing.astype(np.int32),
        weight=nothing,
    )


def random_cascade(
    seed: int,
    *,
    n_views: int = 3,
    n_trees: int = 5,
    n_planes: int = 2,
    window: tuple[int, int] = (4, 6),
    padded: tuple[int, int] = (5, 7),
    most_levels: int = 5,
) -> Cascade:
    """Label trees for several views, trees with a number in each leaf for one."""
    rng = np.random.default_rng(seed)
    n_rows = n_views + 1 if n_views > 1 else 20
    n_features = n_planes * (padded[0] // CELL) * (padded[1] // CELL)
    trees = [random_tree(rng, n_features, n_rows, most_levels) for _ in range(n_trees)]
    table = rng.normal(size=(n_rows, n_views))
    forest = Forest.from_trees(trees, rng.uniform(0.1, 2.0, n_trees), table, n_features)
    return Cascade(forest, window, padded, CELL, rejections=np.array(-np.inf), min_score=-np.inf)


def random_map(seed: int, cascade: Cascade, height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice(VALUES, (cascade.n_planes, height, width)).astype(np.float32)


def scanner_of(cascade: Cascade, features: np.ndarray, margin: tuple[int, int] = (0, 0)) -> Scanner:
    """A scanner whose buffer is larger than the map, with NaN beyond the map."""
    n_planes, height, width = features.shape
    buffer = np.full((n_planes, height + margin[0], width + margin[1]), np.nan, np.float32)
    buffer[:, :height, :width] = features
    return Scanner(cascade, buffer)


def slow_leaf(tree: Tree, x: np.ndarray) -> int:
    node = 0
    while not np.isnan(tree.threshold[node]):
        right = float(x[tree.feature[node]]) >= tree.threshold[node]
        node = int(tree.left[node]) + int(right)
    return node


@dataclass
class SlowWindow:
    """One window: its place, leaves, scores after each tree, and the view that wins at the end."""

    row: int
    column: int
    leaves: list[int]
    trace: np.ndarray
    label: int

    def n_run(self, rejections: np.ndarray) -> int:
        rejected = np.flatnonzero(self.trace <= rejections)
        return int(rejected[0]) + 1 if len(rejected) else len(rejections)

    def survives(self, cascade: Cascade) -> bool:
        return bool((self.trace > cascade.rejections).all()) and self.trace[-1] >= cascade.min_score


def slow_windows(cascade: Cascade, features: np.ndarray, stride: int) -> list[SlowWindow]:
    forest = cascade.forest
    n_rows, n_columns = cascade.cells
    step = stride // cascade.cell
    height, width = features.shape[1] * cascade.cell, features.shape[2] * cascade.cell
    windows = []
    for row, y in enumerate(range(0, height - cascade.padded_window[0] + 1, stride)):
        for column, x in enumerate(range(0, width - cascade.padded_window[1] + 1, stride)):
            assert (y // cascade.cell, x // cascade.cell) == (row * step, column * step)
            top, left = row * step, column * step
            sample = features[:, top : top + n_rows, left : left + n_columns].reshape(-1)
            leaves = [slow_leaf(tree, sample) for tree in forest.trees()]
            leaves = (forest.offsets[:-1] + leaves).tolist()
            rows = forest.value[leaves]
            margins = np.cumsum(forest.tree_weights[:, None] * forest.table[rows], axis=0)
            label = int(margins[-1].argmax())
            windows.append(SlowWindow(row, column, leaves, margins.max(axis=1), label))
    return windows


def away_from_ties(threshold: float, traces: np.ndarray) -> float:
    """The threshold, moved off the scores that sums in another order might put beyond it."""
    while np.isclose(threshold, traces, rtol=0.0, atol=1e-9).any():
        threshold += 1e-6
    return threshold


cascades = st.builds(
    random_cascade,
    st.integers(0, 10_000),
    n_views=st.integers(1, 4),
    n_trees=st.sampled_from([1, 3, 8, 9, 40]),  # on and off the limits of stages
    n_planes=st.integers(1, 3),
    window=st.just((4, 6)),
    padded=st.tuples(st.integers(4, 7), st.integers(6, 9)),
    most_levels=st.integers(0, 5),
)


@settings(max_examples=60)
@given(
    cascades,
    st.integers(0, 10_000),
    st.tuples(st.integers(1, 9), st.integers(1, 12)),
    st.integers(1, 3),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from(["none", "one", "each"]),
)
def test_scan_against_a_plain_loop(cascade, seed, size, steps, margin, thresholds) -> None:
    features = random_map(seed, cascade, *size)
    stride = steps * CELL
    expected = slow_windows(cascade, features, stride)
    traces = np.array([window.trace for window in expected]).reshape(-1, cascade.forest.n_trees)
    if thresholds != "none" and len(traces):
        levels = np.quantile(traces, 0.2, axis=None if thresholds == "one" else 0)
        levels = np.broadcast_to(levels, traces.shape[1])
        chosen = [away_from_ties(*pair) for pair in zip(levels, traces.T, strict=True)]
        cascade = replace(
            cascade,
            rejections=np.array(chosen),
            min_score=away_from_ties(np.median(traces[:, -1]), traces),
        )
    scanner = scanner_of(cascade, features, margin)
    found = scanner.scan(*size, stride)
    kept = [window for window in expected if window.survives(cascade)]
    assert found.rows.tolist() == [window.row for window in kept]
    assert found.columns.tolist() == [window.column for window in kept]
    assert found.labels.tolist() == [window.label for window in kept]
    np.testing.assert_allclose(found.scores, [w.trace[-1] for w in kept], rtol=0, atol=1e-9)
    assert found.n_scanned == len(expected) == np.prod(scanner.grid(*size, stride))
    n_run = [window.n_run(cascade.rejections) for window in expected]
    assert found.n_evaluated == sum(n_run)
    levels = np.maximum(cascade.forest.depths, 1)
    assert found.n_tests == sum(int(levels[:n].sum()) for n in n_run)
    leaves = scanner.leaves(found.rows, found.columns, stride)
    assert (leaves.dtype, leaves.shape) == (np.int32, (len(kept), len(levels)))
    assert leaves.tolist() == [window.leaves for window in kept]
    if len(kept):
        np.testing.assert_allclose(
            scanner.trace(found.rows, found.columns, stride),
            [window.trace for window in kept],
            rtol=0,
            atol=1e-9,
        )


@pytest.mark.parametrize("wobble", [0.0, 1e-16])
def test_votes_that_are_the_same_for_all_views(wobble) -> None:
    """The row of the background has one number, but for the last digits of published tables."""
    cascade = random_cascade(11, n_views=4, n_trees=60)
    table = cascade.forest.table.copy()
    table[0] = -0.7 * (1.0 + wobble * np.arange(4))
    cascade = replace(cascade, forest=replace(cascade.forest, table=table))
    assert cascade.leaves[3].tolist() == [True] + [False] * 4
    features = random_map(12, cascade, 9, 14)
    expected = slow_windows(cascade, features, CELL)
    traces = np.array([window.trace for window in expected])
    threshold = away_from_ties(float(np.quantile(traces[:, 10:], 0.3)), traces)
    cascade = cascade.with_rejections(threshold)
    found = scanner_of(cascade, features).scan(9, 14, CELL)
    kept = [window for window in expected if window.survives(cascade)]
    assert 0 < len(kept) < len(expected)
    assert found.rows.tolist() == [window.row for window in kept]
    assert found.labels.tolist() == [window.label for window in kept]
    np.testing.assert_allclose(found.scores, [w.trace[-1] for w in kept], rtol=0, atol=1e-9)


def test_trees_that_cannot_reject() -> None:
    cascade = random_cascade(3, n_views=1, n_trees=12)
    features = random_map(4, cascade, 20, 20)
    traces = np.array([window.trace for window in slow_windows(cascade, features, CELL)])
    for threshold in (-0.5, -2.0, -5.0, -50.0):
        safe = cascade.with_rejections(threshold).n_safe
        assert (traces[:, :safe] > threshold).all()
    assert cascade.with_rejections(-50.0).n_safe == 12
    assert cascade.with_rejections(50.0).n_safe == 0


@pytest.mark.parametrize("n_views", [1, 4])
def test_threads_do_not_change_a_bit(n_views) -> None:
    """On a map of many more windows than a block, with blocks that lose most of their windows."""
    cascade = random_cascade(3, n_views=n_views, n_trees=200)
    features = random_map(4, cascade, 90, 110)
    free = scanner_of(cascade, features).scan(90, 110, CELL)
    cascade = cascade.with_rejections(np.quantile(free.scores, 0.9) * np.linspace(0, 1, 200) - 2.0)
    results = []
    for n_jobs in (1, 2, 3):
        threads = Threads(n_jobs)
        results.append(scanner_of(cascade, features, (2, 5)).scan(90, 110, CELL, threads))
    first = results[0]
    assert 0 < len(first.scores) < first.n_scanned
    assert first.n_evaluated < first.n_scanned * 200
    for other in results[1:]:
        for name in ("rows", "columns", "scores", "labels", "n_scanned", "n_evaluated"):
            np.testing.assert_array_equal(getattr(first, name), getattr(other, name), err_msg=name)


@settings(max_examples=30)
@given(cascades, st.integers(0, 10_000), st.integers(0, 10_000))
def test_calibration_keeps_its_windows_and_evaluates_no_more(cascade, seed, choice) -> None:
    features = random_map(seed, cascade, 10, 12)
    scanner = scanner_of(cascade, features)
    before = scanner.scan(10, 12, CELL)
    chosen = np.random.default_rng(choice).random(len(before.rows)) < 0.3
    chosen[choice % len(chosen)] = True
    traces = scanner.trace(before.rows[chosen], before.columns[chosen], CELL)
    calibrated = cascade.calibrated(traces)
    after = scanner_of(calibrated, features).scan(10, 12, CELL)
    kept = set(zip(after.rows.tolist(), after.columns.tolist(), strict=True))
    wanted = zip(before.rows[chosen].tolist(), before.columns[chosen].tolist(), strict=True)
    assert set(wanted) <= kept
    assert after.n_evaluated <= before.n_evaluated
    # Higher thresholds, after any tree, would lose one of them.
    all_traces = scanner.trace(before.rows, before.columns, CELL)
    stays = (all_traces > traces.min(axis=0) - 1e-9).all(axis=1)
    assert kept == {
        (row, column)
        for row, column, stay in zip(before.rows, before.columns, stays, strict=True)
        if stay
    }


def test_calibration_needs_windows() -> None:
    with pytest.raises(ValueError, match="give images with objects"):
        random_cascade(0).calibrated(np.empty((0, 5)))


def test_a_window_that_meets_the_threshold_leaves() -> None:
    cascade = random_cascade(5, n_views=1, n_trees=1, most_levels=0)
    score = cascade.forest.tree_weights[0] * cascade.forest.table[cascade.forest.value[0], 0]
    features = random_map(0, cascade, 4, 4)
    assert len(scanner_of(cascade.with_rejections(score), features).scan(4, 4, CELL).rows) == 0
    below = np.nextafter(score, -np.inf)
    assert len(scanner_of(cascade.with_rejections(below), features).scan(4, 4, CELL).rows) == 2


@settings(max_examples=40)
@given(cascades)
def test_complete_trees_have_the_leaves_of_the_forest(cascade) -> None:
    forest, complete = cascade.forest, cascade.complete_trees
    samples = np.random.default_rng(0).choice(VALUES, (20, forest.n_features)).astype(np.float32)
    for number, tree in enumerate(forest.trees()):
        depth = complete.depth[number]
        for sample in samples:
            node = 0
            for _ in range(depth):
                place = complete.first_node[number] + node
                right = sample[complete.feature[place]] >= complete.threshold[place]
                node = 2 * node + 1 + int(right)
            leaf = complete.first_leaf[number] + node - (2**depth - 1)
            expected = slow_leaf(tree, sample)
            assert complete.leaf[leaf] == forest.offsets[number] + expected
            assert complete.value[leaf] == tree.value[expected]


@settings(max_examples=100)
@given(
    st.floats(allow_nan=False, width=64),
    st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=20),
)
def test_thresholds_separate_single_precision_as_before(threshold, values) -> None:
    tree = random_tree(np.random.default_rng(1), 1, 2, 1)
    tree = replace(tree, threshold=np.array([threshold, np.nan, np.nan]))
    forest = Forest.from_trees([tree], np.ones(1), np.eye(2), 1)
    rounded = CompleteTrees.of(forest).threshold[0]
    single = np.array(values, np.float32)
    np.testing.assert_array_equal(single >= rounded, single.astype(np.float64) >= threshold)


# What is refused.


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": (4, 8)}, "must hold the window"),
        ({"window": (0, 6)}, "window must be an integer at least 1"),
        ({"window": (4, 6, 4)}, "two lengths"),
        ({"padded_window": (7, 7)}, "cannot have 12 features"),
        ({"padded_window": (5, 10**6)}, "padded_window must be an integer"),
        ({"padded_window": (5.0, 7.0)}, "padded_window must be an integer"),
        ({"cell": 0}, "cell must be an integer"),
        ({"cell": 6}, "cell must be an integer"),
        ({"rejections": np.zeros(4)}, "one threshold for each"),
        ({"rejections": np.full(5, np.nan)}, "one threshold for each"),
        ({"min_score": np.nan}, "minimum score"),
        ({"min_score": [0.0]}, "minimum score"),
        ({"min_score": "0"}, "minimum score"),
    ],
)
def test_cascades_that_make_no_sense(changed, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        replace(random_cascade(0), **changed)


def test_forests_that_make_no_cascade() -> None:
    cascade = random_cascade(0)
    forest = cascade.forest
    with pytest.raises(ValueError, match="at least one tree and one view"):
        replace(cascade, forest=replace(forest, table=np.zeros((4, 0))))
    with pytest.raises(ValueError, match="trees of labels"):
        replace(cascade, forest=replace(forest, table=np.zeros((5000, 3))))
    with pytest.raises(ValueError, match="might not be finite"):
        replace(cascade, forest=replace(forest, table=np.full((4, 3), 1e308)))


def chain(n_levels: int, n_features: int = 12) -> Tree:
    """A tree that is as deep as it has tests."""
    n_nodes = 2 * n_levels + 1
    number = np.arange(n_nodes)
    leaf = (number % 2 == 0) & (number > 0) | (number == n_nodes - 2)
    leaf[0] = n_levels == 0
    nothing = np.zeros(n_nodes, np.float32)
    return Tree(
        feature=np.zeros(n_nodes, np.int32),
        threshold=np.where(leaf, np.nan, 0.5),
        left=np.where(leaf, number, number + 1 + (number > 0)).astype(np.int32),
        missing_left=np.ones(n_nodes, bool),
        value=np.zeros(n_nodes, np.int32),
        gain=nothing,
        count=nothing.astype(np.int32),
        weight=nothing,
    )


def test_trees_that_would_take_too_much_memory() -> None:
    def cascade_of(n_levels: int, n_trees: int) -> Cascade:
        trees = [chain(n_levels)] * n_trees
        forest = Forest.from_trees(trees, np.ones(n_trees), np.ones((1, 1)), 12)
        return replace(random_cascade(0), forest=forest, rejections=np.array(0.0))

    assert cascade_of(12, 2).complete_trees.depth.tolist() == [12, 12]
    with pytest.raises(ValueError, match="at most 12 levels"):
        cascade_of(13, 1)
    with pytest.raises(ValueError, match="nodes in all"):
        cascade_of(12, 2**14)


def test_maps_and_strides_that_do_not_fit() -> None:
    cascade = random_cascade(0)
    scanner = Scanner(cascade, random_map(0, cascade, 6, 8))
    for height, width in ((7, 8), (6, 9)):
        with pytest.raises(ValueError, match="larger than the buffer"):
            scanner.scan(height, width, CELL)
    for stride in (0, -CELL, CELL + 1):
        with pytest.raises(ValueError, match="multiple of 2 pixels"):
            scanner.scan(6, 8, stride)
    with pytest.raises(ValueError, match="2 planes"):
        Scanner(cascade, np.zeros((3, 6, 8), np.float32))
    with pytest.raises(ValueError, match="2 planes"):
        Scanner(cascade, np.zeros((2, 6), np.float32))


@pytest.mark.parametrize(
    ("row", "column"), [(-1, 0), (0, -1), (4, 0), (0, 5), (2**40, 0), (0, 2**62)]
)
def test_traces_stay_inside_the_buffer(row, column) -> None:
    cascade = random_cascade(0)
    scanner = Scanner(cascade, random_map(0, cascade, 6, 8))
    with pytest.raises(ValueError, match="outside"):
        scanner.trace(np.array([0, row]), np.array([0, column]), CELL)
    inside = scanner.trace(np.array([3]), np.array([4]), CELL)
    assert inside.shape == (1, 5)


@pytest.mark.parametrize(
    "buffer", [np.zeros((2, 6, 8)), np.zeros((2, 6, 16), np.float32)[:, :, ::2]]
)
def test_buffers_that_a_kernel_would_not_see_change(buffer) -> None:
    """A flat view of a strided buffer is a copy, which does not change with the buffer."""
    with pytest.raises(ValueError, match="buffer"):
        Scanner(random_cascade(0), buffer)
