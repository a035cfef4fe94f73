"""Compiled loops of the KITTI protocol: which object has which detection."""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit


@njit(cache=True, nogil=True)
def add(new, starts, detections, objects, overlaps, held):
    """Add `new` detections to those that objects have, and return which ones no object has now.

    Each object, in their order, has the detection that it overlaps most of those that are left:
    the first one that prefers a new detection takes it, and leaves the one it had to the objects
    after it. Pairs that overlap are sorted by detection and object, those of detection i from
    ``starts[i]`` on; `held` is the pair of each object, -1 for none.
    """
    left_over, n_left = np.empty(len(new), np.int64), 0
    for detection in new:
        last = -1
        while detection >= 0:
            first, end = starts[detection], starts[detection + 1]
            pair = first + np.searchsorted(objects[first:end], last, side="right")
            while pair < end and not _is_preferred(pair, detections, objects, overlaps, held):
                pair += 1
            if pair == end:
                left_over[n_left] = detection
                n_left += 1
                break
            last = objects[pair]
            given_up, held[last] = held[last], pair
            detection = detections[given_up] if given_up >= 0 else -1
    return left_over[:n_left]


@njit(cache=True, nogil=True)
def _is_preferred(pair, detections, objects, overlaps, held):
    """Whether an object prefers the detection of a pair to its own: of equal ones the first."""
    own = held[objects[pair]]
    if own < 0 or overlaps[pair] != overlaps[own]:
        return own < 0 or overlaps[pair] > overlaps[own]
    return detections[pair] < detections[own]
