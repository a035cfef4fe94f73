"""Training sets in shards: rows in this process, on a GPU, or on the workers of a cluster.

A `Shard` holds some of the rows and the state of boosting for them. Algorithms call methods of all
`Shards`, add up the results, and never read the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels, RowNumbers
from badacost._utils.parallel import (
    Threads,
    Units,
    bin_maxima,
    bin_split_sums,
    blocks,
    over_rows,
    split_sums,
)
from badacost._utils.portable_kernels import exp_of
from badacost.boosting.folds import fingerprint, mix_samples
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.shards import LocalTreeShard, TreeShard

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


class _PerShard(list[Any]):
    """An argument with one item for each shard."""


def per_shard(items: Iterable[T]) -> T:
    """Argument with one item for each shard; its static type is that of an item."""
    return cast(T, _PerShard(items))


def arguments_of(arguments: tuple[Any, ...], number: int) -> list[Any]:
    """The arguments for one of the shards."""
    return [given[number] if isinstance(given, _PerShard) else given for given in arguments]


class Shards(ABC, Generic[S]):
    """All shards of a training set, in the order of their rows; S is the type of a shard.

    A subclass defines how a function of a shard, such as a method of its class, is called.
    """

    @abstractmethod
    def call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, is_update: bool
    ) -> list[T]:
        """Call a function of a shard and of the `arguments_of` it for every shard."""

    def close(self) -> None:
        """Release the shards."""

    def map(
        self, function: Callable[Concatenate[S, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call a function of every shard; return the results in the order of the shards."""
        return self.call(function, args, is_update=False)

    def update(
        self, function: Callable[Concatenate[S, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call a function that changes the state of the shards.

        Such calls are replayed when a lost shard is built again.
        """
        return self.call(function, args, is_update=True)


class LocalShards(Shards[S]):
    """Shards in this process.

    Examples
    --------
    >>> from badacost.backends.shards import LocalShards, per_shard
    >>> shards = LocalShards([[1, 2, 2], [3]])
    >>> shards.map(list.count, 2)
    [2, 0]
    >>> shards.map(list.count, per_shard([1, 3]))
    [1, 1]
    """

    def __init__(self, shards: Iterable[S]):
        self.shards = [*shards]

    def call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, is_update: bool
    ) -> list[T]:
        """Call a function of every shard."""
        numbered = enumerate(self.shards)
        return [function(shard, *arguments_of(arguments, number)) for number, shard in numbered]

    def close(self) -> None:
        """Release the shards."""
        self.shards.clear()


class Shard:
    """Some rows of a training set: bins, classes and weights, and the state of boosting.

    `first_row` is the number of the first of these rows in the whole set. A subclass may have its
    arrays elsewhere, for example on a GPU: functions of `xp` work on them. A class of boosters may
    have another one in `variants`, for the place of the shard.
    """

    variants: ClassVar[dict[type[Any], type[Any]]] = {}
    xp: Any = np

    def __init__(
        self,
        data: BinnedData,
        y: Labels,
        weight: FloatArray,
        first_row: int = 0,
        threads: Threads | None = None,
    ):
        self.data, self.threads = data, threads or Threads()
        self.y, self.weight, self.first_row = y, weight, first_row
        self.booster: Any = None

    @cached_property
    def trees(self) -> TreeShard:
        """Trees that grow level by level."""
        return LocalTreeShard(self.data, self.threads)

    def put(self, array: Any) -> Any:
        """Copy an array of the host to the place of the shard."""
        return array

    def get(self, array: Any) -> Any:
        """Copy an array to the host."""
        return array

    def blocks(self, n: int) -> list[slice]:
        """Slices of n rows, so that temporary arrays stay small."""
        return blocks(n)

    def exp(self, values: Any) -> Any:
        """Exponentials, in place."""
        over_rows(lambda rows: exp_of(values[rows], values[rows]), len(values), self.threads)
        return values

    def split_sums(self, terms: Any, units: Units) -> FloatArray:
        """Sums (2,) of terms, high and low."""
        return split_sums(terms, units, self.threads)

    def bin_maxima(self, cells: Labels, terms: Any, n_cells: int) -> FloatArray:
        """Largest terms by cell (n_cells,), none of them negative."""
        return bin_maxima(cells, terms, n_cells, self.threads)

    def bin_split_sums(self, cells: Labels, terms: Any, units: Units) -> FloatArray:
        """Sums by cell (2, n_cells), high and low, with units for each cell."""
        return bin_split_sums(cells, terms, units, self.threads)

    def mixed(self, seed: int) -> NDArray[np.uint64]:
        """Hashes (n_rows,) of the bins of features that are not constant."""
        usable = self.data.mapper.usable.tolist()
        return mix_samples(self.data.bins.T, seed, usable, self.threads)

    def fingerprint(self, n_samples: int) -> np.uint64:
        """See `badacost.boosting.folds.fingerprint`."""
        return fingerprint(self.data.bins, self.y, n_samples, self.threads)

    def bins_of(self, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
        """Bins of some rows, (n_features, n)."""
        return self.data.bins[:, rows]

    def start(self, booster: type[Any], *settings: Any) -> None:
        """Begin to boost: an object of a class keeps the state of these rows."""
        self.booster = self.variants.get(booster, booster)(self, *settings)

    def boost(self, method: Callable[..., T], *arguments: Any) -> T:
        """Call a method of the booster, of its variant where there is one."""
        result: T = getattr(self.booster, method.__name__)(*arguments)
        return result


class Boosters(Shards[S]):
    """The boosters of shards, which keep the state of boosting: one object of a class for each."""

    def __init__(self, shards: Shards[Shard], kind: type[S], *settings: Any):
        self._shards = shards
        shards.update(Shard.start, kind, *settings)

    def call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, is_update: bool
    ) -> list[T]:
        """Call a method of every booster."""
        return self._shards.call(Shard.boost, (function, *arguments), is_update=is_update)


@dataclass(frozen=True, eq=False)
class ShardedData:
    """A training set in shards: their bins, and classes and weights of all rows.

    Attributes
    ----------
    shards : Shards
        The shards.
    mapper : BinMapper
        Bins of the features.
    y, weight : ndarray of shape (n_samples,)
        Classes and weights of all rows, one shard after the other.
    ends : list of int
        Number of the first row of each shard, and the number of all rows.
    is_local : bool
        Whether there is one shard in this process, which grows trees in one compiled call.
    """

    shards: Shards[Shard]
    mapper: BinMapper
    y: Labels
    weight: FloatArray
    ends: Sequence[int]
    is_local: bool = False

    @classmethod
    def local(
        cls,
        data: BinnedData,
        y: Labels,
        weight: FloatArray,
        threads: Threads,
        device: str = "cpu",
    ) -> ShardedData:
        """One shard in this process, on a device."""
        if device == "cuda":
            from badacost.backends.cuda_shard import CudaShard
            from badacost.backends.device import cuda_device

            shard: Shard = CudaShard(data, y, weight, cuda_device())
        else:
            shard = Shard(data, y, weight, threads=threads)
        ends = [0, len(y)]
        return cls(LocalShards([shard]), data.mapper, y, weight, ends, is_local=device == "cpu")

    def select(self, rows: RowNumbers) -> BinnedData:
        """Some rows, in increasing order, in this process."""
        bins = self.shards.map(Shard.bins_of, self.rows_by_shard(rows))
        return BinnedData(self.mapper, np.concatenate(bins, axis=1))

    def fingerprint(self) -> int:
        """A hash of the training set, which does not depend on the order of its samples."""
        numbers = np.array(self.shards.map(Shard.fingerprint, len(self.y)), np.uint64)
        return int(numbers.sum(dtype=np.uint64) >> np.uint64(1))

    def mixed(self, seed: int) -> NDArray[np.uint64]:
        """Hashes (n_samples,) of the bins of the rows, see `mix_columns`."""
        return np.concatenate(self.shards.map(Shard.mixed, seed))

    def split(self, rows: NDArray[Any]) -> NDArray[Any]:
        """An array with one item for each row, divided among the shards."""
        return per_shard(rows[a:b] for a, b in pairwise(self.ends))

    def rows_by_shard(self, rows: RowNumbers) -> RowNumbers:
        """Row numbers, in increasing order, as numbers within their shards."""
        cuts = pairwise(np.searchsorted(rows, self.ends))
        return per_shard(rows[a:b] - first for (a, b), first in zip(cuts, self.ends, strict=False))
