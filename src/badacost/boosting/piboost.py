"""PIBoost: multi-class boosting by binary learners that separate groups of classes.

Every subset of labels has an additive model of binary trees and sample weights of its own. A tree
knows only whether a class is among the labels of its subset or not; the votes of all subsets, as
vectors over the classes, add up to a decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.utils.metaestimators import available_if

from badacost.arrays import FloatArray, Labels, Mask
from badacost.boosting.learners import Criterion, TreeLearner
from badacost.boosting.reweighting import Reweighting, Rule
from badacost.boosting.rounds import Stage
from badacost.boosting.stagewise import StagewiseClassifier, Task
from badacost.exact_sums import exact_sum
from badacost.model_file import ModelFile
from badacost.persistence import saved_model
from badacost.tree.forest import Tree
from badacost.validation import check_number, check_samples

_MAX_ITERATIONS = 100
_LARGEST_EXPONENT = 700.0  # exp(709.8) is the largest float64


def separation_rule(size: int, n_classes: int) -> Rule:
    """Rule of the learners that separate `size` labels (answer 0) from the rest (answer 1).

    With s = `size` of K labels, its step is s (K-s) (K-1) log R. R is the positive root of
    E1 (K-s) x^(2(K-s)) + E2 s x^K - s (A2-E2) x^(K-2s) - (K-s) (A1-E1), with the weights A of the
    two groups and the mistakes E in them.

    Examples
    --------
    >>> rule = separation_rule(1, 3)
    >>> rule.margins
    array([[-0.5 ,  0.5 ],
           [ 0.25, -0.25]])
    >>> round(rule.step(np.array([[0.3, 0.1], [0.1, 0.5]])), 6)
    1.62186
    """
    inside, outside = 1.0 / size, 1.0 / (n_classes - size)
    return Rule(np.array([[-inside, inside], [outside, -outside]]) / (n_classes - 1))


def _separations(n_classes: int, largest: int) -> Mask:
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


def _n_separations(n_classes: int, largest: int) -> int:
    """Return the number of rows of `_separations`, which grows with the square of the classes."""
    sizes = range(1, min(largest, n_classes // 2) + 1)
    return sum(comb(n_classes, size) // (1 + (2 * size == n_classes)) for size in sizes)


def _subset_of(tree: Tree) -> int:
    """Number of the subset that a tree of the forest separates."""
    return int(tree.value[0]) // 2


class Separations:
    """The additive models of all subsets, side by side: the `Descent` of PIBoost.

    Each part boosts the binary problem of one subset, whose targets are 0 for its labels and 1 for
    the rest; `table` has the scores of the two answers of each subset. A subset whose learner is
    perfect or useless is finished: later stages have no tree for it.
    """

    def __init__(self, parts: list[Reweighting], targets: list[Labels], table: FloatArray):
        self._parts, self._targets, self._table = parts, targets, table
        self._open = list(range(len(parts)))
        self._any_useless = False

    @property
    def weights(self) -> FloatArray:
        """Mean of the weights of all subsets."""
        total = np.zeros(len(self._targets[0]))
        for part in self._parts:
            total += part.weights
        return total / exact_sum(total)

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
        trees = [replace(s.models[0], value=s.models[0].value + 2 * i) for i, s in kept.items()]
        steps = [stage.steps[0] for stage in kept.values()]
        rows = [stage.rows[0].astype(np.int32) + 2 * i for i, stage in kept.items()]
        return Stage(trees, steps, rows, self._table, reason)

    def advance(self, stage: Stage) -> None:
        """Change the weights of the subsets that the stage has trees for; others are finished."""
        self._any_useless |= len(stage.models) < len(self._open)
        self._open = []
        for tree, step, rows in zip(stage.models, stage.steps, stage.rows, strict=True):
            i = _subset_of(tree)
            labels = rows - 2 * i
            self._parts[i].advance(replace(stage, models=[tree], steps=[step], rows=[labels]))
            if (labels != self._targets[i]).any():
                self._open.append(i)


def _has_probabilities(model: PIBoostClassifier) -> bool:
    """Whether the scores determine probabilities; an error where they do not."""
    inside = getattr(model, "subsets_", None)
    if model.subsets != 1 if inside is None else (inside.sum(axis=1) > 1).any():
        raise AttributeError(
            "predict_proba needs subsets=1: calibrate decision_function otherwise, for example "
            "with sklearn.calibration.CalibratedClassifierCV."
        )
    return True


@saved_model
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
        Maximum number of labels in a subset. A subset and its complement are one problem, boosted
        once.
    learning_rate : float, default=1.0
        Factor of every step. The published algorithm has none; on held-out letters, with 4 levels
        and 100 rounds, the error was 0.09 at a rate of 1 and 0.15 at 0.1.
    n_estimators, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, max_features,
    criterion, binning, max_bins, categorical_features, subsample, early_stopping,
    validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs, device,
    random_state, verbose
        See `BAdaCostClassifier`. A callback learns the mean of the sample weights of all subsets,
        and the classes that the trees of its round decide for together. The CPU is the one `device`
        for fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_, charged_costs_ : ndarray of shape (K, K)
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
    categories_ : dict
        Known categories of each categorical feature, by its name or position.
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

    criterion: Criterion = "gini"
    subsets: int = 1
    learning_rate: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("subsets", self.subsets, Integral, low=1, high=2)

    def _prepare(self) -> None:
        self._set_costs(None)
        self._derive()

    def _derive(self) -> None:
        self.subsets_ = _separations(len(self.classes_), self.subsets)

    def _restore(self, model: ModelFile) -> None:
        self._check_parameters()
        n_subsets = _n_separations(len(self.classes_), self.subsets)
        if len(self.forest_.table) != 2 * n_subsets:
            raise ValueError("its trees were not grown for its classes and parameters")
        super()._restore(model)

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        if not np.array_equal(_separations(len(self.classes_), self.subsets), self.subsets_):
            raise ValueError("With warm_start=True subsets must stay as it was.")
        super()._check_same_task(classes)

    @property
    def _table(self) -> FloatArray:
        size = self.subsets_.sum(axis=1, keepdims=True)
        rest = len(self.classes_) - size
        inside = np.where(self.subsets_, -1.0 / size, 1.0 / rest)  # costs: less is better
        return np.stack([inside, -inside], axis=1).reshape(-1, len(self.classes_))

    def _start(self, task: Task) -> Separations:
        n_classes = len(self.classes_)
        grower = task.tree_learner(self, n_classes).grower
        targets = [(~inside).astype(np.uint8)[task.y] for inside in self.subsets_]
        seeds = np.random.SeedSequence(self._seed).generate_state(len(targets))
        parts = [
            Reweighting(
                TreeLearner(grower, target, 2, self.criterion),
                target,
                task.weight,
                separation_rule(int(inside.sum()), n_classes),
                learning_rate=self.learning_rate,
                subsample=self.subsample,
                seed=int(seed),
                random=self.subsample < 1.0 or grower.growth.n_drawn is not None,
            )
            for inside, target, seed in zip(self.subsets_, targets, seeds, strict=True)
        ]
        return Separations(parts, targets, self._table)

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

        Where losses are minimal, ``P(l | x) = 1 / (1 + exp(c_l(x) / (K - 1) - t))`` with the one
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
    for _ in range(_MAX_ITERATIONS):  # of Newton's method, kept inside the bounds
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
