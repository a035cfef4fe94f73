"""Folds of a training set, and hashes of its samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost._utils.parallel import Threads, over_rows
from badacost.tree.binning import dense_blocks

_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Fold:
    """Training rows and held-out rows of a booster."""

    train: RowNumbers
    held_out: RowNumbers


def random_folds(
    mixed: NDArray[np.uint64], y: Labels, weight: FloatArray, n_folds: int
) -> list[Fold]:
    """Stratified folds with held-out rows of equal number; at most one fold for each sample.

    The fold of a sample depends on its values (`mix_columns`) and not on the order of the samples.
    """
    n_folds = min(n_folds, len(y))
    number = np.empty(len(y), np.intp)
    number[_mixed_within_classes(mixed, y, weight)] = np.arange(len(y)) % n_folds
    return [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(n_folds)]


def given_folds(cv: Any, y: Labels, kept: Mask) -> list[Fold]:
    """Folds of a splitter, or of pairs of rows; only the `kept` samples are in them."""
    from sklearn.model_selection import check_cv  # slow to import, rarely needed

    labels = np.zeros(len(kept), y.dtype)
    labels[kept] = y
    place = np.cumsum(kept) - 1
    rows = np.arange(len(kept))

    def kept_rows(chosen: Any) -> RowNumbers:
        given = rows[chosen]  # rows or a mask
        return place[given[kept[given]]]

    try:
        splits = check_cv(cv, labels, classifier=True).split(rows, labels)
        folds = [Fold(kept_rows(train), kept_rows(test)) for train, test in splits]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"cv makes no folds of these samples ({str(error).rstrip('.')}): give fewer folds, or "
            "the splits, for example list(GroupKFold(5).split(X, y, groups))."
        ) from error
    if any(np.isin(fold.held_out, fold.train).any() for fold in folds):
        raise ValueError(
            "cv has a fold with the same samples in both sets: separate training and test samples."
        )
    if not folds or not all(len(fold.train) and len(fold.held_out) for fold in folds):
        raise ValueError(
            "cv has no folds, or one without training or test samples: give fewer folds, or a "
            "list instead of an iterator that is exhausted."
        )
    return folds


def held_out_rows(
    mixed: NDArray[np.uint64], y: Labels, weight: FloatArray, n_held_out: int
) -> Mask:
    """Choose held-out samples, stratified by class, as a mask (n,)."""
    places = np.arange(len(y) + 1) * n_held_out // len(y)
    held = np.empty(len(y), bool)
    held[_mixed_within_classes(mixed, y, weight)] = places[1:] > places[:-1]
    return held


def mix_columns(columns: Iterable[NDArray[Any]], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """Hashes (n_rows,) of the values of each row and the seed."""
    mixed = np.full(n_rows, seed + 1, np.uint64) * _MIXER
    for column in columns:
        mixed = _mix(mixed, _words(column))
    return mixed


class RowHashes:
    """Hashes of rows that come in blocks, see `mix_columns`; constant columns do not count."""

    def __init__(self, seed: int, threads: Threads | None = None):
        self._seed, self._threads = seed, threads
        self._mixed: list[NDArray[np.uint64]] = []
        self._ranges: list[NDArray[np.uint64]] = []

    def add(self, block: Samples, weight: FloatArray | None = None) -> None:
        """Add the next rows; their weights do not matter."""
        every = range(block.shape[1])
        self._mixed.append(mix_samples(block, self._seed, every, self._threads))
        self._ranges += over_rows(lambda rows: value_ranges(block[rows]), len(block), self._threads)

    def of(self, X: Any) -> NDArray[np.uint64]:
        """Hashes (n_samples,) of X, all the rows; where columns are constant, X is read again."""
        if not self._mixed:
            for block in dense_blocks(X):
                self.add(block)
        columns = varying_columns(self._ranges)
        if len(columns) < X.shape[1]:
            return mix_samples(X, self._seed, columns, self._threads)
        return np.concatenate(self._mixed)


def mix_samples(
    X: Any, seed: int, columns: Sequence[int], threads: Threads | None = None
) -> NDArray[np.uint64]:
    """Hashes (n_samples,) of samples of any kind by some columns, see `mix_columns`."""
    mixed = [np.empty(0, np.uint64)]
    for block in dense_blocks(X):

        def of_rows(rows: slice, block: Any = block) -> NDArray[np.uint64]:
            return mix_columns((block[rows, f] for f in columns), len(block[rows]), seed)

        mixed += over_rows(of_rows, len(block), threads)
    return np.concatenate(mixed)


def value_ranges(X: Any) -> NDArray[np.uint64]:
    """Smallest and largest bit pattern of the values of each column, (2, n_features)."""
    ranges = np.zeros((2, X.shape[1]), np.uint64)
    ranges[0] = np.iinfo(np.uint64).max
    for block in dense_blocks(X):
        for column, (low, high) in enumerate(ranges.T):
            words = _words(block[:, column])
            ranges[:, column] = words.min(initial=low), words.max(initial=high)
    return ranges


def varying_columns(ranges: Iterable[NDArray[np.uint64]]) -> list[int]:
    """Columns that are not constant, from the `value_ranges` of all rows."""
    lows, highs = zip(*ranges, strict=True)
    columns: list[int] = np.flatnonzero(np.min(lows, axis=0) < np.max(highs, axis=0)).tolist()
    return columns


def _words(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Values as words; equal values have one bit pattern, and so has NaN."""
    values = column.astype(np.float64) + 0.0  # zero has one sign
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _mixed_within_classes(mixed: NDArray[np.uint64], y: Labels, weight: FloatArray) -> RowNumbers:
    """Rows class by class, within a class in a random order that depends on their values only.

    Equal rows are numbered, so that they are in random places too.
    """
    number = np.zeros(len(y), np.uint64)
    ascending = np.sort(mixed)
    if (ascending[1:] == ascending[:-1]).any():
        order = np.lexsort((weight, mixed, y))
        new = (mixed[order][1:] != mixed[order][:-1]) | (y[order][1:] != y[order][:-1])
        place = np.arange(len(y), dtype=np.uint64)
        first = np.maximum.accumulate(np.where(np.r_[True, new], place, np.uint64(0)))
        number[order] = place - first
    order = np.argsort(_mix(_mix(mixed, number), number))  # distinct numbers
    return order[np.argsort(y[order], kind="stable")]


def _mix(mixed: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Add one word of each row to the hashes."""
    mixed = (mixed ^ words) * _MIXER
    return mixed ^ (mixed >> np.uint64(29))


def fingerprint(
    bins: NDArray[np.unsignedinteger], y: Labels, n_samples: int, threads: Threads | None = None
) -> np.uint64:
    """Hash of samples; the sum over shards identifies a training set, in any order."""

    def of_rows(rows: slice) -> np.uint64:
        mixed = np.full(len(y[rows]), n_samples, np.uint64)
        for column in (*bins[:, rows], y[rows]):
            mixed = _mix(mixed, column.astype(np.uint64))
        return mixed.sum(dtype=np.uint64)

    return np.sum(over_rows(of_rows, len(y), threads), dtype=np.uint64)
