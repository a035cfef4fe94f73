"""Amounts of money in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost.html_page import check_text

_MAX_DECIMALS = 6
_MAX_CURRENCY_LENGTH = 12


@dataclass(frozen=True)
class Money:
    """How to write amounts: the sign of a currency goes before the number, a word after it.

    Averages have the decimals that give a cost of the size `typical` three digits.

    >>> Money("€").amount(2500), Money("EUR").amount(-0.5), Money(None).amount(1 / 3)
    ('€2,500', '-0.5 EUR', '0.333')
    >>> Money("€", 12.3).rate(-4), Money("EUR", 12.3).between([1, 200])
    ('-€4.0', '1.0 to 200.0 EUR')
    """

    currency: str | None
    typical: float = 1.0

    def amount(self, value: float) -> str:
        """Return a cost or a sum, in its own precision."""
        return self._with_unit(value, number(abs(value)))

    def rate(self, value: float) -> str:
        """Return an average, in the precision of all averages."""
        return self._with_unit(value, self._average(abs(value)))

    def between(self, bounds: Sequence[float] | FloatArray) -> str:
        """Return the two ends of an interval of averages."""
        if self.currency is None or len(self.currency) > 1:
            low = Money(None, self.typical).rate(bounds[0])
        else:
            low = self.rate(bounds[0])
        return f"{low} to {self.rate(bounds[1])}"

    def unit(self, text: str) -> str:
        """Return the name of a quantity with its unit."""
        return text if self.currency is None else f"{text}, in {self.currency}"

    def _average(self, value: float) -> str:
        digits = 2 - int(np.floor(np.log10(self.typical))) if self.typical > 0 else 2
        if digits > _MAX_DECIMALS or value >= 1e15:
            return f"{value:.3g}"
        return f"{value:,.{max(digits, 0)}f}"

    def _with_unit(self, value: float, text: str) -> str:
        sign = "-" if value < 0 and text.strip("0.,") else ""
        if self.currency is None:
            return sign + text
        if len(self.currency) == 1:
            return f"{sign}{self.currency}{text}"
        return f"{sign}{text} {self.currency}"


def number(value: float) -> str:
    """Return a number that is not negative with three digits, or without decimals if it is larger.

    >>> number(1234.5), number(0.12345), number(7.0)
    ('1,234', '0.123', '7')
    """
    return f"{value:,.0f}" if 100 <= value < 1e15 else f"{value:.3g}"


def check_currency(currency: str | None) -> None:
    """Raise unless a currency is a short text or None."""
    if currency is None:
        return
    check_text("currency", currency)
    if len(currency) > _MAX_CURRENCY_LENGTH:
        raise ValueError(
            f"currency {currency!r} is too long: give at most {_MAX_CURRENCY_LENGTH} letters, "
            "as 'EUR'."
        )
