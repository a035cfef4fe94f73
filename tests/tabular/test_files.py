"""Tables in files: what is read, what is refused, and what is written."""

from __future__ import annotations

import builtins
import csv
import gzip
import io
from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from badacost.io.csv_dialect import guess_separator
from badacost.tabular import (
    TableEncoder,
    read_table,
    write_table,
)
from badacost.tabular.columns import Column
from badacost.tabular.files import to_csv
from campaigns.hostile_tables import gzip_of_blanks, gzip_of_lines, many_columns
from tests.tabular.patients import patients


def check_read_or_refused(path) -> None:
    """Reading ends in a table, or in an error that names the file."""
    try:
        frame = read_table(path)
    except ValueError as error:
        message = str(error)
    else:
        assert len(frame)
        assert len(set(frame.columns)) == len(frame.columns)
        return
    assert str(path) in message


class TestReading:
    @pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.tsv.gz", "t.pq"])
    def test_what_is_written_is_read(self, tmp_path, name) -> None:
        frame = patients()
        write_table(frame, tmp_path / name)
        again = read_table(tmp_path / name)
        assert again.columns.tolist() == frame.columns.tolist()
        kept = frame.drop(columns="site")
        encoder = TableEncoder().fit(again.drop(columns="site"))
        assert encoder.columns_ == TableEncoder().fit(kept).columns_
        np.testing.assert_array_equal(encoder.transform(again), encoder.transform(kept))

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_separators_quotes_and_byte_order_marks(self, tmp_path, separator) -> None:
        lines = [separator.join(row) for row in (['"a;b,c"', " d "], ["1", '"x;,y\nz"'])]
        (tmp_path / "t.csv").write_text("\ufeff\n" + "\r\n".join(lines) + "\r\n\r\n", newline="")
        frame = read_table(tmp_path / "t.csv")
        assert frame.columns.tolist() == ["a;b,c", "d"]
        assert frame.iloc[0].tolist() == [1, "x;,y\nz"]
        assert frame.index.tolist() == [3]

    def test_missing_values_dates_and_decimal_commas(self, tmp_path) -> None:
        text = "a;b;c;d;e\n1,5;2024-05-31;None;True;x\n?;;nan;False;2024-13-01\n-2;2024-06-01;;;y\n"
        (tmp_path / "t.csv").write_text(text)
        frame = read_table(tmp_path / "t.csv")
        np.testing.assert_array_equal(frame["a"], [1.5, np.nan, -2.0])
        days = pd.to_datetime(frame["b"]).dt.strftime("%Y-%m-%d").tolist()
        assert (frame["b"].dtype.kind, days) == ("M", ["2024-05-31", np.nan, "2024-06-01"])
        assert frame["c"].tolist()[0] == "None"
        assert frame["c"].isna().tolist() == [False, True, True]
        assert frame["d"].tolist() == [True, False, pd.NA]
        assert frame["e"].tolist() == ["x", "2024-13-01", "y"]

    @pytest.mark.parametrize("separator", [";", "\t"])
    @pytest.mark.parametrize(
        ("cells", "read"),
        [
            (["5,5", "7", ",25"], [5.5, 7, 0.25]),
            ([" 5,5", "7 ", "-2,5e-1"], [5.5, 7, -0.25]),
            (["5,5", "2.5", "7"], ["5,5", "2.5", "7"]),
            (["1,000,000", "5,5", "7"], ["1,000,000", "5,5", "7"]),
            (["5,5", "Bern, West", "7"], ["5,5", "Bern, West", "7"]),
            (["5,5", "x"], ["5,5", "x"]),
            (["unknown", *["5,5"] * 9], ["unknown", *["5.5"] * 9]),
        ],
    )
    def test_decimal_commas(self, tmp_path, separator, cells, read) -> None:
        lines = [f"a{separator}b", *(f"{cell}{separator}x" for cell in cells)]
        (tmp_path / "t.csv").write_text("\n".join(lines))
        assert read_table(tmp_path / "t.csv")["a"].tolist() == read

    def test_cells_are_stripped_and_lines_are_those_of_the_file(self, tmp_path) -> None:
        (tmp_path / "t.csv").write_text('a , b\n x ,"1\n2"\n\ny, NA \n')
        frame = read_table(tmp_path / "t.csv")
        assert frame.columns.tolist() == ["a", "b"]
        assert frame["a"].tolist() == ["x", "y"]
        assert frame["b"].isna().tolist() == [False, True]
        assert frame.index.tolist() == [2, 5]
        (tmp_path / "t.csv").write_text("a,b\n1, x\n2,\n")
        assert read_table(tmp_path / "t.csv")["b"].fillna("none").tolist() == ["x", "none"]

    def test_a_column_that_counts_rows_is_left_out(self, tmp_path) -> None:
        pd.DataFrame({"a": [5, 6, 7]}).to_csv(tmp_path / "t.csv")
        assert read_table(tmp_path / "t.csv").columns.tolist() == ["a"]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("t.csv", b"", "is empty"),
            ("t.csv", b" \n\n", "is empty"),
            ("t.csv", b"a,b\n", "no rows below"),
            ("t.csv", b"a,b", "no rows below"),
            ("t.csv", b"a,b\n\n", "no rows below"),
            ("t.csv", b"a,b\n1,2\n3\n", "1 cells in line 3, where the header has 2"),
            ("t.csv", b'a,b\n"x\ny",2\n3,4,5\n', "3 cells in line 4"),
            ("t.csv", b"a,b,a\n1,2,3\n", "more than one column 'a'"),
            ("t.csv", b"a,,b\n1,2,3\n", "no name for column 2"),
            ("t.csv", b'a,b\n1,"2\n', "from line 2 on .*not closed"),
            ("t.csv", b"\x89PNG\0\0\0", "not a file of text"),
            ("t.csv", b"a,b\n1,\xff\n", "not text in UTF-8, in line 2"),
            ("t.csv.gz", b"a,b\n1,2\n", "not a complete gzip file"),
            ("t.csv.gz", gzip.compress(b"a\n1\n" * 999, mtime=0)[:-20], "not a complete gzip file"),
            ("t.parquet", b"PAR1 no table PAR1", "damaged, or not of Parquet"),
            ("t.xlsx", b"PK", "is an Excel workbook"),
            ("table", b"a\n1\n", "of no known kind"),
        ],
    )
    def test_files_that_are_no_table(self, tmp_path, name, content, message) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message) as info:
            read_table(path)
        assert str(path) in str(info.value)
        assert "\n" not in str(info.value)

    def test_places_without_a_file(self, tmp_path) -> None:
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read_table(tmp_path / "t.csv")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            read_table(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            write_table(patients(3), tmp_path / "no" / "t.csv")
        with pytest.raises(ValueError, match="does not say what to write"):
            write_table(patients(3), tmp_path / "t.xlsx")

    @pytest.mark.parametrize(
        ("make", "size", "limit"),
        [
            (gzip_of_lines, 2**20, "5 MB"),
            (gzip_of_blanks, 2**20, "5 MB"),
            (gzip_of_blanks, 2**24, "5 MB"),
            (many_columns, 3000, "5 MB"),
        ],
        ids=["lines", "a long line", "blanks", "columns"],
    )
    def test_limits_of_text(self, tmp_path, make, size, limit) -> None:
        path = make(tmp_path / f"t.csv{'.gz' * (make is not many_columns)}", size)
        assert path.stat().st_size < 50_000
        with pytest.raises(ValueError, match=rf"^cannot read the table .* would need .*{limit}: "):
            read_table(path, max_memory=limit)

    def test_a_table_within_the_limit(self, tmp_path) -> None:
        (tmp_path / "t.csv").write_text("a\n" + "1\n" * 1000)
        assert len(read_table(tmp_path / "t.csv", max_memory=36_028)) == 1000
        with pytest.raises(ValueError, match=r"would need 36.03 kB, limit 36.03 kB"):
            read_table(tmp_path / "t.csv", max_memory=36_027)

    def test_a_row_that_is_longer_than_others(self, tmp_path) -> None:
        """Python divides it, if pyarrow does not, and takes more memory for it."""
        text = "a,b\n" + "1,2\n" * 10 + "1," * 10**5 + "\n"
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(ValueError, match="100001 cells in line 12, where the header has 2"):
            read_table(tmp_path / "t.csv")
        with pytest.raises(ValueError, match=r"would need 4.01 MB, limit 3.9 MB"):
            read_table(tmp_path / "t.csv", max_memory="3.9 MB")

    def test_empty_lines_before_the_names(self, tmp_path) -> None:
        (tmp_path / "t.csv").write_text("\n" * 30 + "a,b\n1,2\n")
        assert read_table(tmp_path / "t.csv").index.tolist() == [32]

    @pytest.mark.parametrize("separator", [",", ";"])
    def test_a_table_that_is_wider_than_long(self, tmp_path, separator) -> None:
        path = many_columns(tmp_path / "t.csv", 200, 3)
        path.write_text(path.read_text().replace(",", separator))
        frame = read_table(path)
        assert frame.shape == (3, 201)
        numbers = [line.split(separator)[:-1] for line in path.read_text().splitlines()[1:]]
        np.testing.assert_array_equal(frame.drop(columns="y"), np.array(numbers, int))

    @pytest.mark.parametrize(
        "values",
        [np.zeros(10**6), ["x" * 10_000] * 10_000, np.array([None, 1.0] * 10**6)],
        ids=["numbers", "texts", "missing"],
    )
    def test_limits_of_parquet(self, tmp_path, values) -> None:
        path = tmp_path / "bomb.parquet"
        pd.DataFrame({"a": values}).to_parquet(path)
        assert path.stat().st_size < 100_000
        with pytest.raises(ValueError, match=r"would need .*, limit 2 MB: pass max_memory="):
            read_table(path, max_memory="2 MB")

    def test_lines_of_old_systems_are_counted(self, tmp_path) -> None:
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(b"a\n1\n" + b"1\r" * 200_000))
        with pytest.raises(ValueError, match=r"would need .*, limit 4 MB: pass max_memory="):
            read_table(path, max_memory="4 MB")

    @pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"a", b"b"]])
    def test_nested_parquet(self, tmp_path, values) -> None:
        pd.DataFrame({"x": [1, 2], "c": values}).to_parquet(tmp_path / "t.parquet")
        with pytest.raises(ValueError, match=r"type .* in column 'c': write the file without it"):
            read_table(tmp_path / "t.parquet")

    def test_types_of_parquet(self, tmp_path) -> None:
        frame = pd.DataFrame(
            {
                "truth": [True, None, False],
                "day": [date(2024, 5, 31), None, date(2024, 6, 1)],
                "price": [Decimal("1.50"), None, Decimal("2.25")],
                "grade": pd.Categorical(["b", None, "a"], ["b", "a", "z"], ordered=True),
                "name": ["x", None, "y"],
                "time": [time(12, 30), None, time(13)],
                "count": [1, None, 2],
            }
        )
        frame.index = [7, 8, 9]
        frame.to_parquet(tmp_path / "t.parquet")
        read = read_table(tmp_path / "t.parquet")
        assert read.columns.tolist() == frame.columns.tolist()
        assert read.index.tolist() == [1, 2, 3]
        assert read["grade"].cat.categories.tolist() == ["b", "a", "z"]
        assert read["grade"].cat.ordered
        encoder = TableEncoder()
        expected = [[1, 19874, 1.5, 1, 0, 0, 1], [np.nan] * 7, [0, 19875, 2.25, 0, 1, 1, 2]]
        np.testing.assert_array_equal(encoder.fit_transform(read), expected)
        frame["time"] = read["time"].to_numpy()
        np.testing.assert_array_equal(encoder.transform(frame), expected)

    def test_columns_are_read_as_in_the_training(self, tmp_path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("code,dose,new\n01,1e5,007\n1e5,2,008\n")
        columns = [Column("code", "category", ("01", "1e5", "x")), Column("dose", "number")]
        frame = read_table(path, like=columns)
        assert frame["code"].tolist() == ["01", "1e5"]
        assert frame["dose"].tolist() == [100_000.0, 2.0]
        assert frame["new"].tolist() == ["007", "008"]
        assert read_table(path, text=["code"])["code"].tolist() == ["01", "1e5"]
        assert read_table(path)["new"].tolist() == [7, 8]

    def test_rows_longer_than_a_block(self, tmp_path) -> None:
        long = "x" * 5_000_000
        (tmp_path / "t.csv").write_text(f'a,b\n1,"{long}"\n2,y\n')
        assert read_table(tmp_path / "t.csv")["b"].tolist() == [long, "y"]

    @pytest.mark.parametrize(
        "cells", [["1.5", "-nan"], ["0x10", "0x11"], ["7", "0X1"], ["1_0", "2"], ["12:30", "13:00"]]
    )
    def test_texts_that_are_no_numbers(self, tmp_path, cells) -> None:
        for separator in ",;":
            rows = [f"{cell}{separator}1" for cell in cells]
            (tmp_path / "t.csv").write_text("\n".join([f"a{separator}b", *rows]))
            assert read_table(tmp_path / "t.csv")["a"].tolist() == cells

    @pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz"])
    def test_cells_are_no_formulae(self, tmp_path, name) -> None:
        cells = ["=A1", "+x", "-y", "@z", "\tt", "\rr", "-5", "+1e3", "a=b", None]
        frame = pd.DataFrame({"=name": cells, "n": [-1.5] * 10})
        write_table(frame, tmp_path / name)
        again = read_table(tmp_path / name, text=["'=name"])
        assert again.columns.tolist() == ["'=name", "n"]
        safe = ["'=A1", "'+x", "'-y", "'@z", "'\tt", "'\nr", "-5", "+1e3", "a=b"]
        assert again["'=name"].tolist()[:-1] == safe
        assert again["n"].tolist() == [-1.5] * 10
        assert frame["=name"].tolist()[:-1] == cells[:-1]
        grades = pd.DataFrame({"c": pd.Categorical(["-low", "high"])})
        assert to_csv(grades) == "c\n'-low\nhigh\n"

    @given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv.gz", ".parquet"]))
    def test_any_bytes(self, tmp_path_factory, content, suffix) -> None:
        path = tmp_path_factory.mktemp("fuzz") / f"t{suffix}"
        path.write_bytes(content)
        check_read_or_refused(path)

    @given(st.text(st.sampled_from('a1,;\t"\n\r .-?é'), max_size=60))
    def test_any_text(self, tmp_path_factory, text) -> None:
        path = tmp_path_factory.mktemp("fuzz") / "t.csv"
        path.write_text(text, newline="")
        check_read_or_refused(path)

    @given(
        st.lists(
            st.tuples(*[st.text(st.sampled_from('a1,;\t"\n .-?é'), max_size=5)] * 2), min_size=1
        ),
        st.sampled_from([",", ";", "\t"]),
        st.sampled_from(["\n", "\r\n"]),
    )
    def test_cells_are_those_of_the_csv_module(
        self, tmp_path_factory, rows, separator, end
    ) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=separator, lineterminator=end).writerows([("n", "m"), *rows])
        path = tmp_path_factory.mktemp("cells") / "t.csv"
        path.write_text(text.getvalue(), newline="")
        assume(guess_separator(text.getvalue()) == separator)
        frame = read_table(path, like=())
        reader = csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=separator)
        lines = [1, *(reader.line_num + 1 for _ in reader)]
        assert frame.index.tolist() == lines[1:-1]
        marks = ("", "?")
        cells = [[None if (s := cell.strip()) in marks else s for cell in row] for row in rows]
        assert frame.astype(object).where(frame.notna(), None).to_numpy().tolist() == cells

    def test_pandas_and_pyarrow_are_asked_for_by_name(self, tmp_path, monkeypatch) -> None:
        write_table(patients(3), tmp_path / "t.parquet")
        real = builtins.__import__

        def missing(name, *rest):
            if name.startswith("pyarrow"):
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", missing)
        with pytest.raises(ImportError, match=r'pip install "badacost\[tables\]"'):
            read_table(tmp_path / "t.parquet")

    def test_points_that_may_stand_between_thousands(self, tmp_path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("amount;rate\n17.711;1,5\n848;2,25\n")
        with pytest.raises(ValueError, match="'rate', but points in column 'amount', which may"):
            read_table(path)
        path.write_text("amount;rate\n17.711;1.5\n848;2.25\n")
        assert read_table(path)["amount"].tolist() == [17.711, 848]
        path.write_text("amount;rate\n17.7113;1,5\n848;2,25\n")
        assert read_table(path)["rate"].tolist() == [1.5, 2.25]
