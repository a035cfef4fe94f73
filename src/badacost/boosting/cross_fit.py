"""Boosters on folds of one training set: each leaves out a part of it, all share bins and threads.

Every round grows a tree in each fold, and the losses of what the folds left out are known for all
samples. The model is the mean of the boosters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, Mask, RowNumbers
from badacost.boosting import costboost_kernels as kernels
from badacost.boosting.followed import Followed
from badacost.boosting.learners import draw_samples
from badacost.boosting.rounds import Stage
from badacost.exact_sums import exact_bincount, exact_sum
from badacost.large_samples import blocks_of
from badacost.threads import Threads
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.gain_kernels import SquaredGradients
from badacost.tree.grower import Growth, TreeGrower
from badacost.tree.sums import Rows

_MAX_VALUE = 4.0  # of a leaf, before the learning rate
_MIN_HESSIAN = 1e-12  # without any regularisation
_MAX_MEAN_WEIGHT = 1e6  # a sample may count as so many; on average at least as one
_SMALL = 1_000_000  # samples times features up to which a thread takes whole folds
_MIN_ROWS = 4096  # for each thread
_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples that a booster is trained on, and those it leaves out."""

    train: RowNumbers
    left_out: RowNumbers


def random_folds(
    columns: Iterable[NDArray[Any]], y: Labels, weight: FloatArray, n_folds: int, seed: int
) -> list[Fold]:
    """Leave out parts of equal size, alike for all classes; at most as many as there are samples.

    Which samples are in which part depends on their values (`columns`) and not on their order.
    """
    n_folds = min(n_folds, len(y))
    number = np.empty(len(y), np.intp)
    mixed = mix_columns(columns, len(y), seed)
    number[_mixed_within_classes(mixed, y, weight)] = np.arange(len(y)) % n_folds
    return [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(n_folds)]


def given_folds(cv: Any, y: Labels, kept: Mask) -> list[Fold]:
    """Folds of a splitter, or of pairs of rows; only the samples that are `kept` have a class."""
    from sklearn.model_selection import check_cv  # slow to import, rarely needed

    labels = np.zeros(len(kept), y.dtype)
    labels[kept] = y
    place = np.cumsum(kept) - 1
    rows = np.arange(len(kept))

    def part(chosen: Any) -> RowNumbers:
        given = rows[chosen]  # rows or a mask
        return place[given[kept[given]]]

    try:
        splits = check_cv(cv, labels, classifier=True).split(rows, labels)
        folds = [Fold(part(train), part(test)) for train, test in splits]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"cv makes no folds of these samples ({str(error).rstrip('.')}): give fewer folds, or "
            "the splits, for example list(GroupKFold(5).split(X, y, groups))."
        ) from error
    if any(np.isin(fold.left_out, fold.train).any() for fold in folds):
        raise ValueError("cv has a fold that leaves out samples it trains on: keep them apart.")
    if not folds or not all(len(fold.train) and len(fold.left_out) for fold in folds):
        raise ValueError(
            "cv has no folds, or one without samples to train on or to leave out: give fewer "
            "folds, or a list instead of an iterator that is exhausted."
        )
    return folds


def held_out_rows(
    mixed: NDArray[np.uint64], y: Labels, weight: FloatArray, n_held_out: int
) -> Mask:
    """Choose some of the samples, about the same share of all classes."""
    places = np.arange(len(y) + 1) * n_held_out // len(y)
    held = np.empty(len(y), bool)
    held[_mixed_within_classes(mixed, y, weight)] = places[1:] > places[:-1]
    return held


def mix_samples(X: Any, seed: int) -> NDArray[np.uint64]:
    """The same as `mix_columns` for the rows of samples of any kind."""
    return np.concatenate([mix_columns(block.T, len(block), seed) for block in blocks_of(X)])


def mix_columns(columns: Iterable[NDArray[Any]], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on its values, and on nothing else but the seed."""
    mixed = np.full(n_rows, seed + 1, np.uint64) * _MIXER
    for column in columns:
        mixed = _mix(mixed, column.astype(np.float64).view(np.uint64))
    return mixed


def _mixed_within_classes(mixed: NDArray[np.uint64], y: Labels, weight: FloatArray) -> RowNumbers:
    """Rows class by class, within a class in a random order that depends on their values only.

    Equal rows are told apart by a number, so that they are spread at random as well.
    """
    order = np.lexsort((weight, mixed, y))
    new = (mixed[order][1:] != mixed[order][:-1]) | (y[order][1:] != y[order][:-1])
    place = np.arange(len(y), dtype=np.uint64)
    first = np.maximum.accumulate(np.where(np.r_[True, new], place, np.uint64(0)))
    number = np.empty(len(y), np.uint64)
    number[order] = place - first
    return np.lexsort((_mix(_mix(mixed, number), number), y))


def _mix(mixed: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash one word more of each row."""
    mixed = (mixed ^ words) * _MIXER
    return mixed ^ (mixed >> np.uint64(29))


def fingerprint(data: BinnedData, y: Labels) -> int:
    """A number that tells sets of samples apart, whatever their order."""
    mixed = np.full(len(y), len(y), np.uint64)
    for column in (*data.bins, y):
        mixed = _mix(mixed, column.astype(np.uint64))
    return int(mixed.sum(dtype=np.uint64) >> np.uint64(1))


class _Booster:
    """The booster of a fold: cost scores and probabilities of all samples."""

    def __init__(self, fold: Fold, y: Labels, weight: FloatArray, n_classes: int, losses: Any):
        counts = exact_bincount(y[fold.train], weight[fold.train], n_classes) + 1.0
        self.fold, self.losses = fold, losses
        self.total = exact_sum(weight[fold.train])
        self.log_prior = np.log(counts / counts.sum())
        self.scores = np.tile(-self.log_prior, (len(y), 1))
        self.shares: NDArray[np.float32] = np.empty(self.scores.shape, np.float32)


class CrossFit:
    """The `Descent` of CostBoost: all folds go a round further at a time."""

    def __init__(
        self,
        data: BinnedData,
        growth: Growth,
        y: Labels,
        weight: FloatArray,
        folds: list[Fold],
        *,
        n_classes: int,
        gain: SquaredGradients,
        learning_rate: float,
        n_directions: int,
        subsample: float,
        seed: int,
        threads: Threads,
    ):
        n = len(y)
        self._y, self._gain, self._rate, self._seed = y, gain, learning_rate, seed
        self._n_directions, self._subsample = n_directions, subsample
        given = exact_sum(weight)
        total = float(np.clip(given, n, n * _MAX_MEAN_WEIGHT))
        self._weight = weight.copy() if total == given else weight / given * total
        self.weights = weight / given
        # Adding and subtracting this rounds to multiples of which all sums are exact.
        self._big = 1.5 * np.ldexp(1.0, np.frexp(total)[1] + 1)
        apart = len(folds) >= threads.n_threads and data.bins.size <= _SMALL
        self._over_folds, self._over_rows = (threads, Threads()) if apart else (Threads(), threads)
        self._grower = TreeGrower(data, growth, self._over_rows)
        self.losses = np.empty((len(folds), n))
        self.boosters = [
            _Booster(fold, y, self._weight, n_classes, losses)
            for fold, losses in zip(folds, self.losses, strict=True)
        ]
        self.log_prior = np.mean([booster.log_prior for booster in self.boosters], axis=0)
        nothing = np.zeros(n, np.int32), np.empty((0, n_classes))
        self._over_folds.run(self._add, [(booster, 0.0, *nothing) for booster in self.boosters])

    @property
    def state(self) -> FloatArray:
        """Cost scores of all boosters, flat: what `resume` needs to go on."""
        return np.concatenate([booster.scores.ravel() for booster in self.boosters])

    def resume(self, state: FloatArray) -> None:
        """Go on from an earlier state."""
        shape = (len(self.boosters), *self.boosters[0].scores.shape)
        n, n_classes = shape[1:]
        nothing = np.zeros(n, np.int32), np.empty((0, n_classes))
        for booster, scores in zip(self.boosters, state.reshape(shape), strict=True):
            booster.scores[:] = scores
            self._add(booster, 0.0, *nothing)

    def fit(self, n_done: int) -> Stage:
        """Grow a tree in each fold."""
        tasks = [(booster, [self._seed, n_done, k]) for k, booster in enumerate(self.boosters)]
        grown = self._over_folds.run(self._grow, tasks)
        first = np.cumsum([0, *(len(table) for *_, table in grown)])
        trees = [
            replace(tree, value=tree.value + np.int32(start))
            for (tree, *_), start in zip(grown, first, strict=False)
        ]
        rows = [rows + np.int32(start) for (_, rows, _), start in zip(grown, first, strict=False)]
        table = np.concatenate([table for *_, table in grown])
        steps = [self._rate / len(trees)] * len(trees)
        useless = len(table) == len(trees)  # nothing was split
        return Stage(trees, steps, rows, table, "useless" if useless else None)

    def advance(self, stage: Stage) -> None:
        """Move each booster on by its tree."""
        scale = float(len(self.boosters))
        steps = zip(self.boosters, stage.steps, stage.rows, strict=True)
        tasks = [(booster, scale * step, rows, stage.table) for booster, step, rows in steps]
        self._over_folds.run(self._add, tasks)

    def _grow(self, booster: _Booster, seed: list[int]) -> tuple[Tree, NDArray[np.int32], Any]:
        """A tree, the leaf of each sample (counted without inner nodes), and values of leaves."""
        rng = np.random.default_rng(seed)
        y, weight, shares, train = self._y, self._weight, booster.shares, booster.fold.train
        n, n_classes = shares.shape
        directions = rng.normal(size=(n_classes, self._n_directions))
        gradients = np.empty((n, self._n_directions + 1))
        self._for_rows(
            lambda a, b: kernels.sketch(shares, y, weight, directions, gradients, a, b), n
        )
        rounded = Rows.of(gradients)
        gain = self._scaled_gain(rounded.values[train, -1], booster.total, n_classes)
        drawn = draw_samples(weight[train], self._subsample, rng)
        grown = self._grower.grow(
            rounded,
            gain,
            rows=train if drawn is None else train[drawn],
            seed=int(rng.integers(2**63)),
        )
        leaf = grown.tree.is_leaf
        number = np.where(leaf, np.cumsum(leaf) - 1, 0).astype(np.int32)
        rows = number[grown.leaves]

        def sums_of(first: int, last: int) -> FloatArray:
            sums = np.zeros((int(leaf.sum()), 2, n_classes))
            kernels.leaf_sums(shares, y, weight, train, rows, self._big, sums, first, last)
            return sums

        sums = np.sum(self._for_rows(sums_of, len(train)), axis=0)
        gradient, hessian = sums[:, 0], sums[:, 1]
        values = (1.0 - 1.0 / n_classes) * gradient / np.maximum(hessian + gain.l2, _MIN_HESSIAN)
        table = np.clip(values, -_MAX_VALUE, _MAX_VALUE)
        return replace(grown.tree, value=number), rows, table

    def _scaled_gain(
        self, hessians: NDArray[np.float32], total: float, n_classes: int
    ) -> SquaredGradients:
        """Regularisation that falls with the root of the mean hessian, from one in the beginning.

        Where classes can be told apart, hessians vanish, and with a constant l2 so would the steps.
        """
        mean = float(hessians.sum(dtype=np.float64)) / total  # exact, since terms are rounded
        scale = float(np.sqrt(mean / (1.0 - 1.0 / n_classes)))
        return SquaredGradients(self._gain.l2 * scale, self._gain.min_hessian * scale)

    def _add(self, booster: _Booster, step: float, rows: RowNumbers, table: FloatArray) -> None:
        """Move a booster on."""
        self._for_rows(
            lambda a, b: kernels.advance(
                booster.scores, step, table, rows, self._y, booster.shares, booster.losses, a, b
            ),
            len(self._y),
        )

    def _for_rows(self, work: Any, n: int) -> list[Any]:
        threads = self._over_rows
        return threads.map(work, n, max(_MIN_ROWS, -(-n // threads.n_threads)))

    def part_weights(self, left_out: bool) -> FloatArray:
        """Weights (n_folds, n) of what boosters trained on or left out, all together one."""
        weights = np.zeros_like(self.losses)
        for row, booster in zip(weights, self.boosters, strict=True):
            part = booster.fold.left_out if left_out else booster.fold.train
            row[part] = self.weights[part]
        return weights / exact_sum(weights.ravel())

    def left_out_shares(self) -> FloatArray:
        """Probabilities of all samples by the boosters that left them out; else NaN."""
        shares = np.full(self.boosters[0].shares.shape, np.nan)
        for booster in self.boosters:
            shares[booster.fold.left_out] = booster.shares[booster.fold.left_out]
        return shares


class FoldLoss(Followed):
    """Log-loss of the samples that boosters were trained on, or of those they left out."""

    def __init__(self, fit: CrossFit, *, left_out: bool):
        super().__init__()
        self.fit = fit
        self.best_shares: FloatArray | None = None  # of samples left out, in the best round
        self._left_out, self._weights = left_out, fit.part_weights(left_out)
        self.weights = self._weights.sum(axis=0)  # of the samples, all together one
        self.losses = self.curve

    def follow(self, stage: Stage) -> None:
        """Add the loss to the curve."""
        loss = exact_sum((self.fit.losses * self._weights).ravel())
        if self._left_out and loss < min(self.curve, default=np.inf):
            self.best_shares = self.fit.left_out_shares()
        self.curve.append(loss)
