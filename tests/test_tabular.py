"""Tables: reading files, encoding columns, and classifiers that take tables and are saved."""

from __future__ import annotations

import builtins
import csv
import gzip
import io
import sys
from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score

import badacost
from badacost import BAdaCostClassifier, ModelFileError, SAMMEClassifier
from badacost.csv_dialect import guess_separator
from badacost.model_file import read_model, write_model
from badacost.persistence import saved_kind
from badacost.tabular import (
    CostSummary,
    TableClassifier,
    TableEncoder,
    read_table,
    write_table,
)
from badacost.tabular.columns import Column
from badacost.tabular.files import to_csv
from badacost.tabular.target import classes_in_text, known_labels, target_labels
from tests.tabular.patients import COSTS, patients, small_model


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
        assert read_table(tmp_path / "t.csv")["b"].tolist() == ["x", np.nan]

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

    def test_limits_of_text(self, tmp_path) -> None:
        (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 10**5))
        with pytest.raises(ValueError, match=r"would take 1002 bytes or more.*raise max_bytes"):
            read_table(tmp_path / "bomb.csv.gz", max_bytes=1000)
        (tmp_path / "t.csv").write_text("a\n" + "1\n" * 1000)
        assert len(read_table(tmp_path / "t.csv", max_bytes=20_020)) == 1000
        with pytest.raises(ValueError, match="would take 20020 bytes or more in memory"):
            read_table(tmp_path / "t.csv", max_bytes=20_000)

    @pytest.mark.parametrize(
        "values",
        [np.zeros(10**6), ["x" * 10_000] * 10_000, pd.Categorical(["x" * 10_000] * 10_000)],
        ids=["numbers", "texts", "categories"],
    )
    def test_limits_of_parquet(self, tmp_path, values) -> None:
        path = tmp_path / "bomb.parquet"
        pd.DataFrame({"a": values}).to_parquet(path)
        assert path.stat().st_size < 100_000
        with pytest.raises(ValueError, match=r"would take .* bytes or more in memory"):
            read_table(path, max_bytes=2**21)

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


class TestEncoder:
    def test_kinds_of_columns(self) -> None:
        encoder = TableEncoder().fit(patients().drop(columns="risk"))
        kinds = {column.name: column.kind for column in encoder.columns_}
        assert kinds == {
            "age": "number",
            "ward": "category",
            "smokes": "boolean",
            "seen": "date",
            "street": "category",
        }
        assert encoder.notes_ == ["column 'site' is the same in every row: left out."]
        assert encoder.get_feature_names_out().tolist() == [*kinds]
        assert encoder.categorical_.tolist() == [False, True, False, False, True]

    def test_values(self) -> None:
        frame = pd.DataFrame(
            {
                "n": [1, None, 3],
                "when": [date(1970, 1, 2), None, date(1969, 12, 31)],
                "pair": ["b", "a", None],
                "flag": [True, None, False],
            }
        )
        encoded = TableEncoder().fit_transform(frame)
        expected = [[1, 1, 1, 1], [np.nan, np.nan, 0, np.nan], [3, -1, np.nan, 0]]
        np.testing.assert_array_equal(encoded, expected)

    def test_of_many_categories_the_most_frequent_are_known(self) -> None:
        names = [f"name {k:03}" for k in range(300)]
        frame = pd.DataFrame({"c": [*names, *names[40:], *names[40:]]})
        encoder = TableEncoder()
        encoded = encoder.fit_transform(frame)[:, 0]
        assert encoder.columns_[0].levels == tuple(names[40:295])
        assert np.isnan(encoded).sum() == 40 + 3 * 5
        (note,) = encoder.notes_
        assert "more than 255 categories" in note
        assert "in 55 of 820 rows" in note

    def test_text_of_other_types_at_prediction(self) -> None:
        train = pd.DataFrame({"zone": ["1", "2", "x"], "n": [1, 2, 4], "b": [True, False, True]})
        later = pd.DataFrame({"b": ["false", "TRUE"], "n": ["7", " 8.5"], "zone": [2.0, 1.0]})
        encoded = TableEncoder().fit(train).transform(later)
        np.testing.assert_array_equal(encoded, [[1, 7, 0], [0, 8.5, 1]])

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([f"id {k}" for k in range(30)], "looks like an identifier.*--drop 'c'"),
            ([*map(str, range(60)), *"abcdef"], "has numbers, but also 'a' in row 61 and 5 like"),
            ([*map(str, range(30)), *(f"x{k}" for k in range(9))], "also 'x0' in row 31 and 8"),
            (["1,100.50", "900", "2,000"], r"numbers as '1,100.50' in row 1, not as 1234.5: rew"),
            (["5,5", "6", "7.5"], r"numbers as '5,5' in row 1, not as 1.5: rewrite"),
            (["31.05.2024", "1.6.2024"], "dates as '31.05.2024' in row 1, not as 2024-05-31"),
            (["2024-05-31"] * 20 + ["5/31/2024"], "dates as '5/31/2024' in row 21"),
            ([[1], [2]], "values of type list"),
            ([1 + 2j, 3.0], "values of type complex"),
            ([1.0, np.inf], "finite numbers; got inf in row 2: correct it"),
            (["1", "inf"], "finite numbers; got 'inf' in row 2"),
        ],
    )
    def test_columns_that_are_refused(self, values, message) -> None:
        frame = pd.DataFrame({"c": pd.Series(values)})
        with pytest.raises(ValueError, match=message):
            TableEncoder().fit_transform(frame)

    @pytest.mark.parametrize(
        ("kind", "values", "message"),
        [
            ("number", [1, "two"], "must have numbers; got 'two' in row 2"),
            ("number", [pd.Timestamp("2024-01-01")], "must have numbers"),
            ("boolean", [True, "maybe"], "must have True or False; got 'maybe' in row 2"),
            ("date", ["2024-05-31", "soon"], "must have dates.*got 'soon' in row 2"),
            ("date", [None, 5], "must have dates.*row 2"),
        ],
    )
    def test_values_of_another_kind(self, kind, values, message) -> None:
        with pytest.raises(ValueError, match=message):
            Column("c", kind).encode(pd.Series(values, dtype=object))

    @pytest.mark.parametrize("nothing", [np.nan, None, pd.NaT, "", " "])
    def test_empty_columns_at_prediction(self, nothing) -> None:
        later = patients(3).assign(**dict.fromkeys(patients().columns, nothing))
        encoded = TableEncoder().fit(patients()).transform(later)
        assert np.isnan(encoded).all()

    @pytest.mark.parametrize(
        ("train", "later", "expected"),
        [
            (["2024-01-01", "2024-01-02"] * 10 + ["open"], ["2024-01-02", "open"], [19724, np.nan]),
            (["01", "02"] * 10 + ["XX"], ["02", "XX"], [2, np.nan]),
            (["01", "02"] * 10 + ["XX"], [2, None], [2, np.nan]),
            (["1", "2.5"] * 10, ["7", "8"], [7, 8]),
            (["true", "False"] * 10, ["TRUE", "false"], [1, 0]),
            (["true", "false", "unknown"], ["false", "true"], [0, 1]),
            (["true", "false", "unknown"], [False, True], [0, 1]),
            (["01", "02", "XX"], ["02", "01"], [1, 0]),
            (["01", "02", "XX"], [2, 1], [1, 0]),
            (["01", "02", "XX"], [2.0, 1.0], [1, 0]),
            (["1", "1.0", "x"], ["1.0", "x"], [1, 2]),
            (
                ["2024-01-01", "2024-01-02", "open"],
                pd.to_datetime(["2024-01-02", "2024-01-01"]),
                [1, 0],
            ),
            (pd.Categorical(["1", "2"] * 10), [2, 1], [1, 0]),
        ],
    )
    def test_the_kind_of_a_column_is_that_of_the_fit(self, train, later, expected) -> None:
        encoder = TableEncoder().fit(pd.DataFrame({"c": train}))
        encoded = encoder.transform(pd.DataFrame({"c": later}))
        np.testing.assert_array_equal(encoded, np.reshape(expected, encoded.shape))

    @given(
        st.sampled_from([",", ";"]),
        st.lists(
            st.sampled_from(
                ["01", "1", "1.0", "2", "XX", "true", "False", "2024-01-01", "2024-01-02 12:30",
                 "open", "NA", "", " 3 ", "1e3", "-5", "+7", "1,5", ",25", "nan", "-nan", '"a ""b"']
            ),
            min_size=2, max_size=40,
        ),
        st.sampled_from([0, 20]),
        st.data(),
    )  # fmt: skip
    def test_a_row_is_encoded_the_same_in_whatever_file_it_stands(
        self, tmp_path_factory, separator, cells, n_numbers, data
    ) -> None:
        """What a column is, and the features of a row, do not depend on the other rows."""
        path = tmp_path_factory.mktemp("rows") / "t.csv"
        cells += [f"{number}.5" for number in range(n_numbers)]  # so that others may be odd texts
        if separator == ",":
            cells = [cell.replace(",", "") for cell in cells]
        lines = [f"{cell}{separator}{number % 3}\n" for number, cell in enumerate(cells)]
        head = f"c{separator}x\n"
        path.write_text("".join([head, *lines]))
        encoder = TableEncoder()
        try:
            whole = encoder.fit_transform(read_table(path))
        except ValueError:  # some texts are no numbers, and too many to be marks of missing ones
            assume(False)
        rows = data.draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, unique=True))
        path.write_text("".join([head, *(lines[row] for row in rows)]))
        some = read_table(path, like=encoder.columns_)
        np.testing.assert_array_equal(encoder.transform(some), whole[rows])

    def test_a_few_texts_among_numbers_are_noted(self) -> None:
        nine_of_ten = pd.DataFrame({"c": [*"123456789", "x"]})
        assert TableEncoder().fit(nine_of_ten).columns_ == (Column("c", "number", (), ("x",)),)
        cells = [*map(str, range(0, 60, 2)), "unknown", "unknown", None]
        encoder = TableEncoder().fit(pd.DataFrame({"age": cells}))
        (note,) = encoder.notes_
        assert "'age' has numbers, but 'unknown' in row 31" in note
        assert "in 2 of 32 cells" in note
        with pytest.raises(ValueError, match="must have numbers; got 'oops' in row 2"):
            encoder.transform(pd.DataFrame({"age": ["unknown", "oops"]}))

    def test_categories_that_are_mostly_unknown_are_warned_of(self) -> None:
        encoder = TableEncoder().fit(pd.DataFrame({"zip": ["a", "b", "c"]}))
        encoder.transform(pd.DataFrame({"zip": ["a", "x", None]}))
        with pytest.warns(UserWarning, match="'zip': 2 of 3 values are unknown to the model"):
            encoder.transform(pd.DataFrame({"zip": ["a", "x", "y", None]}))

    def test_all_columns_that_are_refused_are_named_at_once(self) -> None:
        frame = pd.DataFrame({"x": range(30), "id": [f"id {k}" for k in range(30)]})
        frame["day"] = "31.05.2024"
        frame.loc[3, "day"] = "30.05.2024"
        with pytest.raises(ValueError, match=r"^2 columns cannot") as info:
            TableEncoder().fit(frame)
        assert "'id' looks like an identifier" in str(info.value)
        assert "--drop 'id' --drop 'day'" in str(info.value)
        encoder = TableEncoder(drop=["id", "day"]).fit(frame.assign(y=frame["x"] % 3))
        with pytest.raises(ValueError, match=r"^2 columns cannot"):
            encoder.transform(pd.DataFrame({"x": ["one"], "y": ["two"]}))

    def test_columns_by_name(self) -> None:
        encoder = TableEncoder(drop=["street"]).fit(patients())
        shuffled = patients()[["risk", "seen", "smokes", "ward", "age"]]
        np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(patients()))
        with pytest.raises(ValueError, match="no column 'ward': did you mean 'Ward'"):
            encoder.transform(patients().rename(columns={"ward": "Ward"}))
        with pytest.raises(ValueError, match="no column 'streat': did you mean 'street'"):
            TableEncoder(drop=["streat"]).fit(patients())
        with pytest.raises(TypeError, match="must be a data frame"):
            encoder.transform(np.zeros((3, 4)))

    def test_a_frame_of_polars(self) -> None:
        polars = pytest.importorskip("polars")
        frame = patients()[["age", "ward"]]
        encoder = TableEncoder().fit(frame)
        other = polars.DataFrame({"ward": frame["ward"].tolist(), "age": frame["age"].tolist()})
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(frame))

    def test_a_column_that_counts_rows_is_noted(self) -> None:
        encoder = TableEncoder().fit(pd.DataFrame({"id": range(7, 12), "x": [1, 3, 2, 5, 4]}))
        assert "'id' only counts the rows" in encoder.notes_[0]
        accounts = pd.DataFrame({"account": np.arange(30)[::-1] * 3, "x": np.arange(30) % 7})
        (note,) = TableEncoder().fit(accounts).notes_
        assert "'account' has another whole number in every row" in note
        assert "--drop 'account'" in note
        assert not TableEncoder().fit(accounts[:15]).notes_

    @given(
        st.lists(
            st.one_of(
                st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
                st.dates(), st.datetimes(),
            ),
            min_size=1, max_size=30,
        )
    )  # fmt: skip
    @example([None, ""])
    def test_any_values(self, values) -> None:
        frame = pd.DataFrame({"c": pd.Series(values, dtype=object), "x": np.arange(len(values))})
        try:
            encoded = TableEncoder().fit(frame).transform(frame)
        except ValueError as error:
            message = str(error)
        else:
            assert encoded.dtype == np.float64
            assert not np.isinf(encoded).any()
            return
        assert "column" in message


class TestTarget:
    @pytest.mark.parametrize(
        ("values", "order", "classes"),
        [
            (["mid", "low", "high"], ["low", "mid", "high"], ["low", "mid", "high"]),
            (["mid", "low", "new"], ["mid", "high", "low"], ["mid", "low", "new"]),
            ([3, 1, 2], ["2", "3", "1"], [2, 3, 1]),
            ([3, 1, 2], [3, 2, 1], [3, 2, 1]),
            ([True, False], [True, False], [True, False]),
            (pd.Categorical(["a", "b"], ["b", "a"], ordered=True), None, ["b", "a"]),
            (pd.Categorical(["a", "b"], ["b", "a"], ordered=True), ["a", "b"], ["a", "b"]),
        ],
    )
    def test_order_of_classes(self, values, order, classes) -> None:
        labels = target_labels(pd.Series(values), "y", order)
        assert labels.categories.tolist() == classes
        assert labels.tolist() == [*values]

    @pytest.mark.parametrize(
        ("values", "labels"),
        [
            ([1.0, 2.0, 1.0], [1, 2, 1]),
            ([True, False], [True, False]),
            (pd.Categorical(["b", "a"]), ["b", "a"]),
            (["x", 3], ["x", "3"]),
        ],
    )
    def test_labels(self, values, labels) -> None:
        assert target_labels(pd.Series(values), "y").tolist() == labels

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([1.5, 2.0], "numbers with fractions"),
            ([1e300, 2.0], "too large"),
            (["a", None, "b"], "no class in 1 of 3 rows"),
            (["a", "a"], "one class only"),
            (list(range(100)), "too many for classes"),
            (pd.to_datetime(["2024-01-01", "2024-01-02"]), "no classes"),
        ],
    )
    def test_columns_that_are_no_classes(self, values, message) -> None:
        with pytest.raises(ValueError, match=message):
            target_labels(pd.Series(values), "y")

    def test_labels_of_another_type(self) -> None:
        assert known_labels(pd.Series([2, 1]), ["1", "2", "x"], "y").tolist() == ["2", "1"]
        assert known_labels(pd.Series(["True"]), [False, True], "y").tolist() == [True]
        with pytest.raises(ValueError, match=r"'hihg' in row 2.*did you mean 'high'"):
            known_labels(pd.Series(["low", "hihg"]), ["high", "low"], "y")
        assert known_labels(pd.Series([1, 2]), ["01", "02"], "y").tolist() == ["01", "02"]
        assert known_labels(pd.Series(["02", "1.0"]), [1, 2], "y").tolist() == [2, 1]
        with pytest.raises(ValueError, match="no class in row 1"):
            known_labels(pd.Series([None, "low"]), ["high", "low"], "y")

    @pytest.mark.parametrize(
        ("texts", "classes"),
        [
            (["1", "2", None], [1, 2]),
            (["1.0", "2.0", None], [1, 2]),
            (["01", "2", None], ["01", "2"]),
            (["true", "False", None], [True, False]),
            (["1", "x", None], ["1", "x"]),
            (["1.5", "2", None], [1.5, 2]),
            ([3, 4, None], [3, 4]),
        ],
    )
    def test_classes_of_a_file(self, texts, classes) -> None:
        found = classes_in_text(pd.Series(texts, dtype=object))
        assert found.dropna().tolist() == classes
        assert found.isna().tolist() == [False, False, True]


class TestClassifier:
    def test_it_learns_under_the_costs(self) -> None:
        train, test = patients(400), patients(200, seed=1)
        model = small_model().fit(train, "risk")
        blind = TableClassifier(SAMMEClassifier(n_estimators=8, max_depth=2)).fit(train, "risk")
        costs = [
            badacost.metrics.average_cost(test["risk"], one.predict(test), COSTS)
            for one in (model, blind)
        ]
        assert costs[0] < costs[1]
        classes = ["low", "mid", "high"]  # in the order of the costs
        assert model.classes_.tolist() == classes
        expected = [[COSTS[i].get(j, 0) for j in classes] for i in classes]
        np.testing.assert_array_equal(model.cost_matrix_, expected)
        np.testing.assert_array_equal(model.estimator_.cost_matrix_, expected)

    def test_minimum_expected_cost_over_a_cost_blind_booster(self) -> None:
        booster = SAMMEClassifier(n_estimators=8, max_depth=2)
        model = TableClassifier(booster, cost_matrix=COSTS, decision="bayes")
        model.fit(patients(), "risk")
        cheapest = model.classes_[model.predict_costs(patients()).argmin(axis=1)]
        assert (model.predict(patients()) == cheapest).all()
        assert (model.predict(patients()) != model.estimator_.predict(
            model.encoder_.transform(patients()))).any()  # fmt: skip
        *_, last = model.staged_predict(patients())
        assert (last == cheapest).all()

    def test_the_price_of_being_right_is_kept_for_the_bill(self) -> None:
        costs = {truth: {**row, truth: 0.5} for truth, row in COSTS.items()}
        model = TableClassifier(BAdaCostClassifier(n_estimators=2), cost_matrix=costs)
        model.fit(patients(), "risk")
        assert (np.diag(model.charged_costs_) == 0.5).all()
        assert (np.diag(model.cost_matrix_) == 0.0).all()

    def test_importances_are_of_columns(self) -> None:
        model = small_model().fit(patients(), "risk")
        assert model.feature_importances_.shape == model.feature_names_in_.shape
        assert model.feature_importances_.sum() == pytest.approx(1.0)

    def test_probabilities_where_there_are_some(self) -> None:
        model = small_model().fit(patients(), "risk")
        np.testing.assert_allclose(model.predict_proba(patients()).sum(axis=1), 1.0)
        assert model.predict_costs(patients()).shape == (120, 3)
        without = TableClassifier(badacost.AdaC2M1Classifier(n_estimators=2))
        assert not hasattr(without.fit(patients(), "risk"), "predict_proba")
        with pytest.raises(ValueError, match="needs probabilities"):
            without.set_params(decision="bayes").fit(patients(), "risk")

    def test_predictions_do_not_depend_on_other_rows_of_a_file(self, tmp_path) -> None:
        frame = patients().assign(code=lambda rows: np.resize(["01", "1e2", "X1"], len(rows)))
        write_table(frame, tmp_path / "all.csv")
        model = small_model().fit(read_table(tmp_path / "all.csv"), "risk")
        model.save(tmp_path / "m.badacost")
        model = badacost.load(tmp_path / "m.badacost")
        whole = model.predict_proba(read_table(tmp_path / "all.csv", like=model))
        for rows in ([4], [0, 3, 6], [1, 7, 10]):
            write_table(frame.iloc[rows], tmp_path / "some.csv")
            some = read_table(tmp_path / "some.csv", like=model)
            np.testing.assert_array_equal(model.predict_proba(some), whole[rows])

    def test_categories_that_only_other_rows_have_are_missing_values(self) -> None:
        """Encoded once, a table can be divided: a booster knows the categories of its own rows."""
        rng = np.random.default_rng(0)
        wards = rng.choice(["a", "b", "c", "d"], 400, p=[0.4, 0.3, 0.2, 0.1])
        frame = pd.DataFrame({"x": rng.normal(size=400), "ward": wards})
        y = (frame["x"] > 0) ^ (wards == "b")
        encoder = TableEncoder()
        features, train = encoder.fit_transform(frame), wards != "d"
        model = small_model(cost_matrix=None)._fit_features(
            encoder, features[train], y[train].to_numpy(), None, None
        )
        assert model.estimator_.categories_[1].tolist() == [0.0, 1.0, 2.0]
        missing = features.copy()
        missing[~train, 1] = np.nan
        answers = [model.estimator_.predict_proba(rows) for rows in (features, missing)]
        np.testing.assert_array_equal(*answers)

    @pytest.mark.parametrize(
        "estimator",
        [
            badacost.MinimumCostClassifier(SAMMEClassifier(n_estimators=5)),
            HistGradientBoostingClassifier(max_iter=5),
            CalibratedClassifierCV(SAMMEClassifier(n_estimators=5), cv=2),
        ],
    )
    def test_categories_are_handed_on(self, estimator) -> None:
        model = TableClassifier(estimator).fit(patients(), "risk")
        params = model.estimator_.get_params()
        masks = [params[name] for name in params if name.endswith("categorical_features")]
        assert masks == [[False, True, False, False, True]]
        assert model.predict(patients(10)).shape == (10,)
        again = clone(model).fit(patients()[["age", "seen", "risk"]], "risk")
        assert again.predict(patients(10)).shape == (10,)

    def test_scikit_learn_can_use_it(self) -> None:
        frame = patients()
        scores = cross_val_score(small_model(), frame.drop(columns="risk"), frame["risk"], cv=3)
        assert scores.mean() > 0.4
        assert clone(small_model(drop=["age"])).drop == ["age"]

    def test_of_a_fitted_classifier(self) -> None:
        frame = patients()[["age", "smokes"]].astype(float)
        booster = BAdaCostClassifier(COSTS, n_estimators=3).fit(frame, patients()["risk"])
        model = TableClassifier.of_fitted(booster)
        assert (model.predict(frame) == booster.predict(frame)).all()
        assert TableClassifier.of_fitted(model) is model
        assert booster.feature_names_in_.tolist() == ["age", "smokes"]
        nameless = SAMMEClassifier(n_estimators=1).fit(frame.to_numpy(), patients()["risk"])
        with pytest.raises(ValueError, match="does not know the names"):
            TableClassifier.of_fitted(nameless)

    def test_arrays_of_costs_follow_the_alphabet_with_a_warning(self) -> None:
        frame, costs = patients(), [[0, 9, 3], [2, 0, 1], [1, 4, 0]]  # of high, low, mid
        for booster in (SAMMEClassifier(n_estimators=2), BAdaCostClassifier(n_estimators=2)):
            model = TableClassifier(booster, cost_matrix=costs, decision="bayes")
            with pytest.warns(UserWarning, match="alphabetical order of the classes") as caught:
                model.fit(frame, "risk")
            assert len(caught) == 1
        frame["risk"] = pd.Categorical(frame["risk"], ["high", "low", "mid"], ordered=True)
        model.fit(frame, "risk")


class TestSavedModels:
    @pytest.fixture
    def model(self) -> TableClassifier:
        model = small_model().fit(patients(), "risk")
        truth = patients()["risk"]
        model.held_out_ = CostSummary.of(
            truth, model.predict(patients()), COSTS, classes=model.classes_,
            rivals={"perfect": truth}, how="by hand",
        )  # fmt: skip
        return model

    def test_round_trip(self, tmp_path, model) -> None:
        model.save(tmp_path / "m.badacost")
        again = badacost.load(tmp_path / "m.badacost")
        assert saved_kind(tmp_path / "m.badacost") == "TableClassifier"
        for method in ("predict", "predict_proba", "predict_costs", "decide"):
            new = patients(50, seed=3)
            np.testing.assert_array_equal(getattr(model, method)(new), getattr(again, method)(new))
        assert (again.target_name_, again.n_rows_) == ("risk", 120)
        assert again.held_out_ == model.held_out_
        assert again.encoder_.columns_ == model.encoder_.columns_
        np.testing.assert_array_equal(again.charged_costs_, model.charged_costs_)
        again.save(tmp_path / "again.badacost")
        one, two = ((tmp_path / name).read_bytes() for name in ("m.badacost", "again.badacost"))
        assert one == two

    def test_texts_that_stand_for_no_value_are_saved(self, tmp_path) -> None:
        frame = patients()
        frame["age"] = frame["age"].astype(object)
        frame.loc[7, "age"] = "unknown"
        small_model().fit(frame, "risk").save(tmp_path / "m.badacost")
        again = badacost.load(tmp_path / "m.badacost")
        assert again.predict(frame).shape == (120,)
        assert again.encoder_.columns_[0].missing == ("unknown",)

    def test_loading_needs_no_pandas(self, tmp_path, model, monkeypatch) -> None:
        model.save(tmp_path / "m.badacost")
        monkeypatch.setitem(sys.modules, "pandas", None)
        again = badacost.load(tmp_path / "m.badacost")
        with pytest.raises(ImportError, match=r"badacost\[tables\]"):
            again.predict(None)

    def test_a_classifier_of_others_is_not_saved(self, tmp_path) -> None:
        from sklearn.naive_bayes import GaussianNB

        frame = patients().fillna({"age": 50})[["age", "risk"]]
        model = TableClassifier(GaussianNB()).fit(frame, "risk")
        with pytest.raises(TypeError, match="cannot hold a GaussianNB"):
            model.save(tmp_path / "m.badacost")

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("columns",), []),
            (("columns",), {"age": 1}),
            (("columns", 0, "kind"), "eval"),
            (("columns", 0, "kind"), ["number"]),
            (("columns", 0, "name"), 3),
            (("columns", 0, "name"), "ward"),
            (("columns", 0, "levels"), ["a"]),
            (("columns", 1, "levels"), []),
            (("columns", 1, "levels"), [f"{k}" for k in range(256)]),
            (("columns", 1, "levels"), ["a", "a", "b"]),
            (("columns", 1, "levels"), "abc"),
            (("columns", 0, "missing"), "x"),
            (("columns", 0, "missing"), [1]),
            (("target",), 5),
            (("n_rows",), -1),
            (("n_rows",), "many"),
            (("decision",), "margin"),
            (("held_out",), {}),
            (("held_out", "average_cost"), "0"),
            (("held_out", "average_cost"), -1.0),
            (("held_out", "savings"), 2.0),
            (("held_out", "n_rows"), 0),
            (("held_out", "rivals"), {"a": None}),
            (("held_out", "rival_errors"), {"a": 1.0}),
            (("held_out", "standard_error"), -1.0),
            (("held_out", "how"), 5),
            (("held_out", "constant_answer"), None),
            (("estimator",), None),
            (("estimator", "kind"), "Detector"),
            (("estimator", "kind"), "TableClassifier"),
            (("estimator", "kind"), "os.system"),
            (("estimator", "kind"), {}),
            (("estimator", "header"), []),
            (("estimator", "header", "classes"), None),
        ],
    )
    def test_edited_headers_are_refused(self, tmp_path, model, path, value) -> None:
        model.save(tmp_path / "m.badacost")
        contents = read_model(tmp_path / "m.badacost")
        part = contents.header
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        write_model(tmp_path / "m.badacost", contents.kind, contents.header, contents.arrays)
        with pytest.raises(ModelFileError, match="damaged or was altered"):
            badacost.load(tmp_path / "m.badacost")

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("charged_costs", None),
            ("charged_costs", np.ones((3, 3), np.int32)),
            ("charged_costs", np.ones((2, 2))),
            ("charged_costs", np.array([[0.0, 1, 1], [1, 0, np.nan], [1, 1, 0]])),
            ("estimator_forest_feature", None),
        ],
    )
    def test_edited_arrays_are_refused(self, tmp_path, model, name, array) -> None:
        model.save(tmp_path / "m.badacost")
        contents = read_model(tmp_path / "m.badacost")
        contents.arrays[name] = array
        kept = {key: value for key, value in contents.arrays.items() if value is not None}
        write_model(tmp_path / "m.badacost", contents.kind, contents.header, kept)
        with pytest.raises(ModelFileError, match="damaged or was altered"):
            badacost.load(tmp_path / "m.badacost")
