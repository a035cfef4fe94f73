"""Compiled loops that find the leaves of samples in the trees of a forest, and add up scores.

A leaf is its own left child with a threshold of NaN, so that a sample that has reached it stays.
Samples descend level by level, to hide the latency of memory. In a tree with one test for all
nodes of a level, the results of the tests are the bits of the number of the leaf. Inner functions
are optimised one by one: predictions are faster by a fifth.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit

NODE = np.dtype([("threshold", np.float64), ("feature", np.int32), ("left", np.int32)])
_BLOCK = 64


def block_buffers() -> tuple[np.ndarray, np.ndarray]:
    """Work arrays for the leaves and table rows of a block of samples."""
    return np.empty(_BLOCK, np.uint32), np.empty((4, _BLOCK), np.uint64)


@inner(optimized=True)
def _descend(X, row0, n_rows, nodes, depth, leaves):
    """Go down from the roots with rows without missing values in a tree without categories."""
    for _ in range(depth):
        for j in range(np.uint64(n_rows)):
            node = nodes[leaves[j]]
            right = X[np.uint64(row0) + j, np.uint32(node.feature)] >= node.threshold
            leaves[j] = np.uint64(node.left) + np.uint64(right)


@inner(optimized=True)
def goes_right(x, threshold, missing_left, category_set, sets):
    """Whether a sample goes right at a node; a category is its index among the known ones."""
    if x != x:
        return not missing_left
    if category_set < 0:
        return x >= threshold
    code = np.uint32(x)
    word = sets[np.uint32(category_set), code >> np.uint32(5)]
    return word >> (code & np.uint32(31)) & np.uint32(1) == np.uint32(1)


@inner(optimized=True)
def _descend_carefully(X, row0, n_rows, nodes, missing_left, category_set, sets, depth, leaves):
    """Find the leaves of any rows; X has the indices of categories among the known ones."""
    for _ in range(depth):
        for j in range(n_rows):
            node = np.uint64(leaves[j])
            x = X[row0 + j, np.uint32(nodes[node].feature)]
            right = goes_right(
                x, nodes[node].threshold, missing_left[node], category_set[node], sets
            )
            leaves[j] = np.uint64(nodes[node].left) + np.uint64(right)


@inner(optimized=True)
def _descend_symmetric(X, row0, n_rows, nodes, depth, leaves):
    """Find the leaves of rows without missing values in a tree with one test for each level."""
    first = np.uint64(row0)
    node = 0
    for _ in range(depth):
        feature = np.uint32(nodes[node].feature)
        threshold = nodes[node].threshold
        for j in range(n_rows):
            right = X[first + np.uint64(j), feature] >= threshold
            leaves[j] = leaves[j] << np.uint32(1) | np.uint32(right)
        node = nodes[node].left
    for j in range(n_rows):
        leaves[j] += np.uint32(node)


@inner(optimized=True)
def _needs_care(X, row0, n_rows, categorical, n_trees):
    """Whether rows may have missing values or categories; few trees do not justify a check."""
    _, n_features = X.shape
    if categorical or 8 * n_trees < n_features:
        return True
    for i in range(row0, row0 + n_rows):
        missing = False
        for f in range(n_features):
            missing |= X[i, f] != X[i, f]
        if missing:
            return True
    return False


@inner(optimized=True, forceinline=True)  # a forest has too many arrays for a call
def _leaves_of(X, row0, n_rows, careful, forest, tree, leaves):
    """Find the leaves of some rows in one tree."""
    nodes, missing_left, category_set = forest.nodes, forest.missing_left, forest.category_set
    a, b, depth = forest.offsets[tree], forest.offsets[tree + 1], forest.depths[tree]
    for j in range(n_rows):
        leaves[j] = 0
    if careful:
        _descend_carefully(
            X, row0, n_rows, nodes[a:b], missing_left[a:b], category_set[a:b], forest.sets, depth,
            leaves,
        )  # fmt: skip
    elif forest.symmetric[tree]:
        _descend_symmetric(X, row0, n_rows, nodes[a:b], depth, leaves)
    else:
        _descend(X, row0, n_rows, nodes[a:b], depth, leaves)


@njit(**KERNEL)
def leaves(X, forest, out, buffers):
    """Fill ``out[i, t]`` with the leaf of sample i in tree t."""
    found, _ = buffers
    n, (_, n_trees) = len(X), out.shape
    for row0 in range(0, n, _BLOCK):
        n_rows = _BLOCK if row0 + _BLOCK < n else n - row0
        careful = _needs_care(X, row0, n_rows, forest.categorical, n_trees)
        for tree in range(n_trees):
            _leaves_of(X, row0, n_rows, careful, forest, tree, found)
            for j in range(n_rows):
                out[row0 + j, tree] = found[j]


@inner(optimized=True)
def _add_four(scores, row0, n_rows, entries, weights, table):
    """Add the table rows of four trees to the scores, one after the other."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for j in range(np.uint64(n_rows)):
        line = scores[np.uint64(row0) + j]
        t0, t1, t2, t3 = (
            table[entries[0, j]], table[entries[1, j]], table[entries[2, j]], table[entries[3, j]],
        )  # fmt: skip
        for k in range(np.uint64(len(line))):
            line[k] = (((line[k] + w0 * t0[k]) + w1 * t1[k]) + w2 * t2[k]) + w3 * t3[k]


@inner(optimized=True)
def _add_one(scores, row0, n_rows, entries, weight, table):
    """Add the table rows of one tree to the scores."""
    for j in range(np.uint64(n_rows)):
        line, row = scores[np.uint64(row0) + j], table[entries[j]]
        for k in range(np.uint64(len(line))):
            line[k] += weight * row[k]


@njit(**KERNEL)
def accumulate(X, forest, first_tree, last_tree, scores, buffers):
    """Add to each row of ``scores`` the weighted table rows of its leaves, tree after tree."""
    found, entries = buffers
    weights, table = forest.tree_weights, forest.table
    n = len(X)
    for row0 in range(0, n, _BLOCK):
        n_rows = _BLOCK if row0 + _BLOCK < n else n - row0
        careful = _needs_care(X, row0, n_rows, forest.categorical, last_tree - first_tree)
        for group in range(first_tree, last_tree, 4):
            n_trees = min(4, last_tree - group)
            for t in range(n_trees):
                tree = group + t
                _leaves_of(X, row0, n_rows, careful, forest, tree, found)
                values = forest.value[forest.offsets[tree] : forest.offsets[tree + 1]]
                for j in range(np.uint64(n_rows)):
                    entries[t, j] = values[found[j]]
            if n_trees == 4:  # scores are read and written once
                _add_four(scores, row0, n_rows, entries, weights[group:], table)
            else:
                for t in range(n_trees):
                    _add_one(scores, row0, n_rows, entries[t], weights[group + t], table)
