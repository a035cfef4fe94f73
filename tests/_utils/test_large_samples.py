"""Blocks of rows, however they come."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from badacost._utils.large_samples import (
    Batch,
    BatchSource,
    LargeSamples,
    mapped_array,
    unchanged_batches,
)
from badacost.tree import binning
from badacost.tree.binning import dense_blocks, row_blocks
from tests.file_size_limit import file_size_limit


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
    monkeypatch.setattr(binning, "_CELLS_AT_ONCE", 21)  # seven rows
    if request.param == "mapped":
        return LargeSamples(lambda: (X[rows] for rows in row_blocks(*X.shape)), X.shape)
    source = Source(0, 6, 6, 20)
    marks = [batch.mark for batch in source.batches()]
    return LargeSamples(lambda: (b.X for b in unchanged_batches(source, marks)), X.shape)


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
    with pytest.raises(ValueError, match="is not what it was in the first pass"):
        list(unchanged_batches(Source(*ends), marks))


def test_blocks_of_anything(monkeypatch) -> None:
    monkeypatch.setattr(binning, "_CELLS_AT_ONCE", 21)
    (block,) = dense_blocks(X)
    assert block is X
    blocks = list(dense_blocks(sparse.csr_array(X)))
    assert [len(block) for block in blocks] == [7, 7, 6]
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    assert [rows.stop for rows in row_blocks(3, 100)] == [1, 2, 3]


# Arrays in temporary files


def test_the_file_goes_with_the_array(tmp_path) -> None:
    array = mapped_array((3, 4), np.uint16, tmp_path, "")
    array[:] = np.arange(12).reshape(3, 4)
    assert array.sum() == 66
    assert (array.dtype, array.shape) == (np.uint16, (3, 4))
    assert not list(tmp_path.iterdir())


def test_files_that_may_not_grow(tmp_path) -> None:
    """A map of what is not there would end the process."""
    message = rf"^cannot keep 3 MiB in the folder '{tmp_path}' \(File too .*\): move\.$"
    with file_size_limit(2**20), pytest.raises(OSError, match=message):
        mapped_array((3 * 2**20,), np.uint8, tmp_path, "move")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory\): move"):
        mapped_array((3,), np.uint8, tmp_path / "no", "move")
