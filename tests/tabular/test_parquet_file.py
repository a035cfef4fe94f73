"""Files of Parquet: types that are read, and those that are refused before they are unpacked."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from badacost.tabular import read_table
from campaigns.hostile_tables import parquet_dictionary


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


@pytest.mark.parametrize(
    "given",
    [
        {"n_rows": 2000, "length": 10_000},
        {"n_rows": 400, "length": 10_000, "n_groups": 200, "kind": "category"},
        {"n_rows": 400, "length": 10_000, "n_groups": 200, "kind": "unused"},
        {"n_rows": 4, "length": 2_000_000, "kind": "unused"},
    ],
    ids=["texts", "many dictionaries", "unused texts", "a long text"],
)
def test_dictionaries_of_long_texts(given, tmp_path) -> None:
    path = parquet_dictionary(tmp_path / "t.parquet", **given)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"^cannot read the table .* would need .*limit 2 MB"):
        read_table(path, max_memory="2 MB")


def test_categories_stay_in_their_dictionary(tmp_path) -> None:
    """A text that many rows share takes its place once."""
    path = parquet_dictionary(tmp_path / "t.parquet", 10_000, 10_000, kind="category")
    frame = read_table(path, max_memory="2 MB")
    assert frame["a"].value_counts().to_dict() == {"x" * 10_000: 5001, "b": 4999}


def test_small_numbers_that_are_missing(tmp_path) -> None:
    """A byte becomes a float."""
    path = tmp_path / "t.parquet"
    numbers = pa.array([1, None] * 50_000, pa.int8())
    pq.write_table(pa.table({"a": numbers}), path)
    assert read_table(path, max_memory="1 MB")["a"].count() == 50_000
    with pytest.raises(ValueError, match=r"would need 912.5 kB, limit 900 kB"):
        read_table(path, max_memory="900 kB")


def test_footers_are_checked_before_they_are_read(tmp_path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({f"a{n}": [1] for n in range(500)}), path)
    with pytest.raises(ValueError, match=r"cannot read the table .* limit 500 kB"):
        read_table(path, max_memory="500 kB")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 10, b"PAR1\xff\xff\xff\x7fPAR1"])
def test_damaged_files(content, tmp_path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t.parquet'.* is damaged, or not of Parquet"):
        read_table(path)


def test_texts_that_are_not_in_utf_8(tmp_path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["low", "high"]}), path)
    path.write_bytes(path.read_bytes().replace(b"low", b"l\xefw"))
    with pytest.raises(ValueError, match=r"t.parquet'.* is damaged.*Invalid UTF8"):
        read_table(path)


def test_rows_without_columns(tmp_path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}).select([]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"it has no columns\): write it again"):
        read_table(tmp_path / "t.parquet")


def test_a_time_zone_that_nobody_knows(tmp_path) -> None:
    times = pa.array([1, 2], pa.timestamp("us", "Mars/Phobos"))
    pq.write_table(pa.table({"t": times}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet' has a column 't' that cannot be read"):
        read_table(tmp_path / "t.parquet")
