"""The sketch of a training set is the same, whatever its division into blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.tree import binning
from badacost.tree.binning import BinMapper, RowSketch, row_hashes

METHODS = ["quantile", "uniform", "exact"]
CATEGORIES = {2: np.arange(3.0)}


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch) -> None:
    monkeypatch.setattr(binning, "MAX_ROWS", 50)


def data(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[rng.uniform(size=n) < 0.02, 1] = np.nan
    X[:, 2] = rng.integers(3, size=n)
    X[:, 3] = np.nan
    return X, rng.uniform(0.5, 2.0, n)


def same(one: BinMapper, other: BinMapper) -> None:
    np.testing.assert_array_equal(one.has_missing, other.has_missing)
    for mine, theirs in zip(one.edges, other.edges, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_hashes_are_those_of_splitmix64() -> None:
    """Successive rows have successive numbers of the published generator, from a mixed seed."""
    numbers, state = [], int(row_hashes_start(3))
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        numbers.append(z ^ (z >> 31))
    assert row_hashes(3, 0, 3).tolist() == numbers
    assert row_hashes(3, 1, 2).tolist() == numbers[1:]


def row_hashes_start(seed: int) -> int:
    """The mixed seed, which is zero for the seed zero."""
    z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_hashes_are_spread_evenly() -> None:
    hashes = row_hashes(0, 10**12, 100_000)
    assert len(np.unique(hashes)) == 100_000
    counts = np.bincount((hashes >> np.uint64(60)).astype(int), minlength=16)
    assert counts.min() > 5900
    assert counts.max() < 6600


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=8), order=st.randoms(use_true_random=False))
def test_any_division_and_order(method, cuts, order) -> None:
    X, weight = data()
    ends = [0, *sorted(cuts), 400]
    blocks = list(pairwise(ends))
    order.shuffle(blocks)
    sketches = [RowSketch(5, method, CATEGORIES) for _ in range(3)]
    for number, (first, last) in enumerate(blocks):
        sketches[number % 3].add(X[first:last], weight[first:last], first_row=first)
    sketches[1].merge(sketches[0])
    sketches[1].merge(sketches[2])
    assert sketches[1].n_rows == 400
    whole = BinMapper.fit(
        X, method=method, max_bins=8, categories=CATEGORIES, sample_weight=weight, seed=5
    )
    same(BinMapper.from_sketch(sketches[1], max_bins=8), whole)


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_follow_each_other_need_no_number(method) -> None:
    X, _ = data()
    sketch = RowSketch(1, method)
    for first in range(0, 400, 7):
        sketch.add(X[first : first + 7])
    same(BinMapper.from_sketch(sketch), BinMapper.fit(X, method=method, seed=1))


def test_single_and_double_precision_in_turns() -> None:
    X, _ = data(60)
    for method in METHODS:
        sketch = RowSketch(0, method)
        sketch.add(X[:30])
        sketch.add(X[30:].astype(float))
        same(BinMapper.from_sketch(sketch), BinMapper.fit(X.astype(float), method=method))


def test_equal_weights_are_the_same_as_none_in_all_blocks_only() -> None:
    X, _ = data()
    plain = BinMapper.fit(X, max_bins=8)
    for weights, equal in (((2.0, 2.0), True), ((2.0, 40.0), False)):
        sketch = RowSketch()
        for first, weight in zip((0, 200), weights, strict=True):
            sketch.add(X[first : first + 200], np.full(200, weight))
        edges = BinMapper.from_sketch(sketch, max_bins=8).edges[0]
        assert np.array_equal(edges, plain.edges[0]) == equal


def test_few_rows_are_kept_and_nothing_else_of_a_block() -> None:
    X, _ = data(400)
    sketch = RowSketch()
    for first in range(0, 400, 40):
        block = X[first : first + 40]
        sketch.add(block)
        assert sum(len(rows.hashes) for rows in sketch._drawn) <= 75
    mapper = BinMapper.from_sketch(sketch)
    (rows,) = sketch._drawn
    expected = np.argsort(row_hashes(0, 0, 400))[:50]
    np.testing.assert_array_equal(rows.X, X[np.sort(expected)])
    same(mapper, BinMapper.fit(X[expected]))


def test_unknown_categories_in_one_block() -> None:
    X, _ = data(20)
    X[15, 2] = 7.0
    sketch = RowSketch(categories=CATEGORIES)
    sketch.add(X[:10])
    assert not sketch.missing[2]
    sketch.add(X[10:])
    assert sketch.missing[2]
