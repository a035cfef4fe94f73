"""Predictions of dask collections that are computed when they are asked for, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost.distributed.collections import is_frame


def predict_lazily(model: Any, method: str, X: Any, columns: list[Any] | None, dtype: Any) -> Any:
    """What a method of a fitted model says about a collection, as a collection of the same kind.

    It is a column, or has the `columns`. Of a data frame the index is kept.
    """
    from dask import delayed

    shared = delayed(model, traverse=False)
    if is_frame(X):
        import pandas as pd

        empty = X._meta.index[:0]
        meta: Any = pd.Series(np.empty(0, dtype), index=empty, name=method)
        if columns is not None:
            meta = pd.DataFrame(np.empty((0, len(columns)), dtype), index=empty, columns=columns)
        return X.map_partitions(_of_frame, shared, method, columns, dtype, meta=meta)
    X = X.rechunk({1: -1})
    if columns is None:
        meta = np.empty(0, dtype)
        return X.map_blocks(_of_block, shared, method, None, dtype, drop_axis=1, meta=meta)
    chunks = (X.chunks[0], (len(columns),))
    meta = np.empty((0, len(columns)), dtype)
    return X.map_blocks(_of_block, shared, method, columns, dtype, chunks=chunks, meta=meta)


def _of_block(block: Any, model: Any, method: str, columns: list[Any] | None, dtype: Any) -> Any:
    """The same of some rows."""
    if not block.shape[0]:  # sparse matrices have no len
        return np.empty(0 if columns is None else (0, len(columns)), dtype)
    return getattr(model, method)(block)


def _of_frame(block: Any, model: Any, method: str, columns: list[Any] | None, dtype: Any) -> Any:
    """The same of some rows of a data frame."""
    import pandas as pd

    values = _of_block(block, model, method, columns, dtype)
    if columns is None:
        return pd.Series(values, index=block.index, name=method)
    return pd.DataFrame(values, index=block.index, columns=columns)
