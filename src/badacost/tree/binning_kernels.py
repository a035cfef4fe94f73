"""Compiled loops that put values into bins."""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit


@njit(cache=True, nogil=True)
def search_bins(values, edges, limits, bins, first_feature, first_row):
    """Fill the bins of a block: how many edges ``edges[limits[f]:limits[f + 1]]`` are <= the value.

    The rows of a block go through the binary search together, one halving at a time, without
    branches. A missing value has the code after the last bin.
    """
    n_rows = values.shape[0]
    found = np.empty(n_rows, np.uint32)
    row = np.empty(n_rows)
    one = np.uint32(1)
    for f in range(values.shape[1]):
        row_edges = edges[limits[f] : limits[f + 1]]
        for i in range(n_rows):
            row[i] = values[i, f]
            found[i] = 0
        remaining = row_edges.shape[0]
        while remaining > 1:
            half = np.uint32(remaining >> 1)
            for i in range(n_rows):
                middle = found[i] + half
                found[i] = middle if row_edges[middle - one] <= row[i] else found[i]
            remaining -= half
        if remaining == 1:
            for i in range(n_rows):
                found[i] += np.uint32(row_edges[found[i]] <= row[i])
        for i in range(n_rows):
            bins[first_feature + f, first_row + i] = (
                row_edges.shape[0] + 1 if np.isnan(row[i]) else np.int64(found[i])
            )


@njit(cache=True, nogil=True, error_model="numpy")
def count_steps(values, edges, limits, bins, first_feature, first_row):
    """The same for edges at equal steps: a division finds the bin, neighbours correct it."""
    for f in range(values.shape[1]):
        first, last = np.uint64(limits[f]), np.uint64(limits[f + 1])
        n = np.int64(last - first)
        codes = bins[first_feature + f]
        # A feature with one edge needs no division; one without edges has one bin.
        low = edges[first] if n > 0 else 0.0
        span = edges[last - np.uint64(1)] - low if n > 1 else 1.0
        per_unit = (n - 1) / span
        for i in range(values.shape[0]):
            x = values[i, f]
            if np.isnan(x):
                codes[first_row + i] = n + 1
                continue
            place = (x - low) * per_unit + 1.0
            # Zero for NaN too, which is what infinity times zero is.
            code = np.int64(min(place, np.float64(n))) if place > 0.0 else 0
            while code < n and edges[first + np.uint64(code)] <= x:
                code += 1
            while code > 0 and edges[first + np.uint64(code - 1)] > x:
                code -= 1
            codes[first_row + i] = code
