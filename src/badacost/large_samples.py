"""Samples that are never in memory as a whole: they are read a block of rows at a time.

A `BatchSource` gives batches of a training set, any number of times. `LargeSamples` are the rows of
such batches, or of a memory-mapped array, that a fit works on, checked and as numbers.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from badacost.arrays import Mask, Samples

_CELLS_AT_ONCE = 2**22
_MAX_GLIMPSED = 5_000  # rows that are remembered from a pass
_MAX_COMPARED = 256  # rows of a batch whose values are compared with those of the first pass

Convert = Callable[[Any], Samples]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a training set: samples, classes, and weights if there are any."""

    X: Any
    y: Any
    weight: Any = None

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def mark(self) -> tuple[int, ...]:
        """Number of rows and checksums, to notice batches that change between passes.

        They cover all classes and weights, and the values of rows at equal steps.
        """
        X = self.X.tocsr() if is_sparse(self.X) else self.X
        rows = X[:: self.n_rows // _MAX_COMPARED + 1]
        values = rows.toarray() if is_sparse(rows) else rows
        weight = () if self.weight is None else self.weight
        return self.n_rows, _checksum(values), _checksum(self.y), _checksum(weight)


class BatchSource(ABC):
    """A training set in batches; see `badacost.batches` for those that there are."""

    bins_folder: Any = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Read the batches, the same ones in the same order each time."""


class LargeSamples(ABC):
    """Rows of a training set that are read when they are needed."""

    ndim = 2
    bins_folder: Any = None
    y_like: Any = None  # an empty piece of the first labels: it has their type and categories
    watched = False  # whether all rows were shown to someone in the first pass

    def __init__(self, n_rows: int, n_features: int, convert: Convert):
        self._n_rows, self._n_features, self._convert = n_rows, n_features, convert
        self._chosen: Mask | None = None
        self.glimpse: Samples | None = None  # some rows of the last pass

    @abstractmethod
    def _all_blocks(self) -> Iterator[Samples]:
        """All rows, those that are not chosen as well."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        chosen = self._chosen
        n_rows = self._n_rows if chosen is None else int(np.count_nonzero(chosen))
        return n_rows, self._n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Mask) -> LargeSamples:
        """Some of the rows."""
        some = copy(self)
        if self._chosen is None:
            some._chosen = rows.copy()
        else:
            some._chosen = self._chosen.copy()
            some._chosen[self._chosen] = rows
        return some

    def blocks(self) -> Iterator[Samples]:
        """Read the rows, block by block."""
        step, n_seen, first, seen = len(self) // _MAX_GLIMPSED + 1, 0, 0, []
        for block in self._all_blocks():
            last = first + len(block)
            if self._chosen is not None:
                chosen = self._chosen[first:last]
                block = block if chosen.all() else block[chosen]
            first = last
            if len(block):
                seen.append(block[-n_seen % step :: step].copy())
                n_seen += len(block)
                yield block
        self.glimpse = np.concatenate(seen)


class MappedSamples(LargeSamples):
    """Rows of an array on disk."""

    def __init__(self, X: NDArray[Any], convert: Convert):
        super().__init__(X.shape[0], X.shape[1], convert)
        self._X = X

    def _all_blocks(self) -> Iterator[Samples]:
        for rows in row_blocks(*self._X.shape):
            yield self._convert(self._X[rows])


class BatchSamples(LargeSamples):
    """Rows of a source of batches, which shall be those with the `marks` of the first pass."""

    def __init__(
        self, source: BatchSource, marks: list[tuple[int, ...]], n_features: int, convert: Convert
    ):
        super().__init__(sum(n_rows for n_rows, *_ in marks), n_features, convert)
        self._source, self._marks = source, marks
        self.bins_folder = source.bins_folder

    def _all_blocks(self) -> Iterator[Samples]:
        number = 0
        for number, batch in enumerate(self._source.batches(), 1):
            if number > len(self._marks) or batch.mark != self._marks[number - 1]:
                break
            if batch.n_rows:
                yield self._convert(batch.X)
        else:
            if number == len(self._marks):
                return
        raise ValueError(
            f"Batch {number} is not what it was in the first pass over the data: batches must be "
            "the same, in the same order, each time they are read. Fix the seed of what draws or "
            "shuffles them; see that their function has not returned the same iterator twice."
        )


def _checksum(values: Any) -> int:
    """A number that tells arrays apart, whatever the type of numbers that are equal."""
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return zlib.crc32(np.ascontiguousarray(values, np.float64).data)
    return zlib.crc32("\0".join(map(str, values.ravel().tolist())).encode())


def row_blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of rows that have some million cells."""
    step = max(1, _CELLS_AT_ONCE // max(1, n_features))
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sparse.issparse(X))


def blocks_of(X: Any) -> Iterator[Samples]:
    """The rows of any samples as dense blocks; an array in memory is one."""
    if isinstance(X, LargeSamples):
        yield from X.blocks()
    elif is_sparse(X):
        for rows in row_blocks(*X.shape):
            yield X[rows].toarray()
    else:
        yield X
