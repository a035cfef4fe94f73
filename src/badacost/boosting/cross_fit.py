"""Boosters on folds of one training set: each leaves out a part of it, all share bins and threads.

Every round grows a tree in each fold, and the losses of what the folds left out are known for all
samples. The model is the mean of the boosters. The samples themselves are in parts
(`badacost.boosting.cross_fit_part`), wherever these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from badacost.arrays import FloatArray, RowNumbers
from badacost.boosting.cross_fit_part import CrossFitPlan, leaf_numbers, scaled_weights
from badacost.boosting.fit_part import PartedRows
from badacost.boosting.folds import Fold
from badacost.boosting.followed import Followed
from badacost.boosting.rounds import Stage
from badacost.exact_sums import (
    exact_bincount,
    exact_sum,
    folded_sums,
    units_of,
)
from badacost.parts import ByPart
from badacost.threads import Threads
from badacost.tree.forest import Tree
from badacost.tree.gain_kernels import SquaredGradients
from badacost.tree.grower import Growth
from badacost.tree.part import Answer, Question, add_answers
from badacost.tree.part_grower import PartGrower, Planned
from badacost.tree.sums import quanta_of

_MAX_VALUE = 4.0  # of a leaf, before the learning rate
_MIN_HESSIAN = 1e-12  # without any regularisation
_MAX_MEAN_WEIGHT = 1e6  # a sample may count as so many; on average at least as one


class CrossFit:
    """The `Descent` of CostBoost: all folds go a round further at a time."""

    def __init__(
        self,
        samples: PartedRows,
        growth: Growth,
        folds: list[Fold],
        *,
        n_classes: int,
        gain: SquaredGradients,
        learning_rate: float,
        n_directions: int,
        subsample: float,
        seed: int,
        threads: Threads,
        keeps_answers: bool = False,
    ):
        y, weight, n = samples.y, samples.weight, len(samples.y)
        self._parts, self._gain, self._rate = samples.parts, gain, learning_rate
        self.n_folds, self._n_classes, self._ends = len(folds), n_classes, samples.ends
        given = exact_sum(weight)
        total = float(np.clip(given, n, n * _MAX_MEAN_WEIGHT))
        scaled, self.weights = scaled_weights(weight, given, total)
        trained = [slice(None) if len(fold.train) == n else fold.train for fold in folds]
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
            (self._total(trained), self._total([fold.left_out for fold in folds])),
        )
        train, left_out = (
            [samples.rows_by_part(_increasing(rows)) for rows in part]
            for part in ([fold.train for fold in folds], [fold.left_out for fold in folds])
        )
        handed_out = ByPart(
            [Fold(*rows) for rows in zip(train_rows, left_out_rows, strict=True)]
            for train_rows, left_out_rows in zip(
                zip(*train, strict=True), zip(*left_out, strict=True), strict=True
            )
        )
        self._parts.ask("start_cross_fit", self._plan, handed_out, keep=True)
        self._keeps_answers = keeps_answers and samples.whole
        self._grower = None if samples.whole else PartGrower(samples.mapper, growth, threads)
        self._losses: tuple[float, float] | None = None
        self._loss_sizes = np.zeros(2)

    def _total(self, parts: Sequence[RowNumbers | slice]) -> float:
        """Sum of the weights of rows, some of which may count more than once."""
        terms = [self.weights[rows] for rows in parts]
        largest = max(term.max(initial=0.0) for term in terms)
        units = units_of(largest, self._n_terms)
        return float(np.sum([folded_sums(term, units) for term in terms], axis=0).sum())

    @property
    def _n_terms(self) -> int:
        """Rows of all folds."""
        return self.n_folds * len(self.weights)

    @property
    def state(self) -> FloatArray:
        """Cost scores of all boosters, flat: what `resume` needs to go on."""
        return np.concatenate(self._parts.ask("descent.state"), axis=1).ravel()

    def resume(self, state: FloatArray) -> None:
        """Go on from an earlier state."""
        scores = state.reshape(self.n_folds, -1, self._n_classes)
        handed_out = ByPart(scores[:, a:b] for a, b in pairwise(self._ends))
        self._parts.ask("descent.resume", handed_out, keep=True)

    def fit(self, n_done: int) -> Stage:
        """Grow a tree in each fold."""
        sizes = np.max(self._parts.ask("descent.gradient_sizes", n_done), axis=0)
        begun = np.sum(self._parts.ask("descent.begin", n_done, quanta_of(sizes)), axis=0)
        gains = [
            self._scaled_gain(hessian, total)
            for hessian, total in zip(begun, self._totals, strict=True)
        ]
        seeds = [self._plan.draws(n_done, k)[1] for k in range(self.n_folds)]
        if self._grower is None:
            (trees,) = self._parts.ask("descent.grow", gains, seeds)
        else:
            plans = {
                k: Planned(self._plan.n_directions + 1, True, gains[k], seeds[k])
                for k in range(self.n_folds)
            }
            grown = self._grower.grow(plans, self._ask)
            trees = [grown[k][0] for k in range(self.n_folds)]
        answers = self._parts.ask("descent.leaf_sums", trees)
        tables = [
            self._values(np.sum(sums, axis=0), gain)
            for sums, gain in zip(zip(*answers, strict=True), gains, strict=True)
        ]
        first = np.cumsum([0, *map(len, tables)])
        models = [
            replace(tree, value=leaf_numbers(tree) + np.int32(start))
            for tree, start in zip(trees, first, strict=False)
        ]
        rows = []
        if self._keeps_answers:
            (answers,) = self._parts.ask("descent.answers", trees)
            rows = [given + np.int32(start) for given, start in zip(answers, first, strict=False)]
        steps = [self._rate / len(trees)] * len(trees)
        reason = "useless" if first[-1] == len(trees) else None  # nothing was split
        return Stage(models, steps, rows, np.concatenate(tables), reason)

    def _ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        answers = self._parts.ask("descent.ask", questions)
        return {key: add_answers([answer[key] for answer in answers]) for key in questions}

    def advance(self, stage: Stage) -> None:
        """Move each booster on by its tree."""
        steps = [self.n_folds * step for step in stage.steps]
        if len(stage.rows):
            rows = ByPart([rows[a:b] for rows in stage.rows] for a, b in pairwise(self._ends))
            tables = [stage.table] * self.n_folds
            sizes = self._parts.ask("descent.advance_by", rows, steps, tables, keep=True)
        else:
            tables = [_own_rows(tree, stage.table) for tree in stage.models]
            sizes = self._parts.ask("descent.advance", stage.models, steps, tables, keep=True)
        self._loss_sizes = np.max(sizes, axis=0)
        self._losses = None

    def losses(self) -> tuple[float, float]:
        """Mean log-loss of the samples that boosters train on, and of those they leave out."""
        if self._losses is None:
            units = tuple(units_of(size, self._n_terms) for size in self._loss_sizes)
            sums = np.sum(self._parts.ask("descent.loss_sums", units), axis=0).sum(axis=1)
            self._losses = float(sums[0]), float(sums[1])
        return self._losses

    def remember(self) -> None:
        """Keep what boosters say of samples they left out, as of now."""
        self._parts.ask("descent.remember", keep=True)

    def left_out_shares(self, *, best: bool) -> FloatArray:
        """Probabilities of samples by the boosters that left them out, else NaN.

        Those that were remembered last, if `best`.
        """
        return np.concatenate(self._parts.ask("descent.left_out_shares", best)).astype(np.float64)

    def left_out_cost(self, costs: FloatArray, charged: FloatArray, *, best: bool) -> float:
        """Average cost ``charged[truth, decision]`` of decisions on samples left out."""
        given = costs, charged, best
        largest = max(self._parts.ask("descent.paid_size", *given))
        units = units_of(largest, len(self.weights))
        return float(np.sum(self._parts.ask("descent.paid_sums", *given, units), axis=0).sum())

    def _values(self, sums: FloatArray, gain: SquaredGradients) -> FloatArray:
        """Values of leaves, from gradients and hessians (n_leaves, 2, K)."""
        gradient, hessian = sums[:, 0], sums[:, 1]
        factor = 1.0 - 1.0 / self._n_classes
        values = factor * gradient / np.maximum(hessian + gain.l2, _MIN_HESSIAN)
        return np.clip(values, -_MAX_VALUE, _MAX_VALUE)

    def _scaled_gain(self, hessian: float, total: float) -> SquaredGradients:
        """Regularisation that falls with the root of the mean hessian, from one in the beginning.

        Where classes can be told apart, hessians vanish, and with a constant l2 so would the steps.
        """
        mean = float(hessian) / total
        scale = float(np.sqrt(mean / (1.0 - 1.0 / self._n_classes)))
        return SquaredGradients(self._gain.l2 * scale, self._gain.min_hessian * scale)


def _increasing(rows: RowNumbers) -> RowNumbers:
    """The rows in increasing order, as trees count them."""
    rows = rows.astype(np.uint32)
    return rows if (rows[1:] > rows[:-1]).all() else np.sort(rows)


def _own_rows(tree: Tree, table: FloatArray) -> FloatArray:
    """The rows of a table that the leaves of a tree refer to, in their order."""
    values = tree.value[tree.is_leaf]
    return table[values[0] : values[0] + len(values)]


class FoldLoss(Followed):
    """Log-loss of the samples that boosters were trained on, or of those they left out."""

    def __init__(self, fit: CrossFit, *, left_out: bool):
        super().__init__()
        self.fit, self._left_out = fit, left_out
        self.losses = self.curve

    def follow(self, stage: Stage) -> None:
        """Add the loss to the curve."""
        loss = self.fit.losses()[self._left_out]
        if self._left_out and loss < min(self.curve, default=np.inf):
            self.fit.remember()
        self.curve.append(loss)
