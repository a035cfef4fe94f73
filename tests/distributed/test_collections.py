"""Chunks of rows that belong together, however the collections were divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from badacost.distributed.collections import (
    check_collections,
    chunks_of,
    current_client,
    is_collection,
    is_frame,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

X = np.arange(30.0).reshape(10, 3)
Y = np.arange(10)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def unknown(array: Any) -> Any:
    """The same without known lengths of chunks."""
    return array[da.from_array(np.ones(len(array), bool), chunks=array.chunks[0])]


ARRAY = da.from_array(X, chunks=(4, 2))
FRAMES = dd.from_pandas(FRAME, npartitions=3)
COLUMN = da.from_array(Y, chunks=4)
SERIES = dd.from_pandas(pd.Series(Y), npartitions=3)


@pytest.mark.parametrize(
    ("samples", "column", "n_chunks"),
    [
        (ARRAY, COLUMN, 3),
        (ARRAY, COLUMN.rechunk(3), 3),
        (ARRAY, SERIES, 3),
        (ARRAY, SERIES.repartition(npartitions=2), 3),
        (unknown(ARRAY), unknown(COLUMN), 3),
        (unknown(ARRAY), COLUMN.rechunk(7), 3),
        (FRAMES, SERIES, 3),
        (FRAMES, SERIES.repartition(npartitions=2), 3),
        (FRAMES, COLUMN.rechunk(7), 3),
        (FRAMES, unknown(COLUMN.rechunk(7)), 3),
        (FRAMES.repartition(npartitions=1), SERIES, 1),
    ],
)
def test_rows_stay_together(cluster_of, samples, column, n_chunks) -> None:
    client = cluster_of(1)
    chunks = chunks_of(client, samples, column, None)
    assert len(chunks) == n_chunks
    computed = [client.gather(client.compute([*chunk[:2]])) for chunk in chunks]
    assert all(np.shape(block)[1] == 3 and len(block) == len(y) for block, y in computed)
    np.testing.assert_array_equal(np.concatenate([block for block, _ in computed]), X)
    np.testing.assert_array_equal(np.concatenate([y for _, y in computed]), Y)
    assert {chunk[2] for chunk in chunks} == {None}


ORDER = ["low", "mid", "high"]
RANKS = pd.Series(pd.Categorical(np.array(ORDER)[Y % 3], categories=ORDER, ordered=True))


@pytest.mark.parametrize("samples", [ARRAY, FRAMES.repartition(npartitions=2), FRAMES])
def test_categories_stay_in_their_order(cluster_of, samples) -> None:
    """Also in chunks that have no rows."""
    client = cluster_of(1)
    samples = samples[samples[:, 0] > 11.0] if samples is ARRAY else samples[samples["a"] > 11.0]
    ranks = dd.from_pandas(RANKS[4:], npartitions=5)
    chunks = client.gather(
        client.compute([y for _, y in chunks_of(client, samples, ranks.reset_index(drop=True))])
    )
    assert all([*chunk.dtype.categories] == ORDER and chunk.dtype.ordered for chunk in chunks)
    assert [*pd.concat(chunks)] == [*RANKS[4:]]


def test_rows_that_are_missing(cluster_of) -> None:
    with pytest.raises(ValueError, match="X has 10 rows, but 8 classes"):
        chunks_of(cluster_of(1), ARRAY, COLUMN[:8])


def test_kinds() -> None:
    assert is_collection(ARRAY)
    assert is_collection(FRAMES)
    assert not is_collection(X)
    assert not is_collection(FRAME)
    assert is_frame(SERIES)
    assert not is_frame(COLUMN)


@pytest.mark.parametrize(
    ("samples", "column", "error", "message"),
    [
        (X, COLUMN, TypeError, "X must be a dask array.*got ndarray: convert it"),
        (ARRAY, Y, TypeError, "y must be a dask array.*got ndarray"),
        (COLUMN, COLUMN, ValueError, "X must have 2 dimensions; it has 1"),
        (ARRAY, ARRAY, ValueError, "y must have 1 dimension; it has 2"),
        (ARRAY[:, ARRAY[0] > 0], COLUMN, ValueError, r"not known: .*X\.compute_chunk_sizes"),
    ],
)
def test_other_data(samples, column, error, message) -> None:
    with pytest.raises(error, match=message):
        check_collections("X y", samples, column)


def test_clients(cluster_of) -> None:
    client = cluster_of(1)
    assert current_client(client) is client
    with pytest.raises(ValueError, match=r"none is active: make one"):
        current_client(None)
    with client.as_current():
        assert current_client(None) is client
    with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client; got str"):
        current_client("tcp://localhost:8786")
