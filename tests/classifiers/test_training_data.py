"""Training and validation data that fit in memory; `tests/batches` has those that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from badacost import BAdaCostClassifier
from badacost.classifiers.training_data import LocalRows


def read(*data, estimator: BAdaCostClassifier | None = None) -> LocalRows:
    """Training rows of an estimator that is not fitted."""
    return LocalRows(estimator or BAdaCostClassifier(), *data, reset=True)


def test_training_data() -> None:
    X = [[0, np.nan], [1, 5], [2, 6], [3, 7]]
    estimator = BAdaCostClassifier()
    rows = read(X, list("baab"), [1, 0, 3, 4], estimator=estimator)
    np.testing.assert_array_equal(rows.kept, [True, False, True, True])
    assert rows.X.dtype == np.float64
    np.testing.assert_array_equal(rows.X, [[0, np.nan], [2, 6], [3, 7]])
    np.testing.assert_array_equal(rows.y, [1, 0, 1])
    np.testing.assert_array_equal(rows.weight, [1, 3, 4])
    np.testing.assert_array_equal(rows.classes, ["a", "b"])
    assert estimator.n_features_in_ == 2


def test_a_class_of_zero_weight_stays_a_class() -> None:
    rows = read(np.eye(3), [5, 6, 7], [1, 1, 0])
    np.testing.assert_array_equal(rows.classes, [5, 6, 7])
    np.testing.assert_array_equal(rows.y, [0, 1])


def test_single_precision_is_kept() -> None:
    assert read(np.eye(2, dtype=np.float32), [0, 1], None).X.dtype == np.float32


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match="y must have at least 2 classes; it has 1 class only: b"):
        read(np.eye(2), ["b", "b"], None)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["a", 1.0], ["b", 2.0]], [0, 1], "X contains text, such as 'a': make text categories"),
        (np.array([[1, "2"], [2, b"bee"]], object), [0, 1], "such as b'bee'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["1", "c"]}), [0, 1], "text, such as 'c'"),
        ([[1.0], [np.inf]], [0, 1], "X contains infinity: replace such values, by NaN if"),
        (np.array([[1.0], [-np.inf]], np.float32), [0, 1], "X contains infinity"),
        ([[1.0], [2.0]], [0, np.nan], "y contains NaN: leave out samples without a class"),
        ([[1.0], [2.0]], np.array(["a", np.nan], object), "y contains NaN"),
        ([[1.0], [2.0]], np.array([0, np.nan], np.float32), "y contains NaN"),
        ([[1.0], [2.0, 3.0]], [0, 1], "inhomogeneous shape"),
        ([[1], [2]], [0, 1, 2], "inconsistent numbers of samples"),
    ],
)  # fmt: skip
def test_common_mistakes_in_data(X, y, message) -> None:
    with pytest.raises(ValueError, match=message):
        read(X, y, None)


def test_numbers_as_text_are_numbers() -> None:
    np.testing.assert_array_equal(read([["1.5"], ["2"]], [0, 1], None).X, [[1.5], [2.0]])


def test_validation_data() -> None:
    estimator = BAdaCostClassifier()
    estimator.classes_ = read(np.eye(3), ["a", "b", "c"], None, estimator=estimator).classes

    def validation(*data) -> LocalRows:
        return LocalRows(estimator, *data, is_validation=True)

    rows = validation(np.eye(3), ["c", "a", "b"], [1, 2, 0])
    np.testing.assert_array_equal(rows.X, np.eye(3)[:2])
    np.testing.assert_array_equal(rows.y, [2, 0])
    np.testing.assert_array_equal(rows.weight, [1, 2])
    with pytest.raises(
        ValueError, match=r"y_val has labels that are not among the classes \('d'\)"
    ):
        validation(np.eye(3)[:2], ["c", "d"], None)
    with pytest.raises(ValueError, match="sample_weight_val must have shape"):
        validation(np.eye(3)[:2], ["c", "a"], [1.0])
    with pytest.raises(ValueError, match="X has 2 features, but BAdaCostClassifier is expecting 3"):
        validation(np.eye(2), ["c", "a"], None)
