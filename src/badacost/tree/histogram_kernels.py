"""Compiled sums over the samples of a node, by bin.

Data are bins, one row per feature: ``bins[f, i]`` is the bin of sample i. A feature has
``n_bins[f]`` ordinary bins (categories, if it is categorical); the code after the last of them
marks missing values, where there are any. A node is a range ``[start, end)`` of ``order``, a
permutation of the samples; labels and values of the samples are stored in this order too.

A sample adds its value to the sum of its label, or its C values to the C sums. All values are
multiples of a quantum, a power of two so large that no sum needs more than the 53 bits of a double:
sums are exact, hence the same for any order or division of the samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.inner_kernels import inner

AT_ONCE = 4  # features whose histograms are filled in one pass over the samples of a node
_POWER_STEPS = 8  # iterations for the direction along which categories are ordered


class Data(NamedTuple):
    """Bins of the samples, and a description of the features."""

    bins: NDArray[np.unsignedinteger]  # (n_features, n)
    n_bins: NDArray[np.int64]  # (n_features,)
    n_codes: NDArray[np.int64]  # (n_features,), bins and, if there are any, missing values
    categorical: NDArray[np.bool_]  # (n_features,)
    usable: NDArray[np.int64]  # features that are not constant, which searches and draws use


class NodeSamples(NamedTuple):
    """Samples of a tree, in the order of its nodes."""

    order: NDArray[np.uint32]  # (n,)
    labels: NDArray[np.uint16]  # (n,), or empty if samples have C values
    values: NDArray[np.float32]  # (n, 1) or (n, C)


@inner()
def fill_block(bins, samples, chosen, p, n_block, start, end, n_columns, cells, line, words):
    """Fill the histograms of ``chosen[p:p + n_block]``, four of them in one pass over the samples.

    The C sums of bin b of ``chosen[p + j]`` begin at ``cells[line + j, b * C]``. Bins of a single
    feature are marked as bits of ``words``, unless these are empty.
    """
    order, labels, values = samples
    step = np.uint32(n_columns)
    _, n_values = values.shape
    n_values = np.uint32(n_values)
    has_labels = len(labels) > 0
    first, last = np.uint64(start), np.uint64(end)
    if n_block == AT_ONCE:
        row0, row1 = bins[chosen[p]], bins[chosen[p + 1]]
        row2, row3 = bins[chosen[p + 2]], bins[chosen[p + 3]]
        cells0, cells1 = cells[line], cells[line + 1]
        cells2, cells3 = cells[line + 2], cells[line + 3]
        if has_labels:
            for i in range(first, last):
                sample = order[i]
                value, label = np.float64(values[i, 0]), np.uint32(labels[i])
                cells0[np.uint32(row0[sample]) * step + label] += value
                cells1[np.uint32(row1[sample]) * step + label] += value
                cells2[np.uint32(row2[sample]) * step + label] += value
                cells3[np.uint32(row3[sample]) * step + label] += value
            return
        if n_values == np.uint32(2):  # one gradient and a hessian: a loop takes longer
            for i in range(first, last):
                sample = order[i]
                x, y = np.float64(values[i, 0]), np.float64(values[i, 1])
                at0, at1 = np.uint32(row0[sample]) * step, np.uint32(row1[sample]) * step
                at2, at3 = np.uint32(row2[sample]) * step, np.uint32(row3[sample]) * step
                cells0[at0] += x
                cells0[at0 + np.uint32(1)] += y
                cells1[at1] += x
                cells1[at1 + np.uint32(1)] += y
                cells2[at2] += x
                cells2[at2 + np.uint32(1)] += y
                cells3[at3] += x
                cells3[at3 + np.uint32(1)] += y
            return
        for i in range(first, last):
            sample = order[i]
            at0 = np.uint32(row0[sample]) * step
            at1 = np.uint32(row1[sample]) * step
            at2 = np.uint32(row2[sample]) * step
            at3 = np.uint32(row3[sample]) * step
            for c in range(n_values):
                value = np.float64(values[i, c])
                cells0[at0 + c] += value
                cells1[at1 + c] += value
                cells2[at2 + c] += value
                cells3[at3 + c] += value
        return
    for j in range(n_block):
        row, sums = bins[chosen[p + j]], cells[line + j]
        for i in range(first, last):
            code = np.uint32(row[order[i]])
            at = code * step
            if len(words) > 0:
                words[code >> np.uint32(5)] |= np.int64(1) << np.int64(code & np.uint32(31))
            if has_labels:
                sums[at + np.uint32(labels[i])] += values[i, 0]
            else:
                for c in range(n_values):
                    sums[at + c] += values[i, c]


@inner()
def list_bits(words, n_bins, found):
    """Write the positions of bits below ``n_bins`` in increasing order; return their number.

    The words are set to zero.
    """
    n_found = 0
    for w in range(len(words)):
        word = words[w]
        words[w] = 0
        while word != 0:
            low = word & -word
            word ^= low
            # The exponent of a power of two is its position.
            bit = (np.float64(low).view(np.int64) >> 52) - 1023 + 32 * w
            if bit < n_bins:
                found[n_found] = bit
                n_found += 1
    return n_found


@inner()
def count_samples(row, order, start, end, n_codes, counts):
    """Count the samples of a node by bin."""
    for b in range(n_codes):
        counts[b] = 0
    for i in range(np.uint64(start), np.uint64(end)):
        counts[np.uint64(row[order[i]])] += 1


@inner()
def mass_of(gain, cells, first, n_columns):
    """Mass of a bin, whose C sums begin at ``cells[first]``."""
    mass = 0.0
    for c in range(n_columns):
        mass += gain.masses[c] * cells[first + c]
    return mass


@inner()
def rank_categories(gain, cells, n_bins, totals, ranked, means, keys):
    """Order the categories of a node that have mass; return their number.

    The mean sums of the categories are projected on the direction in which they differ most, found
    by power iteration: for two classes, or one gradient, this order contains the best split.
    ``means`` (n_bins + 2, C) and ``keys`` (2, n_bins) are buffers.
    """
    n_columns = len(totals)
    direction, turned = means[n_bins], means[n_bins + 1]
    masses, along = keys[0], keys[1]
    n_present = np.int64(0)
    mass = mass_of(gain, totals, n_present, n_columns)
    largest = -1.0
    for c in range(n_columns):
        direction[c] = 0.0
    for b in range(n_bins):
        weight = mass_of(gain, cells, b * n_columns, n_columns)
        if weight <= 0.0:
            continue
        masses[b] = weight
        ranked[n_present] = b
        n_present += 1
        mean, spread = means[b], 0.0
        for c in range(n_columns):
            x = cells[b * n_columns + c] / weight - totals[c] / mass
            mean[c] = x
            spread += x * x
        if weight * spread > largest:
            largest = weight * spread
            for c in range(n_columns):
                direction[c] = mean[c]
    for step in range(_POWER_STEPS + 1):
        for c in range(n_columns):
            turned[c] = 0.0
        length = 0.0
        for p in range(n_present):
            b = ranked[p]
            mean, x = means[b], 0.0
            for c in range(n_columns):
                x += mean[c] * direction[c]
            along[b] = x
            for c in range(n_columns):
                turned[c] += masses[b] / mass * x * mean[c]
        for x in turned:
            length += x * x
        if step == _POWER_STEPS or length <= 0.0:
            break
        for c in range(n_columns):
            direction[c] = turned[c] / math.sqrt(length)
    for p in range(1, n_present):  # insertion sort: categories of equal keys keep their order
        b = ranked[p]
        q = p
        while q > 0 and along[ranked[q - 1]] > along[b]:
            ranked[q] = ranked[q - 1]
            q -= 1
        ranked[q] = b
    return n_present
