"""Compiled loops that grow one tree: sums, the best split of a node, partition, and the growth.

Data are bins, one row per feature: ``bins[f, i]`` is the bin of sample i. A feature has
``n_bins[f]`` ordinary bins (categories, if it is categorical); the code after the last of them
marks missing values, where there are any. A node is a range ``[start, end)`` of ``order``, the
permutation of the samples. What is summed stands in that order too: a label with a weight, which
adds one number to one of C sums, or a row of C numbers. Loops are compiled for each of the two:
``width`` is None for labels, for rows a tuple of length C, which the compiler then knows.

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
from typing import Any, NamedTuple

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
BY_LEVEL, BEST_FIRST, SYMMETRIC = 0, 1, 2
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
    order: int
    large_from: int  # nodes of so many samples or more are searched by histograms


class Data(NamedTuple):
    """Bins of the samples, and what they mean."""

    bins: NDArray[np.unsignedinteger]
    n_bins: NDArray[np.int64]
    has_missing: NDArray[np.bool_]
    categorical: NDArray[np.bool_]


class Growing(NamedTuple):
    """A tree under growth: its samples, what is summed, its nodes, and room for histograms."""

    data: Data
    n_codes: NDArray[np.int64]  # of each feature
    order: NDArray[np.uint32]
    labels: NDArray[np.unsignedinteger]  # (n,)
    weights: NDArray[np.float32]  # (n,)
    rows: NDArray[np.float32]  # (n, C); labels or rows are empty
    gain: Any
    limits: Limits
    seed: np.uint64
    nodes: NDArray[Any]
    totals: NDArray[np.float64]  # (n_nodes, C)
    sets: NDArray[np.uint32]  # (n_nodes, N_WORDS), (1, N_WORDS) without categorical features
    jobs: NDArray[np.int64]  # nodes to search
    store: NDArray[np.float64]  # histograms that are kept, (n_slots, n_features, n_cells)
    free: NDArray[np.int32]  # slots of the store that are not in use
    found: NDArray[Any]  # (n_parts, n_nodes)
    found_sets: NDArray[np.uint32]
    state: NDArray[np.int64]


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
def _fill_four(tree, width, features, lines, node, cells):
    """Sums of four features by bin, in one pass over the samples of a node."""
    bins, order = tree.data.bins, tree.order
    step = np.uint32(_n_columns(width, tree.totals))
    row0, row1, row2, row3 = (
        bins[features[0]], bins[features[1]], bins[features[2]], bins[features[3]],
    )  # fmt: skip
    cells0, cells1, cells2, cells3 = (
        cells[lines[0]], cells[lines[1]], cells[lines[2]], cells[lines[3]],
    )  # fmt: skip
    unit = tree.nodes[node].unit
    for i in range(np.uint64(tree.nodes[node].start), np.uint64(tree.nodes[node].end)):
        sample = order[i]
        at0 = np.uint32(row0[sample]) * step
        at1 = np.uint32(row1[sample]) * step
        at2 = np.uint32(row2[sample]) * step
        at3 = np.uint32(row3[sample]) * step
        if width is None:
            label, weight = np.uint32(tree.labels[i]), _rounded(tree.weights[i], unit)
            cells0[at0 + label] += weight
            cells1[at1 + label] += weight
            cells2[at2 + label] += weight
            cells3[at3 + label] += weight
        else:
            for c in range(step):
                value = np.float64(tree.rows[i, c])
                cells0[at0 + c] += value
                cells1[at1 + c] += value
                cells2[at2 + c] += value
                cells3[at3 + c] += value


@njit(nogil=True)
def _fill_one(tree, width, feature, node, cells):
    """Sums of one feature by bin."""
    row = tree.data.bins[feature]
    step = np.uint32(_n_columns(width, tree.totals))
    unit = tree.nodes[node].unit
    for i in range(np.uint64(tree.nodes[node].start), np.uint64(tree.nodes[node].end)):
        at = np.uint32(row[tree.order[i]]) * step
        if width is None:
            cells[at + np.uint32(tree.labels[i])] += _rounded(tree.weights[i], unit)
        else:
            for c in range(step):
                cells[at + c] += tree.rows[i, c]


@njit(nogil=True)
def _get_histograms(tree, width, features, lines, n_features, node, cells):
    """Fill the histograms of some features, or subtract those of the sibling.

    The sums of a bin of ``features[j]`` begin at ``cells[lines[j], bin * C]``.
    """
    n_columns = _n_columns(width, tree.totals)
    sibling = tree.nodes[node].sibling
    if sibling >= 0:
        other = tree.store[tree.nodes[sibling].slot]
        for j in range(n_features):
            mine, theirs = cells[lines[j]], other[lines[j]]
            for cell in range(tree.n_codes[features[j]] * n_columns):
                mine[cell] -= theirs[cell]
        return
    for j in range(n_features):
        for cell in range(tree.n_codes[features[j]] * n_columns):
            cells[lines[j], cell] = 0.0
    if n_features == _BLOCK:
        _fill_four(tree, width, features, lines, node, cells)
    else:
        for j in range(n_features):
            _fill_one(tree, width, features[j], node, cells[lines[j]])


@njit(nogil=True)
def _count(tree, feature, node, counts):
    """Samples of a node by bin."""
    row = tree.data.bins[feature]
    for b in range(tree.n_codes[feature]):
        counts[b] = 0
    for i in range(np.uint64(tree.nodes[node].start), np.uint64(tree.nodes[node].end)):
        counts[np.uint64(row[tree.order[i]])] += 1


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
            direction[:] = means[b]
    for _ in range(_POWER_STEPS):
        turned = np.zeros(n_columns)
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
    words[:] = 0
    for q in range(first, last):
        words[ranked[q] >> 5] |= np.uint32(1) << np.uint32(ranked[q] & 31)


@njit(nogil=True, error_model="numpy")
def _scan_histogram(tree, width, cells, counts, feature, node, left, found, sets, j):
    """Improve ``found[j]`` by the splits of a feature, from its histogram.

    ``counts`` are looked at if a leaf needs more than one sample. Categories are scanned in the
    order of their ranks; those after the split are the set ``sets[j]`` that goes right.
    """
    gain, totals, min_leaf = tree.gain, tree.totals[node], tree.limits.min_samples_leaf
    n, mass = tree.nodes[node].end - tree.nodes[node].start, tree.nodes[node].mass
    n_columns = _n_columns(width, totals)
    n_bins = tree.data.n_bins[feature]
    after = n_bins * n_columns
    missing = tree.data.has_missing[feature] and _has_mass(gain, width, cells, after, totals)
    bound = _bound(found[j].score, mass)
    categorical = tree.data.categorical[feature]
    ranked = np.empty(n_bins if categorical else 0, np.int64)
    if categorical:
        n_bins = _rank_categories(gain, width, cells, n_bins, totals, ranked)
    for side in range(1 + missing):
        n_left = counts[tree.data.n_bins[feature]] if side == 1 else 0
        for c in range(n_columns):
            left[c] = cells[after + c] if side == 1 else 0.0
        for rank in range(n_bins if missing and side == 0 else n_bins - 1):
            b = ranked[rank] if categorical else rank
            first = np.uint64(b * n_columns)
            better = _advance(gain, width, left, cells, first, totals, mass, bound)
            n_left += counts[b]
            if not better or (min_leaf > 1 and min(n_left, n - n_left) < min_leaf):
                continue
            if _improve(found, j, _score(gain, width, left, totals), feature, b, side == 1):
                bound = _bound(found[j].score, mass)
                if categorical:
                    _mark_set(sets[j], ranked, rank + 1, n_bins)


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
def _is_large(tree, node):
    """Whether a node is searched by histograms."""
    n = tree.nodes[node].end - tree.nodes[node].start
    return n >= tree.limits.large_from or tree.nodes[node].slot >= 0


@njit(nogil=True)
def _search_large(tree, width, jobs, drawn, first, last, found, sets):
    """Best splits of nodes with many samples, by histograms: node after node."""
    n_columns = _n_columns(width, tree.totals)
    left = np.empty(n_columns)
    counts = np.zeros(257, np.int64)
    block = np.empty(_BLOCK, np.int64)
    lines = np.empty(_BLOCK, np.int64)
    scratch = np.empty((_BLOCK, 257 * n_columns))
    for j in range(jobs.shape[0]):
        node = jobs[j]
        if not _is_large(tree, node):
            continue
        slot = tree.nodes[node].slot
        cells = scratch if slot < 0 else tree.store[slot]
        f = first
        while f < last:
            n_block = 0
            while f < last and n_block < _BLOCK:
                if tree.n_codes[f] > 1 and (drawn.shape[1] == 0 or drawn[f, j]):
                    block[n_block] = f
                    lines[n_block] = n_block if slot < 0 else f
                    n_block += 1
                f += 1
            _get_histograms(tree, width, block, lines, n_block, node, cells)
            if not tree.nodes[node].active:
                continue
            for b in range(n_block):
                if tree.limits.min_samples_leaf > 1:
                    _count(tree, block[b], node, counts)
                line = cells[lines[b]]
                _scan_histogram(tree, width, line, counts, block[b], node, left, found, sets, j)


@njit(nogil=True)
def _search_small(tree, width, jobs, drawn, first, last, found, sets):
    """Best splits of nodes with few samples, by sorting, and of bins of any type.

    Features are the outer loop, so that a row of bins is read once for all nodes.
    """
    n_columns = _n_columns(width, tree.totals)
    nodes, limits = tree.nodes, tree.limits
    small = np.empty(jobs.shape[0], np.int64)
    n_small = 0
    largest = 0
    for j in range(jobs.shape[0]):
        if not _is_large(tree, jobs[j]):
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
    counts = np.zeros(257, np.int64)
    scratch = np.empty(257 * n_columns if tree.data.categorical.any() else 0)
    for feature in range(first, last):
        row, n_codes = tree.data.bins[feature], tree.n_codes[feature]
        if n_codes < 2:
            continue
        for p in range(n_small):
            j = small[p]
            if drawn.shape[1] > 0 and not drawn[feature, j]:
                continue
            node = jobs[j]
            if tree.data.categorical[feature]:
                for cell in range(n_codes * n_columns):
                    scratch[cell] = 0.0
                _fill_one(tree, width, feature, node, scratch)
                _count(tree, feature, node, counts)
                _scan_histogram(tree, width, scratch, counts, feature, node, left, found, sets, j)
                continue
            start = nodes[node].start
            n = nodes[node].end - start
            ordered = _sort_by_bin(row, tree.order, start, n, n_codes, keys, keys2, offsets)
            n_present = n
            if tree.data.has_missing[feature]:
                missing_code = tree.data.n_bins[feature]
                while n_present > 0 and ordered[n_present - 1] >> _HIGH == missing_code:
                    n_present -= 1
            _scan_sorted(
                tree.gain, width, ordered, tree.labels, tree.weights, tree.rows, n,
                nodes[node].unit, tree.totals[node], nodes[node].mass, limits.min_samples_leaf,
                n_present, left, right, feature, found, j,
            )  # fmt: skip


@njit(nogil=True)
def _rank_for_level(tree, width, jobs, feature, line, ranked, scratch):
    """Put the categories of a feature into one order for all nodes of a level."""
    n_columns = _n_columns(width, tree.totals)
    n_cells = tree.n_codes[feature] * n_columns
    pooled = np.zeros(n_cells)
    whole = np.zeros(n_columns)
    for j in range(jobs.shape[0]):
        scratch[0, :n_cells] = 0.0
        _fill_one(tree, width, feature, jobs[j], scratch[0])
        for cell in range(n_cells):
            pooled[cell] += scratch[0, cell]
        for c in range(n_columns):
            whole[c] += tree.totals[jobs[j], c]
    return _rank_categories(tree.gain, width, pooled, tree.data.n_bins[feature], whole, ranked)


@njit(nogil=True, error_model="numpy")
def _add_scores(tree, width, cells, feature, node, ranked, n_ranked, left, joint):
    """Add the scores of all tests of a feature on one node to ``joint[missing_left, rank]``.

    A test that does not divide the node leaves it its own score. Returns whether any of its values
    is missing.
    """
    gain, totals = tree.gain, tree.totals[node]
    n_columns = _n_columns(width, totals)
    after = tree.data.n_bins[feature] * n_columns
    missing = tree.data.has_missing[feature] and _has_mass(gain, width, cells, after, totals)
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
    return missing


@njit(nogil=True)
def _search_level(tree, width, jobs, drawn, first, last, found, sets):
    """Best test for all nodes of a level together, into ``found[0]``."""
    n_columns = _n_columns(width, tree.totals)
    left = np.empty(n_columns)
    features = np.empty(1, np.int64)
    lines = np.empty(1, np.int64)
    scratch = np.empty((1, 257 * n_columns))
    joint = np.empty((2, 257))
    ranked = np.empty(257, np.int64)
    for feature in range(first, last):
        if tree.n_codes[feature] < 2 or (drawn.shape[1] > 0 and not drawn[feature, 0]):
            continue
        features[0] = feature
        n_ranked = tree.data.n_bins[feature]
        for b in range(n_ranked):
            ranked[b] = b
        if tree.data.categorical[feature]:
            n_ranked = _rank_for_level(tree, width, jobs, feature, lines, ranked, scratch)
        joint[:] = 0.0
        missing = False
        for j in range(jobs.shape[0]):
            slot = tree.nodes[jobs[j]].slot
            lines[0] = 0 if slot < 0 else feature
            cells = scratch if slot < 0 else tree.store[slot]
            _get_histograms(tree, width, features, lines, 1, jobs[j], cells)
            missing |= _add_scores(
                tree, width, cells[lines[0]], feature, jobs[j], ranked, n_ranked, left, joint
            )
        for side in range(1 + missing):
            for rank in range(n_ranked if missing and side == 0 else n_ranked - 1):
                better = _improve(found, 0, joint[side, rank], feature, ranked[rank], side == 1)
                if better and tree.data.categorical[feature]:
                    _mark_set(sets[0], ranked, rank + 1, n_ranked)


@njit(cache=True, nogil=True)
def search(tree, width, jobs, drawn, first, last, part):
    """Best splits of the nodes ``jobs`` over the features ``first <= f < last``.

    They go to the row ``part`` of ``found``; a score of -inf means that there is none. Ties go to
    the lowest feature, then to missing values on the right, then to the lowest bin. ``drawn[f, j]``
    says which features a node may use; all of them if the table is empty.
    """
    found, sets = tree.found[part], tree.found_sets[part]
    for j in range(jobs.shape[0]):
        found[j].score = -np.inf
    if tree.limits.order == SYMMETRIC:
        _search_level(tree, width, jobs, drawn, first, last, found, sets)
    else:
        _search_large(tree, width, jobs, drawn, first, last, found, sets)
        _search_small(tree, width, jobs, drawn, first, last, found, sets)


@njit(cache=True, nogil=True)
def draw_features(seed, nodes, jobs, limits, n_features):
    """Mark the features that each node may use (n_features, n_jobs); an empty table if all.

    Drawn without replacement (Floyd's algorithm). A draw depends on the seed and the number of the
    node, or of its level, and not on the order of the calls.
    """
    if limits.n_drawn >= n_features:
        return np.zeros((1, 0), np.bool_)
    n_draws = 1 if limits.order == SYMMETRIC else jobs.shape[0]
    drawn = np.zeros((n_features, n_draws), np.bool_)
    for j in range(n_draws):
        by_level = limits.draw_per_level or limits.order == SYMMETRIC
        number = nodes[jobs[j]].depth if by_level else jobs[j]
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
def _sum_node(tree, width, node):
    """Work out the sums of a node, and its mass."""
    totals, unit = tree.totals[node], tree.nodes[node].unit
    totals[:] = 0.0
    for i in range(np.uint64(tree.nodes[node].start), np.uint64(tree.nodes[node].end)):
        if width is None:
            totals[np.uint64(tree.labels[i])] += _rounded(tree.weights[i], unit)
        else:
            for c in range(_n_columns(width, totals)):
                totals[c] += tree.rows[i, c]
    _, tree.nodes[node].mass = _purity_and_mass(tree.gain, width, totals)


@njit(nogil=True)
def _weigh_node(tree, width, node):
    """Work out the mass of a node; if it is light for its unit, give it a unit of its own."""
    nodes = tree.nodes
    if width is None:
        _, nodes[node].mass = _purity_and_mass(tree.gain, width, tree.totals[node])
        n = nodes[node].end - nodes[node].start
        if n > 0 and nodes[node].mass < _RESCALE * nodes[node].unit:
            largest = np.float32(0.0)
            for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
                largest = max(largest, tree.weights[i])
            nodes[node].unit = _power_above(n * np.float64(largest))
            _sum_node(tree, width, node)
            nodes[node].unit = _power_above(nodes[node].mass)
            _sum_node(tree, width, node)
    elif node == 0:
        _sum_node(tree, width, node)
    else:
        _, nodes[node].mass = _purity_and_mass(tree.gain, width, tree.totals[node])


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
def _is_active(tree, width, node):
    """Whether the limits allow to split a node, and there is something to tell apart."""
    limits = tree.limits
    if limits.max_depth <= tree.nodes[node].depth or (
        tree.state[N_LEAVES] >= limits.max_leaf_nodes
    ):
        return False
    if limits.order == SYMMETRIC:
        return True
    n = tree.nodes[node].end - tree.nodes[node].start
    if n < max(limits.min_samples_split, 2 * limits.min_samples_leaf):
        return False
    if width is None:
        n_present = 0
        for c in range(tree.totals.shape[1]):
            n_present += tree.totals[node, c] != 0.0
        return n_present > 1
    return True


@njit(nogil=True)
def _take_slot(tree, node):
    if tree.state[N_FREE] > 0:
        tree.state[N_FREE] -= 1
        tree.nodes[node].slot = tree.free[tree.state[N_FREE]]


@njit(nogil=True)
def _release_slot(tree, node):
    if tree.nodes[node].slot >= 0:
        tree.free[tree.state[N_FREE]] = tree.nodes[node].slot
        tree.state[N_FREE] += 1
        tree.nodes[node].slot = -1


@njit(nogil=True)
def _plan_pair(tree, parent, small, big):
    """Decide where the histograms of two siblings come from, and whether they are kept."""
    nodes, limits = tree.nodes, tree.limits
    n_small = nodes[small].end - nodes[small].start
    n_big = nodes[big].end - nodes[big].start
    big_is_large = nodes[big].active and n_big >= limits.large_from
    small_is_large = nodes[small].active and n_small >= limits.large_from
    if nodes[parent].slot >= 0:
        # Subtracting a cell takes about an eighth of the time of adding a sample to one.
        spared = n_big - tree.store.shape[2] // 8 - (0 if small_is_large else n_small)
        same_unit = nodes[big].unit == nodes[small].unit and nodes[big].unit == nodes[parent].unit
        if big_is_large and same_unit and spared > 0 and tree.state[N_FREE] > 0:
            _take_slot(tree, small)
            nodes[big].slot = nodes[parent].slot
            nodes[big].sibling = small
            nodes[parent].slot = -1
            return
        _release_slot(tree, parent)
    if nodes[small].depth + 1 < limits.max_depth:
        if small_is_large:
            _take_slot(tree, small)
        if big_is_large:
            _take_slot(tree, big)


@njit(nogil=True)
def _prepare(tree, width):
    """Make the list of nodes to search; the smaller one of two siblings comes first."""
    nodes, state = tree.nodes, tree.state
    n_jobs = 0
    node = state[FIRST]
    while node < state[LAST]:
        n_siblings = 1 if node == 0 else 2
        parent = nodes[node].sibling
        for child in range(node, node + n_siblings):
            _weigh_node(tree, width, child)
            nodes[child].active = _is_active(tree, width, child)
            nodes[child].sibling = -1
        small = node
        big = node + n_siblings - 1
        if nodes[small].end - nodes[small].start > nodes[big].end - nodes[big].start:
            small, big = big, small
        if node == 0:
            if nodes[0].active and nodes[0].end >= tree.limits.large_from:
                _take_slot(tree, 0)
        elif nodes[small].active or nodes[big].active:
            _plan_pair(tree, parent, small, big)
        else:
            _release_slot(tree, parent)
        for i in range(n_siblings):
            child = small if i == 0 else big
            if nodes[child].active or nodes[child].slot >= 0:
                nodes[child].job = n_jobs
                tree.jobs[n_jobs] = child
                n_jobs += 1
        node += n_siblings
    state[N_JOBS] = n_jobs


@njit(nogil=True)
def _goes_right(code, position, missing_left, missing_code, categorical, words):
    """Whether a bin is on the right side of a test."""
    if categorical:
        if code == missing_code:
            return not missing_left
        word = words[np.uint64(code) >> np.uint64(5)]
        return (word >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)
    # No branch to mispredict.
    return (code > position) & ((not missing_left) | (code != missing_code))


@njit(nogil=True)
def _partition(tree, width, node, left):
    """Divide the samples of a node between two new ones, keeping their order."""
    n_columns = _n_columns(width, tree.totals)
    order, labels, weights, rows = tree.order, tree.labels, tree.weights, tree.rows
    feature, position = tree.nodes[node].feature, tree.nodes[node].position
    missing_left, unit = tree.nodes[node].missing_left, tree.nodes[node].unit
    codes = tree.data.bins[feature]
    missing_code, categorical = tree.data.n_bins[feature], tree.data.categorical[feature]
    words = tree.sets[node if tree.sets.shape[0] > 1 else 0]
    start, end = np.uint64(tree.nodes[node].start), np.uint64(tree.nodes[node].end)
    n_needed = np.uint64(_SCRATCH)
    if end - start > n_needed:
        n_needed = np.uint64(1)
        for i in range(start, end):
            n_needed += np.uint64(
                _goes_right(
                    codes[order[i]], position, missing_left, missing_code, categorical, words
                )
            )
    order2 = np.empty(n_needed, order.dtype)
    labels2 = np.empty(n_needed if width is None else 0, labels.dtype)
    weights2 = np.empty(n_needed if width is None else 0, weights.dtype)
    rows2 = np.empty((0 if width is None else n_needed, n_columns), rows.dtype)
    totals = tree.totals[left : left + 2]
    totals[:] = 0.0
    any_missing = False
    n_left = start
    n_right = np.uint64(0)
    for i in range(start, end):
        sample = order[i]
        code = codes[sample]
        any_missing |= code == missing_code
        right = _goes_right(code, position, missing_left, missing_code, categorical, words)
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
            totals[np.uint64(right), np.uint64(label)] += _rounded(weight, unit)
        else:
            for c in range(n_columns):
                value = rows[i, c]
                rows[n_left, c] = value
                rows2[n_right, c] = value
                totals[np.uint64(right), c] += value
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
        tree.nodes[node].missing_left = n_left - start >= n_right
    return n_left


@njit(nogil=True)
def _split(tree, width, node):
    """Turn a leaf with a test into two."""
    nodes, left = tree.nodes, tree.state[N_NODES]
    middle = _partition(tree, width, node, left)
    depth, unit = nodes[node].depth + 1, nodes[node].unit
    _add_node(nodes, left, node, nodes[node].start, middle, depth, unit)
    _add_node(nodes, left + 1, node, middle, nodes[node].end, depth, unit)
    nodes[node].left = left
    tree.state[N_NODES] += 2
    tree.state[N_LEAVES] += 1


@njit(nogil=True)
def _best_part(found, n_parts, j):
    """Part of the features with the best split of a node; the first, if there are several."""
    best = 0
    for part in range(1, n_parts):
        if found[part, j].score > found[best, j].score:
            best = part
    return best


@njit(nogil=True)
def _take_test(tree, node, part, j):
    """Write the test that was found into a node."""
    tree.nodes[node].feature = tree.found[part, j].feature
    tree.nodes[node].position = tree.found[part, j].position
    tree.nodes[node].missing_left = tree.found[part, j].missing_left
    if tree.sets.shape[0] > 1:
        tree.sets[node] = tree.found_sets[part, j]


@njit(nogil=True, error_model="numpy")
def _take_split(tree, width, node, n_parts):
    """Write the best split of a node into it; False if it has none that gains enough."""
    if tree.nodes[node].active:
        j, mass = tree.nodes[node].job, tree.nodes[node].mass
        part = _best_part(tree.found, n_parts, j)
        purity, _ = _purity_and_mass(tree.gain, width, tree.totals[node])
        gained = tree.found[part, j].score - _single(tree.gain, purity, mass)
        if gained > MIN_GAIN * mass:
            _take_test(tree, node, part, j)
            tree.nodes[node].gain = gained / mass
            return True
    _release_slot(tree, node)
    return False


@njit(nogil=True)
def _split_level(tree, width, n_parts):
    """Split every node of a level that has a split, in the order of their numbers."""
    first, last = tree.state[FIRST], tree.state[LAST]
    for node in range(first, last):
        if _take_split(tree, width, node, n_parts):
            _split(tree, width, node)
    tree.state[FIRST], tree.state[LAST] = last, tree.state[N_NODES]


@njit(nogil=True)
def _split_best(tree, width, n_parts):
    """Split the most profitable of all leaves; its children are searched next."""
    nodes, state = tree.nodes, tree.state
    for node in range(state[FIRST], state[LAST]):
        nodes[node].waiting = _take_split(tree, width, node, n_parts)
    best = -1
    most = 0.0
    for node in range(state[N_NODES]):
        if nodes[node].waiting and nodes[node].gain * nodes[node].mass > most:
            best = node
            most = nodes[node].gain * nodes[node].mass
    state[FIRST] = state[N_NODES]
    if best >= 0 and state[N_LEAVES] < tree.limits.max_leaf_nodes:
        nodes[best].waiting = False
        _split(tree, width, best)
    else:
        for node in range(state[N_NODES]):  # those that wait stay leaves
            if nodes[node].waiting:
                nodes[node].feature, nodes[node].position = 0, 0
                nodes[node].gain, nodes[node].missing_left = 0.0, True
    state[LAST] = state[N_NODES]


@njit(nogil=True, error_model="numpy")
def _split_alike(tree, width, n_parts):
    """Split all nodes of a level by one test, also those without samples."""
    first, last = tree.state[FIRST], tree.state[LAST]
    part = _best_part(tree.found, n_parts, 0)
    whole = 0.0
    before = 0.0
    for node in range(first, last):
        purity, mass = _purity_and_mass(tree.gain, width, tree.totals[node])
        whole += mass
        before += _single(tree.gain, purity, mass)
    if tree.found[part, 0].score - before > MIN_GAIN * whole:
        for node in range(first, last):
            _take_test(tree, node, part, 0)
            _split(tree, width, node)
            left = tree.nodes[node].left
            score = _score(tree.gain, width, tree.totals[left], tree.totals[node])
            if score > -np.inf:
                purity, mass = _purity_and_mass(tree.gain, width, tree.totals[node])
                tree.nodes[node].gain = (score - _single(tree.gain, purity, mass)) / mass
    else:
        for node in range(first, last):
            _release_slot(tree, node)
    tree.state[FIRST], tree.state[LAST] = last, tree.state[N_NODES]


@njit(cache=True, nogil=True)
def grow(tree, width, n_parts, threads_from):
    """Grow a tree until it is done, or something is needed from the caller.

    Returns `DONE`; `SPACE` if arrays by node are too short; or `SEARCH` if the search for the
    splits of ``jobs`` is so long, `threads_from` samples times features or more, that the caller
    shall divide it into parts, whose results are the rows of ``found``.
    """
    state, limits = tree.state, tree.limits
    n_features = tree.data.bins.shape[0]
    if state[N_NODES] == 0:
        _add_node(tree.nodes, 0, -1, 0, tree.order.shape[0], 0, np.inf)
        tree.totals[0] = 0.0
        state[N_NODES] = state[LAST] = state[N_LEAVES] = 1
    while True:
        if not state[SEARCHED]:
            if 3 * (state[LAST] - state[FIRST]) + state[N_NODES] > tree.nodes.shape[0]:
                return SPACE
            _prepare(tree, width)
            state[SEARCHED] = 1
            jobs = tree.jobs[: state[N_JOBS]]
            n_samples = 0
            for j in range(jobs.shape[0]):
                n_samples += tree.nodes[jobs[j]].end - tree.nodes[jobs[j]].start
            if n_samples * limits.n_drawn >= threads_from:
                return SEARCH
            drawn = draw_features(tree.seed, tree.nodes, jobs, limits, n_features)
            search(tree, width, jobs, drawn, 0, n_features, 0)
            n_parts = 1
        state[SEARCHED] = 0
        if limits.order == BEST_FIRST:
            _split_best(tree, width, n_parts)
        elif limits.order == SYMMETRIC and state[N_JOBS] > 0:
            _split_alike(tree, width, n_parts)
        else:
            _split_level(tree, width, n_parts)
        if state[FIRST] == state[LAST]:
            return DONE


@njit(cache=True, nogil=True)
def mark_leaves(nodes, order, leaves):
    """Write the leaf of every sample of a grown tree into ``leaves``."""
    for node in range(nodes.shape[0]):
        if nodes[node].left == node:
            for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
                leaves[order[i]] = node


@njit(cache=True, nogil=True)
def descend(data, samples, feature, position, left, missing_left, set_of, sets, leaves):
    """Write the leaves of some samples, which go down a tree by their bins, into ``leaves``."""
    for i in range(samples.shape[0]):
        sample = samples[i]
        node = np.uint64(0)
        while np.uint64(left[node]) != node:
            f = np.uint64(feature[node])
            words = sets[np.uint64(max(set_of[node], 0))]
            right = _goes_right(
                data.bins[f, sample], position[node], missing_left[node], data.n_bins[f],
                set_of[node] >= 0, words,
            )  # fmt: skip
            node = np.uint64(left[node]) + np.uint64(right)
        leaves[sample] = node
