"""Numbers as text for people: a few characters, or signed and aligned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def short_number(value: float) -> str:
    """Return a number in about five characters."""
    rounded = float(f"{value:.3g}")
    if 1e4 <= abs(rounded) < 1e15:
        thousands = int(np.log10(abs(rounded)) // 3)
        return f"{rounded / 1000**thousands:.3g}{' kMGT'[thousands]}"
    return f"{value:.4g}" if 1e3 <= abs(rounded) < 1e4 else f"{value:.3g}"


def signed_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with signs and equally many decimals: four digits of the largest of them."""
    largest = max(abs(value) for value in values)
    decimals = max(0, 3 - int(np.floor(np.log10(largest)))) if largest > 0.0 else 0
    return [f"{value:+z,.{decimals}f}" for value in values]
