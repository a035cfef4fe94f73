"""Compiled search for the best splits of nodes, by histograms.

For all nodes of a batch, four features at a time: histograms are filled, subtracted from those of
the parent, or given (where the samples are in shards), then scanned. In a symmetric tree all nodes
of a level have the same test, and the scores of a test are summed over the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit
from badacost._utils.loop_kernels import loop_kernel
from badacost.tree.gain_kernels import bound_of, may_beat, node_score, split_score
from badacost.tree.histogram_kernels import (
    AT_ONCE,
    count_samples,
    fill_block,
    list_bits,
    mass_of,
    rank_categories,
)

NODE = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("mass", np.float64),
        ("gain", np.float64),  # of its split, per unit of mass
        ("depth", np.int32),
        ("left", np.int32),  # left child; the node itself for a leaf
        ("parent", np.int32),
        ("feature", np.int32),
        ("position", np.int32),  # last bin that goes left
        ("slot", np.int32),  # slot of the store that holds its histograms, or -1
        ("sibling", np.int32),  # node whose histograms are subtracted from the slot, or -1
        ("job", np.int32),  # its index in the search
        ("missing_left", np.bool_),
        ("active", np.bool_),  # whether a split is searched
        ("waiting", np.bool_),  # whether a split was found and is not made yet
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
SORTING = 8  # time to sort a sample by bin, in terms of adding a cell of a histogram
N_JOBS = 0  # entry of the state of a growing tree: length of its list of jobs


class Limits(NamedTuple):
    """Limits of the growth, as numbers; see `badacost.tree.grower.Growth`."""

    max_depth: int
    max_leaf_nodes: int
    min_samples_split: int
    min_samples_leaf: int
    n_drawn: int
    draw_per_level: bool
    best_first: bool
    symmetric: bool
    small_below: int  # nodes of fewer samples are scanned by the bins that occur, or sorted


class Buffers(NamedTuple):
    """Work arrays of searches, each with one more axis: a set for each part of a loop."""

    cells: NDArray[np.float64]  # (4, n_cells), of nodes without a slot; zero between uses
    left: NDArray[np.float64]  # (C,)
    joint: NDArray[np.float64]  # (4, 2, n_codes), scores of tests, summed over a level
    ranked: NDArray[np.int64]  # (4, n_codes), bins in the order in which they are scanned
    n_ranked: NDArray[np.int64]  # (4,)
    any_missing: NDArray[np.bool_]  # (4,)
    counts: NDArray[np.int64]  # (n_codes,)
    words: NDArray[np.int64]  # bits of the bins that occur; zero between uses
    means: NDArray[np.float64]  # (n_codes + 2, C), for categories
    keys: NDArray[np.float64]  # (2, n_codes), for categories
    pooled: NDArray[np.float64]  # (1, n_cells), for categories of a level
    whole: NDArray[np.float64]  # (C,), for categories of a level
    taken: NDArray[np.bool_]  # (n_usable,), features that are drawn
    sorted: NDArray[np.uint64]  # (n_sorted + 1,), bins (high) and places of samples


@inner()
def buffers_of(buffers, part):
    """Work arrays of a part of a loop."""
    return Buffers(
        buffers.cells[part], buffers.left[part], buffers.joint[part], buffers.ranked[part],
        buffers.n_ranked[part], buffers.any_missing[part], buffers.counts[part],
        buffers.words[part], buffers.means[part], buffers.keys[part], buffers.pooled[part],
        buffers.whole[part], buffers.taken[part], buffers.sorted[part],
    )  # fmt: skip


@inner()
def _improve(best, words, score, feature, position, missing_left, ranked, first, last):
    """Store a split in ``best`` if it is better than this one; return whether it is.

    The categories on the right are ``ranked[first:last]``, the bits of ``words``.
    """
    if not score > best.score:
        return False
    best.score = score
    best.feature = feature
    best.position = position
    best.missing_left = missing_left
    for word in range(len(words)):
        words[word] = 0
    for q in range(first, last):
        words[ranked[q] >> 5] |= np.uint32(1) << np.uint32(ranked[q] & 31)
    return True


@inner()
def _scan_node(
    gain, cells, ranked, n_ranked, counts, n, n_bins, missing, totals, mass, min_leaf, left,
    feature, categorical, best, words,
):  # fmt: skip
    """Improve ``best`` by the splits of a feature, from its histogram.

    Bins are scanned in the order ``ranked``; ``counts`` are used if a leaf needs several samples.
    """
    n_columns = len(totals)
    bound = bound_of(best.score, mass)
    for side in range(2 if missing else 1):
        n_left = counts[n_bins] if min_leaf > 1 and side == 1 else 0
        for c in range(n_columns):
            left[c] = cells[n_bins * n_columns + c] if side == 1 else 0.0
        if categorical and n_ranked < n_bins:  # categories without mass stay on the left
            for b in range(n_bins):
                if not mass_of(gain, cells, b * n_columns, n_columns) > 0.0:
                    n_left += counts[b] if min_leaf > 1 else 0
                    for c in range(n_columns):
                        left[c] += cells[b * n_columns + c]
        for rank in range(n_ranked if missing and side == 0 else n_ranked - 1):
            b = ranked[rank]
            better = may_beat(gain, left, cells, np.uint64(b * n_columns), totals, mass, bound)
            if min_leaf > 1:
                n_left += counts[b]
                better &= n_left >= min_leaf and n - n_left >= min_leaf
            if better and _improve(
                best, words, split_score(gain, left, totals), feature, b, side == 1, ranked,
                rank + 1, n_ranked if categorical else 0,
            ):  # fmt: skip
                bound = bound_of(best.score, mass)


@inner()
def _add_scores(
    gain, cells, ranked, n_ranked, counts, n, n_bins, missing, totals, min_split, min_leaf, left,
    joint,
):  # fmt: skip
    """Add the scores of all tests of a feature on one node to ``joint[missing_left, rank]``.

    A test that does not divide the node adds the score of the node. A test that divides a node of
    too few samples, or has too few of them on one side, adds -inf.
    """
    n_columns = len(totals)
    alone, _ = node_score(gain, totals)
    counted = min_leaf > 1 or min_split > 2
    for side in range(2 if missing else 1):
        n_left = counts[n_bins] if counted and side == 1 else 0
        for c in range(n_columns):
            left[c] = cells[n_bins * n_columns + c] if side == 1 else 0.0
        score = split_score(gain, left, totals) if side == 1 else -np.inf
        score = alone if score == -np.inf else score
        for rank in range(n_ranked):
            first = np.uint64(ranked[rank] * n_columns)
            changed = False
            if n_columns == 2:  # a loop takes longer
                x, x1 = cells[first], cells[first + np.uint64(1)]
                changed = (x != 0.0) | (x1 != 0.0)
                left[0] += x
                left[1] += x1
            else:
                for c in range(n_columns):
                    x = cells[first + np.uint64(c)]
                    changed |= x != 0.0
                    left[c] += x
            if changed:
                score = split_score(gain, left, totals)
                score = alone if score == -np.inf else score
            added = score
            if counted:
                n_left += counts[ranked[rank]]
                smaller = n_left if 2 * n_left < n else n - n_left
                if smaller > 0 and (smaller < min_leaf or n < min_split):
                    added = -np.inf
            joint[side, rank] += added
            if not missing:
                joint[1, rank] += added


@inner()
def _get_histograms(data, samples, tree, j, chosen, p, n_block, n_columns, words, cells):
    """Compute the histograms of ``chosen[p:p + n_block]`` for the j-th job.

    They are in the slot of its node, or else in ``cells``, which have to be zero. Partial
    histograms are added up, if there are any. Bins of a single feature are marked in ``words``,
    unless empty.
    """
    store, partial, node = tree.store, tree.partial, tree.nodes[tree.jobs[j]]
    line, sibling = np.int64(0), np.int64(node.sibling)
    if node.slot >= 0:
        if sibling < 0 and len(samples.order) == 0:
            return  # they are given
        cells, line = store[node.slot], p
        theirs = store[tree.nodes[sibling].slot] if sibling >= 0 else cells
        for b in range(p, p + n_block):
            n_cells = data.n_codes[chosen[b]] * n_columns
            if sibling >= 0:
                for cell in range(n_cells):
                    cells[b, cell] -= theirs[b, cell]
            else:
                for cell in range(n_cells):
                    cells[b, cell] = 0.0
        if sibling >= 0:
            return
    if len(partial) == 0:
        fill_block(
            data.bins, samples, chosen, p, n_block, node.start, node.end, n_columns, cells, line,
            words,
        )  # fmt: skip
    for part in range(len(partial)):
        for b in range(n_block):
            for cell in range(data.n_codes[chosen[p + b]] * n_columns):
                cells[line + b, cell] += partial[part, j, p + b, cell]


@inner()
def _is_sorted(n, n_codes, n_columns):
    """Whether sorting the samples of a node takes less time than its histogram of one feature."""
    return SORTING * n + 2 * n_codes < (n if n < n_codes else n_codes) * n_columns


@inner()
def _scan_sorted(
    data, samples, gain, node, totals, purity, min_leaf, feature, buffers, best, words
):
    """Improve ``best`` by the splits of an ordinary feature, without its histogram.

    The samples are sorted by bin, missing values first. A sample changes one sum, hence the purity
    of both children by one term, so that the time does not depend on the number of classes.
    """
    row, n_bins, n_codes = data.bins[feature], data.n_bins[feature], data.n_codes[feature]
    starts, keys = buffers.counts, buffers.sorted
    left, n = buffers.left, np.uint64(node.end - node.start)
    count_samples(row, samples.order, node.start, node.end, n_codes, starts)
    n_missing = np.uint64(starts[n_bins] if n_codes > n_bins else 0)
    place = np.int64(n_missing)
    for b in range(n_bins):
        n_before, place = place, place + starts[b]
        starts[b] = n_before
    starts[n_bins] = 0
    for i in range(np.uint64(node.start), np.uint64(node.end)):
        code = np.uint64(row[samples.order[i]])
        keys[np.uint64(starts[code])] = code << np.uint64(32) | i
        starts[code] += 1
    keys[n] = np.uint64(n_codes) << np.uint64(32)
    error, bound = 1e-15 * n * purity, bound_of(best.score, node.mass)
    for side in range(2 if n_missing > 0 else 1):
        for c in range(len(totals)):
            left[c] = 0.0
        purity_left, purity_right, mass_left = error, purity + error, 0.0
        start = np.uint64(0) if side == 1 else n_missing
        for at in range(start, n):
            key = keys[at]
            i = key & np.uint64(0xFFFFFFFF)
            c, value = np.uint64(samples.labels[i]), np.float64(samples.values[i, 0])
            x, y = left[c], totals[c] - left[c]
            left[c] = x + value
            mass_left += value
            purity_left += gain.squares[c] * value * (2.0 * x + value)
            purity_right -= gain.squares[c] * value * (2.0 * y - value)
            a, other = mass_left + gain.l2, node.mass - mass_left + gain.l2
            if not purity_left * other + purity_right * a > bound * (a * other):
                continue  # in this order the processor mostly guesses right
            n_left = np.int64(at + np.uint64(1) - start)
            if (
                (key ^ keys[at + np.uint64(1)]) >> np.uint64(32) != 0 and at >= n_missing
                and n_left >= min_leaf and np.int64(n) - n_left >= min_leaf
            ) and _improve(
                best, words, split_score(gain, left, totals), feature, key >> np.uint64(32),
                side == 1, buffers.ranked[0], n_bins, np.int64(0),
            ):  # fmt: skip
                bound = bound_of(best.score, node.mass)


@inner()
def search_splits(
    data, samples, gain, limits, tree, part, first, last, first_job, last_job, buffers
):
    """Find the best splits of jobs over the features ``tree.features[:, first:last]``.

    Of the jobs ``first_job <= j < last_job`` only, which have to be all for symmetric trees. Writes
    ``tree.found[part, j]``, or j = 0 for all nodes of a level of a symmetric tree; a score of -inf
    means that there is no split. Ties go to the first feature, then to missing values on the right,
    then to the lowest bin.
    """
    nodes, totals, store, jobs = tree.nodes, tree.totals, tree.store, tree.jobs
    found, sets = tree.found[part], tree.found_sets[part]
    _, n_columns = totals.shape
    per_job = len(tree.features) > 1 and not limits.symmetric
    min_leaf, min_split = limits.min_samples_leaf, limits.min_samples_split
    needs_counts = min_leaf > 1 or (limits.symmetric and min_split > 2)
    is_given = len(samples.order) == 0
    cells, left, joint, all_ranked = buffers.cells, buffers.left, buffers.joint, buffers.ranked
    no_words = buffers.words[:0]
    for j in range(first_job, last_job):
        found[j].score = -np.inf
    p = first
    while p < last:
        n_block = AT_ONCE if last - p >= AT_ONCE else 1
        if limits.symmetric:
            for b in range(n_block):
                feature, ranked = tree.features[0, p + b], all_ranked[b]
                n_bins = data.n_bins[feature]
                buffers.any_missing[b] = False
                buffers.n_ranked[b] = n_bins
                for code in range(n_bins):
                    ranked[code] = code
                    joint[b, 0, code] = joint[b, 1, code] = 0.0
                if data.categorical[feature]:  # ordered by their sums over the whole level
                    pooled, whole = buffers.pooled, buffers.whole
                    n_cells = data.n_codes[feature] * n_columns
                    for cell in range(n_cells):
                        pooled[0, cell] = 0.0
                    for c in range(n_columns):
                        whole[c] = 0.0
                    for j in range(first_job, last_job):
                        node = nodes[jobs[j]]
                        if is_given:
                            for cell in range(n_cells):
                                pooled[0, cell] += store[node.slot, p + b, cell]
                        else:
                            fill_block(
                                data.bins, samples, tree.features[0], p + b, np.int64(1),
                                node.start, node.end, n_columns, pooled, np.int64(0), no_words,
                            )  # fmt: skip
                        for c in range(n_columns):
                            whole[c] += totals[jobs[j], c]
                    buffers.n_ranked[b] = rank_categories(
                        gain, pooled[0], n_bins, whole, ranked, buffers.means, buffers.keys
                    )
        for j in range(first_job, last_job):
            node, chosen = nodes[jobs[j]], tree.features[j if per_job else 0]
            n, slot = node.end - node.start, np.int64(node.slot)
            own = totals[jobs[j]]
            marked = slot < 0 and n < limits.small_below and len(tree.partial) == 0
            n_together = 1 if marked else n_block
            may_sort = marked and len(samples.labels) > 0 and not gain.entropy
            score, mass = node_score(gain, own) if may_sort else (0.0, 0.0)
            purity = score * (mass + gain.l2)
            for b in range(n_block):
                feature = chosen[p + b]
                n_bins, n_codes = data.n_bins[feature], data.n_codes[feature]
                categorical, ranked = data.categorical[feature], all_ranked[b]
                if may_sort and not categorical and _is_sorted(n, n_codes, n_columns):
                    _scan_sorted(
                        data, samples, gain, node, own, purity, min_leaf, feature, buffers,
                        found[j], sets[j],
                    )  # fmt: skip
                    continue
                if b % n_together == 0:
                    _get_histograms(
                        data, samples, tree, j, chosen, p + b, n_together, n_columns,
                        buffers.words if marked else no_words, cells,
                    )  # fmt: skip
                if not node.active:
                    continue
                line = cells[b % n_together] if slot < 0 else store[slot, p + b]
                counts = buffers.counts
                if needs_counts and is_given:
                    counts = tree.counts[slot, p + b]
                elif needs_counts:
                    count_samples(
                        data.bins[feature], samples.order, node.start, node.end, n_codes, counts
                    )
                missing = n_codes > n_bins and (
                    mass_of(gain, line, n_bins * n_columns, n_columns) > 0.0
                )
                n_ranked = n_present = n_bins
                if limits.symmetric:
                    buffers.any_missing[b] |= missing
                    _add_scores(
                        gain, line, ranked, buffers.n_ranked[b], counts, n, n_bins, missing,
                        own, min_split, min_leaf, left, joint[b],
                    )  # fmt: skip
                else:
                    if marked:
                        n_ranked = n_present = list_bits(buffers.words, n_bins, ranked)
                    else:
                        for code in range(n_bins):
                            ranked[code] = code
                    if categorical:
                        n_ranked = rank_categories(
                            gain, line, n_bins, own, ranked, buffers.means, buffers.keys
                        )
                    _scan_node(
                        gain, line, ranked, n_ranked, counts, n, n_bins, missing, own,
                        node.mass, min_leaf, left, feature, categorical, found[j], sets[j],
                    )  # fmt: skip
                if marked and not categorical:
                    for rank in range(n_present):
                        for c in range(n_columns):
                            line[ranked[rank] * n_columns + c] = 0.0
                    for c in range(n_columns if n_codes > n_bins else 0):
                        line[n_bins * n_columns + c] = 0.0
                elif slot < 0:
                    for cell in range(n_codes * n_columns):
                        line[cell] = 0.0
        if limits.symmetric:
            for b in range(n_block):
                feature, n_ranked = tree.features[0, p + b], buffers.n_ranked[b]
                any_missing = buffers.any_missing[b]
                last_set = n_ranked if data.categorical[feature] else 0
                for side in range(2 if any_missing else 1):
                    for rank in range(n_ranked if any_missing and side == 0 else n_ranked - 1):
                        _improve(
                            found[0], sets[0], joint[b, side, rank], feature, all_ranked[b, rank],
                            side == 1, all_ranked[b], rank + 1, last_set,
                        )  # fmt: skip
        p += n_block


@inner()
def draw(seed, nodes, jobs, limits, usable, drawn, n_draws, taken):
    """Draw features without replacement (Floyd's algorithm), in increasing order.

    Fills ``drawn[:n_draws]``, a draw for each job or one for all jobs. A draw depends on
    the seed and the number of the node, or of its level, and not on the order of the calls.
    ``taken`` (n_usable,) is a buffer.
    """
    n_usable, (_, n_drawn) = len(usable), drawn.shape
    for j in range(n_draws):
        by_level = limits.draw_per_level or limits.symmetric
        number = np.int64(nodes[jobs[j]].depth) if by_level else jobs[j]
        state = np.uint64(seed) ^ (np.uint64(number + 1) * np.uint64(0xD1342543DE82EF95))
        for f in range(n_usable):
            taken[f] = False
        for last in range(n_usable - n_drawn, n_usable):
            state += np.uint64(0x9E3779B97F4A7C15)
            mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            pick = np.int64((mixed >> np.uint64(11)) % np.uint64(last + 1))
            taken[last if taken[pick] else pick] = True
        place = 0
        for f in range(n_usable):
            if taken[f]:
                drawn[j, place] = usable[f]
                place += 1


# Entry points for threads and shards.


@loop_kernel
def search(data, samples, gain, limits, tree, tasks, buffers, part, first, last):
    """Call `search_splits` for tasks (n, 5) of part, first and last feature and job."""
    for t in range(first, last):
        task = tasks[t]
        search_splits(
            data, samples, gain, limits, tree, task[0], task[1], task[2], task[3], task[4],
            buffers_of(buffers, part),
        )  # fmt: skip


@njit(**KERNEL)
def draw_features(seed, nodes, jobs, limits, usable, drawn, taken):
    """Call `draw`."""
    draw(seed, nodes, jobs, limits, usable, drawn, len(drawn), taken)
