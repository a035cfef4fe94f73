"""Compiled steps of tree growth: choose the nodes to search and to split, partition the samples.

`grow` runs all steps in one call where the samples are in this process. Where they are in shards,
`badacost.tree.shards` runs `set_active`, `search` and `split` in this process, and the shards run
`fill` and `partition`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit
from badacost._utils.loop_kernels import loop_kernel
from badacost.tree.gain_kernels import node_score, split_score
from badacost.tree.histogram_kernels import AT_ONCE, count_samples, fill_block
from badacost.tree.split_kernels import N_JOBS, buffers_of, draw, search_splits

DONE, SPACE, SEARCH, PARTITION = range(4)  # results of `grow`
# Entries of the state of a growing tree. Its first one is N_JOBS: the length of the list of jobs,
# nodes to search and then nodes to split. New nodes are FIRST <= node < N_NODES.
N_NODES, FIRST, N_LEAVES, N_FREE, N_WAITING, IS_SEARCHED = range(1, 7)
N_WORDS = 8  # of 32 bits in a set of categories
COST_OF_PARTITION = 4  # of a sample, in terms of adding one sample to a histogram
BLOCK = np.dtype(
    [
        ("node", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("middle", np.int64),  # where the right side begins within the block
        ("left", np.int64),  # place of the left side in the node, and of the right one
        ("right", np.int64),
        ("missing", np.bool_),
    ],
    align=True,
)
"""A block of the samples of a node that is partitioned."""
_MIN_GAIN = 1e-10  # relative to the mass of the node, as in the reference


class GrowingTree(NamedTuple):
    """Nodes of a growing tree, and the search for their splits.

    Features of a search are divided into parts, each with its own results in `found`.
    """

    seed: np.uint64  # of the drawn features
    state: NDArray[np.int64]  # (7,), counters, see above
    nodes: NDArray[np.void]  # (n,) of NODE
    totals: NDArray[np.float64]  # (n, C), sums of the nodes
    sets: NDArray[np.uint32]  # (n, N_WORDS), bits of the categories on the right
    heap: NDArray[np.int64]  # (n,), leaves that wait to be split, best first
    jobs: NDArray[np.int64]  # (n,), nodes to search, then nodes to split
    features: NDArray[np.int64]  # (1, n_used) of all nodes, or (n, n_used) of each job
    found: NDArray[np.void]  # (n_parts, n) of SPLIT, best split of each job
    found_sets: NDArray[np.uint32]  # (n_parts, n, N_WORDS), their categories on the right
    store: NDArray[np.float64]  # (n_slots, n_used, n_codes * C), histograms that are kept
    partial: NDArray[np.float64]  # (n_row_parts, n_jobs, n_used, n_codes * C), or empty
    counts: NDArray[np.int64]  # (n_slots, n_used, n_codes), samples by bin; empty if not given
    free: NDArray[np.int32]  # (n_slots,), slots of the store that are free


@inner()
def _set_active(gain, limits, tree):
    """Set the mass of the new nodes, and whether a split is searched."""
    totals, state = tree.totals, tree.state
    for number in range(state[FIRST], state[N_NODES]):
        node = tree.nodes[number]
        _, node.mass = node_score(gain, totals[number])
        n = node.end - node.start
        active = node.depth < limits.max_depth and state[N_LEAVES] < limits.max_leaf_nodes
        if limits.symmetric:
            active &= 2 * state[N_LEAVES] <= limits.max_leaf_nodes
        else:
            active &= n >= limits.min_samples_split and n >= 2 * limits.min_samples_leaf
            if gain.masses[0] > 0.0:  # class weights: several classes are needed
                n_present = 0
                for total in totals[number]:
                    n_present += total != 0.0
                active &= n_present > 1
        node.active = active


@inner()
def _plan(limits, tree, n_cells):
    """List the nodes to search, the smaller of two siblings first; decide which histograms to keep.

    The histograms of the larger sibling are subtracted from the parent's where that is faster.
    """
    nodes, jobs, free, state = tree.nodes, tree.jobs, tree.free, tree.state
    n_jobs = 0
    number = state[FIRST]
    while number < state[N_NODES]:
        n_siblings = 1 if number == 0 else 2
        small, big = number, number + n_siblings - 1
        if nodes[small].end - nodes[small].start > nodes[big].end - nodes[big].start:
            small, big = big, small
        one, other = nodes[small], nodes[big]
        n_small, n_big = one.end - one.start, other.end - other.start
        one_is_large = one.active and n_small >= limits.small_below
        other_is_large = other.active and n_big >= limits.small_below
        subtracted = False
        if number > 0:
            parent = nodes[one.parent]
            if parent.slot >= 0:
                # Subtracting a cell takes about an eighth of the time of adding a sample to one.
                spared = n_big - n_cells // 8 - (0 if one_is_large else n_small)
                subtracted = other_is_large and spared > 0 and state[N_FREE] > 0
                if subtracted:
                    other.slot = parent.slot
                    other.sibling = small
                else:
                    free[state[N_FREE]] = parent.slot
                    state[N_FREE] += 1
                parent.slot = -1
        may_be_parent = number == 0 or one.depth + 1 < limits.max_depth
        for i in range(n_siblings):
            child = nodes[small if i == 0 else big]
            is_large = one_is_large if i == 0 else other_is_large and not subtracted
            needed = (may_be_parent and is_large) or (subtracted and i == 0)
            if needed and state[N_FREE] > 0:
                state[N_FREE] -= 1
                child.slot = free[state[N_FREE]]
            if child.active or child.slot >= 0:
                child.job = n_jobs
                jobs[n_jobs] = small if i == 0 else big
                n_jobs += 1
        number += n_siblings
    state[N_JOBS] = n_jobs


@inner()
def goes_right(code, position, missing_left, missing_code, categorical, words):
    """Whether a bin is on the right side of a test; ``words`` is a set of categories."""
    if not categorical:  # no branch to mispredict
        return (code > position) & ((not missing_left) | (code != missing_code))
    word = words[np.uint64(code) >> np.uint64(5)] if code != missing_code else np.uint32(0)
    inside = (word >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)
    return inside | ((not missing_left) & (code == missing_code))


@inner()
def _partition(data, samples, scratch, place, node, first, last, words, totals, left):
    """Divide the samples ``first .. last`` by the test of a node, keeping their order.

    Adds up the sums of both sides in ``totals[left]`` and the row after it. Samples of the right
    side are buffered in ``scratch[place:]``. Returns where the right side begins, and whether any
    value is missing.
    """
    order, labels, values = samples
    position, missing_left = node.position, node.missing_left
    codes, missing_code = data.bins[node.feature], data.n_bins[node.feature]
    categorical = data.categorical[node.feature]
    start, end = np.uint64(first), np.uint64(last)
    has_labels, (_, n_values), (_, n_columns) = len(labels) > 0, values.shape, totals.shape
    order2, labels2, values2 = scratch
    for c in range(n_columns):
        totals[left, c] = totals[left + 1, c] = 0.0
    any_missing = False
    n_left = start
    n_right = np.uint64(place)
    for i in range(start, end):
        sample = order[i]
        code = codes[sample]
        any_missing |= code == missing_code
        right = goes_right(code, position, missing_left, missing_code, categorical, words)
        child = np.uint64(left) + np.uint64(right)
        # Written for both sides; only one of the two counters is incremented.
        order[n_left] = sample
        order2[n_right] = sample
        if has_labels:
            label, value = labels[i], values[i, 0]
            labels[n_left] = label
            labels2[n_right] = label
            values[n_left, 0] = value
            values2[n_right, 0] = value
            totals[child, np.uint64(label)] += value
        else:
            for c in range(n_values):
                value = values[i, c]
                values[n_left, c] = value
                values2[n_right, c] = value
                totals[child, c] += value
        n_left += np.uint64(not right)
        n_right += np.uint64(right)
    _copy(scratch, np.uint64(place), samples, n_left, n_right - np.uint64(place))
    return np.int64(n_left), any_missing


@inner()
def _copy(source, start, target, first, n):
    """Copy n samples, from ``start`` in one to ``first`` in the other."""
    order, labels, values = source
    order2, labels2, values2 = target
    _, n_values = values.shape
    for i in range(n):
        order2[first + i] = order[start + i]
        if len(labels) > 0:
            labels2[first + i] = labels[start + i]
        for c in range(n_values):
            values2[first + i, c] = values[start + i, c]


@inner()
def _before(nodes, one, other):
    """Whether a leaf is split before another one: larger gain first, then smaller number."""
    first = nodes[one].gain * nodes[one].mass
    second = nodes[other].gain * nodes[other].mass
    return first > second or (first == second and one < other)


@inner()
def _push(nodes, heap, node, state):
    """Add a leaf to the heap of leaves that wait to be split."""
    place = state[N_WAITING]
    state[N_WAITING] += 1
    while place > 0 and _before(nodes, node, heap[(place - 1) >> 1]):
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = node


@inner()
def _pop(nodes, heap, state):
    """Remove the leaf with the largest gain from the heap, and return it."""
    best = heap[0]
    state[N_WAITING] -= 1
    n, node, place = state[N_WAITING], heap[state[N_WAITING]], 0
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and _before(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _before(nodes, heap[child], node):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = node
    return best


@inner()
def _choose(gain, limits, tree, n_parts):
    """Write the best tests into the new nodes, list the nodes to split now in ``tree.jobs``.

    Returns their number. Slots of nodes that are not split become free.
    """
    nodes, totals, state, splits = tree.nodes, tree.totals, tree.state, tree.jobs
    score = mass = 0.0
    if limits.symmetric:  # the nodes of a level are split together or not at all
        for number in range(state[FIRST], state[N_NODES]):
            node_own, mass_own = node_score(gain, totals[number])
            score += node_own
            mass += mass_own
    n_splits = 0
    for number in range(state[FIRST], state[N_NODES]):
        node = nodes[number]
        if node.active:
            j = np.int64(0)
            if not limits.symmetric:
                score, mass = node_score(gain, totals[number])
                j = np.int64(node.job)
            part = 0
            for other in range(1, n_parts):  # the first part with the best score
                if tree.found[other, j].score > tree.found[part, j].score:
                    part = other
            best = tree.found[part, j]
            if best.score - score > _MIN_GAIN * mass:
                node.feature = best.feature
                node.position = best.position
                node.missing_left = best.missing_left
                for word in range(N_WORDS):
                    tree.sets[number, word] = tree.found_sets[part, j, word]
                node.waiting = True
                if not limits.symmetric:
                    node.gain = (best.score - score) / mass
                if limits.best_first:
                    _push(nodes, tree.heap, number, state)
                else:
                    splits[n_splits] = number
                    n_splits += 1
                continue
        if node.slot >= 0:
            tree.free[state[N_FREE]] = node.slot
            state[N_FREE] += 1
            node.slot = -1
    if limits.best_first and state[N_WAITING] > 0:
        if state[N_LEAVES] < limits.max_leaf_nodes:
            splits[0] = _pop(nodes, tree.heap, state)
            return 1
        for place in range(state[N_WAITING]):  # waiting nodes stay leaves
            node = nodes[tree.heap[place]]
            node.feature, node.position, node.gain = 0, 0, 0.0
            node.missing_left, node.waiting = True, False
    return n_splits


@inner()
def _add_pair(gain, limits, nodes, totals, state, number, middle):
    """Append the children of a node, whose sums are known."""
    left = state[N_NODES]
    node = nodes[number]
    for side in range(2):
        child = nodes[left + side]
        child.start = node.start if side == 0 else middle
        child.end = middle if side == 0 else node.end
        child.depth = node.depth + 1
        child.left = left + side
        child.parent = number
        child.missing_left = True
        child.slot = child.sibling = child.job = -1
    node.left = left
    node.waiting = False
    state[N_NODES] += 2
    state[N_LEAVES] += 1
    if limits.symmetric:  # the test was not chosen for this node alone
        score = split_score(gain, totals[left], totals[number])
        if score > -np.inf:
            before, mass = node_score(gain, totals[number])
            node.gain = (score - before) / mass


@inner()
def _add_children(gain, limits, tree, number, middle, any_missing):
    """Append the children of a node that is divided at ``middle``, and whose sums are known."""
    node = tree.nodes[number]
    if not any_missing:
        # Values missing at prediction only follow the larger child.
        node.missing_left = middle - node.start >= node.end - middle
    _add_pair(gain, limits, tree.nodes, tree.totals, tree.state, number, middle)


@loop_kernel
def select(labels, values, samples, sums, part, first, last):
    """Copy the labels and values of samples to their places in order.

    Adds them to ``sums`` (n_parts, C).
    """
    order, labels2, values2 = samples
    _, n_values = values.shape
    for i in range(np.uint64(first), np.uint64(last)):
        sample = order[i]
        for c in range(n_values):
            value = values[sample, c]
            values2[i, c] = value
            if len(labels) > 0:
                label = labels[sample]
                labels2[i] = label
                sums[part, np.uint64(label)] += value
            else:
                sums[part, c] += value


@loop_kernel
def write_leaves(order, nodes, table, found, part, first, last):
    """Write the entries of a table (n_nodes,) for the leaves of samples."""
    for number in range(len(nodes)):
        node = nodes[number]
        if node.left == number:
            start = node.start if node.start > first else first
            end = node.end if node.end < last else last
            for i in range(start, end):
                found[order[i]] = table[number]


@loop_kernel
def round_weights(weights, unit, values, part, first, last):
    """Fill ``values`` (n, 1) with weights in single precision that are multiples of a quantum."""
    for i in range(first, last):
        values[i, 0] = np.float32((np.float64(np.float32(weights[i])) + unit) - unit)


@njit(**KERNEL)
def grow(data, samples, scratch, gain, limits, tree, buffers, n_parts, threads_from):
    """Grow a tree until it is done, or the caller has to act.

    Returns `DONE`; `SPACE` if more nodes have to be allocated; or, if it is over `threads_from`
    samples times features or more, `SEARCH` or `PARTITION`: the caller searches the splits of the
    nodes ``tree.jobs``, or splits them.
    """
    nodes, totals, state, jobs = tree.nodes, tree.totals, tree.state, tree.jobs
    (_, n_used), (_, _, n_cells) = tree.features.shape, tree.store.shape
    while True:
        if not state[IS_SEARCHED]:
            if 2 * (state[N_NODES] - state[FIRST]) + state[N_NODES] > len(nodes):
                return SPACE
            _set_active(gain, limits, tree)
            _plan(limits, tree, n_cells)
            state[IS_SEARCHED] = 1
            n_jobs = state[N_JOBS]
            if n_used < len(data.usable) and n_jobs > 0:
                n_draws = 1 if limits.symmetric else n_jobs
                draw(
                    tree.seed, nodes, jobs, limits, data.usable, tree.features, n_draws,
                    buffers.taken[0],
                )  # fmt: skip
            n_samples = 0
            for j in range(n_jobs):
                n_samples += nodes[jobs[j]].end - nodes[jobs[j]].start
            if n_samples * n_used >= threads_from:
                return SEARCH
            n_parts = 0
            search_splits(
                data, samples, gain, limits, tree, n_parts, n_parts, n_used, n_parts, n_jobs,
                buffers_of(buffers, 0),
            )  # fmt: skip
            n_parts = 1
        state[IS_SEARCHED] = 0
        n_splits = _choose(gain, limits, tree, n_parts)
        state[FIRST] = state[N_NODES]
        state[N_JOBS] = n_splits
        n_samples = 0
        for s in range(n_splits):
            n_samples += nodes[jobs[s]].end - nodes[jobs[s]].start
        if n_samples * COST_OF_PARTITION >= threads_from:
            return PARTITION
        for s in range(n_splits):
            node = nodes[jobs[s]]
            middle, any_missing = _partition(
                data, samples, scratch, 0, node, node.start, node.end, tree.sets[jobs[s]], totals,
                state[N_NODES],
            )  # fmt: skip
            _add_children(gain, limits, tree, jobs[s], middle, any_missing)
        if n_splits == 0:
            return DONE


# Entry points for threads, which divide the samples of nodes into blocks.


@loop_kernel
def partition_blocks(data, samples, scratch, tree, blocks, sums, part, first, last):
    """Partition each block t of `BLOCK` within its own range.

    Sets ``middle`` and ``missing`` of the blocks, and ``sums[2 * t : 2 * t + 2]``, those of both
    sides.
    """
    for t in range(first, last):
        block = blocks[t]
        block.middle, block.missing = _partition(
            data, samples, scratch, block.start, tree.nodes[block.node], block.start, block.end,
            tree.sets[block.node], sums, 2 * t,
        )  # fmt: skip


@loop_kernel
def move_blocks(samples, scratch, blocks, back, part, first, last):
    """Copy both sides of blocks to their places in ``scratch``, or copy all of it ``back``."""
    for t in range(first, last):
        block = blocks[t]
        start, middle, end = np.uint64(block.start), np.uint64(block.middle), np.uint64(block.end)
        if back:
            _copy(scratch, start, samples, start, end - start)
        else:
            _copy(samples, start, scratch, np.uint64(block.left), middle - start)
            _copy(samples, middle, scratch, np.uint64(block.right), end - middle)


@njit(**KERNEL)
def add_children(gain, limits, tree, middles, missing):
    """Append the children of the nodes ``tree.jobs``, whose sums are known, see `_add_children`."""
    for s in range(len(middles)):
        _add_children(gain, limits, tree, tree.jobs[s], middles[s], missing[s])


# Entry points where the samples are in shards.


@njit(**KERNEL)
def set_active(gain, limits, tree):
    """Set the mass of the new nodes, and whether a split is searched."""
    _set_active(gain, limits, tree)


@njit(**KERNEL)
def split(data, gain, limits, tree, lefts, n_parts):
    """Choose nodes to split, append their children, whose numbers of samples are not known yet.

    Returns the number of splits, which are listed in ``tree.jobs``. Sums of the children are found
    in histograms; ``lefts`` (n, C) are those of left children of nodes that are split later.
    """
    nodes, totals, state = tree.nodes, tree.totals, tree.state
    _, n_columns = totals.shape
    n_splits = _choose(gain, limits, tree, n_parts)
    for number in range(state[FIRST], state[N_NODES]):
        node = nodes[number]
        if not node.waiting:
            continue
        chosen = tree.features[node.job if len(tree.features) > 1 else 0]
        p = 0
        while chosen[p] != node.feature:
            p += 1
        cells = tree.store[node.slot, p]
        for c in range(n_columns):
            lefts[number, c] = 0.0
        for code in range(data.n_codes[node.feature]):
            if not goes_right(
                code, node.position, node.missing_left, data.n_bins[node.feature],
                data.categorical[node.feature], tree.sets[number],
            ):  # fmt: skip
                for c in range(n_columns):
                    lefts[number, c] += cells[code * n_columns + c]
    state[FIRST] = state[N_NODES]
    for s in range(n_splits):
        number, left = tree.jobs[s], state[N_NODES]
        for c in range(n_columns):
            totals[left, c] = lefts[number, c]
            totals[left + 1, c] = totals[number, c] - lefts[number, c]
        _add_pair(gain, limits, nodes, totals, state, number, nodes[number].start)
    return n_splits


@njit(**KERNEL)
def partition(data, samples, scratch, nodes, splits, lefts, sets, totals, sizes, missing):
    """Divide the samples of nodes, whose tests are set, between their children.

    Left children get the numbers ``lefts``. Fills ``sizes`` (n_splits, 2), the numbers of samples
    of both children, and ``missing`` (n_splits,), whether any value is missing.
    """
    first = 0
    for s in range(len(splits)):
        node, left, right = nodes[splits[s]], nodes[lefts[s]], nodes[lefts[s] + 1]
        middle, missing[s] = _partition(
            data, samples, scratch, 0, node, node.start, node.end, sets[s], totals, first
        )
        left.start, left.end = node.start, middle
        right.start, right.end = middle, node.end
        sizes[s, 0], sizes[s, 1] = middle - node.start, node.end - middle


@loop_kernel
def fill(
    data, samples, nodes, wanted, places, features, n_columns, cells, counts, part, first, last
):
    """Fill histograms of nodes: ``cells[r, j, p]`` for ``features[j, p]``.

    For all nodes ``wanted``, whose places j are given, and each part r of the samples. Parts of the
    loop are parts of the samples times blocks of `AT_ONCE` features. ``counts`` (n, n_features,
    n_codes) of samples by bin are filled too, unless empty.
    """
    n_row_parts, (_, n_used) = len(cells), features.shape
    n_blocks = (n_used + AT_ONCE - 1) // AT_ONCE
    for task in range(first * len(wanted), last * len(wanted)):
        row_part, block = divmod(task // len(wanted), n_blocks)
        node, j = nodes[wanted[task % len(wanted)]], places[task % len(wanted)]
        n = node.end - node.start
        start = node.start + n * row_part // n_row_parts
        end = node.start + n * (row_part + 1) // n_row_parts
        chosen = features[j if len(features) > 1 else 0]
        p = block * AT_ONCE
        last_feature = p + AT_ONCE if p + AT_ONCE < n_used else n_used
        while p < last_feature:
            n_block = AT_ONCE if last_feature - p == AT_ONCE else 1
            for b in range(n_block):
                for cell in range(data.n_codes[chosen[p + b]] * n_columns):
                    cells[row_part, j, p + b, cell] = 0.0
            fill_block(
                data.bins, samples, chosen, p, n_block, start, end, n_columns, cells[row_part, j],
                p, wanted[:0],
            )  # fmt: skip
            for b in range(n_block if len(counts) > 0 else 0):
                feature = chosen[p + b]
                count_samples(
                    data.bins[feature], samples.order, start, end, data.n_codes[feature],
                    counts[j, p + b],
                )  # fmt: skip
            p += n_block


@loop_kernel
def descend(
    bins, n_bins, samples, feature, position, left, missing_left, category_set, sets, table, found,
    part, first, last,
):  # fmt: skip
    """Write the entries of a table (n_nodes,) for the leaves of some samples into ``found``."""
    for i in range(first, last):
        sample = samples[i]
        node = np.uint64(0)
        while np.uint64(left[node]) != node:
            f, row = np.uint64(feature[node]), category_set[node]
            right = goes_right(
                bins[f, sample], position[node], missing_left[node], n_bins[f], row >= 0,
                sets[row if row >= 0 else 0],
            )  # fmt: skip
            node = np.uint64(left[node]) + np.uint64(right)
        found[sample] = table[node]
