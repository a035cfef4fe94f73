"""Results of trees on a device equal those of trees on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.backends import cuda_tree_shard as tree_shard
from badacost.backends.cuda_tree_shard import (
    CudaTreeShard,
    DeviceSums,
    label_quantum,
)
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import Gain, Growth, Summands
from badacost.tree.shards import (
    LevelRequest,
    LocalTreeShard,
    PlannedTree,
    ShardedGrower,
    Splits,
)
from tests.backends.on_cpu import OnCpu, needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch) -> None:
    """Several blocks for each node."""
    monkeypatch.setattr(tree_shard, "_DIVIDED", 300)
    monkeypatch.setattr(tree_shard, "_MIN_SUMMED", 200)
    monkeypatch.setattr(tree_shard, "_MAX_SUMMED", 700)
    monkeypatch.setattr(tree_shard, "_UPLOADED", 16_000)


def binned(n: int = 1500, n_features: int = 11, max_bins: int = 256) -> BinnedData:
    """Values with ties, a category, missing values, and a feature with one value only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.2, 2] = np.nan
    X[:, 3] = rng.integers(40, size=n)
    X[rng.random(n) < 0.1, 3] = np.nan
    X[:, 4] = 1.0
    mapper = BinMapper.fit(X, max_bins=max_bins, categories={3: np.arange(40.0)})
    return BinnedData(mapper, mapper.transform(X))


def labels_of(data: BinnedData, n_labels: int, spread: float) -> Summands:
    """Weights over many orders of magnitude, some of them zero."""
    rng = np.random.default_rng(1)
    n = data.bins.shape[1]
    labels = (data.bins[0].astype(int) // 32 + data.bins[3] + rng.integers(2, size=n)) % n_labels
    weights = np.exp(spread * rng.normal(size=n)) / n
    weights[::17] = 0.0
    return Summands.of_labels(labels, weights, n_labels, float(weights.sum()))


def rows_of(data: BinnedData, n_columns: int) -> Summands:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(data.bins.shape[1], n_columns)) * 10.0 ** np.arange(n_columns)
    values[:, 0] += data.bins[2] * 0.02 + data.bins[3] % 3
    values[:, -1] = np.abs(values[:, -1])
    return Summands.of_rows(values)


def on_device(sums: Summands) -> DeviceSums:
    """Summands in quanta."""
    if sums.has_labels:
        weights = sums.values[:, 0].astype(np.float64)
        quantum = label_quantum(weights.sum(), sums.n_columns)
        return DeviceSums(quantum, None, sums.labels, sums.values[:, 0].copy())
    largest = np.abs(sums.values).max(axis=0, initial=0.0).astype(np.float64)
    # A column rounded to 24 bits may have reached the next power of two.
    quantum = np.ldexp(1.0, np.frexp(largest)[1] - 25)
    quanta = (sums.values.astype(np.float64) / quantum).astype(np.int32)
    return DeviceSums(quantum, quanta.T.copy())


def compare_growth(data, growth, sums, gain, rows=None, seed=5) -> None:
    """Grow a tree on both shards at once; compare each result, and the leaves.

    That these trees are those of `TreeGrower` is for tests/tree/test_shards.py.
    """
    here, there = LocalTreeShard(data), CudaTreeShard(data, OnCpu())
    root, other = here.begin(3, sums, rows), there.begin(3, on_device(sums), rows)
    assert root.n_samples == other.n_samples
    np.testing.assert_array_equal(root.totals, other.totals)

    def level(requests):
        expected, found = here.level(requests), there.level(requests)
        for name, value in expected[3]._asdict().items():
            other = getattr(found[3], name)
            assert (other.dtype, other.shape) == (value.dtype, value.shape), name
            np.testing.assert_array_equal(other, value, err_msg=name)
        return found

    plan = PlannedTree(root, gain, seed)
    tree, _ = ShardedGrower(data.mapper, growth).grow({3: plan}, level)[3]
    assert len(tree.left) > 4
    np.testing.assert_array_equal(there.leaves(tree), here.leaves(tree))
    there.end()


@pytest.mark.parametrize("spread", [0.5, 20.0])
@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
def test_labels(order, spread) -> None:
    data = binned()
    growth = Growth(max_depth=5, max_leaf_nodes=12 if order == "best" else None, order=order)
    factors = np.array([1.0, 4.0, 2.0])
    compare_growth(data, growth, labels_of(data, 3, spread), Gain.gini(factors))


@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
def test_rows(order) -> None:
    data = binned()
    growth = Growth(max_depth=4, max_leaf_nodes=9 if order == "best" else None, order=order)
    compare_growth(data, growth, rows_of(data, 2), Gain.of_gradients(2, 1.0, 0.01))


def test_some_rows_drawn_features_and_counts() -> None:
    data = binned()
    rows = np.flatnonzero(np.random.default_rng(3).random(data.bins.shape[1]) < 0.7)
    growth = Growth(max_depth=4, n_drawn=5, min_samples_leaf=9)
    compare_growth(data, growth, rows_of(data, 2), Gain.of_gradients(2, 1.0, 0.01), rows)
    compare_growth(data, growth, labels_of(data, 4, 1.0), Gain.gini(np.ones(4)), rows)


@pytest.mark.parametrize("n_labels", [60, 300])
def test_more_labels_than_shared_memory_holds(n_labels) -> None:
    data = binned(900, 5)
    growth = Growth(max_depth=2)
    compare_growth(data, growth, labels_of(data, n_labels, 1.0), Gain.gini(np.ones(n_labels)))


def test_given_rows_are_not_changed() -> None:
    data = binned(100, 5)
    shard = CudaTreeShard(data, OnCpu())
    rows = np.arange(100, dtype=np.uint32)
    shard.begin(0, on_device(rows_of(data, 2)), rows)
    split = Splits(*(np.array([number]) for number in (0, 1, 0, 60, True)))
    shard.level({0: LevelRequest(split)})
    np.testing.assert_array_equal(rows, np.arange(100))


def test_bins_of_two_bytes_are_refused() -> None:
    X = np.arange(600.0)[:, None]
    mapper = BinMapper.fit(X, max_bins=600, method="exact")
    with pytest.raises(ValueError, match="at most 256 bins"):
        ShardedGrower(mapper, Growth())
