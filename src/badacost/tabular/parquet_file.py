"""A table in a file of Parquet, whose columns have types already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from badacost.tabular.file_checks import check_size, refuse_file
from badacost.tabular.frames import as_series, check_distinct, import_arrow, import_pandas

if TYPE_CHECKING:
    import pandas as pd

_BUFFER = 2**16
_INDEX_LEVEL = "__index_level_"  # of an index without a name, written by pandas
_ERRORS = (OSError, LookupError, TypeError, NotImplementedError, RuntimeError, ValueError)


def import_parquet() -> Any:
    """Return the part of pyarrow for Parquet, or say how to install it."""
    import_arrow()
    import pyarrow.parquet  # type: ignore[import-untyped]

    return pyarrow.parquet


def read_parquet(path: Path, max_bytes: int) -> pd.DataFrame:
    """Read a file of Parquet; what the reader raises on damaged files is of many kinds."""
    pd, parquet = import_pandas(), import_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            check_distinct(schema.names, repr(str(path)))
            _check_types(path, schema)
            check_size(path, _unpacked_size(file.metadata, schema), max_bytes)
        # Texts stay in dictionaries until it is known how much memory they take.
        texts = [field.name for field in schema if _is_text(field.type)]
        options = {"read_dictionary": texts, "pre_buffer": False, "buffer_size": _BUFFER}
        with parquet.ParquetFile(path, **options) as file:
            table = _read_batches(path, file, max_bytes)
    except _ERRORS as error:
        if type(error) is ValueError:  # our own
            raise
        refuse_file(path, f"is damaged, or not of Parquet ({error}): write it again")
    names, parts, columns = table.column_names, table.columns[::-1], {}
    del table
    for name in names:
        column = parts.pop()  # frees memory as it goes
        if not name.startswith(_INDEX_LEVEL):
            columns[name] = as_series(column.cast("string") if name in texts else column)
    import_arrow()[0].default_memory_pool().release_unused()
    frame = pd.DataFrame(columns, copy=False)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    return frame


def _is_text(kind: Any) -> bool:
    types = import_arrow()[0].types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_types(path: Path, schema: Any) -> None:
    """Refuse columns that are no numbers, booleans, dates or text."""
    types = import_arrow()[0].types
    known = (
        types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_date,
        types.is_timestamp, types.is_time, types.is_null, _is_text,
    )  # fmt: skip
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not any(is_known(kind) for is_known in known):
            refuse_file(
                path,
                f"has values of type {str(field.type)[:80]} in column {field.name!r:.80}: write "
                "the file without it, or with a column of numbers or text for each part",
            )


def _unpacked_size(metadata: Any, schema: Any) -> int:
    """Bytes of all pages or of all rows in memory, without the characters of texts."""
    types = import_arrow()[0].types
    pages = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    kinds = [field.type for field in schema]
    bits = sum(kind.bit_width if types.is_primitive(kind) else 32 for kind in kinds)
    return int(max(pages, metadata.num_rows * bits // 8))


def _read_batches(path: Path, file: Any, max_bytes: int) -> Any:
    """Read a table bit by bit, until it is complete or takes too much memory."""
    arrow, compute = import_arrow()
    batches, size = [], 0
    for batch in file.iter_batches():
        for column in batch.columns:
            size += column.nbytes
            if arrow.types.is_dictionary(column.type) and _is_text(column.type.value_type):
                lengths = compute.binary_length(column.dictionary)
                size += compute.sum(lengths.take(column.indices)).as_py() or 0
        check_size(path, size, max_bytes)
        batches.append(batch)
    table = arrow.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
    return table.unify_dictionaries()
