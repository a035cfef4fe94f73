"""MultiBoost: boosting of the generalized margin over a pool of trees that is grown once.

With costs ``C[truth, prediction]`` and margin vectors f(x), which sum to zero, the loss of a sample
is the sum over k of the weighted costs ``u[n, k] = weight[n] C(y[n], k) exp(f_k(x[n]))``. A member
that gives the label g(n) adds the code of g(n) to f: with a step a, the weighted cost of this label
grows by a factor ``exp(a)`` and all others shrink by ``exp(-a / (K - 1))``. Hence the loss after
the best step depends only on A, the weighted cost of the labels of the member as a fraction of the
sum of all: the member of steepest descent has the smallest A. Up to a common factor a round changes
one weighted cost of each sample, so that the fractions of the whole pool are updated by adding, for
each sample, what this cost gained to the members that gave the same label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import exact_sum, split_high_low
from badacost._utils.progress import tracked
from badacost._utils.validation import check_number
from badacost.boosting.reweighting import Criterion
from badacost.boosting.stagewise import Stage
from badacost.classifiers.base import StagewiseClassifier
from badacost.classifiers.training_data import Task
from badacost.family.wang_kernels import add_where_given
from badacost.io.model_file import ModelFile, saved_model
from badacost.loss import class_codes
from badacost.tree.forest import Tree
from badacost.tree.grower import TreeGrower

_GROWN_AT_ONCE = 16  # members of a thread, between two looks at the progress
_MIN_STEP = 1e-9  # a member that moves scores by less is useless
_MIN_COST_FRACTION = 1e-10  # in the place of zero


def pool_step(cost_fraction: float, n_classes: int) -> float:
    """Return the step a that minimises ``A exp(a) + (1 - A) exp(-a / (K - 1))``.

    Parameters
    ----------
    cost_fraction : float
        A, the cost of the labels of a member as a fraction of the sum over all labels.
    n_classes : int
        Number of classes K.

    Returns
    -------
    float
        The minimiser, finite even for a member without mistakes: 1e-10 is used for a fraction of
        zero. Zero where the loss rises with the step, that is for a fraction of 1/K or more.

    Examples
    --------
    >>> round(pool_step(0.2, 2), 6)  # that of AdaBoost
    0.693147
    """
    fraction = cost_fraction or _MIN_COST_FRACTION
    if fraction * n_classes >= 1.0:
        return 0.0
    odds = (1.0 - fraction) / (fraction * (n_classes - 1))
    return (n_classes - 1) / n_classes * float(np.log(odds))


class PoolDescent:
    """Steepest descent with the members of a pool: the `Descent` of MultiBoost.

    `labels` (n_samples, n_members) are those that the trees of the pool give to the samples of the
    task. The costs of all labels of all samples, weighted by ``exp(f)``, are kept as logarithms, up
    to a common factor. `cost_fractions` (n_members,) are the sums over the labels of each member,
    as fractions of the sum over all.
    """

    def __init__(
        self,
        trees: list[Tree],
        labels: NDArray[np.unsignedinteger],
        task: Task,
        costs: FloatArray,
        learning_rate: float,
    ):
        self.trees, self.labels, self._threads = trees, labels, task.threads
        self._y, self._every, weight = task.y, np.arange(len(task.y)), task.weight
        self._rate = float(learning_rate)  # a number in single precision would round the steps
        self._n_classes = len(costs)
        self._table = -class_codes(len(costs))
        with np.errstate(divide="ignore"):
            self._log_costs = np.log(costs) - np.log(costs.max())
        self._log_weights = np.log(weight) - np.log(exact_sum(weight))
        self._raised = np.zeros((len(weight), len(costs)))  # K/(K-1) times the steps of each label
        weighted = np.exp(self._log_weights)[:, np.newaxis] * np.exp(self._log_costs)[self._y]
        total = exact_sum(weighted.ravel())
        # Both halves, since a member without any cost is a perfect one.
        high, low = (
            np.sum([self._sums_where_given(k, half[:, k]) for k in range(len(costs))], axis=0)
            for half in np.reshape(split_high_low(weighted.ravel()), (2, *weighted.shape))
        )
        self.cost_fractions = (high + low) / total
        self._log_total = np.log(total)

    @property
    def weights(self) -> FloatArray:
        """Sums of the weighted costs of each sample, normalized to a sum of one."""
        logs = self._log_costs[self._y] + self._raised
        logs += self._log_weights[:, np.newaxis]
        weights = np.exp(logs - logs.max()).sum(axis=1)
        return np.asarray(weights / exact_sum(weights))

    def fit(self, n_done: int) -> Stage:
        """Choose the member of steepest descent, whatever was chosen before."""
        best = int(np.argmin(self.cost_fractions))
        fraction = float(self.cost_fractions[best])
        step = pool_step(fraction, self._n_classes)
        reason = "perfect" if fraction == 0.0 else None
        if step <= _MIN_STEP:
            reason = "useless"
        labels = self.labels[:, best].copy()
        return Stage([self.trees[best]], [self._rate * step], [labels], self._table, reason)

    def advance(self, stage: Stage) -> None:
        """Raise the costs of the labels of the stage, and the fractions of members that agree."""
        (step,), (labels,) = stage.steps, stage.rows
        raised = step * self._n_classes / (self._n_classes - 1)
        logs = self._log_weights + self._log_costs[self._y, labels] - self._log_total
        logs += self._raised[self._every, labels]
        self._raised[self._every, labels] += raised
        with np.errstate(divide="ignore"):  # right labels have no cost
            logs += raised + np.log(-np.expm1(-raised))  # log(exp(raised) - 1), for any raise
        top = max(float(logs.max()), 0.0)
        growth = top + np.log(exact_sum(np.exp(logs - top)) + np.exp(-top))
        self._log_total += growth
        gained = self._sums_where_given(labels, split_high_low(np.exp(logs - growth))[0])
        self.cost_fractions = self.cost_fractions * np.exp(-growth) + gained

    def _sums_where_given(self, labels: Any, amounts: FloatArray) -> FloatArray:
        """Return the sums (n_members,) of the amounts of samples to which members give a label.

        Amounts are multiples of a quantum, so that the order of the samples does not matter. Each
        thread has a range of the members.
        """
        sums, samples = np.zeros(len(self.trees)), np.flatnonzero(amounts)
        chosen = np.broadcast_to(labels, len(amounts))[samples].astype(self.labels.dtype)
        add = partial(add_where_given, self.labels, samples, chosen, amounts[samples], sums)
        self._threads.map(add, len(sums))
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
    cost of deciding k, so that the decision is the one of minimum expected cost. For two classes
    it is AdaBoost over the pool, from initial weights multiplied by costs. It is not cost-sensitive
    AdaBoost, where costs are exponents, and with 0|1 costs of more classes it is not SAMME.

    Trees are not fitted to the weights of earlier rounds. The fit ends with ``stop_reason_``
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
        Fractions of the samples that trees are grown on, taken in turn. Samples are drawn whatever
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
    classes_, cost_matrix_, regret_matrix_, forest_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Expected costs do not determine probabilities: there is no
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
    >>> from badacost.family import WangMultiBoostClassifier
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

    @property
    def _table(self) -> FloatArray:
        return -class_codes(len(self.classes_))

    def _start(self, task: Task) -> PoolDescent:
        n_classes, weights = len(self.classes_), task.weight / exact_sum(task.weight)
        learner = task.tree_learner(self, n_classes)
        # Members are grown side by side, each in one thread.
        learner.grower = TreeGrower(learner.grower.data, learner.grower.growth)
        # Samples whose weight does not vanish in single precision, which is what trees see.
        alive = np.flatnonzero(weights.astype(np.float32))
        labels = np.empty((len(weights), self.n_pool), np.min_scalar_type(n_classes - 1))

        def member(number: int) -> Tree:
            """Grow a tree on a random part of the samples, by the seed and its number only."""
            rng = np.random.default_rng([self._seed, number])
            tree_seed = int(rng.integers(2**63))  # the first draw, since rows may be more or fewer
            fraction = self.subsample * self.sample_shares[number % len(self.sample_shares)]
            size = min(max(1, round(fraction * len(weights))), len(alive))
            rows = np.sort(rng.choice(alive, size, replace=False, shuffle=False))
            tree, labels[:, number] = learner.fit(weights, self.regret_matrix_, rows, tree_seed)
            return tree

        parts = task.threads.parts(self.n_pool, _GROWN_AT_ONCE * task.threads.n_threads)
        grown = (task.threads.run(member, [(n,) for n in range(*part)]) for part in parts)
        members = chain.from_iterable(grown)
        trees = [*tracked(members, self.n_pool, "Pool of trees", shown=bool(self.verbose))]
        return PoolDescent(trees, labels, task, self.regret_matrix_, self.learning_rate)

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        self.sample_shares = tuple(self.sample_shares)  # JSON has lists only
