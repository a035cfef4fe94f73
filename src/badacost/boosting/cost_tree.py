"""A single cost-sensitive tree as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost.accuracy import AccuracyMixin
from badacost.arrays import FloatArray
from badacost.boosting.learners import Criterion, SampleSet, cheapest_labels
from badacost.boosting.saving import SavedForest
from badacost.boosting.stagewise import Task
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import warn_of_alphabet
from badacost.exact_sums import exact_sum
from badacost.model_file import ModelFile
from badacost.persistence import saved_model
from badacost.threads import Threads
from badacost.tree.forest import Forest
from badacost.tree.sampling import BinningMethod
from badacost.validation import check_samples, check_training_data, check_tree_parameters


@saved_model
class CostSensitiveTreeClassifier(CostDecisionMixin, SavedForest, AccuracyMixin, BaseEstimator):
    """A decision tree for mistakes with different prices: the weak learner of BAdaCost.

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
        Features drawn at each node: a number, a share, or all of them.
    criterion : {"gini", "entropy"}, default="gini"
        The Gini index with class shares weighted by cost, as in the authors' code, or the entropy
        under class weights by cost.
    binning : {"quantile", "uniform", "exact"}, default="quantile"
        How values become bins: about equally many samples in each, equal steps, or one for every
        distinct value.
    max_bins : int, default=256
        Maximum number of bins of a feature, one of them for missing values if there are any.
    categorical_features : {"from_dtype"}, array-like or None, default="from_dtype"
        Columns whose values are categories, see `BAdaCostClassifier`.
    n_jobs : int or None, default=None
        Threads. None is one, -1 is one for each core.
    random_state : int, RandomState instance or None, default=None
        Seed of `max_features`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs in the order of ``classes_``; a price of being right is subtracted from its row.
    charged_costs_ : ndarray of shape (K, K)
        The same as given, with the price of being right if there is one.
    forest_ : badacost.tree.forest.Forest
        The tree; its table holds the class shares of every node.
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

    def __init__(
        self,
        cost_matrix: Any = None,
        *,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
        criterion: Criterion = "gini",
        binning: BinningMethod = "quantile",
        max_bins: int = 256,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.cost_matrix = cost_matrix
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.criterion = criterion
        self.binning = binning
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        check_tree_parameters(self)
        # Should the fit fail, the model is not fitted, rather than a mixture of two.
        self.__dict__.pop("forest_", None)
        X, encoded, weight, self.classes_, kept = check_training_data(self, X, y, sample_weight)
        self._set_costs(self.cost_matrix)
        warn_of_alphabet(self.cost_matrix, self.classes_, X.y_like if y is None else y)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with Threads(self.n_jobs) as threads:
            task = Task(SampleSet(X), encoded, weight, None, threads, kept)
            learner = task.tree_learner(self, len(self.classes_))
            shares = weight / exact_sum(weight)
            tree, class_weights, _ = learner.grow(shares, self.cost_matrix_, None, self._seed)
        # One row of the table per node: its class shares.
        table = class_weights / class_weights.sum(axis=1, keepdims=True)
        mapper = task.samples.mapper
        self.forest_ = Forest.from_trees([tree], [1.0], table, self.n_features_in_, mapper)
        return self

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
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[cheapest_labels(shares, self.cost_matrix_)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the weighted shares of the classes in the leaf of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Shares, in the order of ``classes_``.
        """
        samples = check_samples(self, X)
        with Threads(self.n_jobs) as threads:
            return self.forest_.accumulate(samples, threads=threads)

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

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the weighted gains of the splits."""
        check_is_fitted(self)
        return self.forest_.feature_importances()

    def _restore(self, model: ModelFile) -> None:
        check_tree_parameters(self)
        if self.forest_.n_trees != 1:
            raise ValueError("it does not hold exactly one tree")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags
