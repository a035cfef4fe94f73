"""The score of the classifiers, which scikit-learn asks for where no other is named."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from badacost.validation import refuse_batches, remedies


class AccuracyMixin(ClassifierMixin):
    """scikit-learn's mixin of classifiers, with a word about what its score leaves out."""

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy: the share of right predictions, **whatever mistakes cost**.

        It is what scikit-learn means by the score of a classifier, and what `GridSearchCV`,
        `cross_val_score` and their like compare unless told otherwise. To choose by money, pass
        ``scoring=badacost.metrics.cost_scorer(costs)`` to them; to measure it, call
        `badacost.metrics.average_cost`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            Accuracy, from 0 to 1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> from badacost.metrics import average_cost
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
        >>> model = BAdaCostClassifier(costs, n_estimators=2, max_depth=1).fit(X, y)
        >>> round(model.score(X, y), 2), round(average_cost(y, model.predict(X), costs), 2)
        (0.63, 0.37)
        """
        refuse_batches(X, "give score the X and y of one batch, or average the scores of several")
        if y is None:
            raise TypeError("score needs y, the true classes of the samples.")
        with remedies(None, y):
            return float(super().score(X, y, sample_weight))
