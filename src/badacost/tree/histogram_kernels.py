"""Compiled loops that sum over the samples of a node, by bin.

Data are bins, one row per feature: ``bins[f, i]`` is the bin of sample i. A feature has
``n_bins[f]`` ordinary bins (categories, if it is categorical); the code after the last of them
marks missing values, where there are any. A node is a range ``[start, end)`` of ``order``, the
permutation of the samples. What is summed stands in that order too: a label with a weight, which
adds one number to one of C sums, or a row of C numbers.

All sums are exact, hence the same for any division of the samples among threads, blocks or
machines: every number is a multiple of a quantum, a power of two so large that no sum needs more
than the 53 bits of a double. Rows come as such multiples. Weights, which may span hundreds of
binary orders, are rounded to the quantum of their node, 2**-52 times its ``unit``; the unit is a
power of two above the weight of the node, at most 1024 times as large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.kernel_cache import njit
from badacost.tree.gain_kernels import (
    INNER,
    count_columns,
    mass_term,
    purity_and_mass,
    rounded,
)

NODE = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("unit", np.float64),
        ("mass", np.float64),
        ("gain", np.float64),  # of its split, per unit of mass
        ("depth", np.int32),
        ("left", np.int32),  # left child; the node itself for a leaf
        ("feature", np.int32),
        ("position", np.int32),  # last bin that goes left
        ("slot", np.int32),  # where its histograms are kept, or -1
        ("sibling", np.int32),  # whose histograms are to be subtracted, or -1
        ("missing_left", np.bool_),
        ("job", np.int32),  # its place in the search, or -1
        ("active", np.bool_),  # whether a split is looked for
        ("waiting", np.bool_),  # whether a split was found and not made
    ],
    align=True,
)
FEATURES_AT_ONCE = 4  # features whose histograms are filled in one pass over the samples of a node
_POWER_STEPS = 8  # towards the direction along which categories are ordered


class Data(NamedTuple):
    """Bins of the samples, and what they mean."""

    bins: NDArray[np.unsignedinteger]
    n_bins: NDArray[np.int64]
    n_codes: NDArray[np.int64]  # bins and, if there are any, missing values
    has_missing: NDArray[np.bool_]
    categorical: NDArray[np.bool_]


class Summed(NamedTuple):
    """Samples of a tree, in the order of its nodes; either labels and weights or rows are empty."""

    order: NDArray[np.uint32]
    labels: NDArray[np.unsignedinteger]  # (n,)
    weights: NDArray[np.float32]  # (n,)
    rows: NDArray[np.float32]  # (n, C)


@njit(**INNER)
def fill_four(bins, sums, width, features, lines, start, end, unit, n_columns, cells):
    """Sums of four features by bin, in one pass over the samples of a node."""
    order, labels, weights, rows = sums
    step = np.uint32(n_columns)
    row0, row1 = bins[features[0]], bins[features[1]]
    row2, row3 = bins[features[2]], bins[features[3]]
    cells0, cells1 = cells[lines[0]], cells[lines[1]]
    cells2, cells3 = cells[lines[2]], cells[lines[3]]
    for i in range(np.uint64(start), np.uint64(end)):
        sample = order[i]
        at0 = np.uint32(row0[sample]) * step
        at1 = np.uint32(row1[sample]) * step
        at2 = np.uint32(row2[sample]) * step
        at3 = np.uint32(row3[sample]) * step
        if width is None:
            label, weight = np.uint32(labels[i]), rounded(weights[i], unit)
            cells0[at0 + label] += weight
            cells1[at1 + label] += weight
            cells2[at2 + label] += weight
            cells3[at3 + label] += weight
        else:
            for c in range(np.uint32(len(width))):
                value = np.float64(rows[i, c])
                cells0[at0 + c] += value
                cells1[at1 + c] += value
                cells2[at2 + c] += value
                cells3[at3 + c] += value


@njit(**INNER)
def fill_one(row, sums, width, start, end, unit, n_columns, cells):
    """Sums of one feature by bin."""
    order, labels, weights, rows = sums
    step = np.uint32(n_columns)
    for i in range(np.uint64(start), np.uint64(end)):
        at = np.uint32(row[order[i]]) * step
        if width is None:
            cells[at + np.uint32(labels[i])] += rounded(weights[i], unit)
        else:
            for c in range(np.uint32(len(width))):
                cells[at + c] += rows[i, c]


@njit(**INNER)
def get_histograms(
    data, sums, width, nodes, store, features, lines, n_features, node, n_columns, cells
):
    """Fill the histograms of some features, or subtract those of the sibling.

    The sums of a bin of ``features[j]`` begin at ``cells[lines[j], bin * C]``.
    """
    sibling = nodes[node].sibling
    if sibling >= 0:
        other = store[nodes[sibling].slot]
        for j in range(n_features):
            mine, theirs = cells[lines[j]], other[lines[j]]
            for cell in range(data.n_codes[features[j]] * n_columns):
                mine[cell] -= theirs[cell]
        return
    start, end, unit = nodes[node].start, nodes[node].end, nodes[node].unit
    for j in range(n_features):
        line = cells[lines[j]]
        for cell in range(data.n_codes[features[j]] * n_columns):
            line[cell] = 0.0
    if n_features == FEATURES_AT_ONCE:
        fill_four(data.bins, sums, width, features, lines, start, end, unit, n_columns, cells)
        return
    for j in range(n_features):
        row, line = data.bins[features[j]], cells[lines[j]]
        fill_one(row, sums, width, start, end, unit, n_columns, line)


@njit(**INNER)
def count_samples(row, order, start, end, n_codes, counts):
    """Samples of a node by bin."""
    for b in range(n_codes):
        counts[b] = 0
    for i in range(np.uint64(start), np.uint64(end)):
        counts[np.uint64(row[order[i]])] += 1


@njit(**INNER)
def has_mass(gain, width, cells, first, totals):
    """Whether the sums of a bin are more than nothing."""
    n_columns = count_columns(width, totals)
    mass = 0.0
    for c in range(n_columns):
        mass += mass_term(gain, c, n_columns, cells[first + c])
    return mass > 0.0


@njit(**INNER, error_model="numpy")
def rank_categories(gain, width, cells, n_bins, totals, ranked):
    """Put the categories of a node into an order; return how many there are.

    Their mean vectors of sums are projected on the direction in which they differ most, found by
    power iteration: for two classes, or one gradient, the best split is among those of this order.
    """
    n_columns = count_columns(width, totals)
    masses = np.zeros(n_bins)
    means = np.zeros((n_bins, n_columns))
    _, mass = purity_and_mass(gain, width, totals)
    n_present = 0
    largest = -1.0
    direction = np.zeros(n_columns)
    for b in range(n_bins):
        for c in range(n_columns):
            masses[b] += mass_term(gain, c, n_columns, cells[b * n_columns + c])
        if masses[b] <= 0.0:
            continue
        ranked[n_present] = b
        n_present += 1
        spread = 0.0
        for c in range(n_columns):
            means[b, c] = cells[b * n_columns + c] / masses[b] - totals[c] / mass
            spread += means[b, c] * means[b, c]
        if masses[b] * spread > largest:
            largest = masses[b] * spread
            for c in range(n_columns):
                direction[c] = means[b, c]
    turned = np.zeros(n_columns)
    for _ in range(_POWER_STEPS):
        for c in range(n_columns):
            turned[c] = 0.0
        length = 0.0
        for p in range(n_present):
            b = ranked[p]
            along = 0.0
            for c in range(n_columns):
                along += means[b, c] * direction[c]
            for c in range(n_columns):
                turned[c] += masses[b] / mass * along * means[b, c]
        for c in range(n_columns):
            length += turned[c] * turned[c]
        if length <= 0.0:
            break
        for c in range(n_columns):
            direction[c] = turned[c] / np.sqrt(length)
    keys = np.zeros(n_bins)
    for p in range(n_present):
        for c in range(n_columns):
            keys[ranked[p]] += means[ranked[p], c] * direction[c]
    for p in range(1, n_present):  # insertion sort: categories of equal keys keep their order
        b = ranked[p]
        q = p
        while q > 0 and keys[ranked[q - 1]] > keys[b]:
            ranked[q] = ranked[q - 1]
            q -= 1
        ranked[q] = b
    return n_present
