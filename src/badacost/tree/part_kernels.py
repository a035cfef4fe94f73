"""Compiled loops for trees whose samples are in several parts.

A part divides the samples of nodes and sums over them; whoever grows the tree has the sums only,
searches splits in them, and tells the parts which nodes to divide. Nodes have the same numbers in
all places, and any test has the same outcome as in `badacost.tree.growth_kernels`.
"""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit
from badacost.tree.gain_kernels import (
    INNER,
    count_columns,
    purity_and_mass,
    rounded,
)
from badacost.tree.growth_kernels import (
    FIRST,
    LAST,
    N_LEAVES,
    N_NODES,
    RESCALE,
    add_node,
    choose_best,
    goes_right,
    is_active,
    measure_gain,
    partition,
    take_level_test,
    take_split,
)
from badacost.tree.histogram_kernels import (
    FEATURES_AT_ONCE,
    count_samples,
    fill_four,
    fill_one,
    has_mass,
    rank_categories,
)
from badacost.tree.split_kernels import add_scores, improve_level, scan_histogram

NO_COUNTS = np.empty((0, 0, 0), np.int64)


@njit(cache=True, nogil=True)
def divide(data, sums, width, n_columns, nodes, divided, lefts, sets, sizes, missing):
    """Divide the samples of nodes, whose tests are set, between their children.

    Fills ``sizes[s]``, the samples of both children, and whether any value is ``missing[s]``.
    """
    totals = np.empty((2, n_columns))
    for s in range(divided.shape[0]):
        node, left = divided[s], lefts[s]
        feature = nodes[node].feature
        codes, missing_code = data.bins[feature], data.n_bins[feature]
        if sets is not None and data.categorical[feature]:
            middle, any_missing = partition(
                codes, missing_code, sets[s], sums, width, nodes, node, np.int64(0), totals
            )
        else:
            middle, any_missing = partition(
                codes, missing_code, None, sums, width, nodes, node, np.int64(0), totals
            )
        start, end = nodes[node].start, nodes[node].end
        sizes[s, 0], sizes[s, 1], missing[s] = middle - start, end - middle, any_missing
        add_node(nodes, left, node, start, middle, 0, 1.0)
        add_node(nodes, left + 1, node, middle, end, 0, 1.0)


@njit(cache=True, nogil=True)
def sum_nodes(data, sums, width, nodes, asked, units, features, first, last, cells, counts):
    """Fill histograms of some nodes, ``cells[j, p]`` for the feature ``features[j, p]``.

    For ``first <= p < last``; ``counts`` of samples by bin are empty or of the shape of the bins.
    """
    n_columns = np.int64(cells.shape[2] // (data.n_codes.max()))
    block = np.empty(FEATURES_AT_ONCE, np.int64)
    lines = np.empty(FEATURES_AT_ONCE, np.int64)
    for j in range(asked.shape[0]):
        start, end, unit = nodes[asked[j]].start, nodes[asked[j]].end, units[j]
        p = first
        while p < last:
            n_block = min(FEATURES_AT_ONCE, last - p)
            for b in range(n_block):
                block[b] = features[j, p + b]
                lines[b] = p + b
            if n_block == FEATURES_AT_ONCE:
                fill_four(
                    data.bins, sums, width, block, lines, start, end, unit, n_columns, cells[j]
                )
            else:
                for b in range(n_block):
                    row = data.bins[block[b]]
                    fill_one(row, sums, width, start, end, unit, n_columns, cells[j, p + b])
            if counts.shape[0] > 0:
                for b in range(n_block):
                    n_codes = data.n_codes[block[b]]
                    row = data.bins[block[b]]
                    count_samples(row, sums.order, start, end, n_codes, counts[j, p + b])
            p += n_block


@njit(cache=True, nogil=True)
def weigh(sums, nodes, asked, sizes, largest):
    """Number of samples, and largest weight, of some nodes."""
    for j in range(asked.shape[0]):
        start, end = nodes[asked[j]].start, nodes[asked[j]].end
        sizes[j] = end - start
        if sums.weights.shape[0] > 0:
            for i in range(np.uint64(start), np.uint64(end)):
                largest[j] = max(largest[j], sums.weights[i])


@njit(cache=True, nogil=True)
def total(sums, width, nodes, asked, units, totals):
    """Sums of some nodes, in multiples of the quantum of a unit."""
    for j in range(asked.shape[0]):
        for i in range(np.uint64(nodes[asked[j]].start), np.uint64(nodes[asked[j]].end)):
            if width is None:
                totals[j, np.uint64(sums.labels[i])] += rounded(sums.weights[i], units[j])
            else:
                for c in range(len(width)):
                    totals[j, c] += sums.rows[i, c]


@njit(cache=True, nogil=True)
def total_finely(sums, nodes, asked, units, fine, totals):
    """Sums ``totals[0]`` of some leaves, and ``totals[1]`` of what rounding left over."""
    for j in range(asked.shape[0]):
        for i in range(np.uint64(nodes[asked[j]].start), np.uint64(nodes[asked[j]].end)):
            weight, label = np.float64(sums.weights[i]), np.uint64(sums.labels[i])
            high = rounded(weight, units[j])
            totals[0, j, label] += high
            totals[1, j, label] += rounded(weight - high, fine[j])


@njit(cache=True, nogil=True)
def set_mass(width, gain, nodes, first, last, totals, light):
    """Set the mass of nodes; mark those that are light for their unit, and need one of their own.

    Rows of numbers have their quantum once and for all.
    """
    for node in range(first, last):
        _, nodes[node].mass = purity_and_mass(gain, width, totals[node])
        light[node - first] = nodes[node].mass < RESCALE * nodes[node].unit


@njit(cache=True, nogil=True)
def add_root(nodes, totals, state):
    """Begin a tree."""
    add_node(nodes, np.int64(0), np.int64(-1), np.int64(0), np.int64(0), 0, np.inf)
    for c in range(totals.shape[1]):
        totals[0, c] = 0.0
    state[N_NODES] = state[LAST] = state[N_LEAVES] = 1


@njit(cache=True, nogil=True)
def set_active(width, limits, nodes, totals, state, alike, sized):
    """Set which new nodes may be split: as far as sums tell, and numbers of samples if `sized`."""
    for node in range(state[FIRST], state[LAST]):
        if not sized:
            start, end = nodes[node].start, nodes[node].end
            nodes[node].start, nodes[node].end = 0, 2**62
        nodes[node].active = is_active(
            width, limits, nodes, node, totals[node], state[N_LEAVES], alike
        )
        if not sized:
            nodes[node].start, nodes[node].end = start, end


@njit(**INNER)
def _search_nodes(
    data, width, gain, limits, nodes, totals, jobs, features, cells, counts, first, last, found,
    sets,
):  # fmt: skip
    """Best splits of nodes, each by itself."""
    n_columns = count_columns(width, totals)
    left = np.empty(n_columns)
    none = np.zeros(data.n_codes.max() + 1, np.int64)
    for j in range(jobs.shape[0]):
        node = jobs[j]
        for p in range(first, last):
            feature, line = features[j, p], cells[j, p]
            n_bins = data.n_bins[feature]
            if data.n_codes[feature] < 2:
                continue
            missing = data.has_missing[feature] and has_mass(
                gain, width, line, n_bins * n_columns, totals
            )
            counted = none
            if counts.shape[0] > 0:
                counted = counts[j, p]
            scan_histogram(
                gain, width, line, counted, nodes[node].end - nodes[node].start, n_bins, missing,
                totals[node], nodes[node].mass, limits.min_samples_leaf, left, feature, found, j,
                data.categorical[feature], sets,
            )  # fmt: skip


@njit(**INNER)
def _search_level(data, width, gain, totals, jobs, features, cells, first, last, found, sets):
    """Best test for all nodes of a level together, into ``found[0]``."""
    n_columns = count_columns(width, totals)
    left = np.empty(n_columns)
    joint = np.empty((2, 257))
    ranked = np.empty(257, np.int64)
    for p in range(first, last):
        feature = features[0, p]
        if data.n_codes[feature] < 2:
            continue
        n_ranked = data.n_bins[feature]
        after = n_ranked * n_columns
        for b in range(n_ranked):
            ranked[b] = b
        if sets is not None and data.categorical[feature]:
            pooled = np.zeros(data.n_codes[feature] * n_columns)
            whole = np.zeros(n_columns)
            for j in range(jobs.shape[0]):
                for cell in range(pooled.shape[0]):
                    pooled[cell] += cells[j, p, cell]
                for c in range(n_columns):
                    whole[c] += totals[jobs[j], c]
            n_ranked = rank_categories(gain, width, pooled, data.n_bins[feature], whole, ranked)
        for b in range(257):
            joint[0, b] = joint[1, b] = 0.0
        any_missing = False
        for j in range(jobs.shape[0]):
            line = cells[j, p]
            missing = data.has_missing[feature] and has_mass(gain, width, line, after, totals)
            any_missing |= missing
            add_scores(
                gain, width, line, after, missing, totals[jobs[j]], ranked, n_ranked, left, joint
            )
        improve_level(data, feature, joint, any_missing, ranked, n_ranked, found, sets)


@njit(cache=True, nogil=True)
def search_sums(
    data, width, gain, limits, nodes, totals, jobs, features, cells, counts, first, last, found,
    sets, alike,
):  # fmt: skip
    """Best splits of the nodes ``jobs`` by the features ``features[j, first:last]``.

    The same as `badacost.tree.split_kernels.search`, from histograms ``cells[j, p]``.
    """
    for j in range(jobs.shape[0]):
        found[j].score = -np.inf
    if not alike:
        _search_nodes(
            data, width, gain, limits, nodes, totals, jobs, features, cells, counts, first, last,
            found, sets,
        )  # fmt: skip
    elif jobs.shape[0]:
        _search_level(data, width, gain, totals, jobs, features, cells, first, last, found, sets)


@njit(**INNER)
def _sum_left(data, width, nodes, node, features, cells, words, left):
    """Sums of the samples that go left, from the histogram of the feature that is tested."""
    feature, position = nodes[node].feature, nodes[node].position
    missing_left, missing_code = nodes[node].missing_left, data.n_bins[feature]
    p = 0
    while features[p] != feature:
        p += 1
    n_columns = left.shape[0]
    for c in range(n_columns):
        left[c] = 0.0
    for code in range(data.n_codes[feature]):
        if words is not None and data.categorical[feature]:
            right = goes_right(code, position, missing_left, missing_code, words)
        else:
            right = goes_right(code, position, missing_left, missing_code, None)
        if not right:
            for c in range(n_columns):
                left[c] += cells[p, code * n_columns + c]


@njit(**INNER)
def _sum_left_of(data, width, nodes, node, features, cells, sets, lefts):
    """The same for a node whose set of categories, if there are any, is its row of ``sets``."""
    j = nodes[node].job
    if sets is None:
        _sum_left(data, width, nodes, node, features[j], cells[j], None, lefts[node])
    else:
        _sum_left(data, width, nodes, node, features[j], cells[j], sets[node], lefts[node])


@njit(**INNER)
def _add_children(nodes, node, totals, lefts, state):
    """Turn a leaf with a test into two, as far as sums go; numbers of samples follow."""
    left = state[N_NODES]
    depth, unit = nodes[node].depth + 1, nodes[node].unit
    add_node(nodes, left, node, 0, 0, depth, unit)
    add_node(nodes, left + 1, node, 0, 0, depth, unit)
    nodes[node].left = left
    for c in range(totals.shape[1]):
        totals[left, c] = lefts[node, c]
        totals[left + 1, c] = totals[node, c] - lefts[node, c]
    state[N_NODES] += 2
    state[N_LEAVES] += 1


@njit(cache=True, nogil=True)
def take_splits(
    data, width, gain, limits, nodes, totals, lefts, features, cells, found, n_parts, found_sets,
    sets, state, divided, alike,
):  # fmt: skip
    """Choose tests from what was found; list the nodes ``divided`` by them, return how many.

    ``lefts`` keeps the sums of the left sides of nodes that wait to be split.
    """
    free = np.empty(0, np.int32)
    first, last = state[FIRST], state[LAST]
    n_divided = 0
    if alike:
        if nodes[first].active and take_level_test(
            width, gain, nodes, totals, found, n_parts, found_sets, sets, free, state
        ):
            for node in range(first, last):
                _sum_left_of(data, width, nodes, node, features, cells, sets, lefts)
                _add_children(nodes, node, totals, lefts, state)
                measure_gain(width, gain, nodes, node, totals)
                divided[n_divided] = node
                n_divided += 1
    else:
        for node in range(first, last):
            nodes[node].waiting = take_split(
                width, gain, nodes, node, totals[node], found, n_parts, found_sets, sets, free,
                state,
            )  # fmt: skip
            if nodes[node].waiting:
                _sum_left_of(data, width, nodes, node, features, cells, sets, lefts)
        if limits.best_first:
            first = choose_best(nodes, limits, state)
        for node in range(max(first, 0), first + 1 if limits.best_first else last):
            if nodes[node].waiting:
                nodes[node].waiting = False
                _add_children(nodes, node, totals, lefts, state)
                divided[n_divided] = node
                n_divided += 1
    state[FIRST], state[LAST] = last, state[N_NODES]
    return n_divided
