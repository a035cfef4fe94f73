"""Tests of numbers as text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.numbers import short_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.33333, "0.333"),
        (17, "17"),
        (999.64, "999.6"),
        (-999.96, "-1000"),
        (1234.4, "1234"),
        (9999.7, "10k"),
        (12345, "12.3k"),
        (999_999, "1M"),
        (1e6, "1M"),
        (-4.56e9, "-4.56G"),
        (1e15, "1e+15"),
        (1e-7, "1e-07"),
    ],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


@settings(max_examples=100)
@given(st.floats(-1e300, 1e300))
def test_short_numbers_are_short_and_right(value):
    text = short_number(value)
    assert len(text) <= 10
    for suffix, power in zip("kMGT", ("e3", "e6", "e9", "e12"), strict=True):
        text = text.replace(suffix, power)
    assert float(text) == pytest.approx(value, rel=6e-3, abs=0.0)
