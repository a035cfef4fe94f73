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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
_COLUMNS_AT_ONCE = 8  # columns of a row-major matrix are read faster in small groups
_SLACK = 1.5  # maximum number of rows that are kept while rows are added, relative to MAX_ROWS
_STEP = 0x9E3779B97F4A7C15


_CELLS_AT_ONCE = 2**22


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sparse.issparse(X))


def row_blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of rows that have some million cells."""
    step = max(1, _CELLS_AT_ONCE // max(1, n_features))
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def blocks_of(X: Any) -> Iterator[Samples]:
    """The rows of any samples as dense blocks; an array in memory is one."""
    if isinstance(X, LargeSamples):
        yield from X.blocks()
    elif is_sparse(X):
        for rows in row_blocks(*X.shape):
            yield X[rows].toarray()
    else:
        yield X


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


def _codes_of(known: Any, column: Any, dtype: Any, rows: slice) -> NDArray[np.unsignedinteger]:
    return places_of(known, column[rows]).astype(dtype)


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
    missing: Mask = field(default_factory=lambda: np.zeros(0, bool))  # of each feature
    low: NDArray[np.floating] = field(default_factory=lambda: np.empty(0, np.float32))
    high: NDArray[np.floating] = field(default_factory=lambda: np.empty(0, np.float32))
    weights: tuple[float, float] = (np.inf, -np.inf)  # the smallest and the largest
    _drawn: list[_Drawn] = field(default_factory=list)

    def add_all(
        self,
        X: Any,
        sample_weight: FloatArray | None,
        threads: Threads | None = None,
        first_row: int = 0,
    ) -> RowSketch:
        """Add samples of any kind, the rows ``first_row ..`` of the whole; return the sketch."""
        first = 0
        for block in X.blocks() if isinstance(X, LargeSamples) else [X]:
            last = first + block.shape[0]
            weight = None if sample_weight is None else sample_weight[first:last]
            self.add(block, weight, first_row=first_row + first, threads=threads)
            first = last
        return self

    def add(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        first_row: int | None = None,
        threads: Threads | None = None,
    ) -> None:
        """Add rows ``first_row ..`` of the whole; by default they follow the rows added before."""
        n_rows = X.shape[0]
        if not n_rows:
            return
        first_row = self.n_rows if first_row is None else first_row
        weight = np.broadcast_to(1.0, n_rows) if sample_weight is None else sample_weight
        if is_sparse(X):
            low, high, missing = self._describe(X.tocsc())
        else:
            found = over_rows(lambda rows: self._describe(X[rows]), n_rows, threads)
            lows, highs, gaps = zip(*found, strict=True)
            low, high = np.fmin.reduce(lows), np.fmax.reduce(highs)
            missing = np.any(gaps, axis=0)
        self._widen(low, high, missing, (float(weight.min()), float(weight.max())))
        self.n_rows += n_rows
        if self.method != "uniform":
            drawn = _Drawn(row_hashes(self.seed, first_row, n_rows), X, weight)
            self._draw(_smallest([drawn]) if self.method == "quantile" else [drawn])

    def merge(self, other: RowSketch) -> None:
        """Add the rows of another sketch with the same seed, method and categories."""
        if other.n_rows:
            self._widen(other.low, other.high, other.missing, other.weights)
            self.n_rows += other.n_rows
            self._draw(other._drawn)

    def _describe(self, X: Any) -> tuple[Any, Any, Mask]:
        """Range of the features, and whether values are missing or unknown."""
        low = high = dense(X.min(axis=0))
        missing, equal_steps = np.isnan(low), self.method == "uniform"
        if not missing.any():
            high = dense(X.max(axis=0)) if equal_steps else low
        elif is_sparse(X):  # both are NaN where all values are missing
            low, high = dense(X.nanmin(axis=0)), dense(X.nanmax(axis=0))
        else:
            low = np.fmin.reduce(X)
            high = np.fmax.reduce(X) if equal_steps else low
        for feature, known in self.categories.items():
            missing[feature] = (places_of(known, X[:, feature]) == len(known)).any()
        return low, high, missing

    def _widen(self, low: Any, high: Any, missing: Mask, weights: tuple[float, float]) -> None:
        if self.n_rows:
            low, high = np.fmin(self.low, low), np.fmax(self.high, high)
            missing = self.missing | missing
        self.low, self.high, self.missing = low, high, missing
        self.weights = min(self.weights[0], weights[0]), max(self.weights[1], weights[1])

    def _draw(self, drawn: list[_Drawn]) -> None:
        """Add rows to those that are kept, and trim these where they take much more memory."""
        self._drawn += [rows for rows in drawn if len(rows.hashes)]
        if sum(len(rows.hashes) for rows in self._drawn) > _SLACK * MAX_ROWS:
            self._trim()

    def _trim(self) -> None:
        """Drop the rows that are not needed, and join the others: many arrays fragment memory."""
        if self.method != "quantile":
            return
        self._drawn = kept = _smallest(self._drawn)
        if len(kept) > 1:
            hashes, X, weight = zip(*kept, strict=True)
            joined = sparse.vstack(X, format="csr") if is_sparse(X[0]) else np.concatenate(X)
            self._drawn = [_Drawn(np.concatenate(hashes), joined, np.concatenate(weight))]

    def sample_weight(self) -> FloatArray | None:
        """Weights of the rows that are kept; None if those of all rows are equal."""
        if self.weights[0] == self.weights[1]:
            return None
        self._trim()
        return np.concatenate([rows.weight for rows in self._drawn])

    def columns(self) -> Callable[[int, int], Iterator[NDArray[np.floating]]]:
        """A function that yields contiguous columns first..last of the rows."""
        self._trim()
        X = [rows.X.tocsc() if is_sparse(rows.X) else rows.X for rows in self._drawn]

        def columns(first: int, last: int) -> Iterator[NDArray[np.floating]]:
            for start in range(first, last, _COLUMNS_AT_ONCE):
                features = slice(start, min(start + _COLUMNS_AT_ONCE, last))
                groups = [x[:, features].toarray() if is_sparse(x) else x[:, features] for x in X]
                group = groups[0] if len(groups) == 1 else np.concatenate(groups)
                yield from np.ascontiguousarray(group.T)

        return columns


def _smallest(drawn: list[_Drawn]) -> list[_Drawn]:
    """The `MAX_ROWS` rows with the smallest hashes; no copies where all rows are kept."""
    hashes = np.concatenate([rows.hashes for rows in drawn])
    if len(hashes) <= MAX_ROWS:
        return drawn
    largest = np.partition(hashes, MAX_ROWS - 1)[MAX_ROWS - 1]
    kept = [np.flatnonzero(rows.hashes <= largest) for rows in drawn]
    return [
        _Drawn(rows.hashes[some], rows.X[some], rows.weight[some])
        for rows, some in zip(drawn, kept, strict=True)
    ]


def dense(row: Any) -> NDArray[np.floating]:
    """A row of statistics of the columns, (n_features,), of a sparse matrix too."""
    return row.toarray().ravel() if is_sparse(row) else row


MAX_BINS = 256
_BLOCK = (64, 512)  # features and rows that are binned together
_UNIFORM_MARGIN = 0.01  # the reference widens the range of every feature by this on both sides


@dataclass(frozen=True, eq=False)
class BinMapper:
    """The bins of every feature.

    Attributes
    ----------
    edges : list of ndarray
        Increasing thresholds of every feature; none for a categorical one.
    has_missing : ndarray of bool of shape (n_features,)
        Whether missing values, or unknown categories, were seen beside others.
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
        sketch = RowSketch(seed, method, categories or {}).add_all(X, sample_weight, threads)
        return cls.from_sketch(sketch, max_bins=max_bins, threads=threads)

    @classmethod
    def from_sketch(
        cls, sketch: RowSketch, *, max_bins: int = MAX_BINS, threads: Threads | None = None
    ) -> BinMapper:
        """Choose the edges from a sketch of the rows."""
        for known in sketch.categories.values():
            if len(known) >= MAX_BINS:
                raise ValueError(f"A feature can have {MAX_BINS - 1} categories, not {len(known)}.")
        n_bins = np.where(sketch.missing, max_bins - 1, max_bins)
        if sketch.method == "uniform":
            edges = _uniform_edges(sketch.low, sketch.high, n_bins)
            is_constant = (sketch.low == sketch.high) & ~sketch.missing
            edges = [own[:0] if one else own for own, one in zip(edges, is_constant, strict=True)]
        else:
            edges = _sampled_edges(sketch, n_bins, threads or Threads())
        known_of: list[FloatArray | None] = [None] * len(edges)
        for feature, known in sketch.categories.items():
            known_of[feature], edges[feature] = known, np.empty(0)
        is_categorical = np.array([known is not None for known in known_of])
        empty = np.isnan(sketch.low) & ~is_categorical  # all values are missing
        return cls(edges, sketch.missing & ~empty, known_of, sketch.method == "uniform")

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """Number of ordinary bins of every feature, which is also the code of a missing value."""
        counts = [
            len(edges) + 1 if known is None else len(known)
            for edges, known in zip(self.edges, self.categories, strict=True)
        ]
        return np.array(counts, dtype=np.int64)

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
        return np.array([known is not None for known in self.categories])

    def transform(
        self, X: Any, threads: Threads | None = None, *, fitted: bool = False
    ) -> NDArray[np.unsignedinteger]:
        """Return the bins of X: shape (n_features, n_samples), in the smallest type that fits.

        With `fitted`, X are the samples that bins were chosen for. In others, values may be missing
        where none were: their code may need a larger type.
        """
        n_codes = self.n_codes
        n_held = 256 ** np.min_scalar_type(int(n_codes.max()) - 1).itemsize
        full = (self.n_bins == n_held) & ~self.has_missing
        if self.categorical.any():
            n_codes = np.maximum(n_codes, self.n_bins + self.categorical)
        kind, threads = np.min_scalar_type(int(n_codes.max()) - 1), threads or Threads()
        bins = getattr(X, "empty_bins", np.empty)(X.shape[::-1], kind)
        first = 0
        block: Any
        for block in [X] if is_sparse(X) else blocks_of(X):
            n_rows = block.shape[0]
            if (
                not fitted
                and n_rows
                and full.any()
                and np.isnan(dense(block.min(axis=0)))[full].any()
            ):
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
        """Bin a block of rows, whose first is number `first_row`."""
        find = count_steps if self.equal_steps else search_bins
        n_features, at_once = X.shape[1], _BLOCK[0]
        ends = [0, *np.cumsum([len(edges) for edges in self.edges])]
        all_edges = np.concatenate([*self.edges, np.empty(0)])

        def fill(f: int, first: int, last: int) -> None:
            features = slice(f, min(f + at_once, n_features))
            limits = np.array(ends[f : features.stop + 1])
            # One layout and type for the kernels, and a buffer that is used again.
            memory = np.empty((features.stop - f) * _BLOCK[1])
            for row in range(first, last, _BLOCK[1]):
                block = X[row : min(row + _BLOCK[1], last), features]
                values = memory[: block.size].reshape(block.shape[::-1])
                np.copyto(values, block.T)
                find(values, all_edges, limits, bins, f, first_row + row)

        rows = threads.parts(len(X), ROWS_AT_ONCE)
        threads.run(fill, ((f, *part) for f in range(0, n_features, at_once) for part in rows))
        for feature in np.flatnonzero(self.categorical):
            codes, known = bins[feature, first_row:], self.categories[feature]

            def place(
                part: slice, codes: Any = codes, known: Any = known, f: Any = feature
            ) -> None:
                codes[part] = places_of(known, X[part, f])

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
        return np.array(
            [
                self.edges[feature][position] if position < len(self.edges[feature]) else np.inf
                for feature, position in zip(features.tolist(), positions.tolist(), strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class BinnedData:
    """Binned samples: bins of shape (n_features, n_samples), and their `BinMapper`.

    Values may be missing where none were when bins were chosen.
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
        """Choose bins for a training set and bin it, see `BinMapper.fit`.

        A `sketch` of the training set, made with the same settings, saves one pass over it.
        """
        if sketch is None:
            sketch = RowSketch(seed, method, categories or {}).add_all(X, sample_weight, threads)
        mapper = BinMapper.from_sketch(sketch, max_bins=max_bins, threads=threads)
        data = cls(mapper, mapper.transform(X, threads, fitted=True))
        data.__dict__["has_missing"] = mapper.has_missing  # known without a pass over the bins
        return data

    @cached_property
    def has_missing(self) -> Mask:
        """Which features have missing values here."""
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


def _sampled_edges(
    sketch: RowSketch, n_bins: NDArray[np.int64], threads: Threads
) -> list[FloatArray]:
    """Edges of all features, from the rows of a sketch."""
    sample_weight, columns = sketch.sample_weight(), sketch.columns()
    if sample_weight is not None:
        # Multiples of a quantum: rows of equal values are summed in any order.
        exponent = np.frexp(sample_weight.max())[1]
        sample_weight = split_high_low(np.ldexp(sample_weight, -exponent))[0]

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


def _uniform_edges(
    low: NDArray[np.floating], high: NDArray[np.floating], n_bins: NDArray[np.int64]
) -> list[FloatArray]:
    """Edges at equal steps, computed in the type of the values as the reference does.

    Ranges are widened a little on both sides. A feature without values has no edges.
    """
    kind = low.dtype.type
    low, high = low - kind(_UNIFORM_MARGIN), high + kind(_UNIFORM_MARGIN)
    steps = (n_bins - 1).astype(kind)[:, None]
    middles = np.arange(n_bins.max(initial=1) - 1, dtype=kind) + kind(0.5)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        span = (high - low)[:, None]
        edges = low[:, None] + (span / steps) * middles
        fractions = middles / steps
        outer = low[:, None] * (1 - fractions) + high[:, None] * fractions
    edges = np.where(np.isinf(span), outer, edges).astype(np.float64)  # of spans that overflow
    return [
        np.empty(0) if np.isnan(least) else np.unique(row[: number - 1])
        for least, row, number in zip(low, edges, n_bins.tolist(), strict=True)
    ]
