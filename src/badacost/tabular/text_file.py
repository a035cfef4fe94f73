"""A table in a file of text: pyarrow divides it into cells and tells their types."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow import csv as arrow_csv

from badacost.io.budget import Budget
from badacost.io.csv_dialect import DECIMAL_COMMA, NUMBER, as_number, guess_separator
from badacost.io.user_file import open_regular
from badacost.tabular.columns import MOSTLY
from badacost.tabular.frames import (
    BYTES_OF_COLUMN,
    NO_ROWS,
    as_values,
    check_distinct,
    frame_of,
    refuse_file,
)

# Not "None", which is a class as good as any other.
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_UNCLOSED = "cannot be read from line {} on ({}): look for a quotation mark that is not closed"
_BYTES_OF_CELL = 20  # beside its characters: where it ends in the file, and a number, twice
_COPIES = 4  # of the characters: the file, its cells, texts of Arrow and of pandas
_BYTES_OF_CHARACTER = 20  # of lines that Python divides into cells
_BLOCK = 2**20
_ROWS_OF_BLOCK = 100
_FEW_LINES = 25
_NUMERIC = ("any", "number")  # what is wanted of a column that may have numbers


def read_text(
    path: Path, is_compressed: bool, budget: Budget, kinds: Mapping[str, str], others: str
) -> pd.DataFrame:
    """Read a file of text.

    `kinds` says what is wanted of some columns and `others` of the rest: "any" is what all cells
    are, "number" is numbers or text, and any other kind is text.
    """
    data = _unpacked(path, is_compressed, budget)
    if not data or data.isspace():
        refuse_file(path, "is empty: a table begins with the names of its columns")
    head = _head(data, budget)
    separator = guess_separator(head)
    names = _names(path, head, separator)
    n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if n_lines == 1:
        refuse_file(path, NO_ROWS)
    n_ends = n_lines + data.count(b"\r") - data.count(b"\r\n")  # those of old systems, too
    n_cells = min(n_ends * len(names), data.count(separator.encode()) + n_ends)
    budget.check(_COPIES * len(data) + _BYTES_OF_CELL * n_cells + BYTES_OF_COLUMN * len(names))
    wanted = [kinds.get(name, others) if name else "any" for name in names]
    cells = _cells(path, data, separator, wanted, n_lines, budget)
    check_distinct([name for name in names if name], repr(str(path)))
    index = _lines(path, data, separator, n_lines, cells.num_rows, budget)
    del data
    parts, columns, texts = cells.columns[::-1], {}, []
    del cells
    for number, name in enumerate(names):
        part = parts.pop()  # frees memory as it goes
        values = as_values(_typed(part, separator, wanted[number]))
        if name:
            columns[name] = values
            if part.type == "string":
                texts.append(name)
        elif number or len(names) == 1 or not _counts_rows(values):
            refuse_file(path, f"has no name for column {number + 1}: write one into its first line")
    if separator != ",":
        _check_thousands(path, columns, texts)
    return frame_of(columns, index)


def _check_thousands(path: Path, columns: Mapping[str, Any], texts: Sequence[str]) -> None:
    """Refuse 17.711 where other columns, texts to pyarrow, have decimal commas: it is no 17.7."""
    with_commas, others = [name for name in texts if columns[name].dtype.kind == "f"], set(texts)
    for name, values in columns.items():
        if not with_commas or name in others or values.dtype != np.float64:
            continue
        numbers = values[~np.isnan(values)]
        broken = numbers[numbers != np.floor(numbers)] * 1000
        if (
            len(broken)
            and (abs(numbers) < 1000).all()
            and (abs(broken - broken.round()) < 1e-6).all()
        ):
            refuse_file(
                path,
                f"has decimal commas in column {with_commas[0]!r:.80}, but points in column "
                f"{name!r:.80}, which may stand between thousands: write all numbers alike, with "
                "nothing between thousands",
            )


def _unpacked(path: Path, is_compressed: bool, budget: Budget) -> bytes:
    """Return the bytes of a file of text, of which a table takes several times the memory."""
    unpacked = io.BytesIO()
    try:
        with open_regular(path) as file, gzip.open(file) if is_compressed else file as content:
            if not is_compressed:
                budget.check(_COPIES * os.fstat(file.fileno()).st_size)
            while block := content.read(_BLOCK):
                budget.check(_COPIES * (unpacked.tell() + len(block)), at_least=True)
                unpacked.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        refuse_file(path, f"is not a complete gzip file ({error}): copy or download it again")
    data = unpacked.getvalue()
    if b"\0" in data:
        refuse_file(path, "is not a file of text: save the table as CSV in UTF-8")
    return data.removeprefix(codecs.BOM_UTF8)


def _head(data: bytes, budget: Budget) -> str:
    """Return some lines from the first that is not empty on, fewer of them if they are long."""
    lines, n_bytes = [], 0
    begun = dropwhile(lambda line: not line.strip(b"\r\n"), io.BytesIO(data))
    for line in islice(begun, _FEW_LINES):
        lines.append(line)
        n_bytes += len(line)
        budget.check(_BYTES_OF_CHARACTER * n_bytes)
        if n_bytes > _BLOCK:
            break
    return b"".join(lines).decode(errors="replace")


def _names(path: Path, head: str, separator: str) -> list[str]:
    """Return the names of the columns, in the first line that is not blank."""
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
    try:
        return next([name.strip() for name in row] for row in rows if row)
    except csv.Error as error:
        refuse_file(path, _UNCLOSED.format(1, error))


def _cells(
    path: Path, data: bytes, separator: str, wanted: Sequence[str], n_lines: int, budget: Budget
) -> Any:
    """Return the cells below the names of the columns, as what they are and is wanted."""
    blanks = len(data) - len(data.lstrip(b"\r\n"))
    buffer = arrow.py_buffer(data).slice(blanks)
    has_quotes, has_hexadecimals = b'"' in data, _may_have_hexadecimals(data)
    kinds = {str(number): kind for number, kind in enumerate(wanted)}

    def read(texts: Sequence[str], block_size: int) -> Any:
        return arrow_csv.read_csv(
            buffer,
            arrow_csv.ReadOptions(
                column_names=[*kinds], skip_rows_after_names=1, block_size=block_size
            ),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=has_quotes),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(texts, "string"),
                null_values=[*_MISSING],
                true_values=_TRUE,
                false_values=_FALSE,
                strings_can_be_null=True,
            ),
        )

    texts = [name for name, kind in kinds.items() if kind not in _NUMERIC]
    long = max(_BLOCK, _ROWS_OF_BLOCK * len(data) // n_lines)  # a column of a block takes some room
    for block_size in (min(long, 2**30), max(len(data), 2)):  # a row may be longer than a block
        try:
            table = read(texts, block_size)
            again = [
                name
                for (name, kind), part in zip(kinds.items(), table.columns, strict=True)
                if not _is_sure(part, kind, has_hexadecimals)
            ]
            if not again:
                return table
            del table  # not two of them in memory
            arrow.default_memory_pool().release_unused()
            return read([*texts, *again], block_size)
        except arrow.ArrowInvalid as error:
            reason = str(error)
    has_rows = len(_lines_of_rows(path, data, separator, budget))
    refuse_file(path, _UNCLOSED.format(1, reason) if has_rows else NO_ROWS)


def _may_have_hexadecimals(data: bytes) -> bool:
    """Whether there is 0x or 0X; NumPy compares pairs of bytes faster than `bytes` does."""
    pairs = [np.frombuffer(data, "<u2", (len(data) - start) // 2, start) for start in (0, 1)]
    return any((pair == code).any() for pair in pairs for code in (0x7830, 0x5830))


def _is_sure(cells: Any, wanted: str, has_hexadecimals: bool) -> bool:
    """Whether pyarrow took cells for what they are: not 0x10 for 16, nor -nan for a number.

    Times of the day are text.
    """
    types, kind = arrow.types, cells.type
    if types.is_floating(kind):
        return not compute.any(compute.is_nan(cells)).as_py()
    if types.is_integer(kind):
        return not has_hexadecimals
    is_truth_or_date = types.is_boolean(kind) or types.is_date(kind) or types.is_timestamp(kind)
    return types.is_string(kind) or types.is_null(kind) or (is_truth_or_date and wanted == "any")


def _lines(
    path: Path, data: bytes, separator: str, n_lines: int, n_rows: int, budget: Budget
) -> pd.Index:
    """Return the lines where rows begin."""
    all_closed = b'"' not in data or data.count(b'"') % 2 == 0
    all_end_alike = b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")
    if n_lines == n_rows + 1 and all_closed and all_end_alike:
        return pd.RangeIndex(2, n_rows + 2, name="line")
    lines = _lines_of_rows(path, data, separator, budget)
    if len(lines) != n_rows:
        refuse_file(path, _UNCLOSED.format(1, "cells cannot be told apart"))
    return pd.Index(lines, name="line")


def _lines_of_rows(path: Path, data: bytes, separator: str, budget: Budget) -> NDArray[np.int64]:
    """Return the lines where rows begin, or say which line is no row."""
    for number, line in enumerate(io.BytesIO(data), 1):
        budget.check(_BYTES_OF_CHARACTER * len(line))
        try:
            line.decode()
        except UnicodeDecodeError:
            refuse_file(
                path, f"is not text in UTF-8, in line {number}: save the table as CSV in UTF-8"
            )
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    width, begin, lines = 0, 1, array("q")
    try:
        for row in reader:
            if row and width:
                lines.append(begin)
            width = width or len(row)
            if row and len(row) != width:
                refuse_file(
                    path,
                    f"has {len(row)} cells in line {begin}, where the header has {width}: complete "
                    "that line, or put quotes around text with a separator in it",
                )
            begin = reader.line_num + 1
    except csv.Error as error:
        refuse_file(path, _UNCLOSED.format(begin, error))
    return np.asarray(lines, np.int64)


def _typed(cells: Any, separator: str, wanted: str) -> Any:
    """Return texts without the space around them, as numbers if all are and this is wanted.

    Texts among numbers stay, for a `TableEncoder` to judge.
    """
    if cells.type != arrow.string():
        return cells
    stripped = compute.utf8_trim_whitespace(cells)
    if not stripped.equals(cells):
        absent = compute.is_in(stripped, arrow.array([*_MISSING]))
        cells = compute.if_else(absent, arrow.scalar(None, cells.type), stripped)
    if wanted not in _NUMERIC:
        return cells
    if separator != ",":
        cells = _with_points(cells, wanted)
    if as_number(compute.first(cells).as_py() or "") is not None:
        with suppress(arrow.ArrowInvalid):  # another one is no number
            numbers = cells.cast(arrow.float64())
            if not _is_sure(numbers, wanted, False):
                return cells
            with suppress(arrow.ArrowInvalid):
                return cells.cast(arrow.int64())
            return numbers
    return cells


def _with_points(cells: Any, wanted: str) -> Any:
    """Return texts with decimal points in the place of decimal commas.

    If "number" is wanted, this is done cell by cell; otherwise only where it makes nearly all cells
    numbers, and no other cell has a comma that is none, or a decimal point.
    """
    is_decimal = compute.match_substring_regex(cells, f"^{DECIMAL_COMMA}$")
    if not compute.any(is_decimal).as_py():
        return cells
    pointed = compute.replace_substring_regex(cells, f"^{DECIMAL_COMMA}$", r"\1.\2")
    if wanted == "number":
        return pointed
    others = compute.xor(is_decimal, compute.match_substring(cells, ","))
    points = compute.match_substring_regex(cells, r"[0-9]\.[0-9]")
    if compute.any(compute.or_(others, points)).as_py():
        return cells
    spelt = compute.mean(compute.match_substring_regex(pointed, f"^{NUMBER}$")).as_py()
    return pointed if spelt >= MOSTLY else cells


def _counts_rows(values: Any) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return values.dtype == np.int64 and any(
        np.array_equal(values, np.arange(first, first + len(values))) for first in (0, 1)
    )
