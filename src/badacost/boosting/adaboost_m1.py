"""AdaBoost.M1: AdaBoost's own schedule with multi-class learners, without costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from badacost.arrays import FloatArray
from badacost.boosting.reweighting import (
    CostBlindRule,
    PosteriorMixin,
    ReweightingClassifier,
    Rule,
)
from badacost.persistence import saved_model


class CostBlindClassifier(PosteriorMixin, ReweightingClassifier):
    """Base of the classifiers to which every mistake has the price one."""

    def _prepare(self) -> None:
        self._set_costs(None)
        self._derive()

    def _log_prior(self) -> FloatArray:
        return np.zeros(len(self.classes_))


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class AdaBoostM1Classifier(CostBlindClassifier):
    """AdaBoost.M1: AdaBoost's own schedule with multi-class learners; with two classes, AdaBoost.

    Every learner votes with the logarithm of its odds of being right [1]_. It has to be right
    on more than half of the weight, which is much to ask of a weak learner where there are many
    classes: the fit then ends early, with ``stop_reason_ == "useless"``, and `SAMMEClassifier`
    is the better choice. It is blind to costs.

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
        See `BAdaCostClassifier`. Costs are 0|1. Probabilities are exact in the limit for two
        classes; for more they are the softmax of the votes, which no loss backs.

    References
    ----------
    .. [1] Y. Freund, R. E. Schapire, "Experiments with a new boosting algorithm", ICML 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import AdaBoostM1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostM1Classifier(n_estimators=20, max_depth=2).fit(X, y).predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    def _rule(self) -> Rule:
        return CostBlindRule(
            0.5 - np.eye(len(self.classes_))
        )  # steps are the log-odds of being right
