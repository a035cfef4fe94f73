"""Chunks of rows that belong together, however the collections were divided."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import pytest

from badacost.boosting.folds import RowHashes
from badacost.distributed import DaskBAdaCostClassifier
from badacost.distributed.cluster import current_client
from badacost.distributed.collections import (
    check_collections,
    is_collection,
    is_frame,
)
from badacost.distributed.training_set import ClusterRows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

X = np.arange(30.0).reshape(10, 3)
Y = np.arange(10)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def unknown(array: Any) -> Any:
    """An array without known lengths of chunks."""
    return array[da.from_array(np.ones(len(array), bool), chunks=array.chunks[0])]


def fitted_like(samples: Any) -> Any:
    """An estimator that begins to fit."""
    model = DaskBAdaCostClassifier()
    model.n_features_in_, model._seed = samples.shape[1], 3
    return model


ARRAY = da.from_array(X, chunks=(4, 2))
FRAMES = dd.from_pandas(FRAME, npartitions=3)
COLUMN = da.from_array(Y, chunks=4)
SERIES = dd.from_pandas(pd.Series(Y), npartitions=3)


@pytest.mark.parametrize(
    ("samples", "column"),
    [
        (ARRAY, COLUMN),
        (ARRAY, COLUMN.rechunk(3)),
        (ARRAY, SERIES),
        (ARRAY, SERIES.repartition(npartitions=2)),
        (unknown(ARRAY), unknown(COLUMN)),
        (unknown(ARRAY), COLUMN.rechunk(7)),
        (FRAMES, SERIES),
        (FRAMES, SERIES.repartition(npartitions=2)),
        (FRAMES, COLUMN.rechunk(7)),
        (FRAMES, COLUMN.rechunk(1)),
        (FRAMES, unknown(COLUMN.rechunk(7))),
        (FRAMES.repartition(npartitions=1), SERIES),
    ],
)
def test_rows_stay_together(cluster_of, samples, column) -> None:
    """However many chunks there are of each, on two workers."""
    with ExitStack() as stack:
        weight = column + 1
        rows = ClusterRows(
            fitted_like(FRAME), stack, cluster_of(2), samples, column, weight, reset=True
        )
        assert len(rows.shards) == min(2, samples.npartitions)
        np.testing.assert_array_equal(rows.y, Y)
        np.testing.assert_array_equal(rows.weight, Y + 1)
        np.testing.assert_array_equal(rows.mixed(), RowHashes(3).of(X))


ORDER = ["low", "mid", "high"]
RANKS = pd.Series(pd.Categorical(np.array(ORDER)[Y % 3], categories=ORDER, ordered=True))


@pytest.mark.parametrize("samples", [ARRAY, FRAMES.repartition(npartitions=2), FRAMES])
def test_categories_stay_in_their_order(cluster_of, samples) -> None:
    """Also in chunks that have no rows."""
    samples = samples[samples[:, 0] > 11.0] if samples is ARRAY else samples[samples["a"] > 11.0]
    ranks = dd.from_pandas(RANKS[4:], npartitions=5).reset_index(drop=True)
    with ExitStack() as stack:
        rows = ClusterRows(
            fitted_like(FRAME), stack, cluster_of(1), samples, ranks, None, reset=True
        )
        assert [*rows.classes] == ORDER
        np.testing.assert_array_equal(rows.y, Y[4:] % 3)


def test_rows_that_are_missing(cluster_of) -> None:
    with ExitStack() as stack, pytest.raises(ValueError, match="X has 10 rows, but y has 8"):
        ClusterRows(fitted_like(FRAME), stack, cluster_of(1), ARRAY, COLUMN[:8], None, reset=True)


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
        (COLUMN, COLUMN, ValueError, "X must have ndim 2, it has 1"),
        (ARRAY, ARRAY, ValueError, "y must have ndim 1, it has 2"),
        (ARRAY[:, ARRAY[0] > 0], COLUMN, ValueError, r"unknown columns: .*X\.compute_chunk_sizes"),
    ],
)
def test_other_data(samples, column, error, message) -> None:
    with pytest.raises(error, match=message):
        check_collections("X y", samples, column)


def test_clients(cluster_of) -> None:
    client = cluster_of(1)
    assert current_client(client) is client
    with pytest.raises(ValueError, match=r"is active: give client="):
        current_client(None)
    with client.as_current():
        assert current_client(None) is client
    with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client; got str"):
        current_client("tcp://localhost:8786")
