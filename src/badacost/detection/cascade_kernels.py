"""Compiled loops that send windows of a feature map down the trees of a cascade.

Trees are complete: node k has the children 2k + 1 and 2k + 2, so that no child is looked up. A
block of windows goes through one tree at a time: its nodes stay in the cache, and the loads of
different windows overlap. The windows of a block are neighbours in both directions, which share
most of their features; they stay together until most of them may have been rejected. Those that
are left then fill blocks again, after each stage of trees.

Leaves of trees for one view have a number, and the score of a window is their sum. Otherwise a leaf
votes for a row of a table: times the weight of its tree, it is added to the margins of the window,
and the score is the largest margin. Most votes are for the background, whose row has one number for
all views: such numbers are added up, and margins are what other rows add up to.

What happens to a window does not depend on its neighbours in a block.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit

_BLOCK = 1024
_COLUMNS = 64  # of a block of neighbours
_FIRST_STAGE = 16  # trees, after those that cannot reject a window
_GROWTH = 4  # of the number of trees from stage to stage


@njit(cache=True, nogil=True)
def _descend(features, bases, n_windows, trees, tree, nodes):
    """Find the leaves of windows, as nodes of one tree; return what makes them leaves of all."""
    tests, first_nodes, first_leaves, depths, _ = trees
    depth = depths[tree]
    tests = tests[first_nodes[tree] :]
    if depth == 0:
        nodes[:n_windows] = 0
    else:
        offset, threshold = tests[0].offset, tests[0].threshold
        for i in range(n_windows):
            x = features[np.uint32(bases[i] + offset)]
            nodes[i] = np.uint32(1) + np.uint32(x >= threshold)
    for _ in range(1, depth):
        for i in range(n_windows):
            node = nodes[i]
            test = tests[node]
            right = features[np.uint32(bases[i] + test.offset)] >= test.threshold
            nodes[i] = np.uint32(2) * node + np.uint32(1) + np.uint32(right)
    return np.uint32(first_leaves[tree] - np.uint32((1 << depth) - 1))


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _add_row(weight, table, row, margins, slot):
    """Add a row of the table to the margins of a window; return the largest."""
    best = -np.inf
    for view in range(table.shape[1]):
        margin = margins[slot, view] + weight * table[row, view]
        margins[slot, view] = margin
        best = max(best, margin)
    return best


@njit(cache=True, nogil=True)
def _add_numbers(block, n_windows, numbers, first, rejection):
    """Add the numbers of leaves to scores; move the windows that stay to the front, count them."""
    bases, _, scores, _, nodes, _ = block
    n_left = 0
    for i in range(n_windows):
        base = bases[i]
        score = scores[i] + numbers[np.uint32(first + nodes[i])]
        bases[n_left], scores[n_left] = base, score
        n_left += score > rejection
    return n_left


@njit(cache=True, nogil=True)
def _add_votes(block, n_windows, leaves, first, weight, rejection):
    """Add the rows of leaves; move the windows that stay to the front, count them."""
    bases, slots, sums, bests, nodes, margins = block
    _, rows, common, is_common, table = leaves
    n_left = 0
    for i in range(n_windows):
        slot, base, best = slots[i], bases[i], bests[i]
        row = rows[np.uint32(first + nodes[i])]
        total = sums[i] + weight * common[row]
        if not is_common[row]:
            best = _add_row(weight, table, row, margins, slot)
        slots[n_left], bases[n_left], sums[n_left], bests[n_left] = slot, base, total, best
        n_left += total + best > rejection
    return n_left


@njit(cache=True, nogil=True)
def _run(features, block, n_windows, trees, leaves, begin, end, rejections):
    """Run the trees ``begin .. end``; the windows that survive them are moved to the front.

    Returns their number, and how many trees and tests were evaluated on all windows together.
    """
    bases, nodes = block[0], block[4]
    depths, weights = trees[3], trees[4]
    numbers, of_numbers = leaves[0], len(leaves[1]) == 0
    n_evaluated, n_tests = 0, 0
    for tree in range(begin, end):
        first = _descend(features, bases, n_windows, trees, tree, nodes)
        n_evaluated += n_windows
        n_tests += n_windows * max(depths[tree], 1)
        rejection = rejections[tree]
        if of_numbers:
            n_windows = _add_numbers(block, n_windows, numbers, first, rejection)
        else:
            n_windows = _add_votes(block, n_windows, leaves, first, weights[tree], rejection)
        if n_windows == 0:
            break
    return n_windows, n_evaluated, n_tests


@njit(cache=True, nogil=True)
def _room(n_windows, n_views):
    """Where windows begin, sums of common numbers, largest margins, margins."""
    return (
        np.empty(n_windows, np.uint32), np.empty(n_windows), np.empty(n_windows),
        np.empty((n_windows, n_views)),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _grown(kept, n_kept, n_windows):
    """The same with room for so many windows."""
    more = _room(n_windows, kept[3].shape[1])
    more[0][:n_kept] = kept[0][:n_kept]
    more[1][:n_kept] = kept[1][:n_kept]
    more[2][:n_kept] = kept[2][:n_kept]
    more[3][:n_kept] = kept[3][:n_kept]
    return more


@njit(cache=True, nogil=True)
def _keep(block, n_left, kept, n_kept):
    """Append the windows that are left in a block to those kept."""
    block_bases, slots, block_sums, block_bests, _, block_margins = block
    bases, sums, bests, margins = kept
    for i in range(n_left):
        bases[n_kept + i] = block_bases[i]
        sums[n_kept + i], bests[n_kept + i] = block_sums[i], block_bests[i]
        for view in range(margins.shape[1]):
            margins[n_kept + i, view] = block_margins[slots[i], view]


@njit(cache=True, nogil=True)
def _place(block, first_row, n_rows, first_column, n_columns, pitch, step):
    """Fill a block with neighbouring windows that no tree has seen; count them."""
    bases, slots, sums, bests, _, margins = block
    n_windows = 0
    for row in range(first_row, first_row + n_rows):
        for column in range(first_column, first_column + n_columns):
            bases[n_windows] = (row * pitch + column) * step
            n_windows += 1
    for i in range(n_windows):
        slots[i] = i
    sums[:n_windows] = 0.0
    bests[:n_windows] = 0.0
    margins[:n_windows] = 0.0
    return n_windows


@njit(cache=True, nogil=True)
def _take(block, first, n_windows, kept):
    """Fill a block with windows that were kept."""
    block_bases, slots, block_sums, block_bests, _, block_margins = block
    bases, sums, bests, margins = kept
    for i in range(n_windows):
        slots[i] = i
        block_bases[i] = bases[first + i]
        block_sums[i], block_bests[i] = sums[first + i], bests[first + i]
        for view in range(margins.shape[1]):
            block_margins[i, view] = margins[first + i, view]


@njit(cache=True, nogil=True)
def scan(features, pitch, step, first, last, n_columns, trees, leaves, rejections, n_safe):
    """Find the windows that no tree rejects.

    Parameters
    ----------
    features : float32 ndarray of shape (n_values,)
        The feature map, flat.
    pitch, step : int
        Values from one row of the map to the next, and cells from one window to the next.
    first, last, n_columns : int
        Rows of windows to look at, and windows in a row.
    trees : tuple of ndarray
        Tests of all inner nodes (offset and threshold), first node and first leaf of each tree,
        depths, weights.
    leaves : tuple of ndarray
        Number of each leaf, or row of the table that each leaf votes for; number of each row that
        is common to all views (else 0), whether it has one, table of shape (n_rows, n_views).
    rejections : float64 ndarray of shape (n_trees,)
        A window leaves when its score after the tree is not above this.
    n_safe : int
        Number of trees, the first ones, after which no window can leave.

    Returns
    -------
    bases, scores, labels : ndarray of shape (n_survivors,)
        Where the windows that are left begin in the map, in any order, their scores and views.
    n_evaluated, n_tests : int
        Number of trees evaluated on all windows together, and of the levels of these.
    """
    n_trees, n_views = len(rejections), leaves[4].shape[1]
    block = (
        np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.uint32), np.empty(_BLOCK),
        np.empty(_BLOCK), np.empty(_BLOCK, np.uint32), np.empty((_BLOCK, n_views)),
    )  # fmt: skip
    room, n_alive, n_evaluated, n_tests = 4 * _BLOCK, 0, 0, 0
    kept = _room(room, n_views)
    end = min(n_safe + _FIRST_STAGE, n_trees)
    width = -(-n_columns // -(-n_columns // _COLUMNS))  # as equal as can be
    height = _BLOCK // width
    for row in range(first, last, height):
        for column in range(0, n_columns, width):
            n_windows = _place(
                block, row, min(height, last - row), column, min(width, n_columns - column), pitch,
                step,
            )  # fmt: skip
            n_left, n_run, n_passed = _run(
                features, block, n_windows, trees, leaves, 0, end, rejections
            )
            n_evaluated += n_run
            n_tests += n_passed
            if n_alive + n_left > room:
                room = 2 * (n_alive + n_left)
                kept = _grown(kept, n_alive, room)
            _keep(block, n_left, kept, n_alive)
            n_alive += n_left
    while end < n_trees:
        begin, end = end, min(_GROWTH * end, n_trees)
        n_kept = 0
        for start in range(0, n_alive, _BLOCK):
            n_windows = min(_BLOCK, n_alive - start)
            _take(block, start, n_windows, kept)
            n_left, n_run, n_passed = _run(
                features, block, n_windows, trees, leaves, begin, end, rejections
            )
            n_evaluated += n_run
            n_tests += n_passed
            _keep(block, n_left, kept, n_kept)
            n_kept += n_left
        n_alive = n_kept
    bases, sums, bests, margins = kept
    labels = np.zeros(n_alive, np.int64)
    for i in range(n_alive):
        while labels[i] < n_views and margins[i, labels[i]] < bests[i]:
            labels[i] += 1
    return bases[:n_alive].copy(), sums[:n_alive] + bests[:n_alive], labels, n_evaluated, n_tests


@njit(cache=True, nogil=True)
def trace(features, bases, trees, leaves, traces):
    """Fill ``traces[i, t]`` with the score of window i after tree t, none being rejected."""
    n_trees = traces.shape[1]
    rejections = np.full(n_trees, -np.inf)
    block = (
        bases, np.arange(len(bases)).astype(np.uint32), np.zeros(len(bases)), np.zeros(len(bases)),
        np.empty(len(bases), np.uint32), np.zeros((len(bases), leaves[4].shape[1])),
    )  # fmt: skip
    for tree in range(n_trees):
        _run(features, block, len(bases), trees, leaves, tree, tree + 1, rejections)
        traces[:, tree] = block[2] + block[3]


@njit(cache=True, nogil=True)
def reach(features, bases, trees, numbers, leaves):
    """Fill ``leaves[i, t]`` with the number of the leaf that window i reaches in tree t."""
    nodes = np.empty(len(bases), np.uint32)
    for tree in range(leaves.shape[1]):
        first = _descend(features, bases, len(bases), trees, tree, nodes)
        for i in range(len(bases)):
            leaves[i, tree] = numbers[np.uint32(first + nodes[i])]
