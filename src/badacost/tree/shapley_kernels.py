"""Compiled loops for exact Shapley values of the scores of a forest.

A feature that is not known is averaged out along the tree: a sample reaches both children of a
node, with weights that are their fractions of the training samples. The Shapley value of a feature
is an integral over t, the probability of every other feature to be known. For one leaf the
integrand is a product with one factor for each feature on its path,

    t [whether the sample passes its tests] + (1 - t) (fraction of training samples that do)

a polynomial, which Gauss-Legendre quadrature integrates without error. All terms are positive, so
that nothing cancels. Rows are processed in blocks, and the innermost loops are over the rows.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit
from badacost.tree.forest_kernels import goes_right

_BLOCK = 64


@njit(cache=True, nogil=True)
def expectation(forest, fractions):
    """Scores (n_outputs,) of a sample without known features."""
    weights, table = forest.tree_weights, forest.table
    total = np.zeros(table.shape[1])
    reached = np.empty(fractions.shape[0])
    for tree in range(weights.shape[0]):
        first = forest.offsets[tree]
        reached[first] = 1.0
        for node in range(first, forest.offsets[tree + 1]):
            left = first + forest.nodes[node].left
            if left == node:
                total += weights[tree] * reached[node] * table[forest.value[node]]
            else:  # children come later
                reached[left] = reached[node] * fractions[left]
                reached[left + 1] = reached[node] * fractions[left + 1]
    return total


@njit(nogil=True)
def _enter(level, fraction, is_right, times, path, n_rows):
    """Extend a path by a child of its last node."""
    feature, right, known, passed, products = path
    earlier = level - 1  # becomes the level below an earlier test of the feature, or zero
    while earlier > 0 and feature[earlier - 1] != feature[level - 1]:
        earlier -= 1
    passed[level] = fraction * passed[earlier]
    here, before, goes_right = known[level], known[earlier], right[level - 1]
    for j in range(np.uint64(n_rows)):
        here[j] = before[j] * (goes_right[j] if is_right else 1.0 - goes_right[j])
    for q in range(times.shape[0]):
        t, unknown = times[q], (1.0 - times[q]) * passed[level]
        old, new = products[level - 1, q], products[level, q]
        if earlier == 0:
            for j in range(np.uint64(n_rows)):
                new[j] = old[j] * (t * here[j] + unknown)
        else:  # the factor of the earlier test is replaced
            scale = 1.0 / (t + (1.0 - t) * passed[earlier])
            for j in range(np.uint64(n_rows)):
                ratio = (t * here[j] + unknown) * scale
                new[j] = old[j] * (before[j] * ratio + (1.0 - before[j]) * fraction)


@njit(nogil=True)
def _leave(level, scores, times, masses, path, n_rows, absent, weight, block):
    """Add the contributions of the features on the path to a leaf."""
    feature, _, known, passed, products = path
    absent[:n_rows] = 0.0
    for q in range(times.shape[0]):  # equal for all features whose tests are not passed
        factor, product = masses[q] / (1.0 - times[q]), products[level, q]
        for j in range(np.uint64(n_rows)):
            absent[j] -= factor * product[j]
    for at in range(1, level + 1):
        later = at + 1
        while later <= level and feature[later - 1] != feature[at - 1]:
            later += 1
        if later <= level:  # the feature is tested again
            continue
        weight[:n_rows] = 0.0
        for q in range(times.shape[0]):
            t, product = times[q], products[level, q]
            factor = masses[q] * (1.0 - passed[at]) / (t + (1.0 - t) * passed[at])
            for j in range(np.uint64(n_rows)):
                weight[j] += factor * product[j]
        here = known[at]
        for j in range(np.uint64(n_rows)):
            weight[j] = here[j] * weight[j] + (1.0 - here[j]) * absent[j]
        for k in range(scores.shape[0]):
            score, total = scores[k], block[feature[at - 1], k]
            for j in range(np.uint64(n_rows)):
                total[j] += score * weight[j]


@njit(cache=True, nogil=True)
def contributions(X, forest, fractions, depth, times, masses, out):
    """Fill ``out[i, f, k]`` with the Shapley value of feature f for score k of sample i."""
    weights, table = forest.tree_weights, forest.table
    n_outputs, n_features = table.shape[1], X.shape[1]
    n_together = min(_BLOCK, X.shape[0])
    n_levels, n_times = depth + 1, times.shape[0]
    path = (
        np.empty(n_levels, np.int64),  # feature that the node tests; level 0 is the root
        np.empty((n_levels, n_together)),  # whether samples go right there
        np.ones((n_levels, n_together)),  # whether they pass all tests of the feature before it
        np.ones(n_levels),  # fraction of the training samples that do
        np.ones((n_levels, n_times, n_together)),  # product of the factors of all features
    )
    waiting = np.empty((depth + 2, 3), np.int64)  # nodes, their levels, and whether they are right
    absent, weight = np.empty(n_together), np.empty(n_together)
    values = np.empty((n_features, n_together))
    block = np.empty((n_features, n_outputs, n_together))
    for row0 in range(0, X.shape[0], _BLOCK):
        n_rows = min(_BLOCK, X.shape[0] - row0)
        block[:] = 0.0
        for j in range(n_rows):
            values[:, j] = X[row0 + j]
        for tree in range(weights.shape[0]):
            a, b = forest.offsets[tree], forest.offsets[tree + 1]
            nodes = forest.nodes[a:b]
            waiting[0] = 0
            n_waiting = 1
            while n_waiting:
                n_waiting -= 1
                node, level, is_right = waiting[n_waiting]
                if level:
                    _enter(level, fractions[a + node], is_right, times, path, n_rows)
                left, feature = np.int64(nodes[node].left), nodes[node].feature
                if left == node:
                    scores = weights[tree] * table[forest.value[a + node]]
                    _leave(level, scores, times, masses, path, n_rows, absent, weight, block)
                    continue
                path[0][level] = feature
                threshold, missing_left = nodes[node].threshold, forest.missing_left[a + node]
                category_set, right = forest.category_set[a + node], path[1][level]
                for j in range(n_rows):
                    right[j] = goes_right(
                        values[feature, j], threshold, missing_left, category_set, forest.sets
                    )
                for side in range(2):
                    waiting[n_waiting] = left + side, level + 1, side
                    n_waiting += 1
        for j in range(n_rows):
            for f in range(n_features):
                for k in range(n_outputs):
                    out[row0 + j, f, k] = block[f, k, j]
