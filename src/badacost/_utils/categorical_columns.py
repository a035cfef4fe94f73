"""Categorical columns: which ones they are, which categories they have, and the codes of these.

For trees a category is a code, its position among the known categories of its column. Missing
values, and categories that are not known, are NaN. A number and its text are equal categories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.user_warnings import warn_user
from badacost.io.csv_dialect import as_number

_DTYPES = ("category", "Categorical", "Enum")  # of pandas, and of polars
_NUMBERS, _OBJECTS = "biuf", "OSU"  # kinds of arrays that may have categories
MAX_CATEGORIES = 255  # of a column: a byte, less the code of what is missing
_MAX_CODE = 1023  # of categories that need not be sorted
_MIN_ROWS_WITHOUT_KNOWN = 10  # to warn of: single samples may well have a new category
_TRUTHS = {"True": True, "False": False}


@dataclass(frozen=True, eq=False)
class CategoricalColumns:
    """The known categories of each categorical column, by its position: sorted, numbers first."""

    categories: dict[int, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of_counts(cls, counts: Mapping[int, Counter[Any]]) -> CategoricalColumns:
        """Keep the categories, the 255 most frequent ones of each column if there are more."""
        found = {}
        for position, counted in counts.items():
            by_count = sorted(counted, key=lambda level: (-counted[level], _order(level)))
            found[position] = np.array(sorted(by_count[:MAX_CATEGORIES], key=_order), dtype=object)
        return cls(found)

    def codes(self) -> dict[int, NDArray[np.float64]]:
        """All codes of each categorical column."""
        return {column: np.arange(float(len(known))) for column, known in self.categories.items()}

    @cached_property
    def _code_of(self) -> dict[int, dict[Any, int]]:
        """Code of each category."""
        return {
            column: {level: code for code, level in enumerate(known.tolist())}
            for column, known in self.categories.items()
        }

    def encode(self, X: Any) -> Any:
        """Return samples with codes instead of categories, a data frame as a data frame.

        What does not have the columns is returned as it is, for others to refuse.
        """
        table = _as_table(X) if self.categories else None
        if table is None or table.shape[1] <= max(self.categories):
            return X
        codes = {}
        for position, code_of in self._code_of.items():
            levels, indices = _levels(table, position)
            code = [_code(level, code_of) for level in levels]
            codes[position] = np.array([*code, np.nan], np.float32)[indices]
            if len(indices) >= _MIN_ROWS_WITHOUT_KNOWN and np.isnan(codes[position]).all():
                used = [levels[index] for index in np.unique(indices[indices >= 0])]
                _warn_of_unknown(used, code_of, _name(table, position))
        return _with_columns(table, codes)

    def as_given(self, X: Any, samples: NDArray[Any]) -> NDArray[Any]:
        """Return checked samples with the values of X, not their codes, in categorical columns."""
        if not self.categories:
            return samples
        table, samples = _as_table(X), samples.astype(object)
        for position in self.categories:
            levels, indices = _levels(table, position)
            values = [None if is_missing(level) else level for level in levels]
            samples[:, position] = np.array([*values, None], dtype=object)[indices]
        return samples


def count_categories(
    X: Any, positions: Iterable[int], rows: Any = slice(None)
) -> dict[int, Counter[Any]]:
    """Count the categories of some columns in some rows of X; what is missing does not count."""
    table, counts = _as_table(X), {}
    for position in positions:
        levels, indices = _levels(table, position)
        used = indices[rows]
        n_cells = np.bincount(used[used >= 0], minlength=len(levels))
        counted: Counter[Any] = Counter()
        for level, count in zip(levels, n_cells.tolist(), strict=True):
            if count and not is_missing(level):
                counted[_checked(level, table, position)] += count
        counts[position] = counted
    return counts


def _code(level: Any, code_of: Mapping[Any, int]) -> float:
    """Code of a category, or of the number that it spells, or of its text; NaN if not known."""
    if level in code_of:
        return code_of[level]
    other: Any = None
    if isinstance(level, str):
        other = _TRUTHS.get(level, as_number(level.strip()))
    elif isinstance(level, float) and level.is_integer():
        other = str(int(level))
    elif isinstance(level, int | float | np.number) and not is_missing(level):
        other = str(level)
    return code_of.get(other, np.nan)


def _warn_of_unknown(levels: Iterable[Any], known: Collection[Any], name: str) -> None:
    """Warn of a column that has values, none of which is a known category.

    Where there were more categories than a model keeps, that is no surprise.
    """
    value = next((level for level in levels if not is_missing(level)), None)
    if value is not None and 0 < len(known) < MAX_CATEGORIES:
        warn_user(
            f"No category in column {name} is known to the model, such as {value!r:.80}: all count "
            f"as missing. Write categories as in the training data: {listed(known)}.",
            UserWarning,
        )


def listed(names: Iterable[Any], limit: int = 20) -> str:
    """Names as errors list them: the first ones."""
    first = [f"{name!r:.80}" for name in islice(names, limit + 1)]
    if len(first) > limit:
        first[limit] = "..."
    return ", ".join(first)


def _name(table: Any, position: int) -> str:
    """How messages name a column."""
    return f"{table.columns[position]!r:.80}" if _is_frame(table) else str(position)


def check_categorical_features(given: Any) -> None:
    """Raise unless the parameter `categorical_features` is something that chooses columns."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return
    is_list = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
    items, kinds = given if is_list else [None], (str, bool | np.bool_, Integral)
    found = {next((kind for kind in kinds if isinstance(item, kind)), None) for item in items}
    if None in found or len(found) > 1:
        raise TypeError(
            'categorical_features must be "from_dtype", None, or a list of columns: their names, '
            f"their positions, or True or False for each column; got {given!r:.80}."
        )


def categorical_positions(X: Any, given: Any) -> list[int]:
    """Return the positions of the columns that `categorical_features` chooses, sorted."""
    if given is None:
        return []
    if isinstance(given, str):  # "from_dtype"
        dtypes = X.dtypes if _is_frame(X) else []
        return [i for i, dtype in enumerate(dtypes) if str(dtype).partition("(")[0] in _DTYPES]
    table, items = _as_table(X), list(given)
    if table is None or not items:
        return []
    n_columns = table.shape[1]
    if isinstance(items[0], str):
        names = list(table.columns) if _is_frame(table) else []
        unknown = [name for name in items if name not in names]
        if unknown:
            raise ValueError(
                f"X has no column {unknown[0]!r:.80}, which categorical_features names: there are "
                f"{listed(names) or 'no names, give positions'}."
            )
        return sorted({names.index(name) for name in items})
    is_mask = isinstance(items[0], bool | np.bool_)
    positions = np.flatnonzero(items) if is_mask else np.unique(items)
    fits = len(items) == n_columns if is_mask else 0 <= positions[0] <= positions[-1] < n_columns
    if not fits:
        raise ValueError(
            f"categorical_features does not fit the {n_columns} columns of X: give a flag for each "
            f"column, or positions from 0 to {n_columns - 1}."
        )
    return positions.tolist()


def check_column_names(X: Any) -> None:
    """Raise where several columns of a data frame have one name: models look columns up by it."""
    counts = Counter(X.columns if _is_frame(X) else ())
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"X has several columns named {repeated[0]!r:.80}: rename or drop some.")


def _is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "dtypes") and hasattr(X, "columns") and hasattr(X, "shape")


def _as_table(X: Any) -> Any:
    """X as something that has columns: a data frame or a matrix; None where it has none."""
    if _is_frame(X):
        return X
    array = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    return array if array.ndim == 2 and array.dtype.kind in _NUMBERS + _OBJECTS else None


def _levels(table: Any, position: int) -> tuple[list[Any], NDArray[np.integer]]:
    """Return the different values of a column, and the index of each cell among them.

    Missing cells have the index -1, or that of a missing value.
    """
    if not _is_frame(table):
        column = table[:, position]
    else:
        column = table.iloc[:, position] if hasattr(table, "iloc") else table.to_series(position)
    if str(column.dtype) == "category":
        return list(column.cat.categories), column.cat.codes.to_numpy()
    values = np.asarray(column)
    if values.dtype.kind in _NUMBERS:
        return _levels_of_numbers(values)
    index_of: dict[Any, int] = {}
    cells = values.tolist() if values.dtype.kind in _OBJECTS else values  # dates would be numbers
    try:
        indices = np.fromiter(
            (index_of.setdefault(cell, len(index_of)) for cell in cells), np.intp, len(values)
        )
    except TypeError as error:
        raise ValueError(
            f"column {position} of X has a value that is no category ({error}): convert it."
        ) from error
    return list(index_of), indices


def _levels_of_numbers(values: NDArray[Any]) -> tuple[list[Any], NDArray[np.integer]]:
    """Levels and indices of numbers; small integers from 0 on, such as codes, are not sorted."""
    missing = np.isnan(values)
    codes = np.where(missing, 0, values)
    if ((codes >= 0) & (codes <= _MAX_CODE) & (codes == np.trunc(codes))).all():
        indices = np.where(missing, -1, codes).astype(np.intp)
        return np.arange(indices.max(initial=-1) + 1).astype(values.dtype).tolist(), indices
    levels, indices = np.unique(values, return_inverse=True)
    return levels.tolist(), indices


def is_missing(level: Any) -> bool:
    """Whether a value is one of those that stand for no value."""
    is_nan = isinstance(level, float | np.floating) and np.isnan(level)
    return bool(is_nan) or level is None or type(level).__name__ in ("NAType", "NaTType")


def _checked(level: Any, table: Any, position: int) -> Any:
    """Return a category as a Python object; an error names the types that it may have."""
    if isinstance(level, np.generic) and level.dtype.kind in _NUMBERS + "U":
        level = level.item()
    if not isinstance(level, bool | int | float | str):
        raise TypeError(
            f"The categories of column {_name(table, position)} must be text, numbers or "
            f"booleans; got {level!r:.80} of type {type(level).__name__}: convert the column to "
            "text."
        )
    if isinstance(level, float) and math.isinf(level):
        raise ValueError("X contains infinity: replace such values, by NaN if they are not known.")
    return level


def _order(level: Any) -> tuple[bool, Any]:
    """Sort key of categories: text after numbers."""
    return isinstance(level, str), level


def _with_columns(table: Any, columns: dict[int, NDArray[np.float32]]) -> Any:
    """Return a copy of a table with other columns at some positions."""
    if not _is_frame(table):
        kind = table.dtype.kind
        dtype = object if kind in _OBJECTS else table.dtype if kind == "f" else np.float64
        table = table.astype(dtype)
        for position, codes in columns.items():
            table[:, position] = codes
    elif hasattr(table, "iloc"):
        table = table.copy(deep=False)
        for position, codes in columns.items():
            table.isetitem(position, codes)
    else:
        table = table.with_columns(**{table.columns[j]: codes for j, codes in columns.items()})
    return table
