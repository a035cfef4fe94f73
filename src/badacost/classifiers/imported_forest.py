"""Trees that LightGBM or CatBoost has grown, as a classifier of this library."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.categorical_columns import CategoricalColumns, check_categorical_features
from badacost._utils.validation import check_choice, check_has_weight, check_n_jobs, check_samples
from badacost.classifiers.base import ForestClassifier
from badacost.classifiers.foreign_trees import SOURCES, OneHotColumns, read_trees, reader_of
from badacost.classifiers.posterior import posterior
from badacost.classifiers.saving import saved_log_prior
from badacost.classifiers.training_data import LocalRows
from badacost.costs.matrix import set_costs, warn_if_label_order_is_implicit
from badacost.io.model_file import ModelFile, saved_model


@saved_model
@dataclass(eq=False, repr=False)
class ImportedForestClassifier(ForestClassifier):
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
        ``C[truth, prediction]``: rows are the truth. None is a cost of one for each mistake.
    n_jobs : int or None, default=None
        Threads for predictions; None and -1 are one for each core.
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
        Costs as given, ``C[truth, prediction]``, in the order of ``classes_``.
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    forest_ : badacost.tree.forest.Forest
        The trees, with cost scores: lower is better.
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
    _takes_blocks: ClassVar[bool] = False

    estimator: Any = None
    cost_matrix: Any = None
    _: KW_ONLY
    n_jobs: int | None = None
    categorical_features: Any = "from_dtype"

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
            raise ValueError("estimator is None: give an LGBMClassifier or a CatBoostClassifier.")
        reader_of(self.estimator)
        return self._fit(X, y, sample_weight)

    def _fit_in_place(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows = LocalRows(self, X, y, sample_weight, reset=True)
        self.classes_ = rows.classes
        check_has_weight(rows.classes, rows.classes[rows.y])
        options = {} if sample_weight is None else {"sample_weight": rows.weight}
        one_hot = OneHotColumns(rows.X.shape[1], self._columns.codes())
        encoded = one_hot.encode(rows.X)
        fitted = clone(self.estimator).fit(encoded, rows.y.astype(np.int64), **options)
        self._take(fitted, one_hot)
        warn_if_label_order_is_implicit(self.cost_matrix, rows.classes, rows.label_template)

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
        warn_if_label_order_is_implicit(cost_matrix, model.classes_, None)
        return model

    def _take(self, estimator: Any, one_hot: OneHotColumns | None) -> None:
        """Copy the trees of a fitted classifier, which may be of one-hot encoded columns."""
        set_costs(self, self.cost_matrix)
        self.source_, forest, self.log_prior_ = read_trees(estimator)
        self.forest_ = forest if one_hot is None else one_hot.decode(forest)
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
        return self._posterior(self._scores(check_samples(self, X)))

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
        return posterior(self.log_prior_, scores)

    def _check_parameters(self) -> None:
        check_n_jobs(self.n_jobs)
        check_categorical_features(self.categorical_features)

    def _store(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        header["source"] = self.source_
        arrays["log_prior"] = self.log_prior_

    def _restore(self, model: ModelFile) -> None:
        check_choice("its source", model.header["source"], SOURCES)
        self.source_ = model.header["source"]
        self.log_prior_ = saved_log_prior(model, len(self.classes_))


def _names_of_features(estimator: Any) -> Any:
    """Names of the columns that a classifier was fitted to; None where they had none."""
    names = getattr(estimator, "feature_names_", None)  # of CatBoost, which numbers other columns
    if names is None:
        return getattr(estimator, "feature_names_in_", None)
    return None if names == [str(number) for number in range(len(names))] else names
