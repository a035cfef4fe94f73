"""Tables in files: CSV with commas, semicolons or tabs, perhaps compressed, and Parquet.

A file from a user is untrusted: reading ends in a data frame, or in an error that says
what is wrong with which line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from badacost.atomic_file import replaced_file
from badacost.csv_dialect import DECIMAL_COMMA, NUMBER, as_number, guess_separator
from badacost.tabular.columns import MOSTLY, typed_by_texts
from badacost.tabular.frames import as_frame, check_distinct, import_arrow, import_pandas

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular.classifier import TableClassifier
    from badacost.tabular.columns import Column

MAX_BYTES = 2**31
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_KNOWN = ".csv, .tsv, .txt (each also with .gz) or .parquet"
# Not "None", which is a class as good as any other.
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
_NO_ROWS = "has no rows below the names of its columns: add some"
_UNCLOSED = "cannot be read from line {} on ({}): look for a quotation mark that is not closed"
_BYTES_OF_CELL = 16  # in memory, beside its characters: where a text ends, and a number
_BLOCK = 2**20
_BUFFER = 2**16
_FEW_LINES = 25
_NUMERIC = ("any", "number")  # what is wanted of a column that may have numbers
_INDEX_LEVEL = "__index_level_"  # of an index without a name, written by pandas
_PARQUET_ERRORS = (
    OSError, LookupError, TypeError, NotImplementedError, RuntimeError, ValueError
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def read_table(
    path: str | os.PathLike[str],
    *,
    like: TableClassifier | Sequence[Column] | None = None,
    text: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read a table from a file.

    Parameters
    ----------
    path : str or path-like
        A file of text in UTF-8, with the names of the columns in its first line and commas,
        semicolons or tabs between cells (.csv, .tsv or .txt, also .csv.gz and so on), or a file of
        Parquet (.parquet, .pq).
    like : TableClassifier, sequence of Column or None, default=None
        The model that the table is for, or the columns of its encoder. Cells are read as what its
        training data held: in a column of categories 01 stays 01, even if this file has only
        numbers there. Columns that the model does not know stay text. None looks at all cells of a
        column to tell what they are.
    text : sequence of str, default=()
        Columns whose cells stay text.
    max_bytes : int, default=2**31
        Refuse a table that would take more bytes in memory. Of a file of text these are about
        twice its size and 16 for each cell.

    Returns
    -------
    DataFrame
        Its columns; the index has the line of the file, or the row of Parquet, counted from 1.
        In a file of text, columns are numbers, booleans or dates if all of their cells are, else
        text without the space around it. Empty cells, NA, N/A, NaN, null and ? are missing values,
        and between semicolons or tabs 1,5 is 1.5. A column without a name at the left that only
        counts the rows is left out.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where there is no such file.
    ValueError
        Where the file is no table; the message names the line.
    ImportError
        Where pandas or pyarrow is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from badacost.tabular import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "patients.csv")
    ...     _ = path.write_text("age;dose\n61;1,5\n48;\n")
    ...     read_table(path).loc[2].to_dict()
    {'age': 61.0, 'dose': 1.5}
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    is_compressed = suffixes[-1:] == [".gz"]
    kind = suffixes[-2:-1] if is_compressed else suffixes[-1:]
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check its name and folder.")
    if not path.is_file():
        _refuse(path, "is not a regular file: copy the table into one")
    _check_size(path, path.stat().st_size, max_bytes)
    if not is_compressed and kind and kind[0] in _PARQUET_SUFFIXES:
        frame = _read_parquet(path, max_bytes)
    elif kind and kind[0] in _TEXT_SUFFIXES:
        frame = _read_text(path, is_compressed, max_bytes, like, text)
    else:
        _refuse(path, f"is of no known kind: save the table as {_KNOWN}")
    if not len(frame):
        _refuse(path, _NO_ROWS)
    return frame


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table to a file; an existing one is replaced only once the new one is complete.

    In files of text, an apostrophe is put before texts that begin with =, +, -, @, a tab or a
    carriage return and are no numbers, and before such names of columns: a spreadsheet would
    take them for formulae. `read_table` does not take it away again. Carriage returns in texts
    become line feeds.

    Parameters
    ----------
    frame : DataFrame
        The table; its index is not written.
    path : str or path-like
        Where to write; the suffix says how: .csv, .tsv, .txt (tabs), these with .gz, or .parquet.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from badacost.tabular import read_table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "doses.parquet")
    ...     write_table(pd.DataFrame({"dose": [1.5, 2.0]}), path)
    ...     read_table(path)["dose"].tolist()
    [1.5, 2.0]
    """
    path = Path(path)
    check_table_name(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist: create it first.")
    with replaced_file(path) as temporary:
        if path.suffix.lower() in _PARQUET_SUFFIXES:
            _import_parquet()
            frame.to_parquet(temporary, engine="pyarrow", index=False)
        else:
            is_compressed = path.suffix.lower() == ".gz"
            kind = path.with_suffix("").suffix if is_compressed else path.suffix
            text = to_csv(frame, "," if kind.lower() == ".csv" else "\t").encode()
            temporary.write_bytes(gzip.compress(text, mtime=0) if is_compressed else text)


def check_table_name(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file to write whose suffix is not that of a table."""
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file.")
    if suffix in _PARQUET_SUFFIXES:
        return
    if (path.with_suffix("").suffix.lower() if suffix == ".gz" else suffix) not in _TEXT_SUFFIXES:
        raise ValueError(f"{str(path)!r} does not say what to write: end its name in {_KNOWN}.")


def to_csv(frame: pd.DataFrame, separator: str = ",") -> str:
    r"""Return a table as the text of a CSV file, the names of the columns first.

    Texts that a spreadsheet would take for formulae begin with an apostrophe, see `write_table`.

    >>> import pandas as pd
    >>> to_csv(pd.DataFrame({"dose": [1.5, 2.0], "note": ["-3", "=A1"]}))
    "dose,note\n1.5,-3\n2.0,'=A1\n"
    """
    pd = import_pandas()
    harmless = frame.rename(columns=_harmless)
    for number, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            cells = harmless.iloc[:, number].astype(object)
            harmless.isetitem(number, cells.map(_harmless, na_action="ignore").array)
    return str(harmless.to_csv(index=False, sep=separator, lineterminator="\n"))


def _harmless(cell: Any) -> Any:
    """Return a cell that is no formula, and whose lines end as those of the file."""
    if not isinstance(cell, str):
        return cell
    is_formula = cell.startswith(_FORMULA) and as_number(cell) is None
    return ("'" * is_formula + cell).replace("\r\n", "\n").replace("\r", "\n")


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ValueError(f"{str(path)!r} {reason}.")


def _import_parquet() -> Any:
    import_arrow()
    import pyarrow.parquet  # type: ignore[import-untyped]

    return pyarrow.parquet


# Parquet: columns have types already.


def _read_parquet(path: Path, max_bytes: int) -> pd.DataFrame:
    """Read a file of Parquet; what the reader raises on damaged files is of many kinds."""
    pd, parquet = import_pandas(), _import_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            check_distinct(schema.names, repr(str(path)))
            _check_types(path, schema)
            _check_size(path, _unpacked_size(file.metadata, schema), max_bytes)
        # Texts stay in dictionaries until it is known how much memory they take.
        texts = [field.name for field in schema if _is_text(field.type)]
        options = {"read_dictionary": texts, "pre_buffer": False, "buffer_size": _BUFFER}
        with parquet.ParquetFile(path, **options) as file:
            table = _read_batches(path, file, max_bytes)
    except _PARQUET_ERRORS as error:
        if type(error) is ValueError:  # our own
            raise
        _refuse(path, f"is damaged, or not of Parquet ({error}): write it again")
    names, parts, columns = table.column_names, table.columns[::-1], {}
    del table
    for name in names:
        column = parts.pop()  # frees memory as it goes
        if not name.startswith(_INDEX_LEVEL):
            columns[name] = _series(column.cast("string") if name in texts else column)
    import_arrow()[0].default_memory_pool().release_unused()
    frame = pd.DataFrame(columns, copy=False)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    return as_frame(frame)


def _is_text(kind: Any) -> bool:
    types = import_arrow()[0].types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_types(path: Path, schema: Any) -> None:
    """Refuse columns that are no numbers, booleans, dates or text."""
    types = import_arrow()[0].types
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
            _refuse(
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


def _check_size(path: Path, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        _refuse(
            path,
            f"would take {size} bytes or more in memory, and {max_bytes} are allowed: divide it, "
            "or raise max_bytes of read_table",
        )


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
        _check_size(path, size, max_bytes)
        batches.append(batch)
    table = arrow.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
    return table.unify_dictionaries()


def _series(column: Any) -> pd.Series:
    """A column of pandas, of a type that takes little memory."""
    pd, (arrow, _) = import_pandas(), import_arrow()
    types, kind = arrow.types, column.type
    if types.is_decimal(kind):
        column = column.cast(arrow.float64())
    elif types.is_date(kind):
        column = column.cast(arrow.timestamp("ms"))
    elif types.is_time(kind):
        column = column.cast(arrow.string())
    if types.is_boolean(kind) and column.null_count:
        return column.to_pandas(types_mapper={kind: pd.BooleanDtype()}.get)
    return column.to_pandas()


# Text: pyarrow divides it into cells, and casts those of numbers.


def _read_text(
    path: Path, is_compressed: bool, max_bytes: int, like: Any, text: Sequence[str]
) -> pd.DataFrame:
    """Read a file of text; the arguments are those of `read_table`."""
    pd = import_pandas()
    data = _unpacked(path, is_compressed, max_bytes)
    if not data or data.isspace():
        _refuse(path, "is empty: a table begins with the names of its columns")
    head = _some_lines(data)
    separator = guess_separator(head)
    names = _names(path, head, separator)
    n_lines = _count(data, b"\n") + (not data.endswith(b"\n"))
    _check_size(path, 2 * len(data) + _BYTES_OF_CELL * n_lines * len(names), max_bytes)
    known = like.encoder_.columns_ if hasattr(like, "encoder_") else like or ()
    kinds = {column.name: column.kind for column in known} | dict.fromkeys(text, "text")
    others = "any" if like is None else "text"
    wanted = [kinds.get(name, others) if name else "any" for name in names]
    samples = _samples(data, separator, len(names))
    cells = _cells(path, data, separator, list(map(_guessed_type, samples, wanted)))
    if not cells.num_rows:
        _refuse(path, _NO_ROWS)
    check_distinct([name for name in names if name], repr(str(path)))
    index = _lines(path, data, separator, n_lines, cells.num_rows)
    columns = {}
    for number, name in enumerate(names):
        values = _typed(cells[number], samples[number], separator, wanted[number])
        if name:
            columns[name] = values
        elif number or len(names) == 1 or not _counts_rows(values):
            _refuse(path, f"has no name for column {number + 1}: write one into its first line")
    frame = pd.DataFrame(columns, copy=False)
    frame.index = index
    return as_frame(frame)


def _unpacked(path: Path, is_compressed: bool, max_bytes: int) -> bytes:
    """Return the bytes of a file of text."""
    try:
        with gzip.open(path, "rb") if is_compressed else open(path, "rb") as file:
            n_bytes = max_bytes // 2 if is_compressed else path.stat().st_size
            data: bytes = file.read(n_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        _refuse(path, f"is not a complete gzip file ({error}): copy or download it again")
    _check_size(path, 2 * len(data), max_bytes)
    if _count(data, b"\0"):
        _refuse(path, "is not a file of text: save the table as CSV in UTF-8")
    return data.removeprefix(codecs.BOM_UTF8)


def _count(data: bytes, character: bytes) -> int:
    """Count a character; NumPy is several times faster than `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord(character)))


def _some_lines(data: bytes, start: int = 0) -> str:
    """A few lines from a place on."""
    end = start - 1
    for _ in range(_FEW_LINES):
        end = data.find(b"\n", end + 1)
        if end < 0:
            return data[start:].decode(errors="replace")
    return data[start:end].decode(errors="replace")


def _names(path: Path, head: str, separator: str) -> list[str]:
    """Return the names of the columns, in the first line that is not blank."""
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
    try:
        return next([name.strip() for name in row] for row in rows if row)
    except csv.Error as error:
        _refuse(path, _UNCLOSED.format(1, error))


def _samples(data: bytes, separator: str, n_columns: int) -> list[list[str]]:
    """Return a few cells of each column, from the beginning, the middle and the end of a file."""
    rows: list[list[str]] = []
    data = data.lstrip(b"\r\n")  # blank lines above the names
    for share in (0.0, 0.5, 0.95):
        lines = io.StringIO(_some_lines(data, int(share * len(data))), newline="")
        with suppress(csv.Error):  # reported when the whole file is read
            rows += list(csv.reader(lines, delimiter=separator))[1:-1]
    whole = [row for row in rows if len(row) == n_columns]
    return [[row[number] for row in whole] for number in range(n_columns)]


def _guessed_type(sample: list[str], wanted: str) -> str:
    """What the cells of a column can be read as, most likely."""
    present = [cell for cell in sample if cell not in _MISSING]
    is_text = wanted not in _NUMERIC or any(as_number(cell) is None for cell in present)
    if is_text or not present:
        return "string"
    return "int64" if all(cell.removeprefix("-").isdigit() for cell in present) else "float64"


def _cells(path: Path, data: bytes, separator: str, types: list[str]) -> Any:
    """Return the cells below the names of the columns, as texts where a guess of types is wrong."""
    arrow, _ = import_arrow()
    from pyarrow import csv as arrow_csv

    n_quotes, names = _count(data, b'"'), [str(number) for number in range(len(types))]

    def read(types: list[str], block_size: int = _BLOCK) -> Any:
        return arrow_csv.read_csv(
            arrow.py_buffer(data.lstrip(b"\r\n")),
            arrow_csv.ReadOptions(
                column_names=names, skip_rows_after_names=1, block_size=block_size
            ),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=n_quotes > 0),
            arrow_csv.ConvertOptions(
                column_types=dict(zip(names, types, strict=True)),
                null_values=[*_MISSING],
                strings_can_be_null=True,
            ),
        )

    texts = ["string"] * len(types)
    try:
        table = read(types)
        spelt_nan = (_has_nan(column) for column in table.columns)
        table = read(texts) if any(spelt_nan) else table
    except arrow.ArrowInvalid:
        try:
            table = read(texts, max(len(data), 2))  # a row may be longer than a block
        except arrow.ArrowInvalid as error:
            has_rows = _lines_of_rows(path, data, separator)
            _refuse(path, _UNCLOSED.format(1, error) if has_rows else _NO_ROWS)
    if n_quotes % 2:
        _lines_of_rows(path, data, separator)
    return table


def _has_nan(numbers: Any) -> bool:
    """Tell whether a cell spells a number that is none, such as -nan."""
    arrow, compute = import_arrow()
    return numbers.type == arrow.float64() and math.isnan(compute.sum(numbers).as_py() or 0.0)


def _lines(path: Path, data: bytes, separator: str, n_lines: int, n_rows: int) -> pd.Index:
    """Return the lines where rows begin."""
    pd = import_pandas()
    n_returns = _count(data, b"\r")
    if n_lines == n_rows + 1 and (not n_returns or n_returns == data.count(b"\r\n")):
        return pd.RangeIndex(2, n_rows + 2, name="line")
    lines = _lines_of_rows(path, data, separator)
    if len(lines) != n_rows:
        _refuse(path, _UNCLOSED.format(1, "cells cannot be told apart"))
    return pd.Index(lines, name="line")


def _lines_of_rows(path: Path, data: bytes, separator: str) -> list[int]:
    """Return the lines where rows begin, or say which line is no row."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        _refuse(path, f"is not text in UTF-8, in line {line}: save the table as CSV in UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    width, begin, lines = 0, 1, []
    try:
        for row in reader:
            if row and width:
                lines.append(begin)
            width = width or len(row)
            if row and len(row) != width:
                _refuse(
                    path,
                    f"has {len(row)} cells in line {begin}, where the header has {width}: complete "
                    "that line, or put quotes around text with a separator in it",
                )
            begin = reader.line_num + 1
    except csv.Error as error:
        _refuse(path, _UNCLOSED.format(begin, error))
    return lines


def _typed(cells: Any, sample: list[str], separator: str, wanted: str) -> pd.Series:
    """Return a column as numbers, booleans or dates if all of its cells are, if this is wanted.

    Texts among numbers stay, for a `TableEncoder` to judge. If "number" is wanted, decimal commas
    become points cell by cell; otherwise only where that makes nearly all cells numbers.
    """
    arrow, compute = import_arrow()
    if cells.type != arrow.string():
        return cells.to_pandas()
    stripped = compute.utf8_trim_whitespace(cells)
    n_bytes = [compute.sum(compute.binary_length(texts)) for texts in (cells, stripped)]
    if n_bytes[0] != n_bytes[1]:
        absent = compute.is_in(stripped, arrow.array([*_MISSING]))
        cells = compute.if_else(absent, arrow.scalar(None, cells.type), stripped)
    may_be_numbers = separator != "," or all(
        as_number(cell.strip()) is not None for cell in sample if cell.strip() not in _MISSING
    )
    if wanted in _NUMERIC and may_be_numbers:
        pointed = cells
        if separator != ",":
            pointed = _with_points(cells, only_if_safe=wanted == "any")
        numbers = _cast(pointed)
        if numbers is not None:
            return numbers.to_pandas()
        spelt = compute.mean(compute.match_substring_regex(pointed, f"^{NUMBER}$")).as_py()
        if wanted == "number" or (spelt is not None and spelt >= MOSTLY):
            cells = pointed
    values = cells.to_pandas()
    return typed_by_texts(values) if wanted == "any" else values


def _cast(cells: Any) -> Any:
    """Return texts as numbers, whole ones if all are; None where one is no number."""
    arrow, compute = import_arrow()
    if compute.any(compute.match_substring(cells, "x", ignore_case=True)).as_py():
        return None  # 0x10, which pyarrow takes for 16
    for kind in (arrow.int64(), arrow.float64()):
        with suppress(arrow.ArrowInvalid):
            numbers = cells.cast(kind)
            return None if _has_nan(numbers) else numbers
    return None


def _with_points(cells: Any, *, only_if_safe: bool) -> Any:
    """Return texts with decimal points in the place of decimal commas.

    It is not safe if another cell has a comma that is none, or a decimal point.
    """
    _, compute = import_arrow()
    if only_if_safe:
        others = compute.and_(
            compute.match_substring(cells, ","),
            compute.invert(compute.match_substring_regex(cells, f"^{DECIMAL_COMMA}$")),
        )
        points = compute.match_substring_regex(cells, r"[0-9]\.[0-9]")
        if compute.any(compute.or_(others, points)).as_py():
            return cells
    return compute.replace_substring_regex(cells, f"^{DECIMAL_COMMA}$", r"\1.\2")


def _counts_rows(values: pd.Series) -> bool:
    """Tell whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    numbers = values.to_numpy()
    return numbers.dtype == np.int64 and any(
        np.array_equal(numbers, np.arange(first, first + len(numbers))) for first in (0, 1)
    )
