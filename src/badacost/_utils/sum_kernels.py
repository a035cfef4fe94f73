"""Compiled sums that do not depend on their order, see `badacost._utils.parallel`.

Each part of a loop has a row of the results.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.loop_kernels import loop_kernel


@loop_kernel
def split_sums(terms, coarse, fine, sums, part, first, last):
    """Set ``sums`` (n_parts, 2) to those of the high and low halves of terms."""
    high_sum = low_sum = 0.0
    for i in range(first, last):
        high = (terms[i] + coarse) - coarse
        high_sum += high
        low_sum += ((terms[i] - high) + fine) - fine
    sums[part, 0], sums[part, 1] = high_sum, low_sum


@loop_kernel
def bin_maxima(cells, terms, largest, part, first, last):
    """Raise ``largest`` (n_parts, n_cells) to the largest terms by cell."""
    for i in range(first, last):
        cell = np.uint32(cells[i])
        larger = terms[i] > largest[part, cell]
        largest[part, cell] = terms[i] if larger else largest[part, cell]


@loop_kernel
def bin_split_sums(cells, terms, coarse, fine, all_sums, part, first, last):
    """Add the high and low halves of terms to ``sums`` (n_parts, 2, n_cells)."""
    sums = all_sums[part]
    for i in range(first, last):
        cell, x = np.uint32(cells[i]), terms[i]
        high = (x + coarse[cell]) - coarse[cell]
        sums[0, cell] += high
        sums[1, cell] += ((x - high) + fine[cell]) - fine[cell]
