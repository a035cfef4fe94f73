"""Compiled loop over a pool of weak learners: ``labels[n, j]`` is what member j gives to sample n.

Members are next to each other in memory, so that the loop runs over many of them at once, and each
sum is taken in the order of the samples, whatever range of members a thread works on.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit


@njit(cache=True, nogil=True)
def add_where_given(labels, samples, chosen, amounts, sums, first, last):
    """Add ``amounts[i]`` to the sums of the members that give ``chosen[i]`` to ``samples[i]``."""
    for i in range(samples.shape[0]):
        given, label, amount = labels[samples[i]], chosen[i], amounts[i]
        for j in range(np.uint64(first), np.uint64(last)):
            sums[j] += amount if given[j] == label else 0.0
