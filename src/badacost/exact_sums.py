"""Sums that do not depend on the order of their terms, nor on how these are divided into parts.

A number is cut into two: a multiple of a coarse quantum and a multiple of a fine one, both powers
of two. Within each of the two, sums are exact in double precision, whatever their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost.arrays import FloatArray, Labels

_BLOCK = 65_536  # terms that are worked on together
_HUGE = 2.0**900  # numbers above are scaled down, since a sum of quanta would overflow
_SCALE = 2.0**-100

Units = tuple[Any, Any]


def units_of(largest: Any, n_terms: int) -> Units:
    """Powers of two above the sum of all terms, and above that of what rounding leaves of them."""
    n_bits = n_terms.bit_length()
    coarse = np.ldexp(1.0, np.frexp(largest)[1] + n_bits)
    return coarse, coarse * 2.0 ** (n_bits - 52)


def folds(terms: FloatArray, units: Units | None = None) -> tuple[FloatArray, FloatArray]:
    """Cut terms, none of them negative, into two arrays whose sums are exact.

    Together they keep some hundred bits, counted from the sum of all terms. Parts of a longer array
    need the units of the whole.
    """
    coarse, fine = units or units_of(terms.max(initial=0.0), len(terms))
    high = (terms + coarse) - coarse
    low = ((terms - high) + fine) - fine
    return high, low


def exact_sum(terms: FloatArray) -> float:
    """Return the sum of terms, none of them negative."""
    largest = terms.max(initial=0.0)
    if largest > _HUGE:
        return exact_sum(terms * _SCALE) / _SCALE
    return float(folded_sums(terms, units_of(largest, len(terms))).sum())


def folded_sums(terms: FloatArray, units: Units) -> FloatArray:
    """Sums (2,) of what `folds` cuts terms into: of parts of an array, they add up exactly."""
    sums = np.zeros(2)
    for part in blocks(len(terms)):
        sums += [fold.sum() for fold in folds(terms[part], units)]
    return sums


def exact_bincount(cells: Labels, terms: FloatArray, n_cells: int) -> FloatArray:
    """Return the sums of terms by cell, shape (n_cells,), like `numpy.bincount`.

    A small sum next to a large one keeps its digits: each cell has units of its own.
    """
    largest = bin_maxima(cells, terms, n_cells)
    huge = largest > _HUGE
    if huge.any():
        scale = np.where(huge, _SCALE, 1.0)
        return exact_bincount(cells, terms * scale[cells], n_cells) / scale
    sums = bin_folded_sums(cells, terms, units_of(largest, len(terms)))
    return np.asarray(sums[0] + sums[1])


def bin_maxima(cells: Labels, terms: FloatArray, n_cells: int) -> FloatArray:
    """Largest terms by cell."""
    largest = np.zeros(n_cells)
    for part in blocks(len(terms)):
        np.maximum.at(largest, cells[part].astype(np.intp), terms[part])
    return largest


def bin_folded_sums(cells: Labels, terms: FloatArray, units: Units) -> FloatArray:
    """Sums by cell (2, n_cells) of what `folds` cuts terms into, with units for each cell."""
    coarse, fine = units
    sums = np.zeros((2, len(coarse)))
    for part in blocks(len(terms)):
        places = cells[part].astype(np.intp)
        for total, fold in zip(
            sums, folds(terms[part], (coarse[places], fine[places])), strict=True
        ):
            total += np.bincount(places, fold, len(coarse))
    return sums


def blocks(n: int) -> list[slice]:
    """Slices of a long array, so that temporary copies stay small."""
    return [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]
