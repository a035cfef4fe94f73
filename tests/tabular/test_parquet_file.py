"""Files of Parquet: types that are read, and those that are refused before they are unpacked."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from badacost.tabular import read_table


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["x" * 100] * 50, pa.string_view()),
        pa.array([b"abcd"] * 3, pa.binary(4)),
        pa.array([timedelta(1)] * 3),
        pa.array([[1], [2], [3]]),
        pa.array([{"a": 1}] * 3),
    ],
    ids=["views", "fixed", "duration", "list", "struct"],
)
def test_types_that_are_refused(values, tmp_path) -> None:
    path = tmp_path / "t.parquet"
    try:
        pq.write_table(pa.table({"a": values}), path, compression="zstd")
    except pa.ArrowNotImplementedError:
        pytest.skip("written by newer versions of pyarrow only")
    with pytest.raises(ValueError, match=r"has values of type .* in column 'a': write the file"):
        read_table(path)


def test_texts_that_are_many_times_the_same(tmp_path) -> None:
    """A small file, and a gigabyte of text."""
    path = tmp_path / "t.parquet"
    indices = pa.array([0] * 100_000, pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 10_000]))
    pq.write_table(pa.table({"a": texts}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="bytes or more in memory, and 8388608 are allowed"):
        read_table(path, max_bytes=2**23)
