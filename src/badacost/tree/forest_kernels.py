"""Compiled loops that send samples down the trees of a forest.

A leaf is its own left child and its threshold is NaN, so that a sample that has arrived stays; a
block of samples goes down one level at a time, which lets the loads of different samples overlap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_BLOCK = 128


@njit(cache=True, nogil=True)
def _descend(X, row0, n_rows, feature, threshold, left, missing_left, first, depth, nodes):
    """Leaves of the rows ``row0 .. row0 + n_rows`` in the tree whose root is node ``first``."""
    root = np.uint64(first)
    for i in range(n_rows):
        nodes[i] = 0
    for _ in range(depth):
        for i in range(n_rows):
            node = root + nodes[i]
            x = X[row0 + i, np.uint32(feature[node])]
            right = (x >= threshold[node]) | (np.isnan(x) & (not missing_left[node]))
            nodes[i] = np.uint32(left[node]) + np.uint32(right)


@njit(cache=True, nogil=True)
def leaves(X, feature, threshold, left, missing_left, offsets, depths, row0, row1, out):
    """Fill ``out[i, t]`` with the leaf of sample i in tree t, for the rows ``row0 .. row1``."""
    nodes = np.empty(_BLOCK, np.uint32)
    for start in range(row0, row1, _BLOCK):
        n_rows = min(_BLOCK, row1 - start)
        for tree in range(depths.shape[0]):
            _descend(
                X, start, n_rows, feature, threshold, left, missing_left, offsets[tree],
                depths[tree], nodes,
            )  # fmt: skip
            for i in range(n_rows):
                out[start + i, tree] = nodes[i]


@njit(cache=True, nogil=True)
def accumulate(
    X, feature, threshold, left, missing_left, value, offsets, depths, weights, table, first_tree,
    last_tree, row0, row1, scores,
):  # fmt: skip
    """Add to each row of ``scores`` the weighted table rows of its leaves, tree after tree."""
    nodes = np.empty(_BLOCK, np.uint32)
    for start in range(row0, row1, _BLOCK):
        n_rows = min(_BLOCK, row1 - start)
        for tree in range(first_tree, last_tree):
            root = np.uint64(offsets[tree])
            _descend(
                X, start, n_rows, feature, threshold, left, missing_left, offsets[tree],
                depths[tree], nodes,
            )  # fmt: skip
            weight = weights[tree]
            for i in range(n_rows):
                entry = np.uint32(value[root + nodes[i]])
                for k in range(table.shape[1]):
                    scores[start + i, k] += weight * table[entry, k]
