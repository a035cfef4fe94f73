"""Amounts in words are short, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.cost_report.money import Money, check_currency


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.sampled_from([None, "€", "EUR"]))
def test_any_amount(value, typical, currency) -> None:
    money = Money(currency, typical)
    for text in (money.amount(value), money.rate(value), money.between([value, value])):
        assert len(text) < 80
        assert not text.startswith("--")


def test_currencies() -> None:
    for currency in (None, "", "€", "12 letters ok"[:12]):
        check_currency(currency)
    with pytest.raises(ValueError, match="at most 12 letters"):
        check_currency("a" * 13)
    with pytest.raises(TypeError, match="currency must be a str; got int"):
        check_currency(3)
