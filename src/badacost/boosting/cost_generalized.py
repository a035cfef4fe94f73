"""Cost-Generalized AdaBoost: costs in the weights that AdaBoost begins with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from badacost.arrays import FloatArray, Labels
from badacost.boosting.cs_adaboost import BinaryCostClassifier
from badacost.boosting.reweighting import CostBlindRule, Rule
from badacost.persistence import saved_model


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class CostGeneralizedAdaBoostClassifier(BinaryCostClassifier):
    """Cost-Generalized AdaBoost: plain AdaBoost from weights in proportion to the costs.

    Two classes; the first weights are the prices of missing each class, the rest is AdaBoost [1]_.
    All of AdaBoost's guarantees hold, for errors weighted by cost. Later rounds know nothing
    of the costs, so that on separable data their effect fades.

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
    classes_, cost_matrix_, charged_costs_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`.

    References
    ----------
    .. [1] I. Landesa-Vazquez, J. L. Alba-Castro, "Shedding light on the asymmetric learning
       capability of AdaBoost", Pattern Recognition Letters 33(3), 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from badacost import CostGeneralizedAdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> costs = [[0, 5], [1, 0]]  # C[truth, prediction]: a missed cancer, class 0, costs five
    >>> CostGeneralizedAdaBoostClassifier(costs, n_estimators=20).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def _rule(self) -> Rule:
        return CostBlindRule(0.5 - np.eye(2))

    def _initial_weights(self, y: Labels, weight: FloatArray) -> FloatArray:
        shares = weight / weight.max() * (self._prices / self._prices.max())[y]
        return np.maximum(shares, np.finfo(np.float64).tiny)  # none may vanish
