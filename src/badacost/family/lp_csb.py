"""Lp-CSB: boosting of the p-norm of the votes that a stochastic classifier gives to wrong labels.

A stochastic classifier H gives votes ``H(k|x)``, which sum to one, to all labels. Its loss is the
sum of ``C(y, k) H(k|x)^p``, with costs ``C[truth, prediction]``. A round weighs each pair
of a sample and a wrong label by the derivative of its loss, and the pair of the sample with its
right label by the sum of these; it fits a relation r(x, k), true or false, to the weighted pairs,
spreads ``h(.|x)`` evenly over the labels related to x, and mixes h into H.

The relation is a tree that tests features first and the label last: each leaf splits its pairs
into all K labels at once. Hence a leaf is a set of labels, and the tree an ordinary one whose
leaves have a row of K numbers; no sample is copied K times. Its splits are those of a tree for the
pairs with right labels, that is for the classes; the votes of its leaves follow from all pairs.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import exact_bincount, exact_sum
from badacost._utils.validation import check_choice, check_number
from badacost.boosting.folds import RowHashes
from badacost.boosting.reweighting import Criterion, draw_samples
from badacost.boosting.stagewise import ScoredSamples, Stage
from badacost.classifiers.base import StagewiseClassifier
from badacost.classifiers.training_data import SampleSet, Task
from badacost.costs import zero_one_costs
from badacost.io.model_file import ModelFile, saved_model

_CANDIDATES = (2.0, 4.0, 8.0, 16.0)  # for p="auto"
_ROUNDING = 1e-9  # relative differences of sums that are less mean nothing
_MAX_MIXING_WEIGHT = 1.0 - 1e-6
_LARGEST_STEP = 1e300
_MAX_ATTEMPTS = 5  # at a useful hypothesis in one round, where trees are random


def best_mixing_weight(before: ArrayLike, proposed: ArrayLike, costs: ArrayLike, p: float) -> float:
    """Return the weight a that minimises the p-norm cost of ``(1 - a) before + a proposed``.

    Parameters
    ----------
    before, proposed : array-like of shape (n, K)
        Votes of stochastic classifiers.
    costs : array-like of shape (n, K)
        Sample weights times ``C[truth, label]``; rows of C are the truth.
    p : float
        At least 1. The p-norm cost is the sum of ``costs * votes**p``.

    Returns
    -------
    float
        The minimiser of a convex function on [0, 1]; zero where the proposal does not help.

    Examples
    --------
    >>> before, proposed = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    >>> costs = [[0.0, 3.0], [1.0, 0.0]]  # of the first class, of the second one
    >>> round(best_mixing_weight(before, proposed, costs, 2), 6)
    0.5
    """
    old, new, cost = (np.asarray(a, np.float64) for a in (before, proposed, costs))
    moved = (new > 0.0) & (cost > 0.0)
    # All other votes shrink by a common factor: their sum is needed once.
    others = (cost > 0.0) & ~moved
    fading = old[others]
    largest = float(fading.max(initial=0.0))
    shrinking = exact_sum(cost[others] * ((fading / (largest or 1.0)) ** (p - 1.0) * fading))
    old, new, cost = old[moved], new[moved], cost[moved]

    def linearised(a: float) -> tuple[float, float]:
        """Costs of `proposed` and `before`, linearised at the mixture, up to a common factor."""
        mixed = (1.0 - a) * old + a * new
        top = max(float(mixed.max(initial=0.0)), (1.0 - a) * largest) or 1.0
        rates = cost * (mixed / top) ** (p - 1.0)
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


def _related_votes(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Even votes (n_leaves, K) for the labels whose pairs weigh more if right than if wrong.

    They are even votes for all labels of a leaf where there are none.
    """
    related = right > wrong * (1.0 + _ROUNDING)
    related |= ~related.any(axis=1, keepdims=True)
    return np.asarray(related / related.sum(axis=1, keepdims=True))


def _cheapest_votes(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Votes (n_leaves, K) for the one label that adds least to the linearised cost."""
    least = wrong.min(axis=1, keepdims=True) * (1.0 + _ROUNDING)
    return np.eye(right.shape[1])[np.where(wrong <= least, right, -1.0).argmax(axis=1)]


class PNormDescent:
    """Mixing of relational trees: the `Descent` of Lp-CSB.

    The costs of all labels are sample weights times ``C[truth, label]``; `votes` (n_samples, K) are
    those of H. With ``step="average"`` all hypotheses have the weight `learning_rate`, else the
    weight of minimum cost, times that.
    """

    def __init__(self, model: LpCSBClassifier, task: Task):
        self._model, self._averaging = model, model.step == "average"
        self._learner = learner = task.tree_learner(model, len(model.classes_))
        relative = task.weight[:, np.newaxis] / task.weight.max()
        costs = relative * (model.regret_matrix_ / model.regret_matrix_.max())[task.y]
        self._costs = costs / exact_sum(costs.ravel())
        random = model.subsample < 1.0 or learner.grower.growth.n_drawn is not None
        self._n_attempts = _MAX_ATTEMPTS if random else 1
        self.votes = np.full(costs.shape, 1.0 / costs.shape[1])
        # The even start is one more hypothesis of an average; a line search would hardly leave it.
        self._mass = 1.0 if self._averaging else 0.0

    @property
    def pair_weights(self) -> FloatArray:
        """Weights (n_samples, K) of the pairs with wrong labels, summing to one."""
        largest = float(np.max(self.votes, where=self._costs > 0.0, initial=0.0))
        # Votes for labels that cost nothing may be larger.
        relative = np.minimum(self.votes / (largest or 1.0), 1.0)
        pairs = self._costs * relative ** (self._model.p_ - 1.0)
        return pairs / exact_sum(pairs.ravel()) if pairs.any() else self._costs

    @property
    def weights(self) -> FloatArray:
        """Weights of the samples, equal to those of the pairs with their right labels."""
        return self.pair_weights.sum(axis=1)

    def fit(self, n_done: int) -> Stage:
        """Fit a tree and its step, again if that is useless and the tree random."""
        pairs = self.pair_weights
        for attempt in range(self._n_attempts):
            stage = self._stage(pairs, (self._model._seed, n_done, attempt))
            if stage.reason != "useless":
                break
        return stage

    def advance(self, stage: Stage) -> None:
        """Mix the hypothesis of the stage into H."""
        (step,), (rows,) = stage.steps, stage.rows
        self._mass += step
        weight = step / self._mass
        self.votes *= 1.0 - weight
        self.votes -= (weight * stage.table)[rows]

    def _stage(self, pairs: FloatArray, key: tuple[int, ...]) -> Stage:
        """Grow a tree on the pairs with right labels; all pairs determine the votes of leaves."""
        weights, n_classes = pairs.sum(axis=1), pairs.shape[1]
        drawn = draw_samples(weights, self._model.subsample, key)
        seed = int(np.random.default_rng(key).integers(2**63))
        tree, _, leaves = self._learner.grow(weights, zero_one_costs(n_classes), drawn, seed)
        rows = slice(None) if drawn is None else drawn
        y, nodes, n_nodes = self._learner.y[rows], leaves[rows].astype(np.intp), len(tree.left)
        right = exact_bincount(nodes * n_classes + y, weights[rows], n_nodes * n_classes)
        wrong = [exact_bincount(nodes, column, n_nodes) for column in pairs[rows].T]
        sums = right.reshape(n_nodes, n_classes), np.column_stack(wrong)
        votes = _related_votes(*sums)
        step = self._step(votes[leaves])
        if step == 0.0 and not self._averaging:
            votes = _cheapest_votes(*sums)
            step = self._step(votes[leaves])
        distinct, places = np.unique(votes, axis=0, return_inverse=True)
        tree = replace(tree, value=places.astype(np.int32))
        chosen, reason = tree.value[leaves], None
        if step == 0.0:
            reason = "useless"
        elif not self._costs[distinct[chosen] > 0.0].any():
            reason = "perfect"
        return Stage([tree], [step], [chosen], -distinct, reason)

    def _step(self, proposed: FloatArray) -> float:
        """Return the step of a tree with these votes for the training samples; zero refuses it."""
        rate = float(self._model.learning_rate)
        if self._averaging:
            return rate if (proposed != proposed[:, :1]).any() else 0.0
        weight = rate * best_mixing_weight(self.votes, proposed, self._costs, self._model.p_)
        if weight == 0.0 or self._mass == 0.0:
            return rate if weight else 0.0
        weight = min(weight, _MAX_MIXING_WEIGHT)
        return min(weight / (1.0 - weight) * self._mass, _LARGEST_STEP)


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class LpCSBClassifier(StagewiseClassifier):
    """Boosting of the p-norm cost of a stochastic classifier, by relations of samples and labels.

    Lp-CSB [1]_ minimises the mean of ``sum over k of C(y, k) H(k|x)^p``, where the votes
    ``H(k|x)`` sum to one and the class of the largest wins. A round weighs the pairs of a sample
    and a wrong label by ``H(k|x)^(p-1) C(y, k)`` and fits a binary tree, which separates right from
    wrong pairs, to them. The votes ``h(.|x)`` of a tree, even over the labels that it takes for
    right, are mixed into H.

    At the minimum of the expected cost ``H(k|x)`` is proportional to ``R_k^(-1/(p-1))``, where R_k
    is the expected cost of deciding k: the largest vote is the decision of minimum cost, but
    votes are not probabilities, and there is no `predict_proba`. With p=1 weights do not depend on
    H: all rounds fit the same tree or, with `subsample`, trees of the same kind, whose average is
    the method of costing.

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
        ``C[truth, prediction]``: rows are the truth; see `BAdaCostClassifier`. Their unit has no
        effect.
    p : float or "auto", default=8.0
        Exponent of the votes, at least 1. The higher it is, the more a round is devoted to the
        worst pairs. "auto" tries 2, 4, 8 and 16 on validation data (``X_val``, or
        `validation_fraction` of the training data), takes the one of minimum average cost and fits
        with it to all training data, five fits in all. The default was chosen on parts of the
        training data of five UCI sets, with equal and with random costs: 8 and 16 were best on
        satimage, car and waveform, 4 and 16 on letter, 2 on cmc, which is mostly noise.
    step : {"average", "line_search"}, default="average"
        How trees are mixed. "average", after the authors: all weigh `learning_rate`, the even
        votes from which H starts weigh one. "line_search": a tree gets the weight that minimises
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
        Costs as given, ``C[truth, prediction]``, in the order of ``classes_``.
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    p_ : float
        The exponent, given or chosen.
    forest_ : badacost.tree.forest.Forest
        The trees. Leaves refer to rows ``-h(.|x)`` of its table.
    estimator_weights_ : ndarray of shape (n_estimators_,)
        Steps, learning rate included. Up to the start of an average, the votes H are
        ``-cost_scores(X) / estimator_weights_.sum()``.
    n_estimators_ : int
        Number of rounds kept.
    train_score_ : ndarray of shape (n_estimators_,)
        Average cost of the decisions after each round on at most 5 000 training samples.
    validation_score_ : ndarray of shape (n_estimators_,) or (0,)
        Average cost after each round on validation data.
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
    >>> from badacost.family import LpCSBClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = LpCSBClassifier(costs, n_estimators=20, max_depth=2).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> votes = -model.cost_scores(X) / model.estimator_weights_.sum()
    >>> bool(abs(votes.sum(axis=1) - 1).max() < 1e-9)
    True
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    criterion: Criterion = "gini"
    p: float | Literal["auto"] = 8.0
    step: Literal["average", "line_search"] = "average"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("step", self.step, ("average", "line_search"))
        if isinstance(self.p, str):
            check_choice("p", self.p, ("auto",))
        else:
            check_number("p", self.p, low=1.0)

    def _derive(self) -> None:
        if self.p != "auto":
            self.p_ = float(self.p)

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        if self.p not in ("auto", self.p_):
            raise ValueError(f"With warm_start=True p must stay {self.p_:g}; got {self.p!r}.")

    def _start(self, task: Task) -> PNormDescent:
        return PNormDescent(self, task)

    def _loss_of(self, part: ScoredSamples) -> float:
        votes = part.scores / part.scores.sum(axis=1, keepdims=True)
        return part.mean((self.regret_matrix_[part.y] * votes**self.p_).sum(axis=1))

    def _boost(self, task: Task) -> None:
        if self.p == "auto" and not len(self.estimator_weights_):
            self.p_ = self._chosen_p(task)
        super()._boost(task)

    def _chosen_p(self, task: Task) -> float:
        """Return the exponent of minimum cost on validation data, or on a held-out part."""
        X, y, weight, unseen = task.samples.X, task.y, task.weight, task.validation
        if unseen is None:
            held = self._held_out(RowHashes(self._seed).of(X), y, weight)
            unseen = (SampleSet(X[held]), y[held], weight[held])
            X, y, weight = X[~held], y[~held], weight[~held]

        def cost_of(p: float) -> float:
            trial = copy(self)
            trial.p, trial.p_, trial.callbacks, trial.verbose = p, p, None, 0
            samples, validation = SampleSet(X), (SampleSet(unseen[0].X), *unseen[1:])
            trial._boost(replace(task, samples=samples, y=y, weight=weight, validation=validation))
            return float(trial.validation_score_[-1])

        return min(_CANDIDATES, key=cost_of)

    def _store(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._store(header, arrays)
        header["p"] = self.p_

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        self.p_ = model.header["p"]
        check_number("the fitted p", self.p_, low=1.0)
