"""The rounds of CostBoost: one booster for each fold, with a tree for all classes in each round.

The out-of-fold losses of all samples are known after every round; the model is the mean of the
boosters. `CrossFitShard` has scores and probabilities of the rows of a shard, `CrossFit` adds up
the sums of all shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels, RowNumbers
from badacost._utils.loop_kernels import Loop
from badacost._utils.parallel import (
    PADDING,
    Threads,
    Units,
    blocks,
    combined,
    exact_bincount,
    exact_sum,
    split_sums,
    units_of,
)
from badacost.backends.shards import Boosters, Shard, ShardedData, per_shard
from badacost.boosting import costboost_kernels as kernels
from badacost.boosting.folds import Fold
from badacost.boosting.stagewise import ScoreMonitor, Stage
from badacost.costs.matrix import expected_costs
from badacost.tree.binning import draw_rows
from badacost.tree.forest import Tree
from badacost.tree.grower import Gain, Growth, Summands, TreeGrower, quanta_of
from badacost.tree.shards import (
    LevelRequest,
    LevelResult,
    PlannedTree,
    Root,
    ShardedGrower,
    add_results,
    add_roots,
)

_MIN_SIZE = 50_000  # samples times features, of folds that are worth threads
_MIN_ROWS = 16_384  # of a loop over rows and classes that are worth a thread of their own
_NO_UNITS = (0.0, 0.0)  # where sums are not needed
Result = TypeVar("Result")


class CrossFitPlan(NamedTuple):
    """Settings of a fit, the same for all shards."""

    growth: Growth
    log_priors: FloatArray  # (n_folds, K)
    given: float  # sum of all weights
    total: float  # sum of all weights after scaling
    n_directions: int
    subsample: float
    seed: int
    big: float  # adding and subtracting it rounds terms so that their sums are exact
    totals: tuple[float, float]  # weights of training and held-out rows, over all folds

    def draws(self, n_done: int, fold: int) -> tuple[FloatArray, int]:
        """Projections of the gradients for the tree of a fold in a round, and its seed."""
        shape = self.log_priors.shape[1], self.n_directions
        return _draws((self.seed, n_done, fold), shape)


@lru_cache(maxsize=64)  # each is asked for several times in a round
def _draws(key: tuple[int, ...], shape: tuple[int, int]) -> tuple[FloatArray, int]:
    rng = np.random.default_rng(key)
    directions = rng.normal(size=shape)
    return directions, int(rng.integers(2**63))


class CrossFitShard:
    """Cost scores, probabilities and losses of some rows, for the boosters of all folds.

    They take ``n_folds * n * (12 * K + 8)`` bytes.
    """

    def __init__(self, shard: Shard, plan: CrossFitPlan, folds: list[Fold]):
        self._shard, self._y, self._plan = shard, shard.y, plan
        self._train = [self._shard.put(fold.train) for fold in folds]
        self._held_out = [self._shard.put(fold.held_out) for fold in folds]
        self._is_set = [is_set(fold.train) for fold in folds]
        scaled, fraction = scaled_weights(shard.weight, plan.given, plan.total)
        self._weight, self._fraction = self._shard.put(scaled), self._shard.put(fraction)
        self._kept: Any = None  # out-of-fold probabilities (n, K)
        self._begun: dict[int, Any] = {}  # summands and rows of the trees that begin
        self._rows: Sequence[Any] = ()  # leaves of the rows in the trees that were grown last
        self._allocate()
        self._update_probabilities()

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self._train)

    def _allocate(self) -> None:
        """Set threads, scores (n_folds, n, K), probabilities and losses."""
        n, (n_folds, n_classes) = len(self._y), self._plan.log_priors.shape
        data = self._shard.data
        self._over_folds = self._shard.threads if data.bins.size >= _MIN_SIZE else Threads()
        # Folds with one thread each, as many at a time as there are threads; then the folds that
        # are left over, which share all threads.
        n_alone = n_folds - n_folds % self._over_folds.n_threads
        self._groups = [range(n_alone), range(n_alone, n_folds)]
        self._growers: list[TreeGrower] = []
        for folds in filter(len, self._groups):
            threads = self._over_folds.divided(len(folds))
            self._growers += [TreeGrower(data, self._plan.growth, threads)] * len(folds)
        self.scores: Any = np.repeat(-self._plan.log_priors[:, None, :], n, axis=1)
        self.probabilities: Any = np.empty((n_folds, n, n_classes), np.float32)
        self.losses: Any = np.empty((n_folds, n))

    def _update_probabilities(self) -> None:
        """Compute probabilities and losses from the scores."""
        nothing = np.zeros(len(self._y), np.int32), np.empty((0, self.scores.shape[2]))
        self._each_fold(lambda k: self._add(k, 0.0, *nothing))

    def _each_fold(self, work: Callable[[int], Result]) -> list[Result]:
        """Call ``work(k)`` for all folds; those that are left over share the threads."""
        runs = [self._over_folds.run(work, [(k,) for k in folds]) for folds in self._groups]
        return list(chain.from_iterable(runs))

    def state(self) -> FloatArray:
        """Cost scores (n_folds, n, K), the whole state of the fit."""
        scores: FloatArray = self._shard.get(self.scores)
        return scores

    def resume(self, scores: FloatArray) -> None:
        """Continue from earlier scores."""
        self.scores[:] = self._shard.put(scores)
        self._update_probabilities()

    def gradient_sizes(self, n_done: int) -> FloatArray:
        """Largest gradients along the directions of a round, and hessian: (n_folds, R + 1)."""

        def of_fold(k: int) -> FloatArray:
            directions, loop = self._plan.draws(n_done, k)[0], self._loop(k, len(self._y))
            n_columns = directions.shape[1] + 1
            largest = np.zeros((loop.n_parts, n_columns + PADDING))
            kernels.sketch(
                loop, self.probabilities[k], self._y, self._weight, directions, largest[0],
                np.empty((0, 1), np.float32), largest,
            )  # fmt: skip
            return combined(np.maximum, largest[:, :n_columns])

        return np.array(self._each_fold(of_fold))

    def begin(self, n_done: int, quanta: FloatArray) -> FloatArray:
        """Begin the trees of a round on gradients that are rounded to multiples of their quanta.

        Returns the sum of the hessians of each fold (n_folds,).
        """

        def of_fold(k: int) -> float:
            directions, train = self._plan.draws(n_done, k)[0], self._train[k]
            rounded = np.empty((len(self._y), len(quanta[k])), np.float32)
            kernels.sketch(
                self._loop(k, len(self._y)), self.probabilities[k], self._y, self._weight,
                directions, quanta[k], rounded, np.empty((0, 0)),
            )  # fmt: skip
            rows = draw_rows(train, plan.subsample, (plan.seed, n_done, k), self._shard.first_row)
            self._begun[k] = Summands.of_rounded(rounded), rows
            loop = self._loop(k, len(train))
            sums = np.empty(loop.n_parts)
            kernels.hessian_sum(loop, rounded, train, sums)
            return float(combined(np.add, sums))

        plan = self._plan
        return np.array(self._each_fold(of_fold))

    def begin_trees(self) -> list[Root]:
        """Begin the trees of all folds, which grow by levels."""
        trees = self._shard.trees
        trees.end()
        return [trees.begin(k, *self._begun.pop(k)) for k in range(self.n_folds)]

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        """Take the trees of some folds one level further."""
        return self._shard.trees.level(requests)

    def grow(self, gains: Sequence[Gain], seeds: Sequence[int]) -> list[Tree]:
        """Grow the trees of a round, where all rows are in this shard."""

        def of_fold(k: int) -> tuple[Tree, RowNumbers]:
            sums, rows = self._begun.pop(k)
            every = None if len(rows) == len(self._y) and self._is_set[k] else rows
            others = None  # are found where rows are drawn, repeated or in neither part
            if rows is self._train[k] and self._is_set[k]:
                held_out = self._held_out[k]
                others = held_out if len(rows) + len(held_out) == len(self._y) else None
            grown = self._growers[k].grow(
                sums, gains[k], rows=every, other_rows=others, seed=seeds[k], copy=False
            )
            return grown.tree, grown.look_up(leaf_numbers(grown.tree))

        trees, self._rows = zip(*self._each_fold(of_fold), strict=True)
        return list(trees)

    def leaf_sums(self, trees: Sequence[Tree]) -> list[FloatArray]:
        """Sums of gradients and hessians by leaf, (n_leaves, 2, K), of the tree of each fold."""
        rows = self._leaves(trees)

        def of_fold(k: int) -> FloatArray:
            train, n_leaves = self._train[k], int(trees[k].is_leaf.sum())
            loop = self._loop(k, len(train))
            sums = np.zeros((loop.n_parts, n_leaves, 2, self.scores.shape[2]))
            kernels.leaf_sums(
                loop, self.probabilities[k], self._y, self._weight, train, rows[k], self._plan.big,
                sums,
            )  # fmt: skip
            return combined(np.add, sums)

        return self._each_fold(of_fold)

    def leaves(self, trees: Sequence[Tree]) -> list[RowNumbers]:
        """Leaves of the rows in the trees of all folds, counted without inner nodes."""
        return [self._shard.get(rows) for rows in self._leaves(trees)]

    def _leaves(self, trees: Sequence[Tree]) -> Sequence[Any]:
        if not len(self._rows):
            put = self._shard.put
            leaves = self._shard.trees.leaves
            self._rows = [put(leaf_numbers(tree))[leaves(tree)] for tree in trees]
        return self._rows

    def advance(
        self,
        steps: Sequence[float],
        tables: Sequence[FloatArray],
        trees: Sequence[Tree],
        rows: Sequence[RowNumbers] | None = None,
    ) -> FloatArray:
        """Add a step times the leaves of a tree to the scores of each booster.

        Rows of the tables that are known, such as those of trees of an earlier fit, are given in
        `rows`. Returns the largest terms of the losses (2,), of training and of held-out rows.
        """
        rows = self._leaves(trees) if rows is None else rows
        self._each_fold(lambda k: self._add(k, steps[k], rows[k], tables[k]))
        self._rows = ()
        return self._loss_sums((_NO_UNITS, _NO_UNITS))[:, :, 0].max(axis=0)

    def _add(self, k: int, step: float, rows: RowNumbers, table: FloatArray) -> None:
        loop = self._loop(k, len(self._y))
        buffers = np.empty((loop.n_parts, kernels.BLOCK * (self.scores.shape[2] + 1)))
        kernels.advance(
            loop, self.scores[k], step, table, rows, self._y, self.probabilities[k],
            self.losses[k], buffers,
        )  # fmt: skip

    def _loop(self, k: int, n_rows: int) -> Loop:
        return self._growers[k].threads.loop(n_rows, _MIN_ROWS)

    def loss_sums(self, units: tuple[Units, Units]) -> FloatArray:
        """Sums of losses (n_folds, 2, 2) of training and of held-out rows, high and low."""
        return self._loss_sums(units)[:, :, 1:]

    def _loss_sums(self, units: tuple[Units, Units]) -> FloatArray:
        """Largest terms of the losses, and their sums, high and low: (n_folds, 2, 3)."""

        def of_fold(k: int) -> FloatArray:
            found = np.empty((2, 3))
            for part, used in enumerate((self._train[k], self._held_out[k])):
                total, loop = self._plan.totals[part], self._loop(k, len(used))
                sums = np.empty((loop.n_parts, 3))
                kernels.loss_sums(
                    loop, self.losses[k], self._fraction, total, used, *map(float, units[part]),
                    sums,
                )  # fmt: skip
                found[part, 0] = combined(np.maximum, sums[:, 0])
                found[part, 1:] = combined(np.add, sums[:, 1:])
            return found

        return np.array(self._each_fold(of_fold))

    def keep(self, folds: Sequence[int]) -> None:
        """Keep the out-of-fold probabilities of some folds, as of this round."""
        if self._kept is None:
            self._kept = self._no_probabilities()
        self._take_out_of_fold(folds, self._kept)

    def _no_probabilities(self) -> Any:
        return self._shard.xp.full(self.probabilities.shape[1:], np.nan, np.float32)

    def _take_out_of_fold(self, folds: Sequence[int], out: Any) -> None:
        for k in folds:
            rows = self._held_out[k]
            out[rows] = self.probabilities[k][rows]

    def out_of_fold(self, rows: RowNumbers | None = None) -> NDArray[np.float32]:
        """Probabilities (n, K) of some rows, all by default, as kept or as of now.

        NaN for rows that no fold holds out.
        """
        found = self._kept
        if found is None:
            found = self._no_probabilities()
            self._take_out_of_fold(range(self.n_folds), found)
        used = found if rows is None else found[self._shard.put(rows)]
        probabilities: NDArray[np.float32] = self._shard.get(used)
        return probabilities

    def decided(self, costs: FloatArray) -> NDArray[np.bool_]:
        """Which classes (K,) are decisions for held-out rows, or for all rows if none is."""
        probabilities = self.out_of_fold()
        if np.isnan(probabilities[:, 0]).all():
            probabilities = self._shard.get(self.probabilities[0])
        known = np.flatnonzero(~np.isnan(probabilities[:, 0]))
        found = np.zeros(len(costs), bool)
        for part in blocks(len(known)):
            found[np.argmin(expected_costs(probabilities[known[part]], costs), axis=1)] = True
        return found

    def cost_sums(self, regret: FloatArray, costs: FloatArray, units: Units) -> FloatArray:
        """Sums (4, 2) of w**2, w * c, w**2 * c and (w * c)**2 over held-out rows, high and low.

        The weights w sum to one; c is ``costs[truth, decision]`` of the out-of-fold decision.
        """
        probabilities, fraction = self.out_of_fold(), self._shard.get(self._fraction)
        weights = np.zeros(len(self._y))
        for held_out in map(self._shard.get, self._held_out):
            weights[held_out] += fraction[held_out] / self._plan.totals[True]
        known = np.flatnonzero(~np.isnan(probabilities[:, 0]))
        sums = np.zeros((4, 2))
        for part in blocks(len(known)):
            rows = known[part]
            w = weights[rows]
            decisions = np.argmin(expected_costs(probabilities[rows], regret), axis=1)
            c = costs[self._y[rows], decisions]
            terms = (w * w, w * c, w * w * c, (w * c) ** 2)
            sums += [split_sums(term, units) for term in terms]
        return sums


def scaled_weights(weight: FloatArray, given: float, total: float) -> tuple[FloatArray, FloatArray]:
    """Weights with a given sum, scaled to a total, and to one; broadcast ones stay broadcast."""
    if weight.strides == (0,) and len(weight):
        one = scaled_weights(weight[:1].copy(), given, total)
        return np.broadcast_to(one[0], len(weight)), np.broadcast_to(one[1], len(weight))
    return weight if total == given else weight / given * total, weight / given


def is_set(rows: RowNumbers) -> bool:
    """Whether no row is repeated, as rows of a bootstrap sample are."""
    increasing = rows if (rows[1:] > rows[:-1]).all() else np.unique(rows)
    return len(increasing) == len(rows)


def leaf_numbers(tree: Tree) -> NDArray[np.int32]:
    """Number of each leaf among the leaves of a tree, zero for inner nodes."""
    leaf = tree.is_leaf
    return np.where(leaf, np.cumsum(leaf) - 1, 0).astype(np.int32)


_MAX_VALUE = 4.0  # of a leaf, before the learning rate
_MIN_HESSIAN = 1e-12  # without any regularisation
_MIN_MEAN_WEIGHT, _MAX_MEAN_WEIGHT = 1e-6, 1e6  # limits of single precision


class CrossFit:
    """The `Descent` of CostBoost."""

    def __init__(
        self,
        data: ShardedData,
        growth: Growth,
        folds: list[Fold],
        *,
        n_classes: int,
        l2: float,
        min_hessian: float,
        learning_rate: float,
        n_directions: int,
        subsample: float,
        seed: int,
        threads: Threads,
        keeps_leaves: bool = False,
    ):
        y, weight, n = data.y, data.weight, len(data.y)
        self._l2, self._min_hessian, self._rate = l2, min_hessian, learning_rate
        self._data, self.folds, self.n_folds = data, folds, len(folds)
        self._n_classes, self._ends = n_classes, data.ends
        given = exact_sum(weight)  # a weight of two counts as two samples
        total = float(np.clip(given, n * _MIN_MEAN_WEIGHT, n * _MAX_MEAN_WEIGHT))
        scaled, self.weights = scaled_weights(weight, given, total)
        trained = [
            slice(None) if len(fold.train) == n and is_set(fold.train) else fold.train
            for fold in folds
        ]
        self._totals = [exact_sum(scaled[rows]) for rows in trained]
        counts = [exact_bincount(y[rows], scaled[rows], n_classes) for rows in trained]
        self.log_priors = np.array([np.log((c + 1.0) / (c + 1.0).sum()) for c in counts])
        self.log_prior = np.mean(self.log_priors, axis=0)
        self._plan = CrossFitPlan(
            growth,
            self.log_priors,
            given,
            total,
            n_directions,
            subsample,
            seed,
            1.5 * float(np.ldexp(1.0, np.frexp(total)[1] + 1)),
            (self._total(trained), self._total([fold.held_out for fold in folds])),
        )
        folds_of_shards = _split_folds(data, folds)
        self._boosters = Boosters(data.shards, CrossFitShard, self._plan, folds_of_shards)
        self._keeps_leaves = keeps_leaves and data.is_local
        self._grower = None if data.is_local else ShardedGrower(data.mapper, growth, threads)
        self._losses: FloatArray | None = None
        self._loss_sizes = np.zeros(2)

    def _total(self, rows_of_folds: Sequence[RowNumbers | slice]) -> float:
        """Sum of the weights of the rows of all folds."""
        terms = [self.weights[rows] for rows in rows_of_folds]
        largest = max(term.max(initial=0.0) for term in terms)
        units = units_of(largest, self._n_terms)
        return float(np.sum([split_sums(term, units) for term in terms], axis=0).sum())

    @property
    def _n_terms(self) -> int:
        """Number of rows of all folds."""
        return self.n_folds * len(self.weights)

    @property
    def state(self) -> FloatArray:
        """Cost scores of all boosters (n_folds * n * K,), for `resume`."""
        return np.concatenate(self._boosters.map(CrossFitShard.state), axis=1).ravel()

    def resume(self, state: FloatArray) -> None:
        """Continue from an earlier state."""
        scores = state.reshape(self.n_folds, -1, self._n_classes)
        given = per_shard(scores[:, a:b] for a, b in pairwise(self._ends))
        self._boosters.update(CrossFitShard.resume, given)

    def fit(self, n_done: int) -> Stage:
        """Grow a tree for each fold."""
        sizes = np.max(self._boosters.map(CrossFitShard.gradient_sizes, n_done), axis=0)
        hessians = self._boosters.map(CrossFitShard.begin, n_done, quanta_of(sizes))
        gains = [
            self._gain(hessian, total)
            for hessian, total in zip(np.sum(hessians, axis=0), self._totals, strict=True)
        ]
        seeds = [self._plan.draws(n_done, k)[1] for k in range(self.n_folds)]
        if self._grower is None:
            (trees,) = self._boosters.map(CrossFitShard.grow, gains, seeds)
        else:
            trees = self._grow_by_levels(self._grower, gains, seeds)
        leaf_sums = self._boosters.map(CrossFitShard.leaf_sums, trees)
        tables = [
            self._values(np.sum(sums, axis=0), gain)
            for sums, gain in zip(zip(*leaf_sums, strict=True), gains, strict=True)
        ]
        first = np.cumsum([0, *map(len, tables)])
        models = [
            replace(tree, value=leaf_numbers(tree) + np.int32(start))
            for tree, start in zip(trees, first, strict=False)
        ]
        rows = []
        if self._keeps_leaves:
            (leaves,) = self._boosters.map(CrossFitShard.leaves, trees)
            rows = [given + np.int32(start) for given, start in zip(leaves, first, strict=False)]
        steps = [self._rate / len(trees)] * len(trees)
        reason = "useless" if first[-1] == len(trees) else None  # nothing was split
        return Stage(models, steps, rows, np.concatenate(tables), reason)

    def _grow_by_levels(
        self, grower: ShardedGrower, gains: Sequence[Gain], seeds: Sequence[int]
    ) -> list[Tree]:
        """Grow a tree for each fold from the sums of all shards."""
        roots = zip(*self._boosters.map(CrossFitShard.begin_trees), strict=True)
        planned = {
            k: PlannedTree(add_roots(of_fold), gains[k], seeds[k])
            for k, of_fold in enumerate(roots)
        }

        def level(requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
            results = self._boosters.map(CrossFitShard.level, requests)
            return {key: add_results([result[key] for result in results]) for key in requests}

        grown = grower.grow(planned, level)
        return [grown[k][0] for k in range(self.n_folds)]

    def advance(self, stage: Stage) -> None:
        """Add its tree to each booster."""
        steps = [self.n_folds * step for step in stage.steps]
        tables, rows = [_own_rows(tree, stage.table) for tree in stage.models], None
        if len(stage.rows):
            tables = [stage.table] * self.n_folds
            rows = per_shard([rows[a:b] for rows in stage.rows] for a, b in pairwise(self._ends))
        sizes = self._boosters.update(CrossFitShard.advance, steps, tables, stage.models, rows)
        self._loss_sizes = np.max(sizes, axis=0)
        self._losses = None

    @property
    def losses(self) -> FloatArray:
        """Log-loss (n_folds, 2) of training and held-out rows; sums over folds are the means."""
        if self._losses is None:
            units = (
                units_of(self._loss_sizes[0], self._n_terms),
                units_of(self._loss_sizes[1], self._n_terms),
            )
            sums = self._boosters.map(CrossFitShard.loss_sums, units)
            self._losses = np.sum(sums, axis=0).sum(axis=2)
        return self._losses

    def keep(self, folds: Sequence[int]) -> None:
        """Keep the current out-of-fold probabilities of some folds."""
        self._boosters.update(CrossFitShard.keep, folds)

    def out_of_fold(self, rows: RowNumbers | None = None) -> FloatArray:
        """Probabilities (n, K) of some samples, in increasing order; NaN where not held out."""
        given = () if rows is None else (self._data.rows_by_shard(rows),)
        found = self._boosters.map(CrossFitShard.out_of_fold, *given)
        return np.concatenate(found).astype(np.float64)

    def decided(self, costs: FloatArray) -> Labels:
        """Classes that are decisions for any sample, see `CrossFitShard.decided`."""
        return np.flatnonzero(np.any(self._boosters.map(CrossFitShard.decided, costs), axis=0))

    def out_of_fold_cost(self, regret: FloatArray, costs: FloatArray) -> tuple[float, float]:
        """Mean ``costs[truth, decision]`` of out-of-fold decisions, and its standard error.

        Decisions minimise the expected `regret`.
        """
        largest = float(costs.max()) or 1.0
        units = units_of(1.0, len(self.weights))
        sums = self._boosters.map(CrossFitShard.cost_sums, regret, costs / largest, units)
        squares, mean, mixed, second = np.sum(sums, axis=0).sum(axis=1)
        variance = second - 2.0 * mean * mixed + mean**2 * squares
        error = np.sqrt(max(variance, 0.0) / (1.0 - squares)) if squares < 1.0 else np.nan
        return largest * float(mean), largest * float(error)

    def _values(self, sums: FloatArray, gain: Gain) -> FloatArray:
        """Values of leaves (n_leaves, K), from gradients and hessians (n_leaves, 2, K)."""
        gradient, hessian = sums[:, 0], sums[:, 1]
        factor = 1.0 - 1.0 / self._n_classes
        values = factor * gradient / np.maximum(hessian + gain.l2, _MIN_HESSIAN)
        return np.clip(values, -_MAX_VALUE, _MAX_VALUE)

    def _gain(self, hessian: float, total: float) -> Gain:
        """Gain whose regularisation is proportional to the root of the mean hessian, at first one.

        Where classes are separable, hessians vanish, and with a constant l2 so would the steps.
        """
        mean = float(hessian) / total
        scale = float(np.sqrt(mean / (1.0 - 1.0 / self._n_classes)))
        return Gain.of_gradients(
            self._plan.n_directions + 1, self._l2 * scale, self._min_hessian * scale
        )


def _split_folds(data: ShardedData, folds: list[Fold]) -> list[Fold]:
    """Folds of each shard, with rows in increasing order (uint32)."""

    def increasing(rows: RowNumbers) -> RowNumbers:
        rows = rows.astype(np.uint32)
        return rows if (rows[1:] > rows[:-1]).all() else np.sort(rows)

    train = [data.rows_by_shard(increasing(fold.train)) for fold in folds]
    held_out = [data.rows_by_shard(increasing(fold.held_out)) for fold in folds]
    return per_shard(
        [Fold(*rows) for rows in zip(own_train, own_held_out, strict=True)]
        for own_train, own_held_out in zip(
            zip(*train, strict=True), zip(*held_out, strict=True), strict=True
        )
    )


def _own_rows(tree: Tree, table: FloatArray) -> FloatArray:
    """Rows of a table that the leaves of a tree refer to, in the order of the leaves."""
    values = tree.value[tree.is_leaf]
    return table[values[0] : values[0] + len(values)]


class FoldLoss(ScoreMonitor):
    """Log-loss of the training samples of boosters, or of the held-out samples.

    With `keeps_best` the out-of-fold probabilities of each fold are kept in the round that is best
    for the other folds, so that its own rows do not choose the round.
    """

    def __init__(self, fit: CrossFit, *, held_out: bool, keeps_best: bool = False):
        super().__init__()
        self.fit, self._held_out, self._keeps_best = fit, held_out, keeps_best
        self.losses = self.curve
        self._best_of_others = np.full(fit.n_folds, np.inf)
        self.decided: Labels | None = None  # classes that are decided for held-out rows, if known

    def record(self, stage: Stage) -> None:
        """Add the loss to the curve."""
        losses = self.fit.losses[:, int(self._held_out)]
        loss = float(losses.sum())
        if self._keeps_best:
            others = loss - losses if len(losses) > 1 else losses
            better = np.flatnonzero(others < self._best_of_others)
            self._best_of_others[better] = others[better]
            if len(better):
                self.fit.keep(better.tolist())
        self.curve.append(loss)
