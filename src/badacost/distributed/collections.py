"""Dask collections: chunks of rows whose columns belong together, and lazy predictions."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_collection(data: Any) -> bool:
    """Whether data are a dask array, data frame or series."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


def is_frame(data: Any) -> bool:
    """Whether a collection is a data frame or a series, not an array."""
    return hasattr(data, "npartitions") and not hasattr(data, "numblocks")


def check_collections(names: str, *collections: Any) -> None:
    """Raise unless all that is given (None is not) are dask collections of fitting shapes."""
    for name, data in zip(names.split(), collections, strict=True):
        if data is None:
            continue
        if not is_collection(data):
            raise TypeError(
                f"{name} must be a dask array, data frame or series; got {type(data).__name__}: "
                "convert it, as with dask.array.from_array, or fit the ordinary estimator."
            )
        n_dims = 2 if name.startswith("X") else 1
        if data.ndim != n_dims:
            raise ValueError(f"{name} must have ndim {n_dims}, it has {data.ndim}: reshape it.")
        if n_dims == 2 and np.isnan(data.shape[1]):
            raise ValueError(f"{name} has unknown columns: call {name}.compute_chunk_sizes().")


def chunks_of(data: Any) -> list[Any]:
    """Chunks of all rows in their order, as delayed values."""
    whole = data if is_frame(data) or data.ndim == 1 else data.rechunk({1: -1})
    return list(np.ravel(whole.to_delayed()).tolist())


def meta_of(X: Any) -> Any:
    """An empty piece of the samples, with their names, types and number of columns."""
    return X._meta if is_frame(X) else np.empty((0, X.shape[1]), X.dtype)


def predict_lazily(model: Any, method: str, X: Any) -> Any:
    """Results of a method of a fitted model for a collection, as a collection of the same kind.

    They are one column, or have one for each class or tree. Those of a data frame keep its index.
    """
    from dask import delayed

    check_collections("X", X)
    from dask.dataframe.dispatch import meta_nonempty

    rows = meta_nonempty(X._meta) if is_frame(X) else np.zeros((1, X.shape[1]), X.dtype)
    empty = getattr(model, method)(rows)[:0]
    shared = delayed(model, traverse=False)
    if is_frame(X):
        meta = _predict_frame(X._meta, model, method, empty)
        return X.map_partitions(_predict_frame, shared, method, empty, meta=meta)
    X = X.rechunk({1: -1})
    options: Any = {"drop_axis": 1}
    if empty.ndim > 1:
        options = {"chunks": (X.chunks[0], empty.shape[1:])}
    return X.map_blocks(_predict_block, shared, method, empty, meta=empty, **options)


def _predict_block(block: Any, model: Any, method: str, empty: Any) -> Any:
    """Results for a block of rows, which may have none."""
    return getattr(model, method)(block) if block.shape[0] else empty


def _predict_frame(block: Any, model: Any, method: str, empty: Any) -> Any:
    """Results for some rows of a data frame: a data frame, or a series."""
    import pandas as pd

    values = _predict_block(block, model, method, empty)
    if values.ndim == 1:
        return pd.Series(values, index=block.index, name=method)
    columns = None if method == "apply" else model.classes_
    return pd.DataFrame(values, index=block.index, columns=columns)
