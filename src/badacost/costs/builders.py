"""Builders of cost matrices for common situations; rows are the truth, columns the prediction."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import category_order, check_labels, check_number, distinct_classes
from badacost.costs.matrix import (
    MAX_COST,
    check_entries,
    check_known,
    check_positive,
    class_labels,
    class_positions,
    given_costs,
    in_order,
    labels_of,
    plain,
    real_numbers,
    regret,
    square,
)

LabelledCosts = dict[Any, dict[Any, float]]
_DIGITS = 3  # of costs that compensate for rare classes


def zero_one_costs(n_classes: int, *, labels: Iterable[Any] | None = None) -> Any:
    """Return 0|1 costs: every mistake costs one.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.
    labels : iterable of K labels, optional
        The classes in the order of the rows: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> zero_one_costs(2)
    array([[0., 1.],
           [1., 0.]])
    """
    check_number("n_classes", n_classes, Integral, low=2)
    return with_labels(1.0 - np.eye(n_classes), labels)


def labelled_costs(cost_matrix: ArrayLike, classes: Iterable[Any]) -> LabelledCosts:
    """Return costs as a mapping that names truths and predictions.

    Estimators read an array in the order of their ``classes_``, which is sorted: "high" comes
    before "low". A mapping cannot be misread, and may have classes that the training data lack.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth, in the order of `classes`.
    classes : iterable of K labels
        The classes.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, diagonal included.

    Examples
    --------
    >>> labelled_costs([[0, 1], [5, 0]], ["low", "high"])
    {'low': {'low': 0.0, 'high': 1.0}, 'high': {'low': 5.0, 'high': 0.0}}
    """
    labels = class_labels(classes)
    rows = given_costs(cost_matrix, labels).tolist()
    by_prediction = [dict(zip(labels, row, strict=True)) for row in rows]
    return dict(zip(labels, by_prediction, strict=True))


def with_labels(costs: FloatArray, labels: Iterable[Any] | None) -> Any:
    """Return costs that estimators take, labelled if there are labels."""
    if labels is None:
        return given_costs(costs, range(len(costs)))
    return labelled_costs(costs, labels)


def costs_from_confusion(
    confusion: ArrayLike,
    scale: float = 1.0,
    *,
    floor: float = 0.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return costs proportional to how often a first classifier made each mistake.

    This is the matrix the appendix of the BAdaCost paper proposes for imbalanced classes: classes
    that were badly recognised become expensive.

    Parameters
    ----------
    confusion : array-like of shape (K, K)
        Counts ``F[truth, prediction]``: rows are the truth, as in
        `sklearn.metrics.confusion_matrix`.
    scale : float, default=1.0
        Factor on all costs, the lambda of the paper.
    floor : float, default=0.0
        Lowest proportion of a class taken to be mistaken for another; positive values keep a cost
        on mistakes that were never made.
    labels : iterable of K labels, optional
        The classes in the order of the rows: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> costs_from_confusion([[9, 1], [2, 2]])
    array([[0. , 0.1],
           [0.5, 0. ]])
    """
    counts = square(confusion, "confusion")
    check_positive(scale=scale)
    check_number("floor", plain(floor), low=0.0, high=MAX_COST)
    check_entries(counts, lambda i, j: f"confusion for truth {i} and prediction {j}")
    totals = counts.sum(axis=1)
    if not totals.all():
        raise ValueError(f"class {totals.argmin()} has no samples in confusion: leave it out.")
    rates: FloatArray = np.maximum(counts / totals[:, np.newaxis], floor)
    np.fill_diagonal(rates, 0.0)
    is_mistaken = rates.any(axis=1)
    if not is_mistaken.all():
        raise ValueError(f"class {is_mistaken.argmin()} is never mistaken: set floor, as to 0.01.")
    with np.errstate(over="ignore"):
        return with_labels(rates * float(scale), labels)


def costs_from_class_weights(
    class_weights: ArrayLike | Mapping[Any, float],
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    y: ArrayLike | None = None,
) -> FloatArray:
    """Return costs in which every mistake on a class costs the weight of that class.

    Parameters
    ----------
    class_weights : sequence of K floats, mapping or "balanced"
        Weights in class order, or by label, or ``n / (K * count)`` from the counts of `y`.
    classes : sequence of K labels, optional
        The class order. Needed with a mapping; with "balanced", by default the labels of `y`,
        sorted or in the order of its categories if it is an ordered categorical.
    y : array-like of n labels, optional
        Training labels, needed with "balanced".

    Returns
    -------
    ndarray of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> costs_from_class_weights([1, 4])
    array([[0., 1.],
           [4., 0.]])
    """
    if isinstance(class_weights, str):
        if class_weights != "balanced" or y is None:
            raise ValueError(
                f'class_weights is {class_weights!r}: give "balanced" together with y.'
            )
        found, counts = np.unique(check_labels(y, "costs_from_class_weights"), return_counts=True)
        class_weights = dict(zip(found, counts.sum() / (len(found) * counts), strict=True))
        classes = distinct_classes(found, y) if classes is None else classes
    if isinstance(class_weights, Mapping):
        if classes is None:
            raise ValueError("class_weights is a mapping: give classes too, they set the order.")
        class_weights = in_order(class_weights, class_labels(classes), "class_weights")
    wanted = "give a positive number for each class"
    weights = real_numbers(class_weights, "class_weights", wanted)
    labels = class_labels(range(weights.size) if classes is None else classes)
    weights = real_numbers(weights, "class_weights", wanted, (len(labels),))
    for label, weight in zip(labels, weights, strict=True):
        check_positive(**{f"the weight of class {label!r}": float(weight)})
    return zero_one_costs(len(weights)) * weights[:, np.newaxis]


def ordinal_costs(
    n_classes: int,
    *,
    under: float = 1.0,
    over: float = 1.0,
    power: float = 1.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return costs that grow with the distance between ordered classes.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.
    under, over : float, default=1.0
        Cost of a prediction one class below the truth (too low: left of the diagonal) and of one
        a class above it (too high: right of it).
    power : float, default=1.0
        Exponent of the distance; 2 makes far misses cost more.
    labels : iterable of K labels, optional
        The classes in the order of the rows, from the lowest to the highest: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth, from the lowest class to the highest.
        Give `labels` where these do not sort in this order.

    Examples
    --------
    >>> ordinal_costs(3, under=10)
    array([[ 0.,  1.,  2.],
           [10.,  0.,  1.],
           [20., 10.,  0.]])
    >>> ordinal_costs(2, under=10, labels=["low", "high"])["high"]
    {'low': 10.0, 'high': 0.0}
    """
    check_positive(under=under, over=over, power=power)
    check_number("n_classes", n_classes, Integral, low=2)
    classes = np.arange(n_classes)
    excess = classes[np.newaxis, :] - classes[:, np.newaxis]
    with np.errstate(over="ignore"):
        far = np.abs(excess) ** float(power)
        return with_labels(far * np.where(excess > 0, float(over), float(under)), labels)


def costs_from_pairs(
    pairs: Any,
    *,
    default: float | None = None,
    right: float = 0.0,
    classes: Iterable[Any] | None = None,
) -> LabelledCosts:
    """Return the cost matrix of mistakes whose costs are given one by one.

    A decision may cost something whether it is right or not: a treatment costs money, a sale
    brings some. What counts is how much more a wrong decision costs than the right one, so the
    cost of the right decision is subtracted from all costs of the same truth.

    Parameters
    ----------
    pairs : mapping, iterable of triples or data frame
        ``{(truth, prediction): cost}``, ``{truth: {prediction: cost}}``, triples
        ``(truth, prediction, cost)``, or a data frame with the columns "truth", "prediction" and
        "cost" or "price". A negative cost is a gain. Right decisions may have costs too.
    default : float, optional
        Cost of mistakes that are not named; by default it is an error to leave one out.
    right : float, default=0.0
        Cost of right decisions that are not named.
    classes : iterable of K labels, optional
        The classes; by default those that are named, in the order in which they are named.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, which all estimators and metrics take, with a zero
        diagonal.

    Raises
    ------
    TypeError, ValueError
        Where a cost is missing, given twice or not a finite number, or a mistake costs less than
        the right decision.

    Examples
    --------
    >>> costs_from_pairs({("sick", "healthy"): 5000, ("healthy", "sick"): 200})
    {'sick': {'sick': 0.0, 'healthy': 5000.0}, 'healthy': {'sick': 200.0, 'healthy': 0.0}}

    Treatment costs 300 also where it is right:

    >>> costs_from_pairs(
    ...     {("sick", "sick"): 300, ("sick", "healthy"): 5000, ("healthy", "sick"): 300}
    ... )
    {'sick': {'sick': 0.0, 'healthy': 4700.0}, 'healthy': {'sick': 300.0, 'healthy': 0.0}}
    """
    named = _named_pairs(pairs)
    found = dict.fromkeys(label for pair in named for label in pair)
    labels = class_labels(found if classes is None else classes)
    check_known(found, labels, "pairs")
    check_number("right", plain(right), low=-MAX_COST, high=MAX_COST)
    check_number("default", plain(default), low=-MAX_COST, high=MAX_COST, none=True)
    costs = []
    for truth, prediction in product(labels, labels):
        cost = named.get((truth, prediction), right if truth == prediction else default)
        if cost is None:
            cell = f"truth {truth!r} and prediction {prediction!r}"
            raise ValueError(f"pairs lack the cost of {cell}: add it, or set default.")
        costs.append(float(cost))
    return labelled_costs(regret(np.reshape(costs, (len(labels), -1)), labels), labels)


def costs_from_prices(prices: Any, **options: Any) -> LabelledCosts:
    """Return `costs_from_pairs` of these arguments: its former name.

    Parameters
    ----------
    prices : mapping, iterable of triples or data frame
        The `pairs` of `costs_from_pairs`.
    **options : dict
        Its other arguments.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``.

    Examples
    --------
    >>> costs_from_prices({("sick", "healthy"): 5000, ("healthy", "sick"): 200})
    {'sick': {'sick': 0.0, 'healthy': 5000.0}, 'healthy': {'sick': 200.0, 'healthy': 0.0}}
    """
    return costs_from_pairs(prices, **options)


def _named_pairs(pairs: Any) -> dict[tuple[Any, Any], float]:
    """Return costs in any accepted form as ``{(truth, prediction): cost}``."""
    named: dict[tuple[Any, Any], float] = {}
    for triple in _triples(pairs):
        try:
            truth, prediction, cost = map(plain, triple)
        except (TypeError, ValueError):
            raise ValueError(f"{triple!r:.80} in pairs: give truth, prediction, cost.") from None
        name = f"the cost of truth {truth!r} and prediction {prediction!r}"
        check_number(name, cost, low=-MAX_COST, high=MAX_COST)
        if not all(isinstance(label, Hashable) for label in (truth, prediction)):
            raise TypeError(f"{name} has a label that cannot be a class: use text or numbers.")
        if (truth, prediction) in named:
            raise ValueError(f"{name} is given twice: keep one of them.")
        named[truth, prediction] = cost
    return named


def _triples(pairs: Any) -> Iterator[Any]:
    """Yield truth, prediction and cost of each mistake."""
    if isinstance(pairs, Mapping):
        for key, value in pairs.items():
            if isinstance(value, Mapping):
                yield from ((key, *cell) for cell in value.items())
            else:
                yield (*key, value) if isinstance(key, tuple) else (key, value)
    elif hasattr(pairs, "columns"):
        names = ["truth", "prediction", "price" if "price" in pairs.columns else "cost"]
        lacking = [name for name in names if name not in pairs.columns]
        if lacking:
            raise ValueError(f"pairs lack the columns {lacking}: add them.")
        yield from zip(*(pairs[name] for name in names), strict=True)
    elif isinstance(pairs, Iterable) and not isinstance(pairs, str) and not issparse(pairs):
        yield from pairs
    else:
        raise TypeError(f"pairs are of type {type(pairs).__name__}: give a mapping or triples.")


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
        ("a", "b"): 2}`` means that taking a for b is five times as bad, and that it is twice as
        bad.

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
    known, costs = set(labels), dict[tuple[Any, Any], float]()
    for key, ratio in ratios.items():
        check_positive(**{f"the ratio of {key!r}": ratio})
        if plain(key) in known:
            mistakes = [(plain(key), other) for other in labels if other != plain(key)]
        else:
            pair = tuple(map(plain, key)) if isinstance(key, tuple) else (key,)
            check_known(pair, labels, "ratios")
            if len(pair) != 2 or pair[0] == pair[1]:
                raise ValueError(f"{key!r} in ratios: give a label, or two of them, truth first.")
            mistakes = [pair]
        for mistake in mistakes:
            if costs.setdefault(mistake, ratio) != ratio:
                raise ValueError(f"ratios contradict each other for {mistake}: drop one of them.")
    return costs_from_pairs(costs, default=1.0, classes=labels)


def template_costs(
    y: ArrayLike,
    *,
    balanced: bool = False,
    ordinal: tuple[float, float] | None = None,
    order: Iterable[Any] | None = None,
) -> LabelledCosts:
    """Return costs to start from, for the classes of training labels.

    Parameters
    ----------
    y : array-like of n labels
        Labels of the training data. Those of an ordered categorical of pandas have an order.
    balanced : bool, default=False
        Whether mistakes on rare classes cost more: ``n / (K * count)``, rounded.
    ordinal : tuple of two floats, optional
        Cost of a prediction one class below the truth, and of one a class above it; farther ones
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
        Where both `balanced` and `ordinal` are given, `order` does not name each class once, or
        `ordinal` is given for classes of text without an order.

    Examples
    --------
    >>> from badacost.costs import template_costs
    >>> template_costs([2, 1, 2])
    {1: {1: 0.0, 2: 1.0}, 2: {1: 1.0, 2: 0.0}}
    >>> template_costs(["high", "low"], ordinal=(5, 1), order=["low", "high"])
    {'low': {'low': 0.0, 'high': 1.0}, 'high': {'low': 5.0, 'high': 0.0}}
    """
    if balanced and ordinal is not None:
        raise ValueError("balanced and ordinal exclude each other: choose one of them.")
    classes = class_labels(distinct_classes(check_labels(y, "template_costs"), y))
    if order is not None:
        given = class_labels(order, "order") if np.iterable(order) else [order]
        classes = [classes[k] for k in np.argsort(class_positions(given, classes, "order"))]
    elif ordinal is not None and category_order(y) is None and str in map(type, classes):
        raise ValueError("y is text without an order: give order (--order low,middle,high).")
    if ordinal is not None:
        if np.shape(ordinal) != (2,):
            raise ValueError(f"ordinal is {ordinal!r:.80}: give two costs, too low and too high.")
        costs = ordinal_costs(len(classes), under=ordinal[0], over=ordinal[1])
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
        Whether every mistake costs 1 and the diagonal is zero, as `template_costs` has it.

    Examples
    --------
    >>> from badacost.costs import is_template
    >>> is_template([[0, 1], [1, 0]]), is_template([[0, 1], [5, 0]])
    (True, False)
    """
    labels = labels_of(costs)
    return bool((given_costs(costs, labels) == zero_one_costs(len(labels))).all())
