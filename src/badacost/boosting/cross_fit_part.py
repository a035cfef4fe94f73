"""`CrossFitPart`: the rows of a part, as the boosters of CostBoost's folds see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting import costboost_kernels as kernels
from badacost.boosting.folds import Fold
from badacost.costs.decisions import expected_costs
from badacost.exact_sums import Units, blocks, folded_sums
from badacost.threads import Threads
from badacost.tree.forest import Tree
from badacost.tree.gain_kernels import SquaredGradients
from badacost.tree.grower import Growth, TreeGrower
from badacost.tree.part import Answer, Question, TreePart
from badacost.tree.sampling import draw_rows
from badacost.tree.sums import Rows

_SMALL = 1_000_000  # samples times features up to which a thread takes whole folds
_MIN_ROWS = 4096  # for each thread


class CrossFitPlan(NamedTuple):
    """What parts need to know of a fit: the same for all of them."""

    growth: Growth
    log_priors: FloatArray  # (n_folds, K)
    given: float  # sum of all weights
    total: float  # what they are scaled to
    n_directions: int
    subsample: float
    seed: int
    big: float  # adding and subtracting it rounds to multiples of which all sums are exact
    part_totals: tuple[float, float]  # weights of what folds train on, and of what they leave out

    def draws(self, n_done: int, fold: int) -> tuple[FloatArray, int]:
        """Projections that the tree of a fold follows in a round, and the seed of the tree."""
        rng = np.random.default_rng([self.seed, n_done, fold])
        directions = rng.normal(size=(self.log_priors.shape[1], self.n_directions))
        return directions, int(rng.integers(2**63))


class CrossFitPart:
    """Cost scores, probabilities and losses of some rows, for the boosters of all folds."""

    def __init__(
        self,
        trees: TreePart,
        y: Labels,
        weight: FloatArray,
        first_row: int,
        plan: CrossFitPlan,
        folds: list[Fold],
    ):
        n, (n_folds, n_classes) = len(y), plan.log_priors.shape
        self._trees, self._y, self._plan, self._folds = trees, y, plan, folds
        self._first_row = first_row
        self._weight, self._share = scaled_weights(weight, plan.given, plan.total)
        apart = n_folds >= trees.threads.n_threads and trees.data.bins.size <= _SMALL
        alone, threads = Threads(), trees.threads
        self._over_folds, self._over_rows = (threads, alone) if apart else (alone, threads)
        self._grower = TreeGrower(trees.data, plan.growth, self._over_rows)
        self.scores = np.repeat(-plan.log_priors[:, None, :], n, axis=1)
        self.shares: NDArray[np.float32] = np.empty((n_folds, n, n_classes), np.float32)
        self.losses = np.empty((n_folds, n))
        self._best: NDArray[np.float32] | None = None  # shares of rows left out, in the best round
        self._begun: dict[int, tuple[Rows, RowNumbers]] = {}  # what trees are to be grown on
        self._rows: Sequence[RowNumbers] = ()  # of the table, for the trees that were grown last
        self._settle()

    def _settle(self) -> None:
        """Work out probabilities and losses from the scores."""
        nothing = np.zeros(len(self._y), np.int32), np.empty((0, self.scores.shape[2]))
        self._over_folds.run(self._add, [(k, 0.0, *nothing) for k in range(len(self._folds))])

    def state(self) -> FloatArray:
        """Cost scores, all that a fit needs to go on."""
        return self.scores

    def resume(self, scores: FloatArray) -> None:
        """Go on from earlier scores."""
        self.scores[:] = scores
        self._settle()

    def gradient_sizes(self, n_done: int) -> FloatArray:
        """Largest gradients along the directions of a round, and hessian: (n_folds, R + 1)."""

        def of_fold(k: int) -> FloatArray:
            directions = self._plan.draws(n_done, k)[0]
            sizes = self._for_rows(
                lambda a, b: kernels.sketch_sizes(
                    self.shares[k], self._y, self._weight, directions, a, b
                )
            )
            return np.max(sizes, axis=0)

        return np.array(self._over_folds.run(of_fold, [(k,) for k in range(len(self._folds))]))

    def begin(self, n_done: int, quanta: FloatArray) -> FloatArray:
        """Begin the trees of a round on gradients that are multiples of their quanta.

        Returns the sum of the hessians of each fold.
        """
        self._trees.end()

        def of_fold(k: int) -> float:
            directions, train = self._plan.draws(n_done, k)[0], self._folds[k].train
            rounded = np.empty((len(self._y), len(quanta[k])), np.float32)
            self._for_rows(
                lambda a, b: kernels.sketch_rounded(
                    self.shares[k], self._y, self._weight, directions, quanta[k], rounded, a, b
                )
            )
            key = plan.seed, n_done, k
            self._begun[k] = Rows(rounded), draw_rows(train, plan.subsample, key, self._first_row)
            return float(
                sum(rounded[train[b], -1].sum(dtype=np.float64) for b in blocks(len(train)))
            )

        plan = self._plan
        return np.array(self._over_folds.run(of_fold, [(k,) for k in range(len(self._folds))]))

    def ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        """Answer questions about the trees that grow."""
        for key in questions.keys() & self._begun.keys():
            self._trees.begin(key, *self._begun.pop(key))
        return self._trees.ask(questions)

    def grow(self, gains: Sequence[SquaredGradients], seeds: Sequence[int]) -> list[Tree]:
        """Grow the trees of a round, where all rows are in this part."""

        def of_fold(k: int) -> tuple[Tree, RowNumbers]:
            sums, rows = self._begun.pop(k)
            every = None if len(rows) == len(self._y) else rows
            grown = self._grower.grow(sums, gains[k], rows=every, seed=seeds[k], consume=True)
            return grown.tree, leaf_numbers(grown.tree)[grown.leaves]

        tasks = [(k,) for k in range(len(self._folds))]
        trees, self._rows = zip(*self._over_folds.run(of_fold, tasks), strict=True)
        return list(trees)

    def leaf_sums(self, trees: Sequence[Tree]) -> list[FloatArray]:
        """Sums of gradients and hessians by leaf, (n_leaves, 2, K), of the tree of each fold."""
        rows = self.answers(trees)

        def of_fold(k: int) -> FloatArray:
            train, n_leaves = self._folds[k].train, int(trees[k].is_leaf.sum())

            def of_rows(first: int, last: int) -> FloatArray:
                sums = np.zeros((n_leaves, 2, self.scores.shape[2]))
                kernels.leaf_sums(
                    self.shares[k], self._y, self._weight, train, rows[k], self._plan.big, sums,
                    first, last,
                )  # fmt: skip
                return sums

            return np.sum(self._for_rows(of_rows, len(train)), axis=0)

        return self._over_folds.run(of_fold, [(k,) for k in range(len(self._folds))])

    def answers(self, trees: Sequence[Tree]) -> Sequence[RowNumbers]:
        """Leaves of the rows in the trees of all folds, counted without inner nodes."""
        if not len(self._rows):
            self._rows = [leaf_numbers(tree)[self._trees.leaves(tree)] for tree in trees]
        return self._rows

    def advance(
        self, trees: Sequence[Tree], steps: Sequence[float], tables: Sequence[FloatArray]
    ) -> FloatArray:
        """Move the booster of each fold on by its tree; return the largest terms of the losses."""
        rows = self.answers(trees)
        tasks = [(k, steps[k], rows[k], tables[k]) for k in range(len(trees))]
        self._over_folds.run(self._add, tasks)
        self._rows = ()
        return self.loss_sizes()

    def advance_by(
        self, rows: Sequence[RowNumbers], steps: Sequence[float], tables: Sequence[FloatArray]
    ) -> FloatArray:
        """The same for trees of an earlier fit, whose answers are known."""
        self._rows = list(rows)
        return self.advance([None] * len(rows), steps, tables)  # type: ignore[list-item]

    def _add(self, k: int, step: float, rows: RowNumbers, table: FloatArray) -> None:
        self._for_rows(
            lambda a, b: kernels.advance(
                self.scores[k], step, table, rows, self._y, self.shares[k], self.losses[k], a, b
            )
        )

    def _for_rows(self, work: Any, n: int | None = None) -> list[Any]:
        n = len(self._y) if n is None else n
        n_threads = self._over_rows.n_threads
        return self._over_rows.map(work, n, max(_MIN_ROWS, -(-n // n_threads)))

    def _loss_terms(self, left_out: bool) -> Iterator[FloatArray]:
        """Losses of what folds leave out, or train on, times their weights, in blocks."""
        for losses, fold in zip(self.losses, self._folds, strict=True):
            chosen = fold.left_out if left_out else fold.train
            for part in blocks(len(chosen)):
                rows = chosen[part]
                yield losses[rows] * (self._share[rows] / self._plan.part_totals[left_out])

    def loss_sizes(self) -> FloatArray:
        """Largest terms of the losses of what folds train on, and of what they leave out."""
        return np.array(
            [
                max((terms.max() for terms in self._loss_terms(left_out)), default=0.0)
                for left_out in (False, True)
            ]
        )

    def loss_sums(self, units: tuple[Units, Units]) -> FloatArray:
        """Sums of the same, in two folds (2, 2)."""
        sums = np.zeros((2, 2))
        for left_out in (False, True):
            for terms in self._loss_terms(left_out):
                sums[int(left_out)] += folded_sums(terms, units[left_out])
        return sums

    def remember(self) -> None:
        """Keep the probabilities of rows left out, since this round is the best one so far."""
        self._best = self._left_out_shares()

    def _left_out_shares(self) -> NDArray[np.float32]:
        shares = np.full(self.shares.shape[1:], np.nan, np.float32)
        for fold, known in zip(self._folds, self.shares, strict=True):
            shares[fold.left_out] = known[fold.left_out]
        return shares

    def left_out_shares(self, best: bool) -> NDArray[np.float32]:
        """Probabilities of rows by the boosters that left them out, else NaN: now, or at best."""
        return self._best if best and self._best is not None else self._left_out_shares()

    def paid(self, costs: FloatArray, charged: FloatArray, best: bool) -> FloatArray:
        """What decisions on rows left out cost, times their weights."""
        shares = self.left_out_shares(best)
        known = ~np.isnan(shares[:, 0])
        weights = np.zeros(len(self._y))
        for fold in self._folds:
            weights[fold.left_out] += self._share[fold.left_out] / self._plan.part_totals[True]
        decisions = np.argmin(expected_costs(shares[known], costs), axis=1)
        return charged[self._y[known], decisions] * weights[known]

    def paid_size(self, costs: FloatArray, charged: FloatArray, best: bool) -> float:
        """The largest of these terms."""
        return float(self.paid(costs, charged, best).max(initial=0.0))

    def paid_sums(
        self, costs: FloatArray, charged: FloatArray, best: bool, units: Units
    ) -> FloatArray:
        """Their sum, in two folds."""
        return folded_sums(self.paid(costs, charged, best), units)


def scaled_weights(weight: FloatArray, given: float, total: float) -> tuple[FloatArray, FloatArray]:
    """Weights with a sum as given, scaled to a total and to one; broadcast ones stay so."""
    if weight.strides == (0,):
        one = scaled_weights(weight[:1].copy(), given, total)
        return np.broadcast_to(one[0], len(weight)), np.broadcast_to(one[1], len(weight))
    return weight if total == given else weight / given * total, weight / given


def leaf_numbers(tree: Tree) -> NDArray[np.int32]:
    """Numbers of the leaves among the nodes of a tree, counted without inner nodes."""
    leaf = tree.is_leaf
    return np.where(leaf, np.cumsum(leaf) - 1, 0).astype(np.int32)
