"""JSON as the standard has it, refused before it takes much memory."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.io.budget import Budget, BudgetError
from badacost.io.json_document import parse_json

BUDGET = Budget.of("100 MB")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(VALUES)
def test_values_come_back(value) -> None:
    assert parse_json(json.dumps(value).encode(), BUDGET) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_value_error(data) -> None:
    with suppress(ValueError):
        parse_json(data, BUDGET)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[NaN]", "NaN is not a finite number"),
        ("[1e999]", "1e999 is not a finite number"),
        ("[" * 100_000, "nested too deep|Expecting value"),
    ],
)
def test_what_is_refused(text, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text.encode(), BUDGET)


def test_the_last_of_repeated_keys() -> None:
    assert parse_json(b'{"a": 1, "a": 2}', BUDGET) == {"a": 2}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(dict.fromkeys(map(str, range(20_000)), 0.5)),
        json.dumps([[number / 7] for number in range(20_000)]),
        json.dumps([{"key": str(number)} for number in range(20_000)]),
        json.dumps([number + 0.1 for number in range(50_000)]),
        "[" + "{}," * 20_000 + "{}]",
        "[" + "[]," * 20_000 + "[]]",
        "[" + '"ab",' * 20_000 + "0]",
        "[" + '"\u4e2d",' * 20_000 + "0]",
        '["' + "a" * 10**6 + '\U0001f600"]',
        '["' + "a" * 10**6 + r'\ud83d\ude00"]',
    ],
)
def test_memory_is_estimated_from_above(text) -> None:
    data, peaks = text.encode(), []
    for _ in range(3):  # threads of other tests may take memory meanwhile
        tracemalloc.start()
        parse_json(data, BUDGET)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    peak = min(peaks)
    with pytest.raises(BudgetError, match=r"would need .* MB, limit"):
        parse_json(data, Budget(peak))


def test_quotes_that_do_not_end_are_looked_at_once() -> None:
    with pytest.raises(BudgetError, match="limit 1 MB"):
        parse_json(b'\\"' * 50_000 + b":" * 10**6, Budget(10**6))


def test_records_with_the_same_keys_are_not_estimated_much_too_high() -> None:
    record = (
        '{"id": %d, "image_id": 7, "category_id": 1, "bbox": [0.5, 1.5, 2.5, 3.5], "area": 9.5}'
    )
    data = f"[{','.join(record % number for number in range(20_000))}]".encode()
    tracemalloc.start()
    parse_json(data, BUDGET)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(parse_json(data, Budget(2 * peak))) == 20_000
