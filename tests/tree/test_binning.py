"""Edges by hand, and what must hold for the edges of any column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.tree import binning
from badacost.tree.binning import BinMapper, row_hashes

NAN = np.nan
TINY = 5e-324  # the smallest positive number
METHODS = ["quantile", "uniform", "exact"]


def fit(column, **options) -> BinMapper:
    return BinMapper.fit(np.asarray(column, dtype=float)[:, None], **options)


def edges(column, **options) -> np.ndarray:
    return fit(column, **options).edges[0]


def threshold(mapper: BinMapper, position: int, feature: int = 0) -> float:
    return mapper.thresholds(np.array([feature]), np.array([position]))[0]


def codes(column, **options) -> list[int]:
    mapper = fit(column, **options)
    return mapper.transform(np.asarray(column, dtype=float)[:, None])[0].tolist()


def columns(elements=None, **options):
    if elements is None:
        elements = st.floats(allow_nan=False, allow_infinity=False, **options)
    return st.lists(elements, min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("column", "options", "expected"),
    [
        ([3, 1, 2, 2], {}, [1.5, 2.5]),
        ([3, 1, 2, 2], {"method": "exact"}, [1.5, 2.5]),
        ([3, NAN, 1], {}, [2]),
        (range(10), {"max_bins": 4}, [2.5, 4.5, 7.5]),
        (range(10), {"max_bins": 2}, [4.5]),
        (range(10), {"max_bins": 2, "method": "exact"}, np.arange(9) + 0.5),
        ([0] * 8 + [1, 2, 3], {"max_bins": 2}, [0.5]),
        ([0, 1, 2] + [3] * 8, {"max_bins": 2}, [2.5]),
        ([0, 1, 2] + [3] * 8, {"max_bins": 3}, [2.5]),
        ([*range(9), NAN], {"max_bins": 4}, [2.5, 5.5]),
        ([0, 1], {"method": "uniform", "max_bins": 3}, [0.245, 0.755]),
        ([0, 1, 0.3], {"method": "uniform", "max_bins": 2}, [0.5]),
        ([0, 1, NAN], {"method": "uniform", "max_bins": 3}, [0.5]),
        ([0, 1, NAN], {"method": "uniform", "max_bins": 2}, []),
        ([0, 1, 2, NAN], {"max_bins": 2}, []),
    ],
)
def test_edges_by_hand(column, options, expected) -> None:
    np.testing.assert_allclose(edges(column, **options), expected, rtol=1e-14)


@pytest.mark.parametrize("method", ["quantile", "exact"])
@pytest.mark.parametrize(
    ("low", "high", "edge"),
    [
        (1.0, 2.0, 1.5),
        (1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0)),
        (np.nextafter(1.0, 0.0), 1.0, 1.0),
        (-1e300, 1e300, 0.0),
        (-np.finfo(float).max, np.finfo(float).max, 0.0),
        (np.nextafter(np.finfo(float).max, 0), np.finfo(float).max, np.finfo(float).max),
        (0.0, 1e-300, 5e-301),
        (-1e-300, 1e-300, 0.0),
        (0.0, TINY, TINY),
        (-TINY, 0.0, 0.0),
        (TINY, 2 * TINY, 2 * TINY),
        (2.0**53, 2.0**53 + 2, 2.0**53 + 2),
    ],
)
def test_an_edge_between_two_values(low, high, edge, method) -> None:
    assert edges([low, high, low], method=method).tolist() == [edge]
    assert codes([low, high, low], method=method) == [0, 1, 0]


def test_zeros_of_both_signs_are_one_value() -> None:
    assert codes([0.0, -0.0, 1.0], method="exact") == [0, 0, 1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, -3.5, 1e17, 1e300, -1e300, TINY])
def test_a_constant_column_has_one_code(value, method) -> None:
    mapper = fit([value] * 5, method=method)
    assert mapper.edges[0].size == len(mapper.usable) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_column_of_only_missing_values(method) -> None:
    mapper = fit([NAN, NAN], method=method)
    assert mapper.edges[0].size == 0
    assert mapper.n_bins.tolist() == mapper.n_codes.tolist() == [1]
    assert mapper.transform(np.array([[NAN], [1.0]])).tolist() == [[1, 0]]
    assert threshold(mapper, 0) == np.inf


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_have_the_code_after_the_last_bin(method) -> None:
    column = [1.0, NAN, 2.0, 3.0, NAN]
    mapper = fit(column, method=method)
    found = mapper.transform(np.array(column)[:, None])[0]
    assert mapper.has_missing.tolist() == [True]
    assert found[[1, 4]].tolist() == [mapper.n_bins[0]] * 2
    assert found[[0, 2, 3]].max() < mapper.n_bins[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("method", ["quantile", "uniform"])
@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, 256])
def test_at_most_max_bins_codes(max_bins, method, missing, dtype) -> None:
    X = np.random.default_rng(0).normal(size=(2000, 1)).astype(dtype)
    if missing:
        X[::10] = NAN
    mapper = BinMapper.fit(X, method=method, max_bins=max_bins)
    bins = mapper.transform(X)
    assert mapper.n_bins[0] + mapper.has_missing[0] == max_bins
    assert bins.max() == max_bins - 1
    assert bins.dtype == np.uint8


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("n_distinct", "dtype"),
    [(255, "u1"), (256, "u1"), (257, "u2"), (65_536, "u2"), (65_537, "u4"), (70_000, "u4")],
)
def test_exact_bins_take_the_smallest_type(n_distinct, dtype, missing) -> None:
    values = np.random.default_rng(1).permutation(n_distinct - missing).astype(float)
    X = np.append(values, [NAN] * missing)[:, None]
    mapper = BinMapper.fit(X, method="exact", max_bins=2)
    bins = mapper.transform(X)
    assert bins.dtype == dtype
    np.testing.assert_array_equal(bins[0, : len(values)], values)
    assert not missing or bins[0, -1] == n_distinct - 1


@given(columns(), st.sampled_from(METHODS), st.integers(2, 12), st.booleans())
def test_transform_counts_the_edges_not_above(column, method, max_bins, missing) -> None:
    mapper = fit(column + [NAN] * missing, method=method, max_bins=max_bins)
    found = mapper.edges[0]
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
    with np.errstate(over="ignore"):
        more = [*column, *found, *np.nextafter(found, -np.inf), -np.inf, np.inf]
    bins = mapper.transform(np.array([*more, NAN])[:, None])[0]
    np.testing.assert_array_equal(bins[:-1], np.searchsorted(found, more, "right"))
    if missing:
        assert bins[-1] == len(found) + 1
    for position in range(len(found)):
        below = np.array(more) < threshold(mapper, position)
        np.testing.assert_array_equal(bins[:-1] <= position, below)


def test_thresholds_of_several_features() -> None:
    X = np.column_stack([np.arange(4.0), np.ones(4), np.arange(4.0) % 2])
    mapper = BinMapper.fit(X)
    features = np.array([2, 0, 0, 1, 0, 2, 0])
    positions = np.array([0, 0, 2, 0, 3, 1, 1])
    expected = [0.5, 0.5, 2.5, np.inf, np.inf, np.inf, 1.5]
    assert mapper.thresholds(features, positions).tolist() == expected
    assert mapper.thresholds(features[:0], positions[:0]).tolist() == []


@given(columns(), st.sampled_from(["quantile", "exact"]), st.integers(2, 12))
def test_edges_lie_between_neighbours(column, method, max_bins) -> None:
    values = np.unique(column)
    for edge in edges(column, method=method, max_bins=max_bins):
        above = np.searchsorted(values, edge, "left")
        low, high = values[above - 1], values[above]
        assert above > 0
        assert low < edge <= high
        middle = 0.5 * low + 0.5 * high
        assert edge == (middle if middle > low else high)


@given(columns(), st.integers(2, 40))
def test_few_distinct_values_have_a_bin_each(column, max_bins) -> None:
    values = np.unique(column)
    exact = np.searchsorted(values, column)
    np.testing.assert_array_equal(codes(column, method="exact"), exact)
    if len(values) <= max_bins:
        np.testing.assert_array_equal(codes(column, max_bins=max_bins), exact)
    assert max(codes(column, max_bins=max_bins)) < max_bins


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 5)), min_size=1, max_size=40))
def test_weights_are_repeated_rows(pairs) -> None:
    column, weight = np.array(pairs, dtype=float).T
    column[column == 0.0] = NAN
    weighted = fit(column, max_bins=6, sample_weight=weight)
    repeated = fit(np.repeat(column, weight.astype(int)), max_bins=6)
    np.testing.assert_array_equal(weighted.edges[0], repeated.edges[0])


def test_quantile_bins_hold_about_equal_weight() -> None:
    rng = np.random.default_rng(2)
    column, weight = rng.lognormal(size=5000), rng.uniform(0, 2, 5000)
    bins = codes(column, max_bins=20, sample_weight=weight)
    shares = np.bincount(bins, weight) / weight.sum()
    np.testing.assert_allclose(shares, 1 / 20, atol=2 * weight.max() / weight.sum())


@pytest.mark.parametrize("method", ["quantile", "exact"])
def test_single_precision_values_keep_double_precision_edges(method) -> None:
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    X = np.array([[low], [high]])
    mapper = BinMapper.fit(X, method=method)
    assert mapper.edges[0].dtype == np.float64
    assert low < mapper.edges[0][0] < high
    assert mapper.transform(X).tolist() == [[0, 1]]


@given(columns(width=32))
def test_single_and_double_precision_agree(column) -> None:
    X = np.array(column, dtype=np.float32)[:, None]
    single, double = (BinMapper.fit(x, max_bins=9) for x in (X, X.astype(float)))
    np.testing.assert_array_equal(single.edges[0], double.edges[0])
    np.testing.assert_array_equal(single.transform(X), double.transform(X.astype(float)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3, 1e30])
def test_uniform_bins_are_those_of_the_reference(scale, dtype) -> None:
    """Section 2.4 of the specification: round((x - low) / step), away from bin limits."""
    x = (scale * np.random.default_rng(3).normal(size=500)).astype(dtype)
    low, high = x.min() - dtype(0.01), x.max() + dtype(0.01)
    place = (x.astype(float) - low) / (float(high - low) / 255)
    clear = np.abs(place - np.floor(place) - 0.5) > 1e-3
    mapper = BinMapper.fit(x[:, None], method="uniform")
    assert mapper.edges[0].size == 255
    np.testing.assert_array_equal(mapper.transform(x[:, None])[0][clear], np.round(place[clear]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_bins_over_more_than_the_range_of_the_type(dtype) -> None:
    most = np.finfo(dtype).max
    X = np.array([[-most], [0], [most]], dtype=dtype)
    mapper = BinMapper.fit(X, method="uniform", max_bins=4)
    np.testing.assert_allclose(mapper.edges[0] / most, [-2 / 3, 0, 2 / 3], atol=1e-6)
    assert mapper.transform(X)[0, [0, 2]].tolist() == [0, 3]


def test_many_rows_are_sampled(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(3000, 2)), rng.uniform(size=3000)
    monkeypatch.setattr(binning, "MAX_ROWS", 500)
    rows = np.argsort(row_hashes(7, 0, 3000))[:500]
    sampled = BinMapper.fit(X, max_bins=10, sample_weight=weight, seed=7)
    expected = BinMapper.fit(X[rows], max_bins=10, sample_weight=weight[rows])
    other = BinMapper.fit(X, max_bins=10, sample_weight=weight, seed=8)
    for f in range(2):
        np.testing.assert_array_equal(sampled.edges[f], expected.edges[f])
        assert not np.array_equal(sampled.edges[f], other.edges[f])
    assert BinMapper.fit(X, method="exact").n_bins.tolist() == [3000, 3000]


def test_missing_values_outside_of_the_sampled_rows(monkeypatch) -> None:
    """They need a code of their own, within the type of the bins."""
    monkeypatch.setattr(binning, "MAX_ROWS", 1000)
    X = np.random.default_rng(5).normal(size=(3000, 2))
    row = np.argsort(row_hashes(0, 0, 3000))[1000]
    X[row, 1] = NAN
    mapper = BinMapper.fit(X)
    assert mapper.has_missing.tolist() == [False, True]
    assert mapper.n_bins.tolist() == [256, 255]
    bins = mapper.transform(X)
    assert bins.dtype == np.uint8
    assert np.flatnonzero(bins[1] == 255).tolist() == [row]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_order_and_threads_do_not_matter(method, dtype) -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(600, 37)).astype(dtype)  # more columns than a tile, more rows too
    X[rng.uniform(size=X.shape) < 0.05] = NAN
    X[:, 5] = 1.0
    X[:, 6] = NAN
    weight = rng.uniform(size=600)
    wide = np.zeros((1200, 74), dtype)
    wide[::2, ::2] = X
    first = BinMapper.fit(X, method=method, max_bins=20, sample_weight=weight)
    bins = first.transform(X)
    assert bins.shape == (37, 600)
    for other in (np.asfortranarray(X), wide[::2, ::2], X):
        for n_jobs in (1, 2, 3):
            threads = Threads(n_jobs)
            mapper = BinMapper.fit(
                other, method=method, max_bins=20, sample_weight=weight, threads=threads
            )
            np.testing.assert_array_equal(mapper.has_missing, first.has_missing)
            for mine, theirs in zip(mapper.edges, first.edges, strict=True):
                np.testing.assert_array_equal(mine, theirs)
            np.testing.assert_array_equal(mapper.transform(other, threads), bins)


@pytest.mark.parametrize("method", ["quantile", "uniform"])
def test_values_that_are_missing_after_training_only(method) -> None:
    """All 256 codes are in use: that of a missing value needs a larger type."""
    X = np.random.default_rng(7).normal(size=(2000, 2))
    mapper = BinMapper.fit(X, method=method)
    assert mapper.n_bins.tolist() == [256, 256]
    holes = X.copy()
    holes[5, 1] = NAN
    bins = mapper.transform(holes)
    assert bins.dtype == np.uint16
    assert bins[1, 5] == 256
    bins[1, 5] = mapper.transform(X)[1, 5]
    np.testing.assert_array_equal(bins, mapper.transform(X))
    assert mapper.transform(X).dtype == np.uint8
    assert mapper.transform(X[:0]).shape == (2, 0)


def test_order_of_the_rows_does_not_matter() -> None:
    """Weights of equal values are summed in any order, also where a sum meets a quantile."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        column, weight = rng.integers(8, size=40), rng.choice([0.1, 0.2, 0.3, 0.7], 40)
        order = rng.permutation(40)
        first = edges(column, max_bins=4, sample_weight=weight)
        second = edges(column[order], max_bins=4, sample_weight=weight[order])
        np.testing.assert_array_equal(first, second)
