"""A training set on a cluster: rows on the workers, classes and weights of all rows here.

A worker holds its rows as given, then as checked blocks, then as bins. Classes and weights are sent
to the client, which checks those of all rows, and are returned to the workers with the bins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from badacost._utils.arrays import FloatArray, Labels, Mask
from badacost._utils.categorical_columns import (
    CategoricalColumns,
    categorical_positions,
    count_categories,
)
from badacost._utils.large_samples import LargeSamples
from badacost._utils.parallel import Threads
from badacost._utils.user_warnings import warn_user
from badacost._utils.validation import SAMPLES, helpful_errors
from badacost.backends.shards import Shard, ShardedData, per_shard
from badacost.boosting.folds import mix_samples, value_ranges, varying_columns
from badacost.classifiers.training_data import (
    ChunkSummary,
    SampleSet,
    Task,
    TrainingRows,
    merged_counts,
    number_of_bins,
    summarize_chunk,
)
from badacost.distributed.cluster import dask_distributed, wait_for_workers, worker_threads
from badacost.distributed.collections import chunks_of, meta_of
from badacost.distributed.shards import DaskShards, is_scattered
from badacost.tree.binning import BinMapper, BinnedData, RowSketch


class RowsShard(Shard):
    """The rows of a worker, built from its chunks of Dask collections."""

    X: Any  # samples, until they are replaced by bins
    held_out: Any  # samples that were set aside

    def __init__(self, X: list[Any], y: Sequence[Any] = (), weight: Sequence[Any] = ()):
        self._chunks, self._y, self._weight = X, y, weight

    def describe(
        self, columns: list[Any], suffix: str
    ) -> tuple[int, list[ChunkSummary], list[NDArray[Any]]]:
        """Number of rows, which have these columns; summaries of the classes; weights.

        Chunks of the three may be of different rows. Errors name y with a suffix.
        """
        for X in self._chunks:
            check_columns(X, columns)
        classes = [summarize_chunk(y, y, None, (), suffix=suffix) for y in self._y]
        n_rows = sum(X.shape[0] for X in self._chunks)
        return n_rows, classes, [np.asarray(part) for part in self._weight]

    def count_categories(self, positions: list[int], kept: Mask) -> dict[int, Counter[Any]]:
        """Count the categories of some columns in the rows that have a weight."""
        rows = np.split(kept, np.cumsum([X.shape[0] for X in self._chunks])[:-1])
        pairs = zip(self._chunks, rows, strict=True)
        return merged_counts(count_categories(X, positions, some) for X, some in pairs if len(some))

    def check(self, columns: CategoricalColumns, kept: Mask) -> None:
        """Make numbers of the samples, and drop those without weight."""
        blocks = []
        for X in self._chunks:
            encoded = columns.encode(X)
            with helpful_errors(encoded):
                blocks.append(check_array(encoded, input_name="X", ensure_min_samples=0, **SAMPLES))
        self._chunks, self._y, self._weight = [], (), ()
        shape = sum(map(len, blocks)), blocks[0].shape[1]
        self.X = LargeSamples(partial(iter, blocks), shape)[kept]

    def value_ranges(self) -> NDArray[np.uint64]:
        """Ranges of the values of each feature, see `badacost.boosting.folds.value_ranges`."""
        return value_ranges(self.X)

    def mixed_values(self, seed: int, columns: list[int]) -> NDArray[np.uint64]:
        """Hashes (n_rows,) of the rows by some features, see `mix_samples`."""
        return mix_samples(self.X, seed, columns)

    def hold_out(self, held: Mask) -> None:
        """Set some rows aside for validation."""
        self.X, self.held_out = self.X[~held], self.X[held]

    def sketch(self, sketch: RowSketch, weight: FloatArray, first_row: int) -> RowSketch:
        """Add all rows to an empty sketch."""
        return sketch.add(self.X, weight, first_row=first_row, threads=worker_threads())

    def bin(
        self, mapper: BinMapper, y: Labels, weight: FloatArray, first_row: int, bins: Any = None
    ) -> None:
        """Replace the values of the rows by bins, those that are sent or their own."""
        threads = worker_threads()
        if bins is None:
            bins = mapper.transform(self.X, threads, fitted=True)
        self.X = None
        super().__init__(BinnedData(mapper, bins), y, weight, first_row, threads)

    def held_out_bins(self, mapper: BinMapper) -> NDArray[np.unsignedinteger]:
        """Bins of the rows that were set aside."""
        return mapper.transform(self.held_out, worker_threads())


def columns_of(X: Any) -> list[Any]:
    """Names of the columns of a data frame, or positions in an array."""
    return [*getattr(X, "columns", range(X.shape[1]))]


def check_columns(X: Any, expected: list[Any]) -> None:
    """Raise unless a chunk has the columns of the whole."""
    pairs = zip_longest(columns_of(X), expected, fillvalue="no column")
    for place, (found, wanted) in enumerate(pairs):
        if found != wanted:
            raise ValueError(
                f"A partition of X has {found!r:.80} at position {place}, where X has "
                f"{wanted!r:.80}: give all partitions the same columns, in the same order, for "
                "example with X.map_partitions(lambda part: part[columns])."
            )


class ClusterRows(TrainingRows):
    """Samples on the workers of a cluster, with their classes and weights in this process.

    Attributes
    ----------
    shards : DaskShards
        The samples.
    """

    def __init__(
        self,
        estimator: Any,
        stack: ExitStack,
        client: Any,
        X: Any,
        y: Any,
        weight: Any,
        *,
        reset: bool = False,
        holds_out: bool = False,
        is_validation: bool = False,
    ):
        """Check the rows, as an estimator is set, or fitted; `stack` closes the shards.

        `holds_out` is of no use here, see `LocalRows`.
        """
        if is_scattered(client, X, y, weight):
            warn_user(
                "Scattered data cannot be rebuilt if a worker is lost: the fit would end with an "
                "error. Give data that are read or computed on the cluster, persisted or not.",
                UserWarning,
            )
        self.shards: DaskShards[Any] = DaskShards(
            client,
            RowsShard,
            [chunks_of(data) for data in (X, y, weight) if data is not None],
            persisted=bool(dask_distributed().futures_of(X)),
            max_rebuilds=estimator.max_rebuilds,
            heartbeat_timeout=estimator.heartbeat_timeout,
        )
        stack.callback(self.shards.close)
        meta, suffix = meta_of(X), "_val" * is_validation
        validate_data(estimator, meta, reset=reset, skip_check_array=True)
        described = self.shards.map(RowsShard.describe, columns_of(meta), suffix)
        n_rows, summaries, weights = zip(*described, strict=True)
        self._ends, chunks = np.cumsum([0, *n_rows]).tolist(), [*chain(*summaries)]
        n_labels = sum(len(chunk.codes) for chunk in chunks)
        if n_labels != self._ends[-1]:
            raise ValueError(
                f"X{suffix} has {self._ends[-1]} rows, but y{suffix} has {n_labels} classes."
            )
        self._set_classes(estimator, chunks, is_validation, [*chain(*weights)])
        kept = self._by_shard(self.kept)
        if not is_validation:
            positions = categorical_positions(meta, estimator._categorical_features)
            counts = self.shards.map(RowsShard.count_categories, positions, kept)
            estimator._columns = CategoricalColumns.of_counts(merged_counts(counts))
        self.shards.update(RowsShard.check, estimator._columns, kept)
        self._choose(self.kept)
        self._seed: int = estimator._seed
        self._held_out: tuple[Labels, FloatArray] | None = None
        if is_validation:
            self.hold_out(np.ones(len(self.y), bool))

    def _by_shard(self, rows: NDArray[Any]) -> NDArray[Any]:
        """An array with one item for each row, divided among the shards."""
        return per_shard(rows[a:b] for a, b in pairwise(self._ends))

    def _choose(self, chosen: Mask) -> None:
        """Go on with the rows that the shards still have."""
        self._ends = np.r_[0, np.cumsum(chosen)][self._ends].tolist()
        self.y, self.weight = self.y[chosen], self.weight[chosen]

    def mixed(self) -> NDArray[np.uint64]:
        """Hashes (n_samples,) of the samples and the seed; constant features do not count."""
        columns = varying_columns(self.shards.map(RowsShard.value_ranges))
        return np.concatenate(self.shards.map(RowsShard.mixed_values, self._seed, columns))

    def hold_out(self, held: Mask) -> None:
        """Set some rows aside for validation."""
        self.shards.update(RowsShard.hold_out, self._by_shard(held))
        self._held_out = self.y[held], self.weight[held]
        self._choose(~held)

    def task(self, estimator: Any, threads: Threads, validation: Any) -> Task:
        """The task of boosting; `validation` are other rows on the cluster, or None."""
        data = self._bin(estimator, threads)
        no_rows = BinnedData(data.mapper, np.empty((len(data.mapper.edges), 0), np.uint8))
        task = Task(
            SampleSet(data=no_rows), data.y, data.weight, None, threads, self.kept, shards=data,
            on_cluster=True,
        )  # fmt: skip
        unseen: ClusterRows = validation or self
        if unseen._held_out is not None:  # their bins come to this process
            bins = np.concatenate(unseen.shards.map(RowsShard.held_out_bins, data.mapper), axis=1)
            task.validation = SampleSet(data=BinnedData(data.mapper, bins)), *unseen._held_out
        return task

    def _bin(self, estimator: Any, threads: Threads) -> ShardedData:
        """Choose bins, and put the samples into them."""
        empty = RowSketch(estimator._seed, estimator.binning, estimator._columns.codes())
        weight, first_rows = self._by_shard(self.weight), per_shard(self._ends[:-1])
        merged, *others = self.shards.map(RowsShard.sketch, empty, weight, first_rows)
        for other in others:
            merged.merge(other)
        max_bins = number_of_bins(estimator, merged.n_rows)
        mapper = BinMapper.from_sketch(merged, max_bins=max_bins, threads=threads)
        self.shards.update(RowsShard.bin, mapper, self._by_shard(self.y), weight, first_rows)
        return ShardedData(self.shards, mapper, self.y, self.weight, self._ends)


def scatter_rows(
    data: BinnedData, y: Labels, weight: FloatArray, threads: Threads, *, client: Any
) -> ShardedData:
    """Rows that this process holds in bins, a block of them for each worker.

    Like `ShardedData.local`, but the shards have to be closed. A block that is lost with its worker
    is sent again, to another one. `threads` are not used.
    """
    no_chunks = [[None] * len(wait_for_workers(client))]
    shards: DaskShards[Any] = DaskShards(client, RowsShard, no_chunks)
    with ExitStack() as stack:
        stack.callback(shards.close)
        ends = np.linspace(0, len(y), len(shards) + 1).astype(int).tolist()
        rows = ShardedData(shards, data.mapper, y, weight, ends)
        bins = per_shard(data.bins[:, a:b] for a, b in pairwise(ends))
        given = rows.split(y), rows.split(weight), per_shard(ends[:-1]), bins
        shards.update(RowsShard.bin, data.mapper, *given)
        stack.pop_all()
    return rows
