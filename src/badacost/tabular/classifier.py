"""A classifier that takes a table as it is: an encoder of columns and a booster of trees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import category_order, check_choice, check_number
from badacost.classifiers import CostBoostClassifier
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import named_classes, set_costs, warn_if_label_order_is_implicit
from badacost.io.model_file import (
    ModelFile,
    model_to_file,
    refuse,
    save_model,
    saved_model,
    with_part,
)
from badacost.tabular.columns import Column
from badacost.tabular.encoder import TableEncoder, columns_from_json, columns_to_json
from badacost.tabular.frames import as_frame, check_columns
from badacost.tabular.summary import CostSummary
from badacost.tabular.target import target_labels
from badacost.tabular.trials import set_categories

_DECISIONS = ("own", "bayes")


def _has(method: str) -> Any:
    """Make a method available where the estimator has it."""

    def check(model: Any) -> bool:
        inner = getattr(model, "estimator_", model.estimator)
        return hasattr(CostBoostClassifier if inner is None else inner, method)

    return available_if(check)


@saved_model
class TableClassifier(CostDecisionMixin, BaseEstimator):
    """A classifier of `badacost` for tables with numbers, booleans, dates and text.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Cloned and fitted; None is ``CostBoostClassifier()``. Its parameter `categorical_features`,
        or that of an estimator inside it, is set to the columns that are categories. A classifier
        without this parameter is given their codes as numbers.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth. Given to the estimator, if it takes costs
        and has none of its own. None is that of the estimator.
    decision : {"own", "bayes"}, default="own"
        "own" is the rule of the estimator. "bayes" is the class of minimum expected cost under its
        probabilities, which makes decisions of a cost-blind booster cost-sensitive.
    drop : sequence of str, default=()
        Columns to leave out.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, in the order of an ordered column, or of labelled costs, or sorted.
    cost_matrix_ : ndarray of shape (K, K)
        Costs as given, ``C[truth, prediction]``, in the order of ``classes_``.
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    estimator_ : classifier
        The fitted estimator.
    encoder_ : TableEncoder
        What turns columns into its features.
    feature_names_in_ : ndarray of shape (n_columns,)
        Columns that prediction needs.
    n_features_in_ : int
        Their number.
    target_name_ : str or None
        Name of the column of the classes, if it was given by name.
    n_rows_ : int
        Number of rows of the training data.
    held_out_ : CostSummary or None
        What decisions cost on held-out data, if this was measured and set.

    Examples
    --------
    >>> import pandas as pd
    >>> from badacost.tabular import TableClassifier
    >>> fruits = pd.DataFrame({
    ...     "colour": ["red", "green", "yellow", "red"] * 10,
    ...     "weight": [150, 160, 120, 10] * 10,
    ...     "fruit": ["apple", "apple", "banana", "cherry"] * 10,
    ... })
    >>> model = TableClassifier().fit(fruits, "fruit")
    >>> model.predict(pd.DataFrame({"weight": [9, 130], "colour": ["red", "yellow"]}))
    array(['cherry', 'banana'], dtype=object)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        cost_matrix: Any = None,
        decision: Literal["own", "bayes"] = "own",
        drop: Sequence[str] = (),
    ):
        self.estimator = estimator
        self.cost_matrix = cost_matrix
        self.decision = decision
        self.drop = drop

    def fit(self, X: Any, y: str | ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit encoder and estimator.

        Parameters
        ----------
        X : DataFrame
            Training data.
        y : str or array-like of shape (n_rows,)
            The column of `X` that has the classes, or the classes themselves.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative weights.

        Returns
        -------
        self
            The fitted classifier.
        """
        check_choice("decision", self.decision, _DECISIONS)
        frame = as_frame(X)
        target = y if isinstance(y, str) else None
        if target is not None:
            check_columns(frame, [target])
            labels = self._labels(frame[target], target)
            frame = frame.drop(columns=[target])
        else:
            labels = column_or_1d(y) if category_order(y) is None else y
        encoder = TableEncoder(drop=self.drop)
        features = encoder.fit_transform(frame)
        return self._fit_features(encoder, features, labels, sample_weight, target)

    def _labels(self, values: Any, target: str) -> Any:
        """Return the labels of a column, in its own order of classes or that of labelled costs."""
        order = named_classes(self._given_costs()) if category_order(values) is None else None
        return target_labels(values, target, order)

    def _given_costs(self) -> Any:
        """Return the costs of this model or, if it has none, those of its estimator."""
        own = getattr(self.estimator, "cost_matrix", None)
        return own if self.cost_matrix is None else self.cost_matrix

    def _new_estimator(self) -> Any:
        """Return an estimator to be fitted."""
        return CostBoostClassifier() if self.estimator is None else clone(self.estimator)

    def _fit_features(
        self,
        encoder: TableEncoder,
        features: FloatArray,
        labels: Any,
        sample_weight: ArrayLike | None,
        target: str | None,
    ) -> Self:
        """Fit the estimator to what an encoder made of a table, or of more rows than these."""
        estimator = self._new_estimator()
        has_own = getattr(estimator, "cost_matrix", None) is not None
        hands_costs_on = not has_own and "cost_matrix" in estimator.get_params(deep=False)
        if hands_costs_on and self.cost_matrix is not None:
            estimator.set_params(cost_matrix=self.cost_matrix)
        set_categories(estimator, encoder.categorical_)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        estimator.fit(features, labels, **options)
        self._assemble(encoder, estimator, self._given_costs(), target, len(features))
        if not hands_costs_on:  # otherwise the estimator has warned
            warn_if_label_order_is_implicit(self.cost_matrix, self.classes_, labels)
        return self

    def _assemble(
        self,
        encoder: TableEncoder,
        estimator: Any,
        costs: Any,
        target: str | None = None,
        n_rows: int = 0,
    ) -> None:
        """Set what follows from the parts; `costs` of None are those of the estimator."""
        if self.decision == "bayes" and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f'decision="bayes" needs probabilities, and {type(estimator).__name__} has none: '
                'use decision="own".'
            )
        self.encoder_, self.estimator_ = encoder, estimator
        self.classes_ = estimator.classes_
        set_costs(self, getattr(estimator, "cost_matrix_", None) if costs is None else costs)
        self.feature_names_in_ = encoder.feature_names_in_
        self.n_features_in_ = encoder.n_features_in_
        self.target_name_, self.n_rows_ = target, n_rows
        self.held_out_: CostSummary | None = None

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        """Return a model for tables of numbers from an estimator that was fitted to a data frame.

        Parameters
        ----------
        estimator : classifier
            A fitted estimator that knows the names of its features. A `TableClassifier` is
            returned as it is.

        Returns
        -------
        TableClassifier
            The model; it does not know the name of the target.

        Raises
        ------
        ValueError
            Where the estimator knows no names.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import SAMMEClassifier
        >>> iris = load_iris(as_frame=True)
        >>> flowers = SAMMEClassifier(n_estimators=3).fit(iris.data, iris.target)
        >>> TableClassifier.of_fitted(flowers).predict(iris.frame[:2])
        array([0, 0])
        """
        if isinstance(estimator, TableClassifier):
            return estimator
        check_is_fitted(estimator)
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                f"this {type(estimator).__name__} does not know the names of its columns: fit it "
                "to a data frame, or use badacost fit."
            )
        model = cls(estimator)
        columns = [Column(str(name), "number") for name in names]
        model._assemble(TableEncoder.of_columns(columns), _unnamed(estimator), None)
        return model

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes that the decision rule chooses.

        Parameters
        ----------
        X : DataFrame
            A table with the columns in ``feature_names_in_``; others are ignored.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        features = self._features(X)
        if self.decision == "own":
            return np.asarray(self.estimator_.predict(features))
        return self._minimum_expected(self.estimator_.predict_proba(features))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, where the estimator has them.

        Parameters
        ----------
        X : DataFrame
            A table.

        Returns
        -------
        ndarray of shape (n_rows, K)
            Probabilities, in the order of ``classes_``.
        """
        features = self._features(X)
        return np.asarray(self.estimator_.predict_proba(features))

    @_has("staged_predict")
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield `predict` after every round.

        Parameters
        ----------
        X : DataFrame
            A table.

        Yields
        ------
        ndarray of shape (n_rows,)
            Classes.
        """
        features = self._features(X)
        if self.decision == "own":
            yield from self.estimator_.staged_predict(features)
            return
        for probabilities in self.estimator_.staged_predict_proba(features):
            yield self._minimum_expected(probabilities)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column of ``feature_names_in_`` in the gains of all splits."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.feature_importances_)

    def _features(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self.encoder_.transform(X)

    def _minimum_expected(self, probabilities: FloatArray) -> NDArray[Any]:
        return np.asarray(self.classes_[minimum_cost_decision(probabilities, self.regret_matrix_)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `badacost.load` reads.

        The file holds arrays and JSON, no pickle.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.

        Raises
        ------
        NotFittedError
            Where the model is not fitted.
        TypeError, ValueError
            Where a file could not hold the model.
        """
        save_model(self, path)

    _parts: ClassVar[tuple[str, ...]] = ("estimator",)

    def _to_model_file(self) -> ModelFile:
        check_is_fitted(self)
        header = {
            "columns": columns_to_json(self.encoder_.columns_),
            "target": self.target_name_,
            "n_rows": self.n_rows_,
            "held_out": None if self.held_out_ is None else self.held_out_.to_dict(),
            "decision": self.decision,
        }
        own = ModelFile(type(self).__name__, header, {"charged_costs": self.cost_matrix_})
        return with_part(own, "estimator", model_to_file(self.estimator_))

    @classmethod
    def _from_model_file(cls, model: ModelFile, estimator: Any) -> Self:
        """Rebuild a model from the checked contents of a file."""
        header, charged = model.header, model.arrays["charged_costs"]
        if not hasattr(estimator, "predict") or isinstance(estimator, cls):
            refuse("its estimator does not take numbers")
        check_choice("its decision", header["decision"], _DECISIONS)
        check_number("its number of rows", header["n_rows"], Integral, low=0)
        if not isinstance(header["target"], str | None):
            refuse("the name of its target is not text")
        if charged.dtype != np.float64:
            refuse("its costs are not numbers")
        encoder = TableEncoder.of_columns(columns_from_json(header["columns"]))
        if encoder.n_features_in_ != estimator.n_features_in_:
            refuse("its columns do not make the features of its estimator")
        rebuilt = cls(clone(estimator), cost_matrix=charged, decision=header["decision"])
        rebuilt._assemble(encoder, estimator, charged, header["target"], header["n_rows"])
        if header["held_out"] is not None:
            rebuilt.held_out_ = CostSummary.from_dict(header["held_out"])
        return rebuilt


def _unnamed(estimator: Any) -> Any:
    """Return a copy that knows no names of features: it would miss them in arrays, and warn."""
    if isinstance(estimator, TableClassifier):
        raise TypeError(
            "a TableClassifier in another classifier is not for tables: put the other one into it."
        )
    unnamed = copy(estimator)
    part = "estimator" if isinstance(estimator, FrozenEstimator) else "estimator_"
    if part in vars(estimator):
        setattr(unnamed, part, _unnamed(getattr(estimator, part)))
    vars(unnamed).pop("feature_names_in_", None)
    return unnamed
