"""Categories as features of 0 and 1, for libraries of trees that take numbers, and the way back.

A tree that was grown on such marks tests one category at a time. In a `Forest` that is a test of
the column itself, so that it predicts, explains and is saved like one grown on categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray
from badacost.tree.forest import Forest
from badacost.tree.growth_kernels import N_WORDS

_N_BITS = 32  # of a word in the sets of a forest


@dataclass(frozen=True, eq=False)
class CategoryMarks:
    """Which column each expanded feature is of, and the code that it marks, -1 for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> marks = CategoryMarks.of(2, {1: np.arange(3.0)})
    >>> marks.expand(np.array([[7.5, 2.0], [8.0, np.nan]]))
    array([[7.5, 0. , 0. , 1. ],
           [8. , nan, nan, nan]])
    """

    column: IndexArray
    code: IndexArray
    known: list[FloatArray]

    @classmethod
    def of(cls, n_columns: int, codes: Mapping[int, FloatArray]) -> Self:
        """Lay out the features of columns; `codes` are those of the categorical ones."""
        known = [codes.get(column, np.empty(0)) for column in range(n_columns)]
        parts = [np.arange(len(known[j])) if j in codes else [-1] for j in range(n_columns)]
        column = np.repeat(np.arange(n_columns), [len(part) for part in parts])
        return cls(column, np.concatenate(parts).astype(np.int64), known)

    def expand(self, samples: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return samples with a feature for each category; all are NaN where it is missing."""
        if (self.code < 0).all():
            return samples
        expanded = samples[:, self.column]
        for feature in np.flatnonzero(self.code >= 0):
            values = expanded[:, feature]
            expanded[:, feature] = np.where(np.isnan(values), np.nan, values == self.code[feature])
        return expanded

    def join(self, forest: Forest) -> Forest:
        """Return trees that were grown on expanded features as trees of the columns."""
        if (self.code < 0).all():
            return forest
        code = np.where(forest.is_leaf, -1, self.code[forest.feature])
        tested = np.flatnonzero(code >= 0)
        sets = np.zeros((max(len(tested), 1), N_WORDS), np.uint32)
        others_right = forest.threshold[tested] <= 0.0
        sets[: len(tested)][others_right] = np.uint32(2**_N_BITS - 1)
        rows, word = np.arange(len(tested)), code[tested] // _N_BITS
        bit = np.uint32(1) << (code[tested] % _N_BITS).astype(np.uint32)
        sets[rows, word] |= np.where(forest.threshold[tested] <= 1.0, bit, np.uint32(0))
        category_set = np.full(len(code), -1, np.int32)
        category_set[tested] = rows
        threshold = forest.threshold.copy()
        threshold[tested] = 0.0
        return replace(
            forest,
            feature=np.where(forest.is_leaf, 0, self.column[forest.feature]).astype(np.int32),
            threshold=threshold,
            n_features=len(self.known),
            category_set=category_set,
            sets=sets,
            categories=np.concatenate(self.known),
            category_offsets=np.cumsum([0, *map(len, self.known)], dtype=np.int64),
        )
