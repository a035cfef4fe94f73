"""Class probabilities in closed form, for classifiers whose loss is exponential."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from badacost._utils.arrays import FloatArray


def posterior(log_prior: FloatArray, scores: FloatArray) -> FloatArray:
    """P(l | x), (n, K), in proportion to ``pi_l exp(-c_l(x))``."""
    logits = log_prior - scores
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: FloatArray = odds / odds.sum(axis=1, keepdims=True)
    return probabilities


class PosteriorMixin:
    """Class probabilities that follow from the cost scores of a `StagewiseClassifier`.

    For losses of the form exp(c_l(x)) they are ``pi_l exp(-c_l(x))``, divided by their sum, where
    the expected loss is minimal. For other losses `_posterior` and `_has_posterior` are overridden.
    """

    classes_: NDArray[Any]

    def _log_prior(self) -> FloatArray:
        """Logarithm of pi, shape (K,), up to a constant; a ValueError where there is none."""
        return np.zeros(len(self.classes_))

    def _posterior(self, scores: FloatArray) -> FloatArray:
        """P(l | x), (n, K), from the cost scores (n, K)."""
        return posterior(self._log_prior(), scores)

    def _has_posterior(self) -> bool:
        """True if scores determine probabilities; an AttributeError if they do not."""
        if hasattr(self, "classes_"):  # costs are known
            try:
                self._log_prior()
            except ValueError as error:
                raise AttributeError(
                    "predict_proba needs an irreducible cost matrix: give every mistake a positive "
                    "cost, or calibrate decision_function, for example with "
                    "sklearn.calibration.CalibratedClassifierCV."
                ) from error
        return True

    @available_if(methodcaller("_has_posterior"))
    def predict_proba(self: Any, X: ArrayLike) -> FloatArray:
        """Return class probabilities, in closed form from the minimiser of the loss.

        At the minimum of the expected loss ``P(l | x)`` is proportional to ``pi_l exp(-c_l(x))``.
        For BAdaCost pi is the stationary distribution of C*, which depends on the costs only,
        without costs it is uniform, and for CostBoost it is the frequencies of the classes.
        PIBoost has another formula, see there. Boosted scores are over-confident when many rounds
        fit noise: stop early, or calibrate (``sklearn.calibration``) if probabilities matter.

        A fitted model has no such method if the cost matrix is reducible: if so many mistakes are
        free that some classes are never taken for others, not even by way of third ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 9, 0]]
        >>> model = BAdaCostClassifier(costs, n_estimators=50, learning_rate=0.5).fit(X, y)
        >>> probabilities = model.predict_proba(X[[0, 70]])
        >>> probabilities.round(1)
        array([[0.9, 0.1, 0. ],
               [0. , 1. , 0. ]])
        >>> model.predict_costs(X[[0, 70]]).round(1)  # the expected cost of each decision
        array([[0.1, 1. , 1. ],
               [1. , 0. , 1. ]])
        """
        model, scores = self._scored(X)
        return model._posterior(scores)

    @available_if(methodcaller("_has_posterior"))
    def staged_predict_proba(self: Any, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `predict_proba` after every round."""
        for model, scores in self._staged(X):
            yield model._posterior(scores)
