"""Trees on a device answer every question with the bytes of trees on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.gpu import tree_part
from badacost.gpu.tree_part import CudaTreePart
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.gain_kernels import Gini, SquaredGradients
from badacost.tree.grower import Growth
from badacost.tree.part import Question, Splits, TreePart
from badacost.tree.part_grower import PartGrower, Planned
from badacost.tree.sums import Rows, WeightedLabels
from tests.gpu.on_cpu import OnCpu, needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch) -> None:
    """Several blocks for each node."""
    monkeypatch.setattr(tree_part, "_DIVIDED", 300)
    monkeypatch.setattr(tree_part, "_MIN_SUMMED", 200)
    monkeypatch.setattr(tree_part, "_MAX_SUMMED", 700)
    monkeypatch.setattr(tree_part, "_UPLOADED", 16_000)


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


def labels_of(data: BinnedData, n_labels: int, spread: float) -> WeightedLabels:
    """Weights over many orders of magnitude, some of them zero."""
    rng = np.random.default_rng(1)
    n = data.bins.shape[1]
    labels = (data.bins[0].astype(int) // 32 + data.bins[3] + rng.integers(2, size=n)) % n_labels
    weights = np.exp(spread * rng.normal(size=n)) / n
    weights[::17] = 0.0
    return WeightedLabels.of(labels, weights, n_labels)


def rows_of(data: BinnedData, n_columns: int) -> Rows:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(data.bins.shape[1], n_columns)) * 10.0 ** np.arange(n_columns)
    values[:, 0] += data.bins[2] * 0.02 + data.bins[3] % 3
    values[:, -1] = np.abs(values[:, -1])
    return Rows.of(values)


def grown_alike(data, growth, sums, gain, rows=None, seed=5) -> None:
    """Grow a tree on both parts at once; compare each answer, and the leaves.

    That these trees are those of `TreeGrower` is for tests/tree/test_part_grower.py.
    """
    here, there = TreePart(data), CudaTreePart(data, OnCpu())
    for part in (here, there):
        part.begin(3, sums, rows)

    def ask(questions):
        expected, found = here.ask(questions), there.ask(questions)
        for name, value in expected[3]._asdict().items():
            other = getattr(found[3], name)
            if value is None:
                assert other is None
            else:
                assert (other.dtype, other.shape) == (value.dtype, value.shape), name
                assert other.tobytes() == value.tobytes(), name
        return found

    plan = Planned(sums.n_columns, isinstance(sums, Rows), gain, seed)
    tree, _ = PartGrower(data.mapper, growth).grow({3: plan}, ask)[3]
    assert len(tree.left) > 4
    np.testing.assert_array_equal(there.leaves(tree), here.leaves(tree))
    there.end()


@pytest.mark.parametrize("spread", [0.5, 20.0])
@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
def test_labels(order, spread) -> None:
    data = binned()
    growth = Growth(max_depth=5, max_leaf_nodes=12 if order == "best" else None, order=order)
    factors = np.array([1.0, 4.0, 2.0])
    grown_alike(data, growth, labels_of(data, 3, spread), Gini(factors))


@pytest.mark.parametrize("order", ["level", "best", "symmetric"])
def test_rows(order) -> None:
    data = binned()
    growth = Growth(max_depth=4, max_leaf_nodes=9 if order == "best" else None, order=order)
    grown_alike(data, growth, rows_of(data, 2), SquaredGradients(1.0, 0.01))


def test_some_rows_drawn_features_and_counts() -> None:
    data = binned()
    rows = np.flatnonzero(np.random.default_rng(3).random(data.bins.shape[1]) < 0.7)
    growth = Growth(max_depth=4, n_drawn=5, min_samples_leaf=9)
    grown_alike(data, growth, rows_of(data, 2), SquaredGradients(1.0, 0.01), rows)
    grown_alike(data, growth, labels_of(data, 4, 1.0), Gini(np.ones(4)), rows)


@pytest.mark.parametrize("n_labels", [60, 300])
def test_more_labels_than_shared_memory_holds(n_labels) -> None:
    data = binned(900, 5)
    growth = Growth(max_depth=2)
    grown_alike(data, growth, labels_of(data, n_labels, 1.0), Gini(np.ones(n_labels)))


def test_rows_that_a_part_is_given_are_left_as_they_are() -> None:
    data = binned(100, 5)
    part = CudaTreePart(data, OnCpu())
    rows = np.arange(100, dtype=np.uint32)
    part.begin(0, rows_of(data, 2), rows)
    split = Splits(*(np.array([number]) for number in (0, 1, 0, 60, True)))
    part.ask({0: Question(split)})
    np.testing.assert_array_equal(rows, np.arange(100))


def test_bins_of_two_bytes_are_refused() -> None:
    X = np.arange(600.0)[:, None]
    mapper = BinMapper.fit(X, max_bins=600, method="exact")
    with pytest.raises(ValueError, match="at most 256 bins"):
        CudaTreePart(BinnedData(mapper, mapper.transform(X)), OnCpu())
