"""Training data: rows that are checked, classes as numbers, and the `Task` that boosting gets.

Rows are arrays, data frames, memory maps, or chunks: batches, or pieces of a Dask collection.
Chunks are summarized one by one; `TrainingRows` have the classes and weights of all of them.
`LocalRows` are in this process; those on the workers of a cluster are in `badacost.distributed`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, validate_data

from badacost._utils.arrays import FloatArray, Labels, LeafNumbers, Mask, RowNumbers
from badacost._utils.categorical_columns import (
    CategoricalColumns,
    categorical_positions,
    count_categories,
)
from badacost._utils.large_samples import BatchSource, LargeSamples, unchanged_batches
from badacost._utils.parallel import Threads
from badacost._utils.validation import (
    NUMERIC,
    accepts_blocks,
    check_labels,
    check_rows,
    check_sample_weight,
    check_two_classes,
    distinct_classes,
    number_of_features,
    numeric_weight,
    positions_in,
)
from badacost.backends.shards import ShardedData
from badacost.boosting.folds import RowHashes
from badacost.boosting.reweighting import CostedClassifier, TreeLearner
from badacost.costs.decisions import check_sample_cost, mistake_costs
from badacost.costs.matrix import plain
from badacost.tree.binning import BinMapper, BinnedData, RowSketch, blocks_of, is_sparse, row_blocks
from badacost.tree.forest import Forest, Tree
from badacost.tree.grower import Growth, TreeGrower


class ChunkSummary(NamedTuple):
    """What is known of a chunk without its samples.

    Attributes
    ----------
    labels : ndarray
        Distinct labels, sorted.
    label_template : object
        Labels of no samples: their type may set the order of the classes.
    codes : ndarray of shape (n_rows,)
        Positions of the labels of all rows in `labels`.
    weight : ndarray of shape (n_rows,) or None
        Weights, finite numbers.
    categories : dict
        Numbers of rows with a weight that have each category, by column.
    """

    labels: NDArray[Any]
    label_template: Any
    codes: Labels
    weight: FloatArray | None
    categories: dict[int, Counter[Any]]


def summarize_chunk(
    X: Any, y: Any, weight: Any, positions: Sequence[int], owner: str = "A batch", suffix: str = ""
) -> ChunkSummary:
    """Summarize a chunk; `positions` are those of the categorical columns.

    Errors name `owner`, which requires labels, and y and sample_weight with the suffix.
    """
    labels = check_labels(y, owner, f"y{suffix}")
    if getattr(X, "ndim", 2) == 2:  # others are refused later
        check_consistent_length(X, labels)
    if weight is not None:
        weight = numeric_weight(weight, len(labels), f"sample_weight{suffix}")
    known, codes = np.unique(labels, return_inverse=True)
    codes = codes.astype(np.min_scalar_type(max(len(known) - 1, 0)))
    template = y[:0] if hasattr(y, "dtype") else labels[:0]
    rows: Any = slice(None) if weight is None else weight > 0.0
    return ChunkSummary(known, template, codes, weight, count_categories(X, positions, rows))


def merged_counts(counts: Iterable[Mapping[int, Counter[Any]]]) -> dict[int, Counter[Any]]:
    """Add the counts of categories, by column, of several chunks."""
    merged: dict[int, Counter[Any]] = {}
    for chunk in counts:
        for position, counted in chunk.items():
            merged.setdefault(position, Counter()).update(counted)
    return merged


def _categorical_positions(estimator: Any, X: Any, reset: bool) -> list[int]:
    """Return the positions of the categorical columns, which a warm start must not change."""
    chosen = estimator._categorical_features
    if is_sparse(X) and not isinstance(chosen, str | None) and len(chosen):
        raise ValueError("categorical_features is not for a sparse matrix: give an array.")
    positions = categorical_positions(X, chosen)
    free = reset or isinstance(chosen, str)
    if not free and positions != sorted(estimator._columns.categories):
        raise ValueError("With warm_start=True categorical_features must stay as it was.")
    return positions


_FEW, _MANY = 400, 10_000  # samples, for which features have fewer or more bins
_MAX_LEAVES = 2**28  # samples times trees of an earlier fit for one pass over the samples


def number_of_bins(estimator: Any, n_samples: int) -> int:
    """The parameter `max_bins`, or a number for so many samples."""
    if estimator.max_bins != "auto":
        return int(estimator.max_bins)
    return 32 if n_samples < _FEW else 128 if n_samples < _MANY else 255


def growth_of(estimator: Any, mapper: BinMapper) -> Growth:
    """Limits of trees from the parameters of an estimator; constant features are not drawn."""
    n_features = len(mapper.usable)
    return Growth(
        max_depth=estimator.max_depth,
        max_leaf_nodes=estimator.max_leaf_nodes,
        min_samples_split=estimator.min_samples_split,
        min_samples_leaf=estimator.min_samples_leaf,
        n_drawn=number_of_features(estimator.max_features, max(n_features, 1)),
        order="level" if estimator.max_leaf_nodes is None else "best",
    )


class SampleSet:
    """Samples of one fit: as they were given in `X`, and binned in `data` once bins are chosen.

    Trees of an earlier fit are applied to `X`, since their bins are not known; their categories are
    those of the `mapper`. A `sketch` of the samples saves one pass over them.
    """

    def __init__(
        self, X: Any = None, *, sketch: RowSketch | None = None, data: BinnedData | None = None
    ):
        self.X, self.data = X, data
        self._sketch = sketch
        self.mapper: BinMapper | None = None if data is None else data.mapper
        self._next: list[Tree] = []  # trees of an earlier fit that follow
        self._leaves: dict[Tree, LeafNumbers] = {}  # of trees of an earlier fit

    def preload(self, models: list[Any]) -> None:
        """Set the models of an earlier fit, in the order of the later calls of `rows`.

        Samples that are not in memory are then read once for many trees.
        """
        if isinstance(self.X, LargeSamples):
            self._next = models

    def bin(self, estimator: Any, weight: FloatArray | None, threads: Threads) -> BinnedData:
        """Choose bins by the parameters of an estimator and the weights, and bin the samples."""
        sketch = self._sketch
        if sketch is None:
            sketch = RowSketch(estimator._seed, estimator.binning, estimator._columns.codes())
            sketch.add(self.X, weight, threads=threads)
        max_bins = number_of_bins(estimator, sketch.n_rows)
        mapper = BinMapper.from_sketch(sketch, max_bins=max_bins, threads=threads)
        self.mapper, self._sketch = mapper, None
        bins = mapper.transform(self.X, threads, fitted=True)
        self.data = BinnedData(mapper, bins, fitted=True)
        return self.data

    def bin_like(self, other: SampleSet, threads: Threads) -> None:
        """Bin the samples as others, if these are binned, and release X."""
        if self.data is None and other.mapper is not None:
            self.data = BinnedData(other.mapper, other.mapper.transform(self.X, threads))
            self.X = None

    def rows(self, model: Any, threads: Threads) -> RowNumbers:
        """Row of the table of scores that a model gives to each sample, (n_samples,)."""
        if isinstance(model, CostedClassifier):
            return model.labels(self.X)
        if model.position is not None and self.data is not None:
            return model.value[model.descend(self.data)]
        if model not in self._leaves:  # of an earlier fit
            self._find_leaves(model, threads)
        return model.value[self._leaves.pop(model)]

    def _find_leaves(self, tree: Tree, threads: Threads) -> None:
        """Find the leaves of a tree of an earlier fit, and of some that follow, in one pass."""
        n_rows, n_features = self.X.shape
        n_trees = max(1, _MAX_LEAVES // n_rows)
        trees, self._next = self._next[:n_trees] or [tree], self._next[n_trees:]
        table = np.zeros((max(int(tree.value.max()) for tree in trees) + 1, 1))
        forest = Forest.from_trees(trees, np.ones(len(trees)), table, n_features, self.mapper)
        n_nodes = max(len(tree.left) for tree in trees)
        found = np.empty((len(trees), n_rows), np.min_scalar_type(n_nodes))
        first = 0
        for block in blocks_of(self.X):
            last = first + block.shape[0]
            found[:, first:last] = forest.apply(block, threads).T
            first = last
        self._leaves = dict(zip(trees, found, strict=True))


@dataclass(eq=False)
class Task:
    """What boosting works on: training samples, their classes and weights, validation, threads."""

    samples: SampleSet
    y: Labels  # positions in classes_
    weight: FloatArray
    validation: tuple[SampleSet, Labels, FloatArray] | None
    threads: Threads
    kept: Mask  # which samples of the user are among them: those with a weight
    costs: FloatArray | None = None  # (n, K), of samples that have costs of their own
    validation_costs: FloatArray | None = None
    shards: ShardedData | None = None  # the samples in bins, once they are sharded
    on_cluster: bool = False

    def is_local(self, estimator: Any) -> bool:
        """Whether trees grow on all samples in this process."""
        return not self.on_cluster and estimator.device == "cpu"

    def sharded(self, estimator: Any) -> ShardedData:
        """The samples in bins, as an estimator is set: one shard, unless they came in more."""
        if self.shards is None:
            data = self.samples.bin(estimator, self.weight, self.threads)
            given = data, self.y, self.weight, self.threads
            self.shards = ShardedData.local(*given, estimator.device)
        return self.shards

    def tree_learner(self, estimator: Any, n_classes: int) -> TreeLearner:
        """Bin the samples and grow trees for their classes, as an estimator is set."""
        data = self.samples.data or self.samples.bin(estimator, self.weight, self.threads)
        grower = TreeGrower(data, growth_of(estimator, data.mapper), self.threads)
        return TreeLearner(grower, self.y, n_classes, estimator.criterion)


class TrainingRows(ABC):
    """Checked rows with a positive weight, their classes and their weights.

    Attributes
    ----------
    classes : ndarray
        Distinct labels.
    label_template : object
        Labels whose type may set the order of the classes.
    y, weight : ndarray of shape (n_rows,)
        Classes, as positions, and weights.
    kept : ndarray of bool of shape (n_given,)
        Which of the rows that were given have a weight.
    costs : ndarray of shape (n_rows, K) or None
        Costs of samples that have costs of their own.
    """

    classes: NDArray[Any]
    costs: FloatArray | None = None

    def _set_classes(
        self,
        estimator: Any,
        summaries: Iterable[ChunkSummary],
        is_validation: bool,
        weights: Sequence[FloatArray] = (),
    ) -> None:
        """Check classes and weights, and set them for all rows that were given.

        Weights of rows that are divided in another way than their classes are given in `weights`.
        """
        suffix = "_val" * is_validation
        chunks = [chunk for chunk in summaries if len(chunk.codes)]
        if not chunks:
            raise ValueError("X has no rows: give a batch or chunk that is not empty.")
        labels = [chunk.labels for chunk in chunks]
        kinds = {known.dtype.kind in NUMERIC: known[:1].tolist()[0] for known in labels}
        if len(kinds) > 1:
            raise ValueError(
                f"y has numbers in some batches and text in others ({kinds[False]!r:.40}): use one."
            )
        self.label_template = chunks[0].label_template
        if is_validation:
            self.classes = estimator.classes_
        else:
            self.classes = distinct_classes(np.concatenate(labels), self.label_template)
        check_two_classes(self.classes)
        small = np.min_scalar_type(len(self.classes))
        places = [positions_in(self.classes, known, f"y{suffix}").astype(small) for known in labels]
        self.y = np.concatenate([p[chunk.codes] for p, chunk in zip(places, chunks, strict=True)])
        weights = weights or [chunk.weight for chunk in chunks if chunk.weight is not None]
        weight = np.concatenate(weights) if weights else None
        self.weight = check_sample_weight(weight, len(self.y), f"sample_weight{suffix}")
        self.kept: Mask = self.weight > 0.0

    @abstractmethod
    def mixed(self) -> NDArray[np.uint64]:
        """Hashes (n_rows,) of the rows and the seed; constant columns do not count."""

    @abstractmethod
    def hold_out(self, held: Mask) -> None:
        """Set some rows aside for validation."""

    @abstractmethod
    def task(self, estimator: Any, threads: Threads, validation: Any) -> Task:
        """The task of boosting; `validation` are rows of this kind, or None."""


class LocalRows(TrainingRows):
    """Rows that this process reads, for training or validation.

    Batches and arrays that are mapped from a file are not loaded into memory, zeros of a sparse
    matrix are not stored. Rows of weight zero are dropped.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        sample_cost: Any = None,
        *,
        reset: bool = False,
        holds_out: bool = False,
        is_validation: bool = False,
    ):
        """Check the rows as an estimator is set, or fitted; see `_read_batches` for `holds_out`."""
        suffix = "_val" * is_validation
        self._seed: int = getattr(estimator, "_seed", 0)
        self._sketch: RowSketch | None = None
        self._held_out: LocalRows | None = None
        self.X: Any
        if isinstance(X, BatchSource):
            for name, given in (("y", y), ("sample_weight", sample_weight)):
                if given is not None:
                    raise ValueError(f"{name}{suffix} comes with the batches: leave it out.")
            self.X = self._read_batches(estimator, X, reset, holds_out, is_validation)
        else:
            self.X, chunk = _read(estimator, X, y, sample_weight, reset, suffix)
            self._set_classes(estimator, [chunk], is_validation)
        if not self.kept.all():
            self._choose(self.kept)
        if sample_cost is not None:
            known = [plain(label) for label in self.classes]
            checked = check_sample_cost(sample_cost, known, len(self.kept))
            self.costs = mistake_costs(checked, self.y, self.kept)

    def _read_batches(
        self, estimator: Any, source: BatchSource, reset: bool, holds_out: bool, is_validation: bool
    ) -> LargeSamples:
        """Read all batches once, and set their classes; return their samples, to be read again.

        Training samples without categories are used in the same pass for what comes next: hashes if
        some are to be held out, else a sketch for the bins.
        """
        if not accepts_blocks(estimator):
            raise TypeError("Batches are for classifiers with the built-in tree only: give arrays.")
        if estimator.binning == "exact":
            raise ValueError('binning="exact" is not for batches: choose "quantile" or "uniform".')
        chunks: list[ChunkSummary] = []
        marks: list[tuple[int, ...]] = []
        expected: list[int] = []
        sketch = RowSketch(self._seed, estimator.binning)
        for batch in source.batches():
            X = batch.X.toarray() if is_sparse(batch.X) else batch.X
            positions = _categorical_positions(estimator, X, reset)
            if not marks:
                expected = positions
                validate_data(estimator, X, reset=reset, skip_check_array=True)
                if reset:
                    estimator._columns = CategoricalColumns()
            elif positions != expected:
                raise ValueError(
                    f"Batch {len(marks) + 1} has other categorical columns: use equal types in all."
                )
            chunk = summarize_chunk(X, batch.y, batch.weight, positions)
            marks.append(batch.mark)
            if not batch.n_rows:
                continue
            chunks.append(chunk)
            weight = chunk.weight
            if (weight is None) != (chunks[0].weight is None):
                raise ValueError("Some batches have weights and others have none: give all some.")
            if not (positions or is_validation):
                block = check_rows(estimator, X)
                if weight is not None:
                    block, weight = block[weight > 0.0], weight[weight > 0.0]
                (self._hashes if holds_out else sketch).add(block, weight)
        self._set_classes(estimator, chunks, is_validation)
        if reset:
            counts = merged_counts(chunk.categories for chunk in chunks)
            estimator._columns = CategoricalColumns.of_counts(counts)
        self._sketch = None if holds_out or expected else sketch

        def read() -> Iterator[Any]:
            for batch in unchanged_batches(source, marks):
                yield check_rows(estimator, batch.X.toarray() if is_sparse(batch.X) else batch.X)

        return LargeSamples(read, (len(self.y), estimator.n_features_in_), source.bins_folder)

    def _choose(self, rows: Mask) -> None:
        """Restrict everything to some of the rows."""
        self.X, self.y, self.weight = self.X[rows], self.y[rows], self.weight[rows]
        if self.costs is not None:
            self.costs = self.costs[rows]

    @cached_property
    def _hashes(self) -> RowHashes:
        return RowHashes(self._seed)

    def mixed(self) -> NDArray[np.uint64]:
        """Hashes (n_rows,) of the rows and the seed; constant columns do not count."""
        return self._hashes.of(self.X)

    def hold_out(self, held: Mask) -> None:
        """Set some rows aside for validation."""
        self._held_out = copy(self)
        self._held_out._choose(held)
        self._choose(~held)

    def task(self, estimator: Any, threads: Threads, validation: LocalRows | None) -> Task:
        """The task of boosting; bins take the place of the rows."""
        samples = SampleSet(self.X, sketch=self._sketch)
        task = Task(samples, self.y, self.weight, None, threads, self.kept, self.costs)
        unseen = validation or self._held_out
        if unseen is not None:
            task.validation = SampleSet(unseen.X), unseen.y, unseen.weight
            task.validation_costs = unseen.costs
        self.X = self._held_out = None
        return task


def _read(
    estimator: Any, X: Any, y: Any, sample_weight: Any, reset: bool, suffix: str
) -> tuple[Any, ChunkSummary]:
    """Return samples and their summary; an array mapped from a file stays there, if possible."""
    if isinstance(X, str | bytes | os.PathLike | Iterator):
        raise TypeError(
            f"X must be a table of samples; got {X!r:.80}. If this is a Parquet file, give "
            "badacost.batches.ParquetBatches(path, target); if it can be read once only, give "
            "badacost.batches.Batches(make), with a function that returns the batches."
        )
    positions = _categorical_positions(estimator, X, reset)
    owner = type(estimator).__name__
    summary = summarize_chunk(X, y, sample_weight, positions, owner, suffix)
    if reset:
        estimator._columns = CategoricalColumns.of_counts(summary.categories)
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.dtype.kind in NUMERIC
    if mapped and accepts_blocks(estimator) and estimator.binning != "exact":
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        samples: Any = LargeSamples(
            lambda: (check_rows(estimator, X[rows]) for rows in row_blocks(*X.shape)), X.shape
        )
    else:
        samples = check_rows(estimator, X, reset=reset)
    return samples, summary
