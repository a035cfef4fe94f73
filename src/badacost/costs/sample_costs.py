"""Costs of single samples: a row of prices for each, or a whole matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from badacost.arrays import FloatArray, Labels, Mask
from badacost.costs.matrix import MAX_COST, as_classes, check_unique


def check_sample_cost(
    sample_cost: Any, labels: Sequence[Any], n_samples: int, name: str = "sample_cost"
) -> FloatArray:
    """Return prices of samples as an array of shape (n, K) or (n, K, K), in the order of `labels`.

    The columns of a data frame name the classes, in any order, and may name others.
    """
    n_classes = len(labels)
    columns = getattr(sample_cost, "columns", None)
    wanted = (
        f"give a row of {n_classes} prices for each of the {n_samples} samples, or a matrix for "
        f"each, shape ({n_samples}, {n_classes}, {n_classes})"
    )
    try:
        values = check_array(
            sample_cost,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name} must be a dense array of real numbers; got {type(sample_cost).__name__}: "
            f"{wanted}."
        ) from None
    if columns is not None:
        found = as_classes(columns, labels)
        check_unique(found, f"the columns of {name}")
        missing = [label for label in labels if label not in found]
        if missing:
            raise ValueError(f"{name} has no column for class {missing[0]!r}: add it.")
        values = values[:, [found.index(label) for label in labels]]
    if values.shape not in ((n_samples, n_classes), (n_samples, n_classes, n_classes)):
        raise ValueError(f"{name} has shape {values.shape}: {wanted}.")
    wrong = np.argwhere(~((values >= 0) & (values <= MAX_COST)))
    if len(wrong):
        cell = tuple(wrong[0])
        raise ValueError(
            f"{name} of sample {cell[0]} and prediction {labels[cell[-1]]!r} is {values[cell]}: "
            f"replace it by a number from 0 to {MAX_COST:g}."
        )
    return np.asarray(values)


def mistake_costs(costs: FloatArray, y: Labels, kept: Mask) -> FloatArray:
    """Return what each decision costs for samples of classes y: rows (n, K), zero where right.

    The samples are those of `costs` that are `kept`. Rows (K,) hold prices of mistakes, whatever
    stands in the place of the class. In matrices (K, K) being right may have a price, which is
    subtracted from the rest of its row.
    """
    every = np.arange(len(y))
    if costs.ndim == 2:
        rows = costs[kept]
        rows[every, y] = 0.0
        return rows
    rows = costs[np.flatnonzero(kept), y]
    rows -= rows[every, y][:, np.newaxis]
    wrong = (rows < 0.0).any(axis=1)
    if wrong.any():
        raise ValueError(
            "in sample_cost, being right costs more than a mistake for sample "
            f"{np.flatnonzero(kept)[wrong][0]}: lower that entry, usually to 0."
        )
    return rows
