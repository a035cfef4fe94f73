"""A column of a table as features: a number, a boolean, a date or a category."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from badacost.tabular.frames import import_pandas

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
Kind = Literal["number", "boolean", "date", "one-hot", "ordinal"]
KINDS: tuple[str, ...] = get_args(Kind)

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("date", "datetime", "datetime64")
_TEXTS = ("string", "categorical", "mixed-integer", "mixed")
_DAY = 86_400e6  # microseconds
_MOST_LEVELS = 1_000  # of a category; the rest are taken for missing
_IDENTIFIER_LEVELS = 20  # fewer distinct texts are never taken for identifiers
_IDENTIFIER_SHARE = 0.9
_TRUTHS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


@dataclass(frozen=True)
class Column:
    """How one column of a table becomes features.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean", "date", "one-hot", "ordinal"}
        What it holds; categories are one feature for each level, or one of ranks.
    levels : tuple of str
        Categories, sorted for "one-hot", the most frequent first for "ordinal".

    Examples
    --------
    >>> Column("city", "one-hot", ("Bern", "Rome", "Wien")).feature_names
    ('city=Bern', 'city=Rome', 'city=Wien')
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; two levels make one feature."""
        if self.kind != "one-hot":
            return (self.name,)
        shown = self.levels[1:] if len(self.levels) == 2 else self.levels
        return tuple(f"{self.name}={level}" for level in shown)

    def encode(self, values: pd.Series) -> FloatArray:
        """Return the features of a column.

        Parameters
        ----------
        values : Series of n values
            The column.

        Returns
        -------
        ndarray of shape (n, n_features)
            Features; NaN where a value is missing or is a category that is not known.

        Raises
        ------
        ValueError
            Where a value is not of the kind of the column.

        Examples
        --------
        >>> import pandas as pd
        >>> Column("ill", "boolean").encode(pd.Series([True, None, False])).ravel()
        array([ 1., nan,  0.])
        """
        if self.kind == "number":
            return self._numbers(values)[:, np.newaxis]
        if self.kind == "boolean":
            return self._booleans(values)[:, np.newaxis]
        if self.kind == "date":
            return self._days(values)[:, np.newaxis]
        pd = import_pandas()
        codes = pd.Index(list(self.levels), dtype=object).get_indexer(as_text(values))
        ranks = np.where(codes < 0, np.nan, codes.astype(np.float64))
        if self.kind == "ordinal":
            return ranks[:, np.newaxis]
        marks = np.eye(len(self.levels))[codes]
        marks[codes < 0] = np.nan
        return marks[:, 1:] if len(self.levels) == 2 else marks

    def _numbers(self, values: pd.Series) -> FloatArray:
        pd = import_pandas()
        kind = pd.api.types.infer_dtype(values, skipna=True)
        if kind in (*_NUMBERS, "boolean", "empty"):
            numbers = _floats(values)
        elif kind in _TEXTS:
            numbers = _floats(pd.to_numeric(as_text(values), errors="coerce"))
            self._check_read(values, numbers, "numbers")
        else:
            self._refuse(values, 0, "numbers")
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            self._refuse(values, infinite[0], "finite numbers")
        return numbers

    def _booleans(self, values: pd.Series) -> FloatArray:
        read = as_text(values).str.strip().str.lower().map(_TRUTHS)
        truths = _floats(read)
        self._check_read(values, truths, "True or False")
        return truths

    def _days(self, values: pd.Series) -> FloatArray:
        pd = import_pandas()
        if pd.api.types.infer_dtype(values, skipna=True) not in (*_DATES, "string", "empty"):
            self._refuse(values, 0, "dates, as 2024-05-31")
        given = values.astype(object).where(values.notna(), None)
        dates = pd.to_datetime(given, format="ISO8601", errors="coerce", utc=True)
        microseconds = dates.dt.tz_localize(None).to_numpy("datetime64[us]")
        days = microseconds.astype(np.int64) / _DAY
        days[np.isnat(microseconds)] = np.nan
        self._check_read(values, days, "dates, as 2024-05-31")
        return np.asarray(days)

    def _check_read(self, values: pd.Series, read: FloatArray, wanted: str) -> None:
        """Refuse a value that is there but was not understood."""
        lost = np.flatnonzero(np.isnan(read) & values.notna().to_numpy())
        if len(lost):
            self._refuse(values, lost[0], wanted)

    def _refuse(self, values: pd.Series, position: Any, wanted: str) -> NoReturn:
        present = np.flatnonzero(values.notna().to_numpy())
        position = position if position in present else present[0]
        raise ValueError(
            f"column {self.name!r:.80} must have {wanted}; got {values.iloc[position]!r:.80} in "
            f"row {position + 1}."
        )


def learn_column(name: str, values: pd.Series, max_one_hot: int) -> Column:
    """Tell how a column of training data becomes features.

    Parameters
    ----------
    name : str
        Name of the column.
    values : Series
        The column, with at least one value that is not missing.
    max_one_hot : int
        Most categories that get a feature each.

    Returns
    -------
    Column
        The way to encode it.

    Raises
    ------
    ValueError
        Where the values are of no use: identifiers, or of a type that is no number, boolean, date
        or text.

    Examples
    --------
    >>> import pandas as pd
    >>> learn_column("size", pd.Series(["S", "M", "M", "L"]), max_one_hot=8).levels
    ('L', 'M', 'S')
    """
    pd = import_pandas()
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "boolean":
        return Column(name, "boolean")
    if kind in _NUMBERS:
        return Column(name, "number")
    if kind in _DATES:
        return Column(name, "date")
    present = values.dropna()
    if kind not in _TEXTS or not _are_scalars(present):
        raise ValueError(
            f"column {name!r:.80} holds values of type {type(present.iloc[0]).__name__}, which are "
            f"no numbers, truths, dates or text: {_leave_out(name)}."
        )
    texts = as_text(present)
    counts = texts.value_counts()
    if len(counts) > max(_IDENTIFIER_LEVELS, _IDENTIFIER_SHARE * len(texts)):
        _check_not_numbers(name, texts)
        raise ValueError(
            f"column {name!r:.80} looks like an identifier, with {len(counts)} different texts in "
            f"{len(texts)} rows: {_leave_out(name)}."
        )
    if len(counts) <= max_one_hot:
        return Column(name, "one-hot", tuple(sorted(counts.index)))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Column(name, "ordinal", tuple(str(text) for text, _ in ranked[:_MOST_LEVELS]))


def as_text(values: pd.Series) -> pd.Series:
    """Return categories as text: the number 3, 3.0 and "3" are the same; missing ones stay so.

    Parameters
    ----------
    values : Series
        Categories.

    Returns
    -------
    Series of objects
        Texts.

    Examples
    --------
    >>> import pandas as pd
    >>> as_text(pd.Series([3.0, None, 4.5])).tolist()
    ['3', nan, '4.5']
    """
    texts: Any = values.astype(object)
    if import_pandas().api.types.infer_dtype(values, skipna=True) != "string":
        texts = texts.map(_text, na_action="ignore").astype(object)
    return texts.where(values.notna(), np.nan)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _floats(values: Any) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(values.astype("Float64").to_numpy(np.float64, na_value=np.nan))


def _are_scalars(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str | bool | int | float | np.generic) for value in values)


def _leave_out(name: str) -> str:
    return f"leave it out, on the command line with --drop {name!r:.80}"


def _check_not_numbers(name: str, texts: pd.Series) -> None:
    """Name the text that stands among numbers, if most of a column are such."""
    pd = import_pandas()
    numbers = pd.to_numeric(texts, errors="coerce")
    odd = texts[numbers.isna()]
    if 0 < len(odd) < len(texts) / 2:
        raise ValueError(
            f"column {name!r:.80} has numbers, but also {odd.iloc[0]!r:.80} in row "
            f"{int(odd.index[0]) + 1}: correct it or leave the cell empty."
        )
