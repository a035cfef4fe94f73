"""Trees from sums over the shards of a training set: equal to those of `TreeGrower`, bit by bit.

A shard holds the bins of some rows: in this process, on a GPU or on a worker of a cluster. For each
level of a tree the shards get one request: they partition the nodes of the previous level, and
return the histograms of the lighter one of two siblings. Those of the other are the difference to
the histograms of the parent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, LeafNumbers, Mask, RowNumbers
from badacost._utils.parallel import Threads
from badacost.tree import growth_kernels as kernels
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.grower import (
    NO_LIMIT,
    Gain,
    Growth,
    Summands,
    enlarged,
    finished,
    new_tree,
    scratch_of,
    work_buffers,
)
from badacost.tree.histogram_kernels import AT_ONCE, NodeSamples
from badacost.tree.split_kernels import N_JOBS, NODE, draw_features, search

_NO_NODES = np.empty(0, np.int64)
_NO_COUNTS = np.empty((0, 0, 0), np.int64)
_MAX_KEPT_BYTES = 2**30  # of histograms that are kept for subtraction


class Splits(NamedTuple):
    """Nodes to split: their tests, and the numbers of their left children."""

    nodes: IndexArray = _NO_NODES
    lefts: IndexArray = _NO_NODES
    features: IndexArray = _NO_NODES
    positions: IndexArray = _NO_NODES
    missing_left: Mask = np.empty(0, bool)
    sets: NDArray[np.uint32] = np.empty((0, kernels.N_WORDS), np.uint32)  # categories on the right


class LevelRequest(NamedTuple):
    """Splits to make in a growing tree, and nodes whose histograms are needed afterwards."""

    splits: Splits = Splits()
    nodes: IndexArray = _NO_NODES
    features: IndexArray = np.empty((1, 0), np.int64)  # (1, n_features) or (n_nodes, n_features)
    counted: bool = False  # whether numbers of samples by bin are needed


class LevelResult(NamedTuple):
    """Sums over the samples of one shard, or of all shards."""

    sizes: IndexArray  # (n_splits, 2), numbers of samples of both children
    missing: Mask  # (n_splits,), whether values are missing
    cells: FloatArray  # (n_nodes, n_features, n_codes * C)
    counts: IndexArray  # (n_nodes, n_features, n_codes), or empty


class Root(NamedTuple):
    """Number of samples and sums (C,) of the root of a tree."""

    n_samples: int
    totals: FloatArray


class TreeShard(Protocol):
    """Bins of some rows, and the trees that grow on them, each with a number."""

    def begin(self, key: int, sums: Any, rows: RowNumbers | None = None) -> Root:
        """Begin a tree on some rows, all by default, from `Summands` or those of a device."""

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        """Take growing trees one level further."""

    def end(self) -> None:
        """Release all trees."""

    def leaves(self, tree: Tree) -> Any:
        """Leaves of all rows in a finished tree, an array where the shard is."""


def add_roots(roots: Sequence[Root]) -> Root:
    """Sums over the roots of all shards."""
    return Root(sum(r.n_samples for r in roots), np.sum([r.totals for r in roots], axis=0))


def add_results(results: Sequence[LevelResult]) -> LevelResult:
    """Sums over the results of all shards."""
    if len(results) == 1:
        return results[0]
    sizes, missing, cells, counts = zip(*results, strict=True)
    return LevelResult(sum(sizes), np.any(missing, axis=0), sum(cells), sum(counts))


class LocalTreeShard:
    """A `TreeShard` in this process."""

    def __init__(self, data: BinnedData, threads: Threads | None = None):
        self.data = data
        self.threads = threads or Threads()
        self._trees: dict[int, tuple[NodeSamples, NDArray[np.void], int]] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.bins.shape[1]

    def begin(self, key: int, sums: Summands, rows: RowNumbers | None = None) -> Root:
        """Begin a tree on some rows, all by default."""
        samples, totals = sums.select(rows)
        nodes = np.zeros(64, NODE)
        nodes[0]["end"] = len(samples.order)
        self._trees[key] = samples, nodes, sums.n_columns
        return Root(len(samples.order), totals)

    def end(self) -> None:
        """Release all trees."""
        self._trees.clear()

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        """Take growing trees one level further."""
        return {key: self._level(key, request) for key, request in requests.items()}

    def _level(self, key: int, request: LevelRequest) -> LevelResult:
        sizes, missing = self._divide(key, request.splits)
        samples, nodes, n_columns = self._trees[key]
        n_codes = int(self.data.n_codes.max())
        features = np.array(request.features, order="C")  # arrays that were sent may be read-only
        shape = (len(request.nodes), features.shape[1])
        cells = np.zeros((*shape, n_codes * n_columns))
        counts = np.zeros((*shape, n_codes), np.int64) if request.counted else _NO_COUNTS
        places = np.arange(len(request.nodes))
        if len(request.nodes):
            kernels.fill(
                self.threads.loop(-(-shape[1] // AT_ONCE), 1), self.data.kernel_data, samples,
                nodes, np.array(request.nodes), places, features, n_columns, cells[None], counts,
            )  # fmt: skip
        return LevelResult(sizes, missing, cells, counts)

    def _divide(self, key: int, splits: Splits) -> tuple[IndexArray, Mask]:
        samples, nodes, n_columns = self._trees[key]
        sizes = np.zeros((len(splits.nodes), 2), np.int64)
        missing = np.zeros(len(splits.nodes), bool)
        if len(splits.nodes):
            n_nodes = int(splits.lefts.max()) + 2
            if n_nodes > len(nodes):
                nodes = np.concatenate([nodes, np.zeros(2 * n_nodes, NODE)])
                self._trees[key] = samples, nodes, n_columns
            nodes["feature"][splits.nodes] = splits.features
            nodes["position"][splits.nodes] = splits.positions
            nodes["missing_left"][splits.nodes] = splits.missing_left
            kernels.partition(
                self.data.kernel_data, samples, scratch_of(samples), nodes, np.array(splits.nodes),
                np.array(splits.lefts), np.array(splits.sets), np.empty((2, n_columns)), sizes,
                missing,
            )  # fmt: skip
        return sizes, missing

    def leaves(self, tree: Tree) -> LeafNumbers:
        """Leaves of all rows in a finished tree."""
        return tree.descend(self.data, threads=self.threads)


@dataclass(frozen=True, eq=False)
class PlannedTree:
    """A tree to grow: its root, the gain of splits, and the seed of drawn features."""

    root: Root
    gain: Gain
    seed: int = 0


Level = Callable[[dict[int, LevelRequest]], dict[int, LevelResult]]


class ShardedGrower:
    """Grows trees, several at a time, from the sums of shards."""

    def __init__(self, mapper: BinMapper, growth: Growth, threads: Threads | None = None):
        self.mapper, self.growth = mapper, growth
        self.threads = threads or Threads()
        if mapper.n_codes.max() > 256:
            raise ValueError("Trees on shards need bins of one byte: choose at most 256 bins.")
        self.data = BinnedData(mapper, np.empty((len(mapper.n_bins), 0), np.uint8)).kernel_data

    def grow(
        self, planned: dict[int, PlannedTree], level: Level
    ) -> dict[int, tuple[Tree, FloatArray]]:
        """Grow trees together; each comes with the sums of its nodes (n_nodes, C)."""
        growing = {key: _Growing(self, plan).run() for key, plan in planned.items()}
        grown: dict[int, tuple[Tree, FloatArray]] = {}
        requests = {key: next(steps) for key, steps in growing.items()}
        while requests:
            results = level(requests)
            requests = {}
            for key, result in results.items():
                try:
                    requests[key] = growing[key].send(result)
                except StopIteration as done:
                    grown[key] = done.value
        return grown


class _Growing:
    """One tree in progress: yields requests, and is sent results."""

    def __init__(self, grower: ShardedGrower, plan: PlannedTree):
        self.grower, self.gain, data = grower, plan.gain, grower.data
        self.limits = grower.growth.limits(len(data.usable), 0)
        self.draws = self.limits.n_drawn < len(data.usable)
        n_columns, n_parts = len(plan.root.totals), grower.threads.n_threads
        self.tree = new_tree(
            *plan.root, plan.seed, data.usable, self.limits.n_drawn, n_parts, np.empty((0, 0, 0))
        )
        self.kept: dict[int, tuple[NDArray[Any], ...]] = {}  # histograms and counts by node
        self.lefts = np.empty_like(self.tree.totals)
        self.samples = NodeSamples(
            np.empty(0, np.uint32), np.empty(0, np.uint16), np.empty((0, 1), np.float32)
        )
        self.buffers = work_buffers(data, n_columns, n_parts)

    @property
    def new(self) -> range:
        """Nodes that were added last."""
        return range(self.tree.state[kernels.FIRST], self.tree.state[kernels.N_NODES])

    def run(self) -> Generator[LevelRequest, LevelResult, tuple[Tree, FloatArray]]:
        """Grow the tree."""
        splits = Splits()
        counted = self.limits.min_samples_leaf > 1 or (
            self.limits.symmetric and self.limits.min_samples_split > 2
        )
        while True:
            kernels.set_active(self.gain, self.limits, self.tree)  # numbers of samples are unknown
            wanted = self._wanted()
            features = self._draw(wanted)
            result = yield LevelRequest(splits, wanted, features, counted)
            self._take_sizes(splits, result)
            kernels.set_active(self.gain, self.limits, self.tree)
            splits = self._split(wanted, features, result)
            if not len(splits.nodes):
                return finished(self.tree, self.grower.mapper)

    def _wanted(self) -> IndexArray:
        """Nodes whose histograms are needed: of two siblings the lighter one is enough."""
        nodes, wanted = self.tree.nodes, []
        for left in self.new[::2]:
            pair = [node for node in (left, left + 1) if node in self.new and nodes[node]["active"]]
            if pair and int(nodes[left]["parent"]) in self.kept:
                pair = [left if nodes[left]["mass"] <= nodes[left + 1]["mass"] else left + 1]
            wanted += pair
        return np.array(wanted, np.int64)

    def _draw(self, wanted: IndexArray) -> IndexArray:
        """Features of nodes: one row for all of them, or one for each."""
        usable = self.grower.data.usable
        if not self.draws:
            return usable[None]
        n_draws = min(len(wanted), 1) if self.limits.symmetric else len(wanted)
        drawn = np.empty((n_draws, self.limits.n_drawn), np.int64)
        tree, taken = self.tree, self.buffers.taken[0]
        draw_features(tree.seed, tree.nodes, wanted, self.limits, usable, drawn, taken)
        return drawn

    def _take_sizes(self, splits: Splits, result: LevelResult) -> None:
        """Set the numbers of samples of new children."""
        nodes = self.tree.nodes
        for child in (0, 1):
            nodes["end"][splits.lefts + child] = result.sizes[:, child]
        # Values missing at prediction only follow the larger child.
        larger_left = result.sizes[:, 0] >= result.sizes[:, 1]
        seen = nodes["missing_left"][splits.nodes]
        nodes["missing_left"][splits.nodes] = np.where(result.missing, seen, larger_left)

    def _split(self, wanted: IndexArray, features: IndexArray, result: LevelResult) -> Splits:
        """Search the splits of the active nodes, and add children whose sizes are not known yet."""
        while 2 * len(self.new) + self.new.stop > len(self.tree.nodes):
            self.tree = enlarged(self.tree)
            self.lefts = np.resize(self.lefts, self.tree.totals.shape)
        jobs, rows = self._jobs(wanted)
        if self.draws and not self.limits.symmetric:
            features = features[rows]
        given = [result.cells, result.counts] if len(result.counts) else [result.cells]
        found = [np.empty((len(jobs), *part.shape[1:]), part.dtype) for part in given]
        counts = found[1] if len(found) > 1 else self.tree.counts
        data, limits, nodes = self.grower.data, self.limits, self.tree.nodes
        free = np.empty(len(jobs), np.int32)
        tree = self.tree._replace(features=features, store=found[0], counts=counts, free=free)
        tree.jobs[: len(jobs)] = jobs
        tree.state[N_JOBS], tree.state[kernels.N_FREE] = len(jobs), 0
        parents = [
            None if node in wanted else self.kept[int(nodes[node]["parent"])] for node in jobs
        ]

        def take(*used: int) -> None:
            some = slice(*used)
            for number, (out, sums) in enumerate(zip(found, given, strict=True)):
                for here, row, parent in zip(out, rows, parents, strict=True):
                    here[some] = sums[row, some]
                    if parent is not None:  # of the sibling
                        np.subtract(parent[number][some], here[some], here[some])

        threads = self.grower.threads
        parts = threads.parts(features.shape[1]) if len(jobs) else []
        threads.run(take, parts)
        if parts:
            tasks = np.array([(p, *used, 0, len(jobs)) for p, used in enumerate(parts)])
            loop = threads.loop(len(parts), 1)
            search(loop, data, self.samples, self.gain, limits, tree, tasks, self.buffers)
        n_splits = kernels.split(data, self.gain, limits, tree, self.lefts, len(parts))
        nodes["end"][self.new] = NO_LIMIT
        chosen = tree.jobs[:n_splits].copy()
        self._keep(jobs, found, chosen)
        tests = nodes[chosen]
        return Splits(
            chosen,
            tests["left"].astype(np.int64),
            tests["feature"].astype(np.int64),
            tests["position"].astype(np.int64),
            tests["missing_left"].copy(),
            tree.sets[chosen],
        )

    def _jobs(self, wanted: IndexArray) -> tuple[IndexArray, list[int]]:
        """The active nodes, the smaller of two siblings first.

        Also their rows, or those of their siblings, in the results of the shards.
        """
        nodes, row = self.tree.nodes, {node: j for j, node in enumerate(wanted.tolist())}
        jobs: list[int] = []
        for left in self.new[::2]:
            pair = [left] if left == 0 else [left, left + 1]
            sizes = nodes["end"][pair] - nodes["start"][pair]
            jobs += [pair[k] for k in np.argsort(sizes, kind="stable") if nodes[pair[k]]["active"]]
        nodes["job"][jobs] = nodes["slot"][jobs] = np.arange(len(jobs))
        # Left children have odd numbers; the root alone has no sibling.
        rows = [row.get(node, row.get(node + 1 if node % 2 else node - 1, 0)) for node in jobs]
        return np.array(jobs, np.int64), rows

    def _keep(self, jobs: IndexArray, found: list[NDArray[Any]], chosen: IndexArray) -> None:
        """Keep the histograms of nodes that are split now or later, unless they are too large."""
        nodes = self.tree.nodes
        nodes["slot"][jobs] = -1
        needed = {*chosen.tolist(), *np.flatnonzero(nodes["waiting"][: self.new.start]).tolist()}
        self.kept |= dict(zip(jobs.tolist(), zip(*found, strict=True), strict=True))
        self.kept = {node: kept for node, kept in self.kept.items() if node in needed}
        if self.draws or sum(kept[0].nbytes for kept in self.kept.values()) > _MAX_KEPT_BYTES:
            self.kept = {}
