"""The compiled loop that works out linear functions of windows.

Each window's sums are added up in the order of its features, so that they depend neither on the
other windows nor on the number of threads.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit

_BLOCK = 16  # windows that share what is read of the weights


@njit(cache=True, nogil=True)
def add_products(features, bases, offsets, weights, outputs):
    """Add ``x @ weights`` to the outputs (n_windows, n_outputs) of windows.

    Feature f of a window that begins at `base` in the flat `features` is at ``base + offsets[f]``.
    """
    n_windows, n_outputs = outputs.shape
    for first in range(0, n_windows, _BLOCK):
        last = min(n_windows, first + _BLOCK)
        for f in range(len(offsets)):
            for i in range(first, last):
                x = np.float64(features[np.uint32(bases[i] + offsets[f])])
                for k in range(n_outputs):
                    outputs[i, k] += x * weights[f, k]
