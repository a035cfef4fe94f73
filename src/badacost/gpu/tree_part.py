"""`CudaTreePart`: rows of a training set on a GPU; answers are those of `TreePart`, bit by bit.

Sums are of whole numbers there. Samples do not move: what is summed is looked up by the order of
the nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, Mask, RowNumbers
from badacost.gpu.device import Device
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.growth_kernels import N_WORDS
from badacost.tree.part import Answer, BinnedPart, Question, Splits
from badacost.tree.sums import Rows, WeightedLabels

THREADS = 256
_HISTOGRAM_THREADS = 512
_DIVIDED = 4096  # samples that a block divides
_MIN_SUMMED, _MAX_SUMMED = 4096, 2**17  # samples that a block sums
_BLOCKS_PER_PROCESSOR = 16
_CELL_BYTES = 8
_FINEST = 2.0**-52
_HOST_ROW_BITS = 25  # a column rounded to 24 bits may have reached the next power of two
_UPLOADED = 2**28  # bytes of bins that are packed together


class DeviceLabels(NamedTuple):
    """Labels (uint16) and weights (float32) of all samples, on the device."""

    labels: Any
    weights: Any
    n_columns: int


class DeviceRows(NamedTuple):
    """Rows of numbers of all samples, on the device: int32 (C, n) times a quantum (C,)."""

    quanta: Any
    quantum: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of sums C."""
        return len(self.quantum)


DeviceSums = DeviceLabels | DeviceRows


class _Growing:
    """A tree in progress: the order of its samples, and where its nodes begin and end."""

    def __init__(self, sums: DeviceSums, order: Any, spare: Any):
        self.sums, self.order, self.spare = sums, order, spare
        self.ranges = np.zeros((64, 2), np.int64)
        self.ranges[0, 1] = len(order)

    def reserve(self, n_nodes: int) -> None:
        """Make room for nodes up to a number."""
        if n_nodes > len(self.ranges):
            self.ranges = np.concatenate([self.ranges, np.zeros((2 * n_nodes, 2), np.int64)])


class CudaTreePart(BinnedPart):
    """Bins of some rows on a device, and the trees that grow on them; see `TreePart`."""

    def __init__(self, data: BinnedData, device: Device):
        if data.bins.dtype != np.uint8:
            raise ValueError('device="cuda" needs bins of one byte: choose at most 256 bins.')
        super().__init__(data)
        self.device = device
        self.words = _packed(data.bins, device)
        self._n_codes = int(data.n_codes.max())
        self._nothing = device.xp.zeros(1, np.int64)
        self._trees: dict[int, _Growing] = {}

    def begin(
        self, key: int, sums: DeviceSums | WeightedLabels | Rows, rows: RowNumbers | None = None
    ) -> None:
        """Begin a tree on some rows, all by default."""
        xp = self.device.xp
        there = self._uploaded(sums)
        order = xp.arange(self.n_rows, dtype=np.uint32)
        if rows is not None:
            order = xp.array(rows, dtype=np.uint32)
        if isinstance(there, DeviceLabels):
            alive = there.weights[order] > 0.0
            if not bool(alive.all()):
                order = order[alive]
        self._trees[key] = _Growing(there, order, xp.empty_like(order))

    def _uploaded(self, sums: DeviceSums | WeightedLabels | Rows) -> DeviceSums:
        """What is summed, on the device."""
        upload = self.device.upload
        if isinstance(sums, WeightedLabels):
            labels = upload(sums.labels.astype(np.uint16))
            return DeviceLabels(labels, upload(sums.weights), sums.n_columns)
        if isinstance(sums, Rows):
            largest = np.abs(sums.values).max(axis=0, initial=0.0).astype(np.float64)
            quantum = np.ldexp(1.0, np.frexp(largest)[1] - _HOST_ROW_BITS)
            quanta = (sums.values.astype(np.float64) / quantum).astype(np.int32)
            return DeviceRows(upload(quanta.T), quantum)
        return sums

    def end(self) -> None:
        """Let go of all trees."""
        self._trees.clear()

    def ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        """Answer questions about growing trees."""
        return {key: self._answer(self._trees[key], asked) for key, asked in questions.items()}

    def _answer(self, tree: _Growing, question: Question) -> Answer:
        sizes, missing = self._divide(tree, question.splits)
        cells, counts = self._sum(tree, question)
        n_weighed, largest = self._weigh(tree, question.weighed)
        totals = self._total(tree, question.totalled, question.total_units)[0]
        leaf_totals = np.zeros((2, len(question.leaves), tree.sums.n_columns))
        if isinstance(tree.sums, DeviceLabels):
            leaf_totals = self._total(tree, question.leaves, *question.leaf_units)
        return Answer(sizes, missing, cells, counts, n_weighed, largest, totals, leaf_totals)

    def _divide(self, tree: _Growing, splits: Splits) -> tuple[IndexArray, Mask]:
        """Divide nodes, none of which is a child of another, between their children."""
        if not len(splits.nodes):
            return np.zeros((0, 2), np.int64), np.zeros(0, bool)
        tree.reserve(int(splits.lefts.max()) + 2)
        device, ranges = self.device, tree.ranges[splits.nodes]
        tests, sets = self._tests(
            splits.features, splits.positions, splits.missing_left, splits.sets
        )
        chunks = _chunks(ranges, _DIVIDED)
        on_device = device.upload(chunks)
        n_left = device.xp.zeros(max(len(chunks), 1), np.uint32)
        seen = device.xp.zeros(len(ranges), np.uint32)
        common = (self.words, self.n_rows, tree.order, on_device, tests, sets)
        self._launch("count_left", len(chunks), *common, n_left, seen)
        counts = device.download(n_left)[: len(chunks)].astype(np.int64)
        jobs, start = chunks[:, 0], ranges[:, 0]
        all_left = np.zeros(len(ranges), np.int64)
        np.add.at(all_left, jobs, counts)
        before = np.cumsum(counts) - counts  # of all nodes, from which those of others are taken
        before -= (np.cumsum(all_left) - all_left)[jobs]
        first_left = start[jobs] + before
        first_right = chunks[:, 1] + all_left[jobs] - before
        places = device.upload(first_left), device.upload(first_right)
        self._launch("divide", len(chunks), *common, *places, tree.spare)
        self._launch("copy_chunks", len(chunks), tree.spare, on_device, tree.order)
        middle = start + all_left
        tree.ranges[splits.lefts] = np.stack([start, middle], axis=1)
        tree.ranges[splits.lefts + 1] = np.stack([middle, ranges[:, 1]], axis=1)
        sizes = np.stack([all_left, ranges[:, 1] - middle], axis=1)
        return sizes, device.download(seen) > 0

    def _tests(
        self,
        features: NDArray[np.integer],
        positions: NDArray[np.integer],
        missing_left: Mask,
        sets: NDArray[np.uint32] | None,
        category_set: NDArray[np.integer] | None = None,
    ) -> tuple[Any, Any]:
        """Tests of nodes as kernels have them, and sets of categories."""
        mapper = self.data.mapper
        if category_set is None:
            category_set = np.full(len(features), -1)
            if sets is not None:
                category_set = np.where(mapper.categorical[features], np.arange(len(features)), -1)
        codes = mapper.n_bins[features]
        tests = np.stack([features, positions, codes, missing_left, category_set], axis=1)
        if sets is None or not len(sets):
            sets = np.zeros((1, N_WORDS), np.uint32)
        return self.device.upload(tests.astype(np.int32)), self.device.upload(sets)

    def _sum(self, tree: _Growing, question: Question) -> tuple[FloatArray, IndexArray | None]:
        n_features, n_summed = len(self.data.bins), len(question.summed)
        features = question.features
        if features is None:
            features = np.broadcast_to(np.arange(n_features), (n_summed, n_features))
        sums = tree.sums
        shape = (n_summed, features.shape[1], self._n_codes)
        if not n_summed:
            counts = np.zeros(shape, np.int64) if question.counted else None
            return np.zeros((*shape[:2], self._n_codes * sums.n_columns)), counts
        asked = self.device.upload(features.astype(np.int32))
        ranges = tree.ranges[question.summed]
        kind = "sum_labels" if isinstance(sums, DeviceLabels) else "sum_rows"
        cells = self._histograms(
            kind, tree, ranges, asked, sums.n_columns, question.units * _FINEST, question.units
        )
        answer = self.device.download(cells).reshape(*shape[:2], -1)
        if not question.counted:
            return answer, None
        counts = self._histograms("count_bins", tree, ranges, asked, 1, None, question.units)
        return answer, self.device.download(counts).reshape(shape)

    def _histograms(
        self,
        kind: str,
        tree: _Growing,
        ranges: IndexArray,
        features: Any,
        n_columns: int,
        quanta: FloatArray | None,
        units: FloatArray,
    ) -> Any:
        """Sums by bin on the device; whole numbers if there is no quantum."""
        device, n_asked = self.device, features.shape[1]
        n_bytes = 4 * self._n_codes * _CELL_BYTES  # for a word of four features
        n_apart = min(n_columns, device.max_shared // n_bytes)
        n_words = 4
        while n_words > 1 and (
            n_words * n_bytes * n_apart > device.max_shared // 2 or 2 * n_asked <= 4 * n_words
        ):
            n_words //= 2
        groups = -(-n_asked // (4 * n_words)), -(-n_columns // n_apart)
        n_rows = int((ranges[:, 1] - ranges[:, 0]).sum())
        n_blocks = max(device.n_processors * _BLOCKS_PER_PROCESSOR // (groups[0] * groups[1]), 1)
        chunks = _chunks(ranges, int(np.clip(n_rows // n_blocks, _MIN_SUMMED, _MAX_SUMMED)))
        cells = device.xp.zeros((len(ranges), n_asked, self._n_codes, n_columns), np.int64)
        sums = tree.sums
        labels = weights = rows = self._nothing
        if isinstance(sums, DeviceLabels):
            labels, weights = sums.labels, sums.weights
        else:
            rows = sums.quanta
        self._launch(
            f"{kind}_{n_words}", (len(chunks), *groups), self.words, self.n_rows, tree.order,
            device.upload(chunks), features, n_asked, self._n_codes, n_columns, n_apart, rows,
            labels, weights, device.upload(units), cells,
            threads=_HISTOGRAM_THREADS, shared=n_words * n_bytes * n_apart,
        )  # fmt: skip
        return cells if quanta is None else self._scaled(cells, sums, quanta)

    def _scaled(self, cells: Any, sums: DeviceSums, quanta: FloatArray) -> Any:
        """Sums (n_jobs, ..., C) in quanta as numbers, in their place."""
        by_column = np.ones(sums.n_columns)
        if isinstance(sums, DeviceRows):
            by_column, quanta = sums.quantum, np.ones(len(cells))
        numbers = cells.view(np.float64)
        n = int(cells.size)
        self._launch(
            "scale_sums", -(-n // THREADS), cells, n, sums.n_columns, n // max(len(cells), 1),
            self.device.upload(by_column), self.device.upload(quanta), numbers,
        )  # fmt: skip
        return numbers

    def _weigh(self, tree: _Growing, asked: IndexArray) -> tuple[IndexArray, NDArray[np.float32]]:
        ranges = tree.ranges[asked]
        largest = np.zeros(len(asked), np.float32)
        if len(asked) and isinstance(tree.sums, DeviceLabels):
            chunks = _chunks(ranges, _MAX_SUMMED)
            bits = self.device.xp.zeros(len(asked), np.uint32)
            self._launch(
                "weigh", len(chunks), tree.order, self.device.upload(chunks), tree.sums.weights,
                bits,
            )  # fmt: skip
            largest = self.device.download(bits).view(np.float32)
        return ranges[:, 1] - ranges[:, 0], largest

    def _total(
        self,
        tree: _Growing,
        asked: IndexArray,
        units: FloatArray,
        fine: FloatArray | None = None,
    ) -> FloatArray:
        """Sums of nodes and, for labels, of what rounding leaves over (2, n_asked, C)."""
        device, sums = self.device, tree.sums
        shape = (2, len(asked), sums.n_columns)
        if not len(asked):
            return np.zeros(shape)
        chunks = _chunks(tree.ranges[asked], _MIN_SUMMED)
        totals = device.xp.zeros(shape, np.int64)
        finer = np.zeros(len(asked)) if fine is None else fine
        if isinstance(sums, DeviceLabels):
            self._launch(
                "total_labels", len(chunks), tree.order, device.upload(chunks), sums.labels,
                sums.weights, device.upload(units), device.upload(finer), sums.n_columns,
                len(asked), totals, shared=4 * sums.n_columns * 4,
            )  # fmt: skip
            found = device.download(totals).astype(np.float64)
            return found * (np.stack([units, 0.5 * finer]) * _FINEST)[:, :, None]
        self._launch(
            "total_rows", len(chunks), tree.order, device.upload(chunks), sums.quanta, self.n_rows,
            sums.n_columns, totals, shared=2 * sums.n_columns * 4,
        )  # fmt: skip
        return device.download(totals).astype(np.float64) * sums.quantum

    def leaves(self, tree: Tree) -> Any:
        """Leaves of all rows in a finished tree, on the device (int32)."""
        if tree.position is None:
            raise ValueError("This tree has no positions of bins: use Forest.apply on values.")
        tests, sets = self._tests(
            tree.feature,
            tree.position,
            tree.missing_left,
            tree.sets,
            np.full(len(tree.left), -1) if tree.category_set is None else tree.category_set,
        )
        found = self.device.xp.empty(self.n_rows, np.int32)
        self._launch(
            "descend", -(-self.n_rows // THREADS), self.words, self.n_rows, tests,
            self.device.upload(tree.left), sets, found,
        )  # fmt: skip
        return found

    def _launch(
        self, kernel: str, blocks: Any, *arguments: Any, threads: int = THREADS, shared: int = 0
    ) -> None:
        self.device.launch("trees", kernel, blocks, threads, *arguments, shared=shared)


def _packed(bins: NDArray[np.uint8], device: Device) -> Any:
    """Bins (n_features, n) on the device as words of four features, a few of them at a time."""
    n_features, n = bins.shape
    n_words = -(-n_features // 4)
    words = device.xp.empty((n_words, n), np.uint32)
    n_together = max(_UPLOADED // max(4 * n, 1), 1)
    for first in range(0, n_words, n_together):
        part = device.upload(bins[4 * first : 4 * (first + n_together)])
        grid = (-(-n // THREADS), -(-len(part) // 4))
        device.launch("trees", "pack", grid, THREADS, part, len(part), n, words[first:])
    return words


def _chunks(ranges: IndexArray, size: int) -> IndexArray:
    """Ranges (n_jobs, 2) in pieces of at most `size`: rows (job, start, end)."""
    n_pieces = -(-(ranges[:, 1] - ranges[:, 0]) // size)
    jobs = np.repeat(np.arange(len(ranges)), n_pieces)
    number = np.arange(len(jobs)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    start = ranges[jobs, 0] + number * size
    return np.stack([jobs, start, np.minimum(start + size, ranges[jobs, 1])], axis=1)
