"""One tree from binned samples and what is to be summed over them.

The grower knows rows, bins and sums: neither classes nor costs. The caller says what is summed and
which gain a split shall have, and makes leaf values of the sums that come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.arrays import FloatArray, LeafNumbers, RowNumbers
from badacost.threads import Threads
from badacost.tree import kernels
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.sums import Rows, WeightedLabels

GrowthOrder = Literal["level", "best", "symmetric"]
DrawPer = Literal["node", "level"]
Gain = kernels.Gini | kernels.Entropy | kernels.SquaredGradients

_ORDERS = {
    "level": kernels.BY_LEVEL,
    "best": kernels.BEST_FIRST,
    "symmetric": kernels.SYMMETRIC,
}
_NO_LIMIT = 2**31 - 1
_MAX_HISTOGRAM_BYTES = 2**26  # kept for subtraction
_MIN_NODES = 64
_PARTS_PER_THREAD = 4
_MIN_PART = 16  # features
_MIN_THREADED = 200_000  # samples times features of a search that is worth more than one thread


@dataclass(frozen=True)
class Growth:
    """How far trees grow, and in which order; None means no limit.

    `n_drawn` features are drawn at each node, or at each level for all its nodes: on wide data
    the nodes of a level then share what they read from memory. Symmetric trees have the same test
    in all nodes of a level, and heed `max_depth` and `n_drawn` only.
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
        self._stores: list[FloatArray] = []  # histograms that no tree uses at the moment

    def grow(
        self,
        sums: WeightedLabels | Rows,
        gain: Gain,
        *,
        rows: RowNumbers | None = None,
        seed: int = 0,
    ) -> GrownTree:
        """Grow a tree on some rows, all by default; the seed is that of the drawn features."""
        limits = self._limits(sums.n_columns)
        used = sums.taken(rows)
        store = self._take_store(len(used["order"]), sums.n_columns, limits)
        state = np.zeros(kernels.N_STATES, np.int64)
        state[kernels.N_FREE] = len(store)
        tree = kernels.Growing(
            data=self.data.kernel_data,
            n_codes=self.data.n_codes,
            **used,
            gain=gain,
            limits=limits,
            seed=np.uint64(seed),
            **self._by_node(_MIN_NODES, sums.n_columns),
            store=store,
            free=np.arange(len(store), dtype=np.int32),
            state=state,
        )
        threads_from = _MIN_THREADED if self.threads.n_threads > 1 else 2**62
        n_parts = 1
        while (needed := kernels.grow(tree, sums.width, n_parts, threads_from)) != kernels.DONE:
            if needed == kernels.SPACE:
                tree = self._enlarged(tree)
            else:
                n_parts = self._search(tree, sums.width)
        self._stores.append(store)
        return self._finish(tree, len(sums))

    def _by_node(self, n_nodes: int, n_columns: int) -> dict[str, Any]:
        """Arrays of a growing tree that have a row for each node."""
        n_parts = 1 if self.threads.n_threads == 1 else self.threads.n_threads * _PARTS_PER_THREAD
        n_sets = n_nodes if self.data.mapper.any_categorical else 1
        return {
            "nodes": np.empty(n_nodes, kernels.NODE),
            "totals": np.empty((n_nodes, n_columns)),
            "sets": np.zeros((n_sets, kernels.N_WORDS), np.uint32),
            "jobs": np.empty(n_nodes, np.int64),
            "found": np.empty((n_parts, n_nodes), kernels.SPLIT),
            "found_sets": np.zeros((n_parts, n_sets, kernels.N_WORDS), np.uint32),
        }

    def _enlarged(self, tree: kernels.Growing) -> kernels.Growing:
        """The same tree with room for more nodes; between searches, nothing that was found."""
        n_before, n_columns = tree.totals.shape
        arrays = self._by_node(4 * n_before, n_columns)
        for name in ("nodes", "totals", "sets"):
            before = getattr(tree, name)
            arrays[name][: len(before)] = before
        return tree._replace(**arrays)

    def _limits(self, n_columns: int) -> kernels.Limits:
        growth = self.growth
        n_features = len(self.data.bins)
        large_from = 2**62  # a histogram is for bins that are bytes
        if self.data.bins.dtype == np.uint8:
            # Below this the scan of all cells costs more than sorting the samples.
            large_from = int(max(256.0, self.data.n_codes.max() * (1.0 + n_columns / 8.0)))
        return kernels.Limits(
            growth.max_depth or _NO_LIMIT,
            growth.max_leaf_nodes or _NO_LIMIT,
            growth.min_samples_split,
            growth.min_samples_leaf,
            min(growth.n_drawn or n_features, n_features),
            growth.draw_per == "level",
            _ORDERS[growth.order],
            0 if growth.order == "symmetric" else large_from,
        )

    def _take_store(self, n_samples: int, n_columns: int, limits: kernels.Limits) -> FloatArray:
        """Room for the histograms of some nodes, from an earlier tree if there is one."""
        n_features, n_cells = len(self.data.bins), int(self.data.n_codes.max()) * n_columns
        if self.data.bins.dtype != np.uint8 or limits.n_drawn < n_features:
            return np.empty((0, 1, n_cells))
        n_slots = min(
            _MAX_HISTOGRAM_BYTES // (8 * n_features * n_cells),
            n_samples // max(limits.large_from, 64),
        )
        shape = (n_slots if n_slots > 1 else 0, n_features, n_cells)
        while self._stores:
            store = self._stores.pop()
            if store.shape == shape:
                return store
        return np.empty(shape)

    def _search(self, tree: kernels.Growing, width: tuple[float, ...] | None) -> int:
        """Search for the splits of a batch, the features shared among the threads."""
        n_features = len(self.data.bins)
        jobs = tree.jobs[: tree.state[kernels.N_JOBS]]
        drawn = kernels.draw_features(tree.seed, tree.nodes, jobs, tree.limits, n_features)
        # More parts than threads: drawn features are not spread evenly, nor are cores alike.
        grain = max(-(-n_features // len(tree.found)), _MIN_PART)

        def search(part: int, features: tuple[int, int]) -> None:
            kernels.search(tree, width, jobs, drawn, *features, part)

        return len(self.threads.run(search, enumerate(self.threads.parts(n_features, grain))))

    def _finish(self, grown: kernels.Growing, n_rows: int) -> GrownTree:
        n_nodes = int(grown.state[kernels.N_NODES])
        nodes = grown.nodes[:n_nodes]
        tree = Tree.from_nodes(nodes, grown.sets[:n_nodes], self.data.mapper)
        leaves = np.empty(n_rows, np.min_scalar_type(n_nodes - 1))
        if len(grown.order) < n_rows:
            unseen = np.ones(n_rows, bool)
            unseen[grown.order] = False
            tree.descend(self.data, leaves, np.flatnonzero(unseen))
        kernels.mark_leaves(nodes, grown.order, leaves)
        return GrownTree(tree, grown.totals[:n_nodes].copy(), leaves)
