"""Blocks of rows, however they come."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from badacost import large_samples
from badacost.large_samples import (
    Batch,
    BatchSamples,
    BatchSource,
    MappedSamples,
    blocks_of,
    row_blocks,
)


class Source(BatchSource):
    def __init__(self, *ends: int):
        self.ends = ends

    def batches(self):
        first = 0
        for last in self.ends:
            yield Batch(X[first:last], Y[first:last])
            first = last


X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20) % 3


@pytest.fixture(params=["mapped", "batches"])
def samples(request, monkeypatch):
    monkeypatch.setattr(large_samples, "_CELLS_AT_ONCE", 21)  # seven rows
    if request.param == "mapped":
        return MappedSamples(X, np.asarray)
    source = Source(0, 6, 6, 20)
    return BatchSamples(source, [batch.mark for batch in source.batches()], 3, np.asarray)


def test_some_of_the_rows(samples) -> None:
    assert samples.shape == X.shape
    np.testing.assert_array_equal(np.concatenate(list(samples.blocks())), X)
    odd = np.arange(20) % 2 == 1
    some = samples[odd]
    assert len(some) == 10
    np.testing.assert_array_equal(np.concatenate(list(some.blocks())), X[odd])
    late = np.arange(10) >= 7
    np.testing.assert_array_equal(np.concatenate(list(some[late].blocks())), X[odd][late])
    assert len(samples) == 20
    assert all(len(block) for block in some[late].blocks())


def test_a_glimpse_is_spread_over_all_rows(samples, monkeypatch) -> None:
    monkeypatch.setattr(large_samples, "_MAX_GLIMPSED", 6)
    for _ in samples.blocks():
        pass
    np.testing.assert_array_equal(samples.glimpse, X[::4])


def test_marks_tell_batches_apart() -> None:
    def mark(labels) -> tuple[int, ...]:
        return Batch(np.zeros((len(labels), 1)), labels).mark

    assert mark([1, 2]) == mark(np.array([1, 2]))
    assert mark([1, 2]) != mark([2, 1])
    assert mark(["a", "b"]) == mark(np.array(["a", "b"], dtype=object))
    assert mark(["a", "b"]) != mark(["b", "a"])
    assert mark([]) == (0, 0, 0, 0)


@pytest.mark.parametrize("ends", [(6, 20), (0, 6, 6, 19), (0, 6, 6, 20, 20)])
def test_batches_that_change(ends) -> None:
    marks = [batch.mark for batch in Source(0, 6, 6, 20).batches()]
    changed = BatchSamples(Source(*ends), marks, 3, np.asarray)
    with pytest.raises(ValueError, match="is not what it was in the first pass"):
        list(changed.blocks())


def test_blocks_of_anything(monkeypatch) -> None:
    monkeypatch.setattr(large_samples, "_CELLS_AT_ONCE", 21)
    (block,) = blocks_of(X)
    assert block is X
    blocks = list(blocks_of(sparse.csr_array(X)))
    assert [len(block) for block in blocks] == [7, 7, 6]
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    assert [rows.stop for rows in row_blocks(3, 100)] == [1, 2, 3]
