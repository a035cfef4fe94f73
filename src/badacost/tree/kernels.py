"""Compiled loops that grow one tree: sums, the best split of a node, partition, and the growth.

Data are bins, one row per feature: ``bins[f, i]`` is the bin of sample i. A feature has
``n_bins[f]`` ordinary bins (categories, if it is categorical); the code after the last of them
marks missing values, where there are any. A node is a range ``[start, end)`` of ``order``, the
permutation of the samples. What is summed stands in that order too: a label with a weight, which
adds one number to one of C sums, or a row of C numbers. Loops are compiled for each of the two:
``width`` is None for labels, for rows a tuple of length C, which the compiler then knows. Likewise
``sets`` is None where no feature is categorical, and ``alike`` unless trees are symmetric: what is
not needed is not compiled.

All sums are exact, hence the same for any division of the samples among threads, blocks or
machines: every number is a multiple of a quantum, a power of two so large that no sum needs more
than the 53 bits of a double. Rows come as such multiples. Weights, which may span hundreds of
binary orders, are rounded to the quantum of their node, 2**-52 times its ``unit``; the unit is a
power of two between half and 512 times the weight of the node.

A split is first judged by fast sums whose last digits depend on the path taken and on the
processor; if it may be the best, by a score that is a function of the exact sums alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

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
SPLIT = np.dtype(
    [
        ("score", np.float64),
        ("feature", np.int32),
        ("position", np.int32),
        ("missing_left", np.bool_),
    ],
    align=True,
)
DONE, SEARCH, SPACE = 0, 1, 2
# Places of the state of a growing tree.
SEARCHED, N_NODES, FIRST, LAST, N_LEAVES, N_JOBS, N_FREE = range(7)
N_STATES = 7
N_WORDS = 8  # of 32 bits in a set of categories

MIN_GAIN = 1e-10  # relative to the mass of the node, as in the reference
_SLACK = 1e-9  # fast sums are better than this, relative to mass and score
_NEGLIGIBLE = 1e-14  # a child with less than this share of the mass cannot bring a gain that counts
_RESCALE = 2.0**-10  # a node lighter than this times its unit gets a unit of its own
_BLOCK = 4  # features whose histograms are filled in one pass over the samples of a node
_SCRATCH = 1024  # samples of the right child that need no memory of their own
# Sorting keys hold the bin in the high half and the position of the sample in the low half.
_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_POWER_STEPS = 8  # towards the direction along which categories are ordered


class Limits(NamedTuple):
    """Limits of the growth, as numbers; see `badacost.tree.grower.Growth`."""

    max_depth: int
    max_leaf_nodes: int
    min_samples_split: int
    min_samples_leaf: int
    n_drawn: int
    draw_per_level: bool
    best_first: bool
    large_from: int  # nodes of so many samples or more are searched by histograms


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


# Gains. The score of a node is ``_single(purity, mass)`` of two sums over its C sums x_c; a split
# gains what the scores of the children have over that of the node.


class Gini(NamedTuple):
    """Sums of weighted squares over the mass: ``factors`` of shape (C,)."""

    factors: NDArray[np.float64]


class Entropy(NamedTuple):
    """Minus the mass times the entropy of the shares."""

    unused: float = 0.0


class SquaredGradients(NamedTuple):
    """Squares of all sums but the last, over the last one, which is a sum of hessians."""

    l2: float
    min_hessian: float


def _purity(gain, c, n_columns, x):
    """Contribution of one sum to the purity of a node."""


def _rise(gain, c, x, change):
    """What the purity rises by when a sum x grows by a change."""


def _mass(gain, c, n_columns, x):
    """Contribution of one sum to the mass of a node."""


def _single(gain, purity, mass):
    """Score of a node."""


def _beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
    """Whether a split scores above a bound; False for children without mass."""


def _shift(gain, mass):
    """What to add to scores before they are rounded: the size of the terms they are made of."""


def _is(gain, kind):
    return getattr(gain, "instance_class", None) is kind


@overload(_purity)
def _purity_of(gain, c, n_columns, x):
    if _is(gain, Gini):
        return lambda gain, c, n_columns, x: gain.factors[c] * x * x
    if _is(gain, Entropy):
        return lambda gain, c, n_columns, x: x * np.log(x) if x > 0.0 else 0.0
    return lambda gain, c, n_columns, x: x * x if c < n_columns - 1 else 0.0


@overload(_rise)
def _rise_of(gain, c, x, change):
    if _is(gain, Gini):
        return lambda gain, c, x, change: gain.factors[c] * (change * (2.0 * x + change))
    return lambda gain, c, x, change: (
        _purity(gain, c, c + 2, x + change) - _purity(gain, c, c + 2, x)
    )


@overload(_mass)
def _mass_of(gain, c, n_columns, x):
    if _is(gain, SquaredGradients):
        return lambda gain, c, n_columns, x: x if c == n_columns - 1 else 0.0
    return lambda gain, c, n_columns, x: x


@overload(_single)
def _single_of(gain, purity, mass):
    if _is(gain, Gini):
        return lambda gain, purity, mass: purity / mass if mass > 0.0 else 0.0
    if _is(gain, Entropy):
        return lambda gain, purity, mass: purity - mass * np.log(mass) if mass > 0.0 else 0.0
    return lambda gain, purity, mass: purity / (mass + gain.l2) if mass > 0.0 else 0.0


@overload(_beats)
def _beats_of(gain, purity_left, mass_left, purity_right, mass_right, bound):
    if _is(gain, Gini):

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            numerator = purity_left * mass_right + purity_right * mass_left
            return numerator > bound * (mass_left * mass_right)
    elif _is(gain, Entropy):

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            left = purity_left - mass_left * np.log(mass_left)
            return left + purity_right - mass_right * np.log(mass_right) > bound
    else:

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            if min(mass_left, mass_right) < gain.min_hessian:
                return False
            left, right = mass_left + gain.l2, mass_right + gain.l2
            return purity_left * right + purity_right * left > bound * (left * right)

    return beats


@overload(_shift)
def _shift_of(gain, mass):
    if _is(gain, Entropy):
        return lambda gain, mass: 8.0 * mass
    return lambda gain, mass: 0.0


@njit(nogil=True)
def _n_columns(width, totals):
    """Number of sums C."""
    if width is None:
        return totals.shape[totals.ndim - 1]
    return len(width)


@njit(nogil=True)
def _rounded(weight, unit):
    """A weight as a multiple of the quantum that belongs to a unit."""
    return (np.float64(weight) + unit) - unit


@njit(nogil=True)
def _purity_and_mass(gain, width, sums):
    """Purity and mass of a node, from its exact sums: in one order on every machine."""
    n_columns = _n_columns(width, sums)
    purity = 0.0
    mass = 0.0
    for c in range(n_columns):
        purity += _purity(gain, c, n_columns, sums[c])
        mass += _mass(gain, c, n_columns, sums[c])
    return purity, mass


@njit(nogil=True, error_model="numpy")
def _score(gain, width, left, totals):
    """Score of a split as a function of the exact sums of its left side; -inf if it is useless.

    Rounded to 41 bits, so that splits of equal worth compare as equal.
    """
    n_columns = _n_columns(width, totals)
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    mass_right = 0.0
    for c in range(n_columns):
        right = totals[c] - left[c]
        purity_left += _purity(gain, c, n_columns, left[c])
        purity_right += _purity(gain, c, n_columns, right)
        mass_left += _mass(gain, c, n_columns, left[c])
        mass_right += _mass(gain, c, n_columns, right)
    mass = mass_left + mass_right
    if min(mass_left, mass_right) <= _NEGLIGIBLE * mass:
        return -np.inf
    if not _beats(gain, purity_left, mass_left, purity_right, mass_right, -np.inf):
        return -np.inf
    shift = _shift(gain, mass)
    score = _single(gain, purity_left, mass_left) + _single(gain, purity_right, mass_right) + shift
    shifted = 4097.0 * score
    return shifted - (shifted - score) - shift


@njit(nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _advance(gain, width, left, cells, first, totals, mass, bound):
    """Add the sums of a bin to those of the left side; tell whether the split may beat a bound."""
    n_columns = _n_columns(width, totals)
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    for c in range(n_columns):
        x = left[c] + cells[first + np.uint64(c)]
        left[c] = x
        mass_left += _mass(gain, c, n_columns, x)
        purity_left += _purity(gain, c, n_columns, x)
        purity_right += _purity(gain, c, n_columns, totals[c] - x)
    return _beats(gain, purity_left, mass_left, purity_right, mass - mass_left, bound)


@njit(nogil=True)
def _bound(score, mass):
    """What the fast score of a split has to exceed, if its exact score shall exceed another."""
    return score - _SLACK * (abs(score) + mass) if score > -np.inf else score


@njit(nogil=True)
def _improve(found, j, score, feature, position, missing_left):
    """Take a split if it is better than the best so far."""
    if not score > found[j].score:
        return False
    found[j].score = score
    found[j].feature = feature
    found[j].position = position
    found[j].missing_left = missing_left
    return True


@njit(nogil=True)
def _fill_four(bins, sums, width, features, lines, start, end, unit, n_columns, cells):
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
            label, weight = np.uint32(labels[i]), _rounded(weights[i], unit)
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


@njit(nogil=True)
def _fill_one(row, sums, width, start, end, unit, n_columns, cells):
    """Sums of one feature by bin."""
    order, labels, weights, rows = sums
    step = np.uint32(n_columns)
    for i in range(np.uint64(start), np.uint64(end)):
        at = np.uint32(row[order[i]]) * step
        if width is None:
            cells[at + np.uint32(labels[i])] += _rounded(weights[i], unit)
        else:
            for c in range(np.uint32(len(width))):
                cells[at + c] += rows[i, c]


@njit(nogil=True)
def _get_histograms(
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
    if n_features == _BLOCK:
        _fill_four(data.bins, sums, width, features, lines, start, end, unit, n_columns, cells)
        return
    for j in range(n_features):
        row, line = data.bins[features[j]], cells[lines[j]]
        _fill_one(row, sums, width, start, end, unit, n_columns, line)


@njit(nogil=True)
def _count(row, order, start, end, n_codes, counts):
    """Samples of a node by bin."""
    for b in range(n_codes):
        counts[b] = 0
    for i in range(np.uint64(start), np.uint64(end)):
        counts[np.uint64(row[order[i]])] += 1


@njit(nogil=True)
def _has_mass(gain, width, cells, first, totals):
    """Whether the sums of a bin are more than nothing."""
    n_columns = _n_columns(width, totals)
    mass = 0.0
    for c in range(n_columns):
        mass += _mass(gain, c, n_columns, cells[first + c])
    return mass > 0.0


@njit(nogil=True, error_model="numpy")
def _rank_categories(gain, width, cells, n_bins, totals, ranked):
    """Put the categories of a node into an order; return how many there are.

    Their mean vectors of sums are projected on the direction in which they differ most, found by
    power iteration: for two classes, or one gradient, the best split is among those of this order.
    """
    n_columns = _n_columns(width, totals)
    masses = np.zeros(n_bins)
    means = np.zeros((n_bins, n_columns))
    _, mass = _purity_and_mass(gain, width, totals)
    n_present = 0
    largest = -1.0
    direction = np.zeros(n_columns)
    for b in range(n_bins):
        for c in range(n_columns):
            masses[b] += _mass(gain, c, n_columns, cells[b * n_columns + c])
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


@njit(nogil=True)
def _mark_set(words, ranked, first, last):
    """Make a set of the categories at some ranks."""
    for word in range(words.shape[0]):
        words[word] = 0
    for q in range(first, last):
        words[ranked[q] >> 5] |= np.uint32(1) << np.uint32(ranked[q] & 31)


@njit(nogil=True, error_model="numpy")
def _scan_histogram(
    gain, width, cells, counts, n, n_bins, missing, totals, mass, min_leaf, left, feature, found, j,
    categorical, sets,
):  # fmt: skip
    """Improve ``found[j]`` by the splits of a feature, from its histogram.

    ``counts`` are looked at if a leaf needs more than one sample. Categories are scanned in the
    order of their ranks; those after the split are the set ``sets[j]`` that goes right.
    """
    n_columns = _n_columns(width, totals)
    after = n_bins * n_columns
    bound = _bound(found[j].score, mass)
    n_ranked = n_bins
    if sets is not None:
        ranked = np.empty(n_bins, np.int64)
        for b in range(n_bins):
            ranked[b] = b
        if categorical:
            n_ranked = _rank_categories(gain, width, cells, n_bins, totals, ranked)
    for side in range(1 + missing):
        n_left = counts[n_bins] if side == 1 else 0
        for c in range(n_columns):
            left[c] = cells[after + c] if side == 1 else 0.0
        for rank in range(n_ranked if missing and side == 0 else n_ranked - 1):
            b = rank
            if sets is not None:
                b = ranked[rank]
            first = np.uint64(b * n_columns)
            better = _advance(gain, width, left, cells, first, totals, mass, bound)
            n_left += counts[b]
            if not better or (min_leaf > 1 and min(n_left, n - n_left) < min_leaf):
                continue
            if _improve(found, j, _score(gain, width, left, totals), feature, b, side == 1):
                bound = _bound(found[j].score, mass)
                if sets is not None:
                    _mark_set(sets[j], ranked, rank + 1, n_ranked if categorical else 0)


@njit(nogil=True)
def _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets):
    """Sort the samples of a node by bin: keys of bin (high) and position in ``order`` (low).

    A radix sort, one byte at a time; returns the one of the two buffers that holds the result.
    """
    first = np.uint64(start)
    last = np.uint64(start + n)
    n_used = min(n_codes, 256)
    for c in range(n_used):
        offsets[c] = 0
    for i in range(first, last):
        offsets[row[order[i]] & 255] += np.uint32(1)
    shift = _HIGH
    while True:
        total = np.uint32(0)
        for c in range(n_used):
            count = offsets[c]
            offsets[c] = total
            total += count
        if shift == _HIGH:
            for i in range(first, last):
                code = row[order[i]]
                place = offsets[code & 255]
                offsets[code & 255] = place + np.uint32(1)
                keys[place] = np.uint64(code) << _HIGH | i
        else:
            for i in range(n):
                byte = keys2[i] >> shift & np.uint64(255)
                place = offsets[byte]
                offsets[byte] = place + np.uint32(1)
                keys[place] = keys2[i]
        shift += np.uint64(8)
        if (np.uint64(n_codes - 1) << _HIGH) >> shift == 0:
            return keys
        for c in range(n_used):
            offsets[c] = 0
        for i in range(n):
            offsets[keys[i] >> shift & np.uint64(255)] += np.uint32(1)
        keys, keys2 = keys2, keys


@njit(nogil=True)
def _ends_bin(keys, n_left, n_present):
    """Whether the sample before ``n_left`` is the last one of its bin."""
    if n_left == n_present:
        return True
    return (keys[np.uint64(n_left - 1)] ^ keys[np.uint64(n_left)]) >> _HIGH != 0


@njit(nogil=True, error_model="numpy")
def _scan_sorted_rows(
    gain, width, keys, rows, totals, ends, n_present, left, feature, side, found, j
):
    """Improve ``found[j]`` by the splits of a feature, row after row in the order of its bins."""
    for n_left in range(1, ends[1] + 1):
        key = keys[np.uint64(n_left - 1)]
        for c in range(_n_columns(width, totals)):
            left[c] += rows[key & _LOW, c]
        if n_left >= ends[0] and _ends_bin(keys, n_left, n_present):
            score = _score(gain, width, left, totals)
            _improve(found, j, score, feature, np.int64(key >> _HIGH), side == 1)


@njit(nogil=True, error_model="numpy")
def _scan_sorted_labels(
    gain, width, keys, labels, weights, unit, totals, mass, ends, n_present, left, right, feature,
    side, found, j,
):  # fmt: skip
    """The same for labels: purities are brought up to date, which takes no longer for larger C."""
    n_columns = _n_columns(width, totals)
    bound = _bound(found[j].score, mass)
    mass_left = 0.0
    purity_left = 0.0
    purity_right = 0.0
    for c in range(n_columns):
        right[c] = totals[c] - left[c]
        mass_left += left[c]
        purity_left += _purity(gain, c, n_columns, left[c])
        purity_right += _purity(gain, c, n_columns, right[c])
    mass_right = mass - mass_left
    negligible = _NEGLIGIBLE * mass
    refresh_below = max(mass_right / 8.0, negligible)
    for n_left in range(1, ends[1] + 1):
        key = keys[np.uint64(n_left - 1)]
        sample = key & _LOW
        label = np.uint64(labels[sample])
        weight = _rounded(weights[sample], unit)
        before_left = left[label]
        before_right = right[label]
        left[label] = before_left + weight
        right[label] = before_right - weight
        purity_left += _rise(gain, label, before_left, weight)
        purity_right += _rise(gain, label, before_right, -weight)
        mass_left += weight
        mass_right -= weight
        if mass_right < refresh_below:
            # What is left of a large sum after many subtractions is mostly rounding error.
            if mass_right <= negligible:
                break
            purity_right = 0.0
            for c in range(n_columns):
                purity_right += _purity(gain, c, n_columns, right[c])
            refresh_below = max(mass_right / 8.0, negligible)
        # Rarely better, often the end of a bin: in this order the processor guesses right.
        if (
            _beats(gain, purity_left, mass_left, purity_right, mass_right, bound)
            and n_left >= ends[0]
            and _ends_bin(keys, n_left, n_present)
        ):
            score = _score(gain, width, left, totals)
            if _improve(found, j, score, feature, np.int64(key >> _HIGH), side == 1):
                bound = _bound(score, mass)


@njit(nogil=True)
def _scan_sorted(
    gain, width, keys, labels, weights, rows, n, unit, totals, mass, min_leaf, n_present, left,
    right, feature, found, j,
):  # fmt: skip
    """Improve ``found[j]`` by the splits of a feature, from the sorted samples of a node.

    The first ``n_present`` of the ``n`` samples have a value.
    """
    n_columns = _n_columns(width, totals)
    for side in range(1 + (n_present < n)):
        for c in range(n_columns):
            left[c] = 0.0
        n_gone = n - n_present if side == 1 else 0
        for i in range(n_present, n_present + n_gone):
            sample = keys[i] & _LOW
            if width is None:
                left[labels[sample]] += _rounded(weights[sample], unit)
            else:
                for c in range(n_columns):
                    left[c] += rows[sample, c]
        ends = (min_leaf - n_gone, min(n - min_leaf - n_gone, n_present))
        if width is None:
            _scan_sorted_labels(
                gain, width, keys, labels, weights, unit, totals, mass, ends, n_present, left,
                right, feature, side, found, j,
            )  # fmt: skip
        else:
            _scan_sorted_rows(
                gain, width, keys, rows, totals, ends, n_present, left, feature, side, found, j
            )


@njit(nogil=True)
def _is_large(nodes, node, large_from):
    """Whether a node is searched by histograms."""
    return nodes[node].end - nodes[node].start >= large_from or nodes[node].slot >= 0


@njit(nogil=True)
def _search_large(
    data, sums, width, gain, limits, nodes, totals, store, jobs, drawn, first, last, found, sets
):
    """Best splits of nodes with many samples, by histograms: node after node."""
    n_columns = _n_columns(width, totals)
    left = np.empty(n_columns)
    counts = np.zeros(257, np.int64)
    block = np.empty(_BLOCK, np.int64)
    lines = np.empty(_BLOCK, np.int64)
    scratch = np.empty((_BLOCK, 257 * n_columns))
    min_leaf = limits.min_samples_leaf
    for j in range(jobs.shape[0]):
        node = jobs[j]
        if not _is_large(nodes, node, limits.large_from):
            continue
        start, end, mass = nodes[node].start, nodes[node].end, nodes[node].mass
        slot = nodes[node].slot
        cells = scratch if slot < 0 else store[slot]
        f = first
        while f < last:
            n_block = 0
            while f < last and n_block < _BLOCK:
                if data.n_codes[f] > 1 and (drawn.shape[1] == 0 or drawn[f, j]):
                    block[n_block] = f
                    lines[n_block] = n_block if slot < 0 else f
                    n_block += 1
                f += 1
            _get_histograms(
                data, sums, width, nodes, store, block, lines, n_block, node, n_columns, cells
            )
            if not nodes[node].active:
                continue
            for b in range(n_block):
                feature, line = block[b], cells[lines[b]]
                n_bins = data.n_bins[feature]
                if min_leaf > 1:
                    row = data.bins[feature]
                    _count(row, sums.order, start, end, data.n_codes[feature], counts)
                missing = data.has_missing[feature] and _has_mass(
                    gain, width, line, n_bins * n_columns, totals
                )
                _scan_histogram(
                    gain, width, line, counts, end - start, n_bins, missing, totals[node], mass,
                    min_leaf, left, feature, found, j, data.categorical[feature], sets,
                )  # fmt: skip


@njit(nogil=True)
def _search_small(
    data, sums, width, gain, limits, nodes, totals, jobs, drawn, first, last, found, sets
):
    """Best splits of nodes with few samples, by sorting, and of bins of any type.

    Features are the outer loop, so that a row of bins is read once for all nodes.
    """
    order, labels, weights, rows = sums
    n_columns = _n_columns(width, totals)
    min_leaf = limits.min_samples_leaf
    small = np.empty(jobs.shape[0], np.int64)
    n_small = 0
    largest = 0
    for j in range(jobs.shape[0]):
        if not _is_large(nodes, jobs[j], limits.large_from):
            small[n_small] = j
            n_small += 1
            largest = max(largest, nodes[jobs[j]].end - nodes[jobs[j]].start)
    if n_small == 0:
        return
    left = np.empty(n_columns)
    right = np.empty(n_columns)
    keys = np.empty(largest, np.uint64)
    keys2 = np.empty(largest, np.uint64)
    offsets = np.empty(256, np.uint32)
    for feature in range(first, last):
        row, n_codes, n_bins = data.bins[feature], data.n_codes[feature], data.n_bins[feature]
        if n_codes < 2:
            continue
        for p in range(n_small):
            j = small[p]
            if drawn.shape[1] > 0 and not drawn[feature, j]:
                continue
            node = jobs[j]
            start, unit, mass = nodes[node].start, nodes[node].unit, nodes[node].mass
            n = nodes[node].end - start
            if sets is not None and data.categorical[feature]:
                cells, counts = np.zeros(n_codes * n_columns), np.zeros(n_codes, np.int64)
                _fill_one(row, sums, width, start, start + n, unit, n_columns, cells)
                _count(row, order, start, start + n, n_codes, counts)
                missing = data.has_missing[feature] and counts[n_bins] > 0
                _scan_histogram(
                    gain, width, cells, counts, n, n_bins, missing, totals[node], mass, min_leaf,
                    left, feature, found, j, True, sets,
                )  # fmt: skip
                continue
            ordered = _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets)
            n_present = n
            if data.has_missing[feature]:
                while n_present > 0 and ordered[n_present - 1] >> _HIGH == n_bins:
                    n_present -= 1
            _scan_sorted(
                gain, width, ordered, labels, weights, rows, n, unit, totals[node], mass, min_leaf,
                n_present, left, right, feature, found, j,
            )  # fmt: skip


@njit(nogil=True)
def _rank_for_level(data, sums, width, gain, nodes, totals, jobs, feature, ranked):
    """Put the categories of a feature into one order for all nodes of a level."""
    n_columns = _n_columns(width, totals)
    pooled = np.zeros(data.n_codes[feature] * n_columns)
    whole = np.zeros(n_columns)
    for j in range(jobs.shape[0]):
        start, end, unit = nodes[jobs[j]].start, nodes[jobs[j]].end, nodes[jobs[j]].unit
        _fill_one(data.bins[feature], sums, width, start, end, unit, n_columns, pooled)
        for c in range(n_columns):
            whole[c] += totals[jobs[j], c]
    return _rank_categories(gain, width, pooled, data.n_bins[feature], whole, ranked)


@njit(nogil=True, error_model="numpy")
def _add_scores(gain, width, cells, after, missing, totals, ranked, n_ranked, left, joint):
    """Add the scores of all tests of a feature on one node to ``joint[missing_left, rank]``.

    A test that does not divide the node leaves it its own score.
    """
    n_columns = _n_columns(width, totals)
    purity, mass = _purity_and_mass(gain, width, totals)
    alone = _single(gain, purity, mass)
    for side in range(1 + missing):
        for c in range(n_columns):
            left[c] = cells[after + c] if side == 1 else 0.0
        for rank in range(n_ranked):
            for c in range(n_columns):
                left[c] += cells[ranked[rank] * n_columns + c]
            score = _score(gain, width, left, totals)
            score = alone if score == -np.inf else score
            joint[side, rank] += score
            if not missing:
                joint[1, rank] += score


@njit(nogil=True)
def _search_level(
    data, sums, width, gain, nodes, totals, store, jobs, drawn, first, last, found, sets
):
    """Best test for all nodes of a level together, into ``found[0]``."""
    n_columns = _n_columns(width, totals)
    left = np.empty(n_columns)
    features = np.empty(1, np.int64)
    lines = np.empty(1, np.int64)
    scratch = np.empty((1, 257 * n_columns))
    joint = np.empty((2, 257))
    ranked = np.empty(257, np.int64)
    for feature in range(first, last):
        if data.n_codes[feature] < 2 or (drawn.shape[1] > 0 and not drawn[feature, 0]):
            continue
        features[0] = feature
        n_ranked = data.n_bins[feature]
        after = n_ranked * n_columns
        for b in range(n_ranked):
            ranked[b] = b
        if sets is not None and data.categorical[feature]:
            n_ranked = _rank_for_level(
                data, sums, width, gain, nodes, totals, jobs, feature, ranked
            )
        for b in range(257):
            joint[0, b] = joint[1, b] = 0.0
        any_missing = False
        for j in range(jobs.shape[0]):
            node = jobs[j]
            slot = nodes[node].slot
            lines[0] = 0 if slot < 0 else feature
            cells = scratch if slot < 0 else store[slot]
            _get_histograms(
                data, sums, width, nodes, store, features, lines, np.int64(1), node, n_columns,
                cells,
            )  # fmt: skip
            line = cells[lines[0]]
            missing = data.has_missing[feature] and _has_mass(gain, width, line, after, totals)
            any_missing |= missing
            _add_scores(
                gain, width, line, after, missing, totals[node], ranked, n_ranked, left, joint
            )
        for side in range(1 + any_missing):
            for rank in range(n_ranked if any_missing and side == 0 else n_ranked - 1):
                better = _improve(found, 0, joint[side, rank], feature, ranked[rank], side == 1)
                if sets is not None and better:
                    n_last = n_ranked if data.categorical[feature] else 0
                    _mark_set(sets[0], ranked, rank + 1, n_last)


@njit(cache=True, nogil=True)
def search(
    data, sums, width, gain, limits, nodes, totals, store, jobs, drawn, first, last, found, sets,
    alike,
):  # fmt: skip
    """Best splits of the nodes ``jobs`` over the features ``first <= f < last``, into ``found``.

    A score of -inf means that there is none. Ties go to the lowest feature, then to missing values
    on the right, then to the lowest bin. ``drawn[f, j]`` says which features a node may use; all of
    them if the table is empty.
    """
    for j in range(jobs.shape[0]):
        found[j].score = -np.inf
    if alike is None:
        _search_large(
            data, sums, width, gain, limits, nodes, totals, store, jobs, drawn, first, last, found,
            sets,
        )  # fmt: skip
        _search_small(
            data, sums, width, gain, limits, nodes, totals, jobs, drawn, first, last, found, sets
        )
    else:
        _search_level(
            data, sums, width, gain, nodes, totals, store, jobs, drawn, first, last, found, sets
        )


@njit(cache=True, nogil=True)
def draw_features(seed, nodes, jobs, limits, n_features, alike):
    """Mark the features that each node may use (n_features, n_jobs); an empty table if all.

    Drawn without replacement (Floyd's algorithm). A draw depends on the seed and the number of the
    node, or of its level, and not on the order of the calls.
    """
    if limits.n_drawn >= n_features:
        return np.zeros((1, 0), np.bool_)
    n_draws = jobs.shape[0] if alike is None else 1
    drawn = np.zeros((n_features, n_draws), np.bool_)
    for j in range(n_draws):
        by_level = limits.draw_per_level or alike is not None
        number = np.int64(nodes[jobs[j]].depth) if by_level else jobs[j]
        state = np.uint64(seed) ^ (np.uint64(number + 1) * np.uint64(0xD1342543DE82EF95))
        for last in range(n_features - limits.n_drawn, n_features):
            state += np.uint64(0x9E3779B97F4A7C15)
            mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            pick = np.int64((mixed >> np.uint64(11)) % np.uint64(last + 1))
            if drawn[pick, j]:
                pick = last
            drawn[pick, j] = True
    return drawn


@njit(nogil=True)
def _power_above(x):
    """The least power of two above x > 0."""
    return math.ldexp(1.0, math.frexp(x)[1])


@njit(nogil=True)
def _sum_node(sums, width, gain, nodes, node, totals):
    """Work out the sums of a node, and its mass."""
    unit = nodes[node].unit
    for c in range(totals.shape[0]):
        totals[c] = 0.0
    for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
        if width is None:
            totals[np.uint64(sums.labels[i])] += _rounded(sums.weights[i], unit)
        else:
            for c in range(len(width)):
                totals[c] += sums.rows[i, c]
    _, mass = _purity_and_mass(gain, width, totals)
    nodes[node].mass = mass


@njit(nogil=True)
def _weigh_node(sums, width, gain, nodes, node, totals):
    """Work out the mass of a node; if it is light for its unit, give it a unit of its own."""
    n = nodes[node].end - nodes[node].start
    _, mass = _purity_and_mass(gain, width, totals)
    nodes[node].mass = mass
    if width is None:
        if n > 0 and mass < _RESCALE * nodes[node].unit:
            largest = np.float32(0.0)
            for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
                largest = max(largest, sums.weights[i])
            nodes[node].unit = _power_above(n * np.float64(largest))
            _sum_node(sums, width, gain, nodes, node, totals)
            nodes[node].unit = _power_above(nodes[node].mass)
            _sum_node(sums, width, gain, nodes, node, totals)
    elif node == 0:
        _sum_node(sums, width, gain, nodes, node, totals)


@njit(nogil=True)
def _add_node(nodes, node, parent, start, end, depth, unit):
    """Append a leaf, which finds its parent in the place of its sibling at first."""
    nodes[node].start = start
    nodes[node].end = end
    nodes[node].depth = depth
    nodes[node].unit = unit
    nodes[node].left = node
    nodes[node].feature = 0
    nodes[node].position = 0
    nodes[node].missing_left = True
    nodes[node].gain = 0.0
    nodes[node].slot = -1
    nodes[node].sibling = parent
    nodes[node].job = -1
    nodes[node].waiting = False


@njit(nogil=True)
def _is_active(width, limits, nodes, node, totals, n_leaves, alike):
    """Whether the limits allow to split a node, and there is something to tell apart."""
    if limits.max_depth <= nodes[node].depth or n_leaves >= limits.max_leaf_nodes:
        return False
    if alike is not None:
        return True
    n = nodes[node].end - nodes[node].start
    if n < max(limits.min_samples_split, 2 * limits.min_samples_leaf):
        return False
    if width is None:
        n_present = 0
        for c in range(totals.shape[0]):
            n_present += totals[c] != 0.0
        return n_present > 1
    return True


@njit(nogil=True)
def _take_slot(nodes, node, free, state):
    if state[N_FREE] > 0:
        state[N_FREE] -= 1
        nodes[node].slot = free[state[N_FREE]]


@njit(nogil=True)
def _release_slot(nodes, node, free, state):
    if nodes[node].slot >= 0:
        free[state[N_FREE]] = nodes[node].slot
        state[N_FREE] += 1
        nodes[node].slot = -1


@njit(nogil=True)
def _plan_pair(limits, nodes, parent, small, big, n_cells, free, state):
    """Decide where the histograms of two siblings come from, and whether they are kept."""
    n_small = nodes[small].end - nodes[small].start
    n_big = nodes[big].end - nodes[big].start
    big_is_large = nodes[big].active and n_big >= limits.large_from
    small_is_large = nodes[small].active and n_small >= limits.large_from
    if nodes[parent].slot >= 0:
        # Subtracting a cell takes about an eighth of the time of adding a sample to one.
        spared = n_big - n_cells // 8 - (0 if small_is_large else n_small)
        same_unit = nodes[big].unit == nodes[small].unit and nodes[big].unit == nodes[parent].unit
        if big_is_large and same_unit and spared > 0 and state[N_FREE] > 0:
            _take_slot(nodes, small, free, state)
            nodes[big].slot = nodes[parent].slot
            nodes[big].sibling = small
            nodes[parent].slot = -1
            return
        _release_slot(nodes, parent, free, state)
    if nodes[small].depth + 1 < limits.max_depth:
        if small_is_large:
            _take_slot(nodes, small, free, state)
        if big_is_large:
            _take_slot(nodes, big, free, state)


@njit(nogil=True)
def _prepare(sums, width, gain, limits, nodes, totals, jobs, n_cells, free, state, alike):
    """Make the list of nodes to search; the smaller one of two siblings comes first."""
    n_jobs = 0
    node = state[FIRST]
    while node < state[LAST]:
        n_siblings = 1 if node == 0 else 2
        parent = np.int64(nodes[node].sibling)
        for child in range(node, node + n_siblings):
            _weigh_node(sums, width, gain, nodes, child, totals[child])
            nodes[child].active = _is_active(
                width, limits, nodes, child, totals[child], state[N_LEAVES], alike
            )
            nodes[child].sibling = -1
        small = node
        big = node + n_siblings - 1
        if nodes[small].end - nodes[small].start > nodes[big].end - nodes[big].start:
            small, big = big, small
        if node == 0:
            if nodes[node].active and nodes[node].end >= limits.large_from:
                _take_slot(nodes, node, free, state)
        elif nodes[small].active or nodes[big].active:
            _plan_pair(limits, nodes, parent, small, big, n_cells, free, state)
        else:
            _release_slot(nodes, parent, free, state)
        for i in range(n_siblings):
            child = small if i == 0 else big
            if nodes[child].active or nodes[child].slot >= 0:
                nodes[child].job = n_jobs
                jobs[n_jobs] = child
                n_jobs += 1
        node += n_siblings
    state[N_JOBS] = n_jobs


@njit(nogil=True)
def _goes_right(code, position, missing_left, missing_code, words):
    """Whether a bin is on the right side of a test; ``words`` is a set of categories or None."""
    if words is None:  # no branch to mispredict
        return (code > position) & ((not missing_left) | (code != missing_code))
    word = words[np.uint64(code) >> np.uint64(5)] if code != missing_code else np.uint32(0)
    inside = (word >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)
    return inside | ((not missing_left) & (code == missing_code))


@njit(nogil=True)
def _partition(codes, missing_code, words, sums, width, nodes, node, left, totals):
    """Divide the samples of a node between two new ones, keeping their order.

    ``words`` are the categories that go right; None where values are compared.
    """
    order, labels, weights, rows = sums
    n_columns = _n_columns(width, totals)
    position, unit = nodes[node].position, nodes[node].unit
    missing_left = nodes[node].missing_left
    start, end = np.uint64(nodes[node].start), np.uint64(nodes[node].end)
    n_needed = np.uint64(_SCRATCH)
    if end - start > n_needed:
        n_needed = np.uint64(1)
        for i in range(start, end):
            right = _goes_right(codes[order[i]], position, missing_left, missing_code, words)
            n_needed += np.uint64(right)
    order2 = np.empty(n_needed, order.dtype)
    if width is None:
        labels2 = np.empty(n_needed, labels.dtype)
        weights2 = np.empty(n_needed, weights.dtype)
    else:
        rows2 = np.empty((n_needed, n_columns), rows.dtype)
    for c in range(n_columns):
        totals[left, c] = totals[left + 1, c] = 0.0
    any_missing = False
    n_left = start
    n_right = np.uint64(0)
    for i in range(start, end):
        sample = order[i]
        code = codes[sample]
        any_missing |= code == missing_code
        right = _goes_right(code, position, missing_left, missing_code, words)
        child = np.uint64(left) + np.uint64(right)
        # Written to both sides, of which one moves on.
        order[n_left] = sample
        order2[n_right] = sample
        if width is None:
            label = labels[i]
            weight = weights[i]
            labels[n_left] = label
            labels2[n_right] = label
            weights[n_left] = weight
            weights2[n_right] = weight
            totals[child, np.uint64(label)] += _rounded(weight, unit)
        else:
            for c in range(n_columns):
                value = rows[i, c]
                rows[n_left, c] = value
                rows2[n_right, c] = value
                totals[child, c] += value
        n_left += np.uint64(not right)
        n_right += np.uint64(right)
    for i in range(n_right):
        order[n_left + i] = order2[i]
        if width is None:
            labels[n_left + i] = labels2[i]
            weights[n_left + i] = weights2[i]
        else:
            for c in range(n_columns):
                rows[n_left + i, c] = rows2[i, c]
    if not any_missing:
        # Values missing at prediction only go the way of the larger child.
        nodes[node].missing_left = n_left - start >= n_right
    return np.int64(n_left)


@njit(nogil=True)
def _split(data, sums, width, nodes, node, totals, sets, state):
    """Turn a leaf with a test into two."""
    left = state[N_NODES]
    feature = nodes[node].feature
    codes, missing_code = data.bins[feature], data.n_bins[feature]
    if sets is not None and data.categorical[feature]:
        words = sets[node]
        middle = _partition(codes, missing_code, words, sums, width, nodes, node, left, totals)
    else:
        middle = _partition(codes, missing_code, None, sums, width, nodes, node, left, totals)
    depth, unit = nodes[node].depth + 1, nodes[node].unit
    _add_node(nodes, left, node, nodes[node].start, middle, depth, unit)
    _add_node(nodes, left + 1, node, middle, nodes[node].end, depth, unit)
    nodes[node].left = left
    state[N_NODES] += 2
    state[N_LEAVES] += 1


@njit(nogil=True)
def _best_part(found, n_parts, j):
    """Part of the features with the best split of a node; the first, if there are several."""
    best = 0
    for part in range(1, n_parts):
        if found[part, j].score > found[best, j].score:
            best = part
    return best


@njit(nogil=True)
def _take_test(nodes, node, found, part, j, found_sets, sets):
    """Write the test that was found into a node."""
    nodes[node].feature = found[part, j].feature
    nodes[node].position = found[part, j].position
    nodes[node].missing_left = found[part, j].missing_left
    if sets is not None:
        for word in range(N_WORDS):
            sets[node, word] = found_sets[part, j, word]


@njit(nogil=True, error_model="numpy")
def _take_split(width, gain, nodes, node, totals, found, n_parts, found_sets, sets, free, state):
    """Write the best split of a node into it; False if it has none that gains enough."""
    if nodes[node].active:
        j, mass = np.int64(nodes[node].job), nodes[node].mass
        part = _best_part(found, n_parts, j)
        purity, _ = _purity_and_mass(gain, width, totals)
        gained = found[part, j].score - _single(gain, purity, mass)
        if gained > MIN_GAIN * mass:
            _take_test(nodes, node, found, part, j, found_sets, sets)
            nodes[node].gain = gained / mass
            return True
    _release_slot(nodes, node, free, state)
    return False


@njit(nogil=True)
def _choose_best(nodes, limits, state):
    """The most profitable of the leaves that wait to be split, -1 if there is none."""
    best = -1
    most = 0.0
    for node in range(state[N_NODES]):
        if nodes[node].waiting and nodes[node].gain * nodes[node].mass > most:
            best = node
            most = nodes[node].gain * nodes[node].mass
    if best >= 0 and state[N_LEAVES] < limits.max_leaf_nodes:
        nodes[best].waiting = False
        return best
    for node in range(state[N_NODES]):  # those that wait stay leaves
        if nodes[node].waiting:
            nodes[node].feature, nodes[node].position = 0, 0
            nodes[node].gain, nodes[node].missing_left = 0.0, True
    return -1


@njit(nogil=True, error_model="numpy")
def _take_alike(width, gain, nodes, totals, found, n_parts, found_sets, sets, free, state):
    """Write one test into all nodes of a level; False if it does not gain enough."""
    first, last = state[FIRST], state[LAST]
    part = _best_part(found, n_parts, np.int64(0))
    whole = 0.0
    before = 0.0
    for node in range(first, last):
        purity, mass = _purity_and_mass(gain, width, totals[node])
        whole += mass
        before += _single(gain, purity, mass)
    if found[part, 0].score - before > MIN_GAIN * whole:
        for node in range(first, last):
            _take_test(nodes, node, found, part, np.int64(0), found_sets, sets)
        return True
    for node in range(first, last):
        _release_slot(nodes, node, free, state)
    return False


@njit(nogil=True, error_model="numpy")
def _measure_gain(width, gain, nodes, node, totals):
    """Work out what a split gained that was not made for its node alone."""
    score = _score(gain, width, totals[nodes[node].left], totals[node])
    if score > -np.inf:
        purity, mass = _purity_and_mass(gain, width, totals[node])
        nodes[node].gain = (score - _single(gain, purity, mass)) / mass


@njit(cache=True, nogil=True)
def grow(
    data, sums, width, gain, limits, seed, nodes, totals, sets, jobs, store, free, found,
    found_sets, state, n_parts, threads_from, alike,
):  # fmt: skip
    """Grow a tree until it is done, or something is needed from the caller.

    Returns `DONE`; `SPACE` if arrays by node are too short; or `SEARCH` if the search for the
    splits of ``jobs`` is so long, `threads_from` samples times features or more, that the caller
    shall divide it into parts, whose results are the rows of ``found``.
    """
    n_features = data.bins.shape[0]
    if state[N_NODES] == 0:
        _add_node(nodes, np.int64(0), np.int64(-1), np.int64(0), sums.order.shape[0], 0, np.inf)
        for c in range(totals.shape[1]):
            totals[0, c] = 0.0
        state[N_NODES] = state[LAST] = state[N_LEAVES] = 1
    while True:
        if not state[SEARCHED]:
            if 3 * (state[LAST] - state[FIRST]) + state[N_NODES] > nodes.shape[0]:
                return SPACE
            _prepare(
                sums, width, gain, limits, nodes, totals, jobs, store.shape[2], free, state, alike
            )
            state[SEARCHED] = 1
            here = jobs[: state[N_JOBS]]
            n_samples = 0
            for j in range(here.shape[0]):
                n_samples += nodes[here[j]].end - nodes[here[j]].start
            if n_samples * limits.n_drawn >= threads_from:
                return SEARCH
            drawn = draw_features(seed, nodes, here, limits, n_features, alike)
            search(
                data, sums, width, gain, limits, nodes, totals, store, here, drawn, np.int64(0),
                np.int64(n_features), found[0], None if sets is None else found_sets[0], alike,
            )  # fmt: skip
            n_parts = 1
        state[SEARCHED] = 0
        first, last = state[FIRST], state[LAST]
        state[FIRST] = state[N_NODES]
        if alike is not None:
            state[FIRST] = first
            if (
                last > first
                and nodes[first].active
                and _take_alike(
                    width, gain, nodes, totals, found, n_parts, found_sets, sets, free, state
                )
            ):
                for node in range(first, last):
                    _split(data, sums, width, nodes, node, totals, sets, state)
                    _measure_gain(width, gain, nodes, node, totals)
            state[FIRST] = last
        else:
            best_first = limits.best_first
            for node in range(first, last):
                nodes[node].waiting = _take_split(
                    width, gain, nodes, node, totals[node], found, n_parts, found_sets, sets, free,
                    state,
                )  # fmt: skip
            node = _choose_best(nodes, limits, state) if best_first else first
            n_split = last
            if best_first:
                n_split = node + 1
            while 0 <= node < n_split:
                if best_first or nodes[node].waiting:
                    nodes[node].waiting = False
                    _split(data, sums, width, nodes, node, totals, sets, state)
                node += 1
        state[LAST] = state[N_NODES]
        if state[FIRST] == state[LAST]:
            return DONE


@njit(nogil=True)
def _sum_leaf(sums, nodes, node, totals, low):
    """Sums of a leaf to twice the digits: what rounding left over is summed exactly as well."""
    unit = nodes[node].unit
    n = nodes[node].end - nodes[node].start
    fine = unit * _power_above(np.float64(n)) * 2.0**-52
    for c in range(totals.shape[0]):
        totals[c] = low[c] = 0.0
    for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
        weight, label = np.float64(sums.weights[i]), np.uint64(sums.labels[i])
        high = _rounded(weight, unit)
        totals[label] += high
        low[label] += _rounded(weight - high, fine)
    for c in range(totals.shape[0]):
        totals[c] += low[c]


@njit(cache=True, nogil=True)
def finish(nodes, sums, width, totals, leaves):
    """Write the leaf of every sample of a grown tree into ``leaves``; give sums their last digits.

    Those of an inner node are the sums of its children.
    """
    low = np.empty(totals.shape[1])
    for node in range(nodes.shape[0] - 1, -1, -1):
        left = nodes[node].left
        if left == node:
            for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
                leaves[sums.order[i]] = node
            if width is None:
                _sum_leaf(sums, nodes, node, totals[node], low)
        elif width is None:
            for c in range(totals.shape[1]):
                totals[node, c] = totals[left, c] + totals[left + 1, c]


@njit(cache=True, nogil=True)
def descend(
    bins, n_bins, samples, feature, position, left, missing_left, category_set, sets, leaves
):
    """Write the leaves of some samples, which go down a tree by their bins, into ``leaves``."""
    for i in range(samples.shape[0]):
        sample = samples[i]
        node = np.uint64(0)
        while np.uint64(left[node]) != node:
            f = np.uint64(feature[node])
            code, missing_code = bins[f, sample], n_bins[f]
            if category_set[node] >= 0:
                words = sets[np.uint64(category_set[node])]
                right = _goes_right(code, position[node], missing_left[node], missing_code, words)
            else:
                right = _goes_right(code, position[node], missing_left[node], missing_code, None)
            node = np.uint64(left[node]) + np.uint64(right)
        leaves[sample] = node
