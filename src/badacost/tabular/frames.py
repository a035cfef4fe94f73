"""What is asked of a data frame before anything else: distinct names, and where rows stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import pandas as pd

_MAX_NAMES_LISTED = 20
PLACES = ("line", "row")
"""Names of an index that holds the position of each row in a file."""
NO_ROWS = "has no rows below the names of its columns: add some"
BYTES_OF_COLUMN = 8000
"""Memory of a column in a data frame, beside that of its cells."""


def refuse_file(path: Path, reason: str) -> NoReturn:
    """Raise an error that names the file."""
    raise ValueError(f"{str(path)!r} {reason}.")


def import_pandas() -> Any:
    """Return pandas, or say how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables need pandas: type pip install "badacost[tables]".') from error
    return pandas


def import_arrow() -> tuple[Any, Any]:
    """Return pyarrow and its compute functions, or say how to install them."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.compute  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('tables need pyarrow: type pip install "badacost[tables]".') from error
    return pyarrow, pyarrow.compute


def as_frame(table: Any) -> pd.DataFrame:
    """Return a table as a data frame of pandas whose columns have distinct names of text.

    The table is a data frame, or has a method ``to_pandas``. An index called "line" or "row", as
    that of `read_table`, is kept; else rows are numbered from 0.
    """
    pd = import_pandas()
    frame = table
    if not isinstance(frame, pd.DataFrame) and hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"a table must be a data frame; got {type(table).__name__}: use pandas.DataFrame or "
            "badacost.tabular.read_table."
        )
    says_where = frame.index.name in PLACES and frame.index.is_unique
    frame = frame.copy(deep=False) if says_where else frame.reset_index(drop=True)
    names = [str(name) for name in frame.columns]
    check_distinct(names, "the table")
    frame.columns = pd.Index(names, dtype=object)
    return frame


def frame_of(columns: Mapping[str, Any], index: pd.Index) -> pd.DataFrame:
    """Return a data frame of arrays, which it shares unless it is wider than long."""
    pd = import_pandas()
    # Each column that is shared takes a kilobyte or more, and some time wherever it is used.
    frame = pd.DataFrame(dict(columns), copy=len(columns) > len(index))
    frame.index = index
    return frame


def as_values(column: Any) -> Any:
    """Return a column of pyarrow as an array of NumPy or pandas that takes little memory."""
    pd, (arrow, _) = import_pandas(), import_arrow()
    types, kind = arrow.types, column.type
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_numpy()
    if types.is_decimal(kind):
        return column.cast(arrow.float64()).to_numpy()
    if types.is_date(kind):
        column = column.cast(arrow.timestamp("ms"))
    elif types.is_time(kind):
        column = column.cast(arrow.string())
    mapper = {kind: pd.BooleanDtype()}.get if types.is_boolean(kind) and column.null_count else None
    return column.to_pandas(types_mapper=mapper).array


def place_of(values: pd.Series, position: int) -> str:
    """Return where a value stands in a column, for messages.

    >>> import pandas as pd
    >>> place_of(pd.Series([5, 6]), 1)
    'row 2'
    >>> place_of(pd.Series([5, 6], index=pd.Index([2, 4], name="line")), 1)
    'line 4'
    """
    index = values.index
    return f"{index.name} {index[position]}" if index.name in PLACES else f"row {position + 1}"


def check_distinct(names: Iterable[str], place: str) -> None:
    """Refuse columns of the same name; `place` is where they are, for the message."""
    name, count = Counter(names).most_common(1)[0] if (names := list(names)) else ("", 1)
    if count > 1:
        raise ValueError(
            f"{place} has more than one column {name!r:.80}: give each a name of its own."
        )


def check_columns(frame: pd.DataFrame, names: Iterable[str], place: str = "the table") -> None:
    """Refuse a table that lacks a column, and suggest a similar name.

    >>> import pandas as pd
    >>> check_columns(pd.DataFrame({"Grade": [1]}), ["grade"])
    Traceback (most recent call last):
        ...
    ValueError: the table has no column 'grade': did you mean 'Grade'?
    """
    known = dict.fromkeys(map(str, frame.columns))
    for name in names:
        if name not in known:
            raise ValueError(f"{place} has no column {name!r:.80}: {suggestion(name, [*known])}")


def suggestion(name: str, known: list[str]) -> str:
    """Return which known name is similar to an unknown one, or which names there are.

    >>> suggestion("wight", ["height", "weight"])
    "did you mean 'weight'?"
    >>> suggestion("x", ["height", "weight"])
    "there are 'height', 'weight'."
    """
    folded = {other.casefold(): other for other in reversed(known)}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r:.80}?"
    listed = ", ".join(f"{other!r:.80}" for other in known[:_MAX_NAMES_LISTED])
    return f"there are {listed}{', ...' * (len(known) > _MAX_NAMES_LISTED)}."
