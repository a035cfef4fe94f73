"""Lp-CSB: boosting of the p-norm of what a stochastic classifier leaves to wrong labels.

A stochastic classifier H gives shares ``H(k|x)``, which sum to one, to all labels. It is charged
``C(y, k) H(k|x)^p`` for each label, with costs ``C[truth, prediction]``. A round weighs each pair
of a sample and a wrong label by the derivative of its charge, and the pair of the sample with its
right label by the sum of these; it fits a relation r(x, k), true or false, to the weighted pairs,
spreads ``h(.|x)`` evenly over the labels related to x, and mixes h into H.

The relation is a tree that tests features first and the label last: each leaf splits its pairs
into all K labels at once. Hence a leaf is a set of labels, and the tree an ordinary one whose
leaves have a row of K numbers; no sample is copied K times. Its splits are those of a tree for the
pairs with right labels, that is for the classes; all pairs decide what its leaves answer.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from badacost.arrays import FloatArray, Labels, LeafNumbers, Mask
from badacost.boosting.followed import ScoredSamples
from badacost.boosting.learners import Criterion, SampleSet, TreeLearner, draw_samples
from badacost.boosting.rounds import Stage
from badacost.boosting.stagewise import StagewiseClassifier, Task
from badacost.costs import zero_one_costs
from badacost.exact_sums import exact_bincount, exact_sum
from badacost.model_file import ModelFile
from badacost.persistence import saved_model
from badacost.validation import check_choice, check_number

_CANDIDATES = (2.0, 4.0, 8.0, 16.0)  # for p="auto"
_STEPS = ("average", "line_search")
_ROUNDING = 1e-9  # relative differences of sums that are less mean nothing
_MAX_SHARE = 1.0 - 1e-6
_LARGEST_STEP = 1e300
_MAX_ATTEMPTS = 5  # at a useful hypothesis in one round, where trees are random


def best_share(before: ArrayLike, proposed: ArrayLike, prices: ArrayLike, p: float) -> float:
    """Return the share a that minimises the p-norm cost of ``(1 - a) before + a proposed``.

    Parameters
    ----------
    before, proposed : array-like of shape (n, K)
        Stochastic hypotheses.
    prices : array-like of shape (n, K)
        Price of each share: sample weights times ``C[truth, label]``; rows of C are the truth.
    p : float
        At least 1. The cost is the sum of ``prices * share**p``.

    Returns
    -------
    float
        The minimiser of a convex function on [0, 1]; zero where the proposal does not help.

    Examples
    --------
    >>> before, proposed = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    >>> prices = [[0.0, 3.0], [1.0, 0.0]]  # of the first class, of the second one
    >>> round(best_share(before, proposed, prices, 2), 6)
    0.5
    """
    old, new, price = (np.asarray(a, np.float64) for a in (before, proposed, prices))
    moved = (new > 0.0) & (price > 0.0)
    # The other shares only shrink, by a common factor: their sum is needed once.
    others = (price > 0.0) & ~moved
    fading = old[others]
    largest = float(fading.max(initial=0.0))
    shrinking = exact_sum(price[others] * ((fading / (largest or 1.0)) ** (p - 1.0) * fading))
    old, new, price = old[moved], new[moved], price[moved]

    def linearised(a: float) -> tuple[float, float]:
        """Costs of `proposed` and `before`, linearised at the mixture, up to a common factor."""
        mixed = (1.0 - a) * old + a * new
        top = max(float(mixed.max(initial=0.0)), (1.0 - a) * largest) or 1.0
        rates = price * (mixed / top) ** (p - 1.0)
        shrunk = ((1.0 - a) * largest / top) ** (p - 1.0) * shrinking
        return exact_sum(rates * new), exact_sum(rates * old) + shrunk

    def slope(a: float) -> float:
        gained, lost = linearised(a)
        return gained - lost

    gained, lost = linearised(0.0)
    if gained >= lost * (1.0 - _ROUNDING):
        return 0.0
    if slope(1.0) <= 0.0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-15))


def _spread(sets: Mask) -> FloatArray:
    """Even shares (n, K) over sets of labels; over all labels where a set is empty."""
    filled = sets | ~sets.any(axis=1, keepdims=True)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


def _majorities(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Shares of the labels whose pairs in a leaf are rather right than wrong."""
    return _spread(right > wrong * (1.0 + _ROUNDING))


def _cheapest(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Shares of the one label per leaf that adds least to the linearised cost."""
    least = wrong.min(axis=1, keepdims=True) * (1.0 + _ROUNDING)
    label = np.where(wrong <= least, right, -1.0).argmax(axis=1)
    return np.eye(right.shape[1])[label]


def _pair_sums(
    leaves: LeafNumbers, y: Labels, pairs: FloatArray, n_nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Weights of right and of wrong pairs by leaf and label, (n_nodes, K) each."""
    n_classes = pairs.shape[1]
    cells = leaves.astype(np.intp) * n_classes + y
    right = exact_bincount(cells, pairs.sum(axis=1), n_nodes * n_classes)
    wrong = [exact_bincount(leaves, column, n_nodes) for column in pairs.T]
    return right.reshape(n_nodes, n_classes), np.column_stack(wrong)


class PNormDescent:
    """Mixing of relational trees: the `Descent` of Lp-CSB.

    `prices` (n_samples, K) are sample weights times ``C[truth, label]``. With `averaging` all
    hypotheses have the weight `learning_rate`, else what minimises the cost, times that.
    """

    def __init__(
        self,
        learner: TreeLearner,
        prices: FloatArray,
        *,
        p: float,
        learning_rate: float,
        averaging: bool,
        subsample: float,
        seed: int,
    ):
        self._learner = learner
        self._prices = prices / exact_sum(prices.ravel())
        self._p, self._rate, self._averaging = p, float(learning_rate), averaging
        self._subsample, self._seed = subsample, seed
        random = subsample < 1.0 or learner.grower.growth.n_drawn is not None
        self._n_attempts = _MAX_ATTEMPTS if random else 1
        self.shares = np.full(prices.shape, 1.0 / prices.shape[1])
        # The even start is one more hypothesis of an average; a line search would hardly leave it.
        self._mass = 1.0 if averaging else 0.0

    @property
    def pair_weights(self) -> FloatArray:
        """Weights (n_samples, K) of the pairs with wrong labels, summing to one."""
        largest = float(np.max(self.shares, where=self._prices > 0.0, initial=0.0))
        relative = np.minimum(self.shares / (largest or 1.0), 1.0)  # those of no price are free
        pairs = self._prices * relative ** (self._p - 1.0)
        return pairs / exact_sum(pairs.ravel()) if pairs.any() else self._prices

    @property
    def weights(self) -> FloatArray:
        """Weights of the samples, which are those of the pairs with their right labels."""
        return self.pair_weights.sum(axis=1)

    def fit(self, n_done: int) -> Stage:
        """Fit a tree and its step, again if that is useless and the tree random."""
        pairs = self.pair_weights
        for attempt in range(self._n_attempts):
            stage = self._stage(pairs, (self._seed, n_done, attempt))
            if stage.reason != "useless":
                break
        return stage

    def advance(self, stage: Stage) -> None:
        """Mix the hypothesis of the stage into H."""
        (step,), (rows,) = stage.steps, stage.rows
        self._mass += step
        share = step / self._mass
        self.shares *= 1.0 - share
        self.shares -= (share * stage.table)[rows]

    def _stage(self, pairs: FloatArray, key: tuple[int, ...]) -> Stage:
        """Grow a tree on the pairs with right labels, then let all pairs fill its leaves."""
        weights, costs = pairs.sum(axis=1), zero_one_costs(pairs.shape[1])
        drawn = draw_samples(weights, self._subsample, key)
        seed = int(np.random.default_rng(key).integers(2**63))
        tree, _, leaves = self._learner.grow(weights, costs, drawn, seed)
        used = slice(None) if drawn is None else drawn
        sums = _pair_sums(leaves[used], self._learner.y[used], pairs[used], len(tree.left))
        for shares_of in (_majorities,) if self._averaging else (_majorities, _cheapest):
            shares = shares_of(*sums)
            step = self._step(shares[leaves])
            if step > 0.0:
                break
        distinct, places = np.unique(shares, axis=0, return_inverse=True)
        value = places.reshape(-1).astype(np.int32)
        rows = value[leaves]
        reason = "useless" if step == 0.0 else None
        if reason is None and not self._prices[distinct[rows] > 0.0].any():
            reason = "perfect"
        return Stage([replace(tree, value=value)], [step], [rows], -distinct, reason)

    def _step(self, proposed: FloatArray) -> float:
        """Step of a hypothesis, given its shares of the training samples; zero refuses it."""
        if self._averaging:
            return self._rate if (proposed != proposed[:, :1]).any() else 0.0
        share = self._rate * best_share(self.shares, proposed, self._prices, self._p)
        if share == 0.0 or self._mass == 0.0:
            return self._rate if share else 0.0
        share = min(share, _MAX_SHARE)
        return min(share / (1.0 - share) * self._mass, _LARGEST_STEP)


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class LpCSBClassifier(StagewiseClassifier):
    """Boosting of the p-norm cost of a stochastic classifier, by relations of samples and labels.

    Lp-CSB [1]_ minimises the mean of ``sum over k of C(y, k) H(k|x)^p``, where the shares
    ``H(k|x)`` sum to one and the class of the largest wins. A round weighs the pairs of a sample
    and a wrong label by ``H(k|x)^(p-1) C(y, k)`` and fits a binary tree, which tells right from
    wrong pairs, to them. The shares ``h(.|x)`` of a tree, even over the labels that it takes for
    right, are mixed into H.

    At the minimum of the expected cost ``H(k|x)`` is proportional to ``R_k^(-1/(p-1))``, where R_k
    is the expected cost of deciding k: the largest share is the decision of minimum cost, but
    shares are not probabilities, and there is no `predict_proba`. With p=1 weights do not depend on
    H: all rounds fit the same tree or, with `subsample`, trees of the same kind, whose average is
    the way of costing.

    Trees test features first and the label last, where each leaf splits into all K labels. Splits
    are chosen by the classes of the samples, weighted like the pairs with their right labels; the
    pairs with wrong labels count in these weights and in the leaves. A label that is a column like
    others takes log2 K tests to be named alone, and its order matters: on held-out letters, with 8
    levels and p=2, the error was 0.48 in the place of 0.15.

    The method wants strong trees, since H is a mean that no step can sharpen. After 100 rounds on
    four fifths of the 20 000 letters its error on the rest was 0.40 with 4 levels, 0.14 with 8 and
    0.04 with 12 (`BAdaCostClassifier`: 0.23 with 4 and 0.06 with 8). A fit keeps a few arrays of
    n_samples x K numbers.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth; see `BAdaCostClassifier`. Its unit does not
        matter.
    p : float or "auto", default=8.0
        Exponent of the shares, at least 1. The higher it is, the more a round is devoted to the
        worst pairs. "auto" tries 2, 4, 8 and 16 on validation data (``X_val``, or
        `validation_fraction` of the training data), takes the one of minimum average cost and fits
        with it to all training data, five fits in all. The default was chosen on parts of the
        training data of five UCI sets, with equal and with random costs: 8 and 16 were best on
        satimage, car and waveform, 4 and 16 on letter, 2 on cmc, which is mostly noise.
    step : {"average", "line_search"}, default="average"
        How trees are mixed. "average", after the authors: all weigh `learning_rate`, the even
        shares from which H starts weigh one. "line_search": a tree gets the share that minimises
        the cost exactly, times `learning_rate`, and the first takes the place of the start; where
        a tree does not lower the cost, its leaves keep the label of minimum linearised cost. The
        line search was better on noisy data with very different costs (cmc, with ``p=2`` and
        ``learning_rate=1``), the average nearly everywhere else.
    n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf,
    max_features, criterion, binning, max_bins, categorical_features, subsample, early_stopping,
    validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs, device,
    random_state, verbose
        See `BAdaCostClassifier`. An average hardly depends on the learning rate. Trees of full
        depth need a `subsample`, else the first of them makes no mistake and is the last. The CPU
        is the one `device` for fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs in the order of ``classes_``; a price of being right is subtracted from its row.
    charged_costs_ : ndarray of shape (K, K)
        The same as given, with the price of being right if there is one.
    p_ : float
        The exponent, given or chosen.
    forest_ : badacost.tree.forest.Forest
        The trees. Leaves refer to rows ``-h(.|x)`` of its table.
    estimator_weights_ : ndarray of shape (n_estimators_,)
        Steps, learning rate included. Up to the start of an average, the shares H are
        ``-cost_scores(X) / estimator_weights_.sum()``.
    n_estimators_ : int
        Number of rounds kept.
    train_score_ : ndarray of shape (n_estimators_,)
        Average cost of the decisions after each round on at most 5 000 training samples.
    validation_score_ : ndarray of shape (n_estimators_,) or (0,)
        The same on validation data.
    stop_reason_ : {"perfect", "useless", "early stopping", "callback"} or None
        Why the fit ended before `n_estimators` rounds: a tree that takes no wrong label for right,
        one that is uninformative or does not lower the cost, or on request.
    categories_ : dict
        Known categories of each categorical feature, by its name or position.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    References
    ----------
    .. [1] A. C. Lozano, N. Abe, "Multi-class cost-sensitive boosting with p-norm loss functions",
       KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import LpCSBClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = LpCSBClassifier(costs, n_estimators=20, max_depth=2).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> shares = -model.cost_scores(X) / model.estimator_weights_.sum()
    >>> bool(abs(shares.sum(axis=1) - 1).max() < 1e-9)
    True
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    criterion: Criterion = "gini"
    p: float | Literal["auto"] = 8.0
    step: Literal["average", "line_search"] = "average"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("step", self.step, _STEPS)
        if isinstance(self.p, str):
            check_choice("p", self.p, ("auto",))
        else:
            check_number("p", self.p, low=1.0)

    def _prepare(self) -> None:
        self._set_costs(self.cost_matrix)
        if self.p != "auto":
            self.p_ = float(self.p)
        self._derive()

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        if self.p not in ("auto", self.p_):
            raise ValueError(f"With warm_start=True p must stay {self.p_:g}; got {self.p!r}.")

    @property
    def _table(self) -> FloatArray:
        return self.forest_.table  # leaves have rows of their own

    def _start(self, task: Task) -> PNormDescent:
        relative = task.weight[:, np.newaxis] / task.weight.max()
        return PNormDescent(
            task.tree_learner(self, len(self.classes_)),
            relative * (self.cost_matrix_ / self.cost_matrix_.max())[task.y],
            p=self.p_,
            learning_rate=self.learning_rate,
            averaging=self.step == "average",
            subsample=self.subsample,
            seed=self._seed,
        )

    def _loss_of(self, part: ScoredSamples) -> float:
        shares = part.scores / part.scores.sum(axis=1, keepdims=True)
        return part.mean((self.cost_matrix_[part.y] * shares**self.p_).sum(axis=1))

    def _boost(self, task: Task) -> None:
        if self.p == "auto" and not len(self.estimator_weights_):
            self.p_ = self._chosen_p(task)
        super()._boost(task)

    def _chosen_p(self, task: Task) -> float:
        """The exponent of minimum cost on validation data, or on a part of the training data."""
        trial = task
        if task.validation is None:
            parts = self._hold_out(task.samples.X, task.y, task.weight)
            X, y, weight, X_val, y_val, weight_val = parts
            unseen = (SampleSet(X_val), y_val, weight_val)
            trial = replace(task, samples=SampleSet(X), y=y, weight=weight, validation=unseen)
        return min(_CANDIDATES, key=lambda p: self._cost_of(p, trial))

    def _cost_of(self, p: float, task: Task) -> float:
        """Average cost on the validation part, if the model were fitted with this p."""
        known: Any = task.validation
        unseen = (SampleSet(known[0].X), *known[1:])
        trial = copy(self)
        trial.p = trial.p_ = p
        trial.callbacks, trial.verbose = None, 0
        trial._boost(replace(task, samples=SampleSet(task.samples.X), validation=unseen))
        return float(trial.validation_score_[-1])

    def _extra_header(self) -> dict[str, Any]:
        return {**super()._extra_header(), "p": self.p_}

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        self.p_ = model.header["p"]
        check_number("the fitted p", self.p_, low=1.0)
