"""Folds depend on values only, not on how these are written in bits."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.boosting.folds import RowHashes, mix_columns, value_ranges, varying_columns


def mixed(values, dtype) -> np.ndarray:
    return mix_columns([np.array(values, dtype)], len(values), 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zero_and_missing_values_have_one_sign(dtype) -> None:
    either = mixed([0.0, -0.0, np.nan, -np.nan, 1.0, -1.0], dtype)
    assert either[0] == either[1]
    assert either[2] == either[3]
    assert len(set(either.tolist())) == 4


def test_values_are_mixed_whatever_their_type() -> None:
    whole = mixed([0, 1, 200], np.uint8)
    np.testing.assert_array_equal(whole, mixed([0, 1, 200], np.float64))
    # Folds of saved models are drawn again on a warm start: these stay as they are.
    expected = [9011901354094150333, 2999595858575803069, 6751938770431165117]
    np.testing.assert_array_equal(whole, np.array(expected, np.uint64))


@pytest.mark.parametrize("constant", [3.0, -0.0, np.nan])
def test_constant_columns_do_not_count(constant) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[4, 1] = np.nan
    wider = np.column_stack([X[:, :1], np.full(20, constant), X[:, 1:]])
    expected = mix_columns(X.T, 20, 3)
    np.testing.assert_array_equal(RowHashes(3).of(wider), expected)
    np.testing.assert_array_equal(RowHashes(3).of(X), expected)


def test_columns_vary_over_all_blocks() -> None:
    """The second is constant within each of them."""
    blocks = [np.array([[1.0, 0.0, 2.0]] * 3), np.array([[1.0, np.nan, 2.0], [1.0, np.nan, 5.0]])]
    empty = np.empty((0, 3))
    assert varying_columns(map(value_ranges, [empty, *blocks])) == [1, 2]
