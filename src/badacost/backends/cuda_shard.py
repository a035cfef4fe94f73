"""Shards of a training set on a GPU; results equal those of shards on the CPU, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from badacost._utils.arrays import FloatArray, Labels
from badacost._utils.parallel import Threads, Units
from badacost.backends.cuda_tree_shard import (
    BLOCKS_PER_PROCESSOR,
    THREADS,
    CudaTreeShard,
    DeviceSums,
    label_quantum,
)
from badacost.backends.device import Device
from badacost.backends.shards import Shard
from badacost.boosting.cross_fit import CrossFitShard
from badacost.boosting.reweighting import ReweightingShard, SplitCosts
from badacost.tree.binning import BinnedData, draw_rows
from badacost.tree.forest import Tree

_MIN_QUANTUM = 2.0**-149  # of single precision
_QUANTUM = 2.0**-53  # relative to a unit
_MAX_SHARED = 96 * 1024  # bytes of sums by leaf: two blocks fit a processor
_MAX_SHARED_CELLS = 32 * 1024  # bytes of sums by cell: several blocks fit a processor


class CudaShard(Shard):
    """A `Shard` on a device. Sums are over whole numbers of quanta."""

    def __init__(self, data: BinnedData, y: Labels, weight: FloatArray, device: Device):
        super().__init__(data, y.astype(np.uint16), weight)
        self.trees, self.device, self.xp = CudaTreeShard(data, device), device, device.xp
        self.put, self.get = device.upload, device.download  # type: ignore[method-assign]

    def blocks(self, n: int) -> list[slice]:
        """One slice of all rows, if there are any."""
        return [slice(None)] if n else []

    def n_blocks(self, n: int) -> int:
        """Number of thread blocks for loops over n samples with a stride."""
        return min(-(-n // THREADS), self.device.n_processors * BLOCKS_PER_PROCESSOR)

    def exp(self, values: Any) -> Any:
        """Exponentials, in place."""
        n = len(values)
        grid = -(-n // THREADS), THREADS
        self.device.launch("backends/elementwise", "exp_of", *grid, values, values, n)
        return values

    def split_sums(self, terms: Any, units: Units) -> FloatArray:
        """Sums (2,) of terms, high and low."""
        cells = self.xp.zeros(len(terms), np.int32)
        return self.bin_split_sums(cells, terms, (np.array([units[0]]), np.array([units[1]])))[:, 0]

    def bin_maxima(self, cells: Any, terms: Any, n_cells: int) -> FloatArray:
        """Largest terms by cell (n_cells,), none of them negative; cells are int32."""
        found = self.xp.zeros(n_cells, np.uint64)
        n = len(terms)
        self.collect("cell_sizes", n, cells, terms, n, n_cells, out=found)
        return self.get(found).view(np.float64)

    def bin_split_sums(self, cells: Any, terms: Any, units: Units) -> FloatArray:
        """Sums by cell (2, n_cells), high and low, with units for each cell."""
        n, n_cells = len(terms), len(units[0])
        sums = self.xp.zeros((2, n_cells), np.int64)
        self.collect("cell_sums", n, cells, terms, n, n_cells, *map(self.put, units), out=sums)
        return self.get(sums) * _QUANTUM * np.stack(units)

    def collect(
        self, kernel: str, n: int, *given: Any, out: Any, max_shared: int = _MAX_SHARED_CELLS
    ) -> None:
        """Add up n samples in `out`, or their maxima, first in shared memory if `out` fits."""
        fits = out.nbytes <= max_shared
        self.device.launch(
            "backends/boosting", kernel, self.n_blocks(n), THREADS, *given, fits, out,
            shared=out.nbytes if fits else 0,
        )  # fmt: skip


class CudaCrossFitShard(CrossFitShard):
    """A `CrossFitShard` on a device, where arrays by class are planes (K, n)."""

    _shard: CudaShard

    def _allocate(self) -> None:
        """Set labels, scores, probabilities and losses: views of planes by class."""
        shard, n, log_priors = self._shard, len(self._y), self._plan.log_priors
        self._over_folds, self._groups = Threads(), [range(self.n_folds)]
        self._labels = shard.put(self._y)
        scores = shard.xp.repeat(shard.put(-log_priors)[:, :, None], n, axis=2)
        self.scores = scores.transpose(0, 2, 1)
        self.probabilities = shard.xp.empty(scores.shape, np.float32).transpose(0, 2, 1)
        self.losses = shard.xp.empty((len(log_priors), n))

    def _sketch(self, kernel: str, k: int, n_done: int, blocks: int, *more: Any) -> None:
        """Launch one of the kernels that project gradients."""
        directions = self._plan.draws(n_done, k)[0]
        n_classes, n_directions = directions.shape
        self._shard.device.launch(
            "backends/boosting", kernel, (blocks, n_directions + 1), THREADS,
            self.probabilities[k].T, self._labels, self._weight, self._shard.put(directions),
            len(self._y), n_classes, n_directions, *more,
        )  # fmt: skip

    def gradient_sizes(self, n_done: int) -> FloatArray:
        """Largest gradients along the directions of a round, and hessian: (n_folds, R + 1)."""
        found = self._shard.xp.zeros((self.n_folds, self._plan.n_directions + 1), np.uint64)
        for k in range(self.n_folds):
            self._sketch("sketch_sizes", k, n_done, self._shard.n_blocks(len(self._y)), found[k])
        return self._shard.get(found).view(np.float64)

    def begin(self, n_done: int, quanta: FloatArray) -> FloatArray:
        """Begin the trees of a round on gradients that are rounded to multiples of their quanta.

        Returns the sum of the hessians of each fold (n_folds,).
        """
        shard, n, plan = self._shard, len(self._y), self._plan
        shard.trees.end()
        hessians = np.empty(self.n_folds)
        for k, train in enumerate(self._train):
            rounded = shard.xp.empty((quanta.shape[1], n), np.int32)
            self._sketch(
                "sketch_quanta", k, n_done, -(-n // THREADS), shard.put(quanta[k]), rounded
            )
            quantum = np.maximum(quanta[k], _MIN_QUANTUM)
            key = plan.seed, n_done, k
            drawn = draw_rows(train, plan.subsample, key, shard.first_row, shard.xp)
            self._begun[k] = DeviceSums(quantum, rounded), drawn
            hessians[k] = int(rounded[-1][train].sum(dtype=np.int64)) * quantum[-1]
        return hessians

    def leaf_sums(self, trees: Sequence[Tree]) -> list[FloatArray]:
        """Sums of gradients and hessians by leaf, (n_leaves, 2, K), of the tree of each fold."""
        n_classes, big = self.scores.shape[2], self._plan.big
        quantum = float(np.spacing(big))
        found = []
        for k, (train, rows) in enumerate(zip(self._train, self._leaves(trees), strict=True)):
            n_leaves = int(trees[k].is_leaf.sum())
            sums = self._shard.xp.zeros((n_leaves, 2, n_classes), np.int64)
            self._shard.collect(
                "leaf_sums", len(train), self.probabilities[k].T, self._labels, self._weight,
                train, len(train), rows, len(self._y), n_classes, big, 1.0 / quantum, n_leaves,
                out=sums, max_shared=_MAX_SHARED,
            )  # fmt: skip
            found.append(self._shard.get(sums) * quantum)
        return found

    def _loss_sums(self, units: tuple[Units, Units]) -> FloatArray:
        """Largest terms of the losses, and their sums, high and low: (n_folds, 2, 3)."""
        found = np.zeros((self.n_folds, 2, 3))
        for part, folds in enumerate((self._train, self._held_out)):
            for k, rows in enumerate(folds):
                if len(rows):
                    fraction = self._fraction[rows] / self._plan.totals[part]
                    terms = self.losses[k][rows] * fraction
                    found[k, part, 0] = float(terms.max())
                    if units[part][0]:
                        found[k, part, 1:] = self._shard.split_sums(terms, units[part])
        return found

    def _add(self, k: int, step: float, rows: Any, table: FloatArray) -> None:
        n, n_classes, adds = len(self._y), self.scores.shape[2], len(table) > 0
        self._shard.device.launch(
            "backends/boosting", "advance", -(-n // THREADS), THREADS, self.scores[k].T, step,
            self._shard.put(table if adds else np.zeros((1, 1))),
            self._shard.xp.asarray(rows, dtype=np.int32), self._labels, self.probabilities[k].T,
            self.losses[k], n, n_classes, adds,
        )  # fmt: skip


class CudaReweightingShard(ReweightingShard):
    """A `ReweightingShard` on a device."""

    def _summands(self, split: SplitCosts) -> DeviceSums:
        seen = self._weights
        if split.criterion == "entropy":
            seen = seen * self._shard.put(split.factors)[self._y]
        unit = 2.0 ** int(np.frexp(split.bound)[1])  # rounded as in `Summands.of_labels`
        rounded = (seen.astype(np.float32).astype(np.float64) + unit) - unit
        quantum = label_quantum(2.0 * unit, len(split.factors))
        return DeviceSums(quantum, None, self._y, rounded.astype(np.float32))


CudaShard.variants = {
    CrossFitShard: CudaCrossFitShard,
    ReweightingShard: CudaReweightingShard,
}
