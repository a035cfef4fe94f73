"""Dialects of CSV: the separator of cells, decimal points or commas, and text like formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

SEPARATORS = ",;\t"
_LINES_LOOKED_AT = 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Pattern of a number with a decimal point, matched in linear time."""
_NUMBER = re.compile(NUMBER)
DECIMAL_COMMA = r"([+-]?[0-9]*),([0-9]+([eE][+-]?[0-9]+)?)"
"""Pattern of a number with a decimal comma, which is between the first two groups."""
_DECIMAL_COMMA = re.compile(DECIMAL_COMMA)
_DECIMAL_POINT = re.compile(r"[0-9]\.[0-9]")


def guess_separator(text: str) -> str:
    r"""Return what separates the cells of a file: a comma, a semicolon or a tab.

    It is the one for which all of the first lines have the same number of cells, more than one;
    if there is none, the one for which the first line has the largest number of cells.

    >>> guess_separator("name, title;age\nCurie;66\n")
    ';'
    """

    def rank(separator: str) -> tuple[bool, list[int]]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        widths = []
        with suppress(csv.Error):  # reported when the file is read
            for row in islice(rows, _LINES_LOOKED_AT):
                if any(map(str.strip, row)):
                    widths.append(len(row))
        return len(set(widths)) == 1 and widths[0] > 1, widths[:1]

    return max(SEPARATORS, key=rank)


def with_decimal_points(cells: Sequence[str], separator: str) -> list[str]:
    """Return cells that belong together with decimal points, where commas can only be decimal ones.

    They stay as they are if commas separate the cells, if a comma is anything but the only one in a
    number, or if other numbers have points.

    >>> with_decimal_points(["5,5", "12"], ";")
    ['5.5', '12']
    >>> with_decimal_points(["5,5", "1,000.5"], ";")
    ['5,5', '1,000.5']
    """
    with_comma = [cell for cell in cells if "," in cell]
    are_decimal = separator != "," and all(map(_DECIMAL_COMMA.fullmatch, with_comma))
    if not are_decimal or any(map(_DECIMAL_POINT.search, cells)):
        return list(cells)
    return [cell.replace(",", ".") for cell in cells]


def as_number(text: str) -> float | None:
    """Return a number written with a decimal point, None for any other text."""
    return float(text) if _NUMBER.fullmatch(text) else None


def without_formula(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula: with an apostrophe before it.

    Text that has an apostrophe before a formula already gets another, so that no two texts are
    written alike.

    >>> [without_formula(text) for text in ("=A1", "'=A1", "-3", "a=b")]
    ["'=A1", "''=A1", '-3', 'a=b']
    """
    is_marked = text.lstrip("'").startswith(_FORMULA) and as_number(text) is None
    return f"'{text}" if is_marked else text


def with_formula(text: str) -> str:
    """Return the text that `without_formula` was given.

    >>> with_formula("'=A1"), with_formula("''=A1"), with_formula("'tis")
    ('=A1', "'=A1", "'tis")
    """
    is_marked = text.startswith("'") and text.lstrip("'").startswith(_FORMULA)
    return text[1:] if is_marked else text
