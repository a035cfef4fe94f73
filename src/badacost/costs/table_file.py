r"""The file of a cost matrix: a CSV table, first row predictions, first column truths.

::

    truth \ prediction,healthy,sick
    healthy,,200
    sick,5000,

The first cell is free text. Between the cells are commas, semicolons or tabs; numbers have a
decimal point, or between semicolons and tabs a decimal comma. Files are untrusted: an error names
the line, or the truth and the prediction.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from os import PathLike
from typing import Any, TextIO

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost.costs.builders import labelled_costs
from badacost.costs.matrix import (
    as_classes,
    class_labels,
    class_positions,
    given_costs,
    named_classes,
)
from badacost.io.atomic_file import replaced_file
from badacost.io.budget import Budget
from badacost.io.csv_dialect import (
    as_number,
    guess_separator,
    with_decimal_points,
    with_formula,
    without_formula,
)
from badacost.io.user_file import open_regular

_BYTES_OF_CHARACTER = 8
_BYTES_OF = {b",": 200, b";": 200, b"\t": 200, b"\n": 450, b"\r": 450}  # cells and lines
_CORNER = "truth \\ prediction"
_PLAIN = "a number with a decimal point and without thousands separators"


def read_costs(
    path: str | PathLike[str],
    *,
    classes: Iterable[Any] | None = None,
    max_memory: int | str | None = None,
) -> dict[Any, dict[Any, float]]:
    r"""Read a cost matrix from a CSV file.

    The first row names the predictions, the first column the truths, in any order; the first cell
    is free text. Cells are separated by commas, semicolons or tabs; numbers have a decimal point,
    or, but not between commas, all of them a decimal comma.
    The diagonal may be empty. Text is UTF-8, or UTF-16 as spreadsheets write it.

    Parameters
    ----------
    path : str or path-like
        The file.
    classes : iterable of K labels, optional
        The classes that the file must name, no more and no fewer; the result has these labels. By
        default labels are the text of the file. Estimators take the text of numbers for classes
        that are numbers.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, diagonal included: rows are the truth, in the order of the
        file.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it has no table of costs; the message names the line, or the truth and the prediction.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "costs.csv"
    ...     written = path.write_text("truth,ham,spam\nham,,5\nspam,1,\n")
    ...     read_costs(path)
    {'ham': {'ham': 0.0, 'spam': 5.0}, 'spam': {'ham': 1.0, 'spam': 0.0}}
    """
    try:
        labels, matrix = _table(_text_of(path, Budget.of(max_memory)))
        if classes is not None:
            known = class_labels(classes)
            labels = as_classes(labels, known)
            class_positions(labels, known, "the first column")
        return labelled_costs(matrix, labels)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_costs(
    costs: Any, path: str | PathLike[str] | TextIO, *, classes: Iterable[Any] | None = None
) -> None:
    r"""Write a cost matrix to a CSV file that `read_costs` and spreadsheets read.

    Parameters
    ----------
    costs : array-like of shape (K, K), nested mapping or data frame
        ``C[truth, prediction]``: rows are the truth; see `as_cost_matrix`. Written as given,
        diagonal included, every number with all its digits.
    path : str, path-like or text stream
        The file; one that exists is replaced. Or an open stream, as ``sys.stdout``.
    classes : iterable of K labels, optional
        The classes, in the order of the rows of an array, for which it is needed. By default those
        that a mapping or data frame names.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "costs.csv"
    ...     write_costs([[0, 5], [1.5, 0]], path, classes=["ham", "spam"])
    ...     print(path.read_text())
    truth \ prediction,ham,spam
    ham,0,5
    spam,1.5,0
    <BLANKLINE>
    """
    found = named_classes(costs) if classes is None else classes
    if found is None:
        raise ValueError("costs do not name their classes: give classes, in the order of the rows.")
    labels = class_labels(found)
    matrix = given_costs(costs, labels)
    names = class_labels(map(_writable, labels))  # 0 and "0" are two classes, but one text
    rows = [[_CORNER, *names]]
    for name, row in zip(names, matrix.tolist(), strict=True):
        rows.append([name, *(repr(cost).removesuffix(".0") for cost in row)])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if isinstance(path, str | PathLike):
        with replaced_file(path) as temporary:
            temporary.write_bytes(text.getvalue().encode())
    else:
        path.write(text.getvalue())


def _writable(label: Any) -> str:
    """Return the text of a label, which must be read back as it is."""
    name = str(label)
    text = name.encode(errors="replace").decode()
    if not name or name != text.strip():
        raise ValueError(f"label {name!r:.40} cannot be kept in a CSV file: strip or rename it.")
    return without_formula(name)


def _text_of(path: str | PathLike[str], budget: Budget) -> str:
    """Return the text of a file that is not too large."""
    with open_regular(path) as file:
        budget.check(_BYTES_OF_CHARACTER * os.fstat(file.fileno()).st_size)
        data = file.read()
    n_bytes = sum(size * data.count(mark) for mark, size in _BYTES_OF.items())
    budget.check(_BYTES_OF_CHARACTER * len(data) + n_bytes)
    utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8: save it as CSV UTF-8.") from None


def _table(text: str) -> tuple[list[Any], FloatArray]:
    """Return the truths and the costs of a file, with columns in the order of the rows."""
    separator = guess_separator(text)
    (_, (_, *header)), *lines = _lines(text, separator)
    n_columns = max((number for number, label in enumerate(header, 1) if label), default=0)
    predictions = [with_formula(label) for label in header[:n_columns]]
    truths = [with_formula(row[0]) for _, row in lines]
    if "" in truths + predictions:
        raise ValueError("a truth or prediction has no name: give every row and column a label.")
    class_labels(truths, "the first column")
    order = class_positions(predictions, truths, "the first row")
    for line, row in lines:
        if len(row) <= n_columns or any(row[n_columns + 1 :]):
            problem = f"line {line} has {len(row)} cells where the first row has {n_columns + 1}"
            raise ValueError(f"{problem}: give every class a column, and write {_PLAIN}.")
    texts = [cell for _, row in lines for cell in row[1 : n_columns + 1]]
    cells = iter(with_decimal_points(texts, separator))
    matrix = []
    for truth, (line, _) in zip(truths, lines, strict=True):
        matrix.append([_cost(next(cells), line, truth, prediction) for prediction in predictions])
    return truths, np.array(matrix)[:, order]


def _lines(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not blank: their numbers and stripped cells."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(
            f"line {reader.line_num} is not CSV ({error}): check its quotes."
        ) from None
    lines = [(line, cells) for line, cells in rows if any(cells)]
    if len(lines) < 3:
        raise ValueError(f"the file has {len(lines)} rows with text: give a header and 2 others.")
    return lines


def _cost(cell: str, line: int, truth: str, prediction: str) -> float:
    """Return the number in a cell; an empty one is zero on the diagonal."""
    cost = 0.0 if truth == prediction and not cell else as_number(cell)
    if cost is None:
        place = f"truth {truth!r:.40} and prediction {prediction!r:.40} in line {line}"
        wanted = f"give every mistake a cost, and write {_PLAIN}"
        raise ValueError(f"the cost of {place} is {cell!r:.40}: {wanted}.")
    return cost
