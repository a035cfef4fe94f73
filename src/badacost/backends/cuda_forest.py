"""Forests on a GPU; scores equal those of `Forest.accumulate`, bit by bit."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from badacost._utils.arrays import FloatArray, Samples
from badacost.backends.device import Device
from badacost.tree.binning import is_sparse
from badacost.tree.forest import Forest

_THREADS = 128
_BLOCK_BYTES = 2**28  # samples on the device at a time


# Arrays of forests, and of their categories, on devices: for later predictions.
_UPLOADED: WeakKeyDictionary[Forest, dict[Device, tuple[list[Any], list[Any]]]] = (
    WeakKeyDictionary()
)


def _upload(forest: Forest, device: Device) -> tuple[list[Any], list[Any]]:
    """Copy the arrays of a forest, and of its categories if there are any, to a device."""
    given, categories = forest.kernel_forest, []
    if forest.categories is not None and forest.category_offsets is not None:
        known = np.append(forest.categories, np.nan)  # never empty
        categories = [device.upload(forest.category_offsets), device.upload(known)]
    arrays = (
        given.nodes.view(np.uint8), given.missing_left, given.category_set, given.sets,
        given.offsets, given.depths, given.value, given.tree_weights, given.table,
    )  # fmt: skip
    return [*map(device.upload, arrays)], categories


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
    there = _UPLOADED.setdefault(forest, {})
    if device not in there:
        there[device] = _upload(forest, device)
    arrays, categories = there[device]
    n_features, n_outputs = X.shape[1], scores.shape[1]
    n_apart = min(n_outputs, device.max_shared // 2 // (8 * _THREADS))
    n_rows = max(_BLOCK_BYTES // (8 * max(n_features, 1)), 1)
    for start in range(0, X.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        given: Any = X[rows]
        block = given.toarray() if is_sparse(given) else given
        n, wide = len(block), block.dtype != np.float32 or bool(categories)
        n_blocks = -(-n // _THREADS)
        samples = device.upload(block.astype(np.float64 if wide else np.float32, copy=False))
        if categories:
            device.launch(
                "backends/forest", "encode_categories", (n_blocks, min(n_features, 1024)),
                _THREADS, samples, n, n_features, *categories,
            )  # fmt: skip
        added = device.upload(scores[rows])
        device.launch(
            "backends/forest", "accumulate", (n_blocks, -(-n_outputs // n_apart)), _THREADS,
            samples, samples, wide, n, n_features, *arrays, n_outputs, first_tree, last, n_apart,
            added, shared=8 * _THREADS * n_apart,
        )  # fmt: skip
        scores[rows] = device.download(added)
    return scores
