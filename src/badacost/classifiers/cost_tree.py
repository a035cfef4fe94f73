"""A single cost-sensitive tree as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import Threads, exact_sum, snapshot
from badacost._utils.validation import check_samples
from badacost.boosting.reweighting import Criterion, cheapest_labels
from badacost.classifiers.base import TreeClassifier
from badacost.classifiers.training_data import LocalRows
from badacost.costs.matrix import set_costs, warn_if_label_order_is_implicit
from badacost.io.model_file import ModelFile, saved_model
from badacost.tree.forest import Forest


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class CostSensitiveTreeClassifier(TreeClassifier):
    """A decision tree for mistakes with different costs: the weak learner of BAdaCost.

    Splits weigh classes by the sum of their costs, leaves take the label of minimum expected cost.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth; see `BAdaCostClassifier`.
    max_depth : int or None, default=None
        Maximum number of levels of tests.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; they are then grown most profitable first.
    min_samples_split : int, default=2
        Minimum number of samples in a node that is split.
    min_samples_leaf : int, default=1
        Minimum number of samples in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features drawn at each node: a number, a fraction, or all of them.
    criterion : {"gini", "entropy"}, default="gini"
        The Gini index of class fractions weighted by cost, as in the authors' code, or the entropy
        under class weights by cost.
    binning : {"quantile", "uniform", "exact"}, default="quantile"
        How values become bins: about equally many samples in each, equal steps, or one for every
        distinct value.
    max_bins : int, default=256
        Maximum number of bins of a feature, one of them for missing values if there are any.
    categorical_features : {"from_dtype"}, array-like or None, default="from_dtype"
        Columns whose values are categories, see `BAdaCostClassifier`.
    n_jobs : int or None, default=None
        Threads that large data are divided among; the model does not depend on them. None and -1
        are one for each core; None is one in the workers of joblib, as in a parallel search.
    random_state : int, RandomState instance or None, default=None
        Seed of `max_features`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs as given, ``C[truth, prediction]``, in the order of ``classes_``.
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    forest_ : badacost.tree.forest.Forest
        The tree; its table holds the class probabilities of every node.
    categories_ : dict
        Known categories of each categorical feature, by its name or position.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import CostSensitiveTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> tree = CostSensitiveTreeClassifier(costs, max_depth=2).fit(X, y)
    >>> tree.get_n_leaves()
    4
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    criterion: Criterion = "gini"

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> CostSensitiveTreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or batches of shape (n_samples, n_features)
            Training samples; NaN is a missing value. Batches (`badacost.batches`) come with classes
            and weights, and are read when they are needed, as is a memory-mapped array.
        y : array-like of shape (n_samples,)
            Classes; not for batches, which have them.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; samples of weight zero are ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _fit_in_place(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._draw_seed()
        rows = LocalRows(self, X, y, sample_weight, reset=True)
        self.classes_ = rows.classes
        set_costs(self, self.cost_matrix)
        warn_if_label_order_is_implicit(self.cost_matrix, rows.classes, rows.label_template)
        threads = Threads(self.n_jobs)
        task = rows.task(self, threads, None)
        learner = task.tree_learner(self, len(self.classes_))
        fractions = rows.weight / exact_sum(rows.weight)
        tree, class_weights, _ = learner.grow(fractions, self.regret_matrix_, None, self._seed)
        # One row of the table per node: its class probabilities.
        table = class_weights / class_weights.sum(axis=1, keepdims=True)
        mapper = task.samples.mapper
        self.forest_ = Forest.from_trees([tree], [1.0], table, self.n_features_in_, mapper)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of minimum expected cost in the leaf of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        model = snapshot(self)  # not changed by a fit in another thread
        labels = cheapest_labels(model.predict_proba(X), model.regret_matrix_)
        return np.asarray(model.classes_[labels])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the weighted fractions of the classes in the leaf of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.
        """
        return self._scores(check_samples(self, X))

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the leaf of each sample, shape (n_samples,)."""
        samples = check_samples(self, X)
        return self.forest_.apply(samples)[:, 0]

    def get_depth(self) -> int:
        """Return the number of levels of tests."""
        check_is_fitted(self)
        return int(self.forest_.depths[0])

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.forest_.is_leaf))

    def _restore(self, model: ModelFile) -> None:
        if self.forest_.n_trees != 1:
            raise ValueError("it does not hold exactly one tree")
        table = self.forest_.table
        is_valid = ((table >= 0.0) & (table <= 1.0)).all() and np.allclose(table.sum(axis=1), 1.0)
        if self.forest_.tree_weights[0] != 1.0 or not is_valid:
            raise ValueError("its leaves do not hold probabilities")
