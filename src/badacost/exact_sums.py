"""Sums that do not depend on the order of their terms, nor on how these are divided into parts.

A number is cut into two: a multiple of a coarse quantum and a multiple of a fine one, both powers
of two. Within each of the two, sums are exact in double precision, whatever their order.
"""

from __future__ import annotations

import numpy as np

from badacost.arrays import FloatArray, Labels

_BLOCK = 65_536
_FAINT = 2.0**-40  # sums below this share of the largest are worked out again among themselves


def folds(terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut terms, none of them negative, into two arrays whose sums are exact.

    Together they keep some hundred bits, counted from the sum of all terms.
    """
    n_bits = len(terms).bit_length()
    largest = float(terms.max(initial=0.0))
    unit = float(np.ldexp(1.0, np.frexp(largest)[1] + n_bits))
    high = (terms + unit) - unit
    fine = unit * 2.0 ** (n_bits - 52)
    low = ((terms - high) + fine) - fine
    return high, low


def exact_sum(terms: FloatArray) -> float:
    """Return the sum of terms, none of them negative."""
    high, low = folds(terms)
    return float(high.sum() + low.sum())


def exact_bincount(cells: Labels, terms: FloatArray, n_cells: int) -> FloatArray:
    """Return the sums of terms by cell, shape (n_cells,), like `numpy.bincount`."""
    high, low = folds(terms)
    sums = np.zeros((2, n_cells))
    for start in range(0, len(terms), _BLOCK):  # bincount copies its arguments
        part = slice(start, start + _BLOCK)
        places = cells[part].astype(np.intp)
        sums[0] += np.bincount(places, high[part], n_cells)
        sums[1] += np.bincount(places, low[part], n_cells)
    total = np.asarray(sums[0] + sums[1])
    faint = total < total.max(initial=0.0) * _FAINT
    if faint.any() and (chosen := faint[cells]).any():
        total[faint] = exact_bincount(cells[chosen], terms[chosen], n_cells)[faint]
    return total
