"""Compiled search for the best splits of nodes: by histograms, by sorting, or for a whole level.

Nodes with many samples are searched by histograms, node after node; those with few by sorting,
feature after feature. Categories are tried in the order of a projection, see `rank_categories`.
``sets`` is None where no feature is categorical, ``alike`` unless trees are symmetric, ``store``
where bins are no bytes: what is not needed is not compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from badacost.kernel_cache import njit
from badacost.tree.gain_kernels import (
    INNER,
    NEGLIGIBLE,
    advance,
    beats,
    count_columns,
    node_score,
    purity_and_mass,
    purity_rise,
    purity_term,
    rounded,
    score_to_beat,
    split_score,
)
from badacost.tree.histogram_kernels import (
    FEATURES_AT_ONCE,
    count_samples,
    fill_one,
    get_histograms,
    has_mass,
    rank_categories,
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
# Sorting keys hold the bin in the high half and the position of the sample in the low half.
_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


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


@njit(**INNER)
def improve(found, j, score, feature, position, missing_left):
    """Take a split if it is better than the best so far."""
    if not score > found[j].score:
        return False
    found[j].score = score
    found[j].feature = feature
    found[j].position = position
    found[j].missing_left = missing_left
    return True


@njit(**INNER)
def mark_set(words, ranked, first, last):
    """Make a set of the categories at some ranks."""
    for word in range(words.shape[0]):
        words[word] = 0
    for q in range(first, last):
        words[ranked[q] >> 5] |= np.uint32(1) << np.uint32(ranked[q] & 31)


@njit(**INNER, error_model="numpy")
def scan_histogram(
    gain, width, cells, counts, n, n_bins, missing, totals, mass, min_leaf, left, feature, found, j,
    categorical, sets,
):  # fmt: skip
    """Improve ``found[j]`` by the splits of a feature, from its histogram.

    ``counts`` are looked at if a leaf needs more than one sample. Categories are scanned in the
    order of their ranks; those after the split are the set ``sets[j]`` that goes right.
    """
    n_columns = count_columns(width, totals)
    after = n_bins * n_columns
    bound = score_to_beat(found[j].score, mass)
    n_ranked = n_bins
    if sets is not None:
        ranked = np.empty(n_bins, np.int64)
        for b in range(n_bins):
            ranked[b] = b
        if categorical:
            n_ranked = rank_categories(gain, width, cells, n_bins, totals, ranked)
    for side in range(1 + missing):
        n_left = counts[n_bins] if side == 1 else 0
        for c in range(n_columns):
            left[c] = cells[after + c] if side == 1 else 0.0
        if sets is not None and n_ranked < n_bins:  # categories without mass stay on the left
            for b in range(n_bins):
                if not has_mass(gain, width, cells, b * n_columns, totals):
                    n_left += counts[b]
                    for c in range(n_columns):
                        left[c] += cells[b * n_columns + c]
        for rank in range(n_ranked if missing and side == 0 else n_ranked - 1):
            b = rank
            if sets is not None:
                b = ranked[rank]
            first = np.uint64(b * n_columns)
            better = advance(gain, width, left, cells, first, totals, mass, bound)
            n_left += counts[b]
            if not better or (min_leaf > 1 and min(n_left, n - n_left) < min_leaf):
                continue
            if improve(found, j, split_score(gain, width, left, totals), feature, b, side == 1):
                bound = score_to_beat(found[j].score, mass)
                if sets is not None:
                    mark_set(sets[j], ranked, rank + 1, n_ranked if categorical else 0)


@njit(**INNER)
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
        if shift == np.uint64(64) or (np.uint64(n_codes - 1) << _HIGH) >> shift == 0:
            return keys
        for c in range(n_used):
            offsets[c] = 0
        for i in range(n):
            offsets[keys[i] >> shift & np.uint64(255)] += np.uint32(1)
        keys, keys2 = keys2, keys


@njit(**INNER)
def _ends_bin(keys, n_left, n_present):
    """Whether the sample before ``n_left`` is the last one of its bin."""
    if n_left == n_present:
        return True
    return (keys[np.uint64(n_left - 1)] ^ keys[np.uint64(n_left)]) >> _HIGH != 0


@njit(**INNER, error_model="numpy")
def _scan_sorted_rows(
    gain, width, keys, rows, totals, ends, n_present, left, feature, side, found, j
):
    """Improve ``found[j]`` by the splits of a feature, row after row in the order of its bins."""
    for n_left in range(1, ends[1] + 1):
        key = keys[np.uint64(n_left - 1)]
        for c in range(count_columns(width, totals)):
            left[c] += rows[key & _LOW, c]
        if n_left >= ends[0] and _ends_bin(keys, n_left, n_present):
            score = split_score(gain, width, left, totals)
            improve(found, j, score, feature, np.int64(key >> _HIGH), side == 1)


@njit(**INNER, error_model="numpy")
def _scan_sorted_labels(
    gain, width, keys, labels, weights, unit, totals, mass, ends, n_present, left, right, feature,
    side, found, j,
):  # fmt: skip
    """The same for labels: purities are brought up to date, which takes no longer for larger C."""
    n_columns = count_columns(width, totals)
    bound = score_to_beat(found[j].score, mass)
    mass_left = 0.0
    purity_left = 0.0
    purity_right = 0.0
    for c in range(n_columns):
        right[c] = totals[c] - left[c]
        mass_left += left[c]
        purity_left += purity_term(gain, c, n_columns, left[c])
        purity_right += purity_term(gain, c, n_columns, right[c])
    mass_right = mass - mass_left
    negligible = NEGLIGIBLE * mass
    refresh_below = max(mass_right / 8.0, negligible)
    for n_left in range(1, ends[1] + 1):
        key = keys[np.uint64(n_left - 1)]
        sample = key & _LOW
        label = np.uint64(labels[sample])
        weight = rounded(weights[sample], unit)
        before_left = left[label]
        before_right = right[label]
        left[label] = before_left + weight
        right[label] = before_right - weight
        purity_left += purity_rise(gain, label, before_left, weight)
        purity_right += purity_rise(gain, label, before_right, -weight)
        mass_left += weight
        mass_right -= weight
        if mass_right < refresh_below:
            # What is left of a large sum after many subtractions is mostly rounding error.
            if mass_right <= negligible:
                break
            purity_right = 0.0
            for c in range(n_columns):
                purity_right += purity_term(gain, c, n_columns, right[c])
            refresh_below = max(mass_right / 8.0, negligible)
        # Rarely better, often the end of a bin: in this order the processor guesses right.
        if (
            beats(gain, purity_left, mass_left, purity_right, mass_right, bound)
            and n_left >= ends[0]
            and _ends_bin(keys, n_left, n_present)
        ):
            score = split_score(gain, width, left, totals)
            if improve(found, j, score, feature, np.int64(key >> _HIGH), side == 1):
                bound = score_to_beat(score, mass)


@njit(**INNER)
def _scan_sorted(
    gain, width, keys, labels, weights, rows, n, unit, totals, mass, min_leaf, n_present, left,
    right, feature, found, j,
):  # fmt: skip
    """Improve ``found[j]`` by the splits of a feature, from the sorted samples of a node.

    The first ``n_present`` of the ``n`` samples have a value.
    """
    n_columns = count_columns(width, totals)
    for side in range(1 + (n_present < n)):
        for c in range(n_columns):
            left[c] = 0.0
        n_gone = n - n_present if side == 1 else 0
        for i in range(n_present, n_present + n_gone):
            sample = keys[i] & _LOW
            if width is None:
                left[labels[sample]] += rounded(weights[sample], unit)
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


@njit(**INNER)
def _is_large(nodes, node, large_from):
    """Whether a node is searched by histograms."""
    return nodes[node].end - nodes[node].start >= large_from or nodes[node].slot >= 0


@njit(**INNER)
def _search_large(
    data, sums, width, gain, limits, nodes, totals, store, jobs, drawn, first, last, found, sets
):
    """Best splits of nodes with many samples, by histograms: node after node."""
    n_large = 0
    for j in range(jobs.shape[0]):
        n_large += _is_large(nodes, jobs[j], limits.large_from)
    if n_large == 0:
        return
    n_columns = count_columns(width, totals)
    left = np.empty(n_columns)
    counts = np.zeros(257, np.int64)
    block = np.empty(FEATURES_AT_ONCE, np.int64)
    lines = np.empty(FEATURES_AT_ONCE, np.int64)
    scratch = np.empty((FEATURES_AT_ONCE, 257 * n_columns))
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
            while f < last and n_block < FEATURES_AT_ONCE:
                if data.n_codes[f] > 1 and (drawn.shape[1] == 0 or drawn[f, j]):
                    block[n_block] = f
                    lines[n_block] = n_block if slot < 0 else f
                    n_block += 1
                f += 1
            get_histograms(
                data, sums, width, nodes, store, block, lines, n_block, node, n_columns, cells
            )
            if not nodes[node].active:
                continue
            for b in range(n_block):
                feature, line = block[b], cells[lines[b]]
                n_bins = data.n_bins[feature]
                if min_leaf > 1:
                    row = data.bins[feature]
                    count_samples(row, sums.order, start, end, data.n_codes[feature], counts)
                missing = data.has_missing[feature] and has_mass(
                    gain, width, line, n_bins * n_columns, totals
                )
                scan_histogram(
                    gain, width, line, counts, end - start, n_bins, missing, totals[node], mass,
                    min_leaf, left, feature, found, j, data.categorical[feature], sets,
                )  # fmt: skip


@njit(**INNER)
def _search_small(
    data, sums, width, gain, limits, nodes, totals, jobs, drawn, first, last, found, sets
):
    """Best splits of nodes with few samples, by sorting, and of bins of any type.

    Features are the outer loop, so that a row of bins is read once for all nodes.
    """
    order, labels, weights, rows = sums
    n_columns = count_columns(width, totals)
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
                fill_one(row, sums, width, start, start + n, unit, n_columns, cells)
                count_samples(row, order, start, start + n, n_codes, counts)
                missing = data.has_missing[feature] and counts[n_bins] > 0
                scan_histogram(
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


@njit(**INNER)
def _rank_for_level(data, sums, width, gain, nodes, totals, jobs, feature, ranked):
    """Put the categories of a feature into one order for all nodes of a level."""
    n_columns = count_columns(width, totals)
    pooled = np.zeros(data.n_codes[feature] * n_columns)
    whole = np.zeros(n_columns)
    for j in range(jobs.shape[0]):
        start, end, unit = nodes[jobs[j]].start, nodes[jobs[j]].end, nodes[jobs[j]].unit
        fill_one(data.bins[feature], sums, width, start, end, unit, n_columns, pooled)
        for c in range(n_columns):
            whole[c] += totals[jobs[j], c]
    return rank_categories(gain, width, pooled, data.n_bins[feature], whole, ranked)


@njit(**INNER, error_model="numpy")
def add_scores(gain, width, cells, after, missing, totals, ranked, n_ranked, left, joint):
    """Add the scores of all tests of a feature on one node to ``joint[missing_left, rank]``.

    A test that does not divide the node leaves it its own score.
    """
    n_columns = count_columns(width, totals)
    purity, mass = purity_and_mass(gain, width, totals)
    alone = node_score(gain, purity, mass)
    for side in range(1 + missing):
        for c in range(n_columns):
            left[c] = cells[after + c] if side == 1 else 0.0
        for rank in range(n_ranked):
            for c in range(n_columns):
                left[c] += cells[ranked[rank] * n_columns + c]
            score = split_score(gain, width, left, totals)
            score = alone if score == -np.inf else score
            joint[side, rank] += score
            if not missing:
                joint[1, rank] += score


@njit(**INNER)
def improve_level(data, feature, joint, any_missing, ranked, n_ranked, found, sets):
    """Put the best test of a feature by ``joint`` scores into ``found[0]``, if it is better."""
    for side in range(1 + any_missing):
        for rank in range(n_ranked if any_missing and side == 0 else n_ranked - 1):
            better = improve(found, 0, joint[side, rank], feature, ranked[rank], side == 1)
            if sets is not None and better:
                n_last = n_ranked if data.categorical[feature] else 0
                mark_set(sets[0], ranked, rank + 1, n_last)


@njit(**INNER)
def _search_level(
    data, sums, width, gain, nodes, totals, store, jobs, drawn, first, last, found, sets
):
    """Best test for all nodes of a level together, into ``found[0]``."""
    n_columns = count_columns(width, totals)
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
            get_histograms(
                data, sums, width, nodes, store, features, lines, np.int64(1), node, n_columns,
                cells,
            )  # fmt: skip
            line = cells[lines[0]]
            missing = data.has_missing[feature] and has_mass(gain, width, line, after, totals)
            any_missing |= missing
            add_scores(
                gain, width, line, after, missing, totals[node], ranked, n_ranked, left, joint
            )
        improve_level(data, feature, joint, any_missing, ranked, n_ranked, found, sets)


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
        if store is not None:
            _search_large(
                data, sums, width, gain, limits, nodes, totals, store, jobs, drawn, first, last,
                found, sets,
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
    n_draws = 1 if alike else jobs.shape[0]
    drawn = np.zeros((n_features, n_draws), np.bool_)
    for j in range(n_draws):
        by_level = limits.draw_per_level or alike
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
