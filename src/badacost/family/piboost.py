"""PIBoost: multi-class boosting by binary learners that separate groups of classes.

Every subset of labels has an additive model of binary trees and sample weights of its own. A tree
separates the classes in its subset from the others; the votes of all subsets, as
vectors over the classes, add up to a decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels, Mask
from badacost._utils.parallel import exact_sum
from badacost._utils.validation import check_number
from badacost.boosting.reweighting import Criterion, Reweighting, Rule, TreeLearner
from badacost.boosting.stagewise import Stage
from badacost.classifiers.base import StagewiseClassifier
from badacost.classifiers.posterior import PosteriorMixin
from badacost.classifiers.training_data import Task
from badacost.io.model_file import ModelFile, saved_model

_N_NEWTON_STEPS = 7  # one more than double precision needs
_LARGEST_EXPONENT = 700.0  # exp(709.8) is the largest float64


def separation_rule(size: int, n_classes: int) -> Rule:
    """Return the rule of learners that separate `size` labels (output 0) from the rest (output 1).

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


def _separations(n_classes: int, largest: int) -> Iterator[Mask]:
    """Yield the subsets of at most `largest` labels, as masks (K,), without their complements."""
    for size in range(1, largest + 1):
        for subset in combinations(range(n_classes), size):
            if 2 * size < n_classes or (2 * size == n_classes and 0 in subset):
                yield np.isin(np.arange(n_classes), subset)


class Separations:
    """The additive models of all subsets, side by side: the `Descent` of PIBoost.

    Each part boosts the binary problem of one subset, whose targets are 0 for its labels and 1 for
    the rest; `table` has the scores of the two outputs of each subset. A subset whose learner is
    perfect or useless is finished: later stages have no tree for it.
    """

    def __init__(self, parts: list[Reweighting], targets: list[Labels], table: FloatArray):
        self._parts, self._targets, self._table = parts, targets, table
        self._open = list(range(len(parts)))
        self._any_useless = False

    @property
    def weights(self) -> FloatArray:
        """Mean of the weights of all subsets."""
        total: Any = sum(part.weights for part in self._parts)
        return np.asarray(total / exact_sum(total))

    def fit(self, n_done: int) -> Stage:
        """Fit a tree for each subset that is not finished."""
        fitted = {i: self._parts[i].fit(n_done) for i in self._open}
        useful = {i: stage for i, stage in fitted.items() if stage.reason != "useless"}
        perfect = all(stage.reason == "perfect" for stage in fitted.values())
        reason = "perfect" if perfect and not self._any_useless else None
        trees, steps, rows = [], [], []
        for i, stage in (useful or fitted).items():
            (tree,) = stage.models
            trees.append(replace(tree, value=tree.value + 2 * i))
            steps += stage.steps
            rows.append(stage.rows[0].astype(np.int32) + 2 * i)
        return Stage(trees, steps, rows, self._table, reason if useful else "useless")

    def advance(self, stage: Stage) -> None:
        """Change the weights of the subsets that the stage has trees for; others are finished."""
        self._any_useless |= len(stage.models) < len(self._open)
        self._open = []
        for step, rows in zip(stage.steps, stage.rows, strict=True):
            i = int(rows[0]) // 2  # the subset that the tree separates
            labels = rows - 2 * i
            self._parts[i].advance(replace(stage, steps=[step], rows=[labels]))
            if (labels != self._targets[i]).any():
                self._open.append(i)


def _logistic(x: Any) -> Any:
    # The operator Sigmoid of ONNX is zero below -37 in some runtimes.
    return 1.0 / (1.0 + np.exp(np.minimum(-x, _LARGEST_EXPONENT)))


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class PIBoostClassifier(PosteriorMixin, StagewiseClassifier):
    """Boosting of binary trees, each of which separates a subset of the classes from the rest.

    PIBoost (Partially Informative Boosting) [1]_ boosts one binary problem for each single label,
    and with ``subsets=2`` for each pair of labels as well. The two sides of a problem differ in
    size, and so do the margins of their mistakes. Outputs are vectors over the classes, which
    are summed over all subsets; the largest sum wins.

    A round fits a tree for each subset: K of them with ``subsets=1``, K (K + 1) / 2 with
    ``subsets=2``, where a round of `BAdaCostClassifier` fits one. There are probabilities with
    ``subsets=1`` only; otherwise `decision_function` can be calibrated. PIBoost takes no cost
    matrix, a mistake is a mistake: `BAdaCostClassifier` is its generalisation to costs.

    Where losses are minimal, ``P(l | x) = 1 / (1 + exp(c_l(x) / (K - 1) - t))`` with the one t for
    which these sum to one, for more than two classes; for two, it is the logistic function of the
    difference of the scores.

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
        See `BAdaCostClassifier`. A callback gets the mean of the sample weights of all subsets,
        and the classes that the trees of its round decide for together. The CPU is the one `device`
        for fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_, regret_matrix_ : ndarray of shape (K, K)
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
        Error rate after each round on validation data.
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
    >>> from badacost.family import PIBoostClassifier
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

    def _derive(self) -> None:
        self.subsets_ = np.array([*_separations(len(self.classes_), self.subsets)])

    def _restore(self, model: ModelFile) -> None:
        n_rows = len(self.forest_.table)  # a file may have any number of classes
        subsets = islice(_separations(len(self.classes_), self.subsets), n_rows)
        if n_rows != 2 * sum(1 for _ in subsets):
            raise ValueError("its trees were not grown for its classes and parameters")
        super()._restore(model)

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        if len([*_separations(len(self.classes_), self.subsets)]) != len(self.subsets_):
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
        seeds = np.random.SeedSequence(self._seed).generate_state(len(targets)).tolist()
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "subsample": self.subsample,
            "random": self.subsample < 1.0 or grower.growth.n_drawn is not None,
        }
        parts = []
        for inside, target, seed in zip(self.subsets_, targets, seeds, strict=True):
            learner = TreeLearner(grower, target, 2, self.criterion)
            rule = separation_rule(int(inside.sum()), n_classes)
            parts.append(Reweighting(learner, target, task.weight, rule, seed=seed, **settings))
        return Separations(parts, targets, self._table)

    def _posterior(self, scores: FloatArray) -> FloatArray:
        """Return P(l | x), (n, K), from cost scores of single labels.

        Probabilities are logistic functions of ``logits + t`` with the one t for which they sum to
        one. Relative to the largest logit, the functions of the m = K - 1 others sum to S(t), and
        the equation is ``S(t) = logistic(-t)``. As a function of t, ``log(S / (m - S))`` is nearly
        linear, so that Newton's method needs no bounds, and at most six steps for double precision.
        """
        m = len(self.classes_) - 1.0
        scale = 2.0 if m == 1.0 else 1.0 / m  # with two classes, one subset stands for both
        ranked = np.sort(scores, axis=1)
        lowest, others = ranked[:, :1], ranked[:, 1:]
        below = np.maximum((lowest - others) * scale, -_LARGEST_EXPONENT)
        t: Any = -np.log(m + 1.0)
        for _ in range(_N_NEWTON_STEPS):
            odds = _logistic(below + t)
            total = odds.sum(axis=1, keepdims=True)
            slope = (odds * (1.0 - odds)).sum(axis=1, keepdims=True)
            rest = m + (m - 1.0) * np.exp(-t)
            excess = np.log(total / (m - total) * rest) + t
            t = t - excess / (m * slope / (total * (m - total)) + m / rest)
        odds = _logistic((lowest - scores) * scale + t)
        probabilities: FloatArray = odds / odds.sum(axis=1, keepdims=True)
        return probabilities

    def _has_posterior(self) -> bool:
        fitted = hasattr(self, "subsets_")
        if (self.subsets_.sum(axis=1).max() if fitted else self.subsets) != 1:
            raise AttributeError(
                "predict_proba needs subsets=1: calibrate decision_function otherwise, for example "
                "with sklearn.calibration.CalibratedClassifierCV."
            )
        return True
