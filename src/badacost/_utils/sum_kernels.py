"""Compiled sums that do not depend on their order, see `badacost._utils.parallel`."""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import KERNEL, njit


@njit(**KERNEL)
def split_sums(terms, coarse, fine, sums):
    """Add the high and low halves of terms to ``sums`` (2,)."""
    high_sum = low_sum = 0.0
    for x in terms:
        high = (x + coarse) - coarse
        high_sum += high
        low_sum += ((x - high) + fine) - fine
    sums[0] += high_sum
    sums[1] += low_sum


@njit(**KERNEL)
def bin_maxima(cells, terms, largest):
    """Raise ``largest`` (n_cells,) to the largest terms by cell."""
    for i in range(len(cells)):
        cell = np.uint32(cells[i])
        largest[cell] = terms[i] if terms[i] > largest[cell] else largest[cell]


@njit(**KERNEL)
def bin_split_sums(cells, terms, coarse, fine, sums):
    """Add the high and low halves of terms to ``sums`` (2, n_cells)."""
    for i in range(len(cells)):
        cell, x = np.uint32(cells[i]), terms[i]
        high = (x + coarse[cell]) - coarse[cell]
        sums[0, cell] += high
        sums[1, cell] += ((x - high) + fine[cell]) - fine[cell]
