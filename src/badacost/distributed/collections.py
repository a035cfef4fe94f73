"""Dask collections as chunks of rows: samples, classes and weights that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from badacost.distributed.parts import Chunk, wait_for_workers
from badacost.distributed.requirement import dask_distributed


def is_collection(data: Any) -> bool:
    """Whether data are a dask array, data frame or series."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


def is_frame(data: Any) -> bool:
    """Whether a collection is a data frame or a series, not an array."""
    return hasattr(data, "npartitions") and not hasattr(data, "numblocks")


def check_collections(names: str, *collections: Any) -> None:
    """Raise unless all that is given (None is not) are dask collections of fitting shapes."""
    for name, data in zip(names.split(), collections, strict=True):
        if data is not None and not is_collection(data):
            raise TypeError(
                f"{name} must be a dask array, data frame or series; got {type(data).__name__}: "
                "convert it, for example with dask.array.from_array, or fit the ordinary "
                "estimator, which takes it as it is."
            )
        wanted = 2 if name.startswith("X") else 1
        if data is not None and data.ndim != wanted:
            raise ValueError(
                f"{name} must have {wanted} dimension{'s' * (wanted > 1)}; it has {data.ndim}."
            )


def chunks_of(client: Any, X: Any, *columns: Any) -> list[Chunk]:
    """Chunks of all rows in their order: samples, and what belongs to them (None stays None)."""
    if not is_frame(X):
        X = X.rechunk({1: -1})
    fitting = [
        column if column is None or _divided_alike(X, column) else _divided_like(client, X, column)
        for column in columns
    ]
    blocks = [
        [None] * n_chunks(X) if data is None else np.ravel(data.to_delayed()).tolist()
        for data in (X, *fitting)
    ]
    return [*zip(*blocks, strict=True)]


def n_chunks(X: Any) -> int:
    """Number of chunks of rows."""
    return int(X.npartitions if is_frame(X) else X.numblocks[0])


def _divided_alike(X: Any, column: Any) -> bool:
    """Whether chunks have the same rows, as far as is known: the parts look again."""
    if n_chunks(X) != n_chunks(column):
        return False
    if is_frame(X) and is_frame(column):
        return not (X.known_divisions and column.known_divisions) or X.divisions == column.divisions
    if is_frame(X) or is_frame(column):
        return False
    return bool(np.array_equal(X.chunks[0], column.chunks[0], equal_nan=True))


def _divided_like(client: Any, X: Any, column: Any) -> Any:
    """A column with chunks of the same rows as those of X, which are counted if need be."""
    wait_for_workers(client)
    lengths = _lengths(client, X)
    known = _lengths(client, column)
    if is_frame(column):
        column = column.to_dask_array(lengths=tuple(known))
    elif np.isnan(column.chunks[0]).any():
        import dask.array as da

        blocks = zip(column.to_delayed(), known, strict=True)
        column = da.concatenate([da.from_delayed(block, (n,), column.dtype) for block, n in blocks])
    if sum(lengths) != len(column):
        raise ValueError(f"X has {sum(lengths)} rows, but {len(column)} classes or weights.")
    return column.rechunk((tuple(lengths),))


def _lengths(client: Any, data: Any) -> list[int]:
    """Numbers of rows of all chunks."""
    if not is_frame(data) and not np.isnan(data.chunks[0]).any():
        return list(data.chunks[0])
    from dask import delayed

    counts = [delayed(len)(block) for block in np.ravel(data.to_delayed())]
    return list(client.gather(client.compute(counts)))


def meta_of(X: Any) -> Any:
    """What is known of samples without computing them: names, types, number of columns."""
    return X._meta if is_frame(X) else np.empty((0, X.shape[1]), X.dtype)


def current_client(client: Any) -> Any:
    """The client given, or the one of this process or task."""
    library = dask_distributed()
    if client is None:
        try:
            client = library.get_client()
        except ValueError as error:
            raise ValueError(
                "No Dask client was given and none is active: make one, for example "
                "client = dask.distributed.Client(), and pass client=client."
            ) from error
    if not isinstance(client, library.Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client is asynchronous: use one that was made without asynchronous=True.")
    return client


@contextmanager
def outside_of_tasks() -> Iterator[None]:
    """Give the thread of a task back while it waits for parts, which may need it."""
    library = dask_distributed()
    in_task = True
    try:
        library.get_worker()
    except ValueError:
        in_task = False
    if in_task:
        library.secede()
    try:
        yield
    finally:
        if in_task:
            library.rejoin()
