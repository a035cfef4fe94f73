"""AdaC2.M1: the first multi-class boosting with costs, one cost for each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray
from badacost.boosting.reweighting import CostBlindRule, ReweightingClassifier, Rule
from badacost.persistence import saved_model


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
    cost [1]_. The structure of the matrix is lost: only which class was missed counts, not for what
    it was taken. Since costs enter again in every round, cheap classes fade out of the weights; and
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
    classes_, cost_matrix_, charged_costs_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`. Votes are not probabilities: there is no predict_proba.

    References
    ----------
    .. [1] Y. Sun, M. S. Kamel, Y. Wang, "Boosting for learning multiple classes with imbalanced
       class distribution", ICDM 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import AdaC2M1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> AdaC2M1Classifier(costs, n_estimators=20, max_depth=2).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    cost_matrix: Any = field(default=None, kw_only=False)

    def _prepare(self) -> None:
        self._set_costs(self.cost_matrix)
        self._derive()

    def _rule(self) -> Rule:
        class_costs = self.cost_matrix_.sum(axis=1)
        shares = np.maximum(class_costs / class_costs.max(), np.finfo(np.float64).tiny)
        return _AdaC2Rule(0.5 - np.eye(len(shares)), shares, float(self.learning_rate))

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        rule: Any = self._boosting_rule
        if float(self.learning_rate) != rule.rate:
            raise ValueError(
                f"With warm_start=True learning_rate must stay {rule.rate:g}: the costs in the "
                "weights of earlier rounds follow it."
            )
