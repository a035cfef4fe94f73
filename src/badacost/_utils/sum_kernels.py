"""Compiled sums that do not depend on their order, see `badacost._utils.parallel`.

Each part of a loop has a row of the results.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit
from badacost._utils.loop_kernels import parallel_for


@inner()
def _maximum(terms, largest, part, first, last):
    for i in range(first, last):
        largest[part] = terms[i] if terms[i] > largest[part] else largest[part]


@njit(**KERNEL)
def maximum(loop, terms, largest):
    """Raise ``largest`` (n_parts,) to the largest terms."""
    parallel_for(loop, _maximum, (terms, largest))


@inner()
def _split_sums(terms, coarse, fine, sums, part, first, last):
    high_sum = low_sum = 0.0
    for i in range(first, last):
        high = (terms[i] + coarse) - coarse
        high_sum += high
        low_sum += ((terms[i] - high) + fine) - fine
    sums[part, 0], sums[part, 1] = high_sum, low_sum


@njit(**KERNEL)
def split_sums(loop, terms, coarse, fine, sums):
    """Set ``sums`` (n_parts, 2) to those of the high and low halves of terms."""
    parallel_for(loop, _split_sums, (terms, coarse, fine, sums))


@inner()
def _bin_maxima(cells, terms, largest, part, first, last):
    for i in range(first, last):
        cell = np.uint32(cells[i])
        larger = terms[i] > largest[part, cell]
        largest[part, cell] = terms[i] if larger else largest[part, cell]


@njit(**KERNEL)
def bin_maxima(loop, cells, terms, largest):
    """Raise ``largest`` (n_parts, n_cells) to the largest terms by cell."""
    parallel_for(loop, _bin_maxima, (cells, terms, largest))


@inner()
def _bin_split_sums(cells, terms, coarse, fine, all_sums, part, first, last):
    sums = all_sums[part]
    for i in range(first, last):
        cell, x = np.uint32(cells[i]), terms[i]
        high = (x + coarse[cell]) - coarse[cell]
        sums[0, cell] += high
        sums[1, cell] += ((x - high) + fine[cell]) - fine[cell]


@njit(**KERNEL)
def bin_split_sums(loop, cells, terms, coarse, fine, sums):
    """Add the high and low halves of terms to ``sums`` (n_parts, 2, n_cells)."""
    parallel_for(loop, _bin_split_sums, (cells, terms, coarse, fine, sums))
