"""Costs of single samples: a row of prices for each, or a whole matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from badacost.arrays import FloatArray, Labels
from badacost.costs.matrix import MAX_COST, as_classes, class_labels, listed


def sample_cost_array(sample_cost: Any, classes: Iterable[Any], n_samples: int) -> FloatArray:
    """Read costs of samples: an array (n, K) or (n, K, K), or a data frame with a column a class.

    Columns of an array are in the order of `classes`; a data frame may have them in any order.
    """
    labels = class_labels(classes)
    if hasattr(sample_cost, "columns"):
        names = as_classes(sample_cost.columns, labels)
        missing = [label for label in labels if label not in names]
        if missing:
            raise ValueError(
                f"sample_cost has no column for class {missing[0]!r}: name its columns by the "
                f"{listed(labels)}, or give an array."
            )
        sample_cost = sample_cost.to_numpy()[:, [names.index(label) for label in labels]]
    costs = np.asarray(sample_cost, dtype=np.float64)
    n_classes = len(labels)
    if costs.shape not in ((n_samples, n_classes), (n_samples, n_classes, n_classes)):
        raise ValueError(
            f"sample_cost has shape {costs.shape}: give a row of {n_classes} prices for each of "
            f"the {n_samples} samples, in the order of the {listed(labels)}, or a matrix for each."
        )
    wrong = np.argwhere(~((costs >= 0) & (costs <= MAX_COST)))
    if len(wrong):
        raise ValueError(
            f"sample_cost of sample {wrong[0][0]} has the entry {costs[tuple(wrong[0])]}: replace "
            f"it by a number from 0 to {MAX_COST:g}."
        )
    return costs


def mistake_costs(costs: FloatArray, y: Labels) -> FloatArray:
    """Return what each decision costs for samples of classes y: rows (n, K), zero where right.

    Rows (n, K) hold prices of mistakes, whatever stands in the place of the class. In matrices
    (n, K, K) being right may have a price, which is subtracted from the rest of its row.
    """
    every = np.arange(len(y))
    if costs.ndim == 2:
        rows = costs.copy()
        rows[every, y] = 0.0
        return rows
    rows = costs[every, y]
    rows -= rows[every, y][:, np.newaxis]
    wrong = np.flatnonzero((rows < 0.0).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"in sample_cost, being right costs more than a mistake for sample {wrong[0]}: lower "
            "that entry, usually to 0."
        )
    return rows
