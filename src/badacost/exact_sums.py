"""Sums that do not depend on the order of their terms, nor on how these are divided into parts.

A number is cut into two: a multiple of a coarse quantum and a multiple of a fine one, both powers
of two. Within each of the two, sums are exact in double precision, whatever their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost.arrays import FloatArray, Labels

_BLOCK = 65_536
_HUGE = 2.0**900  # numbers above are scaled down, since a sum of quanta would overflow
_SCALE = 2.0**-100


def _quanta(largest: Any, n_terms: int) -> tuple[Any, Any]:
    """Numbers that round a term to a multiple of a quantum when added and subtracted again."""
    n_bits = n_terms.bit_length()
    coarse = np.ldexp(1.0, np.frexp(largest)[1] + n_bits)
    return coarse, coarse * 2.0 ** (n_bits - 52)


def _cut(terms: FloatArray, coarse: Any, fine: Any) -> tuple[FloatArray, FloatArray]:
    high = (terms + coarse) - coarse
    low = ((terms - high) + fine) - fine
    return high, low


def folds(terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut terms, none of them negative, into two arrays whose sums are exact.

    Together they keep some hundred bits, counted from the sum of all terms.
    """
    return _cut(terms, *_quanta(terms.max(initial=0.0), len(terms)))


def exact_sum(terms: FloatArray) -> float:
    """Return the sum of terms, none of them negative."""
    if terms.max(initial=0.0) > _HUGE:
        return exact_sum(terms * _SCALE) / _SCALE
    high, low = folds(terms)
    return float(high.sum() + low.sum())


def exact_bincount(cells: Labels, terms: FloatArray, n_cells: int) -> FloatArray:
    """Return the sums of terms by cell, shape (n_cells,), like `numpy.bincount`.

    Quanta are those of the cell: a faint one next to a heavy one keeps its digits.
    """
    # In blocks, since indices have to be of one type.
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(terms), _BLOCK)]
    largest = np.zeros(n_cells)
    for block in blocks:
        np.maximum.at(largest, cells[block].astype(np.intp), terms[block])
    huge = largest > _HUGE
    if huge.any():
        scale = np.where(huge, _SCALE, 1.0)
        return exact_bincount(cells, terms * scale[cells], n_cells) / scale
    coarse, fine = _quanta(largest, len(terms))
    sums = np.zeros((2, n_cells))
    for block in blocks:
        places = cells[block].astype(np.intp)
        for total, part in zip(sums, _cut(terms[block], coarse[places], fine[places]), strict=True):
            total += np.bincount(places, part, n_cells)
    return np.asarray(sums[0] + sums[1])
