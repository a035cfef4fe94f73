"""Prices for each sample: reading them, and the rows that training needs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from badacost import BAdaCostClassifier
from badacost.costs.sample_costs import check_sample_cost, mistake_costs

ROWS = np.array([[0.0, 5, 1], [2, 0, 3]])
CLASSES = ["low", "mid", "top"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_named(frame) -> None:
    columns = {"top": ROWS[:, 2], "mid": ROWS[:, 1], "low": ROWS[:, 0], "more": [1, 1]}
    np.testing.assert_array_equal(check_sample_cost(frame(columns), CLASSES, 2), ROWS)
    with pytest.raises(ValueError, match="no column for class 'best': add it"):
        check_sample_cost(frame(columns), ["low", "best"], 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ROWS[:1], r"shape \(1, 3\): give a row of 3 prices for each of the 2 samples"),
        (ROWS[:, :2], r"shape \(2, 2\)"),
        (ROWS[0], r"shape \(3,\)"),
        (3.0, r"shape \(\)"),
        ([], r"shape \(0,\)"),
        (np.zeros((2, 3, 2)), r"shape \(2, 3, 2\)"),
        (ROWS - 1, "sample 0 and prediction 'low' is -1.0: replace it by a number from 0 to"),
        ([[0, 1, 2], [0, np.nan, 2]], "sample 1 and prediction 'mid' is nan"),
        (ROWS * 1e301, "from 0 to 1e\\+300"),
    ],
)
def test_what_is_refused(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_sample_cost(given, CLASSES, 2)


@pytest.mark.parametrize(
    "given", ["text", {"a": 1}, csr_array(ROWS), ROWS + 0j, [[1, [2]], [1, 2]], [["a"] * 3] * 2]
)
def test_what_is_no_array_of_numbers(given) -> None:
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"dense array of real numbers; got {kind}: give a row"):
        check_sample_cost(given, CLASSES, 2)


ALL = np.ones(4, dtype=bool)
prices = arrays(np.float64, (4, 3), elements=st.floats(0, 1e6))


@given(prices, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_being_right_is_free(rows, y) -> None:
    """Whatever stands in its place; a matrix for each sample says the same."""
    rows_before = rows.copy()
    found = mistake_costs(rows, np.array(y), ALL)
    np.testing.assert_array_equal(rows, rows_before)
    assert not found[np.arange(4), y].any()
    wrong = np.arange(3) != np.array(y)[:, np.newaxis]
    np.testing.assert_array_equal(found[wrong], rows[wrong])
    matrices = np.where(np.eye(3, dtype=bool), 0.0, rows[:, np.newaxis, :])
    np.testing.assert_array_equal(mistake_costs(matrices, np.array(y), ALL), found)
    np.testing.assert_allclose(mistake_costs(matrices + 1, np.array(y), ALL), found, atol=1e-9)


def test_being_right_must_not_cost_more_than_a_mistake() -> None:
    matrices = np.array([[[0.0, 1], [1, 0]], [[0, 1], [1, 2]]])
    with pytest.raises(ValueError, match="costs more than a mistake for sample 1: lower"):
        mistake_costs(matrices, np.array([1, 1]), np.array([True, True]))


def test_samples_are_numbered_as_given() -> None:
    """Also where some have no weight, and so no part in the fit."""
    matrices = np.array([[[0.0, 1], [1, 0]], [[0, 1], [1, 2]]])[[0, 0, 0, 1]]
    kept = np.array([False, True, False, True])
    with pytest.raises(ValueError, match="for sample 3: lower"):
        mistake_costs(matrices, np.array([1, 1]), kept)
    with pytest.raises(ValueError, match="for sample 3: lower"):
        BAdaCostClassifier().fit(
            np.eye(4), [0, 1, 0, 1], sample_weight=[0, 1, 1, 1], sample_cost=matrices
        )
