"""Parts of a training set on a GPU: the sums of those on the CPU, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting.cross_fit_part import (
    CrossFitPart,
    CrossFitPlan,
    leaf_numbers,
    scaled_weights,
)
from badacost.boosting.fit_part import FitPart
from badacost.boosting.folds import Fold
from badacost.boosting.learners import SplitCosts
from badacost.boosting.reweighting_part import MIN_LOG_WEIGHT, ReweightingPart
from badacost.exact_sums import Units
from badacost.gpu import sums
from badacost.gpu.device import Device
from badacost.gpu.tree_part import CudaTreePart, DeviceLabels, DeviceRows
from badacost.threads import Threads
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.sampling import draw_rows

_MIN_QUANTUM = 2.0**-149  # of single precision
_MAX_SHARED = 96 * 1024  # bytes of sums by leaf: two blocks fit a processor


class CudaFitPart(FitPart):
    """A `FitPart` whose rows are on a device."""

    trees: Any

    def __init__(
        self, data: BinnedData, y: Labels, weight: FloatArray, device: Device, first_row: int = 0
    ):
        self.trees = CudaTreePart(data, device)
        self.y, self.weight, self.first_row = y, weight, first_row
        self.descent: Any = None

    def start_cross_fit(self, plan: CrossFitPlan, folds: list[Fold]) -> None:
        """Begin with CostBoost."""
        self.descent = CudaCrossFitPart(
            self.trees, self.y, self.weight, self.first_row, plan, folds
        )

    def start_reweighting(self, log_weights: FloatArray) -> None:
        """Begin with BAdaCost, or another algorithm that is a rule."""
        self.descent = CudaReweightingPart(self.trees, self.y, self.first_row, log_weights)


class CudaCrossFitPart(CrossFitPart):
    """A `CrossFitPart` on a device, where numbers by class are in planes (K, n)."""

    _trees: Any

    def __init__(
        self,
        trees: CudaTreePart,
        y: Labels,
        weight: FloatArray,
        first_row: int,
        plan: CrossFitPlan,
        folds: list[Fold],
    ):
        device = self._device = trees.device
        n, (n_folds, n_classes) = len(y), plan.log_priors.shape
        self._trees, self._y, self._plan, self._folds = trees, y, plan, folds
        self._first_row, self._over_folds = first_row, Threads()
        scaled, self._share = scaled_weights(weight, plan.given, plan.total)
        self._weight, self._shares_of_rows = device.upload(scaled), device.upload(self._share)
        self._labels = device.upload(y.astype(np.uint16))
        self._rows_of = {
            left_out: [
                device.upload((fold.left_out if left_out else fold.train).astype(np.uint32))
                for fold in folds
            ]
            for left_out in (False, True)
        }
        priors = device.upload(-plan.log_priors)
        self.scores: Any = device.xp.repeat(priors[:, :, None], n, axis=2)
        self.shares: Any = device.xp.empty((n_folds, n_classes, n), np.float32)
        self.losses: Any = device.xp.empty((n_folds, n))
        self._best: Any = None
        self._begun: dict[int, Any] = {}
        self._rows: Sequence[Any] = ()
        self._settle()

    def state(self) -> FloatArray:
        """Cost scores, all that a fit needs to go on."""
        return np.ascontiguousarray(self._device.download(self.scores).transpose(0, 2, 1))

    def resume(self, scores: FloatArray) -> None:
        """Go on from earlier scores."""
        self.scores = self._device.upload(scores.transpose(0, 2, 1))
        self._settle()

    def _sketch(self, kernel: str, k: int, n_done: int, blocks: int, *more: Any) -> None:
        """Launch one of the kernels that project gradients."""
        directions = self._plan.draws(n_done, k)[0]
        n_classes, n_directions = directions.shape
        self._device.launch(
            "boosting", kernel, (blocks, n_directions + 1), sums.THREADS, self.shares[k],
            self._labels, self._weight, self._device.upload(directions), len(self._y), n_classes,
            n_directions, *more,
        )  # fmt: skip

    def gradient_sizes(self, n_done: int) -> FloatArray:
        """Largest gradients along the directions of a round, and hessian: (n_folds, R + 1)."""
        found = self._device.xp.zeros((len(self._folds), self._plan.n_directions + 1), np.uint64)
        blocks = sums.n_blocks(self._device, len(self._y))
        for k in range(len(self._folds)):
            self._sketch("sketch_sizes", k, n_done, blocks, found[k])
        return self._device.download(found).view(np.float64)

    def begin(self, n_done: int, quanta: FloatArray) -> FloatArray:
        """Begin the trees of a round on gradients that are multiples of their quanta.

        Returns the sum of the hessians of each fold.
        """
        self._trees.end()
        device, n, plan = self._device, len(self._y), self._plan
        hessians = np.empty(len(self._folds))
        for k, train in enumerate(self._rows_of[False]):
            rounded = device.xp.empty((quanta.shape[1], n), np.int32)
            blocks = -(-n // sums.THREADS)
            self._sketch("sketch_quanta", k, n_done, blocks, device.upload(quanta[k]), rounded)
            quantum = np.maximum(quanta[k], _MIN_QUANTUM)
            key = plan.seed, n_done, k
            drawn = draw_rows(train, plan.subsample, key, self._first_row, device.xp)
            self._begun[k] = DeviceRows(rounded, quantum), drawn
            hessians[k] = int(rounded[-1][train].sum(dtype=np.int64)) * quantum[-1]
        return hessians

    def leaf_sums(self, trees: Sequence[Tree]) -> list[FloatArray]:
        """Sums of gradients and hessians by leaf, (n_leaves, 2, K), of the tree of each fold."""
        device, n_classes = self._device, self.scores.shape[1]
        rows, big = self._leaves(trees), self._plan.big
        quantum = float(np.spacing(big))
        found = []
        for k, train in enumerate(self._rows_of[False]):
            n_leaves = int(trees[k].is_leaf.sum())
            added = device.xp.zeros((n_leaves, 2, n_classes), np.int64)
            fits = added.nbytes <= _MAX_SHARED
            device.launch(
                "boosting", "leaf_sums", sums.n_blocks(device, len(train)), sums.THREADS,
                self.shares[k], self._labels, self._weight, train, len(train), rows[k],
                len(self._y), n_classes, big, 1.0 / quantum, n_leaves, fits, added,
                shared=added.nbytes if fits else 0,
            )  # fmt: skip
            found.append(device.download(added) * quantum)
        return found

    def _leaves(self, trees: Sequence[Tree]) -> Sequence[Any]:
        """Leaves of the rows in the trees of all folds, on the device."""
        if not len(self._rows):
            upload = self._device.upload
            self._rows = [upload(leaf_numbers(tree))[self._trees.leaves(tree)] for tree in trees]
        return self._rows

    def answers(self, trees: Sequence[Tree]) -> Sequence[RowNumbers]:
        """Leaves of the rows in the trees of all folds, counted without inner nodes."""
        return [self._device.download(rows) for rows in self._leaves(trees)]

    def advance(
        self, trees: Sequence[Tree], steps: Sequence[float], tables: Sequence[FloatArray]
    ) -> FloatArray:
        """Move the booster of each fold on by its tree; return the largest terms of the losses."""
        for k, rows in enumerate(self._leaves(trees)):
            self._add(k, steps[k], rows, tables[k])
        self._rows = ()
        return self.loss_sizes()

    def _add(self, k: int, step: float, rows: Any, table: FloatArray) -> None:
        device, n = self._device, len(self._y)
        adds = len(table) > 0
        device.launch(
            "boosting", "advance", -(-n // sums.THREADS), sums.THREADS, self.scores[k], step,
            device.upload(table if adds else np.zeros((1, 1))),
            device.xp.asarray(rows, dtype=np.int32), self._labels, self.shares[k], self.losses[k],
            n, self.scores.shape[1], adds,
        )  # fmt: skip

    def _loss_terms(self, left_out: bool) -> Iterator[Any]:
        """Losses of what folds leave out, or train on, times their weights, fold by fold."""
        total = self._plan.part_totals[left_out]
        for losses, rows in zip(self.losses, self._rows_of[left_out], strict=True):
            if len(rows):
                yield losses[rows] * (self._shares_of_rows[rows] / total)

    def loss_sizes(self) -> FloatArray:
        """Largest terms of the losses of what folds train on, and of what they leave out."""
        return np.array(
            [
                max((float(terms.max()) for terms in self._loss_terms(left_out)), default=0.0)
                for left_out in (False, True)
            ]
        )

    def loss_sums(self, units: tuple[Units, Units]) -> FloatArray:
        """Sums of the same, in two folds (2, 2)."""
        added = np.zeros((2, 2))
        for left_out in (False, True):
            for terms in self._loss_terms(left_out):
                added[int(left_out)] += sums.folded_sums(self._device, terms, units[left_out])
        return added

    def remember(self) -> None:
        """Keep the probabilities of rows left out, since this round is the best one so far."""
        self._best = self._planes_left_out()

    def _planes_left_out(self) -> Any:
        shares = self._device.xp.full(self.shares.shape[1:], np.nan, np.float32)
        for rows, known in zip(self._rows_of[True], self.shares, strict=True):
            shares[:, rows] = known[:, rows]
        return shares

    def left_out_shares(self, best: bool) -> NDArray[np.float32]:
        """Probabilities of rows by the boosters that left them out, else NaN: now, or at best."""
        planes = self._best if best and self._best is not None else self._planes_left_out()
        return np.ascontiguousarray(self._device.download(planes).T)


class CudaReweightingPart(ReweightingPart):
    """A `ReweightingPart` on a device."""

    _trees: Any

    def __init__(self, trees: CudaTreePart, y: Labels, first_row: int, log_weights: FloatArray):
        self._device = trees.device
        self._trees, self._y, self._first_row = trees, y, first_row
        self._labels = self._device.upload(y.astype(np.uint16))
        self.resume(log_weights)
        self._weights: Any = None
        self._cells: Any = None
        self._total = 1.0

    def state(self) -> FloatArray:
        """Logarithms of the weights, all that a fit needs to go on."""
        return self._device.download(self.log_weights)

    def resume(self, log_weights: FloatArray) -> None:
        """Go on from earlier weights."""
        self.log_weights: Any = self._device.upload(log_weights)

    def largest(self) -> float:
        """The largest logarithm of a weight."""
        return float(self.log_weights.max()) if len(self._y) else -np.inf

    def weigh(self, largest: float, units: Units) -> FloatArray:
        """Set the weights of a round relative to the largest; return their sum in two folds."""
        relative = self._device.xp.maximum(self.log_weights - largest, MIN_LOG_WEIGHT)
        self._weights, self._total = sums.exp(self._device, relative), 1.0
        return sums.folded_sums(self._device, self._weights, units)

    def begin(
        self, total: float, split: SplitCosts, share: float, key: tuple[int, ...] | None
    ) -> int:
        """Begin a tree on rows that are drawn, by weights of a sum; return how many there are."""
        if total != self._total:
            self._weights /= total
            self._total = total
        xp, n_rows, rows = self._device.xp, len(self._y), None
        seen = self._weights.astype(np.float32)
        if key is not None and share < 1.0:
            alive = xp.flatnonzero(seen).astype(np.uint32)
            rows = draw_rows(alive, share, key, self._first_row, xp)
            n_rows = len(rows)
        if split.criterion == "entropy":
            seen *= self._device.upload(split.factors.astype(np.float32))[self._labels]
        self._trees.end()
        self._trees.begin(0, DeviceLabels(self._labels, seen, len(split.factors)), rows)
        return n_rows

    def answer(self, tree: Tree, n_classes: int) -> FloatArray:
        """Take the answers of a tree; return the largest weight by truth and answer."""
        self._trees.end()
        self._cells = self._cells_of(self._answers(tree), n_classes)
        return sums.bin_maxima(self._device, self._cells, self._weights, n_classes**2)

    def _answers(self, tree: Tree) -> Any:
        return self._device.upload(tree.value)[self._trees.leaves(tree)]

    def _cells_of(self, answers: Any, n_classes: int) -> Any:
        """Truth and answer of each row as one number (int32)."""
        return self._labels.astype(np.int32) * np.int32(n_classes) + answers.astype(np.int32)

    def confusion(self, units: Units) -> FloatArray:
        """Weights by truth and answer, in two folds (2, K * K)."""
        return sums.bin_folded_sums(self._device, self._cells, self._weights, units)

    def advance(self, tree: Tree, log_factors: FloatArray) -> float:
        """Add ``log_factors[truth, answer]`` to the logarithms; return the largest."""
        return self._add(self._answers(tree), log_factors)

    def advance_by(self, answers: Sequence[Labels], log_factors: FloatArray) -> float:
        """The same for a tree of an earlier fit, whose answers are known."""
        return self._add(self._device.upload(answers[0]), log_factors)

    def _add(self, answers: Any, log_factors: FloatArray) -> float:
        cells = self._cells_of(answers, len(log_factors))
        self.log_weights += self._device.upload(log_factors.ravel())[cells]
        return self.largest()
