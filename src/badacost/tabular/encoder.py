"""A table as a matrix of floats, in the same way for training and for prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.categorical_columns import MAX_CATEGORIES
from badacost._utils.user_warnings import warn_user
from badacost.io.model_file import refuse
from badacost.tabular.columns import (
    KINDS,
    Column,
    ColumnError,
    DistinctTexts,
    distinct_texts,
    holds_text,
    learn_column,
)
from badacost.tabular.frames import as_frame, check_columns

_MAX_REASONS = 3
_MAX_REASON_LENGTH = 75
_MAX_DROPS = 5
_FEW_ROWS = 20  # in fewer, numbers are different by chance
_MANY_ROWS = 1000  # to look at before all are


class TableEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Turns each column of a table into a feature for trees.

    Numbers stay as they are, booleans become 0 and 1, dates days since 1970, and categories their
    positions among the known ones. Text is taken for what it says: numbers, booleans or dates if
    nine tenths of a column or more are such, and the few other texts stand for missing values then;
    other text is categories. Missing values, and categories that were not in the training data,
    are NaN, which trees take. Columns that are the same in every row are left out. What a column
    holds is decided in training; in prediction, values are converted to that.

    Parameters
    ----------
    drop : sequence of str, default=()
        Columns to leave out.

    Attributes
    ----------
    columns_ : tuple of badacost.tabular.columns.Column
        How each column in use is encoded.
    categorical_ : ndarray of shape (n_columns,)
        Which of them are categories, for the parameter `categorical_features` of classifiers. Of
        more than 255 categories in a column the most frequent ones are known.
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
    >>> encoder.get_feature_names_out().tolist(), encoder.categorical_.tolist()
    (['age', 'ward'], [False, True])
    >>> encoder.notes_
    ["column 'site' is the same in every row: left out."]
    >>> encoder.transform(pd.DataFrame({"ward": ["B", "D"], "age": [30, 31]}))
    array([[30.,  1.],
           [31., nan]])
    """

    def __init__(self, *, drop: Sequence[str] = ()):
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
        ndarray of shape (n_rows, n_columns)
            Features, in the order of ``columns_``.
        """
        left_out = _names(self.drop)
        frame = as_frame(X)
        check_columns(frame, left_out)
        if not len(frame):
            raise ValueError("the table has no rows: give at least one.")
        names = [name for name in frame.columns if name not in left_out]
        matrix = np.empty((len(frame), len(names)), order="F")
        columns: list[Column] = []
        notes: list[str] = []

        def learn(name: str) -> None:
            values = frame[name]
            cells = distinct_texts(values) if holds_text(values) else None
            if _is_constant(values, cells):
                notes.append(f"column {name!r:.80} is the same in every row: left out.")
                return
            column = learn_column(name, values, cells)
            feature = matrix[:, len(columns)] = column.encode(values, cells)
            notes.extend(_oddities(column, cells, feature))
            columns.append(column)

        _do_each(names, learn)
        if not columns:
            raise ValueError("the table has no column to learn from: all are left out.")
        self._set_columns(columns)
        self.notes_ = notes
        return matrix[:, : len(columns)]

    def transform(self, X: Any) -> FloatArray:
        """Return the features of a table.

        Parameters
        ----------
        X : DataFrame
            A table with at least the columns in ``feature_names_in_``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Features, in the order of ``columns_``.

        Warns
        -----
        UserWarning
            Where most categories of a column are not those of the training data.
        """
        check_is_fitted(self)
        frame = as_frame(X)
        check_columns(frame, self.feature_names_in_)
        matrix = np.empty((len(frame), len(self.columns_)), order="F")
        places = {column.name: (k, column) for k, column in enumerate(self.columns_)}

        def encode(name: str) -> None:
            position, column = places[name]
            values = frame[name]
            cells = distinct_texts(values) if column.levels else None
            feature = matrix[:, position] = column.encode(values, cells)
            if cells is not None:
                _warn_of_unknown(column, cells, feature)

        _do_each(places, encode)
        return matrix

    def _set_columns(self, columns: Sequence[Column]) -> None:
        self.columns_ = tuple(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.categorical_ = np.array([column.kind == "category" for column in columns])

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


def columns_to_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return columns in a form that JSON holds.

    >>> columns_to_json([Column("age", "number")])
    [{'name': 'age', 'kind': 'number', 'levels': [], 'missing': []}]
    """
    parts = [asdict(column) for column in columns]
    return [part | {key: list(part[key]) for key in ("levels", "missing")} for part in parts]


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
    if not isinstance(name, str) or not name:
        refuse("the name of a column is not text, or empty")
    if kind not in KINDS:
        refuse(f"a column is of the unknown kind {str(kind)[:80]!r}")
    if not _are_texts(levels) or not _are_texts(missing):
        refuse("the levels of a column, or what stands for no value, are not texts")
    if len(set(levels)) < len(levels) or bool(levels) != (kind == "category"):
        refuse(f"the levels of column {name[:80]!r} are repeated or do not suit its kind")
    if len(levels) > MAX_CATEGORIES:
        refuse(f"column {name[:80]!r} has too many levels")
    return Column(name, kind, tuple(levels), tuple(missing))


def _are_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(text, str) for text in given)


def _is_constant(values: Any, cells: DistinctTexts | None) -> bool:
    """Whether a column has one value everywhere, or none at all."""
    if cells is not None:
        return int((cells.counts > 0).sum()) + bool((cells.codes < 0).any()) < 2
    missing = values.isna()
    return bool(missing.all() or (not missing.any() and (values == values.iloc[0]).all()))


def _names(drop: Any) -> dict[str, None]:
    """Return the names of columns to leave out, as keys."""
    names: list[Any] = [*drop] if np.iterable(drop) and not isinstance(drop, str) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"drop must be a sequence of names, which are text; got {drop!r:.80}: give a list, "
            "[] to leave out none."
        )
    return dict.fromkeys(names)


def _do_each(names: Iterable[str], work: Callable[[str], None]) -> None:
    """Do something with each column; those that are refused are named together."""
    errors = []
    for name in names:
        try:
            work(name)
        except ColumnError as error:
            errors.append(error)
        except UnicodeEncodeError as error:
            reason = f"has the text {error.object!r:.40}, which is no Unicode"
            errors.append(ColumnError(name, reason, "correct it or leave the column out"))
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


def _oddities(column: Column, cells: DistinctTexts | None, feature: FloatArray) -> Iterator[str]:
    """Yield notes about what looks odd in a column of training data."""
    name = f"column {column.name!r:.80}"
    if column.missing and cells is not None:
        odd = cells.texts.isin(column.missing)
        yield (
            f"{name} has {column.kind}s, but {cells.first_of(odd)}: such text is taken for "
            f"missing, in {cells.counts[odd].sum()} of {cells.counts.sum()} cells."
        )
    if column.kind == "category" and cells is not None:
        n_others = int((np.isnan(feature) & (cells.codes >= 0)).sum())
        if n_others:
            yield (
                f"{name} has more than {MAX_CATEGORIES} categories: the most frequent ones are "
                f"kept, the others, in {n_others} of {len(feature)} rows, are taken for missing."
            )
    if column.kind != "number":
        return
    leave_out = f"leave it out, on the command line with --drop {column.name!r:.80}."
    if len(feature) > 2 and (feature[1:] == feature[:-1] + 1.0).all():
        yield f"{name} only counts the rows: if it is no property of them, {leave_out}"
    elif _are_identifiers(feature[:_MANY_ROWS]) and _are_identifiers(feature):
        yield f"{name} has another whole number in every row: if these are identifiers, {leave_out}"


def _are_identifiers(numbers: FloatArray) -> bool:
    """Whether numbers are whole, and all of them different."""
    if len(numbers) <= _FEW_ROWS or not np.array_equal(numbers, np.round(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


def _warn_of_unknown(column: Column, cells: DistinctTexts, feature: FloatArray) -> None:
    present = cells.codes >= 0
    n_unknown = int((np.isnan(feature) & present).sum())
    if n_unknown > present.sum() / 2:
        warn_user(
            f"column {column.name!r:.80}: {n_unknown} of {present.sum()} values are unknown to the "
            "model, and missing values to it.",
            UserWarning,
        )
