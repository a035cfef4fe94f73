"""Exact sums on a device have the bytes of those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.exact_sums import exact_bincount, exact_sum, folds, units_of
from badacost.gpu import sums
from tests.gpu.on_cpu import OnCpu, needs_compiler

pytestmark = needs_compiler


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_folded_sums(spread) -> None:
    terms = np.exp(spread * np.random.default_rng(0).normal(size=5000))
    units = units_of(terms.max(), len(terms))
    found = sums.folded_sums(OnCpu(), terms, units)
    np.testing.assert_array_equal(found, [fold.sum() for fold in folds(terms, units)])
    assert found.sum() == exact_sum(terms)


@pytest.mark.parametrize("n_cells", [9, 5000], ids=["shared", "global"])
def test_sums_by_cell(n_cells) -> None:
    rng = np.random.default_rng(1)
    terms = np.exp(20.0 * rng.normal(size=6000))
    cells = rng.integers(n_cells, size=6000).astype(np.int32)
    device = OnCpu()
    largest = sums.bin_maxima(device, cells, terms, n_cells)
    expected = np.zeros(n_cells)
    np.maximum.at(expected, cells, terms)
    np.testing.assert_array_equal(largest, expected)
    found = sums.bin_folded_sums(device, cells, terms, units_of(largest, len(terms)))
    np.testing.assert_array_equal(found.sum(axis=0), exact_bincount(cells, terms, n_cells))
