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

# Criteria, as arguments of the kernels: numba compiles a program of its own for each type, without
# the branches that test for None.
GINI = None
ENTROPY = True

# Sums updated sample by sample carry rounding errors. Relative to the weight of a node, within a
# feature a later position must be better by more than _ROUNDING, and across features candidates
# closer than _SLACK are compared on fresh sums.
_ROUNDING = 1e-12
_SLACK = 1e-9
# A child with less than this share of the weight cannot bring a gain that counts.
_NEGLIGIBLE = 1e-14
# Features whose histograms are filled in one pass over the samples of a node.
_BLOCK = 4
# Rows that go through the binary search for bins together.
_ROWS = 256
# Sorting keys hold the bin in the high half and the position of the sample in the low half.
_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def _purity(entropy, factor, weight):
    """Contribution of one class to the purity sum of a node."""
    if entropy is None:
        return factor * weight * weight
    return weight * np.log(weight) if weight > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _split_score(entropy, purity_left, weight_left, purity_right, weight_right):
    """What a split is worth; its gain is this minus the score of the unsplit node."""
    if entropy is None:
        numerator = purity_left * weight_right + purity_right * weight_left
        return numerator / (weight_left * weight_right)
    left = purity_left - weight_left * np.log(weight_left)
    right = purity_right - weight_right * np.log(weight_right)
    return left + right


@njit(cache=True, nogil=True, error_model="numpy")
def _fresh_score(left, totals, node, factors, entropy):
    """Score of a split from the class weights of its left side: of the partition alone.

    Rounded to 41 bits, so that splits of equal worth compare as equal, in whatever order.
    """
    weight_left = 0.0
    weight_right = 0.0
    purity_left = 0.0
    purity_right = 0.0
    for k in range(left.shape[0]):
        right = totals[node, k] - left[k]
        weight_left += left[k]
        weight_right += right
        purity_left += _purity(entropy, factors[k], left[k])
        purity_right += _purity(entropy, factors[k], right)
    if min(weight_left, weight_right) <= _NEGLIGIBLE * (weight_left + weight_right):
        return -np.inf
    score = _split_score(entropy, purity_left, weight_left, purity_right, weight_right)
    # Entropies near zero are differences of numbers as large as the weight: round at that scale.
    offset = 0.0 if entropy is None else 8.0 * (weight_left + weight_right)
    shifted = 4097.0 * (score + offset)
    return shifted - (shifted - (score + offset)) - offset


@njit(cache=True, nogil=True)
def _fill_histograms(bins, n_bins, block, n_block, order, y, w, start, end, n_classes, histograms):
    """Class weights per bin of up to four features, in one pass over the samples of a node.

    The cell of a bin and a class is ``histograms[j, bin * n_classes + class]``.
    """
    for j in range(n_block):
        for cell in range((n_bins[block[j]] + 1) * n_classes):
            histograms[j, cell] = 0.0
    width = np.uint32(n_classes)
    first = np.uint64(start)
    last = np.uint64(end)
    if n_block == _BLOCK:
        row0, row1, row2, row3 = bins[block[0]], bins[block[1]], bins[block[2]], bins[block[3]]
        cells0, cells1, cells2, cells3 = histograms[0], histograms[1], histograms[2], histograms[3]
        for i in range(first, last):
            sample, label, weight = order[i], np.uint32(y[i]), np.float64(w[i])
            cells0[np.uint32(row0[sample]) * width + label] += weight
            cells1[np.uint32(row1[sample]) * width + label] += weight
            cells2[np.uint32(row2[sample]) * width + label] += weight
            cells3[np.uint32(row3[sample]) * width + label] += weight
        return
    for j in range(n_block):
        row, cells = bins[block[j]], histograms[j]
        for i in range(first, last):
            cells[np.uint32(row[order[i]]) * width + np.uint32(y[i])] += w[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _scan_histogram(
    histograms, j, counts, n, n_bins, missing, missing_left, totals, factors, entropy, min_leaf,
    left,
):  # fmt: skip
    """Best position of feature j of a block, missing values on a given side.

    ``left`` is scratch for the class weights; ``counts`` are looked at only if ``min_leaf > 1``.
    """
    n_classes = left.shape[0]
    best = -np.inf
    best_bin = -1
    beaten_above = -np.inf
    n_left = counts[n_bins] if missing_left else 0
    weight_left = 0.0
    total_weight = 0.0
    for k in range(n_classes):
        total_weight += totals[k]
        left[k] = histograms[j, n_bins * n_classes + k] if missing_left else 0.0
        weight_left += left[k]
    for b in range(n_bins if missing and not missing_left else n_bins - 1):
        weight = 0.0
        purity_left = 0.0
        purity_right = 0.0
        for k in range(n_classes):
            cell = histograms[j, b * n_classes + k]
            left[k] += cell
            weight += cell
            purity_left += _purity(entropy, factors[k], left[k])
            purity_right += _purity(entropy, factors[k], totals[k] - left[k])
        weight_left += weight
        n_left += counts[b]
        if weight <= 0.0 or (min_leaf > 1 and min(n_left, n - n_left) < min_leaf):
            continue
        weight_right = total_weight - weight_left
        if min(weight_left, weight_right) <= _NEGLIGIBLE * total_weight:
            continue
        score = _split_score(entropy, purity_left, weight_left, purity_right, weight_right)
        if score > beaten_above:
            best = score
            best_bin = b
            beaten_above = score + _ROUNDING * total_weight
    return best, best_bin


@njit(cache=True, nogil=True)
def split_large_nodes(
    bins, n_bins, has_missing, order, y, w, starts, ends, totals, factors, drawn, entropy,
    min_leaf, first_feature, last_feature, scores, features, positions, missing_sides,
):  # fmt: skip
    """Best split of every node over the features ``first_feature <= f < last_feature``.

    ``drawn[f, node]`` says which features a node may use. The last four arrays receive, for each
    node, the score of the best split (``-inf`` if there is none), its feature, the last bin that
    goes left, and whether missing values go left. Ties go to the lowest feature, then to missing
    values on the right, then to the lowest bin. Bins are bytes; the work is done by histograms.
    """
    n_classes = totals.shape[1]
    left = np.empty(n_classes)
    counts = np.zeros(257, np.int64)
    histograms = np.empty((_BLOCK, 257 * n_classes))
    block = np.empty(_BLOCK, np.int64)
    for node in range(starts.shape[0]):
        best = -np.inf
        slack = 0.0
        for k in range(n_classes):
            slack += _SLACK * totals[node, k]
        start = starts[node]
        end = ends[node]
        f = first_feature
        while f < last_feature:
            n_block = 0
            while f < last_feature and n_block < _BLOCK:
                if drawn[f, node] and n_bins[f] + has_missing[f] > 1:
                    block[n_block] = f
                    n_block += 1
                f += 1
            _fill_histograms(
                bins, n_bins, block, n_block, order, y, w, start, end, n_classes, histograms
            )
            for j in range(n_block):
                feature = block[j]
                row = bins[feature]
                regular = n_bins[feature]
                if min_leaf > 1:
                    for c in range(regular + 1):
                        counts[c] = 0
                    for i in range(start, end):
                        counts[row[order[i]]] += 1
                missing_weight = 0.0
                if has_missing[feature]:
                    for k in range(n_classes):
                        missing_weight += histograms[j, regular * n_classes + k]
                for side in range(1 + (missing_weight > 0.0)):
                    score, position = _scan_histogram(
                        histograms, j, counts, end - start, regular, missing_weight > 0.0,
                        side == 1, totals[node], factors, entropy, min_leaf, left,
                    )  # fmt: skip
                    if position < 0 or score <= best - slack:
                        continue
                    for k in range(n_classes):
                        left[k] = histograms[j, regular * n_classes + k] if side == 1 else 0.0
                        for b in range(position + 1):
                            left[k] += histograms[j, b * n_classes + k]
                    score = _fresh_score(left, totals, node, factors, entropy)
                    if score > best:
                        best = score
                        features[node] = feature
                        positions[node] = position
                        missing_sides[node] = side == 1
        scores[node] = best


@njit(cache=True, nogil=True, inline="always")
def _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets):
    """Sort the samples of a node by bin: keys of bin (high) and position in ``order`` (low).

    A radix sort, one byte at a time; returns the one of the two buffers that holds the result.
    """
    first = np.uint64(start)
    last = np.uint64(start + n)
    for c in range(256):
        offsets[c] = 0
    for i in range(first, last):
        offsets[row[order[i]] & 255] += np.uint32(1)
    shift = _HIGH
    while True:
        total = np.uint32(0)
        for c in range(256):
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
        for c in range(256):
            offsets[c] = 0
        for i in range(n):
            offsets[keys[i] >> shift & np.uint64(255)] += np.uint32(1)
        keys, keys2 = keys2, keys


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _scan_sorted(
    keys, y, w, n, n_present, missing_left, totals, factors, entropy, min_leaf, left, right
):
    """Best position of a feature from its sorted samples: the same work for every sample.

    The first ``n_present`` of the ``n`` samples have a value; ``left``, ``right`` are scratch.
    """
    n_classes = left.shape[0]
    for k in range(n_classes):
        left[k] = 0.0
    n_missing_left = 0
    if missing_left:
        n_missing_left = n - n_present
        for i in range(n_present, n):
            sample = keys[i] & _LOW
            left[y[sample]] += w[sample]
    weight_left = 0.0
    weight_right = 0.0
    purity_left = 0.0
    purity_right = 0.0
    for k in range(n_classes):
        right[k] = totals[k] - left[k]
        weight_left += left[k]
        weight_right += right[k]
        purity_left += _purity(entropy, factors[k], left[k])
        purity_right += _purity(entropy, factors[k], right[k])
    total_weight = weight_left + weight_right
    negligible = _NEGLIGIBLE * total_weight
    refresh_below = max(weight_right / 8.0, negligible)
    first = min_leaf - n_missing_left
    last = min(n - min_leaf - n_missing_left, n_present)
    best = -np.inf
    best_bin = -1
    beaten_above = 0.0 if entropy is None else -np.inf
    for n_left in range(1, last + 1):
        key = keys[np.uint64(n_left - 1)]
        sample = key & _LOW
        label = y[sample]
        factor = factors[label]
        weight = np.float64(w[sample])
        before_left = left[label]
        before_right = right[label]
        left[label] = before_left + weight
        right[label] = before_right - weight
        if entropy is None:
            purity_left += factor * weight * (2.0 * before_left + weight)
            purity_right -= factor * weight * (2.0 * before_right - weight)
        else:
            purity_left += _purity(entropy, factor, before_left + weight)
            purity_left -= _purity(entropy, factor, before_left)
            purity_right += _purity(entropy, factor, before_right - weight)
            purity_right -= _purity(entropy, factor, before_right)
        weight_left += weight
        weight_right -= weight
        if weight_right < refresh_below:
            # What is left of a large sum after many subtractions is mostly rounding error.
            weight_right = 0.0
            purity_right = 0.0
            for k in range(n_classes):
                weight_right += right[k]
                purity_right += _purity(entropy, factors[k], right[k])
            if weight_right <= negligible:
                break
            refresh_below = max(weight_right / 8.0, negligible)
        if entropy is None:
            numerator = purity_left * weight_right + purity_right * weight_left
            better = numerator > beaten_above * (weight_left * weight_right)
        else:
            score = _split_score(entropy, purity_left, weight_left, purity_right, weight_right)
            better = score > beaten_above
        # Rarely better, often the end of a bin: in this order the processor guesses right.
        if (
            better
            and n_left >= first
            and (n_left == n_present or (key ^ keys[np.uint64(n_left)]) >> _HIGH != 0)
        ):
            best = _split_score(entropy, purity_left, weight_left, purity_right, weight_right)
            best_bin = np.int64(key >> _HIGH)
            beaten_above = best + _ROUNDING * total_weight
    return best, best_bin


@njit(cache=True, nogil=True, error_model="numpy")
def split_small_nodes(
    bins, n_bins, has_missing, order, y, w, starts, ends, totals, factors, drawn, entropy,
    min_leaf, first_feature, last_feature, scores, features, positions, missing_sides,
):  # fmt: skip
    """The same as `split_large_nodes` for nodes with few samples and bins of any type, by sorting.

    Features are the outer loop, so that a row of bins is read once for all nodes.
    """
    n_classes = totals.shape[1]
    largest = 1
    slack = np.zeros(starts.shape[0])
    for node in range(starts.shape[0]):
        for k in range(n_classes):
            slack[node] += _SLACK * totals[node, k]
        scores[node] = -np.inf
        largest = max(largest, ends[node] - starts[node])
    left = np.empty(n_classes)
    right = np.empty(n_classes)
    keys = np.empty(largest, np.uint64)
    keys2 = np.empty(largest, np.uint64)
    offsets = np.empty(256, np.uint32)
    for feature in range(first_feature, last_feature):
        row = bins[feature]
        regular = n_bins[feature]
        n_codes = regular + has_missing[feature]
        if n_codes < 2:
            continue
        for node in range(starts.shape[0]):
            if not drawn[feature, node]:
                continue
            start = starts[node]
            n = ends[node] - start
            ordered = _sort_by_bin(row, order, start, n, n_codes, keys, keys2, offsets)
            n_present = n
            if has_missing[feature]:
                while n_present > 0 and ordered[n_present - 1] >> _HIGH == regular:
                    n_present -= 1
            for side in range(1 + (n_present < n)):
                score, position = _scan_sorted(
                    ordered, y, w, n, n_present, side == 1, totals[node], factors, entropy,
                    min_leaf, left, right,
                )  # fmt: skip
                best = scores[node]
                if position < 0 or score <= best - slack[node]:
                    continue
                for k in range(n_classes):
                    left[k] = 0.0
                for i in range(start, start + n):
                    code = row[order[i]]
                    if code <= position or (side == 1 and code == regular):
                        left[y[i]] += w[i]
                score = _fresh_score(left, totals, node, factors, entropy)
                if score > best:
                    scores[node] = score
                    features[node] = feature
                    positions[node] = position
                    missing_sides[node] = side == 1


@njit(cache=True, nogil=True)
def partition(
    bins, n_bins, order, y, w, starts, ends, features, positions, missing_sides, middles, totals,
    any_missing,
):  # fmt: skip
    """Split nodes in place, keeping the order of samples.

    ``middles[node]`` receives the start of the right child, ``totals[2 * node + side]`` the class
    weights of the left (0) and right (1) child, ``any_missing[node]`` whether a value was missing.
    """
    most_right = 0
    for node in range(starts.shape[0]):
        row = bins[features[node]]
        n_right = 0
        for i in range(np.uint64(starts[node]), np.uint64(ends[node])):
            n_right += row[order[i]] > positions[node]
        most_right = max(most_right, n_right)
    order2 = np.empty(most_right + 1, order.dtype)
    y2 = np.empty(most_right + 1, y.dtype)
    w2 = np.empty(most_right + 1, w.dtype)
    for node in range(starts.shape[0]):
        row = bins[features[node]]
        missing_code = n_bins[features[node]]
        position = positions[node]
        missing_left = missing_sides[node]
        for k in range(totals.shape[1]):
            totals[2 * node, k] = 0.0
            totals[2 * node + 1, k] = 0.0
        any_missing[node] = False
        n_left = np.uint64(starts[node])
        n_right = np.uint64(0)
        for i in range(np.uint64(starts[node]), np.uint64(ends[node])):
            sample = order[i]
            label = y[i]
            weight = w[i]
            code = row[sample]
            any_missing[node] |= code == missing_code
            # Written to both sides, of which one moves on: no branch to mispredict.
            right = (code > position) & ((not missing_left) | (code != missing_code))
            order[n_left] = sample
            y[n_left] = label
            w[n_left] = weight
            order2[n_right] = sample
            y2[n_right] = label
            w2[n_right] = weight
            totals[np.uint64(2 * node + right), label] += weight
            n_left += np.uint64(not right)
            n_right += np.uint64(right)
        middles[node] = n_left
        for i in range(n_right):
            order[n_left + i] = order2[i]
            y[n_left + i] = y2[i]
            w[n_left + i] = w2[i]


@njit(cache=True, nogil=True)
def draw_features(seed, numbers, n_drawn, drawn):
    """Mark ``n_drawn`` features per column, without replacement (Floyd's algorithm).

    The draw depends on the seed and the number of the column only, not on the order of the calls:
    nodes or levels have numbers.
    """
    n_features = drawn.shape[0]
    for column in range(numbers.shape[0]):
        state = np.uint64(seed) ^ (np.uint64(numbers[column] + 1) * np.uint64(0xD1342543DE82EF95))
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

    A block of rows goes through the binary search together, one halving at a time, without
    branches. Indices are unsigned here and elsewhere, since numba checks signed ones for wrapping.
    """
    n_rows = X.shape[0]
    values = np.empty(_ROWS, np.float64)
    found = np.empty(_ROWS, np.uint32)
    one = np.uint32(1)
    for row0 in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - row0)
        for f in range(first_feature, last_feature):
            row_edges = edges[limits[f] : limits[f + 1]]
            for i in range(n):
                values[i] = X[row0 + i, f]
                found[i] = 0
            remaining = row_edges.shape[0]
            while remaining > 1:
                half = np.uint32(remaining >> 1)
                for i in range(n):
                    middle = found[i] + half
                    found[i] = middle if row_edges[middle - one] <= values[i] else found[i]
                remaining -= half
            if remaining == 1:
                for i in range(n):
                    found[i] += np.uint32(row_edges[found[i]] <= values[i])
            for i in range(n):
                bins[f, row0 + i] = (
                    row_edges.shape[0] + 1 if np.isnan(values[i]) else np.int64(found[i])
                )
