"""Trees that LightGBM or CatBoost has grown, as a classifier of this library."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from badacost.accuracy import AccuracyMixin
from badacost.arrays import FloatArray
from badacost.boosting.category_marks import CategoryMarks
from badacost.boosting.foreign_trees import SOURCES, read_trees, reader_of
from badacost.boosting.saving import SavedForest, saved_log_prior
from badacost.categorical_columns import CategoricalColumns, check_categorical_features
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import warn_of_alphabet
from badacost.model_file import ModelFile
from badacost.persistence import saved_model
from badacost.threads import Threads
from badacost.validation import check_choice, check_number, check_samples, check_training_data


@saved_model
class ImportedForestClassifier(CostDecisionMixin, SavedForest, AccuracyMixin, BaseEstimator):
    """Trees of LightGBM or CatBoost, and the decision of minimum expected cost.

    The other library grows the trees; then they are copied into a `badacost.tree.forest.Forest`.
    From there on nothing of the other library is needed: the forest predicts, explains, and is
    saved in a file without pickle. Its probabilities are those of the other library, but for
    rounding.

    Parameters
    ----------
    estimator : LGBMClassifier, CatBoostClassifier or None, default=None
        Cloned and fitted. Linear leaves, averaged or asymmetric trees, categories of its own and
        other losses than the default are refused. None is for models that come from `of_fitted` or
        from a file, which cannot be fitted again.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth. None is a price of one for each mistake.
    n_jobs : int or None, default=None
        Threads for predictions. None is one, -1 is one for each core.
    categorical_features : "from_dtype", list or None, default="from_dtype"
        Columns of categories: those of a category dtype in a data frame, or their names, their
        positions, or True or False for each column. The other library gets a feature of 0 and 1 for
        each category (of a column, for the 255 most frequent); in the copied trees a test of such a
        feature is one of the category.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs in the order of ``classes_``; a price of being right is subtracted from its row.
    charged_costs_ : ndarray of shape (K, K)
        The same as given, with the price of being right if there is one.
    forest_ : badacost.tree.forest.Forest
        The trees. Their scores are costs: a low one speaks for a class.
    log_prior_ : ndarray of shape (K,)
        Logits of the classes before the first tree.
    source_ : {"LightGBM", "CatBoost"}
        Where the trees come from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.datasets import load_wine
    >>> from badacost import ImportedForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> costs = [[0, 1, 5], [1, 0, 2], [10, 8, 0]]  # C[truth, prediction]
    >>> booster = LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    >>> model = ImportedForestClassifier(booster, costs).fit(X, y)
    >>> model.forest_.n_trees, model.predict(X[[0, 60, 177]])
    (60, array([0, 1, 2]))
    """

    _unsaved: ClassVar[tuple[str, ...]] = ("estimator",)

    def __init__(
        self,
        estimator: Any = None,
        cost_matrix: Any = None,
        *,
        n_jobs: int | None = None,
        categorical_features: Any = "from_dtype",
    ):
        self.estimator = estimator
        self.cost_matrix = cost_matrix
        self.n_jobs = n_jobs
        self.categorical_features = categorical_features

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the other classifier, and copy its trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; samples of weight zero are ignored.

        Returns
        -------
        self
            The fitted classifier.
        """
        if self.estimator is None:
            raise ValueError(
                "an ImportedForestClassifier without an estimator cannot be fitted: give an "
                "LGBMClassifier or a CatBoostClassifier."
            )
        reader_of(self.estimator)
        self._check_parameters()
        self.__dict__.pop("forest_", None)
        samples, codes, weight, self.classes_, _ = check_training_data(self, X, y, sample_weight)
        weightless = np.delete(self.classes_, np.unique(codes)).tolist()
        if weightless:
            raise ValueError(
                f"class {weightless[0]!r} has no sample of positive weight: leave it out."
            )
        options = {} if sample_weight is None else {"sample_weight": weight}
        marks = CategoryMarks.of(samples.shape[1], self._columns.codes())
        fitted = clone(self.estimator).fit(marks.expand(samples), codes.astype(np.int64), **options)
        self._take(fitted, marks)
        warn_of_alphabet(self.cost_matrix, self.classes_, y)
        return self

    @classmethod
    def of_fitted(cls, estimator: Any, cost_matrix: Any = None) -> Self:
        """Return a classifier with the trees of one that is fitted already.

        Parameters
        ----------
        estimator : LGBMClassifier or CatBoostClassifier
            The fitted classifier; it is not changed.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
            ``C[truth, prediction]``: rows are the truth.

        Returns
        -------
        ImportedForestClassifier
            A fitted classifier.

        Examples
        --------
        >>> from lightgbm import LGBMClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> booster = LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y)
        >>> model = ImportedForestClassifier.of_fitted(booster, [[0, 1, 1], [1, 0, 1], [1, 9, 0]])
        >>> bool(abs(model.predict_proba(X) - booster.predict_proba(X)).max() < 1e-12)
        True
        """
        reader_of(estimator)
        check_is_fitted(estimator)
        model = cls(None, cost_matrix)
        model.classes_ = np.asarray(estimator.classes_)
        model._columns = CategoricalColumns({})
        names = _names_of_features(estimator)
        if names is not None:
            model.feature_names_in_ = np.asarray(names, dtype=object)
        model._take(estimator, None)
        warn_of_alphabet(cost_matrix, model.classes_, None)
        return model

    def _take(self, estimator: Any, marks: CategoryMarks | None) -> None:
        """Copy the trees of a fitted classifier; with marks, those tell which test is of what."""
        trees = read_trees(estimator)
        self._set_costs(self.cost_matrix)
        self.log_prior_, self.source_ = trees.log_prior, trees.source
        self.forest_ = trees.forest if marks is None else marks.join(trees.forest)
        self.n_features_in_ = self.forest_.n_features

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.
        """
        samples = check_samples(self, X)
        with Threads(self.n_jobs) as threads:
            return self._posterior(self.forest_.accumulate(samples, threads=threads))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the classes of minimum expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        return np.asarray(self.decide(X))

    def _posterior(self, scores: FloatArray) -> FloatArray:
        return np.asarray(softmax(self.log_prior_ - scores, axis=1))

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits."""
        check_is_fitted(self)
        return self.forest_.feature_importances()

    def _check_parameters(self) -> None:
        check_number("n_jobs", self.n_jobs, Integral, none=True)
        check_categorical_features(self.categorical_features)

    def _extra_header(self) -> dict[str, Any]:
        return {"source": self.source_}

    def _extra_arrays(self) -> dict[str, NDArray[Any]]:
        return {"log_prior": self.log_prior_}

    def _restore(self, model: ModelFile) -> None:
        self._check_parameters()
        check_choice("its source", model.header["source"], SOURCES)
        self.source_ = model.header["source"]
        self.log_prior_ = saved_log_prior(model, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _names_of_features(estimator: Any) -> Any:
    """Names of the columns that a classifier was fitted to; None where they had none."""
    names = getattr(estimator, "feature_names_", None)  # of CatBoost, which numbers other columns
    if names is None:
        return getattr(estimator, "feature_names_in_", None)
    return None if names == [str(number) for number in range(len(names))] else names
