"""Forests on a GPU: the scores of `Forest.accumulate`, bit by bit."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from badacost.arrays import FloatArray, Samples
from badacost.gpu.device import Device
from badacost.large_samples import is_sparse
from badacost.tree.forest import Forest

_THREADS = 128
_BLOCK_BYTES = 2**28  # of samples that are on the device at a time


class _Uploaded:
    """The arrays of a forest on a device."""

    def __init__(self, forest: Forest, device: Device):
        nodes, missing_left, category_set, sets, offsets, depths, *_ = forest.walk
        self.device = device
        self.walk = [
            device.upload(array)
            for array in (
                nodes.view(np.uint8), missing_left, category_set, sets, offsets, depths,
                forest.value, forest.tree_weights, forest.table,
            )
        ]  # fmt: skip
        self.categories: list[Any] = []
        if forest.categories is not None and forest.category_offsets is not None:
            known = np.append(forest.categories, np.nan)  # never empty
            self.categories = [device.upload(forest.category_offsets), device.upload(known)]


_UPLOADED: WeakKeyDictionary[Forest, _Uploaded] = WeakKeyDictionary()  # for later predictions


def accumulate(
    device: Device,
    forest: Forest,
    X: Samples,
    scores: FloatArray | None = None,
    *,
    first_tree: int = 0,
    last_tree: int | None = None,
) -> FloatArray:
    """Add the scores of the trees ``first_tree .. last_tree`` to `scores` and return it."""
    last = forest.n_trees if last_tree is None else last_tree
    scores = forest.checked_scores(X, scores, first_tree, last)
    there = _UPLOADED.get(forest)
    if there is None or there.device is not device:
        there = _UPLOADED[forest] = _Uploaded(forest, device)
    n_rows = max(_BLOCK_BYTES // (8 * max(X.shape[1], 1)), 1)
    for start in range(0, X.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        given: Any = X[rows]
        samples = given.toarray() if is_sparse(given) else given
        scores[rows] = _added(there, samples, scores[rows], first_tree, last)
    return scores


def _added(
    there: _Uploaded, X: Samples, scores: FloatArray, first_tree: int, last: int
) -> FloatArray:
    """The same for rows that are on the device together."""
    device, (n, n_features), n_outputs = there.device, X.shape, scores.shape[1]
    wide = X.dtype != np.float32 or bool(there.categories)
    samples = device.upload(X.astype(np.float64 if wide else np.float32, copy=False))
    n_blocks = -(-n // _THREADS)
    if there.categories:
        device.launch(
            "forest", "encode_categories", (n_blocks, min(n_features, 1024)), _THREADS, samples, n,
            n_features, *there.categories,
        )  # fmt: skip
    added = device.upload(scores)
    n_apart = min(n_outputs, device.max_shared // 2 // (8 * _THREADS))
    device.launch(
        "forest", "accumulate", (n_blocks, -(-n_outputs // n_apart)), _THREADS, samples, samples,
        wide, n, n_features, *there.walk, n_outputs, first_tree, last, n_apart, added,
        shared=8 * _THREADS * n_apart,
    )  # fmt: skip
    return device.download(added)
