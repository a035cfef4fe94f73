"""JSON of users, as the standard has it and within a budget.

Parsed JSON can take thirty times the memory of its text: what it would take is estimated from
the number of its commas, colons, quotes and brackets before anything is parsed.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

from badacost.io.budget import Budget

# Bytes of the parser, of a list, of a dict, of an item of the one and of the other, of a number, of
# a text without its characters, and of a key in addition, which the parser keeps as well.
_PARSER, _ITEM, _ENTRY, _KEY = 4000, 9, 40, 75
_LIST, _DICT = sys.getsizeof([]) + 40, sys.getsizeof({}) + 126
_NUMBER, _TEXT = sys.getsizeof(0.5) + 8, sys.getsizeof("\u4e2d") + 10
# One that does not end is the last: looking for its end again and again would take long.
_TEXTS = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"\s*+(:)?|\\?\Z)', re.DOTALL)
_WIDE = re.compile(rb"[\xf0-\xff]"), re.compile(rb"\\u[dD]")  # beyond the first 2**16 characters


class JSONError(ValueError):
    """A text that is no JSON; `line` is where, 0 for none in particular."""

    def __init__(self, reason: str, line: int = 0):
        super().__init__(reason)
        self.line = line


def parse_json(data: bytes, budget: Budget, *, unique_keys: bool = False) -> Any:
    """Return the value of a text in UTF-8, in which no number is NaN or infinite.

    Where an object has a key twice, the last one counts, or it is refused with `unique_keys`.

    Parameters
    ----------
    data : bytes
        The text, with or without a byte order mark.
    budget : Budget
        What the value may take.
    unique_keys : bool, default=False
        Whether to refuse a key that is repeated.

    Returns
    -------
    dict, list, str, int, float, bool or None
        The value.

    Raises
    ------
    JSONError
        Where this is no JSON, with the reason.
    BudgetError
        Where the value would take too much memory.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5]}', Budget.of("1 MB"))
    {'a': [1, 2.5]}
    >>> parse_json(b'{"a": NaN}', Budget.of("1 MB"))
    Traceback (most recent call last):
        ...
    badacost.io.json_document.JSONError: NaN is not a finite number
    """
    budget.check(parsed_size(data, budget.max_memory))
    try:
        text = data.decode("utf-8-sig")
        hook = _unique if unique_keys else None
        return json.loads(text, object_pairs_hook=hook, parse_float=_finite, parse_constant=_finite)
    except UnicodeDecodeError as error:
        raise JSONError("this is not text in UTF-8: convert the file") from error
    except json.JSONDecodeError as error:
        raise JSONError(f"{error.msg}, column {error.colno}", error.lineno) from error
    except RecursionError as error:
        raise JSONError("its parts are nested too deep") from error
    except ValueError as error:  # of _finite, or of an integer with thousands of digits
        raise JSONError(str(error)) from error


def parsed_size(data: bytes, limit: int) -> int:
    """Return how many bytes the value of a text would take, or a number above the limit.

    >>> parsed_size(b'{"a": [1, 2.5]}', 10**9) < 10_000
    True
    """
    width = 4 if any(wide.search(data) for wide in _WIDE) else 2
    if width == 2 and data.isascii() and b"\\u" not in data:
        width = 1
    lists, dicts, commas, keys, quotes = map(data.count, (b"[", b"{", b",", b":", b'"'))
    texts = quotes // 2
    n_bytes = _PARSER + (9 if width == 4 else 2 * width) * len(data)
    n_bytes += _LIST * lists + _DICT * dicts + _ITEM * commas + _ENTRY * keys
    n_bytes += _TEXT * max(texts - keys, 0) + _NUMBER * max(commas + 1 + keys - texts, 0)
    bytes_of_key = _KEY + _TEXT
    if n_bytes + bytes_of_key * keys > limit:  # equal keys are one text
        distinct: set[bytes] = set()
        for text in _TEXTS.finditer(data):
            if text[2]:
                distinct.add(text[1])
                if n_bytes + bytes_of_key * len(distinct) > limit:
                    break
        keys = len(distinct)
    return n_bytes + bytes_of_key * keys


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON as a dict."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key is repeated")
    return result


def _finite(text: str) -> float:
    """Return a number of JSON, which can be too large for a float."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:80]} is not a finite number")
    return number
