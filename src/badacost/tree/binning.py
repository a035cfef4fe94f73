"""From values to bins and back: which values a tree can tell apart, and at which thresholds.

A feature with edges ``e_0 < e_1 < ...`` has one bin more than edges; a value belongs to the bin
whose number is the count of edges not greater than it. A test ``bin <= s`` is the test ``x < e_s``.
Missing values (NaN) have the code after the last bin of their feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from badacost.tree.kernels import digitize
from badacost.tree.threads import Threads

FloatArray = NDArray[np.float64]
BinningMethod = Literal["quantile", "uniform", "exact"]

MOST_BINS = 256
_MOST_ROWS = 200_000  # quantiles of more rows than this are estimated on a random part of them
_COLUMNS_AT_ONCE = 8  # columns of a row-major matrix are cheaper to read in small groups
_UNIFORM_MARGIN = 0.01  # the reference widens the range of every feature by this on both sides


@dataclass(frozen=True, eq=False)
class BinMapper:
    """The bins of every feature.

    Attributes
    ----------
    edges : list of ndarray
        Increasing thresholds of every feature.
    has_missing : ndarray of bool of shape (n_features,)
        Whether missing values were seen.
    """

    edges: list[FloatArray]
    has_missing: NDArray[np.bool_]

    @classmethod
    def fit(
        cls,
        X: NDArray[np.floating],
        *,
        method: BinningMethod = "quantile",
        max_bins: int = MOST_BINS,
        sample_weight: FloatArray | None = None,
        seed: int = 0,
        threads: Threads | None = None,
    ) -> BinMapper:
        """Choose the edges.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Finite values or NaN.
        method : {"quantile", "uniform", "exact"}
            About as much weight in every bin, equal steps over the range of the values (as in the
            reference implementation), or one bin for every distinct value.
        max_bins : int
            Most codes for a feature, that of missing values included; not used by "exact".
        sample_weight : ndarray of shape (n_samples,), optional
            Weights for the quantiles; equal ones are the same as none.
        seed : int
            Chooses the rows that are looked at, if there are more than 200 000.
        threads : Threads, optional
            Threads to share the features among.
        """
        if sample_weight is not None and (sample_weight == sample_weight[0]).all():
            sample_weight = None  # sorting alone is faster
        rows = None
        if method == "quantile" and len(X) > _MOST_ROWS:
            rows = np.sort(np.random.default_rng(seed).choice(len(X), _MOST_ROWS, replace=False))
            sample_weight = None if sample_weight is None else sample_weight[rows]

        def edges_of(first: int, last: int) -> tuple[list[FloatArray], NDArray[np.bool_]]:
            # Of all rows, since a missing value that was not looked at needs its code as well.
            missing = np.isnan(X[:, first:last].min(axis=0))
            columns = zip(_columns(X, rows, first, last), missing, strict=True)
            return [
                _edges(column, method, max_bins - int(has_missing), sample_weight)
                for column, has_missing in columns
            ], missing

        parts = (threads or Threads()).map(edges_of, X.shape[1])
        return cls(
            [edges for part, _ in parts for edges in part],
            np.concatenate([missing for _, missing in parts]),
        )

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """Number of ordinary bins of every feature, which is also the code of a missing value."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)

    def transform(
        self, X: NDArray[np.floating], threads: Threads | None = None
    ) -> NDArray[np.unsignedinteger]:
        """Return the bins of X: shape (n_features, n_samples), in the smallest type that fits."""
        n_codes = int(np.max(self.n_bins + self.has_missing))
        bins = np.empty(X.shape[::-1], dtype=np.min_scalar_type(n_codes - 1))
        limits = np.concatenate([[0], np.cumsum(self.n_bins - 1)])
        edges = np.concatenate(self.edges)

        def fill(first: int, last: int) -> None:
            digitize(X, edges, limits, first, last, bins)

        (threads or Threads()).map(fill, X.shape[1])
        return bins

    def threshold(self, feature: int, position: int) -> float:
        """Value below which samples of the bins up to `position` lie."""
        edges = self.edges[feature]
        return float(edges[position]) if position < len(edges) else np.inf


@dataclass(frozen=True, eq=False)
class BinnedData:
    """A training set as the grower sees it: bins of shape (n_features, n_samples) and their map."""

    mapper: BinMapper
    bins: NDArray[np.unsignedinteger]

    @classmethod
    def of(
        cls,
        X: NDArray[np.floating],
        *,
        method: BinningMethod,
        max_bins: int,
        sample_weight: FloatArray | None,
        seed: int,
        threads: Threads,
    ) -> BinnedData:
        """Choose bins for a training set and put it into them, see `BinMapper.fit`."""
        mapper = BinMapper.fit(
            X,
            method=method,
            max_bins=max_bins,
            sample_weight=sample_weight,
            seed=seed,
            threads=threads,
        )
        return cls(mapper, mapper.transform(X, threads))


def _columns(
    X: NDArray[np.floating], rows: NDArray[np.int64] | None, first: int, last: int
) -> Iterator[NDArray[np.floating]]:
    """Contiguous copies of the columns first..last of some rows, a few at a time."""
    for start in range(first, last, _COLUMNS_AT_ONCE):
        group = X[:, start : min(start + _COLUMNS_AT_ONCE, last)]
        yield from np.ascontiguousarray((group if rows is None else group[rows]).T)


def _edges(
    column: NDArray[np.floating],
    method: BinningMethod,
    n_bins: int,
    sample_weight: FloatArray | None,
) -> FloatArray:
    """Edges of one feature, from the values that are present."""
    present = ~np.isnan(column)
    if not present.all():
        column = column[present]
        sample_weight = None if sample_weight is None else sample_weight[present]
    if not len(column):
        return np.empty(0)
    if method == "uniform":
        return _uniform_edges(column, n_bins)
    if sample_weight is None:
        values = np.sort(column)
        cumulated = np.arange(1.0, len(values) + 1.0)
    else:
        order = np.argsort(column, kind="stable")
        values = column[order]
        cumulated = np.cumsum(sample_weight[order])
    last_of_value = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    values, cumulated = values[last_of_value], cumulated[last_of_value]
    if method == "quantile" and len(values) > n_bins:
        shares = cumulated[-1] * np.arange(1, n_bins) / n_bins
        # A heavy largest value has no neighbour above: it is told apart from the one below.
        cuts = np.unique(np.minimum(np.searchsorted(cumulated, shares), len(values) - 2))
    else:
        cuts = np.arange(len(values) - 1)
    return _midpoints(values[cuts], values[cuts + 1])


def _midpoints(low: NDArray[np.floating], high: NDArray[np.floating]) -> FloatArray:
    """Thresholds between neighbours, so that ``low < threshold <= high`` even without room."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle = 0.5 * low + 0.5 * high
    return np.where((low < middle) & (middle <= high), middle, high)


def _uniform_edges(column: NDArray[np.floating], n_bins: int) -> FloatArray:
    """Edges of equal steps, computed in the type of the values like the reference does."""
    if n_bins == 1:
        return np.empty(0)
    kind = column.dtype.type
    low = column.min() - kind(_UNIFORM_MARGIN)
    high = column.max() + kind(_UNIFORM_MARGIN)
    steps = kind(n_bins - 1)
    places = np.arange(n_bins - 1, dtype=kind) + kind(0.5)
    with np.errstate(over="ignore"):
        span = high - low
    if np.isfinite(span):
        edges = low + span / steps * places
    else:  # more than the type can hold
        edges = low * (1 - places / steps) + high * (places / steps)
    return np.unique(edges.astype(np.float64))
