"""MultiBoost: boosting of the generalised margin over a pool of trees that is grown once.

With costs ``C[truth, prediction]`` and margin vectors f(x), which sum to zero, the loss of a sample
is the sum over k of the charges ``u[n, k] = weight[n] C(y[n], k) exp(f_k(x[n]))``. A member that
answers g(n) adds the code of g(n) to f: with a step a, the charge it answers with grows by a factor
``exp(a)`` and all others shrink by ``exp(-a / (K - 1))``. Hence the loss after the best step
depends only on the share A of the charges that the member answers with: the member of steepest
descent has the smallest A. Up to a factor common to all charges a round changes one charge
of each sample, so that the shares of the whole pool are brought up to date by adding, for each
sample, what its charge gained to the members that gave the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting import wang_kernels
from badacost.boosting.learners import Criterion, TreeLearner
from badacost.boosting.rounds import Stage
from badacost.boosting.stagewise import StagewiseClassifier, Task
from badacost.exact_sums import exact_sum, folds
from badacost.loss import class_codes
from badacost.model_file import ModelFile
from badacost.persistence import saved_model
from badacost.progress import ProgressBar
from badacost.threads import Threads
from badacost.tree.forest import Tree
from badacost.tree.grower import TreeGrower
from badacost.validation import check_number

_GROWN_AT_ONCE = 16  # members of a thread, between two looks at the progress
_MIN_STEP = 1e-9  # a member that moves scores by less is useless
_TRACE_OF_CHARGE = 1e-10  # stands in for the charges of a member that has none


@dataclass(frozen=True, eq=False)
class Pool:
    """Trees and their answers (n_samples, n_members) to the training samples."""

    trees: list[Tree]
    labels: NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False)
class PoolGrower:
    """Grows pools on one training set; a member depends on the seed and its number only.

    `shares` of the samples that members are grown on are taken in turn.
    """

    learner: TreeLearner
    weights: FloatArray
    costs: FloatArray
    shares: Sequence[float]
    seed: int

    @cached_property
    def _alive(self) -> RowNumbers:
        """Samples whose weight does not vanish in single precision, which is what trees see."""
        return np.flatnonzero(self.weights.astype(np.float32))

    def grow(self, n_members: int, threads: Threads, bar: ProgressBar | None = None) -> Pool:
        """Grow members, each in one of the threads, and keep their labels."""
        labels = np.empty((len(self.weights), n_members), np.min_scalar_type(len(self.costs) - 1))
        trees: list[Tree] = []
        at_once = _GROWN_AT_ONCE * threads.n_threads
        for start in range(0, n_members, at_once):
            columns = labels[:, start : start + at_once]
            for part in threads.map(partial(self._fill, columns, start), columns.shape[1]):
                trees += part
            if bar is not None:
                bar.update(len(trees))
        return Pool(trees, labels)

    def _fill(
        self, labels: NDArray[np.unsignedinteger], start: int, first: int, last: int
    ) -> list[Tree]:
        """Grow the members of some columns of labels, the first of which is number `start`."""
        trees = []
        for column in range(first, last):
            tree, labels[:, column] = self._member(start + column)
            trees.append(tree)
        return trees

    def _member(self, number: int) -> tuple[Tree, Labels]:
        """Grow a tree on a random part of the samples."""
        rng = np.random.default_rng([self.seed, number])
        seed = int(rng.integers(2**63))  # the first draw, since rows may be more or fewer
        share = self.shares[number % len(self.shares)]
        size = min(max(1, round(share * len(self.weights))), len(self._alive))
        rows = np.sort(rng.choice(self._alive, size, replace=False, shuffle=False))
        return self.learner.fit(self.weights, self.costs, rows, seed)


def pool_step(share: float, n_classes: int) -> float:
    """Return the step a that minimises ``A exp(a) + (1 - A) exp(-a / (K - 1))``.

    Parameters
    ----------
    share : float
        A, the share of all charges that the answers of a member have.
    n_classes : int
        Number of classes K.

    Returns
    -------
    float
        The minimiser, finite even for a member without mistakes: 1e-10 stands in for a share of
        zero. Zero where the loss rises with the step, that is for a share of 1/K or more.

    Examples
    --------
    >>> round(pool_step(0.2, 2), 6)  # that of AdaBoost
    0.693147
    """
    rising = share or _TRACE_OF_CHARGE
    if rising * n_classes >= 1.0:
        return 0.0
    odds = (1.0 - rising) / (rising * (n_classes - 1))
    return (n_classes - 1) / n_classes * float(np.log(odds))


class PoolDescent:
    """Steepest descent with the members of a pool: the `Descent` of MultiBoost.

    Charges are kept as logarithms, up to a factor common to all of them, and the charges that each
    member answers with as shares of the sum of all.
    """

    def __init__(
        self,
        pool: Pool,
        y: Labels,
        weight: FloatArray,
        costs: FloatArray,
        *,
        learning_rate: float,
        threads: Threads,
    ):
        self.pool = pool
        self._threads = threads
        self._y, self._every = y, np.arange(len(y))
        self._rate = float(learning_rate)  # a number in single precision would round the steps
        self._n_classes = len(costs)
        self._table = -class_codes(len(costs))
        with np.errstate(divide="ignore"):
            self._log_costs = np.log(costs) - np.log(costs.max())
        self._log_weights = np.log(weight) - np.log(exact_sum(weight))
        self._raised = np.zeros((len(y), len(costs)))  # K/(K-1) times the steps of each answer
        charges = np.exp(self._log_weights)[:, np.newaxis] * np.exp(self._log_costs)[y]
        total = exact_sum(charges.ravel())
        # Both parts, since a member without any charge is a perfect one.
        high, low = (part.reshape(charges.shape) for part in folds(charges.ravel()))
        answered = self._over_members(wang_kernels.add_charges, high)
        answered += self._over_members(wang_kernels.add_charges, low)
        self.shares = answered / total
        self._log_total = np.log(total)

    @property
    def weights(self) -> FloatArray:
        """Sums of the charges of each sample, as shares of all."""
        logs = self._log_costs[self._y] + self._raised
        logs += self._log_weights[:, np.newaxis]
        weights = np.exp(logs - logs.max()).sum(axis=1)
        return np.asarray(weights / exact_sum(weights))

    def fit(self, n_done: int) -> Stage:
        """Choose the member of steepest descent, whatever was chosen before."""
        best = int(np.argmin(self.shares))
        share = float(self.shares[best])
        step = pool_step(share, self._n_classes)
        reason = "perfect" if share == 0.0 else None
        if step <= _MIN_STEP:
            reason = "useless"
        answers = self.pool.labels[:, best].copy()
        return Stage([self.pool.trees[best]], [self._rate * step], [answers], self._table, reason)

    def advance(self, stage: Stage) -> None:
        """Raise the charges that were answered with, and the shares of those who agree."""
        (step,), (answers,) = stage.steps, stage.rows
        raised = step * self._n_classes / (self._n_classes - 1)
        logs = self._log_weights + self._log_costs[self._y, answers] - self._log_total
        logs += self._raised[self._every, answers]
        self._raised[self._every, answers] += raised
        with np.errstate(divide="ignore"):  # right answers have no charge
            logs += raised + np.log(-np.expm1(-raised))  # log(exp(raised) - 1), for any raise
        top = max(float(logs.max()), 0.0)
        growth = top + np.log(exact_sum(np.exp(logs - top)) + np.exp(-top))
        self._log_total += growth
        gains = folds(np.exp(logs - growth))[0]
        samples = np.flatnonzero(gains)
        chosen = answers[samples].astype(self.pool.labels.dtype)
        gained = self._over_members(wang_kernels.add_where_agreed, samples, chosen, gains[samples])
        self.shares = self.shares * np.exp(-growth) + gained

    def _over_members(self, kernel: Any, *arguments: Any) -> FloatArray:
        """Let a kernel work out sums for all members, a range of them in each thread.

        Terms are multiples of a quantum, so that the order of the samples does not matter.
        """
        sums = np.zeros(len(self.pool.trees))

        def work(first: int, last: int) -> None:
            kernel(self.pool.labels, *arguments, first, last, sums)

        self._threads.map(work, len(sums))
        return sums


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class WangMultiBoostClassifier(StagewiseClassifier):
    """MultiBoost of Wang: boosting with costs over a pool of trees that is grown beforehand.

    It minimises the mean of ``sum over k of C(y, k) exp(f_k(x))``, where f(x) sums to zero and the
    class of the largest f wins [1]_. Each round takes the tree of steepest descent from a pool of
    multi-class trees, with a step in closed form. The pool is that of [2]_: every tree is grown
    on a random part of the samples, here for the same costs as the loss.

    At the minimum of the expected loss ``f_k(x)`` is a constant minus the logarithm of the expected
    cost of answering k, so that the decision is the one of minimum expected cost. For two classes
    it is AdaBoost over the pool, from initial weights multiplied by costs. It is not cost-sensitive
    AdaBoost, where costs are exponents, and with 0|1 costs of more classes it is not SAMME.

    Trees are not fitted to what earlier rounds left over. The fit ends with ``stop_reason_``
    "useless" when none in the pool helps any more, with a learning rate of one often after some ten
    rounds; the default of 0.1 reaches lower costs. Shallow trees of many classes are of little use:
    on the letters of UCI, 26 classes, the error was 0.57 with 4 levels and 0.29 with 8.

    Growing the pool takes nearly all of the time: as much as `n_pool` rounds of a booster that
    fits each tree to about half of the samples. Until the fit is done the pool takes
    ``n_samples * n_pool`` bytes, twice that above 256 classes, and 33 bytes for each node of its
    trees: 278 MB of labels for 46 400 samples and 6000 trees. A warm start grows it again. The
    model has one tree for each round, also where a tree was chosen before.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth, as in `BAdaCostClassifier`. Their
        scale has no effect.
    n_pool : int, default=600
        Trees in the pool; 6000 in [2]_. On training parts of UCI's car and satimage, with 4 and 8
        levels, decisions of 600 cost up to 25 % less than those of 150, and of 6000 up to 13 % less
        than of 600: 0 to 13 % with 4 levels, and between 4 % more and 8 % less with 8.
    sample_shares : tuple of float, default=(0.30, 0.45, 0.60)
        Shares of the samples that trees are grown on, taken in turn. Samples are drawn whatever
        their weight, so that one of weight two is not quite the same as two of them.
    n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf,
    max_features, criterion, binning, max_bins, categorical_features, subsample, early_stopping,
    validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs, device,
    random_state, verbose
        See `BAdaCostClassifier`. The CPU is the one `device` for fitting. `subsample` is a further
        factor of all `sample_shares`. A small `max_features` such as "sqrt" makes the pools of wide
        data much faster to grow, and their trees more different from each other.

    Attributes
    ----------
    classes_, cost_matrix_, charged_costs_, forest_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Expected costs do not tell probabilities: there is no
        predict_proba.

    References
    ----------
    .. [1] J. Wang, "Boosting the Generalized Margin in Cost-Sensitive Multiclass Classification",
       Journal of Computational and Graphical Statistics 22(1), 2013, pp. 178-192.
    .. [2] A. Fernandez-Baldera, J. M. Buenaposada, L. Baumela, "BAdaCost: Multi-class Boosting
       with Costs", Pattern Recognition 79, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import WangMultiBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = WangMultiBoostClassifier(costs, n_pool=60, max_depth=2, random_state=0).fit(X, y)
    >>> model.predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    criterion: Criterion = "gini"
    n_pool: int = 600
    sample_shares: Sequence[float] = (0.30, 0.45, 0.60)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_pool", self.n_pool, Integral, low=1)
        if not isinstance(self.sample_shares, tuple | list) or not self.sample_shares:
            raise TypeError(
                f"sample_shares must be a tuple of at least one number; got {self.sample_shares!r}."
            )
        for share in self.sample_shares:
            check_number("each of sample_shares", share, low=0.0, high=1.0, open_low=True)

    def _prepare(self) -> None:
        self._set_costs(self.cost_matrix)
        self._derive()

    @property
    def _table(self) -> FloatArray:
        return -class_codes(len(self.classes_))

    def _start(self, task: Task) -> PoolDescent:
        learner = task.tree_learner(self, len(self.classes_))
        # Members are grown side by side, each in one thread.
        alone = TreeGrower(learner.grower.data, learner.grower.growth)
        weights = task.weight / exact_sum(task.weight)
        shares = [self.subsample * share for share in self.sample_shares]
        grower = PoolGrower(
            TreeLearner(alone, task.y, len(self.classes_), self.criterion),
            weights,
            self.cost_matrix_,
            shares,
            self._seed,
        )
        bar = ProgressBar(self.n_pool, "Pool of trees") if self.verbose else None
        try:
            pool = grower.grow(self.n_pool, task.threads, bar)
        except BaseException:
            if bar is not None:  # else its line is taken over by the bar of the rounds
                bar.close()
            raise
        return PoolDescent(
            pool,
            task.y,
            task.weight,
            self.cost_matrix_,
            learning_rate=self.learning_rate,
            threads=task.threads,
        )

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        self.sample_shares = tuple(self.sample_shares)  # JSON has lists only
