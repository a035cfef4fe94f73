"""From values to bins and back: which values a tree can tell apart, and at which thresholds.

A feature with edges ``e_0 < e_1 < ...`` has one bin more than edges; a value belongs to the bin
whose number is the count of edges not greater than it. A test ``bin <= s`` is the test ``x < e_s``.
A categorical feature has a bin for each known category. Missing values (NaN), and categories that
are not known, have the code after the last bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Mask, RowNumbers, Samples
from badacost.exact_sums import folds
from badacost.large_samples import blocks_of, is_sparse
from badacost.scratch_file import mapped_array
from badacost.threads import Threads
from badacost.tree.binning_kernels import count_steps, search_bins
from badacost.tree.histogram_kernels import Data
from badacost.tree.sampling import BinningMethod, RowSketch, places_of

MAX_BINS = 256
_BLOCK = (64, 256)  # features and rows that are put into bins together
_UNIFORM_MARGIN = 0.01  # the reference widens the range of every feature by this on both sides


@dataclass(frozen=True, eq=False)
class BinMapper:
    """The bins of every feature.

    Attributes
    ----------
    edges : list of ndarray
        Increasing thresholds of every feature; none for a categorical one.
    has_missing : ndarray of bool of shape (n_features,)
        Whether missing values, or unknown categories, were seen.
    categories : list of ndarray or None
        Sorted categories of every feature; None where values are ordered.
    equal_steps : bool
        Whether edges are at equal steps, so that no search is needed.
    """

    edges: list[FloatArray]
    has_missing: Mask
    categories: list[FloatArray | None] = field(default_factory=list)
    equal_steps: bool = False

    def __post_init__(self) -> None:
        if not self.categories:
            object.__setattr__(self, "categories", [None] * len(self.edges))

    @classmethod
    def fit(
        cls,
        X: Any,
        *,
        method: BinningMethod = "quantile",
        max_bins: int = MAX_BINS,
        categories: Mapping[int, FloatArray] | None = None,
        sample_weight: FloatArray | None = None,
        seed: int = 0,
        threads: Threads | None = None,
    ) -> BinMapper:
        """Choose the edges.

        Parameters
        ----------
        X : ndarray, sparse matrix or LargeSamples of shape (n_samples, n_features)
            Finite values or NaN.
        method : {"quantile", "uniform", "exact"}
            About as much weight in every bin, equal steps over the range of the values (as in the
            reference implementation), or one bin for every distinct value.
        max_bins : int
            Maximum number of codes of an ordered feature, that of missing values included; not
            for "exact".
        categories : mapping of int to ndarray, optional
            Features whose values are categories, and the known ones: increasing, at most 255.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights for the quantiles; equal ones are the same as none.
        seed : int
            Chooses the rows that are looked at, if there are more than 200 000.
        threads : Threads, optional
            Threads to share the features among.
        """
        sketch = RowSketch(seed, method, categories or {})
        sketch.add_all(X, sample_weight, threads)
        return cls.from_sketch(sketch, max_bins=max_bins, threads=threads)

    @classmethod
    def from_sketch(
        cls, sketch: RowSketch, *, max_bins: int = MAX_BINS, threads: Threads | None = None
    ) -> BinMapper:
        """Choose the edges for rows that were looked at before, wherever they were."""
        for known in sketch.categories.values():
            if len(known) >= MAX_BINS:
                raise ValueError(f"A feature can have {MAX_BINS - 1} categories, not {len(known)}.")
        n_bins = np.where(sketch.missing, max_bins - 1, max_bins)
        if sketch.method == "uniform":
            edges = _uniform_edges(sketch.low, sketch.high, n_bins)
        else:
            edges = _sampled_edges(sketch, n_bins, threads or Threads())
        known_of: list[FloatArray | None] = [None] * len(edges)
        for feature, known in sketch.categories.items():
            known_of[feature], edges[feature] = known, np.empty(0)
        return cls(edges, sketch.missing, known_of, sketch.method == "uniform")

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """Number of ordinary bins of every feature, which is also the code of a missing value."""
        counts = [
            len(edges) + 1 if known is None else len(known)
            for edges, known in zip(self.edges, self.categories, strict=True)
        ]
        return np.array(counts, dtype=np.int64)

    @cached_property
    def categorical(self) -> Mask:
        """Which features are categorical."""
        return np.array([known is not None for known in self.categories])

    @cached_property
    def any_categorical(self) -> bool:
        """Whether any feature is categorical."""
        return bool(self.categorical.any())

    def transform(
        self, X: Any, threads: Threads | None = None, *, fitted: bool = False
    ) -> NDArray[np.unsignedinteger]:
        """Return the bins of X: shape (n_features, n_samples), in the smallest type that fits.

        With `fitted` these are the samples that bins were chosen for: otherwise a value may be
        missing here only, and its code be one that training did not need.
        """
        n_codes = self.n_bins + self.has_missing
        n_held = 256 ** np.min_scalar_type(int(n_codes.max()) - 1).itemsize
        full = (self.n_bins == n_held) & ~self.has_missing
        if self.any_categorical:
            n_codes = np.maximum(n_codes, self.n_bins + self.categorical)
        kind, threads = np.min_scalar_type(int(n_codes.max()) - 1), threads or Threads()
        bins = _new_bins(X.shape[::-1], kind, getattr(X, "bins_folder", None))
        first = 0
        block: Any
        for block in [X] if is_sparse(X) else blocks_of(X):
            n_rows = block.shape[0]
            if not fitted and n_rows and full.any() and _missing(block)[full].any():
                bins = bins.astype(np.min_scalar_type(n_held))
                full[:] = False
            if is_sparse(block):
                self._fill_sparse(block.tocsc(), bins, threads)
            else:
                self._fill(block, bins, first, threads)
            first += n_rows
        return bins

    def _fill(
        self, X: Samples, bins: NDArray[np.unsignedinteger], first_row: int, threads: Threads
    ) -> None:
        """Put a block of rows into bins, at `first_row`."""
        find = count_steps if self.equal_steps else search_bins

        def fill(first: int, last: int) -> None:
            # One layout and type for the kernels, whatever those of X; memory that is not new.
            memory = np.empty(_BLOCK[0] * _BLOCK[1])
            for f in range(first, last, _BLOCK[0]):
                features = slice(f, min(f + _BLOCK[0], last))
                limits = np.cumsum([0, *map(len, self.edges[features])])
                edges = np.concatenate(self.edges[features])
                for row in range(0, len(X), _BLOCK[1]):
                    block = X[row : row + _BLOCK[1], features]
                    values = memory[: block.size].reshape(block.shape)
                    np.copyto(values, block)
                    find(values, edges, limits, bins, f, first_row + row)

        threads.map(fill, X.shape[1])
        for feature in np.flatnonzero(self.categorical):
            places = places_of(self.categories[feature], X[:, feature])
            bins[feature, first_row : first_row + len(X)] = places

    def _fill_sparse(self, X: Any, bins: NDArray[np.unsignedinteger], threads: Threads) -> None:
        """Put the columns of a sparse matrix into bins: all zeros at once, then the rest."""
        find = count_steps if self.equal_steps else search_bins
        X.sum_duplicates()

        def fill(first: int, last: int) -> None:
            for feature in range(first, last):
                here = slice(X.indptr[feature], X.indptr[feature + 1])
                values = np.append(X.data[here], 0.0).astype(np.float64)[:, np.newaxis]
                edges = self.edges[feature]
                codes = np.empty((1, len(values)), bins.dtype)
                find(values, edges, np.array([0, len(edges)]), codes, 0, 0)
                bins[feature] = codes[0, -1]
                bins[feature, X.indices[here]] = codes[0, :-1]

        threads.map(fill, X.shape[1])

    def thresholds(self, features: RowNumbers, positions: RowNumbers) -> FloatArray:
        """Values below which samples of the bins up to `positions` lie."""
        return np.array(
            [
                self.edges[feature][position] if position < len(self.edges[feature]) else np.inf
                for feature, position in zip(features.tolist(), positions.tolist(), strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class BinnedData:
    """Samples as trees see them: bins of shape (n_features, n_samples) and their map.

    Values may be missing where they were not when bins were chosen.
    """

    mapper: BinMapper
    bins: NDArray[np.unsignedinteger]

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        method: BinningMethod,
        max_bins: int,
        sample_weight: FloatArray | None,
        seed: int,
        threads: Threads,
        categories: Mapping[int, FloatArray] | None = None,
        sketch: RowSketch | None = None,
    ) -> BinnedData:
        """Choose bins for a training set and put it into them, see `BinMapper.fit`.

        A `sketch` of the training set, made before with the same settings, spares a look at it.
        """
        if sketch is None:
            sketch = RowSketch(seed, method, categories or {})
            sketch.add_all(X, sample_weight, threads)
        mapper = BinMapper.from_sketch(sketch, max_bins=max_bins, threads=threads)
        data = cls(mapper, mapper.transform(X, threads, fitted=True))
        data.__dict__["has_missing"] = mapper.has_missing  # known without a look at all bins
        return data

    @cached_property
    def has_missing(self) -> Mask:
        """Which features have missing values here."""
        highest = self.bins.max(axis=1, initial=0)
        return self.mapper.has_missing | (highest >= self.mapper.n_bins)

    @cached_property
    def kernel_data(self) -> Data:
        """The same, as kernels take it."""
        mapper = self.mapper
        return Data(self.bins, mapper.n_bins, self.n_codes, self.has_missing, mapper.categorical)

    @cached_property
    def n_codes(self) -> NDArray[np.int64]:
        """Number of codes of every feature."""
        return self.mapper.n_bins + self.has_missing


def _new_bins(shape: tuple[int, int], kind: Any, folder: Any) -> NDArray[np.unsignedinteger]:
    """An array for bins; with a folder, in a file there that goes when the array does."""
    if folder is None:
        return np.empty(shape, kind)
    return mapped_array(
        shape,
        kind,
        folder,
        "set bins_folder to a folder on a disk with more room, or None to keep bins in memory",
    )


def _missing(X: Any) -> Mask:
    """Which features of some rows have missing values."""
    low = X.min(axis=0)
    return np.isnan(low.toarray().ravel() if is_sparse(low) else low)


def _sampled_edges(
    sketch: RowSketch, n_bins: NDArray[np.int64], threads: Threads
) -> list[FloatArray]:
    """Edges of all features, from the rows of a sketch."""
    sample_weight, columns = sketch.sample_weight(), sketch.columns()
    if sample_weight is not None:
        # Multiples of a quantum: rows of equal values are summed in any order.
        exponent = np.frexp(sample_weight.max())[1]
        sample_weight = folds(np.ldexp(sample_weight, -exponent))[0]

    def edges_of(first: int, last: int) -> list[FloatArray]:
        pairs = zip(columns(first, last), n_bins[first:last].tolist(), strict=True)
        return [_edges(column, sketch.method, number, sample_weight) for column, number in pairs]

    return [edges for part in threads.map(edges_of, len(n_bins)) for edges in part]


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
    between = np.where((low < middle) & (middle <= high), middle, high)
    return np.asarray(between + 0.0)  # zero has one sign


def _uniform_edges(
    low: NDArray[np.floating], high: NDArray[np.floating], n_bins: NDArray[np.int64]
) -> list[FloatArray]:
    """Edges of equal steps, computed in the type of the values as the reference does."""
    edges = [np.empty(0)] * len(low)
    for number in np.unique(n_bins).tolist():
        features = np.flatnonzero((n_bins == number) & ~np.isnan(low))
        for feature, steps in zip(
            features.tolist(), _steps(low[features], high[features], number), strict=True
        ):
            edges[feature] = steps
    return edges


def _steps(low: NDArray[np.floating], high: NDArray[np.floating], n_bins: int) -> list[FloatArray]:
    """Edges between `n_bins` bins over ranges that are widened a little on both sides."""
    if n_bins == 1:
        return [np.empty(0)] * len(low)
    kind = low.dtype.type
    low, high = low - kind(_UNIFORM_MARGIN), high + kind(_UNIFORM_MARGIN)
    steps = kind(n_bins - 1)
    places = np.arange(n_bins - 1, dtype=kind) + kind(0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        edges = low[:, None] + (span / steps)[:, None] * places
    wide = ~np.isfinite(span)  # more than the type can hold
    shares = places / steps
    edges[wide] = low[wide, None] * (1 - shares) + high[wide, None] * shares
    return [np.unique(row) for row in edges.astype(np.float64)]
