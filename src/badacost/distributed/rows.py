"""Rows as they come to a worker: what all workers have to know of each other's, and checks.

Chunks answer one by one, since those of a worker need not follow each other in the whole.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from badacost.arrays import FloatArray, Labels, Samples
from badacost.categorical_columns import CategoricalColumns, count_categories
from badacost.distributed.parts import Chunk
from badacost.validation import SAMPLES, check_weight_values, positions_in, remedies


class Description(NamedTuple):
    """What a chunk has.

    Attributes
    ----------
    n_rows, n_weighted : int
        Number of rows, and of those with a positive weight.
    labels : ndarray
        Distinct classes.
    categories : dict
        How often each category occurs, by column.
    total : float
        Sum of the weights, to see whether it overflows.
    """

    n_rows: int
    n_weighted: int
    labels: NDArray[Any]
    categories: dict[int, Counter[Any]]
    total: float


class _Block(NamedTuple):
    """Rows of positive weight: checked samples, classes as numbers, weights."""

    X: Samples
    y: Labels
    weight: FloatArray


class RowsPart:
    """The rows of a worker."""

    def __init__(self, chunks: list[Chunk]):
        self._chunks = chunks
        self.blocks: list[_Block] = []

    def describe(self, positions: list[int], suffix: str) -> list[Description]:
        """Look at all chunks; `positions` are those of categorical columns."""
        return [self._described(*chunk, positions, suffix) for chunk in self._chunks]

    def _described(
        self, X: Any, y: Any, weight: Any, positions: list[int], suffix: str
    ) -> Description:
        with remedies(X, y):
            labels = column_or_1d(y)
        n = len(X)
        if len(labels) != n:
            raise ValueError(
                f"A chunk of X{suffix} has {n} rows, and that of y{suffix} {len(labels)}: divide "
                "both alike, for example by making them columns of one data frame first."
            )
        weights = _weights(weight, n, suffix)
        kept = weights > 0.0
        return Description(
            n,
            int(kept.sum()),
            np.unique(labels) if n else labels[:0],
            count_categories(X, positions, kept) if n else {},
            float(weights.sum()),
        )

    def check(self, columns: CategoricalColumns, classes: NDArray[Any], suffix: str) -> None:
        """Turn rows into numbers, and leave out those without weight."""
        kind = np.min_scalar_type(len(classes))
        for X, y, weight in self._chunks:
            with warnings.catch_warnings():
                # A category may well be missing from all rows of a chunk.
                warnings.simplefilter("ignore", UserWarning)
                X = columns.encode(X)
            with remedies(X, y):
                samples = check_array(X, ensure_min_samples=0, **SAMPLES)
            weights = _weights(weight, len(samples), suffix)
            encoded = positions_in(classes, column_or_1d(y)).astype(kind)
            kept = weights > 0.0
            if not kept.all():
                samples, encoded, weights = samples[kept], encoded[kept], weights[kept]
            self.blocks.append(_Block(samples, encoded, weights))
        self._chunks = []


def _weights(weight: Any, n_rows: int, suffix: str) -> FloatArray:
    """Weights of a chunk; ones if there are none."""
    if weight is None:
        return np.broadcast_to(1.0, n_rows)
    return check_weight_values(weight, n_rows, f"sample_weight{suffix}")
