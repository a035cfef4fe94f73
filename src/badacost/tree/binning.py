"""Bins of feature values: the choice of their edges, and the conversion of values to bins.

A feature with edges ``e_0 < e_1 < ...`` has one bin more than edges; the bin of a value is the
number of edges not greater than it, so that a test ``bin <= s`` is the test ``x < e_s``. A
categorical feature has a bin for each known category. Missing values (NaN) and unknown categories
have the code after the last bin.

Edges are chosen from a sketch of the rows. Rows are drawn by hashes of a seed and their number: a
sketch keeps the rows with the smallest hashes and the range of all rows, so that blocks of rows
can be added in any order and on several machines, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from badacost._utils.arrays import FloatArray, Mask, RowNumbers, Samples
from badacost._utils.large_samples import LargeSamples
from badacost._utils.parallel import ROWS_AT_ONCE, Threads, over_rows, split_high_low
from badacost.tree.binning_kernels import count_steps, search_bins
from badacost.tree.histogram_kernels import Data

BinningMethod = Literal["quantile", "uniform", "exact"]

MAX_ROWS = 200_000  # quantiles of more rows are estimated on a random sample of this size
MAX_BINS = 256
_SLACK = 1.5  # maximum number of rows that are kept while rows are added, relative to MAX_ROWS
_STEP = 0x9E3779B97F4A7C15
_CELLS_AT_ONCE = 2**22
_COLUMNS_AT_ONCE = 8  # columns of a row-major matrix are read faster in small groups
_BLOCK = (64, 512)  # features and rows that are binned together
_UNIFORM_MARGIN = 0.01  # the reference widens the range of every feature by this on both sides


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sparse.issparse(X))


def row_blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of rows that have some million cells."""
    step = max(1, _CELLS_AT_ONCE // max(1, n_features))
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def blocks_of(X: Any) -> Iterable[Any]:
    """The rows of any samples as they are stored; what is in memory is one block."""
    return X.blocks() if isinstance(X, LargeSamples) else [X]


def dense_blocks(X: Any) -> Iterator[Samples]:
    """The rows of any samples as dense blocks; an array in memory is one."""
    for block in blocks_of(X):
        if is_sparse(block):
            yield from (block[rows].toarray() for rows in row_blocks(*block.shape))
        else:
            yield block


def row_hashes(seed: int, first_row: int, n_rows: int, xp: Any = np) -> NDArray[np.uint64]:
    """Hashes of the rows ``first_row ..`` of a data set; no two rows have the same hash."""
    start = int(_mixed(np.array([seed], np.uint64))[0]) + (first_row + 1) * _STEP
    hashes = xp.arange(n_rows, dtype=np.uint64)
    hashes *= np.uint64(_STEP)
    hashes += np.uint64(start % 2**64)
    return _mixed(hashes)


def draw_rows(
    rows: Any, probability: float, key: tuple[int, ...], first_row: int, xp: Any = np
) -> Any:
    """Draw each of some rows independently with a probability.

    Whether a row is drawn depends on the key and its number in the whole data set, which is
    `first_row` larger. `xp` is numpy, or the module that the rows belong to.
    """
    if probability == 1.0 or not len(rows):
        return rows
    seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
    hashes = row_hashes(seed, first_row, int(rows.max()) + 1, xp)
    return rows[hashes[rows] < np.uint64(int(probability * 2.0**64))]


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix words as the generator SplitMix64 does, in place; the map is one to one."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def places_of(known: Any, column: NDArray[np.floating]) -> NDArray[np.intp]:
    """Indices of values among sorted categories; their number for unknown values and NaN."""
    places = np.searchsorted(known, column)
    found = np.append(known, np.nan)[places] == column
    return np.where(found, places, len(known))


class _Drawn(NamedTuple):
    """Rows that are kept, with their hashes and weights."""

    hashes: NDArray[np.uint64]
    X: Any
    weight: FloatArray


@dataclass(eq=False)
class RowSketch:
    """Rows to choose bin edges from, see `badacost.tree.binning.BinMapper.from_sketch`.

    Quantiles need some rows, uniform bins the range of the values, exact bins all rows. Features
    with `categories` have no range.
    """

    seed: int = 0
    method: BinningMethod = "quantile"
    categories: Mapping[int, FloatArray] = field(default_factory=dict)
    n_rows: int = 0
    low: Any = np.nan  # smallest values, (n_features,) once there are rows
    high: Any = np.nan
    missing: Any = False  # which features have missing values, or unknown categories
    min_weight: float = np.inf
    max_weight: float = -np.inf
    _drawn: list[_Drawn] = field(default_factory=list)

    def add(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        first_row: int | None = None,
        threads: Threads | None = None,
    ) -> RowSketch:
        """Add samples of any kind, and return the sketch.

        They are the rows ``first_row ..`` of the whole; by default they follow those added before.
        """
        first_row = self.n_rows if first_row is None else first_row
        first = 0
        for block in blocks_of(X):
            last = first + block.shape[0]
            if last > first:
                weight = np.broadcast_to(1.0, last - first)
                if sample_weight is not None:
                    weight = sample_weight[first:last]
                self.merge(self._of_block(block, weight, first_row + first, threads))
            first = last
        return self

    def _of_block(
        self, X: Any, weight: FloatArray, first_row: int, threads: Threads | None
    ) -> RowSketch:
        """A sketch of some rows with the settings of this one."""
        n_rows, drawn = len(weight), []
        if is_sparse(X):
            low, high, missing = self._describe(X.tocsc())
        else:
            found = over_rows(lambda rows: self._describe(X[rows]), n_rows, threads)
            lows, highs, gaps = zip(*found, strict=True)
            low, high = np.fmin.reduce(lows), np.fmax.reduce(highs)
            missing = np.any(gaps, axis=0)
        if self.method != "uniform":
            drawn = [_Drawn(row_hashes(self.seed, first_row, n_rows), X, weight)]
        return replace(
            self, n_rows=n_rows, low=low, high=high, missing=missing,
            min_weight=weight.min(), max_weight=weight.max(), _drawn=drawn,
        )  # fmt: skip

    def _describe(self, X: Any) -> tuple[Any, Any, Mask]:
        """Range of the features, and whether values are missing or unknown."""
        low = high = dense(X.min(axis=0))
        missing = np.isnan(low)
        if missing.any():  # the range is NaN where all values are missing
            low = dense(X.nanmin(axis=0)) if is_sparse(X) else np.fmin.reduce(X)
        if self.method == "uniform":
            high = dense(X.nanmax(axis=0)) if is_sparse(X) else np.fmax.reduce(X)
        for feature, known in self.categories.items():
            missing[feature] = (places_of(known, X[:, feature]) == len(known)).any()
        return low, high, missing

    def merge(self, other: RowSketch) -> None:
        """Add the rows of another sketch with the same seed, method and categories."""
        if not other.n_rows:
            return
        self.low, self.high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        self.missing = self.missing | other.missing
        self.min_weight = min(self.min_weight, other.min_weight)
        self.max_weight = max(self.max_weight, other.max_weight)
        self.n_rows += other.n_rows
        self._drawn += other._drawn
        self._trim(_SLACK)

    def _trim(self, slack: float = 1.0) -> None:
        """Keep the rows with the smallest hashes, in one array: many arrays fragment memory."""
        n_drawn = sum(len(rows.hashes) for rows in self._drawn)
        if self.method == "exact" or n_drawn <= slack * MAX_ROWS:
            return
        hashes = np.concatenate([rows.hashes for rows in self._drawn])
        largest = np.partition(hashes, MAX_ROWS - 1)[MAX_ROWS - 1]
        X, weight = [], []
        for rows in self._drawn:
            kept = np.flatnonzero(rows.hashes <= largest)
            X.append(rows.X[kept])
            weight.append(rows.weight[kept])
        self._drawn = [_Drawn(hashes[hashes <= largest], _joined(X), np.concatenate(weight))]

    def edges(self, n_bins: NDArray[np.int64], threads: Threads) -> list[FloatArray]:
        """Edges of all features between values of the rows that are kept."""
        self._trim()
        X = _joined([rows.X for rows in self._drawn])
        X = X.tocsc() if is_sparse(X) else X
        weight: FloatArray | None = None  # where all are equal
        if self.min_weight < self.max_weight:
            weight = np.concatenate([rows.weight for rows in self._drawn])
            # Multiples of a quantum: rows of equal values are summed in any order.
            exponent = np.frexp(weight.max())[1]
            weight = split_high_low(np.ldexp(weight, -exponent))[0]

        def edges_of(first: int, last: int) -> list[FloatArray]:
            found = []
            for start in range(first, last, _COLUMNS_AT_ONCE):
                features = slice(start, min(start + _COLUMNS_AT_ONCE, last))
                group = X[:, features].toarray() if is_sparse(X) else X[:, features]
                columns = np.ascontiguousarray(group.T)
                for column, number in zip(columns, n_bins[features].tolist(), strict=True):
                    found.append(_edges(column, number, weight))
            return found

        grain = threads.grain(len(n_bins), 1 + ROWS_AT_ONCE // X.shape[0])
        return [edges for part in threads.map(edges_of, len(n_bins), grain) for edges in part]


def _joined(blocks: list[Any]) -> Any:
    """Blocks of rows as one."""
    if len(blocks) == 1:
        return blocks[0]
    return sparse.vstack(blocks, format="csr") if is_sparse(blocks[0]) else np.concatenate(blocks)


def dense(row: Any) -> NDArray[np.floating]:
    """A row of statistics of the columns, (n_features,), of a sparse matrix too."""
    return row.toarray().ravel() if is_sparse(row) else row


@dataclass(frozen=True, eq=False)
class BinMapper:
    """The bins of every feature.

    Attributes
    ----------
    edges : list of ndarray
        Increasing thresholds of every feature; none for a categorical one.
    has_missing : ndarray of bool of shape (n_features,)
        Whether missing values, or unknown categories, were seen beside others.
    categories : mapping of int to ndarray
        Sorted categories of every categorical feature.
    equal_steps : bool
        Whether edges are at equal steps, so that no search is needed.
    """

    edges: list[FloatArray]
    has_missing: Mask
    categories: Mapping[int, FloatArray] = field(default_factory=dict)
    equal_steps: bool = False

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
            Bins of about equal weight, of equal width over the range of the values (as in the
            reference implementation), or one bin for every distinct value.
        max_bins : int
            Maximum number of codes of an ordered feature, that of missing values included; not
            for "exact".
        categories : mapping of int to ndarray, optional
            Features whose values are categories, and the known ones: increasing, at most 255.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights for the quantiles; equal weights have the effect of none.
        seed : int
            Seed of the sample of rows that is used if there are more than 200 000.
        threads : Threads, optional
            Threads that divide the features.
        """
        sketch = RowSketch(seed, method, categories or {}).add(X, sample_weight, threads=threads)
        return cls.from_sketch(sketch, max_bins=max_bins, threads=threads)

    @classmethod
    def from_sketch(
        cls, sketch: RowSketch, *, max_bins: int = MAX_BINS, threads: Threads | None = None
    ) -> BinMapper:
        """Choose the edges from a sketch of the rows."""
        for known in sketch.categories.values():
            if len(known) >= MAX_BINS:
                raise ValueError(f"A feature can have {MAX_BINS - 1} categories, not {len(known)}.")
        if sketch.method == "exact":
            max_bins = sketch.n_rows + 1
        n_bins = np.where(sketch.missing, max_bins - 1, max_bins)
        if sketch.method == "uniform":
            edges = _uniform_edges(sketch, n_bins)
        else:
            edges = sketch.edges(n_bins, threads or Threads())
        all_missing = np.isnan(sketch.low)
        for feature in sketch.categories:
            edges[feature], all_missing[feature] = np.empty(0), False
        has_missing = sketch.missing & ~all_missing
        return cls(edges, has_missing, sketch.categories, sketch.method == "uniform")

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """Number of ordinary bins of every feature, which is also the code of a missing value."""
        n_bins = np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)
        for feature, known in self.categories.items():
            n_bins[feature] = len(known)
        return n_bins

    @cached_property
    def n_codes(self) -> NDArray[np.int64]:
        """Number of codes of every feature: its bins and, if there were any, missing values."""
        return self.n_bins + self.has_missing

    @property
    def usable(self) -> NDArray[np.int64]:
        """Features that are not constant, which searches and draws use."""
        return np.flatnonzero(self.n_codes > 1)

    @cached_property
    def categorical(self) -> Mask:
        """Which features are categorical."""
        categorical = np.zeros(len(self.edges), bool)
        categorical[list(self.categories)] = True
        return categorical

    def transform(
        self, X: Any, threads: Threads | None = None, *, fitted: bool = False
    ) -> NDArray[np.unsignedinteger]:
        """Return the bins of X: shape (n_features, n_samples), in the smallest type that fits.

        With `fitted`, X are the samples that bins were chosen for. In others, values may be missing
        where none were: their code may need a larger type.
        """
        kind, threads = np.min_scalar_type(int(self.n_codes.max()) - 1), threads or Threads()
        lacking = self.n_bins > np.iinfo(kind).max  # features without a code for missing values
        checked = bool(lacking.any()) and not fitted
        bins = getattr(X, "empty_bins", np.empty)(X.shape[::-1], kind)
        first = 0
        for block in blocks_of(X):
            n_rows = block.shape[0]
            if checked and n_rows and np.isnan(dense(block.min(axis=0)))[lacking].any():
                bins, checked = bins.astype(np.min_scalar_type(int(self.n_bins.max()))), False
            if is_sparse(block):
                self._fill_sparse(block.tocsc(), bins, threads)
            else:
                self._fill(block, bins, first, threads)
            first += n_rows
        return bins

    def _fill(
        self, X: Samples, bins: NDArray[np.unsignedinteger], first_row: int, threads: Threads
    ) -> None:
        """Bin a block of rows, whose first is number `first_row`."""
        find = count_steps if self.equal_steps else search_bins
        n_features, at_once = X.shape[1], _BLOCK[0]
        ends = np.cumsum([0, *map(len, self.edges)])
        all_edges = np.concatenate([*self.edges, np.empty(0)])

        def fill(f: int, first: int, last: int) -> None:
            features = slice(f, min(f + at_once, n_features))
            limits = ends[f : features.stop + 1]
            for row in range(first, last, _BLOCK[1]):
                block = X[row : min(row + _BLOCK[1], last), features]
                values = np.array(block.T, np.float64, order="C")  # as kernels are compiled for
                find(values, all_edges, limits, bins, f, first_row + row)

        rows = threads.parts(len(X), ROWS_AT_ONCE)
        threads.run(fill, ((f, *part) for f in range(0, n_features, at_once) for part in rows))

        def place(rows: slice) -> None:
            for feature, known in self.categories.items():
                bins[feature, first_row:][rows] = places_of(known, X[rows, feature])

        if self.categories:
            over_rows(place, len(X), threads)

    def _fill_sparse(self, X: Any, bins: NDArray[np.unsignedinteger], threads: Threads) -> None:
        """Bin the columns of a sparse matrix: all zeros at once, then the other values."""
        find = count_steps if self.equal_steps else search_bins
        X.sum_duplicates()

        def fill(first: int, last: int) -> None:
            for feature in range(first, last):
                here = slice(X.indptr[feature], X.indptr[feature + 1])
                values = np.append(X.data[here], 0.0).astype(np.float64)[np.newaxis]
                edges = self.edges[feature]
                codes = np.empty(values.shape, bins.dtype)
                find(values, edges, np.array([0, len(edges)]), codes, 0, 0)
                bins[feature] = codes[0, -1]
                bins[feature, X.indices[here]] = codes[0, :-1]

        threads.map(fill, X.shape[1])

    def thresholds(self, features: RowNumbers, positions: RowNumbers) -> FloatArray:
        """Upper limits of the bins `positions` of some features, inf for the last bin."""
        edges, places = self.edges, zip(features.tolist(), positions.tolist(), strict=True)
        return np.array([edges[f][s] if s < len(edges[f]) else np.inf for f, s in places])


@dataclass(frozen=True, eq=False)
class BinnedData:
    """Binned samples: bins of shape (n_features, n_samples), and their `BinMapper`.

    Values may be missing where none were when bins were chosen, unless it is `fitted` to them.
    """

    mapper: BinMapper
    bins: NDArray[np.unsignedinteger]
    fitted: bool = False

    @cached_property
    def has_missing(self) -> Mask:
        """Which features have missing values here, beside others if the mapper is fitted."""
        if self.fitted:
            return self.mapper.has_missing
        highest = self.bins.max(axis=1, initial=0)
        return self.mapper.has_missing | (highest >= self.mapper.n_bins)

    @cached_property
    def kernel_data(self) -> Data:
        """Bins and features as kernels take them."""
        usable = np.flatnonzero(self.n_codes > 1)
        return Data(self.bins, self.mapper.n_bins, self.n_codes, self.mapper.categorical, usable)

    @cached_property
    def n_codes(self) -> NDArray[np.int64]:
        """Number of codes of every feature."""
        return self.mapper.n_bins + self.has_missing


def _edges(column: Samples, n_bins: int, sample_weight: FloatArray | None) -> FloatArray:
    """Edges of at most `n_bins` bins of one feature, from the values that are present."""
    if sample_weight is None:
        values = np.sort(column)
        cumulated = np.arange(1.0, len(values) + 1.0)
    else:
        order = np.argsort(column, kind="stable")
        values = column[order]
        cumulated = np.cumsum(sample_weight[order])
    n_present = np.searchsorted(values, column.dtype.type(np.nan))  # missing values come last
    if not n_present:
        return np.empty(0)
    values, cumulated = values[:n_present], cumulated[:n_present]
    last_of_value = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    values, cumulated = values[last_of_value], cumulated[last_of_value]
    if len(values) > n_bins:
        quantiles = cumulated[-1] * np.arange(1, n_bins) / n_bins
        # A frequent largest value has no neighbour above: the cut is below it.
        cuts = np.unique(np.minimum(np.searchsorted(cumulated, quantiles), len(values) - 2))
    else:
        cuts = np.arange(len(values) - 1)
    return _midpoints(values[cuts], values[cuts + 1])


def _midpoints(low: NDArray[np.floating], high: NDArray[np.floating]) -> FloatArray:
    """Thresholds with ``low < threshold <= high``, halfway where there is a number between."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle = 0.5 * low + 0.5 * high
    between = np.where((low < middle) & (middle <= high), middle, high)
    return np.asarray(between + 0.0)  # zero has one sign


def _uniform_edges(sketch: RowSketch, n_bins: NDArray[np.int64]) -> list[FloatArray]:
    """Edges at equal steps, computed in the type of the values as the reference does.

    Ranges are widened a little on both sides. A feature that is constant or has no values has no
    edges.
    """
    is_constant = (sketch.low == sketch.high) & ~sketch.missing
    kind = sketch.low.dtype.type
    low, high = sketch.low - kind(_UNIFORM_MARGIN), sketch.high + kind(_UNIFORM_MARGIN)
    steps = (n_bins - 1).astype(kind)[:, None]
    middles = np.arange(n_bins.max(initial=1) - 1, dtype=kind) + kind(0.5)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        span = (high - low)[:, None]
        edges = low[:, None] + (span / steps) * middles
        fractions = middles / steps
        outer = low[:, None] * (1 - fractions) + high[:, None] * fractions
    edges = np.where(np.isinf(span), outer, edges).astype(np.float64)  # of spans that overflow
    return [
        np.empty(0) if none else np.unique(row[: number - 1])
        for none, row, number in zip(is_constant | np.isnan(low), edges, n_bins, strict=True)
    ]
