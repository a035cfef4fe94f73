"""Costs from those of single mistakes and from ratios between them, and costs to start from."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from badacost import BAdaCostClassifier
from badacost.costs import (
    as_cost_matrix,
    costs_from_class_weights,
    costs_from_pairs,
    costs_from_prices,
    costs_from_ratios,
    is_template,
    labelled_costs,
    minimum_cost_decision,
    ordinal_costs,
    template_costs,
)
from badacost.metrics import average_cost

CLASSES = ["a", "b", "c"]
PAIRS = {("a", "b"): 5, ("b", "a"): 2.5, ("c", "a"): 9}
TABLE = pd.DataFrame(
    [(truth, prediction, price) for (truth, prediction), price in PAIRS.items()],
    columns=["truth", "prediction", "price"],
)


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        {"a": {"b": 5}, "b": {"a": 2.5}, "c": {"a": 9}},
        [(*pair, price) for pair, price in PAIRS.items()],
        ((np.str_(truth), wrong, np.float32(price)) for (truth, wrong), price in PAIRS.items()),
        TABLE,
        TABLE[["price", "prediction", "truth"]],
        TABLE.rename(columns={"price": "cost"}),
        pl.DataFrame(TABLE.to_dict("list")),
    ],
    ids=lambda pairs: type(pairs).__module__,
)
def test_every_form_of_pairs(pairs):
    costs = costs_from_pairs(pairs, default=1)
    assert list(costs) == CLASSES
    assert_array_equal(as_cost_matrix(costs, CLASSES), [[0, 5, 1], [2.5, 0, 1], [9, 1, 0]])


def test_the_former_name() -> None:
    assert costs_from_prices(prices=PAIRS, default=1) == costs_from_pairs(PAIRS, default=1)


def test_classes_may_be_more_than_those_named():
    costs = costs_from_pairs({(2, 1): 7}, default=1, classes=np.array([0, 1, 2]))
    assert_array_equal(as_cost_matrix(costs, range(3)), [[0, 1, 1], [1, 0, 1], [1, 7, 0]])


def test_gains_and_costs_of_right_decisions_are_netted():
    pairs = {("a", "a"): -10, ("a", "b"): 5, ("b", "a"): 30, ("b", "b"): 20}
    assert_array_equal(as_cost_matrix(costs_from_pairs(pairs), "ab"), [[0, 15], [10, 0]])
    costs = costs_from_pairs({("a", "b"): 5, ("b", "a"): 1}, right=-2)
    assert_array_equal(as_cost_matrix(costs, "ab"), [[0, 7], [3, 0]])


@given(st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=9), st.integers(0, 2**32 - 1))
def test_netting_changes_no_decision(numbers, seed):
    paid = np.reshape(numbers, (3, 3))
    np.fill_diagonal(paid, paid.min(axis=1) - 1.0)
    pairs = {(i, j): paid[i, j] for i in range(3) for j in range(3)}
    costs = as_cost_matrix(costs_from_pairs(pairs), range(3))
    beliefs = np.random.default_rng(seed).dirichlet(np.ones(3), size=20)
    chosen = minimum_cost_decision(beliefs, costs)
    expected = beliefs @ paid
    assert_allclose(expected[np.arange(20), chosen], expected.min(axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("pairs", "arguments", "message"),
    [
        (
            PAIRS,
            {},
            "pairs lack the cost of truth 'a' and prediction 'c': add it, or set default",
        ),
        (PAIRS, {"default": np.nan}, "default must be "),
        (PAIRS, {"default": 1, "right": np.inf}, "right must be "),
        (PAIRS, {"default": 1, "classes": ["a", "b"]}, "labels ['c'] in pairs are not among"),
        ([("a", "b", 1), ("a", "b", 2)], {}, "truth 'a' and prediction 'b' is given twice"),
        ([("a", "b")], {}, "('a', 'b') in pairs: give truth"),
        (["abc"], {}, "truth 'a' and prediction 'b' must be a number"),
        ([3], {}, "3 in pairs"),
        ({"a": 5}, {}, "('a', 5) in pairs: give truth"),
        ({("a", "b"): "5"}, {}, "truth 'a' and prediction 'b' must be a number"),
        ({("a", "b"): True}, {}, "must be a number at least -1e+300 and at most 1e+300; got True"),
        ({("a", "b"): 10**400}, {}, "at most 1e+300; got 1000"),
        ([("a", ["b"], 1)], {}, "has a label that cannot be a class"),
        ({("a", "b"): 5, ("b", "a"): 1, ("b", "b"): 2}, {}, "being right costs 2"),
        ({("a", "b"): -5, ("b", "a"): 1}, {}, "prediction 'b' costs -5"),
        ({("a", "b"): 0, ("b", "a"): 1}, {}, "all mistakes on class 'a' are free"),
        ({("a", "a"): 1}, {"default": 1}, "at least 2 classes"),
        ({}, {"default": 1}, "at least 2 classes"),
        (7, {}, "pairs are of type int"),
        (csr_array(np.eye(3)), {}, "pairs are of type csr_array: give a mapping"),
        ("ab", {}, "pairs are of type str"),
        (TABLE.drop(columns="prediction"), {}, "pairs lack the columns ['prediction']"),
    ],
)
def test_unusable_pairs(pairs, arguments, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        costs_from_pairs(pairs, **arguments)


def test_estimators_and_metrics_take_the_result():
    X = [[0], [0], [0], [1], [1]]
    y = ["healthy", "healthy", "sick", "sick", "sick"]
    costs = costs_from_pairs({("sick", "healthy"): 5000, ("healthy", "sick"): 200})
    blind = BAdaCostClassifier(n_estimators=3, max_depth=1).fit(X, y).predict(X)
    careful = BAdaCostClassifier(costs, n_estimators=3, max_depth=1).fit(X, y).predict(X)
    assert average_cost(y, blind, costs) == 1000
    assert average_cost(y, careful, costs) == 80


def test_ratios_of_classes_are_class_weights():
    costs = costs_from_ratios({"a": 5, "c": 0.5}, classes=CLASSES)
    assert_array_equal(as_cost_matrix(costs, CLASSES), costs_from_class_weights([5, 1, 0.5]))


def test_ratios_of_mistakes():
    ratios = {"a": 5, ("b", "c"): 3, ("c", "a"): np.float64(0.25), ("a", "b"): 5}
    costs = costs_from_ratios(ratios, classes=np.array(CLASSES))
    assert_array_equal(as_cost_matrix(costs, CLASSES), [[0, 5, 5], [1, 0, 3], [0.25, 1, 0]])


def test_labels_of_ratios_may_be_pairs_themselves():
    classes = [("x", 1), ("x", 2)]
    costs = costs_from_ratios({("x", 2): 4}, classes=classes)
    assert_array_equal(as_cost_matrix(costs, classes), [[0, 1], [4, 0]])


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ({"a": 5, ("a", "b"): 2}, "drop"),
        ({"d": 5}, "labels ['d'] in ratios are not among the 3 classes"),
        ({("a", "d"): 5}, "labels ['d'] in ratios"),
        ({("a", "a"): 5}, "('a', 'a') in ratios"),
        ({("a", "b", "c"): 5}, "in ratios"),
        ({"a": 0}, "the ratio of 'a' must be "),
        ({("a", "b"): np.inf}, "the ratio of ('a', 'b') must be "),
        ({"a": "5"}, "the ratio of 'a' must be "),
        ([("a", 5)], "ratios are of type list"),
    ],
)
def test_unusable_ratios(ratios, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        costs_from_ratios(ratios, classes=CLASSES)


# Costs to start from.

SIZES = ["small", "large", "small", "middle", "small", "large"]
ASCENDING = ["small", "middle", "large"]


def test_every_mistake_costs_one() -> None:
    costs = template_costs(np.array([3, 1, 2, 1]))
    assert list(costs) == [1, 2, 3]
    assert costs[3] == {1: 1.0, 2: 1.0, 3: 0.0}
    assert is_template(costs)


def test_the_order_of_a_categorical() -> None:
    y = pd.Categorical(SIZES, categories=["none", *ASCENDING], ordered=True)
    assert list(template_costs(y)) == ASCENDING
    assert template_costs(y, ordinal=(5, 1)) == ordinal_costs(3, under=5, labels=ASCENDING)


def test_the_order_that_is_given() -> None:
    costs = template_costs(SIZES, ordinal=(5, 2), order=ASCENDING)
    assert list(costs) == list(costs["small"]) == ASCENDING
    assert costs == ordinal_costs(3, under=5, over=2, labels=ASCENDING)
    assert list(template_costs([1, 2, 3], order=["3", "1", "2"])) == [3, 1, 2]


def test_rare_classes_cost_more() -> None:
    costs = template_costs(SIZES, balanced=True)
    assert costs["small"]["large"] == 0.667
    assert costs["middle"] == {"large": 2.0, "middle": 0.0, "small": 2.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ordinal": (5, 1)}, "y is text without an order: give order"),
        ({"ordinal": (5, 0), "order": ASCENDING}, "over"),
        ({"ordinal": (5, 1), "balanced": True}, "exclude each other"),
        ({"order": ["small", "large"]}, "order"),
        ({"order": ["small", "large", "huge"]}, "order"),
        ({"order": 3}, "labels [3] in order"),
        ({"order": ASCENDING, "ordinal": (1, 1, 1)}, "ordinal is (1, 1, 1): give two costs"),
        ({"order": ASCENDING, "ordinal": 3}, "ordinal is 3: give two costs"),
    ],
)
def test_what_has_no_template(options, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        template_costs(SIZES, **options)
    with pytest.raises(TypeError, match="cannot name a class"):
        template_costs(SIZES, order=[["small"], "middle", "large"])


@pytest.mark.parametrize(
    ("y", "shown"), [([None, 0, 1], "None"), ([0.0, 2.0, np.nan], "NaN"), (["a", np.nan], "NaN")]
)
@pytest.mark.parametrize("balanced", [False, True])
def test_samples_without_a_class(y, shown, balanced) -> None:
    with pytest.raises(ValueError, match=f"y contains {shown}: leave out samples"):
        template_costs(np.array(y, dtype=object), balanced=balanced)


@pytest.mark.parametrize("y", [[1, [2]], [[], [1], [1, 2]]])
@pytest.mark.parametrize("balanced", [False, True])
def test_labels_that_are_lists(y, balanced) -> None:
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        template_costs(y, balanced=balanced)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        (1 - np.eye(3), True),
        (pd.DataFrame(1 - np.eye(2), index=["a", "b"], columns=["a", "b"]), True),
        ({"a": {"b": 1}, "b": {"a": 1}}, True),
        ([[0, 2], [2, 0]], False),
        ([[0, 1], [5, 0]], False),
        (labelled_costs([[0.5, 1], [1, 0]], "ab"), False),
    ],
)
def test_whether_anybody_has_filled_it_in(costs, expected) -> None:
    assert is_template(costs) is expected
