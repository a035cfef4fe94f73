"""A column of a table as features: a number, a boolean, a date or a category."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np

from badacost.arrays import FloatArray, IndexArray, Mask
from badacost.costs.matrix import plain
from badacost.csv_dialect import as_number
from badacost.tabular.frames import import_pandas, place_of

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "boolean", "date", "one-hot", "ordinal"]
KINDS: tuple[str, ...] = get_args(Kind)

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("date", "datetime", "datetime64")
_TEXTS = ("string", "categorical", "mixed-integer", "mixed")
_WANTED = {
    "number": "numbers",
    "boolean": "True or False",
    "date": "dates, as 2024-05-31",
}
_DAY = 86_400e6  # microseconds
_MAX_LEVELS = 1_000  # of a category; the rest are taken for missing
_IDENTIFIER_LEVELS = 20  # fewer distinct texts are never taken for identifiers
_IDENTIFIER_SHARE = 0.9
_MOSTLY = 0.9  # such a share of numbers makes a column of numbers
_MAX_ODD_TEXTS = 5  # in a column of numbers; more of them are no marks of missing values
_TRUTHS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
_WORDS_OF_TRUTH = ("true", "false")
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
_DATE = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_TIME})?"
_FOREIGN = (
    (
        "number",
        r"[+-]?[0-9]{1,3}(,[0-9]{3})+([.][0-9]*)?|[+-]?[0-9]{1,3}([.][0-9]{3})+,[0-9]*",
        "1234.5",
    ),
    (
        "number",
        r"[+-]?[0-9]*,[0-9]+",
        "1.5",
    ),
    (
        "date",
        r"[0-9]{1,2}([./-])[0-9]{1,2}[./-][0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}",
        "2024-05-31",
    ),
)


class ColumnError(ValueError):
    """A column that cannot be used as it is: the reason, to be read after its name, and a remedy.

    >>> print(ColumnError("age", "has texts", "correct them"))
    column 'age' has texts: correct them.
    """

    def __init__(self, name: str, reason: str, remedy: str):
        super().__init__(f"column {name!r:.80} {reason}: {remedy}.")
        self.name, self.reason = name, reason


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
    missing : tuple of str
        Texts among numbers or dates that stand for no value.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; two levels make one feature."""
        if self.kind != "one-hot":
            return (self.name,)
        shown = self.levels[1:] if len(self.levels) == 2 else self.levels
        return tuple(f"{self.name}={level}" for level in shown)

    def encode(self, values: pd.Series) -> FloatArray:
        """Return the features of a column, (n, n_features).

        They are NaN where a value is missing or is a category that is not known. A `ColumnError` is
        raised where a value is not of the kind of the column.

        >>> import pandas as pd
        >>> Column("ill", "boolean").encode(pd.Series([True, None, False])).ravel()
        array([ 1., nan,  0.])
        """
        if not values.notna().any():
            return np.full((len(values), len(self.feature_names)), np.nan)
        if self.missing:
            values = values.mask(as_text(values).isin(self.missing))
        if self.kind == "number":
            return self._numbers(values)[:, np.newaxis]
        if self.kind == "boolean":
            truths = _truths(as_text(values))
            self._check_read(values, truths)
            return truths[:, np.newaxis]
        if self.kind == "date":
            return self._days(values)[:, np.newaxis]
        codes = positions_of(as_text(values), self.levels)
        ranks = np.where(codes < 0, np.nan, codes.astype(np.float64))
        if self.kind == "ordinal":
            return ranks[:, np.newaxis]
        marks = np.eye(len(self.levels))[codes]
        marks[codes < 0] = np.nan
        return marks[:, 1:] if len(self.levels) == 2 else marks

    def _numbers(self, values: pd.Series) -> FloatArray:
        kind = import_pandas().api.types.infer_dtype(values, skipna=True)
        if kind in (*_NUMBERS, "boolean", "empty"):
            numbers = _floats(values)
        elif kind in _TEXTS:
            numbers = _numbers_in(as_text(values))
            self._check_read(values, numbers)
        else:
            self._refuse(values, values.notna().to_numpy(), _WANTED["number"])
        infinite = np.isinf(numbers)
        if infinite.any():
            self._refuse(values, infinite, "finite numbers")
        return numbers

    def _days(self, values: pd.Series) -> FloatArray:
        kind = import_pandas().api.types.infer_dtype(values, skipna=True)
        if kind not in (*_DATES, "string", "empty"):
            self._refuse(values, values.notna().to_numpy(), _WANTED["date"])
        days = _days_in(values)
        self._check_read(values, days)
        return days

    def _check_read(self, values: pd.Series, read: FloatArray) -> None:
        """Refuse a value that is there but was not understood."""
        lost = np.isnan(read) & values.notna().to_numpy()
        if lost.any():
            self._refuse(values, lost, _WANTED[self.kind])

    def _refuse(self, values: pd.Series, wrong: Mask, wanted: str) -> NoReturn:
        first = int(np.flatnonzero(wrong)[0])
        raise ColumnError(
            self.name,
            f"must have {wanted}; got {plain(values.iloc[first])!r:.80} in "
            f"{place_of(values, first)}",
            "correct it or leave the cell empty",
        )


def learn_column(name: str, values: pd.Series, max_one_hot: int) -> Column:
    """Tell how a column of training data, with at least one value, becomes features.

    At most `max_one_hot` categories get a feature each. A `ColumnError` is raised where the values
    are of no use: identifiers, numbers or dates in a form that is not read, or of a type that is no
    number, boolean, date or text.

    >>> import pandas as pd
    >>> learn_column("size", pd.Series(["S", "M", "M", "L"]), max_one_hot=8).levels
    ('L', 'M', 'S')
    """
    kind = import_pandas().api.types.infer_dtype(values, skipna=True)
    if kind == "boolean":
        return Column(name, "boolean")
    if kind in _NUMBERS:
        return Column(name, "number")
    if kind in _DATES:
        return Column(name, "date")
    present = values.dropna()
    if kind not in _TEXTS or not (kind == "string" or _are_scalars(present)):
        raise ColumnError(
            name,
            f"holds values of type {type(present.iloc[0]).__name__}, which are no numbers, truths, "
            "dates or text",
            _leave_out(name),
        )
    texts = as_text(present)
    column = None if kind == "categorical" else _learn_from_text(name, texts)
    return _learn_levels(name, texts, max_one_hot) if column is None else column


def _learn_from_text(name: str, texts: pd.Series) -> Column | None:
    """Tell whether texts are truths, numbers or dates, but for a few; None for categories."""
    if all(text.strip().lower() in _WORDS_OF_TRUTH for text in texts):
        return Column(name, "boolean")
    readers: tuple[tuple[Kind, Any], ...] = (("number", _numbers_in), ("date", _dates_in))
    for kind, read in readers:
        is_odd = np.isnan(read(texts))
        if is_odd.any():
            _check_not_foreign(name, texts, kind, is_odd)
        if (~is_odd).mean() < _MOSTLY:
            continue
        odd = tuple(str(text) for text in texts[is_odd].unique())
        if len(odd) > _MAX_ODD_TEXTS:
            _refuse_odd(name, texts, kind, is_odd)
        return Column(name, kind, missing=odd)
    return None


def _learn_levels(name: str, texts: pd.Series, max_one_hot: int) -> Column:
    """A column of categories, unless there are too many of them."""
    counts = texts.value_counts()
    if len(counts) > max(_IDENTIFIER_LEVELS, _IDENTIFIER_SHARE * len(texts)):
        is_odd = np.isnan(_numbers_in(texts))
        if is_odd.sum() < len(texts) / 2:
            _refuse_odd(name, texts, "number", is_odd)
        raise ColumnError(
            name,
            f"looks like an identifier, with {len(counts)} different texts in {len(texts)} rows",
            _leave_out(name),
        )
    if len(counts) <= max_one_hot:
        return Column(name, "one-hot", tuple(sorted(counts.index)))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Column(name, "ordinal", tuple(str(text) for text, _ in ranked[:_MAX_LEVELS]))


def _check_not_foreign(name: str, texts: pd.Series, kind: str, is_odd: Mask) -> None:
    """Refuse numbers and dates as other countries write them, which would become categories."""
    for of_kind, pattern, ours in _FOREIGN:
        if kind != of_kind:
            continue
        found = is_odd & texts.str.strip().str.fullmatch(pattern).to_numpy(np.bool_)
        if found.any() and (found | ~is_odd).mean() >= _MOSTLY:
            first = int(np.flatnonzero(found)[0])
            raise ColumnError(
                name,
                f"has {kind}s as {texts.iloc[first]!r:.40} in {place_of(texts, first)}, not as "
                f"{ours}",
                f"rewrite them, or {_leave_out(name)}",
            )


def _refuse_odd(name: str, texts: pd.Series, kind: str, is_odd: Mask) -> NoReturn:
    """Name the first text that stands among numbers or dates."""
    first = int(np.flatnonzero(is_odd)[0])
    others = int(is_odd.sum()) - 1
    raise ColumnError(
        name,
        f"has {kind}s, but also {texts.iloc[first]!r:.80} in {place_of(texts, first)}"
        f"{f' and {others} like it' if others else ''}",
        f"correct it or leave the cell empty, or {_leave_out(name)}",
    )


def positions_of(texts: pd.Series, levels: Sequence[str]) -> IndexArray:
    """Return which of the levels texts are, -1 for what is missing or not among them.

    Other ways to write a number or truth are the same.

    >>> import pandas as pd
    >>> positions_of(pd.Series(["XX", "1", None, "y", "2.0"]), ["01", "02", "XX"])
    array([ 2,  0, -1, -1,  1])
    """
    pd = import_pandas()
    codes = np.asarray(pd.Index(list(levels), dtype=object).get_indexer(texts), np.int64)
    lost = (codes < 0) & texts.notna().to_numpy()
    if lost.any():
        known: dict[Any, int] = {}
        for position, level in enumerate(levels):
            key = _meaning(level)
            known[key] = -1 if key in known else position  # 1 is not told from 1.0 and 01
        codes[lost] = [known.get(_meaning(text), -1) for text in texts[lost]]
    return codes


def _meaning(text: str) -> Any:
    """What is the same for all ways to write a number or truth."""
    stripped = text.strip()
    number = as_number(stripped)
    if number is not None:
        return number
    return stripped.lower() if stripped.lower() in _WORDS_OF_TRUTH else stripped


def as_text(values: pd.Series) -> pd.Series:
    """Return categories as text: the number 3, 3.0 and "3" are the same; missing ones stay so.

    >>> import pandas as pd
    >>> as_text(pd.Series([3.0, None, 4.5])).tolist()
    ['3', nan, '4.5']
    """
    texts: Any = values.astype(object)
    if import_pandas().api.types.infer_dtype(values, skipna=True) != "string":
        texts = texts.map(_text, na_action="ignore").astype(object)
    return texts.where(values.notna(), np.nan)


def without_blanks(values: pd.Series) -> pd.Series:
    """Return a column with missing values in the place of blank texts."""
    pd = import_pandas()
    if not (pd.api.types.is_string_dtype(values) or values.dtype == object):
        return values
    is_blank = np.array([isinstance(value, str) and not value.strip() for value in values], bool)
    return values.mask(is_blank) if is_blank.any() else values


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def _numbers_in(texts: pd.Series) -> FloatArray:
    return _floats(import_pandas().to_numeric(texts, errors="coerce"))


def _truths(texts: pd.Series) -> FloatArray:
    return _floats(texts.str.strip().str.lower().map(_TRUTHS))


def _dates_in(texts: pd.Series) -> FloatArray:
    """Days since 1970 of texts that are dates with all their digits."""
    return _days_in(texts.where(texts.str.strip().str.fullmatch(_DATE)))


def _days_in(values: pd.Series) -> FloatArray:
    pd = import_pandas()
    given = values.astype(object).where(values.notna(), None)
    dates = pd.to_datetime(given, format="ISO8601", errors="coerce", utc=True)
    microseconds = dates.dt.tz_localize(None).to_numpy("datetime64[us]")
    days = microseconds.astype(np.int64) / _DAY
    days[np.isnat(microseconds)] = np.nan
    return np.asarray(days)


def _floats(values: Any) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(values.astype("Float64").to_numpy(np.float64, na_value=np.nan))


def _are_scalars(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str | bool | int | float | np.generic) for value in values)


def _leave_out(name: str) -> str:
    return f"leave it out, on the command line with --drop {name!r:.80}"
