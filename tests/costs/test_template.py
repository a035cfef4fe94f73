"""Costs to start from: their order, their prices, and whether anybody has filled them in."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from badacost.costs import is_template, labelled_costs, ordinal_costs, template_costs

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
        ({"ordinal": (5, 1)}, "are text without an order: give order"),
        ({"ordinal": (5, 0), "order": ASCENDING}, "over"),
        ({"ordinal": (5, 1), "balanced": True}, "exclude each other"),
        ({"order": ["small", "large"]}, "order must name each of the 3 classes"),
        ({"order": ["small", "large", "huge"]}, "order must name each of the 3 classes"),
        ({"order": 3}, "once; got [3]"),
        ({"order": [["small"], "middle", "large"]}, "once; got [['small'], 'middle', 'large']"),
        ({"order": ASCENDING, "ordinal": (1, 1, 1)}, "ordinal is (1, 1, 1): give two prices"),
        ({"order": ASCENDING, "ordinal": 3}, "ordinal is 3: give two prices"),
    ],
)
def test_what_has_no_template(options, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        template_costs(SIZES, **options)


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
    with pytest.raises(ValueError, match="y must have a label for each sample; got lists: make"):
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
