"""Compiled growth of one tree: which nodes to search, which to split, and how samples move.

A tree grows in one call of `grow`, which comes back before it is done only if arrays are too short
or a search is worth dividing among threads.
"""

from __future__ import annotations

import math

import numpy as np

from badacost.kernel_cache import njit
from badacost.tree.gain_kernels import (
    INNER,
    count_columns,
    node_score,
    purity_and_mass,
    rounded,
    split_score,
)
from badacost.tree.split_kernels import draw_features, search

DONE, SEARCH, SPACE = 0, 1, 2
# Places of the state of a growing tree.
SEARCHED, N_NODES, FIRST, LAST, N_LEAVES, N_JOBS, N_FREE = range(7)
N_STATES = 7
N_WORDS = 8  # of 32 bits in a set of categories
MIN_GAIN = 1e-10  # relative to the mass of the node, as in the reference
RESCALE = 2.0**-10  # a node lighter than this times its unit gets a unit of its own
_SCRATCH = 1024  # samples of the right child that need no memory of their own


@njit(**INNER)
def _power_above(x):
    """The smallest power of two above x > 0."""
    return math.ldexp(1.0, math.frexp(x)[1])


@njit(**INNER)
def _sum_node(sums, width, gain, nodes, node, totals):
    """Work out the sums of a node, and its mass."""
    unit = nodes[node].unit
    for c in range(totals.shape[0]):
        totals[c] = 0.0
    for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
        if width is None:
            totals[np.uint64(sums.labels[i])] += rounded(sums.weights[i], unit)
        else:
            for c in range(len(width)):
                totals[c] += sums.rows[i, c]
    _, mass = purity_and_mass(gain, width, totals)
    nodes[node].mass = mass


@njit(**INNER)
def _weigh_node(sums, width, gain, nodes, node, totals):
    """Work out the mass of a node; if it is light for its unit, give it a unit of its own."""
    n = nodes[node].end - nodes[node].start
    _, mass = purity_and_mass(gain, width, totals)
    nodes[node].mass = mass
    if width is None:
        if n > 0 and mass < RESCALE * nodes[node].unit:
            largest = np.float32(0.0)
            for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
                largest = max(largest, sums.weights[i])
            nodes[node].unit = _power_above(n * np.float64(largest))
            _sum_node(sums, width, gain, nodes, node, totals)
            nodes[node].unit = _power_above(nodes[node].mass)
            _sum_node(sums, width, gain, nodes, node, totals)
    elif node == 0:
        _sum_node(sums, width, gain, nodes, node, totals)


@njit(**INNER)
def add_node(nodes, node, parent, start, end, depth, unit):
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


@njit(**INNER)
def is_active(width, limits, nodes, node, totals, n_leaves, alike):
    """Whether the limits allow to split a node, and there is something to tell apart."""
    if limits.max_depth <= nodes[node].depth or n_leaves >= limits.max_leaf_nodes:
        return False
    if alike:
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


@njit(**INNER)
def _take_slot(nodes, node, free, state):
    if state[N_FREE] > 0:
        state[N_FREE] -= 1
        nodes[node].slot = free[state[N_FREE]]


@njit(**INNER)
def _release_slot(nodes, node, free, state):
    if nodes[node].slot >= 0:
        free[state[N_FREE]] = nodes[node].slot
        state[N_FREE] += 1
        nodes[node].slot = -1


@njit(**INNER)
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


@njit(**INNER)
def _prepare(sums, width, gain, limits, nodes, totals, jobs, n_cells, free, state, alike):
    """Make the list of nodes to search; the smaller one of two siblings comes first."""
    n_jobs = 0
    node = state[FIRST]
    while node < state[LAST]:
        n_siblings = 1 if node == 0 else 2
        parent = np.int64(nodes[node].sibling)
        for child in range(node, node + n_siblings):
            _weigh_node(sums, width, gain, nodes, child, totals[child])
            nodes[child].active = is_active(
                width, limits, nodes, child, totals[child], state[N_LEAVES], alike is not None
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


@njit(**INNER)
def goes_right(code, position, missing_left, missing_code, words):
    """Whether a bin is on the right side of a test; ``words`` is a set of categories or None."""
    if words is None:  # no branch to mispredict
        return (code > position) & ((not missing_left) | (code != missing_code))
    word = words[np.uint64(code) >> np.uint64(5)] if code != missing_code else np.uint32(0)
    inside = (word >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)
    return inside | ((not missing_left) & (code == missing_code))


@njit(**INNER)
def partition(codes, missing_code, words, sums, width, nodes, node, left, totals):
    """Divide the samples of a node between two new ones, keeping their order.

    ``words`` are the categories that go right; None where values are compared. Returns where the
    right child begins, and whether any value is missing.
    """
    order, labels, weights, rows = sums
    n_columns = count_columns(width, totals)
    position, unit = nodes[node].position, nodes[node].unit
    missing_left = nodes[node].missing_left
    start, end = np.uint64(nodes[node].start), np.uint64(nodes[node].end)
    n_needed = np.uint64(_SCRATCH)
    if end - start > n_needed:
        n_needed = np.uint64(1)
        for i in range(start, end):
            right = goes_right(codes[order[i]], position, missing_left, missing_code, words)
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
        right = goes_right(code, position, missing_left, missing_code, words)
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
            totals[child, np.uint64(label)] += rounded(weight, unit)
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
    return np.int64(n_left), any_missing


@njit(**INNER)
def _split(data, sums, width, nodes, node, totals, sets, state):
    """Turn a leaf with a test into two."""
    left = state[N_NODES]
    feature = nodes[node].feature
    codes, missing_code = data.bins[feature], data.n_bins[feature]
    if sets is not None and data.categorical[feature]:
        middle, any_missing = partition(
            codes, missing_code, sets[node], sums, width, nodes, node, left, totals
        )
    else:
        middle, any_missing = partition(
            codes, missing_code, None, sums, width, nodes, node, left, totals
        )
    start, end = nodes[node].start, nodes[node].end
    if not any_missing:
        # Values missing at prediction only go the way of the larger child.
        nodes[node].missing_left = middle - start >= end - middle
    depth, unit = nodes[node].depth + 1, nodes[node].unit
    add_node(nodes, left, node, start, middle, depth, unit)
    add_node(nodes, left + 1, node, middle, end, depth, unit)
    nodes[node].left = left
    state[N_NODES] += 2
    state[N_LEAVES] += 1


@njit(**INNER)
def _best_part(found, n_parts, j):
    """Part of the features with the best split of a node; the first, if there are several."""
    best = 0
    for part in range(1, n_parts):
        if found[part, j].score > found[best, j].score:
            best = part
    return best


@njit(**INNER)
def _take_test(nodes, node, found, part, j, found_sets, sets):
    """Write the test that was found into a node."""
    nodes[node].feature = found[part, j].feature
    nodes[node].position = found[part, j].position
    nodes[node].missing_left = found[part, j].missing_left
    if sets is not None:
        for word in range(N_WORDS):
            sets[node, word] = found_sets[part, j, word]


@njit(**INNER, error_model="numpy")
def take_split(width, gain, nodes, node, totals, found, n_parts, found_sets, sets, free, state):
    """Write the best split of a node into it; False if it has none that gains enough."""
    if nodes[node].active:
        j, mass = np.int64(nodes[node].job), nodes[node].mass
        part = _best_part(found, n_parts, j)
        purity, _ = purity_and_mass(gain, width, totals)
        gained = found[part, j].score - node_score(gain, purity, mass)
        if gained > MIN_GAIN * mass:
            _take_test(nodes, node, found, part, j, found_sets, sets)
            nodes[node].gain = gained / mass
            return True
    _release_slot(nodes, node, free, state)
    return False


@njit(**INNER)
def choose_best(nodes, limits, state):
    """The most profitable of the leaves that wait to be split, -1 if there is none."""
    best = -1
    most = 0.0
    for node in range(state[N_NODES]):
        if nodes[node].waiting and nodes[node].gain * nodes[node].mass > most:
            best = node
            most = nodes[node].gain * nodes[node].mass
    if best >= 0 and state[N_LEAVES] < limits.max_leaf_nodes:
        return best
    for node in range(state[N_NODES]):  # those that wait stay leaves
        if nodes[node].waiting:
            nodes[node].waiting = False
            nodes[node].feature, nodes[node].position = 0, 0
            nodes[node].gain, nodes[node].missing_left = 0.0, True
    return -1


@njit(**INNER, error_model="numpy")
def take_level_test(width, gain, nodes, totals, found, n_parts, found_sets, sets, free, state):
    """Write one test into all nodes of a level; False if it does not gain enough."""
    first, last = state[FIRST], state[LAST]
    part = _best_part(found, n_parts, np.int64(0))
    whole = 0.0
    before = 0.0
    for node in range(first, last):
        purity, mass = purity_and_mass(gain, width, totals[node])
        whole += mass
        before += node_score(gain, purity, mass)
    if found[part, 0].score - before > MIN_GAIN * whole:
        for node in range(first, last):
            _take_test(nodes, node, found, part, np.int64(0), found_sets, sets)
        return True
    for node in range(first, last):
        _release_slot(nodes, node, free, state)
    return False


@njit(**INNER, error_model="numpy")
def measure_gain(width, gain, nodes, node, totals):
    """Work out what a split gained that was not made for its node alone."""
    score = split_score(gain, width, totals[nodes[node].left], totals[node])
    if score > -np.inf:
        purity, mass = purity_and_mass(gain, width, totals[node])
        nodes[node].gain = (score - node_score(gain, purity, mass)) / mass


@njit(cache=True, nogil=True)
def grow(
    data, sums, width, gain, limits, seed, nodes, totals, sets, jobs, store, free, found,
    found_sets, state, n_parts, threads_from, alike,
):  # fmt: skip
    """Grow a tree until it is done, or something is needed from the caller.

    ``width``, ``sets``, ``store`` and ``alike`` are None or not: each choice is compiled by itself.
    Returns `DONE`; `SPACE` if arrays by node are too short; or `SEARCH` if the search for the
    splits of ``jobs`` is so long, `threads_from` samples times features or more, that the caller
    shall divide it into parts, whose results are the rows of ``found``.
    """
    n_features = data.bins.shape[0]
    n_cells = 0
    if store is not None:
        n_cells = store.shape[2]
    if state[N_NODES] == 0:
        add_node(nodes, np.int64(0), np.int64(-1), np.int64(0), sums.order.shape[0], 0, np.inf)
        for c in range(totals.shape[1]):
            totals[0, c] = 0.0
        state[N_NODES] = state[LAST] = state[N_LEAVES] = 1
    while True:
        if not state[SEARCHED]:
            if 2 * (state[LAST] - state[FIRST]) + state[N_NODES] > nodes.shape[0]:
                return SPACE
            _prepare(sums, width, gain, limits, nodes, totals, jobs, n_cells, free, state, alike)
            state[SEARCHED] = 1
            here = jobs[: state[N_JOBS]]
            n_samples = 0
            for j in range(here.shape[0]):
                n_samples += nodes[here[j]].end - nodes[here[j]].start
            if n_samples * limits.n_drawn >= threads_from:
                return SEARCH
            drawn = draw_features(seed, nodes, here, limits, n_features, alike is not None)
            search(
                data, sums, width, gain, limits, nodes, totals, store, here, drawn, np.int64(0),
                np.int64(n_features), found[0], None if sets is None else found_sets[0], alike,
            )  # fmt: skip
            n_parts = 1
        state[SEARCHED] = 0
        first, last = state[FIRST], state[LAST]
        if alike is not None:
            if nodes[first].active and take_level_test(
                width, gain, nodes, totals, found, n_parts, found_sets, sets, free, state
            ):
                for node in range(first, last):
                    _split(data, sums, width, nodes, node, totals, sets, state)
                    measure_gain(width, gain, nodes, node, totals)
        else:
            for node in range(first, last):
                nodes[node].waiting = take_split(
                    width, gain, nodes, node, totals[node], found, n_parts, found_sets, sets, free,
                    state,
                )  # fmt: skip
            if limits.best_first:
                first = choose_best(nodes, limits, state)
            for node in range(max(first, 0), first + 1 if limits.best_first else last):
                if nodes[node].waiting:
                    nodes[node].waiting = False
                    _split(data, sums, width, nodes, node, totals, sets, state)
        state[FIRST], state[LAST] = last, state[N_NODES]
        if state[FIRST] == state[LAST]:
            return DONE


@njit(**INNER)
def _sum_leaf(sums, nodes, node, totals, low):
    """Sums of a leaf to twice the digits: what rounding left over is summed exactly as well."""
    unit = nodes[node].unit
    n = nodes[node].end - nodes[node].start
    fine = unit * _power_above(np.float64(n)) * 2.0**-52
    for c in range(totals.shape[0]):
        totals[c] = low[c] = 0.0
    for i in range(np.uint64(nodes[node].start), np.uint64(nodes[node].end)):
        weight, label = np.float64(sums.weights[i]), np.uint64(sums.labels[i])
        high = rounded(weight, unit)
        totals[label] += high
        low[label] += rounded(weight - high, fine)
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
                right = goes_right(code, position[node], missing_left[node], missing_code, words)
            else:
                right = goes_right(code, position[node], missing_left[node], missing_code, None)
            node = np.uint64(left[node]) + np.uint64(right)
        leaves[sample] = node
