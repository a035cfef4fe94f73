"""Trees grown on binned samples: `TreeGrower`, and the limits and sums that it takes.

This module knows rows, bins and sums, but neither classes nor costs: callers choose what is summed
and the gain of a split, and compute leaf values from the sums of the nodes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels, LeafNumbers, RowNumbers
from badacost._utils.parallel import MIN_ROWS, PADDING, Threads, combined
from badacost.tree import growth_kernels as kernels
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.histogram_kernels import AT_ONCE, Data, NodeSamples
from badacost.tree.split_kernels import NODE, SORTING, SPLIT, Buffers, Limits
from badacost.tree.threaded_growth import (
    THREADS_FROM,
    partition_in_threads,
    search_in_threads,
)

GrowingTree = kernels.GrowingTree
GrowthOrder = Literal["level", "best", "symmetric"]
DrawPer = Literal["node", "level"]

NO_LIMIT = 2**62
_NO_PARTIAL = np.empty((0, 0, 0, 0))
_ROW_BITS = 24  # of single precision; with up to 2**29 rows, sums fit the 53 bits of a double
_WEIGHT_BITS = 51
_STORE_FRACTION = 1 / 16  # histograms kept for subtraction, relative to the bytes of the bins
_SMALL_BINS, _SMALL_STORE = 2**23, 2**24  # bytes: for small data more does not matter
_MAX_KEPT_BYTES = 2**22  # of one node, about the caches of a core
_MIN_NODES = 256  # nodes that are allocated at first


@dataclass(frozen=True)
class Growth:
    """Limits and order of the growth of a tree; None means no limit.

    `n_drawn` features are drawn at each node, or at each level for all its nodes: on wide data
    the nodes of a level then read the same memory. `max_leaf_nodes` is for the orders "best" and
    "symmetric". Symmetric trees have the same test in all nodes of a level.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    n_drawn: int | None = None
    draw_per: DrawPer = "node"
    order: GrowthOrder = "level"

    def limits(self, n_usable: int, small_below: int) -> Limits:
        """Limits for kernels: Python integers, the type that they are compiled for."""
        return Limits(
            _limit(self.max_depth),
            NO_LIMIT if self.order == "level" else _limit(self.max_leaf_nodes),
            int(self.min_samples_split),
            int(self.min_samples_leaf),
            min(_limit(self.n_drawn), n_usable),
            self.draw_per == "level",
            self.order == "best",
            self.order == "symmetric",
            0 if self.order == "symmetric" else small_below,
        )


def _limit(number: int | None) -> int:
    return NO_LIMIT if number is None else int(number)


class Gain(NamedTuple):
    """Coefficients of the score of a node, see `badacost.tree.gain_kernels`."""

    squares: NDArray[np.float64]  # (C,)
    masses: NDArray[np.float64]  # (C,)
    l2: float = 0.0
    min_mass: float = 0.0  # of a child
    entropy: bool = False

    @classmethod
    def gini(cls, squares: NDArray[np.float64]) -> Gain:
        """Gini index of class weights, with a coefficient for each class."""
        return cls(squares, np.ones(len(squares)))

    @classmethod
    def of_entropy(cls, n_classes: int) -> Gain:
        """Entropy of class weights."""
        return cls(np.zeros(n_classes), np.ones(n_classes), entropy=True)

    @classmethod
    def of_gradients(cls, n_columns: int, l2: float, min_hessian: float) -> Gain:
        """Squared sums of gradients over the sum of hessians, the last column."""
        is_hessian = np.arange(n_columns) == n_columns - 1
        return cls(1.0 - is_hessian, 1.0 * is_hessian, float(l2), float(min_hessian))


@dataclass(frozen=True, eq=False)
class Summands:
    """Numbers that a tree sums over the samples of a node: weights by label, or rows of a matrix.

    All numbers are multiples of a quantum, so that sums are exact: weights of 2**-51 times a power
    of two above their total, rows of 2**-24 times one above the largest entry of their column.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), or empty
        Index of the sum that a sample adds its value to; empty if it has a value for each sum.
    values : ndarray of shape (n_samples, 1) or (n_samples, C)
        Weights or rows.
    n_columns : int
        Number of sums C.
    """

    labels: NDArray[np.uint16]
    values: NDArray[np.float32]
    n_columns: int

    @classmethod
    def of_labels(
        cls,
        labels: Labels,
        weights: FloatArray,
        n_labels: int,
        bound: float = 1.0,
        threads: Threads | None = None,
    ) -> Summands:
        """Weights in single precision; their total exceeds the bound by rounding at most."""
        unit = 2.0 ** np.frexp(bound)[1]
        values, threads = np.empty((len(weights), 1), np.float32), threads or Threads()
        kernels.round_weights(threads.loop(len(weights), MIN_ROWS), weights, unit, values)
        return cls(labels.astype(np.uint16, copy=False), values, n_labels)

    @classmethod
    def of_rows(cls, values: NDArray[np.floating]) -> Summands:
        """Round a matrix (n_samples, C), such as gradients and, last, a hessian."""
        quanta = quanta_of(np.abs(values).max(axis=0, initial=0.0))
        return cls.of_rounded((np.rint(values / quanta) * quanta).astype(np.float32))

    @classmethod
    def of_rounded(cls, values: NDArray[np.float32]) -> Summands:
        """Take a matrix (n_samples, C) whose entries are multiples of `quanta_of` its columns."""
        return cls(np.empty(0, np.uint16), values, values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_labels(self) -> bool:
        """Whether a sample adds one value, to the sum of its label."""
        return self.values.shape[1] < self.n_columns

    def select(
        self, rows: RowNumbers | None, *, copy: bool = True, threads: Threads | None = None
    ) -> tuple[NodeSamples, FloatArray]:
        """Copy some rows, all by default, for kernels, which reorder them; also return the sums.

        Samples of weight zero are dropped. Without `copy` the values of all rows are not copied.
        """
        if self.has_labels:
            weights = self.values[:, 0] if rows is None else self.values[rows, 0]
            if not weights.all():
                rows = np.flatnonzero(weights) if rows is None else rows[weights > 0.0]
        n, threads = len(self) if rows is None else len(rows), threads or Threads()
        order = np.arange(n, dtype=np.uint32) if rows is None else rows.astype(np.uint32)
        values = self.values
        if copy or rows is not None:
            values = np.empty((n, values.shape[1]), np.float32)
        samples = NodeSamples(order, np.empty(n * self.has_labels, np.uint16), values)
        loop = threads.loop(n, MIN_ROWS)
        sums = np.zeros((loop.n_parts, self.n_columns + PADDING))
        kernels.select(loop, self.labels, self.values, samples, sums)
        return samples, combined(np.add, sums[:, : self.n_columns])


def scratch_of(samples: NodeSamples) -> NodeSamples:
    """Uninitialised arrays of the same shapes."""
    return NodeSamples._make(np.empty_like(array) for array in samples)


def work_buffers(data: Data, n_columns: int, n: int = 1) -> Buffers:
    """Work arrays of `n` searches for `n_columns` sums."""
    n_codes, categorical = int(data.n_codes.max()) + 1, bool(data.categorical.any())
    n_categories, n_cells = n_codes if categorical else 0, n_codes * n_columns
    n_sorted = min(data.bins.shape[1], n_cells // SORTING)
    return Buffers(
        cells=np.zeros((n, AT_ONCE, n_cells)),
        left=np.empty((n, n_columns + PADDING)),
        joint=np.empty((n, AT_ONCE, 2, n_codes)),
        ranked=np.empty((n, AT_ONCE, n_codes), np.int64),
        n_ranked=np.empty((n, AT_ONCE), np.int64),
        any_missing=np.empty((n, AT_ONCE), bool),
        counts=np.empty((n, n_codes), np.int64),
        words=np.zeros((n, (n_codes >> 5) + PADDING), np.int64),
        means=np.empty((n, n_categories + 2, n_columns)),
        keys=np.empty((n, 2, n_categories)),
        pooled=np.empty((n, 1, n_cells if categorical else 0)),
        whole=np.empty((n, n_columns)),
        taken=np.empty((n, len(data.usable)), bool),
        sorted=np.empty((n, n_sorted + 1), np.uint64),
    )


def new_tree(
    n_samples: int,
    totals: FloatArray,
    seed: int,
    usable: NDArray[np.int64],
    n_drawn: int,
    n_parts: int,
    store: FloatArray,
) -> GrowingTree:
    """A root of some samples, whose sums are `totals` (C,)."""
    n = _MIN_NODES
    tree = GrowingTree(
        seed=np.uint64(seed),
        state=np.zeros(7, np.int64),
        nodes=np.zeros(n, NODE),
        totals=np.empty((n, len(totals))),
        sets=np.zeros((n, kernels.N_WORDS), np.uint32),
        heap=np.empty(n, np.int64),
        jobs=np.empty(n, np.int64),
        features=usable[None] if n_drawn == len(usable) else np.empty((n, n_drawn), np.int64),
        found=np.empty((n_parts, n), SPLIT),
        found_sets=np.zeros((n_parts, n, kernels.N_WORDS), np.uint32),
        store=store,
        partial=_NO_PARTIAL,
        counts=np.empty((0, 0, 0), np.int64),
        free=np.arange(len(store), dtype=np.int32),
    )
    root = tree.nodes[0]
    root["end"], root["missing_left"] = n_samples, True
    root["parent"] = root["slot"] = root["sibling"] = -1
    tree.totals[0] = totals
    tree.state[[kernels.N_NODES, kernels.N_LEAVES, kernels.N_FREE]] = 1, 1, len(store)
    return tree


def enlarged(tree: GrowingTree) -> GrowingTree:
    """A copy with four times as many nodes."""
    n = len(tree.nodes)
    arrays: dict[str, Any] = {}
    for name in ("nodes", "totals", "sets", "heap", "jobs", "features", "found", "found_sets"):
        array = getattr(tree, name)
        axis = 1 if name.startswith("found") else 0
        if array.shape[axis] == n:  # not features that all nodes share
            shape = (*array.shape[:axis], 3 * n, *array.shape[axis + 1 :])
            arrays[name] = np.concatenate([array, np.zeros(shape, array.dtype)], axis)
    return tree._replace(**arrays)


def quanta_of(largest: FloatArray) -> FloatArray:
    """Quanta of columns, from the largest absolute values of their entries."""
    return np.ldexp(1.0, np.frexp(largest)[1] - _ROW_BITS)


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A tree, the sums of its nodes (n_nodes, C), and where its training rows are."""

    tree: Tree
    sums: FloatArray
    data: BinnedData
    threads: Threads
    nodes: NDArray[np.void]  # (n_nodes,) of NODE
    order: NDArray[np.uint32]  # rows that it was grown on, leaf after leaf
    others: RowNumbers

    def look_up(self, table: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the entry of a table (n_nodes,) for the leaf of each training row."""
        found = np.empty(self.data.bins.shape[1], np.int32)
        loop = self.threads.loop(len(self.order), MIN_ROWS)
        kernels.write_leaves(loop, self.order, self.nodes, table, found)
        return self.tree.descend(self.data, self.others, table, found, self.threads)

    @property
    def leaves(self) -> LeafNumbers:
        """The leaf of each training row."""
        return self.look_up(np.arange(len(self.nodes), dtype=np.int32))


class TreeGrower:
    """Grows trees on one training set, any number of them at the same time.

    A tree depends neither on the number of `threads`, which divide the features of a search, nor
    on the order of the samples.
    """

    def __init__(self, data: BinnedData, growth: Growth, threads: Threads | None = None):
        self.data, self.growth = data, growth
        self.threads = threads or Threads()
        if growth.order == "symmetric" and data.bins.dtype != np.uint8:
            raise ValueError("Symmetric trees need bins of one byte: choose at most 256 bins.")
        self._max_codes = int(data.n_codes.max())
        self._usable = data.kernel_data.usable
        self._stores: list[FloatArray] = []  # histograms that no tree uses at the moment

    def grow(
        self,
        sums: Summands,
        gain: Gain,
        *,
        rows: RowNumbers | None = None,
        other_rows: RowNumbers | None = None,
        seed: int = 0,
        copy: bool = True,
    ) -> GrownTree:
        """Grow a tree on some rows, all by default; `seed` is for the drawn features.

        The `other_rows` are found if they are not given. Without `copy` the values of `sums` may be
        changed.
        """
        samples, totals = sums.select(rows, copy=copy, threads=self.threads)
        limits = self._limits(0 if gain.entropy or not sums.has_labels else sums.n_columns)
        store = self._take_store(len(samples.order), sums.n_columns, limits)
        is_large = len(samples.order) * limits.n_drawn >= THREADS_FROM
        n_threads, n_parts = 1, 1
        if is_large:  # else cores need not be counted
            n_threads = self.threads.n_threads
            n_parts = min(self.threads.max_parts, -(-limits.n_drawn // AT_ONCE))
        tree = new_tree(
            len(samples.order), totals, seed, self._usable, limits.n_drawn, n_parts, store
        )
        data, scratch = self.data.kernel_data, scratch_of(samples)
        buffers = work_buffers(data, sums.n_columns)
        n_used_parts, threads_from = 1, THREADS_FROM if n_threads > 1 else NO_LIMIT
        while True:
            needed = kernels.grow(
                data, samples, scratch, gain, limits, tree, buffers, n_used_parts, threads_from
            )
            if needed == kernels.DONE:
                break
            if needed == kernels.SPACE:
                tree = enlarged(tree)
            elif needed == kernels.SEARCH:
                if len(buffers.cells) == 1:
                    buffers = work_buffers(data, sums.n_columns, self.threads.max_parts)
                n_used_parts = search_in_threads(
                    data, samples, gain, limits, tree, buffers, self.threads
                )
            else:
                partition_in_threads(data, samples, scratch, gain, limits, tree, self.threads)
        if len(store):
            self._stores.append(store)
        is_every = rows is None and len(samples.order) == len(sums)
        return self._finish(tree, samples, len(sums), other_rows, is_every)

    def _limits(self, n_labels: int) -> Limits:
        small_below = NO_LIMIT
        if self.data.bins.dtype == np.uint8:
            # Below this few bins occur, and finding them takes less time than scanning all cells.
            small_below = max(self._max_codes // 2, self._max_codes * (n_labels - 2) // SORTING)
        return self.growth.limits(len(self._usable), small_below)

    def _take_store(self, n_samples: int, n_columns: int, limits: Limits) -> FloatArray:
        """Memory for the histograms of some nodes, from an earlier tree if possible."""
        n_features, n_cells = len(self._usable), self._max_codes * n_columns
        n_bytes, n_bins_bytes = 8 * n_features * n_cells, self.data.bins.nbytes
        n_slots = 0
        keeps = limits.n_drawn == n_features and n_samples >= limits.small_below
        if keeps and 0 < n_bytes <= _MAX_KEPT_BYTES:  # else reading back takes longer than filling
            n_kept = (
                _SMALL_STORE if n_bins_bytes <= _SMALL_BINS else int(_STORE_FRACTION * n_bins_bytes)
            )
            n_slots = min(n_kept // n_bytes, n_samples // max(limits.small_below, 64))
        shape = (n_slots if n_slots > 1 else 0, n_features, n_cells)
        with suppress(IndexError):  # other threads may take the last one
            while (store := self._stores.pop()).shape != shape:
                pass
            return store
        return np.empty(shape)

    def _finish(
        self,
        tree: GrowingTree,
        samples: NodeSamples,
        n_rows: int,
        other_rows: RowNumbers | None,
        is_every: bool,
    ) -> GrownTree:
        grown, totals = finished(tree, self.data.mapper)
        others = np.empty(0, np.int64) if other_rows is None else other_rows
        if other_rows is None and not is_every:
            is_other = np.ones(n_rows, bool)
            is_other[samples.order] = False
            others = np.flatnonzero(is_other)
        nodes = tree.nodes[: len(totals)]
        return GrownTree(grown, totals, self.data, self.threads, nodes, samples.order, others)


def finished(tree: GrowingTree, mapper: BinMapper) -> tuple[Tree, FloatArray]:
    """A tree, and the sums of its nodes (n_nodes, C)."""
    n = int(tree.state[kernels.N_NODES])
    sets = tree.sets[:n] if mapper.categorical.any() else None
    return Tree.from_nodes(tree.nodes[:n], sets, mapper), tree.totals[:n].copy()
