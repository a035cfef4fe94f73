"""Costs from prices of single mistakes, and from ratios between them."""

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
    costs_from_prices,
    costs_from_ratios,
    minimum_cost_decision,
)
from badacost.metrics import average_cost

CLASSES = ["a", "b", "c"]
PRICES = {("a", "b"): 5, ("b", "a"): 2.5, ("c", "a"): 9}
TABLE = pd.DataFrame(
    [(truth, prediction, price) for (truth, prediction), price in PRICES.items()],
    columns=["truth", "prediction", "price"],
)


@pytest.mark.parametrize(
    "prices",
    [
        PRICES,
        {"a": {"b": 5}, "b": {"a": 2.5}, "c": {"a": 9}},
        [(*pair, price) for pair, price in PRICES.items()],
        ((np.str_(truth), wrong, np.float32(price)) for (truth, wrong), price in PRICES.items()),
        TABLE,
        TABLE[["price", "prediction", "truth"]],
        pl.DataFrame(TABLE.to_dict("list")),
    ],
    ids=lambda prices: type(prices).__module__,
)
def test_every_form_of_prices(prices):
    costs = costs_from_prices(prices, default=1)
    assert list(costs) == CLASSES
    assert_array_equal(as_cost_matrix(costs, CLASSES), [[0, 5, 1], [2.5, 0, 1], [9, 1, 0]])


def test_classes_may_be_more_than_those_named():
    costs = costs_from_prices({(2, 1): 7}, default=1, classes=np.array([0, 1, 2]))
    assert_array_equal(as_cost_matrix(costs, range(3)), [[0, 1, 1], [1, 0, 1], [1, 7, 0]])


def test_gains_and_prices_of_being_right_are_netted():
    prices = {("a", "a"): -10, ("a", "b"): 5, ("b", "a"): 30, ("b", "b"): 20}
    assert_array_equal(as_cost_matrix(costs_from_prices(prices), "ab"), [[0, 15], [10, 0]])
    costs = costs_from_prices({("a", "b"): 5, ("b", "a"): 1}, right=-2)
    assert_array_equal(as_cost_matrix(costs, "ab"), [[0, 7], [3, 0]])


@given(st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=9), st.integers(0, 2**32 - 1))
def test_netting_changes_no_decision(numbers, seed):
    paid = np.reshape(numbers, (3, 3))
    np.fill_diagonal(paid, paid.min(axis=1) - 1.0)
    prices = {(i, j): paid[i, j] for i in range(3) for j in range(3)}
    costs = as_cost_matrix(costs_from_prices(prices), range(3))
    beliefs = np.random.default_rng(seed).dirichlet(np.ones(3), size=20)
    chosen = minimum_cost_decision(beliefs, costs)
    expected = beliefs @ paid
    assert_allclose(expected[np.arange(20), chosen], expected.min(axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("prices", "arguments", "message"),
    [
        (
            PRICES,
            {},
            "prices lack the one for truth 'a' and prediction 'c': add it, or set default",
        ),
        (PRICES, {"default": np.nan}, "default must be "),
        (PRICES, {"default": 1, "right": np.inf}, "right must be "),
        (PRICES, {"default": 1, "classes": ["a", "b"]}, "labels ['c'] in prices are not among"),
        ([("a", "b", 1), ("a", "b", 2)], {}, "truth 'a' and prediction 'b' is given twice"),
        ([("a", "b")], {}, "('a', 'b') in prices: give truth, prediction and price"),
        (["abc"], {}, "'abc' in prices"),
        ([3], {}, "3 in prices"),
        ({"a": 5}, {}, "('a', 5) in prices: give truth"),
        ({("a", "b"): "5"}, {}, "truth 'a' and prediction 'b' must be a number"),
        ({("a", "b"): True}, {}, "must be a number at least -1e+300 and at most 1e+300; got True"),
        ({("a", "b"): 10**400}, {}, "at most 1e+300; got 1000"),
        ([("a", ["b"], 1)], {}, "has a label that cannot be a class"),
        ({("a", "b"): 5, ("b", "a"): 1, ("b", "b"): 2}, {}, "being right the higher price 2"),
        ({("a", "b"): -5, ("b", "a"): 1}, {}, "prediction 'b' has the price -5"),
        ({("a", "b"): 0, ("b", "a"): 1}, {}, "all mistakes on class 'a' are free"),
        ({("a", "a"): 1}, {"default": 1}, "at least 2 classes"),
        ({}, {"default": 1}, "at least 2 classes"),
        (7, {}, "prices are of type int"),
        (csr_array(np.eye(3)), {}, "prices are of type csr_array: give a mapping"),
        ("ab", {}, "prices are of type str"),
        (TABLE.rename(columns={"price": "cost"}), {}, "prices lack the columns ['price']"),
    ],
)
def test_unusable_prices(prices, arguments, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        costs_from_prices(prices, **arguments)


def test_estimators_and_metrics_take_the_result():
    X = [[0], [0], [0], [1], [1]]
    y = ["healthy", "healthy", "sick", "sick", "sick"]
    costs = costs_from_prices({("sick", "healthy"): 5000, ("healthy", "sick"): 200})
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
        ({"a": 5, ("a", "b"): 2}, "'a' says 5 for every mistake on it, ('a', 'b') says 2; drop"),
        ({"d": 5}, "labels ['d'] in ratios are not among the 3 classes"),
        ({("a", "d"): 5}, "labels ['d'] in ratios"),
        ({("a", "a"): 5}, "('a', 'a') in ratios is neither a class nor a mistake"),
        ({("a", "b", "c"): 5}, "neither a class nor a mistake"),
        ({"a": 0}, "the ratio of 'a' must be "),
        ({("a", "b"): np.inf}, "the ratio of ('a', 'b') must be "),
        ({"a": "5"}, "the ratio of 'a' must be "),
        ([("a", 5)], "ratios are of type list"),
    ],
)
def test_unusable_ratios(ratios, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        costs_from_ratios(ratios, classes=CLASSES)
