"""MultiBoost: boosting of the generalised margin over a pool of trees that is grown once.

With costs ``C[truth, prediction]`` and margin vectors f(x), which sum to zero, the loss of a sample
is the sum over k of the charges ``u[n, k] = weight[n] C(y[n], k) exp(f_k(x[n]))``. A member that
answers g(n) adds the code of g(n) to f: with a step a, the charge it answers with grows by a factor
``exp(a)`` and all others shrink by ``exp(-a / (K - 1))``. Hence the loss after the best step
depends only on the share A of the charges that the member answers with: the member of steepest
descent is the one with the least A. Up to a factor common to all charges a round changes one charge
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
from scipy.special import logsumexp

from badacost.boosting import wang_kernels
from badacost.boosting.learners import TreeLearner, bin_samples
from badacost.boosting.reweighting import TRACE_OF_ERROR
from badacost.boosting.stagewise import FloatArray, Labels, Stage, StagewiseClassifier
from badacost.costs import as_cost_matrix
from badacost.loss import class_codes
from badacost.model_file import ModelFile
from badacost.progress import ProgressBar
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest, Tree
from badacost.tree.grower import TreeGrower, TreeShape
from badacost.tree.threads import Threads
from badacost.validation import check_number

_GROWN_AT_ONCE = 16  # members of a thread whose labels are found in one pass over the samples
_LEAST_STEP = 1e-9  # a member that moves scores by less is useless


@dataclass(frozen=True, eq=False)
class Pool:
    """Trees and their answers to the training samples.

    Attributes
    ----------
    trees : list of Tree
        The members.
    labels : ndarray of shape (n_samples, n_members)
        Classes 0..K-1, in the smallest type that holds them.
    """

    trees: list[Tree]
    labels: NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False)
class PoolGrower:
    """Grows pools on one training set; a member depends on the seed and its number only.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training samples.
    data : BinnedData
        The same, in bins.
    y : ndarray of shape (n_samples,)
        Classes 0..K-1.
    weights : ndarray of shape (n_samples,)
        Sample weights.
    costs : ndarray of shape (K, K)
        ``C[truth, prediction]``: rows are the truth.
    shape : TreeShape
        Limits of the trees.
    shares : sequence of float
        Shares of the samples that members are grown on, taken in turn.
    seed : int
        Seed of all drawing.
    """

    X: NDArray[np.floating]
    data: BinnedData
    y: Labels
    weights: FloatArray
    costs: FloatArray
    shape: TreeShape
    shares: Sequence[float]
    seed: int

    @cached_property
    def _alive(self) -> Labels:
        """Samples whose weight does not vanish in single precision, which is what trees see."""
        return np.flatnonzero(self.weights.astype(np.float32))

    def grow(self, n_members: int, threads: Threads, bar: ProgressBar | None = None) -> Pool:
        """Grow members, each in one of the threads, and keep their labels."""
        labels = np.empty((len(self.X), n_members), np.min_scalar_type(len(self.costs) - 1))
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
        # Not to be shared by threads, and without threads of its own.
        grower = TreeGrower(self.data, self.y, len(self.costs), self.shape)
        trees = [self._member(grower, start + column) for column in range(first, last)]
        table = np.zeros((len(self.costs), 1))
        forest = Forest.from_trees(trees, np.ones(len(trees)), table, self.X.shape[1])
        labels[:, first:last] = forest.value[forest.apply(self.X) + forest.offsets[:-1]]
        return trees

    def _member(self, grower: TreeGrower, number: int) -> Tree:
        """Grow a tree on a random part of the samples."""
        rng = np.random.default_rng([self.seed, number])
        seed = int(rng.integers(2**63))  # the first draw, since rows may be more or fewer
        share = self.shares[number % len(self.shares)]
        size = min(max(1, round(share * len(self.y))), len(self._alive))
        rows = np.sort(rng.choice(self._alive, size, replace=False, shuffle=False))
        return grower.grow(self.weights, self.costs, rows=rows, seed=seed).tree


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
    rising = share or TRACE_OF_ERROR
    if rising * n_classes >= 1.0:
        return 0.0
    odds = (1.0 - rising) / (rising * (n_classes - 1))
    return (n_classes - 1) / n_classes * float(np.log(odds))


class PoolDescent:
    """Steepest descent with the members of a pool: the `Descent` of MultiBoost.

    Charges are kept as logarithms, up to a factor common to all of them, and the charges that each
    member answers with as shares of the sum of all.

    Parameters
    ----------
    pool : Pool
        The weak learners.
    learner : TreeLearner
        Tells what trees answer to other samples.
    y : ndarray of shape (n_samples,)
        Classes 0..K-1.
    weight : ndarray of shape (n_samples,)
        Positive weights.
    costs : ndarray of shape (K, K)
        ``C[truth, prediction]``: rows are the truth.
    learning_rate : float
        Factor of every step.
    threads : Threads
        Threads to share the members among.
    """

    def __init__(
        self,
        pool: Pool,
        learner: TreeLearner,
        y: Labels,
        weight: FloatArray,
        costs: FloatArray,
        *,
        learning_rate: float,
        threads: Threads,
    ):
        self.pool = pool
        self._learner, self._threads = learner, threads
        self._y, self._every = y, np.arange(len(y))
        self._rate = float(learning_rate)  # a number in single precision would round the steps
        self._n_classes = len(costs)
        self._scores = -class_codes(len(costs))
        with np.errstate(divide="ignore"):
            self._log_costs = np.log(costs) - np.log(costs.max())
        self._log_weights = np.log(weight) - np.log(weight.sum())
        self._raised = np.zeros((len(y), len(costs)))  # K/(K-1) times the steps of each answer
        self.shares = np.zeros(len(pool.trees))
        weights, prices = np.exp(self._log_weights), np.exp(self._log_costs)
        self._over_members(wang_kernels.add_costs, y, weights, prices)
        total = float(weights @ prices.sum(axis=1)[y])
        self.shares /= total
        self._log_total = np.log(total)

    @property
    def weights(self) -> FloatArray:
        """Sums of the charges of each sample, as shares of all."""
        logs = self._log_costs[self._y] + self._raised
        logs += self._log_weights[:, np.newaxis]
        weights = np.exp(logs - logs.max()).sum(axis=1)
        return np.asarray(weights / weights.sum())

    def fit(self, n_done: int) -> Stage:
        """Choose the member of steepest descent, whatever was chosen before."""
        best = int(np.argmin(self.shares))
        share = float(self.shares[best])
        step = pool_step(share, self._n_classes)
        reason = "perfect" if share == 0.0 else None
        if step <= _LEAST_STEP:
            reason = "useless"
        answers = self.pool.labels[:, best].copy()
        return Stage([self.pool.trees[best]], [self._rate * step], [answers], reason)

    def recall(self, models: list[Any], steps: list[float]) -> Stage:
        """The stage of an earlier fit, on the samples of this one."""
        return Stage(models, steps, [self._learner.predict(model) for model in models])

    def add(self, stage: Stage) -> None:
        """Raise the charges that were answered with, and the shares of those who agree."""
        (step,), (answers,) = stage.steps, stage.labels
        raised = step * self._n_classes / (self._n_classes - 1)
        logs = self._log_weights + self._log_costs[self._y, answers] - self._log_total
        logs += self._raised[self._every, answers]
        self._raised[self._every, answers] += raised
        with np.errstate(divide="ignore"):  # right answers have no charge
            logs += raised + np.log(-np.expm1(-raised))  # log(exp(raised) - 1), for any raise
        growth = logsumexp(np.append(logs, 0.0))
        self._log_total += growth
        self.shares *= np.exp(-growth)
        gains = np.exp(logs - growth)
        samples = np.flatnonzero(gains)
        chosen = answers[samples].astype(self.pool.labels.dtype)
        self._over_members(wang_kernels.add_where_agreed, samples, chosen, gains[samples])

    def training_scores(self, stage: Stage, rows: Labels | slice) -> FloatArray:
        """Cost scores of the answers to training samples."""
        return stage.steps[0] * self._scores[stage.labels[0][rows]]

    def scores(self, stage: Stage, X: NDArray[np.floating]) -> FloatArray:
        """Cost scores of the answers to other samples."""
        return stage.steps[0] * self._scores[self._learner.predict(stage.models[0], X)]

    def _over_members(self, kernel: Any, *arguments: Any) -> None:
        """Let a kernel add to the shares of all members, a range of them in each thread."""

        def work(first: int, last: int) -> None:
            kernel(self.pool.labels, *arguments, first, last, self.shares)

        self._threads.map(work, len(self.shares))


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
    max_features, criterion, binning, max_bins, subsample, early_stopping, validation_fraction,
    n_iter_no_change, tol, warm_start, callbacks, n_jobs, random_state, verbose
        See `BAdaCostClassifier`. `subsample` is a further factor of all `sample_shares`. A small
        `max_features` such as "sqrt" makes the pools of wide data much faster to grow, and their
        trees more different from each other.

    Attributes
    ----------
    classes_, cost_matrix_, forest_, estimator_weights_, n_estimators_, train_score_,
    validation_score_, stop_reason_, n_features_in_, feature_names_in_
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
        self.cost_matrix_ = as_cost_matrix(self.cost_matrix, self.classes_, allow_extra_labels=True)
        self._derive()

    @property
    def _table(self) -> FloatArray:
        return -class_codes(len(self.classes_))

    def _start(
        self, X: NDArray[np.floating], y: Labels, weight: FloatArray, threads: Threads
    ) -> PoolDescent:
        data = bin_samples(self, X, weight, threads)
        shape = TreeShape.of(self, X.shape[1])
        weights, costs = weight / weight.sum(), self.cost_matrix_
        shares = [self.subsample * share for share in self.sample_shares]
        grower = PoolGrower(X, data, y, weights, costs, shape, shares, self._seed)
        bar = ProgressBar(self.n_pool, "Pool of trees") if self.verbose else None
        try:
            pool = grower.grow(self.n_pool, threads, bar)
        except BaseException:
            if bar is not None:  # else its line is taken over by the bar of the rounds
                bar.close()
            raise
        learner = TreeLearner(X, data, y, len(costs), shape, threads)
        return PoolDescent(
            pool, learner, y, weight, costs, learning_rate=self.learning_rate, threads=threads
        )

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        self.sample_shares = tuple(self.sample_shares)  # JSON has lists only
