"""Compiled loops of CostBoost: probabilities, sketches of their gradients, leaf values.

Scores are cost scores: the class of the smallest one is the most likely. Whatever is summed over
samples is rounded before, to a multiple of a quantum, so that sums are exact.
"""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit
from badacost.portable_kernels import portable_exp, portable_log

_INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_BLOCK = 64  # samples that are worked on together


@njit(cache=True, nogil=True, error_model="numpy")
def advance(scores, step, table, rows, y, shares, losses, first, last):
    """Add ``step * table[rows]`` to cost scores; set probabilities, and the log-loss of samples.

    Of the samples ``first .. last`` only; an empty table adds nothing. Exponentials and logarithms
    of a block of samples are taken in loops of their own, which processors vectorize.
    """
    n_classes = scores.shape[1]
    odds = np.empty(_BLOCK * n_classes)
    totals = np.empty(_BLOCK)
    for start in range(first, last, _BLOCK):
        n_rows = min(_BLOCK, last - start)
        for j in range(n_rows):
            i = start + j
            if table.shape[0] > 0:
                row = np.uint64(rows[i])
                for k in range(n_classes):
                    scores[i, k] += step * table[row, k]
            least = scores[i, 0]
            for k in range(1, n_classes):
                least = min(least, scores[i, k])
            for k in range(n_classes):
                odds[j * n_classes + k] = least - scores[i, k]
            losses[i] = scores[i, np.uint64(y[i])] - least
        for place in range(n_rows * n_classes):
            odds[place] = portable_exp(odds[place])
        for j in range(n_rows):
            total = 0.0
            for k in range(n_classes):
                total += odds[j * n_classes + k]
            for k in range(n_classes):
                shares[start + j, k] = odds[j * n_classes + k] / total
            totals[j] = total
        for j in range(n_rows):
            losses[start + j] = portable_log(totals[j]) + losses[start + j]


@njit(**_INNER)
def _sketch(shares, y, weight, directions, i, out):
    """Project the gradient of the log-loss of a sample on directions (K, R); last, a hessian."""
    n_classes, n_directions = directions.shape
    hessian = 0.0
    label = np.uint64(y[i])
    for r in range(n_directions):
        out[r] = -weight[i] * directions[label, r]
    for k in range(n_classes):
        share = np.float64(shares[i, k])
        hessian += share * (1.0 - share)
        for r in range(n_directions):
            out[r] += weight[i] * share * directions[k, r]
    out[n_directions] = weight[i] * hessian


@njit(cache=True, nogil=True)
def sketch_sizes(shares, y, weight, directions, first, last):
    """Largest absolute values of the sketches of the samples ``first .. last``."""
    n_columns = directions.shape[1] + 1
    out = np.empty(n_columns)
    largest = np.zeros(n_columns)
    for i in range(first, last):
        _sketch(shares, y, weight, directions, i, out)
        for c in range(n_columns):
            largest[c] = max(largest[c], abs(out[c]))
    return largest


@njit(cache=True, nogil=True)
def sketch_rounded(shares, y, weight, directions, quanta, rounded, first, last):
    """Sketches of the samples ``first .. last``, as multiples of a quantum for each column."""
    n_columns = directions.shape[1] + 1
    out = np.empty(n_columns)
    for i in range(first, last):
        _sketch(shares, y, weight, directions, i, out)
        for c in range(n_columns):
            rounded[i, c] = np.rint(out[c] / quanta[c]) * quanta[c]


@njit(cache=True, nogil=True)
def leaf_sums(shares, y, weight, used, rows, big, sums, first, last):
    """Add gradients and hessians by leaf and class, ``sums`` of shape (n_leaves, 2, K).

    Of the samples ``used[first .. last]`` only; adding and subtracting `big` rounds the terms.
    """
    n_classes = shares.shape[1]
    for q in range(first, last):
        i = np.uint64(used[q])
        leaf = np.uint64(rows[i])
        w = weight[i]
        for k in range(n_classes):
            share = np.float64(shares[i, k])
            sums[leaf, 0, k] += (w * share + big) - big
            sums[leaf, 1, k] += (w * (share * (1.0 - share)) + big) - big
        sums[leaf, 0, np.uint64(y[i])] -= (w + big) - big
