"""Compiled loops of CostBoost: probabilities, sketches of gradients, sums for leaf values.

Scores are cost scores: the class with the smallest score is the most probable. Terms are rounded to
multiples of a quantum before they are summed over samples, so that sums are exact.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.loop_kernels import loop_kernel
from badacost._utils.portable_kernels import portable_exp, portable_log

BLOCK = 64  # samples that are processed together


@loop_kernel
def advance(scores, step, table, rows, y, probabilities, losses, buffers, part, first, last):
    """Add ``step * table[rows]`` to cost scores; set probabilities, and the log-loss of samples.

    An empty table adds nothing. ``buffers`` has ``BLOCK * (K + 1)`` numbers for each part of the
    loop. Exponentials and logarithms of a block of samples are computed in separate loops, which
    compilers vectorize.
    """
    _, n_classes = scores.shape
    odds = buffers[part]
    totals = odds[BLOCK * n_classes :]
    for start in range(first, last, BLOCK):
        n_rows = BLOCK if start + BLOCK < last else last - start
        for j in range(n_rows):
            i = start + j
            if len(table) > 0:
                row = np.uint64(rows[i])
                for k in range(n_classes):
                    scores[i, k] += step * table[row, k]
            smallest = scores[i, 0]
            for k in range(1, n_classes):
                smallest = scores[i, k] if scores[i, k] < smallest else smallest
            for k in range(n_classes):
                odds[j * n_classes + k] = smallest - scores[i, k]
            losses[i] = scores[i, np.uint64(y[i])] - smallest
        for place in range(n_rows * n_classes):
            odds[place] = portable_exp(odds[place])
        for j in range(n_rows):
            total = 0.0
            for k in range(n_classes):
                total += odds[j * n_classes + k]
            for k in range(n_classes):
                probabilities[start + j, k] = odds[j * n_classes + k] / total
            totals[j] = total
        for j in range(n_rows):
            losses[start + j] = portable_log(totals[j]) + losses[start + j]


@loop_kernel
def sketch(probabilities, y, weight, directions, quanta, rounded, largest, part, first, last):
    """Project gradients of the log-loss on directions (K, R); the last column is a hessian.

    Fills ``rounded`` (n, R + 1) with multiples of the quanta of columns; if it is empty, updates
    ``largest`` (n_parts, R + 1), the largest absolute values.
    """
    n_classes, n_directions = directions.shape
    for i in range(first, last):
        label = np.uint64(y[i])
        for r in range(n_directions + 1):
            x = 0.0
            if r < n_directions:
                x = -weight[i] * directions[label, r]
                for k in range(n_classes):
                    x += weight[i] * np.float64(probabilities[i, k]) * directions[k, r]
            else:
                for k in range(n_classes):
                    probability = np.float64(probabilities[i, k])
                    x += probability * (1.0 - probability)
                x *= weight[i]
            if len(rounded) > 0:
                rounded[i, r] = np.rint(x / quanta[r]) * quanta[r]
            else:
                x = -x if x < 0.0 else x
                largest[part, r] = x if x > largest[part, r] else largest[part, r]


@loop_kernel
def leaf_sums(probabilities, y, weight, used, rows, big, sums, part, first, last):
    """Add gradients and hessians by leaf and class, ``sums`` of shape (n_parts, n_leaves, 2, K).

    Only of the samples ``used``; adding and subtracting `big` rounds the terms.
    """
    _, n_classes = probabilities.shape
    for q in range(first, last):
        i = np.uint64(used[q])
        leaf = np.uint64(rows[i])
        w = weight[i]
        for k in range(n_classes):
            probability = np.float64(probabilities[i, k])
            sums[part, leaf, 0, k] += (w * probability + big) - big
            sums[part, leaf, 1, k] += (w * (probability * (1.0 - probability)) + big) - big
        sums[part, leaf, 0, np.uint64(y[i])] -= (w + big) - big


@loop_kernel
def hessian_sum(rounded, used, sums, part, first, last):
    """Set ``sums`` (n_parts,) of the last column over the rows ``used``."""
    _, n_columns = rounded.shape
    total = 0.0
    for q in range(first, last):
        total += rounded[np.uint64(used[q]), n_columns - 1]
    sums[part] = total


@loop_kernel
def loss_sums(losses, fraction, total, used, coarse, fine, sums, part, first, last):
    """Sums of losses times ``fraction / total`` of the samples ``used``.

    Sets ``sums`` (n_parts, 3): the largest term, and the sums of the high and the low halves.
    """
    largest = high_sum = low_sum = 0.0
    for q in range(first, last):
        i = np.uint64(used[q])
        x = losses[i] * (fraction[i] / total)
        high = (x + coarse) - coarse
        largest = x if x > largest else largest
        high_sum += high
        low_sum += ((x - high) + fine) - fine
    sums[part, 0], sums[part, 1], sums[part, 2] = largest, high_sum, low_sum
