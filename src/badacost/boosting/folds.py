"""Folds of a training set: which samples a booster is trained on, and which it leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, Mask, RowNumbers
from badacost.exact_sums import blocks
from badacost.large_samples import blocks_of

_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples that a booster is trained on, and those it leaves out."""

    train: RowNumbers
    left_out: RowNumbers


def random_folds(
    mixed: NDArray[np.uint64], y: Labels, weight: FloatArray, n_folds: int
) -> list[Fold]:
    """Leave out parts of equal size, alike for all classes; at most as many as there are samples.

    Which samples are in which part depends on their values (`mix_columns`) and not on their order.
    """
    n_folds = min(n_folds, len(y))
    number = np.empty(len(y), np.intp)
    number[_mixed_within_classes(mixed, y, weight)] = np.arange(len(y)) % n_folds
    return [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(n_folds)]


def given_folds(cv: Any, y: Labels, kept: Mask) -> list[Fold]:
    """Folds of a splitter, or of pairs of rows; only the samples that are `kept` have a class."""
    from sklearn.model_selection import check_cv  # slow to import, rarely needed

    labels = np.zeros(len(kept), y.dtype)
    labels[kept] = y
    place = np.cumsum(kept) - 1
    rows = np.arange(len(kept))

    def part(chosen: Any) -> RowNumbers:
        given = rows[chosen]  # rows or a mask
        return place[given[kept[given]]]

    try:
        splits = check_cv(cv, labels, classifier=True).split(rows, labels)
        folds = [Fold(part(train), part(test)) for train, test in splits]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"cv makes no folds of these samples ({str(error).rstrip('.')}): give fewer folds, or "
            "the splits, for example list(GroupKFold(5).split(X, y, groups))."
        ) from error
    if any(np.isin(fold.left_out, fold.train).any() for fold in folds):
        raise ValueError("cv has a fold that leaves out samples it trains on: keep them apart.")
    if not folds or not all(len(fold.train) and len(fold.left_out) for fold in folds):
        raise ValueError(
            "cv has no folds, or one without samples to train on or to leave out: give fewer "
            "folds, or a list instead of an iterator that is exhausted."
        )
    return folds


def held_out_rows(
    mixed: NDArray[np.uint64], y: Labels, weight: FloatArray, n_held_out: int
) -> Mask:
    """Choose some of the samples, about the same share of all classes."""
    places = np.arange(len(y) + 1) * n_held_out // len(y)
    held = np.empty(len(y), bool)
    held[_mixed_within_classes(mixed, y, weight)] = places[1:] > places[:-1]
    return held


def mix_columns(columns: Iterable[NDArray[Any]], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on its values, and on nothing else but the seed."""
    mixed = np.full(n_rows, seed + 1, np.uint64) * _MIXER
    for column in columns:
        values = column.astype(np.float64) + 0.0  # zero has one sign
        values[np.isnan(values)] = np.nan  # and so have missing values
        mixed = _mix(mixed, values.view(np.uint64))
    return mixed


def mix_samples(X: Any, seed: int) -> NDArray[np.uint64]:
    """The same for the rows of samples of any kind."""
    return np.concatenate([mix_columns(block.T, len(block), seed) for block in blocks_of(X)])


def _mixed_within_classes(mixed: NDArray[np.uint64], y: Labels, weight: FloatArray) -> RowNumbers:
    """Rows class by class, within a class in a random order that depends on their values only.

    Equal rows are told apart by a number, so that they are spread at random as well.
    """
    order = np.lexsort((weight, mixed, y))
    new = (mixed[order][1:] != mixed[order][:-1]) | (y[order][1:] != y[order][:-1])
    place = np.arange(len(y), dtype=np.uint64)
    first = np.maximum.accumulate(np.where(np.r_[True, new], place, np.uint64(0)))
    number = np.empty(len(y), np.uint64)
    number[order] = place - first
    return np.lexsort((_mix(_mix(mixed, number), number), y))


def _mix(mixed: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash one word more of each row."""
    mixed = (mixed ^ words) * _MIXER
    return mixed ^ (mixed >> np.uint64(29))


def fingerprint(bins: NDArray[np.unsignedinteger], y: Labels, n_samples: int) -> np.uint64:
    """A number whose sum over the parts of a training set tells sets apart, whatever the order."""
    total = np.zeros(1, np.uint64)
    for block in blocks(len(y)):  # short enough for the caches
        mixed = np.full(len(y[block]), n_samples, np.uint64)
        for column in (*bins[:, block], y[block]):
            mixed = _mix(mixed, column.astype(np.uint64))
        total += mixed.sum(dtype=np.uint64)
    return total[0]
