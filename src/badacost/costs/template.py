"""A table of costs to start from, made for the classes of a column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from badacost.costs.builders import (
    costs_from_class_weights,
    label_counts,
    labelled_costs,
    ordinal_costs,
    zero_one_costs,
)
from badacost.costs.matrix import as_classes, class_labels, costs_as_given, listed, named_classes
from badacost.validation import category_order, distinct_classes

_DIGITS = 3  # of prices that compensate for rare classes


def template_costs(
    y: ArrayLike,
    *,
    balanced: bool = False,
    ordinal: tuple[float, float] | None = None,
    order: Iterable[Any] | None = None,
) -> dict[Any, dict[Any, float]]:
    """Return costs to start from, for the classes of training labels.

    Parameters
    ----------
    y : array-like of n labels
        Labels of the training data. Those of an ordered categorical of pandas have an order.
    balanced : bool, default=False
        Whether mistakes on rare classes cost more: ``n / (K * count)``, rounded.
    ordinal : tuple of two floats, optional
        Price of an answer one class below the truth, and of one a class above it; farther ones
        cost a multiple. The classes need an order then.
    order : iterable of K labels, optional
        All classes of `y` in the order of the rows, from the lowest to the highest. By default
        that of an ordered categorical, or sorted.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``: rows are the truth. Every mistake costs 1, unless
        `balanced` or `ordinal` is given.

    Raises
    ------
    ValueError
        Where both kinds of prices are asked for, `order` does not name each class once, or ordinal
        costs are asked for classes of text without an order.

    Examples
    --------
    >>> from badacost.costs import template_costs
    >>> template_costs([2, 1, 2])
    {1: {1: 0.0, 2: 1.0}, 2: {1: 1.0, 2: 0.0}}
    >>> template_costs(["high", "low"], ordinal=(5, 1), order=["low", "high"])
    {'low': {'low': 0.0, 'high': 1.0}, 'high': {'low': 5.0, 'high': 0.0}}
    """
    if balanced and ordinal is not None:
        raise ValueError("balanced and ordinal costs exclude each other: choose one of them.")
    found, _ = label_counts(y)
    classes = class_labels(distinct_classes(found, y))
    if order is not None:
        classes = _in_order(classes, order)
    elif ordinal is not None and category_order(y) is None and _are_text(classes):
        raise ValueError(
            f"the {listed(classes)} are text without an order: give order, from the lowest class "
            "to the highest (--order low,middle,high)."
        )
    if ordinal is not None:
        under, over = _two_prices(ordinal)
        costs = ordinal_costs(len(classes), under=under, over=over)
    elif balanced:
        costs = costs_from_class_weights("balanced", y=y, classes=classes).round(_DIGITS)
    else:
        costs = zero_one_costs(len(classes))
    return labelled_costs(costs, classes)


def is_template(costs: Any) -> bool:
    """Return whether costs look like a template that has not been filled in.

    Parameters
    ----------
    costs : array-like of shape (K, K), nested mapping or data frame
        ``C[truth, prediction]``: rows are the truth; see `as_cost_matrix`.

    Returns
    -------
    bool
        Whether every mistake costs 1 and being right is free, as `template_costs` has it.

    Examples
    --------
    >>> from badacost.costs import is_template
    >>> is_template([[0, 1], [1, 0]]), is_template([[0, 1], [5, 0]])
    (True, False)
    """
    named = named_classes(costs)
    labels = class_labels(range(len(costs)) if named is None else named)
    return bool((costs_as_given(costs, labels) == zero_one_costs(len(labels))).all())


def _two_prices(ordinal: Any) -> tuple[Any, Any]:
    """Return the price of an answer below the truth, and of one above it."""
    if not np.iterable(ordinal) or len(prices := [*ordinal]) != 2:
        raise ValueError(
            f"ordinal is {ordinal!r:.80}: give two prices, of an answer one class below the truth "
            "and of one a class above it."
        )
    return prices[0], prices[1]


def _in_order(classes: Sequence[Any], order: Iterable[Any]) -> list[Any]:
    """Return the classes in the order that names each of them once."""
    given = [*order] if np.iterable(order) else [order]
    hashable = all(isinstance(label, Hashable) for label in given)
    named = as_classes(given, classes) if hashable else []
    if len(named) != len(classes) or set(named) != set(classes):
        raise ValueError(f"order must name each of the {listed(classes)} once; got {given!r:.200}.")
    return named


def _are_text(classes: Sequence[Any]) -> bool:
    return any(isinstance(label, str) for label in classes)
