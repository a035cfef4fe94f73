"""`CudaTreeShard`: rows of a training set on a GPU; results equal those of `LocalTreeShard`.

Sums are over whole numbers, hence equal bit by bit. Labels and values of the samples stay in place:
only the order of the samples changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask, RowNumbers
from badacost.backends.device import Device
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree, known_sets
from badacost.tree.shards import LevelRequest, LevelResult, Root, Splits

THREADS = 256
_HISTOGRAM_THREADS = 512
_DIVIDED = 4096  # samples of a block in a partition
_MIN_SUMMED, _MAX_SUMMED = 4096, 2**17  # samples of a block in a histogram
BLOCKS_PER_PROCESSOR = 16
_CELL_BYTES = 8
_SUM_BITS = 60  # bits of a sum of weights
_UPLOADED = 2**28  # bytes of bins that are uploaded at a time


class DeviceSums(NamedTuple):
    """What trees sum: numbers of all samples, or a weight by label, both on the device."""

    quantum: FloatArray  # (C,), on the host: sums are multiples of it
    rows: Any = None  # int32 (C, n), in quanta
    labels: Any = None  # uint16 (n,)
    weights: Any = None  # float32 (n,), multiples of the quantum


def label_quantum(total: float, n_columns: int) -> FloatArray:
    """Quantum of the weights of each label (C,), a power of two, from their total."""
    return np.full(n_columns, np.ldexp(1.0, int(np.frexp(total)[1]) - _SUM_BITS))


@dataclass(eq=False)
class _Growing:
    """A tree in progress: the order of its samples, and the ranges of its nodes."""

    sums: DeviceSums
    order: Any
    ranges: IndexArray  # (n_nodes, 2)


class CudaTreeShard:
    """Bins of some rows on a device, and the trees that grow on them; see `LocalTreeShard`."""

    def __init__(self, data: BinnedData, device: Device):
        self.data, self.device, self.n_rows = data, device, data.bins.shape[1]
        self.words = _packed(data.bins, device)
        self._n_codes = int(data.n_codes.max())
        self._trees: dict[int, _Growing] = {}

    def begin(self, key: int, sums: DeviceSums, rows: RowNumbers | None = None) -> Root:
        """Begin a tree on some rows, all by default."""
        xp = self.device.xp
        order = xp.arange(self.n_rows, dtype=np.uint32)
        if rows is not None:
            order = xp.array(rows, dtype=np.uint32)
        if sums.labels is not None:
            order = order[sums.weights[order] > 0.0]
            labels, weights = sums.labels[order], sums.weights[order]
            # Exact in any order, since weights are multiples of a quantum.
            totals = xp.bincount(labels, weights.astype(np.float64), len(sums.quantum))
        else:
            quanta = sums.rows[:, order].sum(axis=1, dtype=np.int64)
            totals = quanta * self.device.upload(sums.quantum)
        ranges = np.zeros((64, 2), np.int64)
        ranges[0, 1] = len(order)
        self._trees[key] = _Growing(sums, order, ranges)
        return Root(len(order), self.device.download(totals))

    def end(self) -> None:
        """Release all trees."""
        self._trees.clear()

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        """Take growing trees one level further."""
        growing = [(key, self._trees[key], request) for key, request in requests.items()]
        return {
            key: LevelResult(*self._divide(tree, request.splits), *self._sum(tree, request))
            for key, tree, request in growing
        }

    def _divide(self, tree: _Growing, splits: Splits) -> tuple[IndexArray, Mask]:
        """Partition the samples of nodes, none of which is a child of another."""
        if not len(splits.nodes):
            return np.zeros((0, 2), np.int64), np.zeros(0, bool)
        if (n_nodes := int(splits.lefts.max()) + 2) > len(tree.ranges):
            tree.ranges = np.concatenate([tree.ranges, np.zeros((2 * n_nodes, 2), np.int64)])
        device, ranges = self.device, tree.ranges[splits.nodes]
        categorical = self.data.mapper.categorical[splits.features]
        category_set = np.where(categorical, np.arange(len(categorical)), -1)
        test = splits.features, splits.positions, splits.missing_left
        tests, sets = self._tests(*test, category_set, splits.sets)
        chunks = _chunks(ranges, _DIVIDED)
        on_device = device.upload(chunks)
        n_left = device.xp.zeros(max(len(chunks), 1), np.uint32)
        seen = device.xp.zeros(len(ranges), np.uint32)
        common = (self.words, self.n_rows, tree.order, on_device, tests, sets)
        self._launch("count_left", len(chunks), *common, n_left, seen)
        counts = device.download(n_left)[: len(chunks)].astype(np.int64)
        jobs, start = chunks[:, 0], ranges[:, 0]
        all_left = np.bincount(jobs, counts, len(ranges)).astype(np.int64)
        before = np.cumsum(counts) - counts  # over all nodes; those of others are subtracted
        before -= (np.cumsum(all_left) - all_left)[jobs]
        first_left = start[jobs] + before
        first_right = chunks[:, 1] + all_left[jobs] - before
        places = device.upload(first_left), device.upload(first_right)
        divided = tree.order.copy()
        self._launch("divide", len(chunks), *common, *places, divided)
        tree.order = divided
        middle = start + all_left
        tree.ranges[splits.lefts] = np.stack([start, middle], axis=1)
        tree.ranges[splits.lefts + 1] = np.stack([middle, ranges[:, 1]], axis=1)
        sizes = np.stack([all_left, ranges[:, 1] - middle], axis=1)
        return sizes, device.download(seen) > 0

    def _tests(
        self, features: Any, positions: Any, missing_left: Any, category_set: Any, sets: Any
    ) -> tuple[Any, Any]:
        """Tests of nodes as kernels take them, and sets of categories, on the device."""
        n_bins = self.data.mapper.n_bins[features]
        tests = np.stack([features, positions, n_bins, missing_left, category_set], axis=1)
        return self.device.upload(tests.astype(np.int32)), self.device.upload(sets)

    def _sum(self, tree: _Growing, request: LevelRequest) -> tuple[FloatArray, IndexArray]:
        """Histograms of nodes, and numbers of samples by bin if requested."""
        n_columns, n_codes = len(tree.sums.quantum), self._n_codes
        shape = len(request.nodes), request.features.shape[1]
        features = np.broadcast_to(request.features.astype(np.int32), shape)
        chosen, ranges = self.device.upload(features), tree.ranges[request.nodes]
        kind = "sum_rows" if tree.sums.labels is None else "sum_labels"
        found = self._histograms(kind, tree, ranges, chosen, n_columns)
        sums = self.device.download(found * self.device.upload(tree.sums.quantum))
        counts = np.zeros((0, 0, 0), np.int64)
        if request.counted:
            found = self._histograms("count_bins", tree, ranges, chosen, 1)
            counts = self.device.download(found).reshape(*shape, n_codes)
        return sums.reshape(*shape, n_codes * n_columns), counts

    def _histograms(
        self, kind: str, tree: _Growing, ranges: IndexArray, features: Any, n_columns: int
    ) -> Any:
        """Histograms on the device, in quanta."""
        device, n_features = self.device, features.shape[1]
        n_bytes = 4 * self._n_codes * _CELL_BYTES  # for a word of four features
        n_apart = min(n_columns, device.max_shared // n_bytes)
        n_words = 4
        while n_words > 1 and (
            n_words * n_bytes * n_apart > device.max_shared // 2 or 2 * n_features <= 4 * n_words
        ):
            n_words //= 2
        groups = -(-n_features // (4 * n_words)), -(-n_columns // n_apart)
        n_rows = int((ranges[:, 1] - ranges[:, 0]).sum())
        n_blocks = max(
            device.n_processors * BLOCKS_PER_PROCESSOR // max(groups[0] * groups[1], 1), 1
        )
        chunks = _chunks(ranges, int(np.clip(n_rows // n_blocks, _MIN_SUMMED, _MAX_SUMMED)))
        cells = device.xp.zeros((len(ranges), n_features, self._n_codes, n_columns), np.int64)
        # A kernel does not read those that are None.
        given = [tree.order if array is None else array for array in tree.sums[1:]]
        self._launch(
            f"{kind}_{n_words}", (len(chunks), *groups), self.words, self.n_rows, tree.order,
            device.upload(chunks), features, n_features, self._n_codes, n_columns, n_apart,
            *given, 1.0 / float(tree.sums.quantum[0]), cells,
            threads=_HISTOGRAM_THREADS, shared=n_words * n_bytes * n_apart,
        )  # fmt: skip
        return cells

    def leaves(self, tree: Tree) -> Any:
        """Leaves of all rows in a finished tree, on the device (int32)."""
        test = tree.feature, tree.position, tree.missing_left
        tests, sets = self._tests(*test, *known_sets(tree))
        found = self.device.xp.empty(self.n_rows, np.int32)
        self._launch(
            "descend", -(-self.n_rows // THREADS), self.words, self.n_rows, tests,
            self.device.upload(tree.left), sets, found,
        )  # fmt: skip
        return found

    def _launch(
        self, kernel: str, blocks: Any, *arguments: Any, threads: int = THREADS, shared: int = 0
    ) -> None:
        self.device.launch("backends/trees", kernel, blocks, threads, *arguments, shared=shared)


def _packed(bins: NDArray[np.uint8], device: Device) -> Any:
    """Bins (n_features, n) on the device as words of four features."""
    n_features, n = bins.shape
    n_words = -(-n_features // 4)
    words = device.xp.empty((n_words, n), np.uint32)
    n_together = max(_UPLOADED // max(4 * n, 1), 1)
    for first in range(0, n_words, n_together):
        part = device.upload(bins[4 * first : 4 * (first + n_together)])
        grid = (-(-n // THREADS), -(-len(part) // 4))
        device.launch("backends/trees", "pack", grid, THREADS, part, len(part), n, words[first:])
    return words


def _chunks(ranges: IndexArray, size: int) -> IndexArray:
    """Divide ranges (n_jobs, 2) into chunks of at most `size`: rows (job, start, end)."""
    n_pieces = -(-(ranges[:, 1] - ranges[:, 0]) // size)
    jobs = np.repeat(np.arange(len(ranges)), n_pieces)
    number = np.arange(len(jobs)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    start = ranges[jobs, 0] + number * size
    return np.stack([jobs, start, np.minimum(start + size, ranges[jobs, 1])], axis=1)
