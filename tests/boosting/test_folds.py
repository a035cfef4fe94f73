"""Folds depend on values only, not on how these are written in bits."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.boosting.folds import mix_columns


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
