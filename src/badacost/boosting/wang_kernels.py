"""Compiled loops over a pool of weak learners: ``labels[n, j]`` is what member j answers to n.

Members are next to each other in memory, so that the loops run over many of them at once, and each
sum is taken in the order of the samples, whatever range of members a thread works on.
"""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit


@njit(cache=True, nogil=True)
def add_charges(labels, charges, first, last, sums):
    """Add ``charges[n, labels[n, j]]`` of all samples to ``sums[first:last]``."""
    for n in range(labels.shape[0]):
        answers, row = labels[n], charges[n]
        for j in range(np.uint64(first), np.uint64(last)):
            sums[j] += row[answers[j]]


@njit(cache=True, nogil=True)
def add_where_agreed(labels, samples, chosen, amounts, first, last, sums):
    """Add ``amounts[i]`` to the sums of the members that answer ``chosen[i]`` to a sample."""
    for i in range(samples.shape[0]):
        answers, answer, amount = labels[samples[i]], chosen[i], amounts[i]
        for j in range(np.uint64(first), np.uint64(last)):
            sums[j] += amount if answers[j] == answer else 0.0
