"""PIBoost: multi-class boosting by binary learners that separate groups of classes.

Every subset of labels has an additive model of binary trees and sample weights of its own. A tree
knows only whether a class is among the labels of its subset or not; the votes of all subsets, as
vectors over the classes, add up to a decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit
from sklearn.utils.metaestimators import available_if

from badacost.boosting.learners import TreeLearner
from badacost.boosting.reweighting import TRACE_OF_ERROR, Reweighting, Rule
from badacost.boosting.stagewise import FloatArray, Labels, Stage, StagewiseClassifier
from badacost.costs import zero_one_costs
from badacost.model_file import ModelFile
from badacost.tree.forest import Forest, Tree
from badacost.tree.threads import Threads
from badacost.validation import check_number, check_samples

_Terms = list[tuple[float, int]]  # logarithm of a coefficient, exponent
_ROUNDING = 1e-13  # more than the errors of a difference of logarithms
_MOST_ITERATIONS = 100
_LARGEST_EXPONENT = 700.0  # exp(709.8) is the largest float64


@dataclass(frozen=True, eq=False)
class SeparationRule(Rule):
    """Rule of the learners that separate `size` labels (answer 0) from the rest (answer 1).

    Attributes
    ----------
    margins : ndarray of shape (2, 2)
        See `Rule`; of :meth:`of`.
    size, n_classes : int
        Labels of the subset and of the problem, s and K.

    Examples
    --------
    >>> rule = SeparationRule.of(1, 3)
    >>> rule.margins
    array([[-0.5 ,  0.5 ],
           [ 0.25, -0.25]])
    >>> round(rule.step(np.array([[0.3, 0.1], [0.1, 0.5]])), 6)
    1.62186
    """

    size: int
    n_classes: int

    @classmethod
    def of(cls, size: int, n_classes: int) -> SeparationRule:
        """The rule for so many labels out of `n_classes`."""
        inside, outside = 1.0 / size, 1.0 / (n_classes - size)
        margins = np.array([[-inside, inside], [outside, -outside]]) / (n_classes - 1)
        return cls(margins, size, n_classes)

    def step(self, weight_sums: FloatArray) -> float:
        """Step of a learner with these shares of the weight ``[truth, answer]``.

        It is s (K-s) (K-1) log R, and not positive for a learner that is useless. R is the positive
        root of E1 (K-s) x^(2(K-s)) + E2 s x^K - s (A2-E2) x^(K-2s) - (K-s) (A1-E1), with the
        weights A of the two groups and the mistakes E in them.
        """
        (right1, wrong1), (wrong2, right2) = weight_sums.tolist()
        if not wrong1 and not wrong2:
            wrong1 = wrong2 = TRACE_OF_ERROR * (right1 + right2) / 2
            right1, right2 = right1 * (1 - TRACE_OF_ERROR), right2 * (1 - TRACE_OF_ERROR)
        if not right1 and not right2:
            return -math.inf
        s, rest = self.size, self.n_classes - self.size
        rising, falling = (
            [(math.log(mass) + math.log(n), n) for mass, n in masses if mass > 0]
            for masses in (((wrong1, rest), (wrong2, s)), ((right1, rest), (right2, s)))
        )
        return s * rest * (self.n_classes - 1) * _balance(rising, falling)


def _balance(rising: _Terms, falling: _Terms) -> float:
    """Return log x where the sums of c x^n and of c x^-n over two lists of terms are equal."""

    def excess(log_x: float) -> float:
        return _log_sum(rising, log_x) - _log_sum(falling, -log_x)

    start = excess(0.0)
    if abs(start) < _ROUNDING:
        return 0.0
    # The excess rises at twice the least exponent or faster; half of that leaves room for rounding.
    end = -start / min(n for _, n in rising + falling)
    return float(brentq(excess, 0.0, end, xtol=1e-300, rtol=4 * np.finfo(float).eps))


def _log_sum(terms: _Terms, log_x: float) -> float:
    """Return the logarithm of the sum of c x^n, which itself may be out of range."""
    logs = [log_c + n * log_x for log_c, n in terms]
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs))


def _separations(n_classes: int, largest: int) -> NDArray[np.bool_]:
    """Return the subsets of at most `largest` labels, (n, K), one of each with its complement."""
    subsets = [
        subset
        for size in range(1, largest + 1)
        for subset in combinations(range(n_classes), size)
        if 2 * size < n_classes or (2 * size == n_classes and 0 in subset)
    ]
    inside = np.zeros((len(subsets), n_classes), bool)
    for row, subset in zip(inside, subsets, strict=True):
        row[list(subset)] = True
    return inside


def _subset_of(tree: Tree) -> int:
    """Number of the subset that a tree of the forest separates."""
    return int(tree.value[0]) // 2


class Separations:
    """The additive models of all subsets, side by side: the `Descent` of PIBoost.

    A subset whose learner is perfect or useless is finished: later stages have no tree for it.

    Parameters
    ----------
    parts : list of Reweighting
        The binary problem of each subset.
    targets : list of ndarray of shape (n_samples,)
        Its classes: 0 for labels of the subset, 1 for the rest.
    table : ndarray of shape (2 n_subsets, K)
        Cost scores of the two answers of each subset.
    threads : Threads
        Threads to share the work among.
    """

    def __init__(
        self, parts: list[Reweighting], targets: list[Labels], table: FloatArray, threads: Threads
    ):
        self._parts, self._targets = parts, targets
        self._table, self._threads = table, threads
        self._open = list(range(len(parts)))
        self._any_useless = False

    @property
    def weights(self) -> FloatArray:
        """Mean of the weights of all subsets."""
        total = np.zeros(len(self._targets[0]))
        for part in self._parts:
            total += part.weights
        return total / total.sum()

    def fit(self, n_done: int) -> Stage:
        """Fit a tree for each subset that is not finished."""
        fitted = {i: self._parts[i].fit(n_done) for i in self._open}
        useful = {i: stage for i, stage in fitted.items() if stage.reason != "useless"}
        perfect = all(stage.reason == "perfect" for stage in fitted.values())
        reason = None  # as long as there are trees worth keeping: those of a useless stage are not
        if not useful:
            reason = "useless"
        elif perfect and not self._any_useless:
            reason = "perfect"
        kept = useful or fitted
        return Stage(
            [replace(s.models[0], value=s.models[0].value + 2 * i) for i, s in kept.items()],
            [stage.steps[0] for stage in kept.values()],
            [stage.labels[0] for stage in kept.values()],
            reason,
        )

    def recall(self, models: list[Any], steps: list[float]) -> Stage:
        """The stage of an earlier fit, on the samples of this one."""
        labels = [self._parts[_subset_of(tree)].recall([tree], []).labels[0] % 2 for tree in models]
        return Stage(models, steps, labels)

    def add(self, stage: Stage) -> None:
        """Change the weights of the subsets that the stage has trees for; others are finished."""
        self._any_useless |= len(stage.models) < len(self._open)
        self._open = []
        for tree, step, labels in zip(stage.models, stage.steps, stage.labels, strict=True):
            i = _subset_of(tree)
            self._parts[i].add(Stage([tree], [step], [labels]))
            if (labels != self._targets[i]).any():
                self._open.append(i)

    def training_scores(self, stage: Stage, rows: Labels | slice) -> FloatArray:
        """Cost scores of the answers to training samples."""
        scores = np.zeros((len(self._targets[0][rows]), self._table.shape[1]))
        for tree, step, labels in zip(stage.models, stage.steps, stage.labels, strict=True):
            i = _subset_of(tree)
            scores += np.take(step * self._table[2 * i : 2 * i + 2], labels[rows], axis=0)
        return scores

    def scores(self, stage: Stage, X: NDArray[np.floating]) -> FloatArray:
        """Cost scores of the answers to other samples."""
        forest = Forest.from_trees(stage.models, np.array(stage.steps), self._table, X.shape[1])
        return forest.accumulate(X, threads=self._threads)


def _has_probabilities(model: PIBoostClassifier) -> bool:
    """Whether the scores determine probabilities; an error where they do not."""
    inside = getattr(model, "subsets_", None)
    if model.subsets != 1 if inside is None else (inside.sum(axis=1) > 1).any():
        raise AttributeError(
            "predict_proba needs subsets=1: calibrate decision_function otherwise, for example "
            "with sklearn.calibration.CalibratedClassifierCV."
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class PIBoostClassifier(StagewiseClassifier):
    """Boosting of binary trees, each of which separates a subset of the classes from the rest.

    PIBoost (Partially Informative Boosting) [1]_ boosts one binary problem for each single label,
    and with ``subsets=2`` for each pair of labels as well. The two sides of a problem differ in
    size, and so do the margins of their mistakes. The answers are vectors over the classes, which
    are summed over all subsets; the largest sum wins.

    A round fits a tree for each subset: K of them with ``subsets=1``, K (K + 1) / 2 with
    ``subsets=2``, where a round of `BAdaCostClassifier` fits one. There are probabilities with
    ``subsets=1`` only; otherwise `decision_function` can be calibrated. PIBoost takes no cost
    matrix, a mistake is a mistake: `BAdaCostClassifier` is its generalisation to costs.

    Parameters
    ----------
    subsets : {1, 2}, default=1
        Most labels in a subset. A subset and its complement are one problem, boosted once.
    learning_rate : float, default=1.0
        Factor of every step. The published algorithm has none; on held-out letters, with 4 levels
        and 100 rounds, the error was 0.09 at a rate of 1 and 0.15 at 0.1.
    n_estimators, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, max_features,
    criterion, binning, max_bins, subsample, early_stopping, validation_fraction, n_iter_no_change,
    tol, warm_start, callbacks, n_jobs, random_state, verbose
        See `BAdaCostClassifier`. A callback learns the mean of the sample weights of all subsets,
        and the classes that the trees of its round decide for together.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        One for each mistake.
    subsets_ : ndarray of shape (n_subsets, K)
        Which classes are in each subset.
    forest_ : badacost.tree.forest.Forest
        The trees of all subsets, round by round. Leaves of the i-th subset refer to row 2 i of its
        table for the labels in the subset, and to row 2 i + 1 for the rest.
    estimator_weights_ : ndarray of shape (n_trees,)
        Steps, learning rate included.
    n_estimators_ : int
        Number of rounds kept. A subset has no tree in the rounds after a perfect one, or since it
        had one no better than chance.
    train_score_ : ndarray of shape (n_estimators_,)
        Error rate after each round on at most 5 000 training samples.
    validation_score_ : ndarray of shape (n_estimators_,) or (0,)
        The same on validation data.
    stop_reason_ : {"perfect", "useless", "early stopping", "callback"} or None
        Why the fit ended before `n_estimators` rounds: all subsets have a learner without
        mistakes, those that have not cannot go on, or on request.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    References
    ----------
    .. [1] A. Fernandez-Baldera, L. Baumela, "Multi-class boosting with asymmetric binary
       weak-learners", Pattern Recognition 47(5), 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import PIBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PIBoostClassifier(n_estimators=20, max_depth=2).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.subsets_
    array([[ True, False, False],
           [False,  True, False],
           [False, False,  True]])
    """

    subsets: int = 1
    learning_rate: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("subsets", self.subsets, Integral, low=1, high=2)

    def _prepare(self) -> None:
        self.cost_matrix_ = zero_one_costs(len(self.classes_))
        self._derive()

    def _derive(self) -> None:
        self.subsets_ = _separations(len(self.classes_), self.subsets)

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        if not np.array_equal(_separations(len(self.classes_), self.subsets), self.subsets_):
            raise ValueError("With warm_start=True subsets must stay as it was.")
        super()._check_same_task(classes)

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        if not np.array_equal(self.cost_matrix_, zero_one_costs(len(self.classes_))):
            raise ValueError("PIBoost has no costs but one for each mistake")

    @property
    def _table(self) -> FloatArray:
        size = self.subsets_.sum(axis=1, keepdims=True)
        rest = len(self.classes_) - size
        inside = np.where(self.subsets_, -1.0 / size, 1.0 / rest)  # costs: less is better
        return np.stack([inside, -inside], axis=1).reshape(-1, len(self.classes_))

    def _start(
        self, X: NDArray[np.floating], y: Labels, weight: FloatArray, threads: Threads
    ) -> Separations:
        n_classes = len(self.classes_)
        learner = TreeLearner.of(self, X, y, n_classes, weight, threads)
        targets = [(~inside).astype(np.uint8)[y] for inside in self.subsets_]
        seeds = np.random.SeedSequence(self._seed).generate_state(len(targets))
        parts = [
            Reweighting(
                learner.relabelled(target, 2),
                target,
                weight,
                SeparationRule.of(int(inside.sum()), n_classes),
                learning_rate=self.learning_rate,
                subsample=self.subsample,
                seed=int(seed),
                random=self.subsample < 1.0 or self.max_features is not None,
            )
            for inside, target, seed in zip(self.subsets_, targets, seeds, strict=True)
        ]
        return Separations(parts, targets, self._table, threads)

    def _posterior(self, scores: FloatArray) -> FloatArray:
        """P(l | x) from the cost scores of single labels."""
        n_classes = len(self.classes_)
        # With two classes, one subset stands for both.
        logits = -scores * (2.0 if n_classes == 2 else 1.0 / (n_classes - 1))
        odds = expit(logits + _common_shift(logits)[:, np.newaxis])
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, from the minimisers of the losses; with ``subsets=1`` only.

        Where all losses are least, ``P(l | x) = 1 / (1 + exp(c_l(x) / (K - 1) - t))`` with the one
        t for which these sum to one, for more than two classes; for two, it is the logistic
        function of the difference of the scores. Boosted scores are over-confident when many
        rounds fit noise: calibrate (``sklearn.calibration``) if probabilities matter.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.
        """
        return self._posterior(self._scores(check_samples(self, X)))

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `predict_proba` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield self._posterior(scores)


def _common_shift(logits: FloatArray) -> FloatArray:
    """Return the t (n,) for which the logistic functions of ``logits + t`` (n, K) sum to one."""
    ranked = -np.sort(-logits, axis=1)
    top = ranked[:, 0]
    others = np.maximum(ranked[:, 1:], ranked[:, :1] - _LARGEST_EXPONENT)
    # Bounds, since the first is at least 1/K, and the first two together at most one.
    low, high = -top - np.log(logits.shape[1]), -(top + others[:, 0]) / 2
    t = high
    for _ in range(_MOST_ITERATIONS):  # of Newton's method, kept inside the bounds
        odds = expit(others + t[:, np.newaxis])
        total = odds.sum(axis=1)
        excess = np.log(total) - log_expit(-top - t)
        slope = (odds * (1.0 - odds)).sum(axis=1) / total + expit(top + t)
        low, high = np.where(excess < 0, t, low), np.where(excess < 0, high, t)
        newton = t - excess / slope
        before, t = t, np.where((low <= newton) & (newton <= high), newton, (low + high) / 2)
        if (np.abs(t - before) <= 1e-14 * np.maximum(1.0, np.abs(t))).all():
            break
    return t
