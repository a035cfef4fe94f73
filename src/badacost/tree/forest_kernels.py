"""Compiled loops that send samples down the trees of a forest.

A leaf is its own left child and its threshold is NaN, so that a sample that has arrived stays.
Eight samples go down at a time: while one waits for memory, the others are compared. A tree with
one test for all nodes of a level needs no nodes: its answers are a bit string, the leaf.
"""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit

NODE = np.dtype([("threshold", np.float64), ("feature", np.int32), ("left", np.int32)])
_BLOCK = 64


@njit(nogil=True)
def _step(X, i, nodes, node):
    """The child that a sample without missing values goes to."""
    here = nodes[node]
    right = X[i, np.uint32(here.feature)] >= here.threshold
    return np.uint64(here.left) + np.uint64(right)


@njit(nogil=True)
def _descend(X, row0, n_rows, nodes, depth, leaves):
    """Leaves of rows without missing values in a tree without categories."""
    first = np.uint64(row0)
    n_together = n_rows - n_rows % 8
    for j in range(0, n_together, 8):
        i = first + np.uint64(j)
        n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = np.uint64(0)
        for _ in range(depth):
            n0 = _step(X, i, nodes, n0)
            n1 = _step(X, i + np.uint64(1), nodes, n1)
            n2 = _step(X, i + np.uint64(2), nodes, n2)
            n3 = _step(X, i + np.uint64(3), nodes, n3)
            n4 = _step(X, i + np.uint64(4), nodes, n4)
            n5 = _step(X, i + np.uint64(5), nodes, n5)
            n6 = _step(X, i + np.uint64(6), nodes, n6)
            n7 = _step(X, i + np.uint64(7), nodes, n7)
        leaves[j], leaves[j + 1], leaves[j + 2], leaves[j + 3] = n0, n1, n2, n3
        leaves[j + 4], leaves[j + 5], leaves[j + 6], leaves[j + 7] = n4, n5, n6, n7
    for j in range(n_together, n_rows):
        node = np.uint64(0)
        for _ in range(depth):
            node = _step(X, first + np.uint64(j), nodes, node)
        leaves[j] = node


@njit(nogil=True)
def is_in_set(sets, row, place):
    """Whether a category, given as its place among the known ones, is in a set."""
    code = np.uint32(place)
    word = sets[np.uint32(row), code >> np.uint32(5)]
    return word >> (code & np.uint32(31)) & np.uint32(1) == np.uint32(1)


@njit(nogil=True)
def _descend_carefully(X, row0, n_rows, nodes, missing_left, category_set, sets, depth, leaves):
    """The same with missing values and categories, which X has as places among the known ones."""
    for j in range(n_rows):
        leaves[j] = 0
    for _ in range(depth):
        for j in range(n_rows):
            node = np.uint64(leaves[j])
            x = X[row0 + j, np.uint32(nodes[node].feature)]
            if np.isnan(x):
                right = not missing_left[node]
            elif category_set[node] >= 0:
                right = is_in_set(sets, category_set[node], x)
            else:
                right = x >= nodes[node].threshold
            leaves[j] = np.uint64(nodes[node].left) + np.uint64(right)


@njit(nogil=True)
def _answer(X, row0, n_rows, nodes, depth, leaves):
    """Leaves in a tree with one test for each level, without missing values and categories."""
    first = np.uint64(row0)
    for j in range(n_rows):
        leaves[j] = 0
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


@njit(nogil=True)
def _needs_care(X, row0, n_rows, categorical, n_trees):
    """Whether rows go down carefully: for a few trees a look at all values takes longer."""
    if categorical or 8 * n_trees < X.shape[1]:
        return True
    for i in range(row0, row0 + n_rows):
        missing = False
        for f in range(X.shape[1]):
            missing |= X[i, f] != X[i, f]
        if missing:
            return True
    return False


@njit(nogil=True)
def _leaves_of(X, row0, n_rows, careful, forest, tree, leaves):
    """Leaves of some rows in one tree."""
    nodes, missing_left, category_set, sets, offsets, depths, symmetric, _ = forest
    a, b, depth = offsets[tree], offsets[tree + 1], depths[tree]
    if careful:
        _descend_carefully(
            X, row0, n_rows, nodes[a:b], missing_left[a:b], category_set[a:b], sets, depth, leaves
        )
    elif symmetric[tree]:
        _answer(X, row0, n_rows, nodes[a:b], depth, leaves)
    else:
        _descend(X, row0, n_rows, nodes[a:b], depth, leaves)


@njit(cache=True, nogil=True)
def leaves(X, forest, out):
    """Fill ``out[i, t]`` with the leaf of sample i in tree t."""
    found = np.empty(_BLOCK, np.uint32)
    for row0 in range(0, X.shape[0], _BLOCK):
        n_rows = min(_BLOCK, X.shape[0] - row0)
        careful = _needs_care(X, row0, n_rows, forest.categorical, out.shape[1])
        for tree in range(out.shape[1]):
            _leaves_of(X, row0, n_rows, careful, forest, tree, found)
            for j in range(n_rows):
                out[row0 + j, tree] = found[j]


@njit(nogil=True)
def _add_four(scores, row0, n_rows, entries, weights, table):
    """Add the table rows of four trees to the scores, one after the other."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for j in range(np.uint64(n_rows)):
        line = scores[np.uint64(row0) + j]
        t0, t1, t2, t3 = (
            table[entries[0, j]], table[entries[1, j]], table[entries[2, j]], table[entries[3, j]],
        )  # fmt: skip
        for k in range(np.uint64(line.shape[0])):
            line[k] = (((line[k] + w0 * t0[k]) + w1 * t1[k]) + w2 * t2[k]) + w3 * t3[k]


@njit(nogil=True)
def _add_one(scores, row0, n_rows, entries, weight, table):
    """Add the table rows of one tree to the scores."""
    for j in range(np.uint64(n_rows)):
        line, row = scores[np.uint64(row0) + j], table[entries[j]]
        for k in range(np.uint64(line.shape[0])):
            line[k] += weight * row[k]


@njit(cache=True, nogil=True)
def accumulate(X, forest, value, weights, table, first_tree, last_tree, scores):
    """Add to each row of ``scores`` the weighted table rows of its leaves, tree after tree."""
    found = np.empty(_BLOCK, np.uint32)
    entries = np.empty((4, _BLOCK), np.uint64)
    for row0 in range(0, X.shape[0], _BLOCK):
        n_rows = min(_BLOCK, X.shape[0] - row0)
        careful = _needs_care(X, row0, n_rows, forest.categorical, last_tree - first_tree)
        n_found = 0
        for tree in range(first_tree, last_tree):
            _leaves_of(X, row0, n_rows, careful, forest, tree, found)
            values = value[forest.offsets[tree] : forest.offsets[tree + 1]]
            for j in range(np.uint64(n_rows)):
                entries[n_found, j] = values[found[j]]
            n_found += 1
            if n_found == 4:  # scores are read and written once for four trees
                _add_four(scores, row0, n_rows, entries, weights[tree - 3 :], table)
                n_found = 0
        for t in range(n_found):
            weight = weights[last_tree - n_found + t]
            _add_one(scores, row0, n_rows, entries[t], weight, table)


@njit(cache=True, nogil=True)
def find_symmetric(nodes, category_set, offsets, depths):
    """Which trees have one test of values, the same in all nodes, for each level."""
    symmetric = np.zeros(depths.shape[0], np.bool_)
    for tree in range(depths.shape[0]):
        a, n = offsets[tree], offsets[tree + 1] - offsets[tree]
        if depths[tree] > 20 or n != 2 ** (depths[tree] + 1) - 1:
            continue
        alike = True
        level, last = 0, 1  # the nodes of a level begin at last - 1
        for node in range(n // 2):
            if node == 2 * last - 1:
                last *= 2
                level = node
            test, first = nodes[a + node], nodes[a + level]
            alike &= test.left == 2 * node + 1
            alike &= test.feature == first.feature and test.threshold == first.threshold
            alike &= category_set[a + node] < 0
        symmetric[tree] = alike
    return symmetric
