"""Boosters that differ from BAdaCost in their rule only: how mistakes are weighted.

SAMME and AdaBoost.M1 take no costs, AdaC2.M1 has one for each class, CS-AdaBoost and
Cost-Generalized AdaBoost have one for each of two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels
from badacost.boosting.reweighting import CostBlindRule, Rule
from badacost.classifiers.posterior import PosteriorMixin
from badacost.classifiers.reweighting import ReweightingClassifier
from badacost.costs import cost_star
from badacost.io.model_file import saved_model


def _adaboost_margins(n_classes: int) -> FloatArray:
    """Return margins, (K, K), for which the step is the logarithm of the odds of being right."""
    return 0.5 - np.eye(n_classes)


@dataclass(eq=False, repr=False, kw_only=True)
class _BinaryCostClassifier(PosteriorMixin, ReweightingClassifier):
    """Base of the classifiers for two classes, with a cost of missing each of them."""

    cost_matrix: Any = field(default=None, kw_only=False)

    def _prepare(self) -> None:
        self._check_two_classes()
        super()._prepare()

    def _derive(self) -> None:
        self._check_two_classes()  # of a file
        super()._derive()

    def _check_two_classes(self) -> None:
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{type(self).__name__} takes 2 classes, y has {len(self.classes_)}; use "
                "BAdaCostClassifier, which generalizes it."
            )

    def _log_prior(self) -> FloatArray:
        # The scores are those of odds times costs.
        return -np.log(self.regret_matrix_.sum(axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@saved_model
class SAMMEClassifier(PosteriorMixin, ReweightingClassifier):
    """SAMME: AdaBoost for multi-class learners that are only better than chance.

    Stage-wise additive modelling with the multi-class exponential loss exp(-y . f / K) [1]_. A
    learner counts as long as its weighted error is below (K-1)/K. It is BAdaCost with costs of
    1 / (K (K-1)), and it takes no costs: put `MinimumCostClassifier` on top, or use
    `BAdaCostClassifier`.

    Parameters
    ----------
    estimator, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs,
    device, random_state, verbose
        See `BAdaCostClassifier`.

    Attributes
    ----------
    classes_, cost_matrix_, regret_matrix_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Costs are 0|1; steps are those of the paper's corollary 1,
        (K-1)^2 / K times the weights of the original.

    References
    ----------
    .. [1] J. Zhu, H. Zou, S. Rosset, T. Hastie, "Multi-class AdaBoost", Statistics and Its
       Interface 2(3), 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost.family import SAMMEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SAMMEClassifier(n_estimators=20, max_depth=1).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    def _rule(self) -> Rule:
        n_others = len(self.classes_) - 1
        right = np.eye(n_others + 1, dtype=bool)
        return CostBlindRule(np.where(right, -1.0 / n_others, 1.0 / n_others**2))


@saved_model
class AdaBoostM1Classifier(PosteriorMixin, ReweightingClassifier):
    """AdaBoost.M1: AdaBoost's own schedule with multi-class learners; with two classes, AdaBoost.

    Every learner votes with the logarithm of its odds of being right [1]_. It has to be right
    on more than half of the weight, which is hard for a weak learner where there are many
    classes: the fit then ends early, with ``stop_reason_ == "useless"``, and `SAMMEClassifier`
    is the better choice. It takes no costs.

    Parameters
    ----------
    estimator, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs,
    device, random_state, verbose
        See `BAdaCostClassifier`.

    Attributes
    ----------
    classes_, cost_matrix_, regret_matrix_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Costs are 0|1. Probabilities are exact in the limit for two
        classes; for more they are the softmax of the votes, which no loss backs.

    References
    ----------
    .. [1] Y. Freund, R. E. Schapire, "Experiments with a new boosting algorithm", ICML 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost.family import AdaBoostM1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostM1Classifier(n_estimators=20, max_depth=2).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    def _rule(self) -> Rule:
        return CostBlindRule(_adaboost_margins(len(self.classes_)))


@dataclass(frozen=True, eq=False)
class _AdaC2Rule(CostBlindRule):
    """Every round multiplies weights by the class costs, to the power of the rate, once more."""

    class_costs: FloatArray
    rate: float

    def step(self, weight_sums: FloatArray) -> float:
        return super().step(self.class_costs[:, np.newaxis] * weight_sums)

    def log_factors(self, step: float) -> FloatArray:
        return super().log_factors(step) + self.rate * np.log(self.class_costs)[:, np.newaxis]


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class AdaC2M1Classifier(ReweightingClassifier):
    """AdaC2.M1: the cost-sensitive weights of AdaC2 in the schedule of AdaBoost.M1.

    Each class has one cost, the sum of its row of the cost matrix; every round multiplies the
    weights of its samples by it, and votes are the logarithm of right over wrong, weighted by
    cost [1]_. The structure of the matrix is lost: only the true class counts, not the predicted
    one. Since costs enter again in every round, the weights of cheap classes tend to zero; and
    like AdaBoost.M1 it needs learners that are right on more than half of the samples, weighted
    by cost, else the fit ends early with ``stop_reason_ == "useless"``.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth, as in `BAdaCostClassifier`. Their
        scale has no effect.
    estimator, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs,
    device, random_state, verbose
        See `BAdaCostClassifier`.
        The learning rate shrinks the costs in each round as well: weights are multiplied by
        cost to the power of the rate. At one it is the published algorithm.

    Attributes
    ----------
    classes_, cost_matrix_, regret_matrix_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Votes are not probabilities: there is no predict_proba.

    References
    ----------
    .. [1] Y. Sun, M. S. Kamel, Y. Wang, "Boosting for learning multiple classes with imbalanced
       class distribution", ICDM 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost.family import AdaC2M1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> AdaC2M1Classifier(costs, n_estimators=20, max_depth=2).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    cost_matrix: Any = field(default=None, kw_only=False)

    def _rule(self) -> Rule:
        class_costs = self.regret_matrix_.sum(axis=1)
        relative = np.maximum(class_costs / class_costs.max(), np.finfo(np.float64).tiny)
        margins = _adaboost_margins(len(relative))
        return _AdaC2Rule(margins, relative, float(self.learning_rate))

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        rule: Any = self._boosting_rule
        if float(self.learning_rate) != rule.rate:
            raise ValueError(
                f"With warm_start=True learning_rate must stay {rule.rate:g}: the costs in the "
                "weights of earlier rounds follow it."
            )


@saved_model
class CSAdaBoostClassifier(_BinaryCostClassifier):
    """CS-AdaBoost: AdaBoost for two classes whose costs are in the exponents of the loss.

    It minimises ``exp(-C_1 F)`` on the first class and ``exp(C_2 F)`` on the second [1]_, with C_1
    and C_2 the costs of missing them. The original searches a pool for the best pair of learner and
    step; here a tree is fitted to the costs that a step of one would make, then the step is the
    exact solution of the cosh equation. It is `BAdaCostClassifier` for two classes. Strong costs
    make large exponents, so that outliers of the expensive class draw nearly all of the weight.

    Parameters
    ----------
    cost_matrix : array-like of shape (2, 2), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth, as in `BAdaCostClassifier`. The larger cost is
        scaled to one: only their ratio counts.
    estimator, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs,
    device, random_state, verbose
        See `BAdaCostClassifier`.

    Attributes
    ----------
    classes_, cost_matrix_, regret_matrix_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`.

    References
    ----------
    .. [1] H. Masnadi-Shirazi, N. Vasconcelos, "Cost-sensitive boosting", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 33(2), 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from badacost.family import CSAdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> costs = [[0, 5], [1, 0]]  # C[truth, prediction]: a missed cancer, class 0, costs five
    >>> CSAdaBoostClassifier(costs, n_estimators=20).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def _rule(self) -> Rule:
        return Rule(cost_star(self.regret_matrix_ / self.regret_matrix_.max()))


@saved_model
class CostGeneralizedAdaBoostClassifier(_BinaryCostClassifier):
    """Cost-Generalized AdaBoost: plain AdaBoost from weights in proportion to the costs.

    Two classes; the first weights are the costs of missing each class, the rest is AdaBoost [1]_.
    All of AdaBoost's guarantees hold, for errors weighted by cost. Later rounds do not use the
    costs, so that on separable data their effect decreases.

    Parameters
    ----------
    cost_matrix : array-like of shape (2, 2), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth, as in `BAdaCostClassifier`. Only the ratio of
        the two costs counts.
    estimator, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs,
    device, random_state, verbose
        See `BAdaCostClassifier`.

    Attributes
    ----------
    classes_, cost_matrix_, regret_matrix_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`.

    References
    ----------
    .. [1] I. Landesa-Vazquez, J. L. Alba-Castro, "Shedding light on the asymmetric learning
       capability of AdaBoost", Pattern Recognition Letters 33(3), 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from badacost.family import CostGeneralizedAdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> costs = [[0, 5], [1, 0]]  # C[truth, prediction]: a missed cancer, class 0, costs five
    >>> CostGeneralizedAdaBoostClassifier(costs, n_estimators=20).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def _rule(self) -> Rule:
        return CostBlindRule(_adaboost_margins(2))

    def _initial_weights(self, y: Labels, weight: FloatArray) -> FloatArray:
        class_costs = self.regret_matrix_.sum(axis=1)
        relative = weight / weight.max() * (class_costs / class_costs.max())[y]
        return np.maximum(relative, np.finfo(np.float64).tiny)  # none may vanish
