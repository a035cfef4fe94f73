r"""The file of a cost matrix: a CSV table, first row predictions, first column truths.

::

    truth \ prediction,healthy,sick
    healthy,,200
    sick,5000,

The first cell is free text. Files are untrusted: an error names the line and the cell.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from os import PathLike
from typing import Any, TextIO

import numpy as np

from badacost.arrays import FloatArray
from badacost.atomic_file import replaced_file
from badacost.budget import Budget, BudgetError
from badacost.costs.builders import labelled_costs
from badacost.costs.matrix import (
    MAX_COST,
    as_classes,
    as_cost_matrix,
    check_unique,
    class_labels,
    costs_as_given,
    listed,
    named_classes,
    remedy_for,
)
from badacost.csv_dialect import (
    SEPARATORS,
    as_number,
    guess_separator,
    with_decimal_points,
    with_formula,
    without_formula,
)
from badacost.user_file import open_regular

_BYTES_OF_CELL = 200
_BYTES_OF_LINE = 450
_BYTES_OF_CHARACTER = 8
_CORNER = "truth \\ prediction"
_MAX_LENGTH_SHOWN = 40


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
        If it has no table of costs; the message names the line and the cell.

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
    budget = Budget.of(max_memory)
    try:
        records = _records(_text_of(path, budget))
        truths, matrix = _table(records)
        labels: list[Any] = truths
        if classes is not None:
            known = class_labels(classes)
            labels = as_classes(truths, known)
            _check_classes(labels, known, records)
        as_cost_matrix(matrix, labels)
    except BudgetError as error:
        raise ValueError(f"cannot read the costs {str(path)!r}: {error}.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return labelled_costs(matrix, labels)


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
    as_cost_matrix(costs, labels)
    names = [_writable(label) for label in labels]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_CORNER, *names])
    for name, row in zip(names, costs_as_given(costs, labels).tolist(), strict=True):
        writer.writerow([name, *(repr(cost).removesuffix(".0") for cost in row)])
    class_labels(names)  # 0 and "0" are two classes, but one text
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
        raise ValueError(
            f"label {_shown(name)} cannot be kept in a CSV file: rename the class: use "
            "valid Unicode text without spaces around it."
        )
    return without_formula(name)


def _shown(text: str) -> str:
    """Return text for a message: in quotes, escaped, and not too long."""
    return repr(text if len(text) <= _MAX_LENGTH_SHOWN else f"{text[:_MAX_LENGTH_SHOWN]}...")


def _text_of(path: str | PathLike[str], budget: Budget) -> str:
    """Return the text of a file that is not too large."""
    with open_regular(path) as file:
        budget.check(_BYTES_OF_CHARACTER * os.fstat(file.fileno()).st_size)
        data = file.read()
    n_cells = max(data.count(separator.encode()) for separator in SEPARATORS)
    n_lines = data.count(b"\n") + data.count(b"\r")
    budget.check(
        _BYTES_OF_CHARACTER * len(data) + _BYTES_OF_CELL * n_cells + _BYTES_OF_LINE * n_lines
    )
    utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8: save it as CSV UTF-8.") from None


def _records(text: str) -> list[tuple[int, list[str]]]:
    """Return line numbers and stripped cells of all rows that are not blank."""
    separator = guess_separator(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    records = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                records.append((reader.line_num, cells))
    except csv.Error as error:
        raise ValueError(
            f"line {reader.line_num} is not CSV ({error}): check its quotation marks."
        ) from None
    prices = [cell for _, (_, *cells) in records[1:] for cell in cells]
    read = iter(with_decimal_points(prices, separator))
    return records[:1] + [
        (line, [truth, *islice(read, len(cells))]) for line, (truth, *cells) in records[1:]
    ]


def _table(records: Sequence[tuple[int, list[str]]]) -> tuple[list[str], FloatArray]:
    """Return the truths and the costs of rows, with columns in the order of the rows."""
    if len(records) < 3:
        raise ValueError(
            f"the file has {len(records)} rows with text: give a row of predictions, and a row "
            "for each class, at least 2."
        )
    (line, (_, *predictions)), *rows = records
    while predictions and not predictions[-1]:
        predictions.pop()
    predictions = [with_formula(label) for label in predictions]
    rows = [(line, [with_formula(truth), *cells]) for line, (truth, *cells) in rows]
    truths = [cells[0] for _, cells in rows]
    across = [(line, k + 2) for k in range(len(predictions))]
    down = [(line, 1) for line, _ in rows]
    _check_labels(predictions, across, "prediction")
    _check_labels(truths, down, "truth")
    _check_partners(predictions, across, "prediction", set(truths))
    _check_partners(truths, down, "truth", set(predictions))
    place_of = {prediction: column for column, prediction in enumerate(predictions)}
    columns, matrix = [place_of[truth] for truth in truths], []
    for line, (truth, *cells) in rows:
        if len(cells) < len(predictions) or any(cells[len(predictions) :]):
            raise ValueError(
                f"line {line} has {len(cells) + 1} cells where the first row has "
                f"{len(predictions) + 1}: give every class a column, and write numbers with a "
                "decimal point and without thousands separators."
            )
        priced = [
            _cost(text, truth, prediction, line, place)
            for place, (text, prediction) in enumerate(zip(cells, predictions, strict=False), 2)
        ]
        matrix.append([priced[column] for column in columns])
    return truths, np.array(matrix)


def _check_labels(names: Sequence[str], places: Sequence[tuple[int, int]], kind: str) -> None:
    """Refuse labels that are empty or repeated, naming line and cell."""
    seen: dict[str, str] = {}
    for name, (line, cell) in zip(names, places, strict=True):
        place = f"line {line}, cell {cell}"
        if not name:
            raise ValueError(f"{place} is empty: name the {kind} there.")
        if name in seen:
            raise ValueError(
                f"{place} repeats the {kind} {_shown(name)} of {seen[name]}: keep one of them."
            )
        seen[name] = place


def _check_partners(
    names: Sequence[str], places: Sequence[tuple[int, int]], kind: str, others: set[str]
) -> None:
    """Refuse a class that has a row and no column, or a column and no row."""
    lacking = "row" if kind == "prediction" else "column"
    for name, (line, cell) in zip(names, places, strict=True):
        if name not in others:
            raise ValueError(
                f"line {line}, cell {cell} has the {kind} {_shown(name)}, which no {lacking} has: "
                "give every class a row and a column, with its name at their beginning."
            )


def _cost(text: str, truth: str, prediction: str, line: int, place: int) -> float:
    """Return the number in a cell; an empty one is zero on the diagonal."""
    cost = as_number(text)
    if cost is not None and 0 <= cost <= MAX_COST:
        return cost
    if not text and truth == prediction:
        return 0.0
    cell = f"line {line}, cell {place} (truth {_shown(truth)}, prediction {_shown(prediction)})"
    if not text:
        raise ValueError(f"{cell} is empty: give every mistake a price.")
    if cost is None:
        raise ValueError(
            f"{cell} is {_shown(text)}: write a number with a decimal point and without "
            "thousands separators."
        )
    raise ValueError(f"{cell} is {_shown(text)}: {remedy_for(cost)}.")


def _check_classes(
    names: Sequence[Any], labels: Sequence[Any], records: Sequence[tuple[int, list[str]]]
) -> None:
    """Refuse a file whose truths are not the classes, one each."""
    known, found = set(labels), set(names)
    for name, (line, cells) in zip(names, records[1:], strict=True):
        if name not in known:
            near = get_close_matches(cells[0], [str(label) for label in labels], n=1)
            raise ValueError(
                f"line {line}, cell 1 has the truth {_shown(cells[0])}, which is not among the "
                f"{listed(labels)}: remove its row and column, or "
                f"{f'write {_shown(near[0])}' if near else 'correct the label'}."
            )
    check_unique(names, "the truths of the file")
    for label in labels:
        if label not in found:
            raise ValueError(f"no row has the truth {label!r}: add a row and a column for it.")
