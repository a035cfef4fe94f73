"""Rows of the training are counted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from badacost.cost_report.known_rows import count_known
from tests.cost_report.samples import noisy


@given(st.integers(0, 20), st.integers(0, 3))
def test_known_rows_are_counted(n_known, n_changed) -> None:
    X, y = noisy(40)
    X[3, 1] = np.nan
    rows, classes = X[:n_known].copy(), y[:n_known].copy()
    classes[:n_changed] = (classes[:n_changed] + 1) % 3
    assert count_known(rows, classes, X, y) == max(n_known - n_changed, 0)


def test_known_rows_of_text_are_not_counted() -> None:
    classes = np.array([0])
    assert count_known([["a"]], classes, [["a"]], classes) is None
