"""SAMME: boosting of multi-class learners that are only better than chance, without costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from badacost.boosting.adaboost_m1 import CostBlindClassifier
from badacost.boosting.reweighting import CostBlindRule, Rule
from badacost.persistence import saved_model


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class SAMMEClassifier(CostBlindClassifier):
    """SAMME: AdaBoost for multi-class learners that are only better than chance.

    Stage-wise additive modelling with the multi-class exponential loss exp(-y . f / K) [1]_. A
    learner counts as long as its weighted error is below (K-1)/K. It is BAdaCost with costs of
    1 / (K (K-1)), and it is blind to costs: put `MinimumCostClassifier` on top, or use
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
    classes_, cost_matrix_, charged_costs_, forest_, estimators_, estimator_weights_, n_estimators_,
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
    >>> from badacost import SAMMEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SAMMEClassifier(n_estimators=20, max_depth=1).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    def _rule(self) -> Rule:
        n_others = len(self.classes_) - 1
        right = np.eye(n_others + 1, dtype=bool)
        return CostBlindRule(np.where(right, -1.0 / n_others, 1.0 / n_others**2))
