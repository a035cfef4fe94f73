"""The column of the classes."""

from __future__ import annotations

import pandas as pd
import pytest

from badacost.tabular.target import classes_in_text, known_labels, target_labels


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
