"""Tables in files: CSV with commas, semicolons or tabs, perhaps compressed, and Parquet.

A file from a user is untrusted: reading ends in a data frame, or in an error that says
what is wrong with which line.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from badacost.io.atomic_file import replaced_file
from badacost.io.budget import Budget, BudgetError
from badacost.io.csv_dialect import without_formula
from badacost.io.user_file import open_regular
from badacost.tabular.frames import NO_ROWS, as_frame, import_arrow, import_pandas, refuse_file

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular.classifier import TableClassifier
    from badacost.tabular.columns import Column

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_KNOWN = ".csv, .tsv, .txt (each also with .gz) or .parquet"


def read_table(
    path: str | os.PathLike[str],
    *,
    like: TableClassifier | Sequence[Column] | None = None,
    text: Sequence[str] = (),
    max_memory: int | str | None = None,
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
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`. Of a file of text these are about four times its
        size, 20 for each cell and 8000 for each column.

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
    path, budget = Path(path), Budget.of(max_memory)
    open_regular(path).close()
    import_pandas(), import_arrow()  # with a remedy where they are missing
    from badacost.tabular.parquet_file import read_parquet
    from badacost.tabular.text_file import read_text

    suffix, is_compressed = _format(path)
    try:
        if suffix in _PARQUET_SUFFIXES:
            frame = read_parquet(path, budget)
        elif suffix:
            known: Any = getattr(getattr(like, "encoder_", None), "columns_", like) or ()
            kinds = {column.name: column.kind for column in known} | dict.fromkeys(text, "text")
            others = "any" if like is None else "text"
            frame = read_text(path, is_compressed, budget, kinds, others)
        else:
            what = "an Excel workbook" if path.suffix == ".xlsx" else "a file of no known kind"
            refuse_file(path, f"is {what}: save the table as {_KNOWN}")
    except BudgetError as error:
        raise ValueError(f"cannot read the table {str(path)!r}: {error}.") from None
    if not len(frame):
        refuse_file(path, NO_ROWS)
    return as_frame(frame)


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
    suffix, is_compressed = _format(path)
    with replaced_file(path) as temporary:
        if suffix in _PARQUET_SUFFIXES:
            import_arrow()
            frame.to_parquet(temporary, engine="pyarrow", index=False)
        else:
            text = to_csv(frame, "," if suffix == ".csv" else "\t").encode()
            temporary.write_bytes(gzip.compress(text, mtime=0) if is_compressed else text)


def check_table_name(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file to write whose suffix is not that of a table."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file.")
    if not _format(path)[0]:
        raise ValueError(f"{str(path)!r} does not say what to write: end its name in {_KNOWN}.")


def _format(path: Path) -> tuple[str, bool]:
    """Return the suffix of a table, empty if it is unknown, and whether .gz follows it."""
    suffix = path.suffix.lower()
    if suffix in _PARQUET_SUFFIXES:
        return suffix, False
    is_compressed = suffix == ".gz"
    if is_compressed:
        suffix = path.with_suffix("").suffix.lower()
    return suffix if suffix in _TEXT_SUFFIXES else "", is_compressed


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
    return without_formula(cell).replace("\r\n", "\n").replace("\r", "\n")
