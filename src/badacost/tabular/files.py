"""Tables in files: CSV with commas, semicolons or tabs, perhaps compressed, and Parquet.

A file from a user is untrusted: reading ends in a data frame, or in an error that says
what is wrong with which line.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from badacost.atomic_file import replaced_file
from badacost.csv_dialect import guess_separator, with_decimal_points
from badacost.tabular.frames import as_frame, check_distinct, import_pandas

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 2**31
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_KNOWN = ".csv, .tsv, .txt (each also with .gz) or .parquet"
# Not "None", which is a class as good as any other.
_MISSING = frozenset(["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"])
TAKEN_FOR_MISSING = "taken for missing"
"""Attribute of a table that was read: by column, the first text that stands for no value."""
_NO_ROWS = "has no rows below the names of its columns: add some"


def read_table(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    r"""Read a table from a file.

    Parameters
    ----------
    path : str or path-like
        A file of text in UTF-8, with the names of the columns in its first line and commas,
        semicolons or tabs between cells (.csv, .tsv or .txt, also .csv.gz and so on), or a file of
        Parquet (.parquet, .pq).
    max_bytes : int, default=2**31
        Refuse a file that is larger, compressed or not.

    Returns
    -------
    DataFrame
        Its columns; the index has the line of the file, or the row of Parquet, counted from 1.
        Cells of a file of text stay text, without the space around them: what a column holds, a
        `TableEncoder` decides once, in training. Empty cells, NA, N/A, NaN, null and ? are missing
        values, and between semicolons or tabs 1,5 becomes 1.5. A column without a name at the left
        that only counts the rows is left out.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where there is no such file.
    ValueError
        Where the file is no table; the message names the line.
    ImportError
        Where pandas, or pyarrow for Parquet, is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from badacost.tabular import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "patients.csv")
    ...     _ = path.write_text("age;dose\n61;1,5\n48;\n")
    ...     read_table(path).loc[2].to_dict()
    {'age': '61', 'dose': '1.5'}
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
    if path.stat().st_size > max_bytes:
        _refuse(path, f"is larger than {max_bytes} bytes: divide it")
    if not is_compressed and kind and kind[0] in _PARQUET_SUFFIXES:
        frame = _read_parquet(path, max_bytes)
    elif kind and kind[0] in _TEXT_SUFFIXES:
        frame = _read_text(path, is_compressed, max_bytes)
    else:
        _refuse(path, f"is of no known kind: save the table as {_KNOWN}")
    if not len(frame):
        _refuse(path, _NO_ROWS)
    return frame


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table to a file; an existing one is replaced only once the new one is complete.

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

    >>> import pandas as pd
    >>> to_csv(pd.DataFrame({"dose": [1.5, 2.0]}))
    'dose\n1.5\n2.0\n'
    """
    return str(frame.to_csv(index=False, sep=separator, lineterminator="\n"))


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ValueError(f"{str(path)!r} {reason}.")


def _import_parquet() -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('Parquet needs pyarrow: type pip install "badacost[tables]".') from error
    return pyarrow.parquet


def _read_parquet(path: Path, max_bytes: int) -> pd.DataFrame:
    """Read a file of Parquet; what the reader raises on damaged files is of many kinds."""
    parquet = _import_parquet()
    import_pandas()
    try:
        with parquet.ParquetFile(path) as file:
            groups = range(file.metadata.num_row_groups)
            size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
            if size > max_bytes:
                _refuse(path, f"unpacks to {size} bytes, more than {max_bytes}: divide it")
            check_distinct(file.schema_arrow.names, repr(str(path)))
            frame = file.read().to_pandas()
    except (OSError, LookupError, TypeError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{str(path)!r} is damaged, or not of Parquet ({error}).") from error
    except ValueError as error:
        if type(error) is ValueError:  # our own
            raise
        raise ValueError(f"{str(path)!r} is damaged, or not of Parquet ({error}).") from error
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index() if named else frame
    frame.index = import_pandas().RangeIndex(1, len(frame) + 1, name="row")
    return as_frame(frame)


def _read_text(path: Path, is_compressed: bool, max_bytes: int) -> pd.DataFrame:
    """Read a file of text; cells stay text, since one file cannot tell what a column holds."""
    pd = import_pandas()
    text = _decoded(path, is_compressed, max_bytes)
    if not text.strip():
        _refuse(path, "is empty: a table begins with the names of its columns")
    separator = guess_separator(text)
    names, lines, rows = _cells(path, text, separator)
    check_distinct([name for name in names if name], repr(str(path)))
    columns = [with_decimal_points(cells, separator) for cells in zip(*rows, strict=True)]
    if not names[0] and len(names) > 1 and _counts_rows(columns[0]):
        names, columns = names[1:], columns[1:]
    if "" in names:
        number = names.index("") + 1
        _refuse(path, f"has no name for column {number}: write one into its first line")
    frame = pd.DataFrame(
        {
            name: pd.Series([None if cell in _MISSING else cell for cell in cells], dtype=object)
            for name, cells in zip(names, columns, strict=True)
        }
    )
    frame.index = pd.Index(lines, name="line")
    first = {
        name: next((cell for cell in cells if cell and cell in _MISSING), None)
        for name, cells in zip(names, columns, strict=True)
    }
    frame.attrs[TAKEN_FOR_MISSING] = {name: cell for name, cell in first.items() if cell}
    return as_frame(frame)


def _decoded(path: Path, is_compressed: bool, max_bytes: int) -> str:
    """Return the text of a file."""
    try:
        with gzip.open(path, "rb") if is_compressed else open(path, "rb") as file:
            data = file.read(max_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{str(path)!r} is not a complete gzip file ({error}).") from error
    if len(data) > max_bytes:
        _refuse(path, f"unpacks to more than {max_bytes} bytes: divide it")
    if b"\0" in data:
        _refuse(path, "is not a file of text: save the table as CSV in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{str(path)!r} is not text in UTF-8, in line {line}: save the table as CSV in UTF-8."
        ) from error


def _cells(path: Path, text: str, separator: str) -> tuple[list[str], list[int], list[list[str]]]:
    """Return the names of the columns, and the lines and cells of the rows, one for each name."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] = []
    lines: list[int] = []
    rows: list[list[str]] = []
    begin = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not names:
                names = cells
            elif cells:
                if len(cells) != len(names):
                    _refuse(
                        path,
                        f"has {len(cells)} cells in line {begin}, where the header has "
                        f"{len(names)}: complete that line, or put quotes around text with a "
                        "separator in it",
                    )
                lines.append(begin)
                rows.append(cells)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{str(path)!r} cannot be read from line {begin} on ({error}): look for a quotation "
            "mark that is not closed."
        ) from error
    if not rows:
        _refuse(path, _NO_ROWS)
    return names, lines, rows


def _counts_rows(cells: list[str]) -> bool:
    """Tell whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(
        all(cell == str(number) for number, cell in enumerate(cells, first)) for first in (0, 1)
    )
