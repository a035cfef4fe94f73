"""Compiled loops that send windows of a feature map down the trees of a cascade.

Trees are complete: node k has the children 2k + 1 and 2k + 2, so that no child is looked up. A
block of windows goes through one tree at a time: its nodes stay in the cache, and the loads of
different windows overlap. Blocks are filled again with survivors after each stage of trees, for
most windows are rejected by the first few.

A leaf adds one number to one component of a window's votes; the score of a window is the largest
of the margins ``votes @ matrix``. It is worked out only when bounds of it, which a leaf changes by
one addition each, do not decide whether the window stays: about once a window, not once a tree.

What happens to a window does not depend on its neighbours in a block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_BLOCK = 256
_STAGES = (8, 32, 128)


@njit(cache=True, nogil=True)
def _descend(features, bases, n_windows, offsets, thresholds, first, depth, nodes):
    """Leaves of the windows in one tree, numbered from zero."""
    root = np.uint32(first)
    for i in range(n_windows):
        nodes[i] = 0
    for _ in range(depth):
        for i in range(n_windows):
            node = nodes[i]
            x = features[np.uint32(bases[i] + offsets[np.uint32(root + node)])]
            right = np.uint32(x >= thresholds[np.uint32(root + node)])
            nodes[i] = np.uint32(2) * node + np.uint32(1) + right
    n_inner = np.uint32((1 << depth) - 1)
    for i in range(n_windows):
        nodes[i] -= n_inner


@njit(cache=True, nogil=True)
def _best_margin(votes, slot, matrix, margins):
    """Largest margin of a window, and the first output that has it."""
    n_outputs = matrix.shape[1]
    for output in range(n_outputs):
        margins[output] = 0.0
    for component in range(matrix.shape[0]):
        vote = votes[slot, component]
        if vote != 0.0:
            for output in range(n_outputs):
                margins[output] += vote * matrix[component, output]
    best = 0
    for output in range(1, n_outputs):
        if margins[output] > margins[best]:
            best = output
    return margins[best], best


@njit(cache=True, nogil=True)
def _run(features, block, n_windows, trees, leaves, begin, end, rejections):
    """Run the trees ``begin .. end``; the windows that survive them are moved to the front.

    Returns their number, and how many trees and tests were evaluated on all windows together.
    """
    bases, slots, lows, highs, nodes, votes, margins = block
    offsets, thresholds, values, first_nodes, first_values, depths, weights = trees
    components, amounts, lowest, highest, matrix = leaves
    n_evaluated, n_tests = 0, 0
    for tree in range(begin, end):
        _descend(
            features, bases, n_windows, offsets, thresholds, first_nodes[tree], depths[tree], nodes
        )
        n_evaluated += n_windows
        n_tests += n_windows * max(depths[tree], 1)
        first_value = np.uint32(first_values[tree])
        weight, rejection = weights[tree], rejections[tree]
        n_left = 0
        for i in range(n_windows):
            slot, base = slots[i], bases[i]
            row = np.uint32(values[np.uint32(first_value + nodes[i])])
            votes[slot, np.uint32(components[row])] += weight * amounts[row]
            low = lows[i] + weight * lowest[row]
            high = highs[i] + weight * highest[row]
            if low <= rejection < high:
                low, _ = _best_margin(votes, slot, matrix, margins)
                high = low
            slots[n_left], bases[n_left], lows[n_left], highs[n_left] = slot, base, low, high
            n_left += low > rejection
        n_windows = n_left
        if n_windows == 0:
            break
    return n_windows, n_evaluated, n_tests


@njit(cache=True, nogil=True)
def _grown(votes, highs, n_kept, n_windows):
    """The same with room for so many windows."""
    more_votes, more_highs = np.empty((n_windows, votes.shape[1])), np.empty(n_windows)
    more_votes[:n_kept] = votes[:n_kept]
    more_highs[:n_kept] = highs[:n_kept]
    return more_votes, more_highs


@njit(cache=True, nogil=True)
def scan(features, bases, trees, leaves, rejections, survivors, scores, labels):
    """Find the windows that no tree rejects.

    Parameters
    ----------
    features : float32 ndarray of shape (n_values,)
        The feature map, flat.
    bases : uint32 ndarray of shape (n_windows,)
        Where each window begins in it; used as memory.
    trees : tuple of ndarray
        Offsets and thresholds of all inner nodes, rows of all leaves, first node and first leaf
        of each tree, depths, weights.
    leaves : tuple of ndarray
        For each row: the component it votes for, by how much, the minimum and the maximum that this
        adds to any margin; then the matrix of shape (n_components, n_outputs).
    rejections : float64 ndarray of shape (n_trees,)
        A window leaves when its score after the tree is not above this.
    survivors, scores, labels : ndarray of shape (n_windows,)
        Filled with the windows that are left, in their order.

    Returns
    -------
    n_survivors, n_evaluated, n_tests : int
        Number of windows that are left, of trees evaluated on all windows together, and of the
        levels of these.
    """
    n_trees = len(rejections)
    n_alive, n_evaluated, n_tests = len(bases), 0, 0
    matrix = leaves[4]
    n_components = matrix.shape[0]
    votes = np.empty((0, n_components))
    lows, highs = scores, np.empty(0)
    block_bases = np.empty(_BLOCK, np.uint32)
    slots = np.empty(_BLOCK, np.uint32)
    block_lows, block_highs = np.empty(_BLOCK), np.empty(_BLOCK)
    nodes = np.empty(_BLOCK, np.uint32)
    block_votes = np.empty((_BLOCK, n_components))
    margins = np.empty(matrix.shape[1])
    block = (block_bases, slots, block_lows, block_highs, nodes, block_votes, margins)
    begin = 0
    for stage in range(len(_STAGES) + 1):
        end = min(_STAGES[stage], n_trees) if stage < len(_STAGES) else n_trees
        n_kept = 0
        for first in range(0, n_alive, _BLOCK):
            n_windows = min(_BLOCK, n_alive - first)
            for i in range(n_windows):
                slots[i] = i
                block_bases[i] = bases[first + i]
            if begin == 0:
                block_votes[:n_windows] = 0.0
                block_lows[:n_windows] = 0.0
                block_highs[:n_windows] = 0.0
            else:
                for i in range(n_windows):
                    block_lows[i], block_highs[i] = lows[first + i], highs[first + i]
                    for component in range(n_components):
                        block_votes[i, component] = votes[first + i, component]
            n_left, n_run, n_passed = _run(
                features, block, n_windows, trees, leaves, begin, end, rejections
            )
            n_evaluated += n_run
            n_tests += n_passed
            if begin == 0 and n_kept + n_left > len(votes):
                votes, highs = _grown(votes, highs, n_kept, 2 * (n_kept + n_left))
            for i in range(n_left):
                bases[n_kept] = block_bases[i]
                lows[n_kept], highs[n_kept] = block_lows[i], block_highs[i]
                source = first + slots[i]
                survivors[n_kept] = source if begin == 0 else survivors[source]
                for component in range(n_components):
                    votes[n_kept, component] = block_votes[slots[i], component]
                n_kept += 1
        n_alive, begin = n_kept, end
    for i in range(n_alive):
        scores[i], labels[i] = _best_margin(votes, i, matrix, margins)
    return n_alive, n_evaluated, n_tests


@njit(cache=True, nogil=True)
def trace(features, bases, trees, leaves, traces):
    """Fill ``traces[i, t]`` with the score of window i after tree t, none being rejected."""
    offsets, thresholds, values, first_nodes, first_values, depths, weights = trees
    components, amounts, _, _, matrix = leaves
    votes = np.zeros((len(bases), matrix.shape[0]))
    margins = np.empty(matrix.shape[1])
    nodes = np.empty(len(bases), np.uint32)
    for tree in range(len(weights)):
        _descend(
            features, bases, len(bases), offsets, thresholds, first_nodes[tree], depths[tree], nodes
        )
        for i in range(len(bases)):
            row = np.uint32(values[np.uint32(first_values[tree]) + nodes[i]])
            votes[i, np.uint32(components[row])] += weights[tree] * amounts[row]
            traces[i, tree], _ = _best_margin(votes, i, matrix, margins)


@njit(cache=True, nogil=True)
def leaves(features, bases, trees, numbers, reached):
    """Fill ``reached[i, t]`` with the number of the leaf that window i reaches in tree t."""
    offsets, thresholds, _, first_nodes, first_values, depths, _ = trees
    nodes = np.empty(len(bases), np.uint32)
    for tree in range(len(depths)):
        _descend(
            features, bases, len(bases), offsets, thresholds, first_nodes[tree], depths[tree], nodes
        )
        for i in range(len(bases)):
            reached[i, tree] = numbers[np.uint32(first_values[tree]) + nodes[i]]
