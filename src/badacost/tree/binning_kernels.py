"""Compiled loops that put values into bins."""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import KERNEL, njit


@njit(**KERNEL)
def search_bins(values, edges, limits, bins, first_feature, first_row):
    """Fill the bins of a block: how many edges ``edges[limits[f]:limits[f + 1]]`` are <= the value.

    ``values`` has a row for each feature. They go through the binary search together, one halving
    at a time, without branches. A missing value has the code after the last bin.
    """
    n_features, n_rows = values.shape
    one = np.uint32(1)
    for f in range(n_features):
        row, row_edges = values[f], edges[limits[f] : limits[f + 1]]
        codes = bins[first_feature + f, first_row : first_row + n_rows]
        for i in range(n_rows):
            codes[i] = 0
        remaining = len(row_edges)
        while remaining > 0:
            half = np.uint32(remaining - (remaining >> 1))
            for i in range(n_rows):
                code = np.uint32(codes[i])
                codes[i] = code + half if row_edges[code + half - one] <= row[i] else code
            remaining >>= 1
        for i in range(n_rows):
            if row[i] != row[i]:
                codes[i] = len(row_edges) + 1


@njit(**KERNEL)
def count_steps(values, edges, limits, bins, first_feature, first_row):
    """Fill the bins of a block where edges are at equal steps.

    A division finds the bin, and comparisons with its edges correct it.
    """
    n_features, n_rows = values.shape
    for f in range(n_features):
        row, row_edges = values[f], edges[limits[f] : limits[f + 1]]
        codes = bins[first_feature + f, first_row : first_row + n_rows]
        n = len(row_edges)
        low = row_edges[0] if n > 0 else 0.0
        per_unit = (n - 1) / (row_edges[n - 1] - low) if n > 1 else 0.0
        for i in range(n_rows):
            if np.isnan(row[i]):
                codes[i] = n + 1
                continue
            place = (row[i] - low) * per_unit + 1.0
            # Zero for NaN too, which is what infinity times zero is.
            code = np.int64(min(place, np.float64(n))) if place > 0.0 else 0
            while code < n and row_edges[np.uint64(code)] <= row[i]:
                code += 1
            while code > 0 and row_edges[np.uint64(code - 1)] > row[i]:
                code -= 1
            codes[i] = code
