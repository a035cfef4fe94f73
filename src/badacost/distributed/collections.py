"""Dask collections as chunks of rows: samples, classes and weights that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from badacost.distributed.parts import Chunk, wait_for_workers
from badacost.distributed.requirement import dask_distributed
from badacost.large_samples import is_sparse


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
        if wanted == 2 and data is not None and np.isnan(data.shape[1]):
            raise ValueError(
                f"The number of columns of {name} is not known: let dask count them, with "
                f"{name}.compute_chunk_sizes()."
            )


def chunks_of(client: Any, X: Any, *columns: Any) -> list[Chunk]:
    """Chunks of all rows in their order: samples, and what belongs to them (None stays None)."""
    if not is_frame(X):
        X = X.rechunk({1: -1})
    fitting = [
        [None] * n_chunks(X)
        if column is None
        else _blocks(column)
        if _divided_alike(X, column)
        else _divided_like(client, X, column)
        for column in columns
    ]
    return [*zip(_blocks(X), *fitting, strict=True)]


def _blocks(data: Any) -> list[Any]:
    """Chunks of rows, as delayed values."""
    return list(np.ravel(data.to_delayed()).tolist())


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


def _divided_like(client: Any, X: Any, column: Any) -> list[Any]:
    """Chunks of a column with the same rows as those of X, which are counted if need be."""
    from dask import delayed

    wait_for_workers(client)
    wanted = np.cumsum([0, *_lengths(client, X)]).tolist()
    ends = np.cumsum([0, *_lengths(client, column)]).tolist()
    if wanted[-1] != ends[-1]:
        raise ValueError(f"X has {wanted[-1]} rows, but {ends[-1]} classes or weights.")
    blocks, fitting = _blocks(column), []
    for first, last in pairwise(wanted):
        begin, end = 0, 1  # blocks
        if first < last:
            begin = int(np.searchsorted(ends, first, "right")) - 1
            end = int(np.searchsorted(ends, last))
        chosen = slice(first - ends[begin], last - ends[begin]) if first < last else slice(0)
        fitting.append(delayed(_rows_of)(blocks[begin:end], chosen))
    return fitting


def _rows_of(blocks: list[Any], chosen: slice) -> Any:
    """Some rows of blocks that are neighbours; series keep their type, and so their order."""
    if hasattr(blocks[0], "iloc"):
        import pandas as pd

        return (pd.concat(blocks) if len(blocks) > 1 else blocks[0]).iloc[chosen]
    return np.concatenate(blocks)[chosen]


def _lengths(client: Any, data: Any) -> list[int]:
    """Numbers of rows of all chunks."""
    if not is_frame(data) and not np.isnan(data.chunks[0]).any():
        return list(data.chunks[0])
    from dask import delayed

    counts = [delayed(n_rows)(block) for block in _blocks(data)]
    return list(client.gather(client.compute(counts)))


def n_rows(block: Any) -> int:
    """Number of rows of a chunk, which must be dense."""
    if is_sparse(block):
        raise TypeError(
            "X has sparse chunks: make them dense, with "
            "X.map_blocks(lambda block: block.toarray()), or fit the ordinary estimator, which "
            "takes sparse matrices."
        )
    return len(block)


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
