"""Cost matrices from what people say about mistakes: their prices, or how bad one is to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from badacost.costs.builders import costs_from_class_weights, labelled_costs
from badacost.costs.matrix import (
    as_cost_matrix,
    check_known,
    check_positive,
    check_price,
    class_labels,
    plain,
)
from badacost.large_samples import is_sparse

LabelledCosts = dict[Any, dict[Any, float]]
_COLUMNS = ("truth", "prediction", "price")


def costs_from_prices(
    prices: Any,
    *,
    default: float | None = None,
    right: float = 0.0,
    classes: Iterable[Any] | None = None,
) -> LabelledCosts:
    """Return the costs of mistakes whose prices are named one by one.

    A decision is paid for whether it is right or not: a treatment costs money, a sale brings
    some. What counts is how much more a wrong answer costs than the right one, so the price of
    being right is subtracted from all prices of the same truth.

    Parameters
    ----------
    prices : mapping, iterable of triples or data frame
        ``{(truth, prediction): price}``, ``{truth: {prediction: price}}``, triples
        ``(truth, prediction, price)``, or a data frame with the columns "truth", "prediction" and
        "price". A negative price is a gain. Right answers may have prices too.
    default : float, optional
        Price of mistakes that are not named; by default it is an error to leave one out.
    right : float, default=0.0
        Price of right answers that are not named.
    classes : iterable of K labels, optional
        The classes; by default those that are named, in the order in which they are named.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, which all estimators and metrics take. Being right is
        free.

    Raises
    ------
    TypeError, ValueError
        Where a price is missing, given twice or not a finite number, or a mistake is cheaper than
        being right.

    Examples
    --------
    >>> costs_from_prices({("sick", "healthy"): 5000, ("healthy", "sick"): 200})
    {'sick': {'sick': 0.0, 'healthy': 5000.0}, 'healthy': {'sick': 200.0, 'healthy': 0.0}}

    Treatment costs 300 also where it is right:

    >>> costs_from_prices(
    ...     {("sick", "sick"): 300, ("sick", "healthy"): 5000, ("healthy", "sick"): 300}
    ... )
    {'sick': {'sick': 0.0, 'healthy': 4700.0}, 'healthy': {'sick': 300.0, 'healthy': 0.0}}
    """
    named = _named_prices(prices)
    found = dict.fromkeys(label for pair in named for label in pair)
    labels = class_labels(found if classes is None else classes)
    check_known(found, labels, "prices")
    check_price(right=right)
    if default is not None:
        check_price(default=default)
    paid = np.empty((len(labels), len(labels)))
    for i, truth in enumerate(labels):
        for j, prediction in enumerate(labels):
            price = named.get((truth, prediction), right if i == j else default)
            if price is None:
                raise ValueError(
                    f"prices lack the one for truth {truth!r} and prediction {prediction!r}: "
                    "add it, or set default to the price of mistakes that are not named."
                )
            paid[i, j] = price
    regret = paid - np.diagonal(paid)[:, np.newaxis]
    if (regret < 0).any():
        i, j = np.argwhere(regret < 0)[0]
        raise ValueError(
            f"for truth {labels[i]!r} prediction {labels[j]!r} has the price {paid[i, j]:g} and "
            f"being right the higher price {paid[i, i]:g}: check that truth comes before "
            "prediction, and that gains are negative."
        )
    return labelled_costs(as_cost_matrix(regret, labels), labels)


def _named_prices(prices: Any) -> dict[tuple[Any, Any], float]:
    """Return prices in any accepted form as ``{(truth, prediction): price}``."""
    named: dict[tuple[Any, Any], float] = {}
    for truth, prediction, price in _triples(prices):
        pair = (plain(truth), plain(prediction))
        name = f"the price of truth {pair[0]!r} and prediction {pair[1]!r}"
        try:
            repeated = pair in named
        except TypeError:
            raise TypeError(
                f"{name} has a label that cannot be a class: use text or numbers."
            ) from None
        if repeated:
            raise ValueError(f"{name} is given twice: keep one of them.")
        check_price(**{name: price})
        named[pair] = price
    return named


def _triples(prices: Any) -> list[tuple[Any, Any, Any]]:
    """Return prices in any accepted form as a list of truth, prediction and price."""
    if isinstance(prices, Mapping):
        triples: list[Any] = []
        for key, value in prices.items():
            if isinstance(value, Mapping):
                triples += [(key, prediction, price) for prediction, price in value.items()]
            else:
                triples.append((*key, value) if isinstance(key, tuple) else (key, value))
    elif hasattr(prices, "columns") and hasattr(prices, "to_numpy"):
        lacking = [name for name in _COLUMNS if name not in prices.columns]
        if lacking:
            raise ValueError(f"prices lack the columns {lacking}: name them {', '.join(_COLUMNS)}.")
        triples = list(zip(*(prices[name] for name in _COLUMNS), strict=True))
    elif isinstance(prices, Iterable) and not isinstance(prices, str) and not is_sparse(prices):
        triples = list(prices)
    else:
        raise TypeError(
            f"prices are of type {type(prices).__name__}: give a mapping "
            "{(truth, prediction): price}, triples or a data frame."
        )
    for triple in triples:
        if isinstance(triple, str) or not hasattr(triple, "__len__") or len(triple) != 3:
            raise ValueError(f"{triple!r:.80} in prices: give truth, prediction and price of each.")
    return triples


def costs_from_ratios(ratios: Mapping[Any, float], *, classes: Iterable[Any]) -> LabelledCosts:
    """Return costs from statements such as "missing a is five times as bad".

    Parameters
    ----------
    ratios : mapping
        How many times as bad as an ordinary mistake, one that is not named, which costs 1.
        ``{"a": 5}`` applies to every mistake on the class a, ``{("a", "b"): 5}`` to taking a for
        b only: the truth comes first.
    classes : iterable of K labels
        The classes.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, which all estimators and metrics take.

    Raises
    ------
    ValueError
        Where a class and one of its mistakes are given different ratios: ``{"a": 5,
        ("a", "b"): 2}`` says that taking a for b is five times as bad, and that it is twice as bad.

    Examples
    --------
    >>> costs = costs_from_ratios({"a": 5, ("b", "c"): 2}, classes=["a", "b", "c"])
    >>> costs["a"]
    {'a': 0.0, 'b': 5.0, 'c': 5.0}
    >>> costs["b"]
    {'a': 1.0, 'b': 0.0, 'c': 2.0}
    """
    labels = class_labels(classes)
    if not isinstance(ratios, Mapping):
        raise TypeError(f"ratios are of type {type(ratios).__name__}: give a mapping, {{'a': 5}}.")
    stated = {_subject(key, labels): ratio for key, ratio in ratios.items()}
    for key, ratio in stated.items():
        check_positive(**{f"the ratio of {key!r}": ratio})
    on_class = {key: ratio for key, ratio in stated.items() if key in set(labels)}
    pairs = {key: ratio for key, ratio in stated.items() if key not in on_class}
    weights = {label: on_class.get(label, 1.0) for label in labels}
    costs = labelled_costs(costs_from_class_weights(weights, classes=labels), labels)
    for (truth, prediction), ratio in pairs.items():
        if truth in on_class and ratio != on_class[truth]:
            raise ValueError(
                f"ratios contradict each other: {truth!r} says {on_class[truth]} for every "
                f"mistake on it, {(truth, prediction)!r} says {ratio}; "
                "drop one, or name the mistakes of that class one by one."
            )
        costs[truth][prediction] = float(ratio)
    return costs


def _subject(key: Any, labels: list[Any]) -> Any:
    """Return what a ratio applies to: a class, or a mistake (truth, prediction)."""
    label = plain(key)
    if label in set(labels):
        return label
    if not isinstance(key, tuple):
        check_known([label], labels, "ratios")
    pair = tuple(plain(part) for part in key)
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(
            f"{key!r} in ratios is neither a class nor a mistake: give a label, or two different "
            "labels, truth first."
        )
    check_known(pair, labels, "ratios")
    return pair
