"""One tree from binned samples and what is to be summed over them.

The grower knows rows, bins and sums: neither classes nor costs. The caller says what is summed and
which gain a split shall have, and makes leaf values of the sums that come back.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.arrays import FloatArray, LeafNumbers, RowNumbers
from badacost.threads import Threads
from badacost.tree import growth_kernels, split_kernels
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.gain_kernels import Entropy, Gini, SquaredGradients
from badacost.tree.histogram_kernels import NODE, Summed
from badacost.tree.sums import Rows, WeightedLabels

GrowthOrder = Literal["level", "best", "symmetric"]
DrawPer = Literal["node", "level"]
Gain = Gini | Entropy | SquaredGradients

_NO_LIMIT = 2**31 - 1
_STORE_SHARE = 1 / 16  # histograms kept for subtraction, relative to the bytes of the bins
_SMALL_BINS, _SMALL_STORE = 2**23, 2**24  # bytes: for small data more does not matter
_MAX_KEPT_BYTES = 2**22  # of one node, about what the caches of a core hold
_MIN_NODES = 256  # that there is room for in the beginning
_PARTS_PER_THREAD = 4
_MIN_PART = 16  # features
_MIN_THREADED = 200_000  # samples times features of a search that is worth more than one thread


@dataclass(frozen=True)
class Growth:
    """How far trees grow, and in which order; None means no limit.

    `n_drawn` features are drawn at each node, or at each level for all its nodes: on wide data
    the nodes of a level then share what they read from memory. `max_leaf_nodes` is for the order
    "best". Symmetric trees have the same test in all nodes of a level, and heed `max_depth` and
    `n_drawn` only.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    n_drawn: int | None = None
    draw_per: DrawPer = "node"
    order: GrowthOrder = "level"


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A tree, the sums of its nodes (n_nodes, C), and the leaf of each training row."""

    tree: Tree
    sums: FloatArray
    leaves: LeafNumbers


class TreeGrower:
    """Grows trees on one training set, any number of them at the same time.

    The result depends neither on the number of `threads`, which share the features of a search,
    nor on the order of the samples.
    """

    def __init__(self, data: BinnedData, growth: Growth, threads: Threads | None = None):
        self.data, self.growth = data, growth
        self.threads = threads or Threads()
        if growth.order == "symmetric" and data.bins.dtype != np.uint8:
            raise ValueError("Symmetric trees need bins of one byte: choose at most 256 bins.")
        self._max_codes = int(data.n_codes.max())
        self._stores: list[FloatArray] = []  # histograms that no tree uses at the moment

    def grow(
        self,
        sums: WeightedLabels | Rows,
        gain: Gain,
        *,
        rows: RowNumbers | None = None,
        seed: int = 0,
        consume: bool = False,
    ) -> GrownTree:
        """Grow a tree on some rows, all by default; the seed is that of the drawn features.

        With `consume` the sums may be changed.
        """
        limits = self._limits(sums.n_columns)
        used = sums.taken(rows, consume)
        store = self._take_store(len(used.order), sums.n_columns, limits)
        n_slots = 0 if store is None else len(store)
        state = np.zeros(growth_kernels.N_STATES, np.int64)
        state[growth_kernels.N_FREE] = n_slots
        free = np.arange(n_slots, dtype=np.int32)
        alike = True if self.growth.order == "symmetric" else None
        fixed = (self.data.kernel_data, used, sums.width, gain, limits)
        space = Space(_MIN_NODES, sums.n_columns, self._n_parts, self.data.mapper)
        threads_from = _MIN_THREADED if self.threads.n_threads > 1 else 2**62
        n_parts = 1
        while True:
            needed = growth_kernels.grow(
                *fixed, np.uint64(seed), space.nodes, space.totals, space.sets, space.jobs, store,
                free, space.found, space.found_sets, state, n_parts, threads_from, alike,
            )  # fmt: skip
            if needed == growth_kernels.DONE:
                break
            if needed == growth_kernels.SPACE:
                space.enlarge()
            else:
                jobs = space.jobs[: state[growth_kernels.N_JOBS]]
                n_parts = self._search(fixed, np.uint64(seed), space, store, jobs, alike)
        if store is not None and n_slots:
            self._stores.append(store)
        return self._finish(space, int(state[growth_kernels.N_NODES]), used, sums.width, len(sums))

    @property
    def _n_parts(self) -> int:
        """Parts of the features that threads search; more parts than threads, as they differ."""
        return 1 if self.threads.n_threads == 1 else self.threads.n_threads * _PARTS_PER_THREAD

    def _limits(self, n_columns: int) -> split_kernels.Limits:
        large_from = 2**62  # a histogram is for bins that are bytes
        if self.data.bins.dtype == np.uint8:
            # Below this the scan of all cells costs more than sorting the samples.
            large_from = int(max(256.0, self._max_codes * (1.0 + n_columns / 8.0)))
        return kernel_limits(self.growth, len(self.data.bins), large_from)

    def _take_store(
        self, n_samples: int, n_columns: int, limits: split_kernels.Limits
    ) -> FloatArray | None:
        """Room for the histograms of some nodes, from an earlier tree if there is one.

        None where bins are no bytes, which are not searched by histograms.
        """
        n_features, n_cells = len(self.data.bins), self._max_codes * n_columns
        if self.data.bins.dtype != np.uint8:
            return None
        if self.data.bins.shape[1] < limits.large_from:
            return np.empty((0, 1, 0))
        if limits.n_drawn < n_features:
            return np.empty((0, 1, n_cells))
        n_bytes = 8 * n_features * n_cells
        n_slots = 0
        if n_bytes <= _MAX_KEPT_BYTES:  # else reading them back takes longer than filling
            small = self.data.bins.nbytes <= _SMALL_BINS
            n_kept = _SMALL_STORE if small else int(_STORE_SHARE * self.data.bins.nbytes)
            n_slots = min(n_kept // n_bytes, n_samples // max(limits.large_from, 64))
        shape = (n_slots if n_slots > 1 else 0, n_features, n_cells)
        with suppress(IndexError):  # other threads may take the last one
            while (store := self._stores.pop()).shape != shape:
                pass
            return store
        return np.empty(shape)

    def _search(
        self, fixed: Any, seed: np.uint64, space: Space, store: Any, jobs: Any, alike: Any
    ) -> int:
        """Search for the splits of a batch, the features shared among the threads."""
        limits, n_features = fixed[-1], len(self.data.bins)
        drawn = split_kernels.draw_features(
            seed, space.nodes, jobs, limits, n_features, alike is not None
        )
        parts = self.threads.parts(n_features, max(-(-n_features // self._n_parts), _MIN_PART))

        def search(part: int, features: tuple[int, int]) -> None:
            sets = None if space.found_sets is None else space.found_sets[part]
            split_kernels.search(
                *fixed, space.nodes, space.totals, store, jobs, drawn, *features,
                space.found[part], sets, alike,
            )  # fmt: skip

        return len(self.threads.run(search, enumerate(parts)))

    def _finish(
        self, space: Space, n_nodes: int, used: Summed, width: Any, n_rows: int
    ) -> GrownTree:
        nodes, totals = space.nodes[:n_nodes], space.totals[:n_nodes]
        sets = None if space.sets is None else space.sets[:n_nodes]
        tree = Tree.from_nodes(nodes, sets, self.data.mapper)
        leaves = np.empty(n_rows, np.min_scalar_type(n_nodes - 1))
        if len(used.order) < n_rows:
            unseen = np.ones(n_rows, bool)
            unseen[used.order] = False
            tree.descend(self.data, leaves, np.flatnonzero(unseen))
        growth_kernels.finish(nodes, used, width, totals, leaves)
        return GrownTree(tree, totals.copy(), leaves)


def kernel_limits(growth: Growth, n_features: int, large_from: int) -> split_kernels.Limits:
    """Limits as kernels take them; nodes from a number of samples on are searched by histograms."""
    return split_kernels.Limits(
        _limit(growth.max_depth),
        _limit(growth.max_leaf_nodes if growth.order == "best" else None),
        int(growth.min_samples_split),
        int(growth.min_samples_leaf),
        min(_limit(growth.n_drawn), n_features),
        growth.draw_per == "level",
        growth.order == "best",
        0 if growth.order == "symmetric" else large_from,
    )


def _limit(number: int | None) -> int:
    """A limit as a Python integer, the one type that kernels are compiled for."""
    return _NO_LIMIT if number is None else int(number)


class Space:
    """Arrays by node of a growing tree; sets of categories only where there are any."""

    def __init__(self, n_nodes: int, n_columns: int, n_parts: int, mapper: BinMapper):
        shape = (n_nodes, growth_kernels.N_WORDS)
        categorical = mapper.any_categorical
        self.nodes = np.empty(n_nodes, NODE)
        self.totals = np.empty((n_nodes, n_columns))
        self.jobs = np.empty(n_nodes, np.int64)
        self.found = np.empty((n_parts, n_nodes), split_kernels.SPLIT)
        self.sets = np.zeros(shape, np.uint32) if categorical else None
        self.found_sets = np.zeros((n_parts, *shape), np.uint32) if categorical else None
        self._arguments = (n_columns, n_parts, mapper)

    def enlarge(self) -> None:
        """Make room for more nodes, between searches, so that what was found is not needed."""
        larger = Space(4 * len(self.nodes), *self._arguments)
        larger.nodes[: len(self.nodes)] = self.nodes
        larger.totals[: len(self.nodes)] = self.totals
        if larger.sets is not None and self.sets is not None:
            larger.sets[: len(self.nodes)] = self.sets
        self.__dict__.update(larger.__dict__)
