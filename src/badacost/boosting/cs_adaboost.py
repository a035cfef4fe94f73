"""CS-AdaBoost: AdaBoost for two classes with costs in the exponents of its loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from badacost.arrays import FloatArray
from badacost.boosting.reweighting import PosteriorMixin, ReweightingClassifier, Rule
from badacost.costs import cost_star
from badacost.model_file import ModelFile
from badacost.persistence import saved_model


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryCostClassifier(PosteriorMixin, ReweightingClassifier):
    """Base of the classifiers for two classes, each with a price for being missed."""

    cost_matrix: Any = field(default=None, kw_only=False)

    def _prepare(self) -> None:
        self._check_binary()
        self._set_costs(self.cost_matrix)
        self._derive()

    def _restore(self, model: ModelFile) -> None:
        self._check_binary()
        super()._restore(model)

    def _check_binary(self) -> None:
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{type(self).__name__} takes 2 classes, y has {len(self.classes_)}; use "
                "BAdaCostClassifier, which generalises it."
            )

    @property
    def _prices(self) -> FloatArray:
        """Price of missing each of the two classes."""
        return self.cost_matrix_.sum(axis=1)

    def _log_prior(self) -> FloatArray:
        # The scores are those of prices times odds.
        return -np.log(self._prices)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class CSAdaBoostClassifier(BinaryCostClassifier):
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
    classes_, cost_matrix_, charged_costs_, forest_, estimators_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`.

    References
    ----------
    .. [1] H. Masnadi-Shirazi, N. Vasconcelos, "Cost-sensitive boosting", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 33(2), 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from badacost import CSAdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> costs = [[0, 5], [1, 0]]  # C[truth, prediction]: a missed cancer, class 0, costs five
    >>> CSAdaBoostClassifier(costs, n_estimators=20).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def _rule(self) -> Rule:
        return Rule(cost_star(self.cost_matrix_ / self.cost_matrix_.max()))
