"""AdaBoost.M1: AdaBoost's own schedule with multi-class learners, without costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from badacost.boosting.reweighting import (
    TRACE_OF_ERROR,
    PosteriorMixin,
    ReweightingClassifier,
    Rule,
)
from badacost.boosting.stagewise import FloatArray
from badacost.costs import zero_one_costs
from badacost.model_file import ModelFile


class AdaBoostM1Rule(Rule):
    """Learners minimise the weighted error; with margins of one half, steps are its log-odds."""

    def learner_costs(self, step: float) -> FloatArray:
        """0|1 costs."""
        return zero_one_costs(len(self.margins))

    def step(self, weight_sums: FloatArray) -> float:
        """Logarithm of the odds of being right."""
        right = np.eye(len(weight_sums), dtype=bool)
        shares = np.array([weight_sums[right].sum(), weight_sums[~right].sum()])
        shares /= weight_sums.sum()
        log_right, log_wrong = np.log(np.where(shares > 0.0, shares, TRACE_OF_ERROR))
        return float(log_right - log_wrong)


class CostBlindClassifier(PosteriorMixin, ReweightingClassifier):
    """Base of the classifiers to which every mistake has the price one."""

    def _prepare(self) -> None:
        self.cost_matrix_ = zero_one_costs(len(self.classes_))
        self._derive()

    def _restore(self, model: ModelFile) -> None:
        super()._restore(model)
        same = np.array_equal(self.cost_matrix_, zero_one_costs(len(self.classes_)))
        if model.header["costs_given"] or not same:
            raise ValueError("it has costs, to which its class is blind")

    def _log_prior(self) -> FloatArray:
        return np.zeros(len(self.classes_))


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
    min_samples_leaf, max_features, criterion, binning, max_bins, subsample, early_stopping,
    validation_fraction, n_iter_no_change, tol, warm_start, callbacks, n_jobs, random_state, verbose
        See `BAdaCostClassifier`.

    Attributes
    ----------
    classes_, cost_matrix_, forest_, estimators_, estimator_weights_, n_estimators_, train_score_,
    validation_score_, stop_reason_, n_features_in_, feature_names_in_
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
        return AdaBoostM1Rule(0.5 - np.eye(len(self.classes_)))
