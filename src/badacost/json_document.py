"""JSON of users, as the standard has it and within a budget.

Parsed JSON can take thirty times the memory of its text: what it would take is estimated from
the number of its commas, colons and brackets before anything is parsed.
"""

from __future__ import annotations

import json
import math
from typing import Any

from badacost.budget import Budget

# Bytes of a key with its place in a dict, of a value in a list, of an empty dict and a list.
_BYTES = {b":": 240, b",": 40, b"{": 240, b"[": 100}


def parse_json(data: bytes, budget: Budget, *, unique_keys: bool = True) -> Any:
    """Return the value of a text in UTF-8, in which no number is NaN or infinite.

    Parameters
    ----------
    data : bytes
        The text, with or without a byte order mark.
    budget : Budget
        What the value may take.
    unique_keys : bool, default=True
        Whether to refuse an object that has a key twice; otherwise the last one counts.

    Returns
    -------
    dict, list, str, int, float, bool or None
        The value.

    Raises
    ------
    ValueError
        Where this is no JSON, in a sentence without the name of the file.
    BudgetError
        Where the value would take too much memory.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5]}', Budget.of("1 MB"))
    {'a': [1, 2.5]}
    >>> parse_json(b'{"a": NaN}', Budget.of("1 MB"))
    Traceback (most recent call last):
        ...
    ValueError: NaN is not a finite number
    """
    budget.check(2 * len(data) + sum(size * data.count(mark) for mark, size in _BYTES.items()))
    try:
        return json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_unique if unique_keys else None,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError as error:
        raise ValueError("its parts are nested too deep") from error


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
