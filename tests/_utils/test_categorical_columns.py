"""Categorical columns: which ones are chosen, which categories they have, and their codes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from badacost import BAdaCostClassifier
from badacost._utils.categorical_columns import (
    CategoricalColumns,
    _levels_of_numbers,
    categorical_positions,
    check_categorical_features,
    count_categories,
)

PANDAS = pd.DataFrame(
    {
        "size": [1.0, 2.0, np.nan, 4.0],
        "colour": pd.Categorical(["red", None, "blue", "red"], categories=["red", "green", "blue"]),
        "grade": pd.Categorical([3, 1, 3, None]),
    }
)
POLARS = pl.DataFrame(
    {
        "size": [1.0, 2.0, None, 4.0],
        "colour": pl.Series(["red", None, "blue", "red"], dtype=pl.Categorical),
        "grade": pl.Series(["3", "1", "3", None], dtype=pl.Enum(["3", "2", "1"])),
    }
)


def fitted(X: Any, chosen: Any = "from_dtype") -> CategoricalColumns:
    return CategoricalColumns.of_counts(count_categories(X, categorical_positions(X, chosen)))


# Which columns


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("chosen", "positions"),
    [
        ("from_dtype", [1, 2]),
        (None, []),
        ([], []),
        (["grade"], [2]),
        (("grade", "size", "size"), [0, 2]),
        (pd.Index(["colour"]), [1]),
        ([2, 0, 2], [0, 2]),
        (np.array([1]), [1]),
        ([False, True, False], [1]),
        (np.array([True, False, True]), [0, 2]),
    ],
)
def test_positions(frame, chosen, positions) -> None:
    check_categorical_features(chosen)
    assert categorical_positions(frame, chosen) == positions


def test_positions_in_what_has_no_dtypes() -> None:
    assert categorical_positions(np.eye(3), "from_dtype") == []
    assert categorical_positions(np.eye(3).tolist(), [True, False, True]) == [0, 2]
    assert categorical_positions(np.eye(3)[0], [0]) == []  # refused by others
    assert categorical_positions(sparse.csr_array(np.eye(3)), [0]) == []


@pytest.mark.parametrize(
    "chosen",
    ["colour", 1, 1.5, [1.5], [None], ["a", 1], [True, 1], {"a": 1}, b"ab", [[1]], object()],
)
def test_no_choice_of_columns(chosen) -> None:
    with pytest.raises(TypeError, match='categorical_features must be "from_dtype", None, or a'):
        check_categorical_features(chosen)


@pytest.mark.parametrize(
    ("X", "chosen", "message"),
    [
        (PANDAS, ["color"], "X has no column 'color', .* there are 'size', 'colour', 'grade'"),
        (np.eye(3), ["colour"], "X has no column .* give positions"),
        (
            PANDAS,
            [True, False],
            "categorical_features does not fit the 3 columns of X: give",
        ),
        (PANDAS, [0, 3], "does not fit the 3 columns of X: .* positions from 0 to 2"),
        (np.eye(3), [-1], "does not fit the 3 columns of X"),
    ],
)
def test_columns_that_are_not_there(X, chosen, message) -> None:
    with pytest.raises(ValueError, match=message):
        categorical_positions(X, chosen)


# Categories and codes


def test_categories_of_a_frame() -> None:
    columns = fitted(PANDAS)
    assert {j: known.tolist() for j, known in columns.categories.items()} == {
        1: ["blue", "red"],
        2: [1, 3],
    }
    encoded = columns.encode(PANDAS)
    assert encoded.columns.tolist() == PANDAS.columns.tolist()
    np.testing.assert_array_equal(encoded["size"], PANDAS["size"])
    np.testing.assert_array_equal(encoded["colour"], [1, np.nan, 0, 1])
    np.testing.assert_array_equal(encoded["grade"], [1, 0, 1, np.nan])
    assert str(PANDAS["colour"].dtype) == "category"  # the frame of the user is as it was


@pytest.mark.parametrize(
    ("known", "asked", "codes"),
    [
        ([0, 1, 2], ["0", "1", "2", " 2.0", "two", "nan", None], [0, 1, 2, 2, None, None, None]),
        ([0.5, 1.0], ["0.5", "1", "1.0"], [0, 1, 1]),
        (["0", "1", "2"], [0.0, np.int64(1), 2, 7, np.nan], [0, 1, 2, None, None]),
        (["0.5", "nan"], [0.5, np.nan], [0, None]),
        ([False, True], ["True", "False"], [1, 0]),
        (["False", "True"], [True, False], [1, 0]),
        ([1, "1"], ["1", 1], [1, 0]),
        (["01", "1"], [1, "01"], [1, 0]),
    ],
)
def test_a_number_and_its_text_are_the_same_category(known, asked, codes) -> None:
    columns = fitted(np.array(known, dtype=object)[:, np.newaxis], [0])
    encoded = columns.encode(np.array(asked, dtype=object)[:, np.newaxis])
    np.testing.assert_array_equal(encoded[:, 0].astype(float), np.array(codes, dtype=float))


@given(st.lists(st.integers() | st.floats(-1e300, 1e300), min_size=1, max_size=5))
def test_any_number_is_found_by_its_text(numbers) -> None:
    column = np.array(numbers, dtype=object)[:, np.newaxis]
    columns = fitted(column, [0])
    texts = np.array([repr(float(number)) for number in numbers], dtype=object)[:, np.newaxis]
    floats = fitted(column.astype(float), [0])
    np.testing.assert_array_equal(
        floats.encode(texts).astype(float), floats.encode(column.astype(float))
    )
    assert columns.encode(column).shape == column.shape


def test_a_column_without_any_known_category_warns() -> None:
    columns, table = fitted(PANDAS), pd.concat([PANDAS] * 3)
    with pytest.warns(UserWarning, match=r"No category in column 'colour' .* such as 'RED': .*"):
        columns.encode(table.assign(colour=["RED", None, "BLUE", "RED"] * 3))
    columns.encode(table.assign(colour=["RED", None, "blue", "RED"] * 3))
    columns.encode(table.assign(colour=[None] * 12))
    columns.encode(PANDAS.assign(colour=["RED"] * 4))  # of few rows nothing is concluded


def test_categories_of_a_polars_frame() -> None:
    columns = fitted(POLARS)
    encoded = columns.encode(POLARS)
    assert encoded.columns == POLARS.columns
    np.testing.assert_array_equal(encoded["colour"].to_numpy(), [1, np.nan, 0, 1])
    np.testing.assert_array_equal(encoded["grade"].to_numpy(), [1, 0, 1, np.nan])
    one = columns.encode(POLARS[:1])
    assert one.shape == (1, 3)
    assert one["colour"].to_list() == [1.0]


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["blue", "red", "mauve", None], categories=["red", "mauve", "blue"]),
        np.array(["blue", "red", "mauve", None], dtype=object),
        np.array(["blue", "red", "mauve", np.nan], dtype=object),
        pd.array(["blue", "red", "mauve", pd.NA], dtype="string"),
        pd.array(["blue", "red", "mauve", None], dtype="str"),
    ],
    ids=["category", "None", "NaN", "string", "str"],
)
def test_the_values_count_not_their_dtype(column) -> None:
    frame = pd.DataFrame({"size": 1.0, "colour": column, "grade": 3.0})
    encoded = fitted(PANDAS).encode(frame)
    np.testing.assert_array_equal(encoded["colour"], [0, 1, np.nan, np.nan])
    np.testing.assert_array_equal(encoded["grade"], [1, 1, 1, 1])


@pytest.mark.parametrize(
    "column",
    [
        [True, False, None],
        np.array([1.0, 0.0, np.nan]),
        pd.array([1, 0, None], dtype="Int8"),
        pd.array([True, False, None], dtype="boolean"),
    ],
)
def test_truths_and_numbers_are_the_same(column) -> None:
    columns = fitted(np.array([[0], [1]]), [0])
    encoded = columns.encode(pd.DataFrame({"a": column}))
    np.testing.assert_array_equal(encoded["a"], [1, 0, np.nan])


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, object])
def test_categories_of_an_array(dtype) -> None:
    X = np.array([[7, 1], [3, 2], [7, 3]], dtype=dtype)
    columns = fitted(X, [0])
    encoded = columns.encode(X)
    np.testing.assert_array_equal(encoded.astype(float), [[1, 1], [0, 2], [1, 3]])
    assert X[0, 0] == 7
    if np.dtype(dtype).kind == "f":
        assert encoded.dtype == dtype


def test_lists_and_fractions() -> None:
    columns = fitted([["b", 0.5], ["a", 2.25]], [0, 1])
    encoded = columns.encode([["a", 2.25], ["c", 0.5], [None, 7.0]])
    np.testing.assert_array_equal(encoded.astype(float), [[0, 1], [np.nan, 0], [np.nan, np.nan]])


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 1)), sparse.csr_array(np.eye(3)), "text"])
def test_what_does_not_have_the_columns_is_left_to_others(X) -> None:
    assert fitted(np.eye(3), [2]).encode(X) is X


def test_numbers_stay_as_they_are() -> None:
    X = np.eye(3)
    assert fitted(X).encode(X) is X
    frame = pd.DataFrame(X)
    assert fitted(frame).encode(frame) is frame


def test_a_column_without_any_category() -> None:
    columns = fitted(np.array([[np.nan], [np.nan]]), [0])
    assert len(columns.categories[0]) == 0
    assert np.isnan(columns.encode(np.array([[3.0]]))).all()


def test_rows_that_are_not_looked_at() -> None:
    columns = CategoricalColumns.of_counts(
        count_categories(PANDAS, [1], np.array([True, True, False, True]))
    )
    assert columns.categories[1].tolist() == ["red"]


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (pd.cut([1, 5, 9], 3), TypeError, "column 'a' must be text, .* Interval: convert the col"),
        (pd.Categorical(pd.to_datetime(["2020-01-01"] * 3)), TypeError, "of type Timestamp"),
        (pd.to_datetime(["2020-01-01"] * 3), TypeError, "of type datetime64"),
        ([(1, 2), (3,), ()], TypeError, "of type tuple"),
        ([1.0, np.inf, 2.0], ValueError, "X contains infinity"),
    ],
    ids=["intervals", "dates as categories", "dates", "tuples", "infinity"],
)
def test_values_that_make_no_category(column, error, message) -> None:
    with pytest.raises(error, match=message):
        fitted(pd.DataFrame({"a": column}), ["a"])


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_infinity=False),
    st.text(max_size=2),
)


@given(st.lists(CELLS, min_size=1, max_size=40), st.integers(1, 6), st.lists(CELLS, max_size=10))
def test_any_column(cells, max_categories, others) -> None:
    """Codes are places among the most frequent values; all else is missing."""
    known = Counter(cell for cell in cells if cell is not None and cell == cell)
    X = np.array([*cells, None], dtype=object)[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("badacost._utils.categorical_columns.MAX_CATEGORIES", max_categories)
        columns = fitted(X, [0])
    found = columns.categories[0].tolist()
    assert found == sorted(found, key=lambda cell: (isinstance(cell, str), cell))
    assert len(found) == min(len(known), max_categories)
    if found:
        assert min(known[cell] for cell in found) >= max(
            (count for cell, count in known.items() if cell not in found), default=0
        )
    new = np.array([*cells, *others, None], dtype=object)[:, None]
    codes = columns.encode(new)[:, 0].astype(float)
    for cell, code in zip(new[:, 0], codes, strict=True):
        assert found[int(code)] == cell if cell in found else np.isnan(code)


@given(st.permutations(list("abcd")), st.lists(st.sampled_from([*"abcd", None]), min_size=1))
def test_the_order_of_the_dtype_does_not_matter(order, cells) -> None:
    frames = [
        pd.DataFrame({"a": pd.Categorical(cells, categories=order)}),
        pl.DataFrame({"a": pl.Series(cells, dtype=pl.Enum(order))}),
        pl.DataFrame({"a": pl.Series(cells, dtype=pl.Categorical)}),
    ]
    expected = fitted(pd.DataFrame({"a": pd.Categorical(cells)}))
    for frame in frames:
        assert fitted(frame).categories[0].tolist() == expected.categories[0].tolist()
        np.testing.assert_array_equal(
            np.asarray(expected.encode(frame)), np.asarray(expected.encode(frames[0]))
        )


@given(st.lists(st.one_of(st.integers(0, 5).map(float), st.just(np.nan)), min_size=1))
def test_codes_are_counted_as_if_sorted(values) -> None:
    cells = np.array(values)
    levels, places = _levels_of_numbers(cells)
    assert levels == sorted(levels)
    assert {*map(type, levels)} <= {float}
    np.testing.assert_array_equal(np.array([*levels, np.nan])[places], cells)
    assert (places[np.isnan(cells)] == -1).all()


@pytest.mark.parametrize("other", [-1.0, 0.5, 2.0**16, np.inf, -np.inf])
def test_other_numbers_are_sorted(other) -> None:
    values = np.array([0.0, other, 0.0])
    levels, places = _levels_of_numbers(values)
    assert levels == sorted({0.0, other})
    np.testing.assert_array_equal(np.array(levels)[places], values)


def test_cells_that_are_no_categories() -> None:
    X = np.empty((4, 1), object)
    X[:, 0] = [{}, "a", "b", "a"]
    with pytest.raises(ValueError, match=r"column 0 of X .* no category .*'dict'"):
        BAdaCostClassifier(categorical_features=[0]).fit(X, [0, 1, 0, 1])


def test_codes_in_half_precision() -> None:
    levels, places = _levels_of_numbers(np.array([3, 1, np.nan, 3], np.float16))
    assert (levels, places.tolist()) == ([0.0, 1.0, 2.0, 3.0], [3, 1, -1, 3])


@pytest.mark.parametrize("values", [[1, 0, 2], [1.0, 0.0], [True, False]])
def test_categories_have_the_type_of_the_values(values) -> None:
    (known,) = fitted(np.array(values)[:, None], [0]).categories.values()
    assert known.tolist() == sorted(values)
    assert {*map(type, known.tolist())} == {type(values[0])}
