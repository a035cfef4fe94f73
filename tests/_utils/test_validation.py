"""Checks of parameters and data: what passes, and what the errors say."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.validation import validate_data

from badacost import BAdaCostClassifier
from badacost._utils import validation
from badacost._utils.validation import (
    category_order,
    check_choice,
    check_flag,
    check_number,
    check_sample_weight,
    check_samples,
    check_tree_parameters,
    distinct_classes,
    number_of_features,
    positions_in,
)
from badacost.metrics import average_cost


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (3, {"kind": Integral, "low": 1}),
        (np.int8(3), {"kind": Integral, "low": 3, "high": 3}),
        (0.5, {"low": 0.0, "high": 0.5}),
        (np.float32(0.5), {}),
        (1, {"low": 0.0, "open_low": True}),
        (None, {"none": True}),
        (10**400, {"kind": Integral}),
    ],
)
def test_numbers_that_pass(value, options) -> None:
    check_number("p", value, **options)


@pytest.mark.parametrize(
    ("value", "options", "error", "message"),
    [
        (0, {"kind": Integral, "low": 1}, ValueError, r"p must be an integer at least 1; got 0\."),
        (1.0, {"kind": Integral}, TypeError, r"p must be an integer; got 1\.0 of type float\."),
        (True, {"kind": Integral}, TypeError, "got True of type bool"),
        (np.True_, {}, TypeError, "p must be a number; got"),
        ("1", {}, TypeError, "got '1' of type str"),
        (None, {}, TypeError, "got None of type NoneType"),
        ([1], {"none": True}, TypeError, r"p must be a number or None; got \[1\] of type list"),
        (0.0, {"low": 0.0, "open_low": True}, ValueError, "a number greater than 0; got 0.0"),
        (2, {"low": 0, "high": 1}, ValueError, "a number at least 0 and at most 1; got 2"),
        (np.nan, {"low": 0.0}, ValueError, "got nan"),
        (np.nan, {}, ValueError, "got nan"),
        (np.inf, {"low": 0.0}, ValueError, "p must be finite; got inf"),
        (-np.inf, {}, ValueError, "p must be finite; got -inf"),
        (1j, {"kind": Real}, TypeError, "of type complex"),
    ],
)
def test_numbers_that_do_not(value, options, error, message) -> None:
    with pytest.raises(error, match=message):
        check_number("p", value, **options)


def test_choices() -> None:
    check_choice("p", "a", ("a", "b"))
    for wrong in ("c", None, 1, ["a"]):
        with pytest.raises(ValueError, match="p must be one of 'a', 'b'; got "):
            check_choice("p", wrong, ("a", "b"))


def test_flags() -> None:
    for right in (True, False, np.True_):
        check_flag("p", right)
    for wrong in (1, 0, None, "yes"):
        with pytest.raises(TypeError, match="p must be True or False; got "):
            check_flag("p", wrong)


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (None, None),
        ("sqrt", 4),
        ("log2", 4),
        (1, 1),
        (5, 5),
        (20, None),
        (100, None),
        (1.0, None),
        (0.5, 10),
        (0.01, 1),
        (np.int64(3), 3),
        (np.float32(0.25), 5),
    ],
)
def test_number_of_features(given, number) -> None:
    assert number_of_features(given, 20) == number
    for n_features in (1, 2, 3):
        found = number_of_features(given, n_features)
        assert found is None or 1 <= found <= n_features


@pytest.mark.parametrize("wrong", [0, -1, 0.0, 1.5, -0.5, np.nan, "all", "half", True, [3]])
def test_number_of_features_refused(wrong) -> None:
    with pytest.raises((TypeError, ValueError), match="max_features must be"):
        number_of_features(wrong, 20)


def test_sample_weight_that_pass() -> None:
    np.testing.assert_array_equal(check_sample_weight(None, 3), np.ones(3))
    weight = check_sample_weight([0, 1, 2], 3)
    assert weight.dtype == np.float64
    np.testing.assert_array_equal(weight, [0, 1, 2])
    check_sample_weight([1e-320, 1e300, 0.0], 3)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], r"sample_weight must have shape \(3,\); got shape \(2,\)"),
        ([[1], [2], [3]], r"sample_weight must have shape \(3,\); got shape \(3, 1\)"),
        (1.0, r"sample_weight must have shape \(3,\); got shape \(\)"),
        ([1, -2, -3], "sample_weight must not be negative; sample 1 has -2"),
        ([0, 0, 0], "sample_weight is zero for every sample"),
        ([1, np.nan, 1], "sample_weight contains NaN"),
        ([1, np.inf, 1], "sample_weight contains infinity"),
        ([1e308, 1e308, 1e308], "the sum of sample_weight overflows"),
        (["a", "b", "c"], "could not convert string to float"),
    ],
)
def test_sample_weight_refused(weight, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_sample_weight(weight, 3)


GRADES = ["poor", "fair", "good", "best"]


@given(st.permutations(GRADES), st.lists(st.sampled_from(GRADES), min_size=1), st.booleans())
def test_order_of_categories(order, labels, polars) -> None:
    """Ordered categories set the order of the classes; those without samples are dropped."""
    column = (
        pl.Series(labels, dtype=pl.Enum(order))
        if polars
        else pd.Series(pd.Categorical(labels, order, ordered=True))
    )
    assert category_order(column) == order
    values = np.asarray(labels, dtype=object)
    classes = distinct_classes(values, column)
    assert classes.tolist() == [grade for grade in order if grade in labels]
    assert classes[positions_in(classes, values)].tolist() == labels
    for plain in (labels, values, pd.Series(labels), pd.Categorical(labels), pl.Series(labels)):
        assert category_order(plain) is None
        assert distinct_classes(values, plain).tolist() == sorted({*labels})


@settings(max_examples=50)
@given(
    st.one_of(
        st.lists(st.integers(-5, 5), min_size=1),
        st.lists(st.text(max_size=3), min_size=1),
        st.lists(st.booleans(), min_size=1),
    ),
    st.randoms(use_true_random=False),
)
def test_positions_of_labels_of_any_type_in_any_order(labels, random) -> None:
    classes = sorted(set(labels))
    random.shuffle(classes)
    array = np.array(labels, dtype=object) if isinstance(labels[0], str) else np.array(labels)
    for given_labels in (labels, array, pd.Series(array)):
        assert [classes[k] for k in positions_in(classes, given_labels)] == labels
    with pytest.raises(ValueError, match=r"answers has labels that are not among the classes \("):
        positions_in([label for label in classes if label != labels[0]], array, "answers")


@pytest.mark.parametrize(
    ("classes", "labels", "message"),
    [
        ([1, 2], ["1", 2], r"not among the classes \('1'\): leave out those rows"),
        ([0], [*range(1, 9), None], r"\(1, 2, 3, 4, 5, ...\)"),
        ([0.5], [float("nan")], r"\(nan\)"),
        ([0, 1], [[0, 1]], r"y must be a column of labels; got shape \(1, 2\)"),
    ],
)
def test_labels_of_no_class(classes, labels, message) -> None:
    with pytest.raises(ValueError, match=message):
        positions_in(classes, labels)


def test_classes_as_other_types() -> None:
    assert positions_in(np.array([2, 1]), [1.0, np.int8(2), True]).tolist() == [1, 0, 1]


class TestFewSamples:
    """Plain arrays of few values are taken as they are; whatever else is left to scikit-learn."""

    X, y = np.eye(3), [0, 1, 2]

    @pytest.fixture
    def slow(self, monkeypatch) -> list[Any]:
        """Samples that scikit-learn has seen."""
        seen: list[Any] = []

        def spy(estimator: Any, *data: Any, **options: Any) -> Any:
            seen.append(data)
            return validate_data(estimator, *data, **options)

        monkeypatch.setattr(validation, "validate_data", spy)
        return seen

    @pytest.mark.parametrize(
        "X", [np.eye(3), np.full((1, 3), np.nan), np.ones((333, 3), np.float32), np.eye(3).T[::2]]
    )
    def test_are_taken_as_they_are(self, slow, X) -> None:
        model = BAdaCostClassifier(n_estimators=1).fit(self.X, self.y)
        slow.clear()
        assert check_samples(model, X) is X
        assert not slow

    @pytest.mark.parametrize(
        "X", [np.eye(3, dtype=int), np.eye(3).tolist(), np.eye(3).astype(">f8"), np.ones((334, 3))]
    )
    def test_are_converted(self, slow, X) -> None:
        model = BAdaCostClassifier(n_estimators=1).fit(self.X, self.y)
        slow.clear()
        np.testing.assert_array_equal(check_samples(model, X), X)
        assert len(slow) == 1

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.array([[1.0, np.inf, 0.0]]), "X contains infinity"),
            (np.eye(2), "X has 2 features, but BAdaCostClassifier is expecting 3"),
            (np.empty((0, 3)), "0 sample"),
            (np.ones(3), "Expected 2D array"),
        ],
    )
    def test_are_refused(self, X, message) -> None:
        model = BAdaCostClassifier(n_estimators=1).fit(self.X, self.y)
        with pytest.raises(ValueError, match=message):
            check_samples(model, X)

    def test_without_the_names_of_their_features(self) -> None:
        frame = pd.DataFrame(self.X, columns=list("abc"))
        model = BAdaCostClassifier(n_estimators=1).fit(frame, self.y)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            check_samples(model, self.X)


def test_samples_need_a_fit() -> None:
    with pytest.raises(ValueError, match="is not fitted yet"):
        check_samples(BAdaCostClassifier(), np.eye(2))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max_depth", 0),
        ("max_depth", 2.0),
        ("max_leaf_nodes", 1),
        ("min_samples_split", 1),
        ("min_samples_split", None),
        ("min_samples_leaf", 0),
        ("criterion", "log_loss"),
        ("binning", "kmeans"),
        ("max_bins", 1),
        ("max_bins", 257),
        ("max_features", 0),
        ("n_jobs", 1.5),
    ],
)
def test_tree_parameters(name, wrong) -> None:
    check_tree_parameters(BAdaCostClassifier())
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        check_tree_parameters(BAdaCostClassifier(**{name: wrong}))


def test_a_decimal_that_is_no_number() -> None:
    labels = np.array([0, Decimal("NaN")] * 4, object)
    with pytest.raises(ValueError, match="has labels such as 0, Decimal"):
        average_cost(labels, np.array([0, 1] * 4), [[0, 1], [2, 0]])
