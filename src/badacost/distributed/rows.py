"""Rows as they come to a worker, until they are bins.

Classes and weights go to whoever trains, who knows those of all rows, and come back with the bins.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from badacost.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost.boosting.fit_part import FitPart
from badacost.boosting.folds import mix_columns
from badacost.categorical_columns import CategoricalColumns, count_categories
from badacost.distributed.parts import Chunk, worker_threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.sampling import RowSketch
from badacost.validation import check_block


class Description(NamedTuple):
    """Classes and weights of a chunk, and how often categories occur in rows that have a weight.

    Attributes
    ----------
    labels : ndarray
        Distinct classes.
    codes : ndarray of shape (n_rows,)
        Places of the classes of all rows among them.
    weight : ndarray of shape (n_rows,) or None
        Weights, not checked.
    categories : dict
        Numbers of each category, by column.
    """

    labels: NDArray[Any]
    codes: NDArray[np.unsignedinteger]
    weight: NDArray[Any] | None
    categories: dict[int, Counter[Any]]


class RowsPart(FitPart):
    """The rows of a worker: as they came, then checked and in some order, then bins."""

    def __init__(self, chunks: list[Chunk]):
        self._chunks = chunks
        self._blocks: list[Samples] = []
        self._held_out: list[Samples] = []

    def describe(self, positions: list[int]) -> list[Description]:
        """Look at all chunks; `positions` are those of categorical columns."""
        return [_described(*chunk, positions) for chunk in self._chunks]

    def check(self, columns: CategoricalColumns, kept: Mask | None) -> list[tuple[int, Any]]:
        """Turn samples into numbers, those without weight left out; tell their shape and type."""
        first = 0
        for X, *_ in self._chunks:
            block = check_block(columns, X)
            last = first + len(block)
            self._blocks.append(block if kept is None else block[kept[first:last]])
            first = last
        self._chunks = []
        return [(block.shape[1], block.dtype) for block in self._blocks]

    def mixed_values(self, seed: int) -> NDArray[np.uint64]:
        """Numbers that depend on the values of the rows, see `mix_columns`."""
        return np.concatenate([mix_columns(block.T, len(block), seed) for block in self._blocks])

    def some_rows(self, rows: RowNumbers) -> Samples:
        """Values of some rows."""
        ends = np.cumsum([0, *map(len, self._blocks)])
        found = [
            block[rows[(first <= rows) & (rows < first + len(block))] - first]
            for block, first in zip(self._blocks, ends, strict=False)
        ]
        return np.concatenate(found)

    def hold_out(self, held: Mask) -> None:
        """Lay some rows aside for validation."""
        first = 0
        for number, block in enumerate(self._blocks):
            chosen = held[first : first + len(block)]
            first += len(block)
            self._held_out.append(block[chosen])
            self._blocks[number] = block[~chosen]

    def sketch(self, empty: RowSketch, weight: FloatArray, first_row: int) -> RowSketch:
        """Feed a sketch with all rows."""
        first = 0
        for block in self._blocks:
            last = first + len(block)
            empty.add(block, weight[first:last], first_row=first_row + first)
            first = last
        return empty

    def bin(self, mapper: BinMapper, y: Labels, weight: FloatArray, first_row: int) -> None:
        """Put the rows into bins, and let go of their values."""
        bins = self._bins(mapper, self._blocks, fitted=True)
        self._blocks = []
        super().__init__(BinnedData(mapper, bins), y, weight, first_row, worker_threads())

    def held_out_bins(self, mapper: BinMapper) -> NDArray[np.unsignedinteger]:
        """Bins of the rows that were laid aside."""
        return self._bins(mapper, self._held_out)

    def all_bins(self, mapper: BinMapper) -> NDArray[np.unsignedinteger]:
        """Bins of all rows, in the place of their values."""
        return self._bins(mapper, self._blocks)

    def _bins(
        self, mapper: BinMapper, blocks: list[Samples], *, fitted: bool = False
    ) -> NDArray[np.unsignedinteger]:
        threads = worker_threads()
        bins = [mapper.transform(block, threads, fitted=fitted) for block in blocks]
        return np.concatenate(bins, axis=1)


def _described(X: Any, y: Any, weight: Any, positions: list[int]) -> Description:
    """Description of a chunk."""
    labels, codes = np.unique(column_or_1d(y), return_inverse=True)
    if len(codes) != len(X):
        raise ValueError(
            f"A chunk of X has {len(X)} rows, and that of y {len(codes)}: divide both alike, for "
            "example as columns of one data frame."
        )
    rows: Any = slice(None) if weight is None else np.asarray(weight) > 0.0
    codes = codes.astype(np.min_scalar_type(max(len(labels) - 1, 0)))
    counts = count_categories(X, positions, rows) if len(X) else {}
    return Description(labels, codes, None if weight is None else np.asarray(weight), counts)
