"""A table in a file of Parquet, whose columns have types already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow  # type: ignore[import-untyped]

from badacost.io.budget import Budget
from badacost.io.parquet_rows import INDEX_LEVEL, ParquetRows, is_text
from badacost.tabular.frames import (
    BYTES_OF_COLUMN,
    as_values,
    check_distinct,
    frame_of,
    refuse_file,
)

_ROWS_AT_ONCE = 65_536


def read_parquet(path: Path, budget: Budget) -> pd.DataFrame:
    """Read a file of Parquet."""
    with ParquetRows(path, budget) as rows:
        budget.check(BYTES_OF_COLUMN * len(rows.schema))
        check_distinct(rows.schema.names, repr(str(path)))
        _check_types(path, rows.schema)
        texts, batches = set(rows.texts), list(rows.batches(_ROWS_AT_ONCE, together=True))
        table = arrow.Table.from_batches(batches) if batches else rows.schema.empty_table()
    del batches
    _check_nulls(table, budget)
    names, parts, n_rows = table.column_names, table.columns[::-1], len(table)
    columns = {}
    del table
    for name in names:
        column = parts.pop()  # frees memory as it goes
        if not name.startswith(INDEX_LEVEL):
            column = column.cast("string") if name in texts else column.unify_dictionaries()
            try:
                columns[name] = as_values(column)
            except (ValueError, LookupError, arrow.ArrowException) as error:  # of time zones
                refuse_file(path, f"has a column {name!r:.80} that cannot be read ({error})")
    arrow.default_memory_pool().release_unused()
    return frame_of(columns, pd.RangeIndex(1, n_rows + 1, name="row"))


def _check_nulls(table: Any, budget: Budget) -> None:
    """Refuse numbers that take too much memory as those that can be missing."""
    n_nullable = sum(column.null_count > 0 for column in table.columns)
    budget.check(table.nbytes + 8 * len(table) * n_nullable)


def _check_types(path: Path, schema: Any) -> None:
    """Refuse columns that are no numbers, booleans, dates or text."""
    types = arrow.types
    known = (
        types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_date,
        types.is_timestamp, types.is_time, types.is_null, is_text,
    )  # fmt: skip
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not any(is_known(kind) for is_known in known):
            refuse_file(
                path,
                f"has values of type {str(field.type)[:80]} in column {field.name!r:.80}: write "
                "the file without it, or with a column of numbers or text for each part",
            )
