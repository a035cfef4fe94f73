"""Compiled loops of the tree: bins, histograms, split search, partition, drawing of features.

The data are bins, one row per feature: ``bins[f, i]`` is the bin of sample ``i``. A feature has
``n_bins[f]`` ordinary bins; if ``has_missing[f]``, the code ``n_bins[f]`` marks missing values. A
node is a range ``[start, end)`` of ``order``, the permutation of the samples; ``y`` and ``w`` are
stored in that order. All kernels are nogil, so that threads can share a level of the tree.

Sums are kept in double precision over single-precision weights: such sums are exact in practice,
hence independent of the order of summation, of the path taken and of the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

GINI = 0
ENTROPY = 1

# Sums updated sample by sample carry rounding errors: within a feature a later position must be
# better by more than _ROUNDING, and across features close candidates are compared on fresh sums.
_ROUNDING = 1e-12
_SLACK = 1e-9
# A child with less than this share of the weight cannot bring a gain that counts.
_NEGLIGIBLE = 1e-14
# Features whose histograms are filled in one pass over the samples of a node.
_BLOCK = 4
# Sorting keys hold the bin in the high half and the position of the sample in the low half.
_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def _purity(criterion, factor, weight):
    """Contribution of one class to the purity sum of a node."""
    if criterion == GINI:
        return factor * weight * weight
    return weight * np.log(weight) if weight > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _split_score(criterion, purity_left, weight_left, purity_right, weight_right):
    """What a split is worth; its gain is this minus the score of the unsplit node."""
    if criterion == GINI:
        numerator = purity_left * weight_right + purity_right * weight_left
        return numerator / (weight_left * weight_right)
    score = purity_left - weight_left * np.log(weight_left)
    return score + purity_right - weight_right * np.log(weight_right)


@njit(cache=True, nogil=True, error_model="numpy")
def _exact_score(
    row, order, y, w, start, end, missing_code, position, missing_left, totals, factors, criterion,
    left,
):  # fmt: skip
    """Score of one split from class sums made afresh: a function of the partition alone."""
    left[:] = 0.0
    for i in range(start, end):
        code = row[order[i]]
        if code <= position or (missing_left and code == missing_code):
            left[y[i]] += w[i]
    weight_left, weight_right, purity_left, purity_right = 0.0, 0.0, 0.0, 0.0
    for k in range(left.shape[0]):
        right = totals[k] - left[k]
        weight_left += left[k]
        weight_right += right
        purity_left += _purity(criterion, factors[k], left[k])
        purity_right += _purity(criterion, factors[k], right)
    if min(weight_left, weight_right) <= _NEGLIGIBLE * (weight_left + weight_right):
        return -np.inf
    return _split_score(criterion, purity_left, weight_left, purity_right, weight_right)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _scan_histogram(
    histogram, counts, n, n_bins, missing, missing_left, totals, factors, criterion, min_leaf, left
):
    """Best position of a feature from its histogram, missing values on a given side.

    ``left`` is scratch for the class weights; ``counts`` are looked at only if ``min_leaf > 1``.
    """
    n_classes = left.shape[0]
    best, best_bin, beaten_above = -np.inf, -1, -np.inf
    n_left = 0
    weight_left, total_weight = 0.0, 0.0
    for k in range(n_classes):
        total_weight += totals[k]
        left[k] = histogram[n_bins, k] if missing_left else 0.0
        weight_left += left[k]
    if missing_left:
        n_left = counts[n_bins]
    for b in range(n_bins if missing and not missing_left else n_bins - 1):
        weight, purity_left, purity_right = 0.0, 0.0, 0.0
        for k in range(n_classes):
            cell = histogram[b, k]
            left[k] += cell
            weight += cell
            purity_left += _purity(criterion, factors[k], left[k])
            purity_right += _purity(criterion, factors[k], totals[k] - left[k])
        weight_left += weight
        n_left += counts[b]
        if weight <= 0.0 or (min_leaf > 1 and min(n_left, n - n_left) < min_leaf):
            continue
        weight_right = total_weight - weight_left
        score = _split_score(criterion, purity_left, weight_left, purity_right, weight_right)
        if score > beaten_above and min(weight_left, weight_right) > _NEGLIGIBLE * total_weight:
            best, best_bin = score, b
            beaten_above = score + _ROUNDING * abs(score)
    return best, best_bin


@njit(cache=True, nogil=True)
def _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets):
    """Sort the samples of a node by bin: keys of bin (high) and position in ``order`` (low).

    A radix sort, one byte at a time; returns the one of the two buffers that holds the result.
    """
    offsets[:] = 0
    for i in range(start, start + n):
        offsets[row[order[i]] & 255] += np.uint32(1)
    shift = _HIGH
    while True:
        total = np.uint32(0)
        for c in range(256):
            count = offsets[c]
            offsets[c] = total
            total += count
        if shift == 32:
            for i in range(start, start + n):
                code = row[order[i]]
                place = offsets[code & 255]
                offsets[code & 255] = place + np.uint32(1)
                keys[place] = np.uint64(code) << _HIGH | np.uint64(i)
        else:
            for i in range(n):
                byte = keys2[i] >> shift & np.uint64(255)
                place = offsets[byte]
                offsets[byte] = place + np.uint32(1)
                keys[place] = keys2[i]
        shift += np.uint64(8)
        if (np.uint64(n_codes - 1) << _HIGH) >> shift == 0:
            return keys
        offsets[:] = 0
        for i in range(n):
            offsets[keys[i] >> shift & np.uint64(255)] += np.uint32(1)
        keys, keys2 = keys2, keys


@njit(cache=True, nogil=True, error_model="numpy")
def _scan_sorted(
    keys, y, w, n, n_present, missing_left, totals, factors, criterion, min_leaf, left, right
):
    """Best position of a feature from its sorted samples: the same work for every sample.

    The first ``n_present`` of the ``n`` samples have a value; ``left``, ``right`` are scratch.
    """
    best, best_bin, beaten_above = -np.inf, -1, -np.inf
    n_classes = left.shape[0]
    left[:] = 0.0
    if missing_left:
        for i in range(n_present, n):
            sample = keys[i] & _LOW
            left[y[sample]] += w[sample]
    weight_left, weight_right, purity_left, purity_right = 0.0, 0.0, 0.0, 0.0
    for k in range(n_classes):
        right[k] = totals[k] - left[k]
        weight_left += left[k]
        weight_right += right[k]
        purity_left += _purity(criterion, factors[k], left[k])
        purity_right += _purity(criterion, factors[k], right[k])
    negligible = _NEGLIGIBLE * (weight_left + weight_right)
    refresh_below = weight_right / 8.0
    n_missing_left = n - n_present if missing_left else 0
    first = max(min_leaf - n_missing_left, 1)
    last = min(n - min_leaf - n_missing_left, n_present)
    key = keys[0]
    for i in range(1, last + 1):
        # The end of the values counts as a change of bin: missing values may stand alone.
        following = keys[i] if i < n_present else ~key
        sample = key & _LOW
        label = y[sample]
        factor, weight = factors[label], np.float64(w[sample])
        before_left, before_right = left[label], right[label]
        left[label] = before_left + weight
        right[label] = before_right - weight
        if criterion == GINI:
            purity_left += factor * weight * (2.0 * before_left + weight)
            purity_right -= factor * weight * (2.0 * before_right - weight)
        else:
            purity_left += _purity(criterion, factor, left[label])
            purity_left -= _purity(criterion, factor, before_left)
            purity_right += _purity(criterion, factor, right[label])
            purity_right -= _purity(criterion, factor, before_right)
        weight_left += weight
        weight_right -= weight
        if weight_right < refresh_below:
            # What is left of a large sum after many subtractions is mostly rounding error.
            weight_right, purity_right = 0.0, 0.0
            for k in range(n_classes):
                weight_right += right[k]
                purity_right += _purity(criterion, factors[k], right[k])
            refresh_below = weight_right / 8.0
        score = _split_score(criterion, purity_left, weight_left, purity_right, weight_right)
        boundary = (key ^ following) >> _HIGH != 0
        if boundary & (score > beaten_above) & (i >= first) & (weight_right > negligible):
            best, best_bin = score, np.int64(key >> _HIGH)
            beaten_above = score + _ROUNDING * abs(score)
        key = following
    return best, best_bin


@njit(cache=True, nogil=True)
def _fill_histograms(bins, block, n_block, order, y, w, start, end, histograms):
    """Class weights per bin of up to four features, in one pass over the samples of a node."""
    histograms[:n_block] = 0.0
    if n_block < _BLOCK:
        for j in range(n_block):
            row, histogram = bins[block[j]], histograms[j]
            for i in range(start, end):
                histogram[row[order[i]], y[i]] += w[i]
        return
    row0, row1, row2, row3 = bins[block[0]], bins[block[1]], bins[block[2]], bins[block[3]]
    for i in range(start, end):
        sample, label, weight = order[i], y[i], np.float64(w[i])
        histograms[0, row0[sample], label] += weight
        histograms[1, row1[sample], label] += weight
        histograms[2, row2[sample], label] += weight
        histograms[3, row3[sample], label] += weight


@njit(cache=True, nogil=True)
def find_splits(
    bins, n_bins, has_missing, order, y, w, starts, ends, totals, factors, drawn, criterion,
    min_leaf, first_feature, last_feature, scores, features, positions, missing_sides,
):  # fmt: skip
    """Best split of every node over the features ``first_feature <= f < last_feature``.

    ``drawn[f, node]`` says which features a node may use. The last four arrays receive, for each
    node, the score of the best split (``-inf`` if there is none), its feature, the last bin that
    goes left, and whether missing values go left. Ties go to the lowest feature, then the lowest
    bin, then missing values to the right.

    Large nodes are scanned by histograms, feature after feature. Small ones are sorted, and there
    the features are the outer loop, so that a row of bins is read once for all of them.
    """
    n_classes = totals.shape[1]
    most_codes = 1
    for f in range(first_feature, last_feature):
        most_codes = max(most_codes, n_bins[f] + has_missing[f])
    if most_codes <= 256:
        histogram_from = np.int64(most_codes * (1.0 + n_classes / 8.0))
    else:
        histogram_from = np.iinfo(np.int64).max
    left, right = np.empty(n_classes), np.empty(n_classes)
    counts = np.zeros(256, np.int64)
    histograms = np.empty((_BLOCK, min(most_codes, 256), n_classes))
    block = np.empty(_BLOCK, np.int64)
    largest_sorted = 1
    for node in range(starts.shape[0]):
        scores[node] = -np.inf
        start, end = starts[node], ends[node]
        n = end - start
        if n < histogram_from:
            largest_sorted = max(largest_sorted, n)
            continue
        f = first_feature
        while f < last_feature:
            n_block = 0
            while f < last_feature and n_block < _BLOCK:
                if drawn[f, node] and n_bins[f] + has_missing[f] > 1:
                    block[n_block] = f
                    n_block += 1
                f += 1
            _fill_histograms(bins, block, n_block, order, y, w, start, end, histograms)
            for j in range(n_block):
                feature = block[j]
                row, regular = bins[feature], n_bins[feature]
                if min_leaf > 1:
                    counts[:] = 0
                    for i in range(start, end):
                        counts[row[order[i]]] += 1
                missing = False
                if has_missing[feature]:
                    missing = histograms[j, regular].sum() > 0.0
                for side in range(1 + missing):
                    score, position = _scan_histogram(
                        histograms[j], counts, n, regular, missing, side == 1, totals[node],
                        factors, criterion, min_leaf, left,
                    )  # fmt: skip
                    if position < 0 or score <= scores[node] - _SLACK * abs(scores[node]):
                        continue
                    score = _exact_score(
                        row, order, y, w, start, end, regular, position, side == 1, totals[node],
                        factors, criterion, left,
                    )  # fmt: skip
                    if score > scores[node]:
                        scores[node], features[node] = score, feature
                        positions[node], missing_sides[node] = position, side == 1

    keys, keys2 = np.empty(largest_sorted, np.uint64), np.empty(largest_sorted, np.uint64)
    offsets = np.empty(256, np.uint32)
    for feature in range(first_feature, last_feature):
        row, regular = bins[feature], n_bins[feature]
        n_codes = regular + has_missing[feature]
        if n_codes < 2:
            continue
        for node in range(starts.shape[0]):
            start, end = starts[node], ends[node]
            n = end - start
            if n >= histogram_from or not drawn[feature, node]:
                continue
            sorted_keys = _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets)
            n_present = n
            if has_missing[feature]:
                while n_present > 0 and sorted_keys[n_present - 1] >> _HIGH == regular:
                    n_present -= 1
            for side in range(1 + (n_present < n)):
                score, position = _scan_sorted(
                    sorted_keys, y, w, n, n_present, side == 1, totals[node], factors, criterion,
                    min_leaf, left, right,
                )  # fmt: skip
                if position < 0 or score <= scores[node] - _SLACK * abs(scores[node]):
                    continue
                score = _exact_score(
                    row, order, y, w, start, end, regular, position, side == 1, totals[node],
                    factors, criterion, left,
                )  # fmt: skip
                if score > scores[node]:
                    scores[node], features[node] = score, feature
                    positions[node], missing_sides[node] = position, side == 1


@njit(cache=True, nogil=True)
def partition(
    bins, n_bins, order, y, w, starts, ends, features, positions, missing_sides, middles, totals
):
    """Split nodes in place, keeping the order of samples; also the class weights of the children.

    ``middles[node]`` receives the start of the right child, ``totals[2 * node + side]`` the class
    weights of the left (0) and right (1) child.
    """
    largest_node = 0
    for node in range(starts.shape[0]):
        largest_node = max(largest_node, ends[node] - starts[node])
    order2 = np.empty(largest_node, order.dtype)
    y2 = np.empty(largest_node, y.dtype)
    w2 = np.empty(largest_node, w.dtype)
    for node in range(starts.shape[0]):
        row = bins[features[node]]
        missing_code = n_bins[features[node]]
        position = positions[node]
        missing_left = missing_sides[node]
        totals[2 * node : 2 * node + 2] = 0.0
        n_left = starts[node]
        n_right = 0
        for i in range(starts[node], ends[node]):
            sample, label, weight = order[i], y[i], w[i]
            code = row[sample]
            if code <= position or (missing_left and code == missing_code):
                order[n_left], y[n_left], w[n_left] = sample, label, weight
                totals[2 * node, label] += weight
                n_left += 1
            else:
                order2[n_right], y2[n_right], w2[n_right] = sample, label, weight
                totals[2 * node + 1, label] += weight
                n_right += 1
        middles[node] = n_left
        for i in range(n_right):
            order[n_left + i], y[n_left + i], w[n_left + i] = order2[i], y2[i], w2[i]


@njit(cache=True, nogil=True)
def draw_features(seed, nodes, n_drawn, drawn):
    """Mark ``n_drawn`` features per node, without replacement (Floyd's algorithm).

    The draw depends on the seed and the number of the node only, not on the order of the calls.
    """
    n_features = drawn.shape[0]
    for column in range(nodes.shape[0]):
        state = np.uint64(seed) ^ (np.uint64(nodes[column] + 1) * np.uint64(0xD1342543DE82EF95))
        for last in range(n_features - n_drawn, n_features):
            state += np.uint64(0x9E3779B97F4A7C15)
            mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            pick = np.int64((mixed >> np.uint64(11)) % np.uint64(last + 1))
            if drawn[pick, column]:
                pick = last
            drawn[pick, column] = True


@njit(cache=True, nogil=True)
def digitize(X, edges, limits, first_feature, last_feature, bins):
    """Fill rows of ``bins``: how many edges ``edges[limits[f]:limits[f + 1]]`` are <= the value.

    Rows and features are visited in tiles, since X is read along rows and bins along features.
    """
    n_samples = X.shape[0]
    tile = 32
    for row0 in range(0, n_samples, 512):
        row1 = min(row0 + 512, n_samples)
        for feature0 in range(first_feature, last_feature, tile):
            for f in range(feature0, min(feature0 + tile, last_feature)):
                start = limits[f]
                n_edges = limits[f + 1] - start
                for i in range(row0, row1):
                    x = np.float64(X[i, f])
                    if np.isnan(x):
                        bins[f, i] = n_edges + 1
                        continue
                    low = start
                    n = n_edges
                    while n > 1:
                        half = n >> 1
                        low += half if edges[low + half - 1] <= x else 0
                        n -= half
                    if n == 1 and edges[low] <= x:
                        low += 1
                    bins[f, i] = low - start
