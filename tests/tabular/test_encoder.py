"""Columns as features: what they hold, and how values of other tables are read."""

from __future__ import annotations

import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from badacost.tabular import (
    TableEncoder,
    read_table,
)
from badacost.tabular.columns import Column
from tests.tabular.patients import patients


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

    @pytest.mark.parametrize("drop", [None, 3, "age", b"age", [["age"]], [0], np.array(3)], ids=str)
    def test_columns_to_leave_out_are_names(self, drop) -> None:
        message = f"drop must be a sequence of names, .* got {re.escape(repr(drop))}: give a list"
        with pytest.raises(TypeError, match=message):
            TableEncoder(drop=drop).fit(patients())

    @pytest.mark.parametrize("kind", [list, tuple, np.array, iter])
    def test_sequences_of_columns_to_leave_out(self, kind) -> None:
        encoder = TableEncoder(drop=kind(["age", "ward"])).fit(patients())
        assert {"age", "ward"}.isdisjoint(encoder.get_feature_names_out())

    def test_text_that_is_no_unicode(self) -> None:
        frame = pd.DataFrame({"c": pd.Series(["\ud800", "b"], dtype=object)})
        texts, numbers = (pd.DataFrame({"c": values}) for values in (["a", "b"], [1, 2]))
        message = r"column 'c' has the text '\\ud800', which is no Unicode: correct it"
        with pytest.raises(ValueError, match=message):
            TableEncoder().fit(frame)
        for known in (texts, numbers):
            with pytest.raises(ValueError, match=message):
                TableEncoder().fit(known).transform(frame)

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
