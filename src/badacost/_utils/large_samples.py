"""Samples that are never in memory as a whole: they are read a block of rows at a time.

A `BatchSource` gives batches of a training set, any number of times. `LargeSamples` are the rows of
such batches, or of a memory-mapped array, that a fit works on, checked and as numbers.
"""

from __future__ import annotations

import errno
import math
import os
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import Mask, Samples

_MAX_COMPARED = 256  # rows of a batch whose values are compared with those of the first pass


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
        X = self.X.tocsr() if hasattr(self.X, "tocsr") else self.X
        rows = X[:: self.n_rows // _MAX_COMPARED + 1]
        values = rows.toarray() if hasattr(rows, "toarray") else rows
        weight = () if self.weight is None else self.weight
        return self.n_rows, _checksum(values), _checksum(self.y), _checksum(weight)


class BatchSource(ABC):
    """A training set in batches; see `badacost.batches` for those that there are."""

    bins_folder: Any = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Read the batches, the same ones in the same order each time."""


class LargeSamples:
    """Rows of a training set that are read when they are needed.

    Parameters
    ----------
    read : callable
        Returns an iterator over blocks of all rows, checked and as numbers, each time.
    shape : tuple of int
        Number of rows and of features.
    bins_folder : path-like, optional
        Folder for a file of bins, if they do not fit in memory either.
    """

    ndim = 2

    def __init__(
        self, read: Callable[[], Iterator[Samples]], shape: tuple[int, int], bins_folder: Any = None
    ):
        self._read, self._bins_folder = read, bins_folder
        n_rows, self._n_features = shape
        self._chosen: Mask = np.broadcast_to(True, n_rows)  # takes no memory

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return int(np.count_nonzero(self._chosen)), self._n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Mask) -> LargeSamples:
        """Some of the rows."""
        some = copy(self)
        some._chosen = self._chosen.copy()
        some._chosen[self._chosen] = rows
        return some

    def empty_bins(self, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
        """Return an array for bins, in a file of `bins_folder` where there is one."""
        if self._bins_folder is None:
            return np.empty(shape, dtype)
        remedy = "set bins_folder to a folder on a disk with more free space, or None to use memory"
        return mapped_array(shape, dtype, self._bins_folder, remedy)

    def blocks(self) -> Iterator[Samples]:
        """Read the rows, block by block."""
        first = 0
        for block in self._read():
            chosen = self._chosen[first : first + len(block)]
            first += len(block)
            if chosen.any():
                yield block if chosen.all() else block[chosen]


def unchanged_batches(source: BatchSource, marks: Iterable[tuple[int, ...]]) -> Iterator[Batch]:
    """Read batches that have rows; raise if their marks are not those of the first pass."""
    for number, (batch, mark) in enumerate(zip_longest(source.batches(), marks), 1):
        if batch is None or batch.mark != mark:
            raise ValueError(
                f"Batch {number} is not what it was in the first pass over the data: see that the "
                "function makes a new iterator each time, and fix the seed of what draws or "
                "shuffles."
            )
        if batch.n_rows:
            yield batch


def _checksum(values: Any) -> int:
    """Checksum of an array; numbers that are equal have equal ones, whatever their type."""
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return zlib.crc32(np.ascontiguousarray(values, np.float64).data)
    return zlib.crc32("\0".join(map(str, values.ravel().tolist())).encode())


def mapped_array(
    shape: tuple[int, ...], dtype: Any, folder: str | os.PathLike[str] | None, remedy: str
) -> NDArray[Any]:
    """Return an array in a temporary file in a folder; `remedy` is for the error of a full disk.

    >>> mapped_array((2, 3), np.uint8, None, "set bins_folder to another folder").tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    place = tempfile.gettempdir() if folder is None else os.fspath(folder)
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            _reserve(file.fileno(), n_bytes)
            return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
    except OSError as error:
        raise type(error)(
            f"cannot keep {n_bytes / 2**20:,.0f} MiB in the folder {place!r:.300} "
            f"({error.strerror}): {remedy}."
        ) from error


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Allocate a file on its disk: writing to a map of a full disk would end the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # this disk reserves nothing
            raise
