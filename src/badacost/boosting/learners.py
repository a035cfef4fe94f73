"""Weak learners: what a boosting round fits, as labels on samples.

A learner is bound to one training set. It fits a model to sample weights and costs, and tells the
labels that a model gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest, Tree
from badacost.tree.grower import TreeGrower, TreeShape, cheapest_labels
from badacost.tree.threads import Threads

FloatArray = NDArray[np.float64]
Labels = NDArray[np.integer]


def draw_samples(weights: FloatArray, share: float, rng: np.random.Generator) -> Labels | None:
    """Draw a share of the samples to grow a tree on; None is all of them."""
    if share == 1.0:
        return None
    # Trees see weights in single precision: draw from those that do not vanish in it.
    alive = np.flatnonzero(weights.astype(np.float32))
    size = min(max(1, round(share * len(weights))), len(alive))
    return np.sort(rng.choice(alive, size, replace=False))


def bin_samples(
    estimator: Any, X: NDArray[np.floating], weight: FloatArray | None, threads: Threads
) -> BinnedData:
    """Put samples into bins as the parameters of an estimator say; `weight` steers the bins."""
    return BinnedData.of(
        X,
        method=estimator.binning,
        max_bins=estimator.max_bins,
        sample_weight=weight,
        seed=estimator._seed,
        threads=threads,
    )


class WeakLearner(Protocol):
    """What the stage-wise loop needs from a weak learner; models are trees or estimators."""

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: Labels | None, seed: int
    ) -> tuple[Any, Labels]:
        """Fit a model on the rows; return it and its labels on all training samples."""

    def predict(self, model: Any, X: NDArray[np.floating] | None = None) -> Labels:
        """Labels 0..K-1 that a model gives to samples, the training samples by default."""


class TreeLearner:
    """The built-in cost-sensitive tree.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training samples.
    data : BinnedData
        The same, in bins.
    y : ndarray of shape (n_samples,)
        Classes 0..K-1.
    n_classes : int
        Number of classes K.
    shape : TreeShape
        Limits of the trees.
    threads : Threads
        Threads to share the work among.
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        data: BinnedData,
        y: Labels,
        n_classes: int,
        shape: TreeShape,
        threads: Threads,
    ):
        self._X = X
        self._grower = TreeGrower(data, y, n_classes, shape, threads)

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: NDArray[np.floating],
        y: Labels,
        n_classes: int,
        weight: FloatArray | None,
        threads: Threads,
    ) -> Self:
        """Read bins and limits off the parameters of an estimator; `weight` steers the bins."""
        data = bin_samples(estimator, X, weight, threads)
        return cls(X, data, y, n_classes, TreeShape.of(estimator, X.shape[1]), threads)

    def relabelled(self, y: Labels, n_classes: int) -> TreeLearner:
        """A learner of other classes for the same samples, which shares their bins."""
        grower = self._grower
        return TreeLearner(self._X, grower.data, y, n_classes, grower.shape, grower.threads)

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: Labels | None, seed: int
    ) -> tuple[Tree, Labels]:
        """Grow a tree; samples that it did not see are sent down afterwards."""
        grown = self._grower.grow(weights, costs, rows=rows, seed=seed)
        answers = grown.tree.value.astype(self._grower.y.dtype)
        labels = np.empty(len(weights), dtype=answers.dtype)
        labels[grown.samples] = answers[grown.leaves]
        if len(grown.samples) < len(weights):
            unseen = np.ones(len(weights), bool)
            unseen[grown.samples] = False
            labels[unseen] = self.predict(grown.tree, self._X[unseen])
        return grown.tree, labels

    def predict(self, model: Tree, X: NDArray[np.floating] | None = None) -> Labels:
        """Labels of the leaves that the samples reach."""
        samples = self._X if X is None else X
        table = np.zeros((int(model.value.max()) + 1, 1))
        forest = Forest.from_trees([model], np.ones(1), table, samples.shape[1])
        return model.value[forest.apply(samples, self._grower.threads)[:, 0]]


@dataclass(frozen=True, eq=False)
class CostedClassifier:
    """A fitted classifier together with the costs that turn its probabilities into labels."""

    estimator: Any
    costs: FloatArray

    def labels(self, X: NDArray[np.floating]) -> Labels:
        """Labels of least expected cost, or the estimator's own if it has no probabilities."""
        if not hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict(X)).astype(np.int32)
        shares = np.zeros((len(X), len(self.costs)))
        shares[:, np.asarray(self.estimator.classes_, np.int64)] = self.estimator.predict_proba(X)
        return cheapest_labels(shares, self.costs)


class EstimatorLearner:
    """Any scikit-learn classifier; probabilities, where it has them, become labels by cost.

    A classifier that takes no sample weights is fitted to samples drawn in proportion to them.

    Parameters
    ----------
    estimator : estimator
        Cloned for each round.
    X, y
        Training set with classes 0..K-1.
    """

    def __init__(self, estimator: Any, X: NDArray[np.floating], y: Labels):
        self._estimator = estimator
        self._X, self._y = X, y
        # Parts of it, such as the steps of a pipeline, may be random too.
        self._seeds = [
            name for name in estimator.get_params() if name.split("__")[-1] == "random_state"
        ]
        self._takes_weights = has_fit_parameter(estimator, "sample_weight")

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: Labels | None, seed: int
    ) -> tuple[CostedClassifier, Labels]:
        """Fit a clone of the estimator."""
        model = clone(self._estimator)
        model.set_params(**dict.fromkeys(self._seeds, seed % 2**31))
        chosen = np.arange(len(weights)) if rows is None else rows
        if self._takes_weights:
            # Means of one, so that absolute limits of the estimator keep their meaning.
            scaled = weights[chosen] * (len(chosen) / weights[chosen].sum())
            model.fit(self._X[chosen], self._y[chosen], sample_weight=scaled)
        else:
            shares = weights[chosen] / weights[chosen].sum()
            drawn = np.random.default_rng(seed).choice(chosen, len(chosen), p=shares)
            model.fit(self._X[drawn], self._y[drawn])
        costed = CostedClassifier(model, costs)
        return costed, costed.labels(self._X)

    def predict(self, model: CostedClassifier, X: NDArray[np.floating] | None = None) -> Labels:
        """Labels of a model of an earlier round."""
        return model.labels(self._X if X is None else X)
