"""What bin edges are chosen from: some rows of a training set, and the range of all of them.

The rows with the smallest hashes of seed and row number are kept. A sketch can be fed a block of
rows at a time, in any order and in several places, and is the same whatever the division.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Mask, RowNumbers, Samples
from badacost.large_samples import LargeSamples, is_sparse
from badacost.threads import Threads

BinningMethod = Literal["quantile", "uniform", "exact"]

MAX_ROWS = 200_000  # quantiles of more rows than this are estimated on a random part of them
_COLUMNS_AT_ONCE = 8  # columns of a row-major matrix are cheaper to read in small groups
_SLACK = 1.5  # times as many rows are kept at most while rows are added
_STEP = 0x9E3779B97F4A7C15


def row_hashes(seed: int, first_row: int, n_rows: int, xp: Any = np) -> NDArray[np.uint64]:
    """Hashes of the rows ``first_row ..`` of a data set; those of different rows are different."""
    start = int(_mixed(np.array([seed], np.uint64))[0]) + (first_row + 1) * _STEP
    hashes = xp.arange(n_rows, dtype=np.uint64)
    hashes *= np.uint64(_STEP)
    hashes += np.uint64(start % 2**64)
    return _mixed(hashes)


def draw_rows(rows: Any, share: float, key: tuple[int, ...], first_row: int, xp: Any = np) -> Any:
    """Draw each of some rows with a probability, whatever happens to the others.

    What is drawn depends on the key and on the number of a row in the whole data set, of which
    these are counted from `first_row` on. `xp` is numpy, or the module that the rows belong to.
    """
    if share == 1.0 or not len(rows):
        return rows
    seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
    hashes = row_hashes(seed, first_row, int(rows.max()) + 1, xp)
    return rows[hashes[rows] < np.uint64(int(share * 2.0**64))]


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words as random as those of the generator SplitMix64, in place; the map is one to one."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def places_of(known: Any, column: NDArray[np.floating]) -> NDArray[np.intp]:
    """Places of values among sorted categories; after the last for others and for NaN."""
    places = np.searchsorted(known, column)
    found = np.append(known, np.nan)[places] == column
    return np.where(found, places, len(known))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Rows that are kept: those numbered `rows` of X, or all of them."""

    hashes: NDArray[np.uint64]
    X: Any
    rows: RowNumbers | None
    weight: FloatArray

    def columns(self, features: slice) -> NDArray[np.floating]:
        """Some columns of the rows."""
        if is_sparse(self.X):
            return np.asarray(self.X[:, features].toarray())
        return self.X[:, features] if self.rows is None else self.X[:, features][self.rows]

    def at_most(self, largest: int) -> _Drawn:
        """Those whose hash is at most `largest`."""
        kept = np.flatnonzero(self.hashes <= largest)
        if len(kept) == len(self.hashes):
            return self
        rows = kept if self.rows is None else self.rows[kept]
        return _Drawn(self.hashes[kept], self.X, rows, self.weight[kept])

    def copied(self) -> _Drawn:
        """The same without the other rows of X."""
        if self.rows is None:
            return self
        return _Drawn(self.hashes, self.X[self.rows], None, self.weight)

    def by_column(self) -> _Drawn:
        """The same with quick access to the columns of a sparse matrix."""
        if not is_sparse(self.X):
            return self
        return _Drawn(self.hashes, self.copied().X.tocsc(), None, self.weight)


@dataclass(eq=False)
class RowSketch:
    """Rows to choose bin edges from, see `badacost.tree.binning.BinMapper.from_sketch`.

    `method` says what is needed of them: rows for quantiles, the range of the values for uniform
    bins, all rows for exact ones. Features that are `categories` have no range.
    """

    seed: int = 0
    method: BinningMethod = "quantile"
    categories: Mapping[int, FloatArray] = field(default_factory=dict)
    n_rows: int = 0
    missing: Mask = field(default_factory=lambda: np.zeros(0, bool))
    low: NDArray[np.floating] = field(default_factory=lambda: np.empty(0, np.float32))
    high: NDArray[np.floating] = field(default_factory=lambda: np.empty(0, np.float32))
    weights: tuple[float, float] = (np.inf, -np.inf)  # the smallest and the largest
    _drawn: list[_Drawn] = field(default_factory=list)
    _largest: int = 2**64 - 1  # hash that a row may have to be kept

    def add_all(
        self, X: Any, sample_weight: FloatArray | None, threads: Threads | None = None
    ) -> None:
        """Look at all rows of samples of any kind."""
        if not isinstance(X, LargeSamples):
            self.add(X, sample_weight, copy=False, threads=threads)
            return
        first = 0
        for block in X.blocks():
            rows = slice(first, first + len(block))
            weight = None if sample_weight is None else sample_weight[rows]
            self.add(block, weight, threads=threads)
            first += len(block)

    def add(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        first_row: int | None = None,
        copy: bool = True,
        threads: Threads | None = None,
    ) -> None:
        """Look at rows ``first_row ..`` of the whole; by default they follow those seen before.

        Without `copy` the rows stay where they are, in X.
        """
        n_rows, n_features = X.shape
        if not n_rows:
            return
        first_row = self.n_rows if first_row is None else first_row
        weight = np.broadcast_to(1.0, n_rows) if sample_weight is None else sample_weight
        if is_sparse(X):
            found = [self._look_at_sparse(X)]
        else:
            found = (threads or Threads()).map(lambda a, b: self._look(X, a, b), n_features)
        low, high, missing = (np.concatenate(parts) for parts in zip(*found, strict=True))
        self._widen(low, high, missing, (float(weight.min()), float(weight.max())))
        self.n_rows += n_rows
        if self.method != "uniform":
            drawn = _Drawn(row_hashes(self.seed, first_row, n_rows), X, None, weight)
            if self.method == "quantile":
                drawn = drawn.at_most(min(self._largest, _largest_kept([drawn])))
            self._draw([drawn.copied() if copy else drawn])

    def merge(self, other: RowSketch) -> None:
        """Add what another sketch of the same seed, method and categories saw of other rows."""
        if other.n_rows:
            self._widen(other.low, other.high, other.missing, other.weights)
            self.n_rows += other.n_rows
            self._draw(other._drawn)

    def _look(self, X: Samples, first: int, last: int) -> tuple[Any, Any, Mask]:
        """Range of the features first..last, and whether values are missing or unknown."""
        columns = X[:, first:last]
        low = columns.min(axis=0)
        missing = np.isnan(low)
        high = low
        if self.method == "uniform":
            high = columns.max(axis=0)
            for j in np.flatnonzero(missing):
                low[j] = np.fmin.reduce(columns[:, j])
                high[j] = np.fmax.reduce(columns[:, j])
        for feature in self.categories.keys() & set(range(first, last)):
            known = self.categories[feature]
            places = places_of(known, X[:, feature])
            missing[feature - first] = (places == len(known)).any()
        return low, high, missing

    def _look_at_sparse(self, X: Any) -> tuple[Any, Any, Mask]:
        """The same for all features of a sparse matrix, none of which is categorical."""
        by_column = X.tocsc()
        low = by_column.min(axis=0).toarray().ravel()
        missing = np.isnan(low)
        if self.method != "uniform":
            return low, low, missing
        low, high = by_column.nanmin(axis=0), by_column.nanmax(axis=0)
        return low.toarray().ravel(), high.toarray().ravel(), missing

    def _widen(self, low: Any, high: Any, missing: Mask, weights: tuple[float, float]) -> None:
        if self.n_rows:
            low, high = np.fmin(self.low, low), np.fmax(self.high, high)
            missing = self.missing | missing
        self.low, self.high, self.missing = low, high, missing
        self.weights = min(self.weights[0], weights[0]), max(self.weights[1], weights[1])

    def _draw(self, drawn: list[_Drawn]) -> None:
        """Keep further rows; many more than needed would take memory."""
        self._drawn += [rows for rows in drawn if len(rows.hashes)]
        if sum(len(rows.hashes) for rows in self._drawn) > _SLACK * MAX_ROWS:
            self._trim()

    def _trim(self) -> None:
        """Keep no more rows than needed."""
        if self.method == "quantile":
            self._largest = min(self._largest, _largest_kept(self._drawn))
            kept = [rows.at_most(self._largest) for rows in self._drawn]
            self._drawn = [rows.copied() for rows in kept] if len(kept) > 1 else kept

    def sample_weight(self) -> FloatArray | None:
        """Weights of the rows that are kept; None if those of all rows are equal."""
        if self.weights[0] == self.weights[1]:
            return None
        self._trim()
        return np.concatenate([rows.weight for rows in self._drawn])

    def columns(self) -> Callable[[int, int], Iterator[NDArray[np.floating]]]:
        """A function that yields contiguous columns first..last of the rows."""
        self._trim()
        return partial(_columns, [rows.by_column() for rows in self._drawn])


def _columns(drawn: list[_Drawn], first: int, last: int) -> Iterator[NDArray[np.floating]]:
    """Contiguous copies of the columns first..last, a few at a time."""
    for start in range(first, last, _COLUMNS_AT_ONCE):
        features = slice(start, min(start + _COLUMNS_AT_ONCE, last))
        groups = [rows.columns(features) for rows in drawn]
        group = groups[0] if len(groups) == 1 else np.concatenate(groups)
        yield from np.ascontiguousarray(group.T)


def _largest_kept(drawn: list[_Drawn]) -> int:
    """The hash up to which as many rows are kept as are needed."""
    hashes = np.concatenate([rows.hashes for rows in drawn])
    if len(hashes) <= MAX_ROWS:
        return 2**64 - 1
    return int(np.partition(hashes, MAX_ROWS - 1)[MAX_ROWS - 1])
