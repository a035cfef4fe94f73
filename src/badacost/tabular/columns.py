"""A column of a table as one feature: a number, a boolean, a date or a category."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask
from badacost._utils.categorical_columns import MAX_CATEGORIES
from badacost.costs.matrix import plain
from badacost.io.csv_dialect import NUMBER, as_number
from badacost.tabular.frames import import_arrow, import_pandas, place_of

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "boolean", "date", "category"]
KINDS: tuple[str, ...] = get_args(Kind)

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("date", "datetime", "datetime64")
_TEXTS = ("string", "categorical", "mixed-integer", "mixed")
_WANTED = {"number": "numbers", "boolean": "True or False", "date": "dates, as 2024-05-31"}
_DAY = 86_400e6  # microseconds
_IDENTIFIER_LEVELS = 20  # fewer distinct texts are never taken for identifiers
_IDENTIFIER_FRACTION = 0.9
MOSTLY = 0.9  # such a fraction of numbers makes a column of numbers
_MAX_ODD_TEXTS = 5  # in a column of numbers; more of them are no marks of missing values
_TRUTHS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
_WORDS_OF_TRUTH = ("true", "false")
_NUMBER = rf"^({NUMBER}|[+-]?(?i:inf|infinity))$"
_TIME = r"[0-9]{2}(:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
_DATE = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_TIME})?"
# What numbers and dates of other countries look like, and how to write them instead.
_FOREIGN = {
    "number": {
        r"[+-]?[0-9]{1,3}(,[0-9]{3})+([.][0-9]*)?|[+-]?[0-9]{1,3}([.][0-9]{3})+,[0-9]*": "1234.5",
        r"[+-]?[0-9]*,[0-9]+": "1.5",
    },
    "date": {
        r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}": "2024-05-31",
    },
}


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
    """How one column of a table becomes a feature.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean", "date", "category"}
        What it holds.
    levels : tuple of str
        Known categories, sorted; the feature is the position of a cell among them.
    missing : tuple of str
        Texts among numbers or dates that stand for no value.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def encode(self, values: pd.Series, cells: DistinctTexts | None = None) -> FloatArray:
        """Return the feature of a column, (n,); `cells` are its texts, if they are known.

        It is NaN where a value is missing or is a category that is not known. A `ColumnError` is
        raised where a value is not of the kind of the column.

        >>> import pandas as pd
        >>> Column("ill", "boolean").encode(pd.Series([True, None, False]))
        array([ 1., nan,  0.])
        """
        feature = _of_dtype(self.kind, values)
        if feature is None:
            cells = cells or distinct_texts(values)
            feature = np.append(self._encode_texts(cells.texts), np.nan)[cells.codes]
            if self.kind != "category":
                stands_for_nothing = np.append(cells.texts.isin(self.missing), True)[cells.codes]
                self._check(values, np.isnan(feature) & ~stands_for_nothing, _WANTED[self.kind])
        if self.kind == "number":
            self._check(values, np.isinf(feature), "finite numbers")
        return feature

    def _encode_texts(self, texts: pd.Index) -> FloatArray:
        if self.kind == "category":
            codes = positions_of(texts, self.levels)
            return np.where(codes < 0, np.nan, codes)
        return _READERS[self.kind](texts)

    def _check(self, values: pd.Series, wrong: Mask, wanted: str) -> None:
        """Refuse the first value that is wrong, if there is one."""
        if wrong.any():
            first = int(wrong.argmax())
            raise ColumnError(
                self.name,
                f"must have {wanted}; got {plain(values.iloc[first])!r:.80} in "
                f"{place_of(values, first)}",
                "correct it or leave the cell empty",
            )


@dataclass(frozen=True, eq=False)
class DistinctTexts:
    """The different texts of a column, stripped, and which of them each cell has, -1 for none."""

    values: pd.Series
    texts: pd.Index
    codes: NDArray[np.integer]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of cells that have each text."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    def fraction(self, wanted: Mask) -> float:
        """Fraction of the cells that have one of some texts."""
        return int(self.counts[wanted].sum()) / max(int(self.counts.sum()), 1)

    def first_of(self, wanted: Mask) -> str:
        """Return the first cell that has one of some texts, and where it stands, for messages."""
        first = int(np.append(wanted, False)[self.codes].argmax())
        return f"{self.texts[self.codes[first]]!r:.80} in {place_of(self.values, first)}"


def kind_of(values: pd.Series) -> str:
    """What pandas finds in a column; of one of strings it would look at each."""
    pd = import_pandas()
    if isinstance(values.dtype, pd.StringDtype):
        return "string"
    return str(pd.api.types.infer_dtype(values, skipna=True))


def holds_text(values: pd.Series) -> bool:
    """Whether the type of a column leaves open what its values are."""
    pd = import_pandas()
    types = pd.api.types
    return bool(
        types.is_object_dtype(values.dtype)
        or types.is_string_dtype(values.dtype)
        or isinstance(values.dtype, pd.CategoricalDtype)
    )


def distinct_texts(values: pd.Series) -> DistinctTexts:
    """Return the texts of a column: the number 3, 3.0 and "3" are the same; blanks are missing."""
    pd = import_pandas()
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, distinct = values.cat.codes.to_numpy(np.intp), values.cat.categories
    else:
        is_mixed = values.dtype == object and pd.api.types.infer_dtype(values) != "string"
        cells = values.map(text_of, na_action="ignore") if is_mixed else values
        codes, distinct = pd.factorize(cells)
    if not len(distinct):
        return DistinctTexts(values, pd.Index([], dtype=object), codes)
    is_text = pd.api.types.is_string_dtype(distinct)
    texts = (distinct if is_text else distinct.map(text_of)).str.strip()
    if texts.dtype == object:  # strings of pandas 3 are Unicode in any case
        for text in texts:
            text.encode()
    if texts.is_unique and "" not in texts:
        return DistinctTexts(values, texts, codes)
    merged, texts = pd.factorize(texts.where(texts != "", None))
    return DistinctTexts(values, texts, np.append(merged, -1)[codes])


def learn_column(name: str, values: pd.Series, cells: DistinctTexts | None = None) -> Column:
    """Return how a column of training data, with at least one value, becomes a feature.

    `cells` are its texts, if they are known.

    A `ColumnError` is raised where the values are of no use: identifiers, numbers or dates in a
    form that is not read, or of a type that is no number, boolean, date or text.

    >>> import pandas as pd
    >>> learn_column("size", pd.Series(["S", "M", "M", "L"])).levels
    ('L', 'M', 'S')
    """
    kind = kind_of(values)
    if kind == "boolean":
        return Column(name, "boolean")
    if kind in _NUMBERS:
        return Column(name, "number")
    if kind in _DATES:
        return Column(name, "date")
    if kind not in _TEXTS or not (kind in ("string", "categorical") or _are_scalars(values)):
        raise ColumnError(
            name,
            f"holds values of type {type(values.dropna().iloc[0]).__name__}, which are no numbers, "
            "booleans, dates or text",
            _leave_out(name),
        )
    cells = cells or distinct_texts(values)
    column = None if kind == "categorical" else _learn_from_text(name, cells)
    return _learn_levels(name, cells) if column is None else column


def _learn_from_text(name: str, cells: DistinctTexts) -> Column | None:
    """Return the column if texts are booleans, numbers or dates, but for a few; None otherwise."""
    if _are_booleans(cells.texts):
        return Column(name, "boolean")
    readable: tuple[Kind, ...] = ("number", "date")
    for kind in readable:
        is_odd = np.isnan(_READERS[kind](cells.texts))
        if is_odd.any():
            _check_not_foreign(name, cells, kind, is_odd)
        if cells.fraction(~is_odd) < MOSTLY:
            continue
        if is_odd.sum() > _MAX_ODD_TEXTS:
            _refuse_odd(name, cells, kind, is_odd)
        return Column(name, kind, missing=tuple(cells.texts[is_odd]))
    return None


def _learn_levels(name: str, cells: DistinctTexts) -> Column:
    """A column of categories, unless there are too many of them."""
    counts = dict(zip(cells.texts, cells.counts.tolist(), strict=True))
    used, n_cells = [text for text, count in counts.items() if count], sum(counts.values())
    if len(used) > max(_IDENTIFIER_LEVELS, _IDENTIFIER_FRACTION * n_cells):
        is_odd = np.isnan(_numbers_in(cells.texts))
        if cells.fraction(is_odd) < 0.5:
            _refuse_odd(name, cells, "number", is_odd)
        raise ColumnError(
            name,
            f"looks like an identifier, with {len(used)} different texts in {n_cells} rows",
            _leave_out(name),
        )
    frequent = sorted(used, key=lambda text: (-counts[text], text))[:MAX_CATEGORIES]
    return Column(name, "category", tuple(sorted(frequent)))


def _check_not_foreign(name: str, cells: DistinctTexts, kind: str, is_odd: Mask) -> None:
    """Refuse numbers and dates as other countries write them, which would become categories."""
    for pattern, ours in _FOREIGN[kind].items():
        found = is_odd & _matches(cells.texts, pattern)
        if found.any() and cells.fraction(found | ~is_odd) >= MOSTLY:
            raise ColumnError(
                name,
                f"has {kind}s as {cells.first_of(found)}, not as {ours}",
                f"rewrite them, or {_leave_out(name)}",
            )


def _refuse_odd(name: str, cells: DistinctTexts, kind: str, is_odd: Mask) -> NoReturn:
    """Name the first text that stands among numbers or dates."""
    others = int(cells.counts[is_odd].sum()) - 1
    more = f" and {others} like it" if others else ""
    raise ColumnError(
        name,
        f"has {kind}s, but also {cells.first_of(is_odd)}{more}",
        f"correct it or leave the cell empty, or {_leave_out(name)}",
    )


def positions_of(texts: pd.Index, levels: Sequence[str]) -> IndexArray:
    """Return which of the levels texts are, -1 for those that are not among them.

    Other ways to write a number or boolean are the same.

    >>> import pandas as pd
    >>> positions_of(pd.Index(["XX", "1", "y", "2.0"]), ["01", "02", "XX"])
    array([ 2,  0, -1,  1])
    """
    place = {level: position for position, level in enumerate(levels)}
    codes = np.array([place.get(text, -1) for text in texts], np.int64)
    lost = np.flatnonzero(codes < 0)
    if len(lost):
        known: dict[Any, int] = {}
        for position, level in enumerate(levels):
            key = _meaning(level)
            known[key] = -1 if key in known else position  # 1 is not told from 1.0 and 01
        codes[lost] = [known.get(_meaning(text), -1) for text in texts[lost]]
    return codes


def _meaning(text: str) -> Any:
    """What is the same for all ways to write a number or boolean."""
    number = as_number(text)
    if number is not None:
        return number
    return text.lower() if text.lower() in _WORDS_OF_TRUTH else text


def text_of(value: Any) -> str:
    """Return the text of a cell; whole numbers have no point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def _of_dtype(kind: str, values: pd.Series) -> FloatArray | None:
    """The feature of values whose dtype is of their kind; None where their texts must be read."""
    pd = import_pandas()
    dtype = values.dtype
    if kind == "date" and pd.api.types.is_datetime64_any_dtype(dtype):
        return _days(values.dt.tz_convert(None) if getattr(dtype, "tz", None) else values)
    is_boolean = pd.api.types.is_bool_dtype(dtype)
    is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    if (kind == "boolean" and is_boolean) or (kind == "number" and is_number):
        return values.to_numpy(np.float64, na_value=np.nan)
    return None


def _matches(texts: pd.Index, pattern: str) -> Mask:
    """Which texts match a pattern; for few of them, pandas would take longer."""
    matches = re.compile(pattern).fullmatch
    return np.array([matches(text) is not None for text in texts], np.bool_)


def _are_booleans(texts: pd.Index) -> bool:
    return len(texts) <= 2**5 and set(texts.str.lower()) <= set(_WORDS_OF_TRUTH)


def _numbers_in(texts: pd.Index) -> FloatArray:
    """Numbers that texts spell, NaN for other texts."""
    arrow, compute = import_arrow()
    cells = arrow.array(texts, arrow.string())
    spelt = compute.match_substring_regex(cells, _NUMBER)
    numbers = compute.if_else(spelt, cells, arrow.scalar(None, arrow.string()))
    return np.array(numbers.cast(arrow.float64()).to_numpy(zero_copy_only=False))


def _booleans_in(texts: pd.Index) -> FloatArray:
    return np.array([_TRUTHS.get(text.lower(), np.nan) for text in texts], np.float64)


def _days_in(texts: pd.Index) -> FloatArray:
    """Days, in UTC, that dates with all their digits spell, NaN for other texts."""
    dates = texts.where(_matches(texts, _DATE), None)
    parsed = import_pandas().to_datetime(dates, format="ISO8601", errors="coerce", utc=True)
    return _days(parsed.tz_localize(None))


_READERS: dict[str, Callable[[pd.Index], FloatArray]] = {
    "number": _numbers_in,
    "boolean": _booleans_in,
    "date": _days_in,
}


def _days(dates: Any) -> FloatArray:
    """Days since 1970, NaN where there is no date."""
    moments = dates.to_numpy("datetime64[us]")
    days = moments.astype(np.int64) / _DAY
    days[np.isnat(moments)] = np.nan
    return np.asarray(days)


def _are_scalars(values: pd.Series) -> bool:
    kinds = str | bool | int | float | np.generic
    return all(isinstance(value, kinds) for value in values.dropna())


def _leave_out(name: str) -> str:
    return f"leave it out, on the command line with --drop {name!r:.80}"
