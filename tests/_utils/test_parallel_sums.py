"""Sums whose bits depend neither on the order of the terms nor on their division into parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils import parallel
from badacost._utils.parallel import exact_bincount, exact_sum, split_high_low

TERMS = st.floats(0.0, 1e300) | st.builds(
    math.ldexp, st.floats(0.5, 1.0, exclude_max=True), st.integers(-1074, 990)
)


def terms(min_size: int = 0, max_size: int = 200):
    """Terms that span hundreds of binary orders, or few of them."""
    wide = st.lists(TERMS, min_size=min_size, max_size=max_size)
    narrow = st.lists(st.floats(0.0, 1.0), min_size=min_size, max_size=max_size)
    return (wide | narrow).map(lambda values: np.array(values, np.float64))


def by_cell(cells, values, n_cells: int) -> list[float]:
    return [math.fsum(values[cells == cell]) for cell in range(n_cells)]


@settings(max_examples=120)
@given(terms(), st.randoms(use_true_random=False))
def test_a_sum_does_not_depend_on_the_order(values, random) -> None:
    total = exact_sum(values)
    assert total == pytest.approx(math.fsum(values), rel=1e-15, abs=0.0)
    for _ in range(3):
        order = np.array(random.sample(range(len(values)), len(values)), int)
        assert exact_sum(values[order]) == total
    assert exact_sum(np.sort(values)) == exact_sum(np.sort(values)[::-1]) == total


@settings(max_examples=120)
@given(terms(), st.data())
def test_a_sum_does_not_depend_on_the_parts(values, data) -> None:
    """What `folds` cuts can be summed in parts, and the parts in any order."""
    limits = data.draw(st.lists(st.integers(0, len(values)), max_size=6).map(sorted))
    small = values / 2.0**100  # as folds has no room above the largest
    high, low = split_high_low(small)
    for fold in (high, low):
        parts = [part.sum() for part in np.split(fold, limits)]
        assert sum(parts) == sum(reversed(parts)) == sum(fold.tolist()) == math.fsum(fold)
    assert high.sum() + low.sum() == exact_sum(small)


@settings(max_examples=120)
@given(terms(), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_sums_by_cell_do_not_depend_on_the_order(values, n_cells, seed) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(n_cells, size=len(values)).astype(rng.choice(["u1", "i4", "u4", "i8"]))
    sums = exact_bincount(cells, values, n_cells)
    assert sums.shape == (n_cells,)
    np.testing.assert_allclose(sums, by_cell(cells, values, n_cells), rtol=1e-15, atol=0.0)
    for _ in range(3):
        order = rng.permutation(len(values))
        np.testing.assert_array_equal(exact_bincount(cells[order], values[order], n_cells), sums)


@settings(max_examples=100)
@given(terms(min_size=1), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_sums_by_cell_do_not_depend_on_the_blocks(values, block, seed) -> None:
    cells = np.random.default_rng(seed).integers(5, size=len(values))
    sums = exact_bincount(cells, values, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "ROWS_AT_ONCE", block)
        np.testing.assert_array_equal(exact_bincount(cells, values, 5), sums)


def test_a_faint_cell_keeps_its_digits() -> None:
    """However heavy the others are: a mistake of little weight is a mistake."""
    values = 10.0 ** -np.arange(0.0, 300.0, 5.0)
    cells = np.arange(len(values))
    np.testing.assert_array_equal(exact_bincount(cells, values, len(values)), values)
    twice = exact_bincount(np.tile(cells, 2), np.tile(values, 2), len(values))
    np.testing.assert_array_equal(twice, 2 * values)


@pytest.mark.parametrize("n", [1000, 1 << 17, 400_003])
def test_many_terms(n) -> None:
    rng = np.random.default_rng(n)
    cells = rng.integers(9, size=n)
    for values in (rng.random(n), np.exp(rng.normal(0, 30, n)), np.full(n, 0.1)):
        total, sums = exact_sum(values), exact_bincount(cells, values, 9)
        assert total == pytest.approx(math.fsum(values), rel=1e-15)
        np.testing.assert_allclose(sums, by_cell(cells, values, 9), rtol=1e-15)
        order = rng.permutation(n)
        assert exact_sum(values[order]) == total
        np.testing.assert_array_equal(exact_bincount(cells[order], values[order], 9), sums)


@pytest.mark.parametrize("unit", [2.0**-1074, 2.0**-1000, 1.0, 2.0**1013, 2.0**1014])
def test_terms_at_the_ends_of_the_range(unit) -> None:
    values = unit * np.arange(1, 33.0)
    expected = unit * 528.0
    assert exact_sum(values) == exact_sum(values[::-1]) == expected
    np.testing.assert_array_equal(
        exact_bincount(np.arange(32) % 2, values, 3), [unit * 256.0, unit * 272.0, 0.0]
    )
    assert exact_sum(np.append(values, 0.0)) == expected


def test_nothing_to_add() -> None:
    assert exact_sum(np.empty(0)) == exact_sum(np.zeros(3)) == 0.0
    assert exact_bincount(np.empty(0, int), np.empty(0), 2).tolist() == [0.0, 0.0]
    assert exact_bincount(np.zeros(3, np.uint8), np.zeros(3), 2).tolist() == [0.0, 0.0]
