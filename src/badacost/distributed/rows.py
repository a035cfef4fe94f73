"""Rows as they come to a worker, until they are bins.

Classes and weights go to whoever trains, who knows those of all rows, and come back with the bins.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from badacost.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost.boosting.fit_part import FitPart
from badacost.boosting.folds import mix_columns
from badacost.categorical_columns import CategoricalColumns, count_categories, is_missing
from badacost.distributed.collections import n_rows
from badacost.distributed.parts import Chunk, worker_threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.sampling import RowSketch
from badacost.validation import SAMPLES, category_order, remedies


class Description(NamedTuple):
    """Classes and weights of a chunk, and how often categories occur in rows that have a weight.

    Attributes
    ----------
    labels : ndarray
        Distinct classes.
    order : list or None
        All classes in their order, if that is known.
    codes : ndarray of shape (n_rows,)
        Places of the classes of all rows among `labels`.
    weight : ndarray of shape (n_rows,) or None
        Weights, not checked.
    categories : dict
        Numbers of each category, by column.
    """

    labels: NDArray[Any]
    order: list[Any] | None
    codes: NDArray[np.integer]
    weight: NDArray[Any] | None
    categories: dict[int, Counter[Any]]


class RowsPart(FitPart):
    """The rows of a worker: as they came, then as checked blocks, then bins."""

    def __init__(self, chunks: list[Chunk]):
        self._chunks = chunks
        self._blocks: list[Samples] = []
        self._held_out: list[Samples] = []

    def describe(self, positions: list[int]) -> list[Description]:
        """Look at all chunks; `positions` are those of categorical columns."""
        return [_described(chunk, positions) for chunk in self._chunks]

    def check(self, columns: CategoricalColumns, kept: Mask | None) -> None:
        """Turn samples into numbers, those without weight left out."""
        blocks = []
        for X, *_ in self._chunks:
            encoded = columns.encode(X)
            with remedies(encoded):
                blocks.append(check_array(encoded, ensure_min_samples=0, **SAMPLES))
        self._chunks = []
        self._blocks = blocks if kept is None else _some(blocks, kept)

    def mixed_values(self, seed: int) -> NDArray[np.uint64]:
        """Numbers that depend on the values of the rows, see `mix_columns`."""
        return np.concatenate([mix_columns(block.T, len(block), seed) for block in self._blocks])

    def some_rows(self, rows: RowNumbers) -> Samples:
        """Values of some rows, in increasing order."""
        chosen = np.zeros(sum(map(len, self._blocks)), bool)
        chosen[rows] = True
        return np.concatenate(_some(self._blocks, chosen))

    def hold_out(self, held: Mask) -> None:
        """Lay some rows aside for validation."""
        self._held_out = _some(self._blocks, held)
        self._blocks = _some(self._blocks, ~held)

    def sketch(self, empty: RowSketch, weight: FloatArray, first_row: int) -> RowSketch:
        """Feed a sketch with all rows."""
        first, threads = 0, worker_threads()
        for block in self._blocks:
            last = first + len(block)
            empty.add(block, weight[first:last], first_row=first_row + first, threads=threads)
            first = last
        return empty

    def bin(self, mapper: BinMapper, y: Labels, weight: FloatArray, first_row: int) -> None:
        """Put the rows into bins, and let go of their values."""
        threads = worker_threads()
        bins = [mapper.transform(block, threads, fitted=True) for block in self._blocks]
        self._blocks = []
        data = BinnedData(mapper, np.concatenate(bins, axis=1))
        super().__init__(data, y, weight, first_row, threads)

    def unseen_bins(self, mapper: BinMapper, held_out: bool) -> NDArray[np.unsignedinteger]:
        """Bins of rows that are no training samples: those that were held out, or all."""
        blocks, threads = self._held_out if held_out else self._blocks, worker_threads()
        return np.concatenate([mapper.transform(block, threads) for block in blocks], axis=1)


def _some(blocks: list[Samples], chosen: Mask) -> list[Samples]:
    """The chosen rows of blocks."""
    ends = np.cumsum([0, *map(len, blocks)])
    return [block[chosen[a : a + len(block)]] for block, a in zip(blocks, ends, strict=False)]


def _described(chunk: Chunk, positions: list[int]) -> Description:
    """Description of a chunk."""
    X, y, weight = chunk
    n_samples = n_rows(X)
    labels, codes = _distinct(y)
    given = None if weight is None else _numbers(weight)
    for name, n in (("y", len(codes)), ("sample_weight", len(codes if given is None else given))):
        if n != n_samples:
            raise ValueError(
                f"A chunk of X has {n_samples} rows, but that of {name} has {n}: divide them "
                "alike, for example as columns of one data frame."
            )
    rows: Any = slice(None) if given is None else given > 0.0
    codes = codes.astype(np.min_scalar_type(max(len(labels) - 1, 0)))
    counts = count_categories(X, positions, rows) if n_samples else {}
    return Description(labels, category_order(y), codes, given, counts)


def _distinct(y: Any) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Distinct classes, and which one of them each row has."""
    given = column_or_1d(y)
    if given.dtype.kind == "O" and any(map(is_missing, given)):
        raise ValueError("y contains missing values: leave out samples without a class.")
    try:
        return np.unique(given, return_inverse=True)
    except TypeError as error:
        raise several_types() from error


def several_types() -> TypeError:
    """An error about labels that have no order."""
    return TypeError("y has labels of several types: make them all text or numbers.")


def _numbers(weight: Any) -> NDArray[Any]:
    """Weights as numbers."""
    given = np.asarray(weight)
    if given.dtype.kind in "biuf":
        return given
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight has something else than numbers ({error}): give a number of at least "
            "zero for each sample."
        ) from error
