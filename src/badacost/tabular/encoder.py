"""A table as a matrix of floats, in the same way for training and for prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from badacost.arrays import FloatArray
from badacost.model_file import refuse
from badacost.tabular.columns import (
    KINDS,
    Column,
    ColumnError,
    as_text,
    learn_column,
    without_blanks,
)
from badacost.tabular.frames import as_frame, check_columns, place_of
from badacost.validation import check_number

Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_REASONS = 3
_MAX_REASON_LENGTH = 75
_MAX_DROPS = 5
_FEW_ROWS = 20  # in fewer, numbers are different by chance


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns the columns of a table into features for trees.

    Numbers stay as they are, booleans become 0 and 1, dates days since 1970. Text is taken for
    what it says: numbers, truths or dates if nine tenths of a column or more are such, and the few
    other texts stand for missing values then. Other text and categories become a feature for each
    level if these are few, or else one feature: the rank of the level, 0 for the most frequent.
    Missing values, and categories that were not in the training data, are NaN, which trees take.
    Columns that are the same in every row are left out. What a column holds is decided in training;
    in prediction, values are converted to that.

    Parameters
    ----------
    max_one_hot : int, default=8
        Maximum number of levels of a category that get a feature each; two levels share one.
    drop : sequence of str, default=()
        Columns to leave out.

    Attributes
    ----------
    columns_ : tuple of badacost.tabular.columns.Column
        How each column in use is encoded.
    feature_names_in_ : ndarray of shape (n_columns,)
        Their names. Prediction needs these columns, in any order, and takes no notice of others.
    n_features_in_ : int
        Their number.
    notes_ : list of str
        What was left out, and what looks odd.

    Examples
    --------
    >>> import pandas as pd
    >>> from badacost.tabular import TableEncoder
    >>> patients = pd.DataFrame({"age": [61, 48, None], "ward": ["A", "B", "C"], "site": "Rome"})
    >>> encoder = TableEncoder().fit(patients)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'ward=A', 'ward=B', 'ward=C']
    >>> encoder.notes_
    ["column 'site' is the same in every row: left out."]
    >>> encoder.transform(pd.DataFrame({"ward": ["B", "D"], "age": [30, 31]}))
    array([[30.,  0.,  1.,  0.],
           [31., nan, nan, nan]])
    """

    def __init__(self, *, max_one_hot: int = 8, drop: Sequence[str] = ()):
        self.max_one_hot = max_one_hot
        self.drop = drop

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn the kinds of the columns, and the levels of categories.

        Parameters
        ----------
        X : DataFrame
            Training data.
        y : ignored
            Here for scikit-learn.

        Returns
        -------
        self
            The fitted encoder.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **fit_params: Any) -> FloatArray:
        """Fit to a table, and return its features.

        Parameters
        ----------
        X : DataFrame
            Training data.
        y, **fit_params : ignored
            Here for scikit-learn.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Features, in the order of `get_feature_names_out`.
        """
        check_number("max_one_hot", self.max_one_hot, Integral, low=2, high=256)
        if isinstance(self.drop, str):
            raise TypeError(f"drop must be a sequence of names; got {self.drop!r:.80}.")
        frame = as_frame(X)
        check_columns(frame, self.drop)
        if not len(frame):
            raise ValueError("the table has no rows: give at least one.")
        notes: list[str] = []

        def learn(name: str) -> tuple[Column, FloatArray] | None:
            values = without_blanks(frame[name])
            if _is_constant(values):
                notes.append(f"column {name!r:.80} is the same in every row: left out.")
                return None
            column = learn_column(name, values, self.max_one_hot)
            features = column.encode(values)
            notes.extend(_oddities(column, values, features))
            return column, features

        names = [name for name in frame.columns if name not in self.drop]
        learned = [pair for pair in _of_each(names, learn) if pair is not None]
        if not learned:
            raise ValueError("the table has no column to learn from: all are left out.")
        self._set_columns([column for column, _ in learned])
        self.notes_ = notes
        return np.concatenate([features for _, features in learned], axis=1)

    def transform(self, X: Any) -> FloatArray:
        """Return the features of a table.

        Parameters
        ----------
        X : DataFrame
            A table with at least the columns in ``feature_names_in_``.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Features, in the order of `get_feature_names_out`.

        Warns
        -----
        UserWarning
            Where most categories of a column are not those of the training data.
        """
        check_is_fitted(self)
        frame = as_frame(X)
        check_columns(frame, self.feature_names_in_)

        def encode(column: Column) -> FloatArray:
            values = without_blanks(frame[column.name])
            features = column.encode(values)
            if column.levels:
                _warn_of_unknown(column, values, features)
            return features

        return np.concatenate(_of_each(self.columns_, encode), axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : ignored
            Here for scikit-learn.

        Returns
        -------
        ndarray of str
            Names, such as ``"age"`` or ``"ward=A"``.
        """
        check_is_fitted(self)
        names: list[str] = []
        for name in (name for column in self.columns_ for name in column.feature_names):
            while name in names:  # a column "a=x" beside the level x of a column "a"
                name += "'"
            names.append(name)
        return np.array(names, dtype=object)

    def _set_columns(self, columns: Sequence[Column]) -> None:
        self.columns_ = tuple(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.n_features_in_ = len(columns)

    @classmethod
    def of_columns(cls, columns: Sequence[Column]) -> Self:
        """Return an encoder that needs no fit.

        Parameters
        ----------
        columns : sequence of Column
            How to encode each column.

        Returns
        -------
        TableEncoder
            The encoder.

        Examples
        --------
        >>> from badacost.tabular.columns import Column
        >>> TableEncoder.of_columns([Column("age", "number")]).get_feature_names_out().tolist()
        ['age']
        """
        encoder = cls()
        encoder._set_columns(columns)
        encoder.notes_ = []
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "columns_")


def columns_to_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return columns in a form that JSON holds.

    >>> columns_to_json([Column("age", "number")])
    [{'name': 'age', 'kind': 'number', 'levels': []}]
    """
    return [
        {"name": column.name, "kind": column.kind, "levels": list(column.levels)}
        | ({"missing": list(column.missing)} if column.missing else {})
        for column in columns
    ]


def columns_from_json(given: Any) -> list[Column]:
    """Return the columns of `columns_to_json`; anything else that a file may hold is refused."""
    if not isinstance(given, list) or not given:
        refuse("its columns are not a list")
    columns = [_column_from_json(entry) for entry in given]
    if len({column.name for column in columns}) < len(columns):
        refuse("two of its columns have the same name")
    return columns


def _column_from_json(entry: Any) -> Column:
    if not isinstance(entry, dict) or set(entry) - {"missing"} != {"name", "kind", "levels"}:
        refuse("a column is not a name, a kind and levels")
    name, kind, levels = entry["name"], entry["kind"], entry["levels"]
    missing = entry.get("missing", [])
    if not isinstance(name, str):
        refuse("the name of a column is not text")
    if kind not in KINDS:
        refuse(f"a column is of the unknown kind {str(kind)[:80]!r}")
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        refuse("the levels of a column are not texts")
    if len(set(levels)) < len(levels) or bool(levels) != (kind in ("one-hot", "ordinal")):
        refuse(f"the levels of column {name[:80]!r} are repeated or do not suit its kind")
    if kind == "one-hot" and len(levels) > 256:
        refuse(f"column {name[:80]!r} has too many levels")
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        refuse(f"what stands for no value in column {name[:80]!r} is not text")
    return Column(name, kind, tuple(levels), tuple(missing))


def _is_constant(values: Any) -> bool:
    """Tell whether a column says nothing: one value everywhere, or none at all."""
    present = values.dropna()
    if not len(present):  # None and NaN would count as two values
        return True
    try:
        return int(present.nunique()) + (len(present) < len(values)) < 2
    except TypeError:  # lists and other values that are refused later
        return False


def _of_each(items: Iterable[Item], work: Callable[[Item], Result]) -> list[Result]:
    """Do something with each column; those that are refused are named together."""
    results, errors = [], []
    for item in items:
        try:
            results.append(work(item))
        except ColumnError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        shown = ", ".join(
            f"{error.name!r:.40} {error.reason:.{_MAX_REASON_LENGTH}}"
            for error in errors[:_MAX_REASONS]
        )
        more = f" and {len(errors) - _MAX_REASONS} more" if len(errors) > _MAX_REASONS else ""
        drops = " ".join(f"--drop {error.name!r:.40}" for error in errors[:_MAX_DROPS])
        raise ValueError(
            f"{len(errors)} columns cannot be used: {shown}{more}: correct them, or leave them "
            f"out, on the command line with {drops}{' ...' * (len(errors) > _MAX_DROPS)}."
        )
    return results


def _oddities(column: Column, values: Any, features: FloatArray) -> Iterator[str]:
    """Say what looks odd in a column of training data."""
    name = f"column {column.name!r:.80}"
    if column.missing:
        odd = as_text(values).isin(column.missing).to_numpy()
        first = int(np.flatnonzero(odd)[0])
        yield (
            f"{name} has {column.kind}s, but {values.iloc[first]!r:.80} in "
            f"{place_of(values, first)}: such text is taken for missing, in {odd.sum()} of "
            f"{values.notna().sum()} cells."
        )
    if column.kind != "number":
        return
    numbers = features[:, 0]
    leave_out = f"leave it out, on the command line with --drop {column.name!r:.80}."
    if len(numbers) > 2 and (np.diff(numbers) == 1.0).all():
        yield f"{name} only counts the rows: if it is no property of them, {leave_out}"
    elif _are_identifiers(numbers):
        yield f"{name} has another whole number in every row: if these are identifiers, {leave_out}"


def _are_identifiers(numbers: FloatArray) -> bool:
    """Tell whether numbers are whole, and all of them different."""
    if len(numbers) <= _FEW_ROWS or not np.array_equal(numbers, np.round(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


def _warn_of_unknown(column: Column, values: Any, features: FloatArray) -> None:
    present = values.notna().to_numpy()
    n_unknown = int((np.isnan(features[:, 0]) & present).sum())
    if n_unknown > present.sum() / 2:
        warnings.warn(
            f"column {column.name!r:.80}: {n_unknown} of {present.sum()} values are unknown to the "
            "model, and missing values to it.",
            UserWarning,
            stacklevel=6,
        )
